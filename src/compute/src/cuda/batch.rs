//! G2: a product of rows and many queries that keeps only what may win (kernels/batch.cu).

use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::pass::{Output, Pass};
use crate::cuda::workspace::Workspace;
use crate::cuda::{DeviceError, DeviceTraits};

const THREADS: u32 = 256;
/// Rows of a tile, and bytes of one stage of one.
const TILE_ROWS: usize = 128;
const STAGE_BYTES: usize = 8192;
/// Bytes of a query's first test.
const TEST_BYTES: usize = 16;
/// Shared memory of a multiprocessor beyond what one block can have: what the system keeps.
const SHARED_KEPT: usize = 1024;

/// Queries of a block, and stages of rows on their way.
const SHAPES: [(usize, usize); 4] = [(256, 3), (128, 4), (64, 4), (32, 4)];
/// Sampling and collecting kernel of each shape, for each kind of numbers.
const KERNELS: [[[&str; 2]; 4]; 2] = [
    [
        ["batch_sample_256", "batch_collect_256"],
        ["batch_sample_128", "batch_collect_128"],
        ["batch_sample_64", "batch_collect_64"],
        ["batch_sample_32", "batch_collect_32"],
    ],
    [
        ["batch_sample_f16_256", "batch_collect_f16_256"],
        ["batch_sample_f16_128", "batch_collect_f16_128"],
        ["batch_sample_f16_64", "batch_collect_f16_64"],
        ["batch_sample_f16_32", "batch_collect_f16_32"],
    ],
];

/// Whether a card has the shared memory for rows of `stride` bytes.
pub(super) fn fits(traits: &DeviceTraits, stride: u32) -> bool {
    let (queries, stages) = SHAPES[SHAPES.len() - 1];
    shared_bytes(stride as usize, queries, stages) <= traits.shared_bytes_max as usize
}

fn shared_bytes(stride: usize, queries: usize, stages: usize) -> usize {
    queries * (stride + TEST_BYTES) + stages * STAGE_BYTES
}

/// Sends a pass.
pub(super) fn launch(
    workspace: &mut Workspace,
    pass: &Pass<'_>,
    output: Output<'_>,
) -> Result<(), DeviceError> {
    let stride = pass.rows.stride as usize;
    let traits = workspace.device().traits().clone();
    let fits =
        |queries, stages| shared_bytes(stride, queries, stages) <= traits.shared_bytes_max as usize;
    // The largest that fits, but none that is more than half empty.
    let chosen = SHAPES.iter().position(|(queries, stages)| {
        let is_needed = *queries < 2 * pass.queries.count || *queries == 32;
        is_needed && fits(*queries, *stages)
    });
    let chosen = chosen.unwrap_or(SHAPES.len() - 1);
    let (queries, stages) = SHAPES[chosen];
    let [sample, collect] = KERNELS[pass.rows.numbers as usize][chosen];
    let mut builder = LaunchBuilder::new(match output {
        Output::Sample { .. } => sample,
        Output::Collect { .. } => collect,
    });
    builder.check(fits(queries, stages), "queries that fit into shared memory")?;
    let params = pass.parameters(&mut builder, output)?;
    let shared_bytes = shared_bytes(stride, queries, stages);
    let across = pass.queries.count.div_ceil(queries);
    let along = blocks(&traits, shared_bytes, across, pass.visited());
    let shape = LaunchShape { grid: [along, across as u32], threads: THREADS, shared_bytes };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Blocks along the rows: with all those across, as many as run at once.
fn blocks(traits: &DeviceTraits, shared_bytes: usize, across: usize, visited: usize) -> u32 {
    let whole = traits.shared_bytes_max as usize + SHARED_KEPT;
    // Registers let no more than two run on a multiprocessor.
    let at_once = (whole / (shared_bytes + SHARED_KEPT)).clamp(1, 2);
    let along = (traits.multiprocessors as usize * at_once / across).max(1);
    along.min(visited.div_ceil(TILE_ROWS)).max(1) as u32
}
