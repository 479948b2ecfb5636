//! T0 and T1 of the rows that a filter lets pass, so that searches that repeat the filter read
//! little, from one place.
//!
//! Under a filter that one row in a hundred passes, half of the blocks of T0 hold a passing row, so
//! a search reads T1 of all of them: 400 bytes a row in three times as many places. Here the
//! passing rows stand together, 60 bytes a row of T0 and, for those that it does not rule out, T1.

use bytemuck::{Pod, Zeroable};

use crate::segment::flat::path::SearchPath;
use crate::segment::flat::{RowFilter, Thoroughness, Tiers, through_lists};
use crate::segment::lists::{BuiltLists, ListPolicy, ListSource, Lists, Older, build};
use lodestone_compute::kmeans::CodeRows;
use lodestone_compute::one_bit::{BLOCK_ROWS, block_bytes};
use lodestone_compute::rotation::rotated_width;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ComputeError, ErrorBound, PreparedQuery, Selection, VectorRows,
    code_stride,
};
use lodestone_types::{Hit, RowId};

/// Queries from which a scan of T1 for all of them costs less than T0 for each.
const SCANNED_QUERIES_MIN: usize = 8;

/// A cache line of codes: rows begin at one.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([i8; 64]);

/// The passing rows, numbered one after the other: one list of them round their mean, in the form
/// of a segment's sections, and the columns of T1.
#[derive(Debug)]
pub(super) struct Condensed {
    sections: BuiltLists,
    codes: Vec<Line>,
    scales: Vec<f32>,
    residuals: Vec<f32>,
    norms: Vec<f32>,
}

impl Condensed {
    /// Copies T1 of `listed` rows, which ascend, and makes T0 of it: T1 has just been read, and T2
    /// may not be in memory. What T1 may be off is added to the upper bounds of T0.
    pub(super) fn new(rows: &VectorRows<'_>, listed: &[RowId]) -> Self {
        let each = |of: &dyn Fn(usize) -> f32| -> Vec<f32> {
            listed.iter().map(|row| of(row.0 as usize)).collect()
        };
        let mut codes = vec![Line([0; 64]); listed.len() * code_stride(rows.dimension()) / 64];
        let places = bytemuck::cast_slice_mut::<Line, i8>(&mut codes);
        for (place, row) in places.chunks_exact_mut(code_stride(rows.dimension())).zip(listed) {
            place.copy_from_slice(rows.codes(row.0 as usize));
        }
        let residuals = each(&|row| rows.residual(row));
        let one_list = ListPolicy { listed_rows_min: usize::MAX, ..ListPolicy::default() };
        let mut condensed = Self {
            sections: BuiltLists { lists: Vec::new(), one_bit: Vec::new() },
            codes,
            scales: each(&|row| rows.scale(row)),
            residuals,
            norms: each(&|row| rows.norm(row)),
        };
        let mut sections = build(&Decoded(condensed.rows(rows)), one_list);
        let width = rotated_width(rows.dimension());
        // Behind the codes stand the scales, then the offsets.
        let offsets_at = width / 8 * BLOCK_ROWS + BLOCK_ROWS * size_of::<f32>();
        let blocks = sections.one_bit.chunks_exact_mut(block_bytes(width));
        for (block, residuals) in blocks.zip(condensed.residuals.chunks(BLOCK_ROWS)) {
            let offsets = block[offsets_at..].as_chunks_mut::<4>().0;
            for (offset, residual) in offsets.iter_mut().zip(residuals) {
                let off = residual + ErrorBound::stored(rows);
                *offset = (f32::from_le_bytes(*offset) + off).to_le_bytes();
            }
        }
        condensed.sections = sections;
        condensed
    }

    /// Bytes of so many rows, about.
    pub(super) fn bytes(dimension: usize, rows: usize) -> usize {
        let block = block_bytes(rotated_width(dimension)) + BLOCK_ROWS * size_of::<u32>();
        let of_t1 = code_stride(dimension) + 3 * size_of::<f32>();
        (rows.div_ceil(BLOCK_ROWS) + 2) * block + rows * of_t1
    }

    /// T1.
    fn rows<'a>(&'a self, of: &VectorRows<'_>) -> VectorRows<'a> {
        let codes = bytemuck::cast_slice(&self.codes);
        let rows = of.apart(codes, &self.scales, &self.residuals, &self.norms);
        rows.expect("columns of as many rows")
    }

    /// The list.
    fn list(&self, dimension: usize) -> Lists<'_> {
        let BuiltLists { lists, one_bit } = &self.sections;
        Lists::view(dimension, lists, one_bit).expect("built by this program")
    }
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
    let condensed = filter.condensed(tiers).expect("the path is for condensed filters");
    let rows = condensed.rows(&tiers.rows);
    let list = condensed.list(rows.dimension());
    let mut found = match queries.len() >= SCANNED_QUERIES_MIN || !list.are_telling(k) {
        true => {
            let bound = |query| BoundedQuery { query, bound: thoroughness.bound(query, &rows) };
            let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bound).collect();
            backend.candidates(&rows, &queries, Selection::All, k)?
        }
        false => {
            let listed = tiers.listed.map(|(_, rotation)| (list, rotation));
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
