//! The [`ComputeBackend`] trait that CPU and GPU implementations share.

use std::fmt;

use crate::candidates::{BoundedQuery, Candidates};
use crate::kmeans::{CodeRows, HeldRows};
use crate::one_bit::{ListUnits, encode_lists};
use crate::rotation::Rotation;
use crate::{ComputeError, PreparedQuery, Selection, VectorRows};
use lodestone_types::{Hit, RowId};

/// Kernels over the rows of one segment.
///
/// `scan` and `exact` clear the output and write one value per row, in the order of the requested
/// rows. The value of a row depends on the query and that row alone. After an error the output is
/// unspecified: the caller tries another backend or fails the query.
pub trait ComputeBackend: fmt::Debug + Send + Sync {
    /// Returns a short name for query plans and logs.
    fn name(&self) -> &'static str;

    /// Computes estimated cosines from T1: `(codes . codes) * query scale * row scale`, with an
    /// exact integer dot product, multiplied in f64 and rounded once to f32. Each is within
    /// `ErrorBound` of the exact score. All backends give the same bits.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`], or the errors of `Selection::check`.
    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError>;

    /// Returns, per query, the selected rows whose upper bound by T1 (estimate plus bound) reaches
    /// the k-th best lower bound, scored by upper bound, highest first. They include the true best
    /// k and all ties. Many queries share one pass where that pays. For rows that T1 cannot
    /// separate, a backend may also use T2 and return fewer rows, with upper bounds by T2.
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

    /// Computes cosines from T2, in [-1, 1], accumulated in f32 or wider; 0 if query or row is
    /// zero. Never NaN for finite rows, never minus zero. Rows may repeat.
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

    /// Whether [`Self::candidates`] costs less than a search through lists, for `queries` queries
    /// over `passing` passing rows of `rows`: possible only if a device holds the rows. May start
    /// to copy them to the device. Always false for the CPU.
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

    /// Copies `count` rows to a device while lists are built from them, which finds the centroids
    /// nearest to them faster. `None` if the CPU has to do it.
    fn hold_rows(&self, rows: &dyn CodeRows, count: usize) -> Option<Box<dyn HeldRows>> {
        let _ = (rows, count);
        None
    }

    /// Encodes lists as T0 blocks, like [`encode_lists`].
    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        encode_lists(rotation, lists)
    }

    /// Describes the device in one line for operators.
    fn device(&self) -> String {
        "CPU".to_owned()
    }

    /// Returns the free and total bytes of the device's memory; `None` if it has none or is lost.
    fn device_memory(&self) -> Option<(u64, u64)> {
        None
    }

    /// Returns counters since the start for operators, as names and values in a fixed order.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Computes the candidates of each query with a scan of its own.
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
