//! T0 and T1 of the rows that a filter lets pass, so that searches that repeat the filter read
//! little, from one place.
//!
//! Under a filter that one row in a hundred passes, half of the blocks of T0 hold a passing row, so
//! a search reads T1 of all of them: 400 bytes a row in three times as many places. Here the
//! passing rows stand together, 60 to 80 bytes a row of T0 and, for those that it does not rule
//! out, T1.
//!
//! They have lists of their own, all of which a search reads. Rows of one topic are about as near
//! to a question about something else, so that only a close estimate tells them apart, and T0 errs
//! by the distance of a row from the point of its list. Of 10,000 rows of a topic 930 pass T0 round
//! their mean, 470 in 32 lists, 250 in 128 (estimates without rounding, 1,000,000 vectors). Which
//! rows are near each other the lists of the segment tell: to cluster them anew would cost as much
//! as thousands of searches save.

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

/// Rows of a list at least: most of a block, of which all is read.
const LIST_ROWS: usize = 48;
/// Queries from which a scan of T1 for all of them costs less than T0 for each.
const SCANNED_QUERIES_MIN: usize = 8;

/// A cache line of codes: rows begin at one.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([i8; 64]);

/// The passing rows, numbered one after the other: lists of them in the form of a segment's
/// sections, and the columns of T1.
#[derive(Debug)]
pub(super) struct Condensed {
    sections: BuiltLists,
    codes: Vec<Line>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    norms: Vec<f32>,
}

impl Condensed {
    /// Copies T1 of the rows that pass, and makes T0 of it: T1 has just been read, and T2 may not
    /// be in memory. What T1 may be off is added to the upper bounds of T0.
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
        // Behind the codes stand the scales, then the offsets.
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

    /// Bytes of so many rows, about: of many lists a block is half empty, and each has a point.
    pub(super) fn bytes(dimension: usize, rows: usize) -> usize {
        let block = block_bytes(rotated_width(dimension)) + BLOCK_ROWS * size_of::<u32>();
        let of_t1 = code_stride(dimension) + 3 * size_of::<f32>();
        let lists = rows.div_ceil(LIST_ROWS);
        (rows.div_ceil(BLOCK_ROWS) + lists / 2) * block + (rows + lists) * of_t1
    }

    /// T1.
    fn rows<'a>(&'a self, of: &VectorRows<'_>) -> VectorRows<'a> {
        let codes = bytemuck::cast_slice(&self.codes);
        let rows = of.apart(codes, &self.scales, &self.residuals, &self.norms);
        rows.expect("columns of as many rows")
    }

    /// The lists.
    fn lists(&self, dimension: usize) -> Lists<'_> {
        let BuiltLists { lists, one_bit } = &self.sections;
        Lists::view(dimension, lists, one_bit).expect("built by this program")
    }
}

/// The list of each row that passes: those of neighbouring lists of the segment together, whose
/// points are near each other, as far as they fit into one block. Slots need not be verified for
/// it, since any lists would do.
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

/// For each query the passing rows that may be among its best k, highest upper bound first.
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

/// Rows as T1 has them.
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
