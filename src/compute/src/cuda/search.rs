//! One run over resident rows: sample, threshold, collect, select.
//!
//! ```text
//! queries -> sample every few rows -> k-th best lower bound -> collect what reaches it -> select
//!            (G1 or G2)               (a threshold)            (G1 or G2)                 -> host
//! ```
//! The sample's threshold is reached by k rows at least, so collecting loses nothing; the smaller
//! the sample, the more is collected in vain. Where more is found than there is room for, those
//! queries run once more with sixteen times the room.

use std::sync::Arc;

use bytemuck::Zeroable;

use crate::cuda::live::ResidentRows;
use crate::cuda::pass::{FoundRow, GROUP_ROWS, Output, Pass, Queries, QueryFactors};
use crate::cuda::select::{Collected, OVERFLOWED};
use crate::cuda::together::{DeviceQuery, Found};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError, batch, gather, scan, select};

/// Rows that a run finds for each query at most: more go to the CPU.
pub const K_MAX: usize = 256;
/// Widest rows, in bytes of codes: every width that the product supports. Halves take twice that.
pub const STRIDE_MAX: usize = 3072;

/// Queries of one launch.
const QUERIES_MAX: usize = 1024;
/// Rows that pass, up to which all are collected: a sample would cost as much.
const COLLECTED_ROWS_MAX: usize = 512;
/// Rows for each passing one above which a mask is made a list first: a pass then computes nothing
/// in vain. An estimate.
const ROWS_A_LISTED_ROW: usize = 4;
/// Groups of a sample for each row wanted: with fewer, the k-th of them says little.
const GROUPS_A_ROW: usize = 4;
/// Room for each row that a sample leads to be collected in vain.
const ROOM_A_ROW: usize = 4;
/// The coarsest sample.
const STEP_MAX: usize = 64;
/// Bytes of scratch memory that samples and finds of one launch may take.
const SCRATCH_BYTES_MAX: usize = 128 << 20;
/// Bytes of results up to which one copy with gaps beats a copy a query.
const ONE_COPY_BYTES_MAX: usize = 4 << 20;

/// Which rows a run looks at.
#[derive(Debug, Clone, Copy)]
pub enum Visited<'a> {
    /// All of them.
    All,
    /// Those whose bit is set: row r is bit `r % 64` of word `r / 64`.
    Masked(&'a [u64]),
    /// These.
    Listed(&'a [u32]),
}

/// Places for what is found, for each query.
#[derive(Debug, Clone, Copy)]
struct Room {
    collected: usize,
    kept: usize,
}

impl Room {
    fn first(k: usize) -> Self {
        Self { collected: 4096, kept: (4 * k).next_power_of_two().max(256) }
    }

    fn second() -> Self {
        Self { collected: 65_536, kept: 16_384 }
    }
}

/// What a run looks at.
#[derive(Clone, Copy)]
struct Ground<'a> {
    rows: &'a ResidentRows,
    mask: Option<&'a Buffer>,
    listed: Option<(&'a Buffer, usize)>,
    passing: usize,
    k: usize,
}

/// For each query the rows whose upper bound reaches the k-th best lower bound.
///
/// # Errors
/// What the device says; [`DeviceError::Shape`] for what no kernel can do.
pub fn search(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    queries: &[DeviceQuery],
    visited: Visited<'_>,
    k: usize,
) -> Result<Vec<Found>, DeviceError> {
    check(rows, queries, visited, k)?;
    let (mut mask, mut listed) = (None, None);
    let passing = match visited {
        Visited::All => rows.rows as usize,
        Visited::Masked(words) => {
            let words_here = workspace.filled("mask", bytemuck::cast_slice(words))?;
            let passing = words.iter().map(|word| word.count_ones() as usize).sum();
            if passing > 0 && passing * ROWS_A_LISTED_ROW < rows.rows as usize {
                listed = Some((mask_to_list(workspace, rows, &words_here, passing)?, passing));
            } else {
                mask = Some(words_here);
            }
            passing
        }
        Visited::Listed(ids) => {
            listed = Some((workspace.filled("listed", bytemuck::cast_slice(ids))?, ids.len()));
            ids.len()
        }
    };
    if passing == 0 || queries.is_empty() {
        return Ok(vec![Some(Vec::new()); queries.len()]);
    }
    let listed = listed.as_ref().map(|(ids, length)| (&**ids, *length));
    let ground = Ground { rows, mask: mask.as_deref(), listed, passing, k };
    let all: Vec<&DeviceQuery> = queries.iter().collect();
    let mut found = ground.run(workspace, &all, Room::first(k))?;
    let missing: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
    if !missing.is_empty() {
        let again: Vec<&DeviceQuery> = missing.iter().map(|at| &queries[*at]).collect();
        let second = ground.run(workspace, &again, Room::second())?;
        missing.into_iter().zip(second).for_each(|(at, second)| found[at] = second);
    }
    Ok(found)
}

/// The rows of a mask, brought into a list where they are.
fn mask_to_list(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    mask: &Buffer,
    passing: usize,
) -> Result<Arc<Buffer>, DeviceError> {
    let count = rows.rows as usize;
    let run_counts = workspace.slot("run counts", gather::runs(count) * size_of::<u32>())?;
    let listed = workspace.slot("listed", passing * size_of::<u32>())?;
    gather::list_mask(workspace, (mask, count), &run_counts, (&listed, passing))?;
    Ok(listed)
}

/// Refuses what would make a kernel read beyond its buffers.
fn check(
    rows: &ResidentRows,
    queries: &[DeviceQuery],
    visited: Visited<'_>,
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
    match visited {
        Visited::Masked(words) if words.len() != count.div_ceil(64) => {
            refused("a bit for each row")
        }
        Visited::Listed(ids) if ids.iter().any(|row| *row as usize >= count) => {
            refused("rows of the segment")
        }
        Visited::All | Visited::Masked(_) | Visited::Listed(_) => Ok(()),
    }
}

impl Ground<'_> {
    fn run(
        &self,
        workspace: &mut Workspace,
        queries: &[&DeviceQuery],
        room: Room,
    ) -> Result<Vec<Found>, DeviceError> {
        let step = self.step(room);
        let groups = step.map_or(0, |step| self.length().div_ceil(step).div_ceil(GROUP_ROWS));
        let bytes = groups * size_of::<f32>() + room.collected * size_of::<FoundRow>();
        let queries_max = match batch::fits(workspace.device().traits(), self.rows.stride) {
            true => QUERIES_MAX,
            false => scan::QUERIES_MAX,
        };
        let at_once = (SCRATCH_BYTES_MAX / bytes).clamp(1, queries_max);
        let mut found = Vec::with_capacity(queries.len());
        for part in queries.chunks(at_once) {
            found.extend(self.run_part(workspace, part, step, room)?);
        }
        Ok(found)
    }

    /// Rows among which a pass looks for those that pass.
    fn length(&self) -> usize {
        self.listed.map_or(self.rows.rows as usize, |(_, length)| length)
    }

    /// Every how manieth row a sample looks at; `None` where all that pass are collected. Such a
    /// sample of at least `GROUPS_A_ROW * k` groups leads to some `k * step` rows being collected.
    fn step(&self, room: Room) -> Option<usize> {
        if self.passing <= COLLECTED_ROWS_MAX {
            return None;
        }
        let by_sample = self.passing / (GROUPS_A_ROW * GROUP_ROWS * self.k);
        let by_room = room.collected / (ROOM_A_ROW * self.k);
        Some(by_sample.min(by_room).clamp(1, STEP_MAX))
    }

    fn run_part(
        &self,
        workspace: &mut Workspace,
        queries: &[&DeviceQuery],
        step: Option<usize>,
        room: Room,
    ) -> Result<Vec<Found>, DeviceError> {
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
        let found = workspace.slot("found", count * room.collected * size_of::<FoundRow>())?;
        let kept = workspace.slot("kept", count * room.kept * size_of::<FoundRow>())?;
        let kept_counts = workspace.slot("kept counts", values(count))?;
        if step.is_some() {
            launch(workspace, &sample, Output::Sample { maxima: &maxima })?;
        }
        select::thresholds(workspace, (&maxima, groups), &thresholds, &counts, count, k)?;
        let capacity = room.collected;
        let (thresholds, counts, found) = (&*thresholds, &*counts, &*found);
        let output = Output::Collect { thresholds, found, counts, capacity };
        launch(workspace, &Pass { step: 1, ..sample }, output)?;
        let factors = &*factors;
        let collected = Collected { rows, factors, found, counts, queries: count, capacity };
        select::candidates(workspace, &collected, (&kept, room.kept), &kept_counts, k)?;
        fetch(workspace, &kept, &kept_counts, count, room.kept)
    }
}

pub(super) fn factors_of(query: &DeviceQuery) -> QueryFactors {
    let DeviceQuery { scale, bound_constant, bound_per_residual, .. } = *query;
    let (constant, per_residual) = (bound_constant, bound_per_residual);
    QueryFactors { scale, constant, per_residual, unused: 0.0 }
}

/// By the kernel for so many queries.
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

/// Brings home what was kept, once it is there.
pub(super) fn fetch(
    workspace: &mut Workspace,
    kept: &Buffer,
    kept_counts: &Buffer,
    queries: usize,
    capacity: usize,
) -> Result<Vec<Found>, DeviceError> {
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
