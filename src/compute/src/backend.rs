//! The trait that CPU and GPU implementations share.

use std::fmt;

use crate::candidates::{BoundedQuery, Candidates};
use crate::kmeans::{CodeRows, HeldRows};
use crate::one_bit::{ListUnits, encode_lists};
use crate::rotation::Rotation;
use crate::{ComputeError, PreparedQuery, Selection, VectorRows};
use lodestone_types::{Hit, RowId};

/// Kernels over the rows of one segment.
///
/// `scan` and `exact` clear the output and write one value a row, in the order of the rows asked
/// for. The value of a row depends on the query and that row alone. An error leaves the output
/// unspecified: the caller then asks another backend or fails the query.
pub trait ComputeBackend: fmt::Debug + Send + Sync {
    /// A short name for plans and logs.
    fn name(&self) -> &'static str;

    /// Estimated cosines from T1: `(codes . codes) * query scale * row scale`, the dot product
    /// exact in integers, the products in f64, rounded once to f32. Each is within `ErrorBound`
    /// of the exact score. All backends give the same bits.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`], or what `Selection::check` refuses.
    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError>;

    /// For each query the selected rows whose upper bound by T1 (estimate plus bound) reaches the
    /// k-th best lower bound, with their upper bound as the score, highest first: the true best k
    /// are among them, ties included. Queries may be many; they share one pass where that pays.
    /// A backend may use T2 too for rows that T1 cannot tell apart, and names fewer rows then, with
    /// upper bounds by T2.
    ///
    /// # Errors
    /// As [`Self::scan`].
    fn candidates(
        &self,
        rows: &VectorRows<'_>,
        queries: &[BoundedQuery<'_>],
        selection: Selection<'_>,
        k: usize,
    ) -> Result<Vec<Vec<Hit>>, ComputeError> {
        one_by_one(self, rows, queries, selection, k)
    }

    /// Cosines from T2 in [-1, 1], accumulated in f32 or wider; 0 if query or row is zero. Never
    /// NaN for finite rows, never minus zero. Rows may repeat.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`] or [`ComputeError::RowOutOfRange`].
    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError>;

    /// Whether [`Self::candidates`] for so many queries, over so many passing ones of `rows`, costs
    /// less than going through lists: where a device holds the rows. It may begin to fetch them on
    /// this call. Never where rows are read by the processor.
    fn prefers_scan(
        &self,
        rows: &VectorRows<'_>,
        passing: usize,
        queries: usize,
        k: usize,
    ) -> bool {
        let _ = (rows, passing, queries, k);
        false
    }

    /// Holds `count` rows on a device while lists are built from them, to find the points near them
    /// in less time. `None` where the CPU has to do it.
    fn hold_rows(&self, rows: &dyn CodeRows, count: usize) -> Option<Box<dyn HeldRows>> {
        let _ = (rows, count);
        None
    }

    /// Blocks of T0 of lists, as [`encode_lists`] makes them.
    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        encode_lists(rotation, lists)
    }

    /// One line for operators: the device that computes.
    fn device(&self) -> String {
        "CPU".to_owned()
    }

    /// Free and all bytes of the device's own memory; `None` where it has none or is lost.
    fn device_memory(&self) -> Option<(u64, u64)> {
        None
    }

    /// Counts since the start, for operators: name and value, in a fixed order.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The candidates of one scan after the other.
pub(super) fn one_by_one<B: ComputeBackend + ?Sized>(
    backend: &B,
    rows: &VectorRows<'_>,
    queries: &[BoundedQuery<'_>],
    selection: Selection<'_>,
    k: usize,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let mut estimates = Vec::new();
    let of_one = |BoundedQuery { query, bound }: &BoundedQuery<'_>| {
        backend.scan(rows, query, selection, &mut estimates)?;
        let (mut candidates, mut estimates) = (Candidates::new(k), estimates.iter());
        selection.for_each(rows.len(), |row| {
            let &estimate = estimates.next().expect("a scan writes one estimate a selected row");
            let error = bound.of(rows.residual(row));
            let (estimate, error) = query.bounds(rows, row, estimate, error);
            candidates.push(RowId(row as u32), estimate, error);
        });
        Ok(candidates.finish())
    };
    queries.iter().map(of_one).collect()
}
