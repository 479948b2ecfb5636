//! Converts a mask that few rows pass to a list, on the device (kernels/gather.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};

const THREADS: u32 = 256;
/// Words of 32 rows that one block processes.
const RUN_WORDS: usize = 2048;
/// Shared memory of a block.
const SHARED_BYTES: usize = 64;

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

/// Writes the ids of the passing rows in ascending order to `listed` as u32. `mask` comes with the
/// number of rows it covers, `listed` with the number of passing rows. `run_counts` is scratch
/// memory for [`runs`] u32.
pub fn list_mask(
    workspace: &mut Workspace,
    mask: (&Buffer, usize),
    run_counts: &Buffer,
    listed: (&Buffer, usize),
) -> Result<(), DeviceError> {
    let ((mask, rows), (listed, passing)) = (mask, listed);
    let words = rows.div_ceil(32);
    for kernel in ["mask_count", "mask_list"] {
        let mut builder = LaunchBuilder::new(kernel);
        let is_counted = u32::try_from(rows).is_ok() && rows > 0 && passing <= rows;
        builder.check(is_counted, "rows of 32 bits")?;
        let params = MaskListParams {
            mask: builder.reads::<u32>(mask, words)?,
            run_counts: builder.writes::<u32>(run_counts, runs(rows))?,
            listed: builder.writes::<u32>(listed, passing)?,
            words: words as u32,
            capacity: passing as u32,
        };
        let grid = [runs(rows) as u32, 1];
        let shape = LaunchShape { grid, threads: THREADS, shared_bytes: SHARED_BYTES };
        builder.launch(&mut *workspace.queue, shape, &params)?;
    }
    Ok(())
}

/// Returns the number of runs of rows that [`list_mask`] counts.
pub fn runs(rows: usize) -> usize {
    rows.div_ceil(32).div_ceil(RUN_WORDS)
}
