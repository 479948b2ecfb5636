//! The CPU backend, on simsimd's dot products.
//!
//! simsimd selects its kernel on the first call for each type and caches the pointer, so a call
//! costs one predicted branch and one indirect jump. Its kernels here:
//! - i8: products in i16, sums in i32 (AVX2, AVX-512 VNNI, NEON): exact up to 133,000 components
//! - f32: sums in f32 over 8 or 16 lanes; within the d u of `bound` in any order of summation
//!
//! Its f16 kernel is not used: on processors with AVX512-FP16 and on SVE it *accumulates* in f16,
//! which loses about three decimal digits and makes results differ between machines. Rows are
//! widened to f32 (by F16C if present, through `half`) and go through the f32 kernel. Its `cos` is
//! not used either: it is a distance, and its square root is approximate.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use simsimd::SpatialSimilarity;

use crate::backend::ComputeBackend;
use crate::backend::one_by_one;
use crate::backend_steps::{begin, cosine, settled};
use crate::candidates::{BoundedQuery, TILED_QUERIES_MIN, by_tiles};
use crate::rows::estimate;
use crate::{ComputeError, FullRows, PreparedQuery, Selection, VectorRows, prefetch, scoring};
use lodestone_types::{Hit, RowId};

/// Row lengths for which a dot product in f32 neither overflows nor loses digits to subnormals:
/// 2^-60 to 2^60. Other rows, which no real embedding has, are scored in f64.
const NORM_MIN: f32 = 1.0 / (1_u64 << 60) as f32;
const NORM_MAX: f32 = (1_u64 << 60) as f32;

/// Rows of T1 that are prefetched while as many others are processed.
const ROWS_COMING: usize = 16;
/// Rows of T2 that are prefetched while one is processed: a row of d = 384 takes 12 or 24 cache
/// lines, and processors track some 50 outstanding misses.
const ROWS_AHEAD: usize = 3;

/// Uses the vector instructions of the processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimdBackend;

impl ComputeBackend for SimdBackend {
    fn name(&self) -> &'static str {
        "simd"
    }

    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        begin(rows, query, selection, estimates)?;
        let codes = query.codes();
        let mut look_at = |row| {
            let dot = i8::dot(codes, rows.codes(row)).expect("codes of query and row are as long");
            estimates.push(estimate(dot, rows, row, query));
        };
        if let Selection::All = selection {
            (0..rows.len()).for_each(look_at);
            return Ok(());
        }
        // Processes a group of rows while the next group is being prefetched.
        let (mut ready, mut coming) = ([0; ROWS_COMING], Vec::with_capacity(ROWS_COMING));
        let mut ready_count = 0;
        selection.for_each(rows.len(), |row| {
            rows.prefetch(row);
            coming.push(row);
            if coming.len() == ROWS_COMING {
                ready[..ready_count].iter().for_each(|row| look_at(*row));
                ready.copy_from_slice(&coming);
                ready_count = ROWS_COMING;
                coming.clear();
            }
        });
        ready[..ready_count].iter().chain(&coming).for_each(|row| look_at(*row));
        Ok(())
    }

    fn candidates(
        &self,
        rows: &VectorRows<'_>,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        k: usize,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        let are_cosines = queries.iter().all(|one| one.query.scoring().is_none());
        match are_cosines && queries.len() >= TILED_QUERIES_MIN {
            true => by_tiles(rows, queries, selection, k),
            false => one_by_one(self, rows, queries, selection, k),
        }
    }

    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        begin(rows, query, Selection::Listed(listed), scores)?;
        match (query.scoring(), rows.full()) {
            (Some(scoring), _) => scoring::exact(scoring, rows, listed, scores),
            (None, FullRows::F16(bits)) => exact_f16(query.unit(), bits, listed, scores),
            (None, FullRows::F32 { values, norms }) => {
                exact_f32(query.unit(), values, norms, listed, scores);
            }
        }
        Ok(())
    }
}

fn exact_f16(unit: &[f32], bits: &[u16], listed: &[RowId], scores: &mut Vec<f32>) {
    let mut widened = vec![0.0; unit.len()];
    for_each_row(bits, unit.len(), listed, |_, row| {
        let half: &[f16] = row.reinterpret_cast();
        half.convert_to_f32_slice(&mut widened);
        scores.push(settled(dot(unit, &widened)));
    });
}

fn exact_f32(unit: &[f32], values: &[f32], norms: &[f32], listed: &[RowId], scores: &mut Vec<f32>) {
    for_each_row(values, unit.len(), listed, |at, row| {
        let norm = norms[at];
        let cosine = if (NORM_MIN..=NORM_MAX).contains(&norm) {
            dot(unit, row) / f64::from(norm)
        } else {
            cosine(unit, row)
        };
        scores.push(settled(cosine));
    });
}

/// Visits the listed rows, which may be anywhere, while prefetching the next few of them.
fn for_each_row<'a, T>(
    values: &'a [T],
    dimension: usize,
    listed: &[RowId],
    mut visit: impl FnMut(usize, &'a [T]),
) {
    let row = |row: &RowId| &values[row.0 as usize * dimension..][..dimension];
    listed.iter().take(ROWS_AHEAD).for_each(|ahead| prefetch(row(ahead)));
    for (at, listed_row) in listed.iter().enumerate() {
        if let Some(ahead) = listed.get(at + ROWS_AHEAD) {
            prefetch(row(ahead));
        }
        visit(listed_row.0 as usize, row(listed_row));
    }
}

/// Computes the exact dot product of two rows of codes.
///
/// # Panics
/// If their lengths differ.
pub fn dot_codes(a: &[i8], b: &[i8]) -> i32 {
    i8::dot(a, b).expect("both have the stride of the segment") as i32
}

fn dot(unit: &[f32], vector: &[f32]) -> f64 {
    f32::dot(unit, vector).expect("query and row have the dimension of the segment")
}
