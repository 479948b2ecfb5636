//! One pass over the rows for a few queries (kernels/scan.cu).

use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::pass::{GROUP_ROWS, Output, Pass};
use crate::cuda::workspace::Workspace;
use crate::cuda::{DeviceError, DeviceTraits};

/// Maximum queries per pass.
pub(super) const QUERIES_MAX: usize = 16;
/// Threads of a block, in warps of 32 that process a group of rows each.
const THREADS: u32 = 256;
const WARPS: usize = 8;
/// Concurrent blocks per multiprocessor (`__launch_bounds__` of the kernels).
const BLOCKS_A_MULTIPROCESSOR: usize = 2;

/// Sampling and collecting kernels by maximum number of queries, for each number format.
const KERNELS: [(usize, [[&str; 2]; 2]); 2] = [
    (8, [["scan_sample_8", "scan_collect_8"], ["scan_sample_f16_8", "scan_collect_f16_8"]]),
    (
        QUERIES_MAX,
        [["scan_sample_16", "scan_collect_16"], ["scan_sample_f16_16", "scan_collect_f16_16"]],
    ),
];

/// Launches a pass.
pub(super) fn launch(
    workspace: &mut Workspace,
    pass: &Pass<'_>,
    output: Output<'_>,
) -> Result<(), DeviceError> {
    let fitting = KERNELS.iter().find(|(queries, _)| pass.queries.count <= *queries);
    let (queries, kernels) = fitting.unwrap_or(&KERNELS[KERNELS.len() - 1]);
    let [sample, collect] = kernels[pass.rows.numbers as usize];
    let mut builder = LaunchBuilder::new(match output {
        Output::Sample { .. } => sample,
        Output::Collect { .. } => collect,
    });
    builder.check(pass.queries.count <= *queries, "at most 16 queries")?;
    let params = pass.parameters(&mut builder, output)?;
    let shared_bytes = queries * params.stride as usize;
    let traits = workspace.device().traits();
    let fits = shared_bytes <= traits.shared_bytes_max as usize;
    builder.check(fits, "queries that fit into shared memory")?;
    let shape = LaunchShape { grid: [blocks(traits, pass), 1], threads: THREADS, shared_bytes };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Returns the number of blocks: as many as run concurrently, or fewer if there are few rows.
fn blocks(traits: &DeviceTraits, pass: &Pass<'_>) -> u32 {
    let wanted = pass.visited().div_ceil(GROUP_ROWS * WARPS);
    wanted.min(traits.multiprocessors as usize * BLOCKS_A_MULTIPROCESSOR).max(1) as u32
}
