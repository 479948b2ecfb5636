//! One run over resident rows: sample, threshold, collect, select.
//!
//! ```text
//! queries -> sample one row in a few -> k-th best lower bound -> collect rows that reach it
//!            (scan or batch)            (a threshold)            (scan or batch)
//!         -> select -> host
//! ```
//! A threshold that k rows reach loses nothing; the smaller the sample, the more rows are collected
//! needlessly. The first run uses a threshold that k rows reach with high probability, and select
//! detects queries for which they do not. Those queries, and those that collect more rows than fit
//! the memory, run once more, with a guaranteed threshold and sixteen times the memory.

use crate::Selection;
use crate::cuda::batcher::{DeviceCandidates, DeviceQuery};
use crate::cuda::chosen::ChosenRows;
use crate::cuda::numbers::ResidentRows;
use crate::cuda::pass::{FoundRow, GROUP_ROWS, Output, Pass, Queries, QueryFactors};
use crate::cuda::select::{Answers, Collected, Thresholds};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError, batch, scan, select};

/// Maximum k of a run; searches for more rows go to the CPU.
pub const K_MAX: usize = 256;
/// Maximum bytes of codes per row, which covers every dimension that the product supports. Halves
/// take twice as many.
pub const STRIDE_MAX: usize = 3072;

/// Maximum queries of one launch.
const QUERIES_MAX: usize = 1024;
/// Maximum passing rows for which all are collected, because a sample would cost as much.
const COLLECTED_ROWS_MAX: usize = 512;
/// Groups in a sample per requested row; with fewer, the k-th best of them is a poor threshold.
const GROUPS_A_ROW: usize = 4;
/// Capacity per row that a sample is expected to collect.
const CAPACITY_A_ROW: usize = 4;
/// Maximum share of queries that run twice; see `Capacity::rank`.
const MISSES_MAX: f64 = 1e-4;
/// Maximum distance between the rows of a sample.
const STEP_MAX: usize = 64;
/// Maximum bytes of scratch memory for samples and collected rows of one launch.
const SCRATCH_BYTES_MAX: usize = 128 << 20;
/// Average rows per requested row in an answer up to which one copy fetches the answers.
const ROWS_LIKELY: usize = 2;

/// Rows per query that fit the scratch memory.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    collected: usize,
    kept: usize,
    /// Whether a threshold may turn out too high, so that the query has to run once more.
    may_miss: bool,
}

impl Capacity {
    fn first(k: usize) -> Self {
        Self { collected: 4096, kept: (4 * k).next_power_of_two().max(256), may_miss: true }
    }

    fn second() -> Self {
        Self { collected: 65_536, kept: 16_384, may_miss: false }
    }

    /// Returns the rank, in a sample of one row in `step`, of the score that serves as the
    /// threshold. At least k rows reach the k-th best score of a sample. They also reach a higher
    /// score, unless `rank` or more of the k best rows are in the sample; it contains k / step of
    /// them on average, and `rank` of them with a probability of at most `MISSES_MAX`, by the
    /// Poisson distribution. For k = 10 and a step of 64 the rank is 4: about 4 x 64 rows reach
    /// that score instead of 10 x 64.
    fn rank(&self, k: usize, step: usize) -> usize {
        if !self.may_miss {
            return k;
        }
        let mean = k as f64 / step as f64;
        let (mut rank, mut chance) = (0, (-mean).exp());
        let mut more = 1.0;
        while rank < k && more > MISSES_MAX {
            more -= chance;
            rank += 1;
            chance *= mean / rank as f64;
        }
        rank.max(1)
    }
}

/// Rows of one run, on the device.
#[derive(Clone, Copy)]
struct SearchPlan<'a> {
    rows: &'a ResidentRows,
    mask: Option<&'a Buffer>,
    listed: Option<(&'a Buffer, usize)>,
    passing: usize,
    k: usize,
}

/// Returns, per query, the rows whose upper bound reaches the k-th best lower bound.
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

/// Like [`search`], over rows that are already selected on the device.
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

    /// Returns the number of rows that a full pass visits.
    fn length(&self) -> usize {
        self.listed.map_or(self.rows.rows as usize, |(_, length)| length)
    }

    /// Returns the distance between the rows of a sample; `None` if all passing rows are collected.
    /// A sample of at least `GROUPS_A_ROW * k` groups leads to about `k * step` rows being
    /// collected.
    fn step(&self, capacity: Capacity) -> Option<usize> {
        if self.passing <= COLLECTED_ROWS_MAX {
            return None;
        }
        let by_sample = self.passing / (GROUPS_A_ROW * GROUP_ROWS * self.k);
        let mut step = by_sample.clamp(1, STEP_MAX);
        while step > 1 && capacity.rank(self.k, step) * step * CAPACITY_A_ROW > capacity.collected {
            step /= 2;
        }
        Some(step)
    }

    fn run_part(
        &self,
        workspace: &mut Workspace,
        queries: &[&DeviceQuery],
        step: Option<usize>,
        capacity: Capacity,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let (count, Self { rows, mask, listed, k, .. }) = (queries.len(), *self);
        // Sent in one copy, since every copy takes as long as reading 30,000 rows.
        let each = size_of::<QueryFactors>() + rows.stride as usize;
        let mut sent: Vec<u8> = Vec::with_capacity(count * each);
        let factors = queries.iter().map(|query| factors_of(query));
        factors.for_each(|factors| sent.extend_from_slice(bytemuck::bytes_of(&factors)));
        let codes = queries.iter().map(|query| bytemuck::cast_slice(&query.codes));
        codes.for_each(|codes| sent.extend_from_slice(codes));
        let sent = workspace.filled("queries", &sent)?;
        let queries = Queries { sent: &sent, count };
        let values = |count: usize| count * size_of::<f32>();
        let sample = Pass { rows, queries, mask, listed, step: step.unwrap_or(1) };
        let groups = step.map_or(0, |_| sample.groups());
        let maxima = workspace.slot("maxima", values(count * groups))?;
        let thresholds = workspace.slot("thresholds", values(count))?;
        let counts = workspace.slot("counts", values(count))?;
        let found = workspace.slot("found", count * capacity.collected * size_of::<FoundRow>())?;
        let answers = workspace.slot("answers", Answers::bytes_of(count, capacity.kept))?;
        let answers = Answers { buffer: &answers, queries: count, rows_max: capacity.kept };
        if step.is_some() {
            launch(workspace, &sample, Output::Sample { maxima: &maxima })?;
        }
        let begun = Thresholds { values: &thresholds, counts: &counts, answers: answers.buffer };
        let rank = capacity.rank(k, sample.step);
        select::thresholds(workspace, (&maxima, groups), begun, count, rank)?;
        let collected_max = capacity.collected;
        let (thresholds, counts, found) = (&*thresholds, &*counts, &*found);
        let output = Output::Collect { thresholds, found, counts, capacity: collected_max };
        launch(workspace, &Pass { step: 1, ..sample }, output)?;
        let factors = &*sent;
        let (queries, capacity) = (count, collected_max);
        let collected = Collected { rows, factors, thresholds, found, counts, queries, capacity };
        select::candidates(workspace, &collected, answers, k)?;
        answers.fetch(workspace, ROWS_LIKELY * k)
    }
}

fn factors_of(query: &DeviceQuery) -> QueryFactors {
    let DeviceQuery { scale, bound_constant, bound_per_residual, .. } = *query;
    let (constant, per_residual) = (bound_constant, bound_per_residual);
    QueryFactors { scale, constant, per_residual, unused: 0.0 }
}

/// Launches a pass with the kernel for its number of queries.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_as_low_as_the_chance_of_a_miss_allows() {
        let first = Capacity::first(10);
        let ranks = [(1, 64, 1), (5, 64, 3), (10, 64, 4), (100, 64, 9), (256, 64, 14)];
        for (k, step, rank) in ranks {
            assert_eq!(first.rank(k, step), rank, "{k} of one in {step}");
        }
        // With all rows in the sample, only the k-th best is certain.
        for k in [1, 10, 256] {
            assert_eq!((first.rank(k, 1), Capacity::second().rank(k, 64)), (k, k));
        }
    }
}
