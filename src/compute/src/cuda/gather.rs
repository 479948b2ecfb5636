//! G3: a mask that few rows pass becomes a list on the device (kernels/gather.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::live::ResidentRows;
use crate::cuda::reach::{Reach, Spread};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};

const THREADS: u32 = 256;
/// Words of 32 rows that one block looks at.
const RUN_WORDS: usize = 2048;
/// Shared memory of a block that counts.
const SHARED_BYTES: usize = 64;
/// Blocks a multiprocessor that bring rows together.
const BLOCKS_A_MULTIPROCESSOR: usize = 4;

/// `MaskListParams` of kernels/gather.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct MaskListParams {
    mask: u64,
    run_counts: u64,
    listed: u64,
    words: u32,
    capacity: u32,
}

/// `GatherRowsParams` of kernels/gather.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct GatherRowsParams {
    codes: u64,
    scales: u64,
    residuals: u64,
    listed: u64,
    gathered_codes: u64,
    gathered_scales: u64,
    gathered_residuals: u64,
    count: u32,
    stride: u32,
}

/// Writes the ascending rows of `mask`, which covers `rows` rows of which `passing` pass, to
/// `listed` as u32. `run_counts` is scratch memory of [`runs`] u32.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn list_mask(
    workspace: &mut Workspace,
    mask: (&Buffer, usize),
    run_counts: &Buffer,
    listed: (&Buffer, usize),
) -> Result<(), DeviceError> {
    let ((mask, rows), (listed, passing)) = (mask, listed);
    let words = rows.div_ceil(32);
    for kernel in ["mask_count", "mask_list"] {
        let mut reach = Reach::new(kernel);
        let is_counted = u32::try_from(rows).is_ok() && rows > 0 && passing <= rows;
        reach.check(is_counted, "rows of 32 bits")?;
        let params = MaskListParams {
            mask: reach.reads::<u32>(mask, words)?,
            run_counts: reach.writes::<u32>(run_counts, runs(rows))?,
            listed: reach.writes::<u32>(listed, passing)?,
            words: words as u32,
            capacity: passing as u32,
        };
        let grid = [runs(rows) as u32, 1];
        let spread = Spread { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
        reach.launch(&mut *workspace.queue, spread, &params)?;
    }
    Ok(())
}

/// Runs of rows that [`list_mask`] counts.
pub fn runs(rows: usize) -> usize {
    rows.div_ceil(32).div_ceil(RUN_WORDS)
}

/// Brings the rows of a list together, as rows of their own: position i holds row `ids[i]`. Costs
/// about three searches of them, and pays where one list serves more.
///
/// # Errors
/// [`DeviceError::Shape`] for rows that are not there, or what the device says.
pub fn gather_rows(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    ids: &[u32],
) -> Result<ResidentRows, DeviceError> {
    let mut reach = Reach::new("gather_rows");
    reach.check(ids.iter().all(|row| *row < rows.rows), "rows of the segment")?;
    let (count, stride) = (ids.len(), rows.stride as usize);
    let gathered = ResidentRows {
        numbers: rows.numbers,
        rows: u32::try_from(count).map_err(|_| reach.refused("rows of 32 bits"))?,
        stride: rows.stride,
        codes: workspace.device().allocate(count * stride)?,
        scales: workspace.device().allocate(count * size_of::<f32>())?,
        residuals: workspace.device().allocate(count * size_of::<f32>())?,
    };
    if count == 0 {
        return Ok(gathered);
    }
    let listed = workspace.filled("listed", bytemuck::cast_slice(ids))?;
    let params = GatherRowsParams {
        codes: reach.reads::<i8>(&rows.codes, rows.rows as usize * stride)?,
        scales: reach.reads::<f32>(&rows.scales, rows.rows as usize)?,
        residuals: reach.reads::<f32>(&rows.residuals, rows.rows as usize)?,
        listed: reach.reads::<u32>(&listed, count)?,
        gathered_codes: reach.writes::<i8>(&gathered.codes, count * stride)?,
        gathered_scales: reach.writes::<f32>(&gathered.scales, count)?,
        gathered_residuals: reach.writes::<f32>(&gathered.residuals, count)?,
        count: count as u32,
        stride: rows.stride,
    };
    let at_once = workspace.device().traits().multiprocessors as usize * BLOCKS_A_MULTIPROCESSOR;
    let wanted = (count * stride / 16).div_ceil(THREADS as usize * 4);
    let grid = [wanted.min(at_once).max(1) as u32, 1];
    let spread = Spread { grid, threads: THREADS, shared_bytes: 0 };
    reach.launch(&mut *workspace.queue, spread, &params)?;
    // The list is scratch memory, and the rows are for other queues too.
    workspace.queue.synchronise()?;
    Ok(gathered)
}
