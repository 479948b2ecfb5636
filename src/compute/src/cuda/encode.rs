//! Encodes vectors as T0, bit-identical to the CPU (kernels/encode.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::DeviceError;
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::workspace::Workspace;
use crate::one_bit::{BLOCK_ROWS, block_bytes};
use crate::rotation::Rotation;

/// Threads of a block, which rotates rows with one warp each.
const ROTATE_THREADS: u32 = 256;
/// Candidate numbers of rows per block; the largest whose shared memory fits is used.
const ROTATE_ROWS: [usize; 5] = [32, 16, 8, 4, 2];
/// Marks a slot without a row.
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

/// Positions of rows within blocks of T0.
#[derive(Debug, Clone, Copy)]
pub struct OneBitSlots<'a> {
    /// The row of each slot, `u32::MAX` for padding; the slots form whole blocks.
    pub rows_of_slots: &'a [u32],
    /// The list of each block.
    pub lists_of_blocks: &'a [u32],
}

/// Encodes `units`, unit vectors, as blocks of T0 around the rotated point of each list in
/// `references`, like `OneBitEncoder`.
pub fn encode_one_bit(
    workspace: &mut Workspace,
    rotation: &Rotation,
    units: &[f32],
    references: &[f32],
    slots: OneBitSlots<'_>,
) -> Result<Vec<u8>, DeviceError> {
    let mut builder = LaunchBuilder::new("encode_one_bit");
    let (dimension, width) = (rotation.dimension(), rotation.width());
    let rows = rows_of(&builder, dimension, units)?;
    let OneBitSlots { rows_of_slots, lists_of_blocks } = slots;
    let (count, blocks) = (rows_of_slots.len(), lists_of_blocks.len());
    builder.check(count == blocks * BLOCK_ROWS, "whole blocks of slots")?;
    builder.check(u32::try_from(count).is_ok(), "slots of 32 bits")?;
    let is_row = |row: &u32| *row == NO_ROW || (*row as usize) < rows;
    builder.check(rows_of_slots.iter().all(is_row), "slots of rows that are there")?;
    let lists = references.len() / width;
    let is_list = |list: &u32| (*list as usize) < lists;
    builder.check(lists_of_blocks.iter().all(is_list), "blocks of lists that are there")?;
    let mut encoded = vec![0; blocks * block_bytes(width)];
    if blocks == 0 {
        return Ok(encoded);
    }
    let (rows_a_block, shared_bytes) = rows_a_block(workspace, &builder, width)?;
    let units = workspace.filled("units", bytemuck::cast_slice(units))?;
    let signs = workspace.filled("signs", bytemuck::cast_slice(rotation.signs()))?;
    let points = workspace.filled("references", bytemuck::cast_slice(references))?;
    let slots = workspace.filled("slots", bytemuck::cast_slice(rows_of_slots))?;
    let of_blocks = workspace.filled("lists of blocks", bytemuck::cast_slice(lists_of_blocks))?;
    let output = workspace.slot("blocks", encoded.len())?;
    let params = EncodeOneBitParams {
        units: builder.reads::<f32>(&units, rows * dimension)?,
        signs: builder.reads::<f32>(&signs, rotation.signs().len())?,
        references: builder.reads::<f32>(&points, lists * width)?,
        rows_of_slots: builder.reads::<u32>(&slots, count)?,
        lists_of_blocks: builder.reads::<u32>(&of_blocks, blocks)?,
        blocks: builder.writes::<u8>(&output, encoded.len())?,
        slots: count as u32,
        dimension: dimension as u32,
        width: width as u32,
        rows_a_block: rows_a_block as u32,
    };
    let grid = [count.div_ceil(rows_a_block) as u32, 1];
    let shape = LaunchShape { grid, threads: ROTATE_THREADS, shared_bytes };
    builder.launch(&mut *workspace.queue, shape, &params)?;
    workspace.queue.download(&output, 0, &mut encoded)?;
    Ok(encoded)
}

/// Returns the number of vectors of `dimension` components.
fn rows_of(
    builder: &LaunchBuilder,
    dimension: usize,
    vectors: &[f32],
) -> Result<usize, DeviceError> {
    let is_whole = dimension > 0 && vectors.len().is_multiple_of(dimension);
    builder.check(is_whole, "vectors of the dimension")?;
    let rows = vectors.len() / dimension;
    builder.check(u32::try_from(rows).is_ok(), "rows of 32 bits")?;
    Ok(rows)
}

/// Returns the rows per block, and the shared memory that they take.
fn rows_a_block(
    workspace: &Workspace,
    builder: &LaunchBuilder,
    width: usize,
) -> Result<(usize, usize), DeviceError> {
    let shared_bytes = |rows: usize| rows * (32 + 4 * (width + 1));
    let most = workspace.device().traits().shared_bytes_max as usize;
    let fitting = ROTATE_ROWS.into_iter().find(|rows| shared_bytes(*rows) <= most);
    let rows = fitting.ok_or_else(|| builder.refused("vectors that fit into shared memory"))?;
    Ok((rows, shared_bytes(rows)))
}
