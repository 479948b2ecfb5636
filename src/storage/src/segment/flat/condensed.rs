//! A compact copy of T0 and T1 of the rows that pass a filter, so that searches that repeat the
//! filter read few bytes, all in one place.
//!
//! Under a filter that one row in a hundred passes, half of the T0 blocks hold a passing row, so a
//! search reads T1 of all passing rows instead: 400 bytes per row, in three times as many places.
//! In the copy the passing rows are contiguous: 60 to 80 bytes of T0 per row, and T1 only of the
//! rows that T0 does not rule out.
//!
//! The copy has lists of its own, all of which a search reads. Rows of one topic are about equally
//! near to a question about something else, so only a close estimate separates them, and the error
//! of T0 grows with a row's distance from the centre of its list. Of 10,000 rows of a topic, 930
//! pass T0 with one list around their mean, 470 with 32 lists, 250 with 128 (estimates without
//! rounding, 1,000,000 vectors). The lists of the segment tell which rows are near each other;
//! clustering them anew would cost as much as thousands of searches save.

use bytemuck::{Pod, Zeroable};

use crate::segment::flat::path::SearchPath;
use crate::segment::flat::{RowFilter, Thoroughness, Tiers, through_lists};
use crate::segment::lists::{BuiltLists, ListSource, Lists, Older, Trials, encode};
use lodestone_compute::kmeans::CodeRows;
use lodestone_compute::one_bit::{BLOCK_ROWS, block_bytes};
use lodestone_compute::rotation::rotated_width;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ComputeError, ErrorBound, PreparedQuery, RowMask, Selection,
    VectorRows, code_stride,
};
use lodestone_types::{Hit, RowId};

/// Minimum number of rows per list: most of a block, because blocks are always read whole.
const LIST_ROWS: usize = 48;
/// Number of queries from which one scan of T1 for all of them is cheaper than T0 for each.
const SCANNED_QUERIES_MIN: usize = 8;

/// A cache line of codes; each row starts on one.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([i8; 64]);

/// The passing rows, renumbered consecutively: their lists in the format of a segment's sections,
/// and the columns of T1.
#[derive(Debug)]
pub(super) struct Condensed {
    sections: BuiltLists,
    codes: Vec<Line>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    norms: Vec<f32>,
}

impl Condensed {
    /// Copies T1 of the passing rows and derives T0 from it, because T1 has just been read while T2
    /// may not be in memory. The error of T1 is added to the upper bounds of T0.
    pub(super) fn new(tiers: &Tiers<'_>, filter: &RowFilter<'_>) -> Self {
        let (rows, listed) = (&tiers.rows, filter.listed());
        let each = |of: &dyn Fn(usize) -> f32| -> Vec<f32> {
            listed.iter().map(|row| of(row.0 as usize)).collect()
        };
        let mut codes = vec![Line([0; 64]); listed.len() * code_stride(rows.dimension()) / 64];
        let places = bytemuck::cast_slice_mut::<Line, i8>(&mut codes);
        for (place, row) in places.chunks_exact_mut(code_stride(rows.dimension())).zip(listed) {
            place.copy_from_slice(rows.codes(row.0 as usize));
        }
        let residuals = each(&|row| rows.residual(row));
        let mut condensed = Self {
            sections: BuiltLists { lists: Vec::new(), one_bit: Vec::new() },
            codes,
            scales: each(&|row| rows.scale(row)),
            residuals,
            norms: each(&|row| rows.norm(row)),
        };
        let groups = groups(tiers, filter);
        let mut sections = encode(&Decoded(condensed.rows(rows)), &groups, Trials::OfAll);
        let width = rotated_width(rows.dimension());
        let lists = Lists::view(rows.dimension(), &sections.lists, &sections.one_bit);
        let slots = lists.expect("built by this program").slots().to_vec();
        // Within a block, the scales follow the codes and the offsets follow the scales.
        let offsets_at = width / 8 * BLOCK_ROWS + BLOCK_ROWS * size_of::<f32>();
        let blocks = sections.one_bit.chunks_exact_mut(block_bytes(width));
        for (block, slots) in blocks.zip(slots.chunks(BLOCK_ROWS)) {
            let offsets = block[offsets_at..].as_chunks_mut::<4>().0;
            for (offset, row) in offsets.iter_mut().zip(slots) {
                let Some(residual) = condensed.residuals.get(*row as usize) else { continue };
                let off = residual + ErrorBound::stored(rows);
                *offset = (f32::from_le_bytes(*offset) + off).to_le_bytes();
            }
        }
        condensed.sections = sections;
        condensed
    }

    /// Estimates the bytes of a copy of `rows` rows: with many lists, each has a point and on
    /// average a half-empty block.
    pub(super) fn bytes(dimension: usize, rows: usize) -> usize {
        let block = block_bytes(rotated_width(dimension)) + BLOCK_ROWS * size_of::<u32>();
        let of_t1 = code_stride(dimension) + 3 * size_of::<f32>();
        let lists = rows.div_ceil(LIST_ROWS);
        (rows.div_ceil(BLOCK_ROWS) + lists / 2) * block + (rows + lists) * of_t1
    }

    /// The T1 columns of the copy.
    fn rows<'a>(&'a self, of: &VectorRows<'_>) -> VectorRows<'a> {
        let codes = bytemuck::cast_slice(&self.codes);
        let rows = of.apart(codes, &self.scales, &self.residuals, &self.norms);
        rows.expect("columns of as many rows")
    }

    /// The lists of the copy.
    fn lists(&self, dimension: usize) -> Lists<'_> {
        let BuiltLists { lists, one_bit } = &self.sections;
        Lists::view(dimension, lists, one_bit).expect("built by this program")
    }
}

/// Assigns a list to each passing row. Rows of adjacent lists of the segment, whose points are near
/// each other, share a list as far as they fit into one block. The slots need not be verified for
/// this, since any assignment would be correct.
fn groups(tiers: &Tiers<'_>, filter: &RowFilter<'_>) -> Vec<u32> {
    let mut group_of = vec![0; filter.passing()];
    let Some((lists, _)) = &tiers.listed else { return group_of };
    let rows = tiers.rows.len();
    let mask = RowMask::from_bitmap(rows, filter.bitmap());
    let (mut group, mut size) = (0, 0);
    for list in 0..lists.len() {
        let passes = |row: &&u32| (**row as usize) < rows && mask.contains(**row as usize);
        let passing: Vec<&u32> = lists.rows(list).iter().filter(passes).collect();
        if size >= LIST_ROWS && size + passing.len() > BLOCK_ROWS {
            (group, size) = (group + 1, 0);
        }
        size += passing.len();
        for row in passing {
            let place = filter.listed().binary_search(&RowId(*row));
            group_of[place.expect("both are of the filter")] = group;
        }
    }
    group_of
}

/// For each query, the passing rows that may be among its best k, highest upper bound first.
pub(super) fn candidates(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    queries: &[PreparedQuery],
    filter: &RowFilter<'_>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let condensed = filter.condensed().expect("the path is for condensed filters");
    let rows = condensed.rows(&tiers.rows);
    let lists = condensed.lists(rows.dimension());
    let mut found = match queries.len() >= SCANNED_QUERIES_MIN || !lists.are_telling(k) {
        true => {
            let bound = |query| BoundedQuery { query, bound: thoroughness.bound(query, &rows) };
            let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bound).collect();
            backend.candidates(&rows, &queries, Selection::All, k)?
        }
        false => {
            let listed = tiers.listed.map(|(_, rotation)| (lists, rotation));
            let near = Tiers { rows, listed, blocks: None };
            through_lists(SearchPath::OneBit, &near, queries, None, k, thoroughness)
        }
    };
    let listed = filter.listed();
    for hit in found.iter_mut().flatten() {
        hit.row = listed[hit.row.0 as usize];
    }
    Ok(found)
}

/// Rows as decoded from T1.
struct Decoded<'a>(VectorRows<'a>);

impl CodeRows for Decoded<'_> {
    fn codes(&self, row: u32) -> &[i8] {
        self.0.codes(row as usize)
    }

    fn scale(&self, row: u32) -> f32 {
        self.0.scale(row as usize)
    }
}

impl ListSource for Decoded<'_> {
    fn row_count(&self) -> usize {
        self.0.len()
    }

    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn unit(&self, row: u32, unit: &mut [f32]) {
        let scale = self.scale(row);
        for (value, code) in unit.iter_mut().zip(self.codes(row)) {
            *value = f32::from(*code) * scale;
        }
    }

    fn older(&self) -> Option<&Older> {
        None
    }
}
