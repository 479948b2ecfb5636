//! G6, encoding: vectors to T0 with the bits of the CPU (kernels/encode.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::DeviceError;
use crate::cuda::reach::{Reach, Spread};
use crate::cuda::workspace::Workspace;
use crate::one_bit::{BLOCK_ROWS, block_bytes};
use crate::rotation::Rotation;

/// Threads of a block that rotates, a warp a row.
const ROTATE_THREADS: u32 = 256;
/// Rows of a block that rotates: the most whose shared memory fits.
const ROTATE_ROWS: [usize; 5] = [32, 16, 8, 4, 2];
/// A slot without a row.
const NO_ROW: u32 = u32::MAX;

/// `EncodeOneBitParams` of kernels/encode.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EncodeOneBitParams {
    units: u64,
    signs: u64,
    references: u64,
    rows_of_slots: u64,
    lists_of_blocks: u64,
    blocks: u64,
    slots: u32,
    dimension: u32,
    width: u32,
    rows_a_block: u32,
}

/// Where rows go in blocks of T0.
#[derive(Debug, Clone, Copy)]
pub struct OneBitSlots<'a> {
    /// The row of each slot, `u32::MAX` where a block is only filled up; whole blocks.
    pub rows_of_slots: &'a [u32],
    /// The list of each block.
    pub lists_of_blocks: &'a [u32],
}

/// Blocks of T0 of `units`, unit vectors, round the rotated point of each list in `references`;
/// as `OneBitEncoder` makes them.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn encode_one_bit(
    workspace: &mut Workspace,
    rotation: &Rotation,
    units: &[f32],
    references: &[f32],
    slots: OneBitSlots<'_>,
) -> Result<Vec<u8>, DeviceError> {
    let mut reach = Reach::new("encode_one_bit");
    let (dimension, width) = (rotation.dimension(), rotation.width());
    let rows = rows_of(&reach, dimension, units)?;
    let OneBitSlots { rows_of_slots, lists_of_blocks } = slots;
    let (count, blocks) = (rows_of_slots.len(), lists_of_blocks.len());
    reach.check(count == blocks * BLOCK_ROWS, "whole blocks of slots")?;
    reach.check(u32::try_from(count).is_ok(), "slots of 32 bits")?;
    let is_row = |row: &u32| *row == NO_ROW || (*row as usize) < rows;
    reach.check(rows_of_slots.iter().all(is_row), "slots of rows that are there")?;
    let lists = references.len() / width;
    let is_list = |list: &u32| (*list as usize) < lists;
    reach.check(lists_of_blocks.iter().all(is_list), "blocks of lists that are there")?;
    let mut encoded = vec![0; blocks * block_bytes(width)];
    if blocks == 0 {
        return Ok(encoded);
    }
    let (rows_a_block, shared_bytes) = rows_a_block(workspace, &reach, width)?;
    let units = workspace.filled("units", bytemuck::cast_slice(units))?;
    let signs = workspace.filled("signs", bytemuck::cast_slice(rotation.signs()))?;
    let points = workspace.filled("references", bytemuck::cast_slice(references))?;
    let slots = workspace.filled("slots", bytemuck::cast_slice(rows_of_slots))?;
    let of_blocks = workspace.filled("lists of blocks", bytemuck::cast_slice(lists_of_blocks))?;
    let output = workspace.slot("blocks", encoded.len())?;
    let params = EncodeOneBitParams {
        units: reach.reads::<f32>(&units, rows * dimension)?,
        signs: reach.reads::<f32>(&signs, rotation.signs().len())?,
        references: reach.reads::<f32>(&points, lists * width)?,
        rows_of_slots: reach.reads::<u32>(&slots, count)?,
        lists_of_blocks: reach.reads::<u32>(&of_blocks, blocks)?,
        blocks: reach.writes::<u8>(&output, encoded.len())?,
        slots: count as u32,
        dimension: dimension as u32,
        width: width as u32,
        rows_a_block: rows_a_block as u32,
    };
    let grid = [count.div_ceil(rows_a_block) as u32, 1];
    let spread = Spread { grid, threads: ROTATE_THREADS, shared_bytes };
    reach.launch(&mut *workspace.queue, spread, &params)?;
    workspace.queue.download(&output, 0, &mut encoded)?;
    Ok(encoded)
}

/// How many vectors of `dimension` components there are.
fn rows_of(reach: &Reach, dimension: usize, vectors: &[f32]) -> Result<usize, DeviceError> {
    let is_whole = dimension > 0 && vectors.len().is_multiple_of(dimension);
    reach.check(is_whole, "vectors of the dimension")?;
    let rows = vectors.len() / dimension;
    reach.check(u32::try_from(rows).is_ok(), "rows of 32 bits")?;
    Ok(rows)
}

/// Rows of a block that rotates, and the shared memory that it takes.
fn rows_a_block(
    workspace: &Workspace,
    reach: &Reach,
    width: usize,
) -> Result<(usize, usize), DeviceError> {
    let shared_bytes = |rows: usize| rows * (32 + 4 * (width + 1));
    let most = workspace.device().traits().shared_bytes_max as usize;
    let fitting = ROTATE_ROWS.into_iter().find(|rows| shared_bytes(*rows) <= most);
    let rows = fitting.ok_or_else(|| reach.refused("vectors that fit into shared memory"))?;
    Ok((rows, shared_bytes(rows)))
}
