//! G5: rows that may be among the best, from the lists near each query and by T0
//! (kernels/one_bit.cu and the end of kernels/select.cu).
//!
//! ```text
//! queries -> planes of bytes -> lists seen -> lists chosen -> T0 of each chosen list, once for
//!            all that chose it -> T1 of promising rows -> candidates, as after a scan
//! ```

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::cuda::batcher::{DeviceCandidates, DeviceQuery};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::lists::ResidentLists;
use crate::cuda::manager::ResidentRows;
use crate::cuda::pass::{FoundRow, QueryFactors};
use crate::cuda::search::{K_MAX, factors_of};
use crate::cuda::select::{self, Answers, Chosen, Collected};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::rotation::Rotation;
use crate::{BoundedQuery, Probe, RowMask};

/// Bytes of scratch memory for the bounds of one launch.
const SCRATCH_BYTES_MAX: usize = 128 << 20;
/// Queries of one launch.
const QUERIES_MAX: usize = 1024;
/// Rows of each query whose T1 is read, at most, and rows that are kept.
const COLLECTED: usize = 8192;

/// `OneBitFactors` of kernels/one_bit.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct OneBitFactors {
    step: f32,
    total: i32,
    lost: f32,
    residual: f32,
}

/// `OneBitQueriesParams` of kernels/one_bit.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct OneBitQueriesParams {
    rotated: u64,
    residuals: u64,
    planes: u64,
    factors: u64,
    width: u32,
    unused: u32,
}

/// `ListsPassingParams` of kernels/one_bit.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct ListsPassingParams {
    mask: u64,
    rows_of_slots: u64,
    first_blocks: u64,
    sizes: u64,
    passing: u64,
    lists: u32,
    unused: u32,
}

/// `ListsSeeParams` of kernels/one_bit.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct ListsSeeParams {
    point_codes: u64,
    point_scales: u64,
    squares: u64,
    spreads: u64,
    passing: u64,
    query_codes: u64,
    query_factors: u64,
    dots: u64,
    promises: u64,
    lists: u32,
    stride: u32,
    queries: u32,
    unused: u32,
}

/// `OneBitScanParams` of kernels/one_bit.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct OneBitScanParams {
    blocks: u64,
    rows_of_slots: u64,
    first_blocks: u64,
    sizes: u64,
    squares: u64,
    mask: u64,
    planes: u64,
    factors: u64,
    dots: u64,
    active: u64,
    active_count: u64,
    members: u64,
    member_counts: u64,
    uppers: u64,
    lists: u32,
    width: u32,
    member_capacity: u32,
    slot_capacity: u32,
    deviations: f32,
    unused: u32,
}

/// A query that goes through lists.
#[derive(Debug, Clone)]
pub struct ProbingQuery {
    /// As for a scan.
    pub query: DeviceQuery,
    /// The rotated unit query.
    pub rotated: Vec<f32>,
    /// Upper bound of the rounding error of its codes.
    pub residual: f32,
}

impl ProbingQuery {
    /// The query in the device's form.
    pub fn new(bounded: &BoundedQuery<'_>, rotation: &Rotation) -> Self {
        let mut rotated = vec![0.0; rotation.width()];
        rotation.apply(bounded.query.unit(), &mut rotated);
        let (query, residual) = (DeviceQuery::new(bounded), bounded.query.residual());
        Self { query, rotated, residual }
    }
}

/// For each query, of the rows in the lists that promise most, those whose upper bound by T1
/// reaches the k-th best lower bound.
pub fn probe(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    lists: &ResidentLists,
    queries: &[ProbingQuery],
    mask: Option<&RowMask>,
    probe: Probe,
) -> Result<Vec<DeviceCandidates>, DeviceError> {
    let builder = LaunchBuilder::new("one_bit_scan");
    let is_counted = (1..=K_MAX).contains(&probe.k) && probe.probes > 0;
    builder.check(is_counted, "k from 1 to 256 and a list to choose")?;
    let is_wide = |query: &ProbingQuery| {
        query.query.codes.len() == rows.stride as usize && query.rotated.len() == lists.width
    };
    builder.check(queries.iter().all(is_wide), "queries as wide as the rows")?;
    let mask = match mask {
        None => None,
        Some(mask) => {
            builder.check(mask.rows() == rows.rows as usize, "a bit for each row")?;
            Some(workspace.filled("mask", bytemuck::cast_slice(mask.words()))?)
        }
    };
    let slots = lists.slots_of(probe.probes);
    let bytes = (slots + COLLECTED) * size_of::<FoundRow>();
    let at_once = (SCRATCH_BYTES_MAX / bytes.max(1)).clamp(1, QUERIES_MAX);
    let mut found = Vec::with_capacity(queries.len());
    for part in queries.chunks(at_once) {
        let search = ListSearch { rows, lists, mask: mask.as_deref(), slots, probe };
        found.extend(search.run(workspace, part)?);
    }
    Ok(found)
}

/// Rows and lists of one probe, and its parameters.
struct ListSearch<'a> {
    rows: &'a ResidentRows,
    lists: &'a ResidentLists,
    mask: Option<&'a Buffer>,
    /// Slots of each query.
    slots: usize,
    probe: Probe,
}

/// Queries in the form of T0.
struct Planes {
    planes: Arc<Buffer>,
    factors: Arc<Buffer>,
}

/// Products and promises of each list for each query.
struct Seen {
    dots: Arc<Buffer>,
    promises: Arc<Buffer>,
}

impl ListSearch<'_> {
    fn run(
        &self,
        workspace: &mut Workspace,
        queries: &[ProbingQuery],
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let (count, Probe { k, probes, .. }) = (queries.len(), self.probe);
        let codes: Vec<i8> = queries.iter().flat_map(|asked| asked.query.codes.clone()).collect();
        let codes = workspace.filled("query codes", bytemuck::cast_slice(&codes))?;
        let factors: Vec<QueryFactors> =
            queries.iter().map(|asked| factors_of(&asked.query)).collect();
        let factors = workspace.filled("query factors", bytemuck::cast_slice(&factors))?;
        let planes = self.planes(workspace, queries)?;
        let passing = self.passing(workspace)?;
        let seen = self.see(workspace, (&codes, &factors, count), passing.as_deref())?;
        let list_count = self.lists.count();
        let promises = (&*seen.promises, list_count);
        let sizes = &self.lists.sizes_here;
        let chosen = select::lists(workspace, promises, sizes, count, (probes, self.slots))?;
        let uppers = self.scan(workspace, &planes, &seen, &chosen, count)?;
        let capacity = COLLECTED;
        let found = workspace.slot("found", count * capacity * size_of::<FoundRow>())?;
        let counts = workspace.slot("counts", count * size_of::<u32>())?;
        let collected = Collected {
            rows: self.rows,
            factors: &factors,
            found: &found,
            counts: &counts,
            queries: count,
            capacity,
        };
        let uppers = (&*uppers, self.slots);
        select::one_bit(workspace, &collected, uppers, &chosen.slot_counts, &codes, k)?;
        let answers = workspace.slot("answers", Answers::bytes_of(count, capacity))?;
        workspace.queue.fill(&answers, 0..8, 0)?;
        let answers = Answers { buffer: &answers, queries: count, rows_max: capacity };
        select::candidates(workspace, &collected, answers, k)?;
        answers.fetch(workspace, 2 * k)
    }

    fn planes(
        &self,
        workspace: &mut Workspace,
        queries: &[ProbingQuery],
    ) -> Result<Planes, DeviceError> {
        let (count, width) = (queries.len(), self.lists.width);
        let rotated: Vec<f32> = queries.iter().flat_map(|asked| asked.rotated.clone()).collect();
        let residuals: Vec<f32> = queries.iter().map(|asked| asked.residual).collect();
        let rotated = workspace.filled("rotated", bytemuck::cast_slice(&rotated))?;
        let residuals = workspace.filled("query residuals", bytemuck::cast_slice(&residuals))?;
        let planes = workspace.slot("planes", count * 2 * width)?;
        let factors = workspace.slot("plane factors", count * size_of::<OneBitFactors>())?;
        let mut builder = LaunchBuilder::new("one_bit_queries");
        let params = OneBitQueriesParams {
            rotated: builder.reads::<f32>(&rotated, count * width)?,
            residuals: builder.reads::<f32>(&residuals, count)?,
            planes: builder.writes::<i8>(&planes, count * 2 * width)?,
            factors: builder.writes::<OneBitFactors>(&factors, count)?,
            width: width as u32,
            unused: 0,
        };
        let shape = LaunchShape { grid: [count as u32, 1], threads: 32, shared_bytes: 0 };
        builder.launch(&mut *workspace.queue, shape, &params)?;
        Ok(Planes { planes, factors })
    }
}

impl ListSearch<'_> {
    /// Number of rows of each list that pass the filter, where there is one.
    fn passing(&self, workspace: &mut Workspace) -> Result<Option<Arc<Buffer>>, DeviceError> {
        let Some(mask) = self.mask else { return Ok(None) };
        let (lists, count) = (self.lists, self.lists.count());
        let passing = workspace.slot("lists passing", count * size_of::<u32>())?;
        let mut builder = LaunchBuilder::new("lists_passing");
        let params = ListsPassingParams {
            mask: builder.reads::<u32>(mask, (self.rows.rows as usize).div_ceil(32))?,
            rows_of_slots: builder.reads::<u32>(&lists.rows_of_slots, lists.slots)?,
            first_blocks: builder.reads::<u32>(&lists.first_blocks, count)?,
            sizes: builder.reads::<u32>(&lists.sizes_here, count)?,
            passing: builder.writes::<u32>(&passing, count)?,
            lists: count as u32,
            unused: 0,
        };
        let grid = [count.div_ceil(8) as u32, 1];
        let shape = LaunchShape { grid, threads: 256, shared_bytes: 0 };
        builder.launch(&mut *workspace.queue, shape, &params)?;
        Ok(Some(passing))
    }

    fn see(
        &self,
        workspace: &mut Workspace,
        (codes, factors, queries): (&Buffer, &Buffer, usize),
        passing: Option<&Buffer>,
    ) -> Result<Seen, DeviceError> {
        let (lists, count, stride) = (self.lists, self.lists.count(), self.rows.stride);
        let bytes = queries * count * size_of::<f32>();
        let (dots, promises) = (workspace.slot("dots", bytes)?, workspace.slot("promises", bytes)?);
        let mut builder = LaunchBuilder::new("lists_see");
        let params = ListsSeeParams {
            point_codes: builder.reads::<i8>(&lists.codes, count * stride as usize)?,
            point_scales: builder.reads::<f32>(&lists.scales, count)?,
            squares: builder.reads::<f32>(&lists.squares, count)?,
            spreads: builder.reads::<f32>(&lists.spreads, count)?,
            passing: match passing {
                Some(passing) => builder.reads::<u32>(passing, count)?,
                None => 0,
            },
            query_codes: builder.reads::<i8>(codes, queries * stride as usize)?,
            query_factors: builder.reads::<QueryFactors>(factors, queries)?,
            dots: builder.writes::<f32>(&dots, queries * count)?,
            promises: builder.writes::<f32>(&promises, queries * count)?,
            lists: count as u32,
            stride,
            queries: queries as u32,
            unused: 0,
        };
        let grid = [count.div_ceil(128) as u32, queries.div_ceil(8) as u32];
        let shape = LaunchShape { grid, threads: 256, shared_bytes: 0 };
        builder.launch(&mut *workspace.queue, shape, &params)?;
        Ok(Seen { dots, promises })
    }

    /// Upper bounds of the rows of the chosen lists.
    fn scan(
        &self,
        workspace: &mut Workspace,
        planes: &Planes,
        seen: &Seen,
        chosen: &Chosen,
        queries: usize,
    ) -> Result<Arc<Buffer>, DeviceError> {
        let (lists, count, width) = (self.lists, self.lists.count(), self.lists.width);
        let places = queries * self.slots;
        let uppers = workspace.slot("uppers", places * size_of::<FoundRow>())?;
        let mut builder = LaunchBuilder::new("one_bit_scan");
        let params = OneBitScanParams {
            blocks: builder.reads::<u8>(&lists.one_bit, lists.one_bit.bytes())?,
            rows_of_slots: builder.reads::<u32>(&lists.rows_of_slots, lists.slots)?,
            first_blocks: builder.reads::<u32>(&lists.first_blocks, count)?,
            sizes: builder.reads::<u32>(&lists.sizes_here, count)?,
            squares: builder.reads::<f32>(&lists.squares, count)?,
            mask: match self.mask {
                Some(mask) => builder.reads::<u32>(mask, (self.rows.rows as usize).div_ceil(32))?,
                None => 0,
            },
            planes: builder.reads::<i8>(&planes.planes, queries * 2 * width)?,
            factors: builder.reads::<OneBitFactors>(&planes.factors, queries)?,
            dots: builder.reads::<f32>(&seen.dots, queries * count)?,
            active: builder.reads::<u32>(&chosen.active, count)?,
            active_count: builder.reads::<u32>(&chosen.active_count, 1)?,
            members: builder.reads::<FoundRow>(&chosen.members, count * queries)?,
            member_counts: builder.reads::<u32>(&chosen.member_counts, count)?,
            uppers: builder.writes::<FoundRow>(&uppers, places)?,
            lists: count as u32,
            width: width as u32,
            member_capacity: queries as u32,
            slot_capacity: self.slots as u32,
            deviations: self.probe.deviations,
            unused: 0,
        };
        let grid = [count.min(self.probe.probes.saturating_mul(queries)) as u32, 1];
        let shape = LaunchShape { grid, threads: 128, shared_bytes: 0 };
        builder.launch(&mut *workspace.queue, shape, &params)?;
        Ok(uppers)
    }
}
