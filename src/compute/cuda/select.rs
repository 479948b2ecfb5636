//! Thresholds out of a sample, and the rows that stay (kernels/select.cu).

use bytemuck::{Pod, Zeroable};

use crate::compute::cuda::live::ResidentRows;
use crate::compute::cuda::pass::{FoundRow, QueryFactors};
use crate::compute::cuda::reach::{Reach, Spread};
use crate::compute::cuda::workspace::Workspace;
use crate::compute::cuda::{Buffer, DeviceError};

const THREADS: u32 = 256;
const SHARED_BYTES: usize = 1040;

/// A count that says that a pass found more than there was room for.
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
    let mut reach = Reach::new("select_threshold");
    let values = queries.saturating_mul(groups);
    let is_counted = u32::try_from(values).is_ok() && u32::try_from(queries).is_ok();
    reach.check(queries > 0 && k > 0 && is_counted, "numbers of 32 bits")?;
    let params = SelectThresholdParams {
        maxima: reach.reads::<f32>(maxima, values)?,
        thresholds: reach.writes::<f32>(thresholds, queries)?,
        counts: reach.writes::<u32>(counts, queries)?,
        groups: groups as u32,
        k: k as u32,
    };
    let grid = [queries as u32, 1];
    let spread = Spread { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
    reach.launch(&mut *workspace.queue, spread, &params)
}

/// What a collecting pass found.
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
    let mut reach = Reach::new("select_candidates");
    let numbers = [queries, k, capacity, kept_capacity];
    let is_counted = numbers.iter().all(|number| u32::try_from(*number).is_ok() && *number > 0);
    reach.check(is_counted, "numbers of 32 bits")?;
    let params = SelectCandidatesParams {
        found: reach.writes::<FoundRow>(found, queries.saturating_mul(capacity))?,
        counts: reach.reads::<u32>(counts, queries)?,
        scales: reach.reads::<f32>(&rows.scales, rows.rows as usize)?,
        residuals: reach.reads::<f32>(&rows.residuals, rows.rows as usize)?,
        query_factors: reach.reads::<QueryFactors>(factors, queries)?,
        kept: reach.writes::<FoundRow>(kept, queries.saturating_mul(kept_capacity))?,
        kept_counts: reach.writes::<u32>(kept_counts, queries)?,
        capacity: capacity as u32,
        kept_capacity: kept_capacity as u32,
        k: k as u32,
        unused: 0,
    };
    let grid = [queries as u32, 1];
    let spread = Spread { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
    reach.launch(&mut *workspace.queue, spread, &params)
}
