//! One run over resident rows: sample, threshold, collect, select.
//!
//! ```text
//! queries -> sample every few rows -> k-th best lower bound -> collect what reaches it -> select
//!            (G1 or G2)               (a threshold)            (G1 or G2)                 -> host
//! ```
//! The sample's threshold is reached by k rows at least, so collecting loses nothing; the smaller
//! the sample, the more is collected in vain. Where more is found than there is memory for,
//! those queries run once more with sixteen times the memory.

use bytemuck::Zeroable;

use crate::Selection;
use crate::cuda::batcher::{DeviceCandidates, DeviceQuery};
use crate::cuda::chosen::ChosenRows;
use crate::cuda::manager::ResidentRows;
use crate::cuda::pass::{FoundRow, GROUP_ROWS, Output, Pass, Queries, QueryFactors};
use crate::cuda::select::{Collected, OVERFLOWED};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError, batch, scan, select};

/// Largest k of a run; searches for more rows go to the CPU.
pub const K_MAX: usize = 256;
/// Widest rows, in bytes of codes: every width that the product supports. Halves take twice that.
pub const STRIDE_MAX: usize = 3072;

/// Queries of one launch.
const QUERIES_MAX: usize = 1024;
/// Passing rows up to which all are collected: a sample would cost as much.
const COLLECTED_ROWS_MAX: usize = 512;
/// Groups of a sample for each row wanted: with fewer, the k-th of them is a poor threshold.
const GROUPS_A_ROW: usize = 4;
/// Capacity for each row that a sample leads to be collected in vain.
const CAPACITY_A_ROW: usize = 4;
/// The coarsest sample.
const STEP_MAX: usize = 64;
/// Bytes of scratch memory for samples and found rows of one launch.
const SCRATCH_BYTES_MAX: usize = 128 << 20;
/// Bytes of results up to which one copy with gaps is faster than a copy per query.
const ONE_COPY_BYTES_MAX: usize = 4 << 20;

/// Rows that there is scratch memory for, per query.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    collected: usize,
    kept: usize,
}

impl Capacity {
    fn first(k: usize) -> Self {
        Self { collected: 4096, kept: (4 * k).next_power_of_two().max(256) }
    }

    fn second() -> Self {
        Self { collected: 65_536, kept: 16_384 }
    }
}

/// Rows of one run, brought to the device.
#[derive(Clone, Copy)]
struct SearchPlan<'a> {
    rows: &'a ResidentRows,
    mask: Option<&'a Buffer>,
    listed: Option<(&'a Buffer, usize)>,
    passing: usize,
    k: usize,
}

/// For each query the rows whose upper bound reaches the k-th best lower bound.
///
/// # Errors
/// Errors of the device; [`DeviceError::Shape`] for shapes that no kernel supports.
pub fn search(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    queries: &[DeviceQuery],
    selection: Selection<'_>,
    k: usize,
) -> Result<Vec<DeviceCandidates>, DeviceError> {
    let chosen = ChosenRows::scratch(workspace, rows.rows as usize, selection)?;
    search_chosen(workspace, rows, queries, &chosen, k)
}

/// As [`search`], of rows that were brought to the device before.
///
/// # Errors
/// As [`search`].
pub fn search_chosen(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    queries: &[DeviceQuery],
    chosen: &ChosenRows,
    k: usize,
) -> Result<Vec<DeviceCandidates>, DeviceError> {
    check(rows, queries, chosen, k)?;
    let ChosenRows { passing, mask, listed, .. } = chosen;
    let passing = *passing;
    if passing == 0 || queries.is_empty() {
        return Ok(vec![Some(Vec::new()); queries.len()]);
    }
    let listed = listed.as_deref().map(|ids| (ids, passing));
    let plan = SearchPlan { rows, mask: mask.as_deref(), listed, passing, k };
    let all: Vec<&DeviceQuery> = queries.iter().collect();
    let mut found = plan.run(workspace, &all, Capacity::first(k))?;
    let missing: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
    if !missing.is_empty() {
        let again: Vec<&DeviceQuery> = missing.iter().map(|at| &queries[*at]).collect();
        let second = plan.run(workspace, &again, Capacity::second())?;
        missing.into_iter().zip(second).for_each(|(at, second)| found[at] = second);
    }
    Ok(found)
}

/// Refuses arguments that would make a kernel read beyond its buffers.
fn check(
    rows: &ResidentRows,
    queries: &[DeviceQuery],
    chosen: &ChosenRows,
    k: usize,
) -> Result<(), DeviceError> {
    let refused = |rule| Err(DeviceError::Shape { kernel: "search", rule });
    let (count, stride) = (rows.rows as usize, rows.stride as usize);
    if !(1..=K_MAX).contains(&k) || stride > STRIDE_MAX * rows.numbers.bytes() {
        return refused("k from 1 to 256 and rows of at most 3072 components");
    }
    if queries.iter().any(|query| query.codes.len() != stride) {
        return refused("queries as wide as the rows");
    }
    if chosen.rows != count {
        return refused("rows of the segment");
    }
    Ok(())
}

impl SearchPlan<'_> {
    fn run(
        &self,
        workspace: &mut Workspace,
        queries: &[&DeviceQuery],
        capacity: Capacity,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let step = self.step(capacity);
        let groups = step.map_or(0, |step| self.length().div_ceil(step).div_ceil(GROUP_ROWS));
        let bytes = groups * size_of::<f32>() + capacity.collected * size_of::<FoundRow>();
        let queries_max = match batch::fits(workspace.device().traits(), self.rows.stride) {
            true => QUERIES_MAX,
            false => scan::QUERIES_MAX,
        };
        let at_once = (SCRATCH_BYTES_MAX / bytes).clamp(1, queries_max);
        let mut found = Vec::with_capacity(queries.len());
        for part in queries.chunks(at_once) {
            found.extend(self.run_part(workspace, part, step, capacity)?);
        }
        Ok(found)
    }

    /// Number of rows that a pass visits.
    fn length(&self) -> usize {
        self.listed.map_or(self.rows.rows as usize, |(_, length)| length)
    }

    /// Distance between the rows of a sample; `None` where all passing rows are collected. A
    /// sample of at least `GROUPS_A_ROW * k` groups leads to some `k * step` rows being collected.
    fn step(&self, capacity: Capacity) -> Option<usize> {
        if self.passing <= COLLECTED_ROWS_MAX {
            return None;
        }
        let by_sample = self.passing / (GROUPS_A_ROW * GROUP_ROWS * self.k);
        let by_capacity = capacity.collected / (CAPACITY_A_ROW * self.k);
        Some(by_sample.min(by_capacity).clamp(1, STEP_MAX))
    }

    fn run_part(
        &self,
        workspace: &mut Workspace,
        queries: &[&DeviceQuery],
        step: Option<usize>,
        capacity: Capacity,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let (count, Self { rows, mask, listed, k, .. }) = (queries.len(), *self);
        let codes: Vec<i8> = queries.iter().flat_map(|query| query.codes.iter().copied()).collect();
        let codes = workspace.filled("query codes", bytemuck::cast_slice(&codes))?;
        let factors: Vec<QueryFactors> = queries.iter().map(|query| factors_of(query)).collect();
        let factors = workspace.filled("query factors", bytemuck::cast_slice(&factors))?;
        let queries = Queries { codes: &codes, factors: &factors, count };
        let values = |count: usize| count * size_of::<f32>();
        let sample = Pass { rows, queries, mask, listed, step: step.unwrap_or(1) };
        let groups = step.map_or(0, |_| sample.groups());
        let maxima = workspace.slot("maxima", values(count * groups))?;
        let thresholds = workspace.slot("thresholds", values(count))?;
        let counts = workspace.slot("counts", values(count))?;
        let found = workspace.slot("found", count * capacity.collected * size_of::<FoundRow>())?;
        let kept = workspace.slot("kept", count * capacity.kept * size_of::<FoundRow>())?;
        let kept_counts = workspace.slot("kept counts", values(count))?;
        if step.is_some() {
            launch(workspace, &sample, Output::Sample { maxima: &maxima })?;
        }
        select::thresholds(workspace, (&maxima, groups), &thresholds, &counts, count, k)?;
        let (collected_max, kept_max) = (capacity.collected, capacity.kept);
        let (thresholds, counts, found) = (&*thresholds, &*counts, &*found);
        let output = Output::Collect { thresholds, found, counts, capacity: collected_max };
        launch(workspace, &Pass { step: 1, ..sample }, output)?;
        let factors = &*factors;
        let (queries, capacity) = (count, collected_max);
        let collected = Collected { rows, factors, found, counts, queries, capacity };
        select::candidates(workspace, &collected, (&kept, kept_max), &kept_counts, k)?;
        fetch(workspace, &kept, &kept_counts, count, kept_max)
    }
}

fn factors_of(query: &DeviceQuery) -> QueryFactors {
    let DeviceQuery { scale, bound_constant, bound_per_residual, .. } = *query;
    let (constant, per_residual) = (bound_constant, bound_per_residual);
    QueryFactors { scale, constant, per_residual, unused: 0.0 }
}

/// Launches a pass with the kernel for so many queries.
fn launch(
    workspace: &mut Workspace,
    pass: &Pass<'_>,
    output: Output<'_>,
) -> Result<(), DeviceError> {
    match pass.queries.count {
        ..=scan::QUERIES_MAX => scan::launch(workspace, pass, output),
        _ => batch::launch(workspace, pass, output),
    }
}

/// Downloads the kept rows once they are there.
fn fetch(
    workspace: &mut Workspace,
    kept: &Buffer,
    kept_counts: &Buffer,
    queries: usize,
    capacity: usize,
) -> Result<Vec<DeviceCandidates>, DeviceError> {
    let mut counts = vec![0_u32; queries];
    workspace.queue.download(kept_counts, 0, bytemuck::cast_slice_mut(&mut counts))?;
    let fits = |count: u32| count != OVERFLOWED && count as usize <= capacity;
    let row_bytes = size_of::<FoundRow>();
    let is_one_copy = queries * capacity * row_bytes <= ONE_COPY_BYTES_MAX;
    let mut all = Vec::new();
    if is_one_copy {
        all = vec![FoundRow::zeroed(); queries * capacity];
        workspace.queue.download(kept, 0, bytemuck::cast_slice_mut(&mut all))?;
    }
    let mut found = Vec::with_capacity(queries);
    for (query, count) in counts.into_iter().enumerate() {
        if !fits(count) {
            found.push(None);
            continue;
        }
        let mut own = vec![FoundRow::zeroed(); count as usize];
        if is_one_copy {
            own.copy_from_slice(&all[query * capacity..][..count as usize]);
        } else {
            let at = query * capacity * row_bytes;
            workspace.queue.download(kept, at, bytemuck::cast_slice_mut(&mut own))?;
        }
        found.push(Some(own.iter().map(|row| (row.row, f32::from_bits(row.bits))).collect()));
    }
    Ok(found)
}
