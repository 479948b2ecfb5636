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
const TEST_BYTES: usize = 8;
/// Bytes of a product that passed and is not written out yet, and of their number.
const HIT_BYTES: usize = 12;
const HITS_HEAD_BYTES: usize = 16;
/// Shared memory of a multiprocessor beyond what one block can have: what the system keeps.
const SHARED_KEPT: usize = 1024;

/// Shape of a kernel.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Queries of a block.
    queries: usize,
    /// Stages of rows on their way.
    stages: usize,
    /// Products that passed and are not written out yet.
    hits: usize,
    /// Blocks that a multiprocessor has the registers for.
    at_once: usize,
}

const SHAPES: [Shape; 4] = [
    Shape { queries: 256, stages: 3, hits: 512, at_once: 1 },
    Shape { queries: 128, stages: 4, hits: 192, at_once: 1 },
    Shape { queries: 64, stages: 4, hits: 192, at_once: 2 },
    Shape { queries: 32, stages: 4, hits: 192, at_once: 2 },
];
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
    SHAPES[SHAPES.len() - 1].fits(traits, stride as usize)
}

impl Shape {
    fn shared_bytes(self, stride: usize) -> usize {
        let hits = HITS_HEAD_BYTES + self.hits * HIT_BYTES;
        self.queries * (stride + TEST_BYTES) + self.stages * STAGE_BYTES + hits
    }

    fn fits(self, traits: &DeviceTraits, stride: usize) -> bool {
        self.shared_bytes(stride) <= traits.shared_bytes_max as usize
    }
}

/// Sends a pass.
pub(super) fn launch(
    workspace: &mut Workspace,
    pass: &Pass<'_>,
    output: Output<'_>,
) -> Result<(), DeviceError> {
    let stride = pass.rows.stride as usize;
    let traits = workspace.device().traits().clone();
    // The largest that fits, but none that is more than half empty.
    let chosen = SHAPES.iter().position(|shape| {
        let is_needed = shape.queries < 2 * pass.queries.count || shape.queries == 32;
        is_needed && shape.fits(&traits, stride)
    });
    let chosen = chosen.unwrap_or(SHAPES.len() - 1);
    let shape = SHAPES[chosen];
    let [sample, collect] = KERNELS[pass.rows.numbers as usize][chosen];
    let mut builder = LaunchBuilder::new(match output {
        Output::Sample { .. } => sample,
        Output::Collect { .. } => collect,
    });
    builder.check(shape.fits(&traits, stride), "queries that fit into shared memory")?;
    let params = pass.parameters(&mut builder, output)?;
    let shared_bytes = shape.shared_bytes(stride);
    let across = pass.queries.count.div_ceil(shape.queries);
    let along = blocks(&traits, shape, stride, across, pass.visited());
    let shape = LaunchShape { grid: [along, across as u32], threads: THREADS, shared_bytes };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Blocks along the rows: with all those across, as many as run at once.
fn blocks(
    traits: &DeviceTraits,
    shape: Shape,
    stride: usize,
    across: usize,
    visited: usize,
) -> u32 {
    let whole = traits.shared_bytes_max as usize + SHARED_KEPT;
    let at_once = whole / (shape.shared_bytes(stride) + SHARED_KEPT);
    let at_once = at_once.clamp(1, shape.at_once);
    let along = (traits.multiprocessors as usize * at_once / across).max(1);
    along.min(visited.div_ceil(TILE_ROWS)).max(1) as u32
}
