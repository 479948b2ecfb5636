//! Exact cosines of listed rows from T2 (kernels/rescore.cu).
//!
//! No search uses it: on paper the processor is faster, whether T2 stands on the device or not. A
//! search scores some m = 300 rows of d = 384 f16, 230 KB that lie scattered over memory.
//!
//! ```text
//! processor           reads m rows, about 10 GB/s of lines far apart       23 us
//! rows not there      the processor reads the same rows to gather them     23 us
//!                     + copy over PCIe, 25 GB/s, and its latency           15 us
//!                     + launch, scores home, wait                          20 us
//! rows there (T2)     list of rows there, launch, scores home, wait        30 us
//! ```
//! The products hide behind the reads on either side. Estimates: none was taken on a card. A batch
//! changes nothing for rows that are gathered, since each query has rows of its own; it may for
//! rows that are there.

use bytemuck::{Pod, Zeroable};

use crate::cuda::pass::FoundRow;
use crate::cuda::reach::{Reach, Spread};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::{FullRows, PreparedQuery, VectorRows};

const THREADS: u32 = 256;
/// Rows that a block scores at the same time, a warp each.
const ROWS_A_BLOCK: usize = 8;
/// Blocks of one query at most.
const BLOCKS_A_QUERY_MAX: usize = 64;
/// Queries of one launch.
const QUERIES_MAX: usize = 4096;

/// `RescoreParams` of kernels/rescore.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct RescoreParams {
    values: u64,
    units: u64,
    kept: u64,
    kept_counts: u64,
    scores: u64,
    dimension: u32,
    kept_capacity: u32,
}

/// T2 of a segment on the device.
#[derive(Debug)]
pub struct ResidentFull {
    /// How many rows.
    pub rows: u32,
    /// Components of each.
    pub dimension: u32,
    /// The values, row after row.
    pub values: Buffer,
    /// Whether they are f16; f32 otherwise.
    pub is_f16: bool,
}

impl ResidentFull {
    /// Copies T2 to the device.
    ///
    /// # Errors
    /// As `Device::allocate` and `Queue::upload`.
    pub fn upload(rows: &VectorRows<'_>, workspace: &mut Workspace) -> Result<Self, DeviceError> {
        let (bytes, is_f16): (&[u8], bool) = match rows.full() {
            FullRows::F16(bits) => (bytemuck::cast_slice(bits), true),
            FullRows::F32 { values, .. } => (bytemuck::cast_slice(values), false),
        };
        let values = workspace.device().allocate(bytes.len())?;
        workspace.queue.upload(&values, 0, bytes)?;
        workspace.queue.synchronise()?;
        let (rows, dimension) = (rows.len() as u32, rows.dimension() as u32);
        Ok(Self { rows, dimension, values, is_f16 })
    }
}

/// For each query the cosines of its listed rows, in their order, as `ComputeBackend::exact` gives
/// them: in [-1, 1], 0 for a zero query or row.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn cosines(
    workspace: &mut Workspace,
    full: &ResidentFull,
    asked: &[(&PreparedQuery, &[u32])],
) -> Result<Vec<Vec<f32>>, DeviceError> {
    let mut scores = Vec::with_capacity(asked.len());
    for part in asked.chunks(QUERIES_MAX) {
        scores.extend(part_cosines(workspace, full, part)?);
    }
    Ok(scores)
}

fn part_cosines(
    workspace: &mut Workspace,
    full: &ResidentFull,
    asked: &[(&PreparedQuery, &[u32])],
) -> Result<Vec<Vec<f32>>, DeviceError> {
    let mut reach = Reach::new(if full.is_f16 { "rescore_f16" } else { "rescore_f32" });
    let (rows, dimension) = (full.rows as usize, full.dimension as usize);
    let capacity = asked.iter().map(|(_, listed)| listed.len()).max().unwrap_or(0);
    let mut kept = vec![FoundRow::zeroed(); asked.len() * capacity];
    let (mut units, mut counts) = (Vec::new(), Vec::with_capacity(asked.len()));
    for (at, (query, listed)) in asked.iter().enumerate() {
        reach.check(query.unit().len() == dimension, "queries as wide as the rows")?;
        let is_there = listed.iter().all(|row| (*row as usize) < rows);
        reach.check(is_there && u32::try_from(listed.len()).is_ok(), "rows of the segment")?;
        units.extend_from_slice(query.unit());
        counts.push(listed.len() as u32);
        let places = &mut kept[at * capacity..][..listed.len()];
        places.iter_mut().zip(*listed).for_each(|(kept, row)| kept.row = *row);
    }
    if capacity == 0 {
        return Ok(vec![Vec::new(); asked.len()]);
    }
    let units = workspace.filled("units", bytemuck::cast_slice(&units))?;
    let kept_here = workspace.filled("kept", bytemuck::cast_slice(&kept))?;
    let counts_here = workspace.filled("kept counts", bytemuck::cast_slice(&counts))?;
    let output = workspace.slot("scores", kept.len() * size_of::<f32>())?;
    let params = RescoreParams {
        values: match full.is_f16 {
            true => reach.reads::<u16>(&full.values, rows * dimension)?,
            false => reach.reads::<f32>(&full.values, rows * dimension)?,
        },
        units: reach.reads::<f32>(&units, asked.len() * dimension)?,
        kept: reach.reads::<FoundRow>(&kept_here, kept.len())?,
        kept_counts: reach.reads::<u32>(&counts_here, asked.len())?,
        scores: reach.writes::<f32>(&output, kept.len())?,
        dimension: full.dimension,
        kept_capacity: capacity as u32,
    };
    let blocks = capacity.div_ceil(ROWS_A_BLOCK).min(BLOCKS_A_QUERY_MAX);
    let grid = [blocks as u32, asked.len() as u32];
    let spread = Spread { grid, threads: THREADS, shared_bytes: 0 };
    reach.launch(&mut *workspace.queue, spread, &params)?;
    let mut scores = vec![0.0_f32; kept.len()];
    workspace.queue.download(&output, 0, bytemuck::cast_slice_mut(&mut scores))?;
    let own = |at: usize| scores[at * capacity..][..counts[at] as usize].to_vec();
    Ok((0..asked.len()).map(own).collect())
}
