//! Derives thresholds from a sample, and selects candidates among collected rows
//! (kernels/select.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::batcher::{Candidate, DeviceCandidates};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::numbers::{Numbers, ResidentRows};
use crate::cuda::pass::{FoundRow, QueryFactors};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};

const THREADS: u32 = 512;
const SHARED_BYTES: usize = 1168;

/// `SelectThresholdParams` of kernels/select.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct SelectThresholdParams {
    maxima: u64,
    thresholds: u64,
    counts: u64,
    total: u64,
    groups: u32,
    rank: u32,
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
    thresholds: u64,
    answers: u64,
    capacity: u32,
    kept_capacity: u32,
    k: u32,
    queries: u32,
}

/// Buffers that the threshold kernel initialises: f32 `values`, u32 `counts`, and the head of
/// `answers`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds<'a> {
    pub(super) values: &'a Buffer,
    pub(super) counts: &'a Buffer,
    pub(super) answers: &'a Buffer,
}

/// Writes the `rank`-th best of each query's `groups` maxima to `thresholds.values`, and zeros to
/// the counts. Without groups, every threshold is the lowest possible.
pub(super) fn thresholds(
    workspace: &mut Workspace,
    (maxima, groups): (&Buffer, usize),
    thresholds: Thresholds<'_>,
    queries: usize,
    rank: usize,
) -> Result<(), DeviceError> {
    let mut builder = LaunchBuilder::new("select_threshold");
    let values = queries.saturating_mul(groups);
    let is_counted = u32::try_from(values).is_ok() && u32::try_from(queries).is_ok();
    builder.check(queries > 0 && rank > 0 && is_counted, "numbers of 32 bits")?;
    let params = SelectThresholdParams {
        maxima: builder.reads::<f32>(maxima, values)?,
        thresholds: builder.writes::<f32>(thresholds.values, queries)?,
        counts: builder.writes::<u32>(thresholds.counts, queries)?,
        total: builder.writes::<u32>(thresholds.answers, 1)?,
        groups: groups as u32,
        rank: rank as u32,
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
    /// f32, one per query: the thresholds of the pass.
    pub(super) thresholds: &'a Buffer,
    /// [`FoundRow`]s, `queries * capacity`; overwritten.
    pub(super) found: &'a Buffer,
    /// u32, one per query.
    pub(super) counts: &'a Buffer,
    pub(super) queries: usize,
    pub(super) capacity: usize,
}

/// Writes those of the collected rows whose upper bound reaches the k-th best lower bound to
/// `answers`, a buffer of [`Answers::bytes`] whose total must be 0.
pub(super) fn candidates(
    workspace: &mut Workspace,
    collected: &Collected<'_>,
    answers: Answers<'_>,
    k: usize,
) -> Result<(), DeviceError> {
    let Collected { rows, factors, found, counts, queries, capacity, .. } = *collected;
    let mut builder = LaunchBuilder::new(match rows.numbers {
        Numbers::Codes => "select_candidates",
        Numbers::F16 => "select_candidates_halves",
    });
    let numbers =
        [queries, k, capacity, answers.rows_max, answers.bytes() / size_of::<AnswerWords>()];
    let is_counted = numbers.iter().all(|number| u32::try_from(*number).is_ok() && *number > 0);
    builder.check(is_counted && queries == answers.queries, "numbers of 32 bits")?;
    let params = SelectCandidatesParams {
        found: builder.writes::<FoundRow>(found, queries.saturating_mul(capacity))?,
        counts: builder.reads::<u32>(counts, queries)?,
        scales: builder.reads::<f32>(&rows.scales, rows.rows as usize)?,
        residuals: builder.reads::<f32>(&rows.residuals, rows.rows as usize)?,
        query_factors: builder.reads::<QueryFactors>(factors, queries)?,
        thresholds: builder.reads::<f32>(collected.thresholds, queries)?,
        answers: builder.writes::<u8>(answers.buffer, answers.bytes())?,
        capacity: capacity as u32,
        kept_capacity: answers.rows_max as u32,
        k: k as u32,
        queries: queries as u32,
    };
    let grid = [queries as u32, 1];
    let shape = LaunchShape { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Answers to all queries, stored without gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) queries: usize,
    /// Maximum rows per query; a query with more has no answer.
    pub(super) rows_max: usize,
}

/// `AnswerHead`, `AnswerRange` and `AnswerRow` of kernels/select.cu, three words each: a total, the
/// first row and number of rows of a query, or a [`Candidate`].
type AnswerWords = [u32; 3];

impl Answers<'_> {
    /// Returns the bytes of the answers to `queries` queries of up to `rows_max` rows each.
    pub(super) fn bytes_of(queries: usize, rows_max: usize) -> usize {
        (1 + queries.saturating_mul(1 + rows_max)).saturating_mul(size_of::<AnswerWords>())
    }

    fn bytes(&self) -> usize {
        Self::bytes_of(self.queries, self.rows_max)
    }

    /// Downloads the answers once they are complete: in one copy if queries have at most
    /// `rows_likely` rows on average, otherwise in two.
    pub(super) fn fetch(
        &self,
        workspace: &mut Workspace,
        rows_likely: usize,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let head = 1 + self.queries;
        let likely = self.queries * rows_likely.min(self.rows_max);
        let mut words: Vec<AnswerWords> = vec![[0; 3]; head + likely];
        let queue = &mut *workspace.queue;
        queue.download(self.buffer, 0, bytemuck::cast_slice_mut(&mut words))?;
        let here = words.len();
        // Limit it, so that a faulty device cannot make this read out of bounds on either side.
        let total = (words[0][0] as usize).min(self.queries * self.rows_max);
        if head + total > here {
            words.resize(head + total, [0; 3]);
            let rest = bytemuck::cast_slice_mut(&mut words[here..]);
            queue.download(self.buffer, here * size_of::<AnswerWords>(), rest)?;
        }
        let (ranges, rows) = words[1..].split_at(self.queries);
        let rows: &[Candidate] = bytemuck::cast_slice(rows);
        let found = ranges.iter().map(|&[first, count, _]| {
            let (first, count) = (first as usize, count as usize);
            let own = (count <= self.rows_max).then(|| rows.get(first..first + count))?;
            own.map(<[Candidate]>::to_vec)
        });
        Ok(found.collect())
    }
}
