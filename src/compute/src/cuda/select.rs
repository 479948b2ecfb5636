//! Thresholds from a sample, and the candidates among the rows found (kernels/select.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::manager::ResidentRows;
use crate::cuda::numbers::Numbers;
use crate::cuda::pass::{FoundRow, QueryFactors};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};

const THREADS: u32 = 256;
const SHARED_BYTES: usize = 1040;

/// Count of a pass that found more rows than fit.
pub(super) const OVERFLOWED: u32 = u32::MAX;

/// `SelectThresholdParams` of kernels/select.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct SelectThresholdParams {
    maxima: u64,
    thresholds: u64,
    counts: u64,
    groups: u32,
    k: u32,
}

/// `SelectCandidatesParams` of kernels/select.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct SelectCandidatesParams {
    found: u64,
    counts: u64,
    scales: u64,
    residuals: u64,
    query_factors: u64,
    kept: u64,
    kept_counts: u64,
    capacity: u32,
    kept_capacity: u32,
    k: u32,
    unused: u32,
}

/// The k-th best of each query's `groups` maxima to `thresholds`, and zeroes to `counts`. Without
/// groups every threshold is the lowest.
pub(super) fn thresholds(
    workspace: &mut Workspace,
    (maxima, groups): (&Buffer, usize),
    thresholds: &Buffer,
    counts: &Buffer,
    queries: usize,
    k: usize,
) -> Result<(), DeviceError> {
    let mut builder = LaunchBuilder::new("select_threshold");
    let values = queries.saturating_mul(groups);
    let is_counted = u32::try_from(values).is_ok() && u32::try_from(queries).is_ok();
    builder.check(queries > 0 && k > 0 && is_counted, "numbers of 32 bits")?;
    let params = SelectThresholdParams {
        maxima: builder.reads::<f32>(maxima, values)?,
        thresholds: builder.writes::<f32>(thresholds, queries)?,
        counts: builder.writes::<u32>(counts, queries)?,
        groups: groups as u32,
        k: k as u32,
    };
    let grid = [queries as u32, 1];
    let shape = LaunchShape { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Rows that a collecting pass found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collected<'a> {
    pub(super) rows: &'a ResidentRows,
    pub(super) factors: &'a Buffer,
    /// [`FoundRow`]s, `queries * capacity`; overwritten.
    pub(super) found: &'a Buffer,
    /// u32, one a query.
    pub(super) counts: &'a Buffer,
    pub(super) queries: usize,
    pub(super) capacity: usize,
}

/// Of what was collected, the rows whose upper bound reaches the k-th best lower bound, to `kept`:
/// [`FoundRow`]s with estimates, `queries * kept_capacity`; and u32 `kept_counts`.
pub(super) fn candidates(
    workspace: &mut Workspace,
    collected: &Collected<'_>,
    (kept, kept_capacity): (&Buffer, usize),
    kept_counts: &Buffer,
    k: usize,
) -> Result<(), DeviceError> {
    let Collected { rows, factors, found, counts, queries, capacity } = *collected;
    let mut builder = LaunchBuilder::new(match rows.numbers {
        Numbers::Codes => "select_candidates",
        Numbers::F16 => "select_candidates_halves",
    });
    let numbers = [queries, k, capacity, kept_capacity];
    let is_counted = numbers.iter().all(|number| u32::try_from(*number).is_ok() && *number > 0);
    builder.check(is_counted, "numbers of 32 bits")?;
    let params = SelectCandidatesParams {
        found: builder.writes::<FoundRow>(found, queries.saturating_mul(capacity))?,
        counts: builder.reads::<u32>(counts, queries)?,
        scales: builder.reads::<f32>(&rows.scales, rows.rows as usize)?,
        residuals: builder.reads::<f32>(&rows.residuals, rows.rows as usize)?,
        query_factors: builder.reads::<QueryFactors>(factors, queries)?,
        kept: builder.writes::<FoundRow>(kept, queries.saturating_mul(kept_capacity))?,
        kept_counts: builder.writes::<u32>(kept_counts, queries)?,
        capacity: capacity as u32,
        kept_capacity: kept_capacity as u32,
        k: k as u32,
        unused: 0,
    };
    let grid = [queries as u32, 1];
    let shape = LaunchShape { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
    builder.launch(&mut *workspace.queue, shape, &params)
}
