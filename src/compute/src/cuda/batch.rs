//! Multiplies rows by many queries, keeping only potential winners (kernels/batch.cu).

use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::numbers::Numbers;
use crate::cuda::pass::{Output, Pass};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Capability, DeviceError, DeviceTraits};

/// Bytes of a row per stage of shared memory.
const CHUNK_BYTES: usize = 64;
/// Bytes per query for its first test.
const TEST_BYTES: usize = 8;
/// Bytes per product that passed and is not written out yet; `HITS_HEAD_BYTES` is for their number.
const HIT_BYTES: usize = 12;
const HITS_HEAD_BYTES: usize = 16;
/// Bytes of a multiprocessor's shared memory that the system reserves for each block.
const SHARED_KEPT: usize = 1024;

/// Dimensions of a kernel.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Queries per block.
    queries: usize,
    /// Rows per tile: half the threads of a block.
    rows: usize,
    /// Stages of rows being copied.
    stages: usize,
    /// Capacity for products that passed and are not written out yet.
    hits: usize,
    /// Blocks for which a multiprocessor has the registers.
    at_once: usize,
    /// Sampling and collecting kernel, for each number format.
    kernels: [[&'static str; 2]; 2],
}

const SHAPES: [Shape; 4] = [
    Shape {
        queries: 256,
        rows: 128,
        stages: 3,
        hits: 512,
        at_once: 1,
        kernels: [
            ["batch_sample_256", "batch_collect_256"],
            ["batch_sample_f16_256", "batch_collect_f16_256"],
        ],
    },
    Shape {
        queries: 128,
        rows: 128,
        stages: 4,
        hits: 192,
        at_once: 1,
        kernels: [
            ["batch_sample_128", "batch_collect_128"],
            ["batch_sample_f16_128", "batch_collect_f16_128"],
        ],
    },
    Shape {
        queries: 64,
        rows: 128,
        stages: 4,
        hits: 192,
        at_once: 2,
        kernels: [
            ["batch_sample_64", "batch_collect_64"],
            ["batch_sample_f16_64", "batch_collect_f16_64"],
        ],
    },
    Shape {
        queries: 32,
        rows: 128,
        stages: 4,
        hits: 192,
        at_once: 2,
        kernels: [
            ["batch_sample_32", "batch_collect_32"],
            ["batch_sample_f16_32", "batch_collect_f16_32"],
        ],
    },
];

/// Shapes for codes on Hopper. They are used only if two blocks fit a multiprocessor.
const WARPGROUP_SHAPES: [Shape; 2] = [
    Shape {
        queries: 256,
        rows: 64,
        stages: 3,
        hits: 192,
        at_once: 2,
        kernels: [["batch_sample_by_warpgroup_256", "batch_collect_by_warpgroup_256"]; 2],
    },
    Shape {
        queries: 128,
        rows: 64,
        stages: 3,
        hits: 192,
        at_once: 2,
        kernels: [["batch_sample_by_warpgroup_128", "batch_collect_by_warpgroup_128"]; 2],
    },
];

/// Whether a card has enough shared memory for rows of `stride` bytes.
pub(super) fn fits(traits: &DeviceTraits, stride: u32) -> bool {
    SHAPES[SHAPES.len() - 1].fits(traits, stride as usize)
}

impl Shape {
    fn shared_bytes(&self, stride: usize) -> usize {
        let hits = HITS_HEAD_BYTES + self.hits * HIT_BYTES;
        self.queries * (stride + TEST_BYTES) + self.stages * self.rows * CHUNK_BYTES + hits
    }

    fn fits(&self, traits: &DeviceTraits, stride: usize) -> bool {
        self.shared_bytes(stride) <= traits.shared_bytes_max as usize
    }

    /// Returns the number of blocks that a multiprocessor runs concurrently.
    fn at_once(&self, traits: &DeviceTraits, stride: usize) -> usize {
        let whole = traits.shared_bytes_max as usize + SHARED_KEPT;
        (whole / (self.shared_bytes(stride) + SHARED_KEPT)).min(self.at_once)
    }

    /// Whether `queries` fill more than half of a block.
    fn is_filled(&self, queries: usize) -> bool {
        self.queries < 2 * queries
    }

    /// Chooses the largest shape that fits.
    fn choose(traits: &DeviceTraits, pass: &Pass<'_>) -> &'static Self {
        let (count, stride) = (pass.queries.count, pass.rows.stride as usize);
        let by_warpgroup = (traits.capability == Capability::HOPPER
            && pass.rows.numbers == Numbers::Codes)
            .then(|| {
                let shapes = WARPGROUP_SHAPES.iter();
                let mut full =
                    shapes.filter(|shape| shape.at_once(traits, stride) == shape.at_once);
                full.find(|shape| shape.is_filled(count))
            })
            .flatten();
        let fitting =
            || SHAPES.iter().find(|shape| shape.is_filled(count) && shape.fits(traits, stride));
        by_warpgroup.or_else(fitting).unwrap_or(&SHAPES[SHAPES.len() - 1])
    }
}

/// Launches a pass.
pub(super) fn launch(
    workspace: &mut Workspace,
    pass: &Pass<'_>,
    output: Output<'_>,
) -> Result<(), DeviceError> {
    let stride = pass.rows.stride as usize;
    let traits = workspace.device().traits().clone();
    let shape = Shape::choose(&traits, pass);
    let [sample, collect] = shape.kernels[pass.rows.numbers as usize];
    let mut builder = LaunchBuilder::new(match output {
        Output::Sample { .. } => sample,
        Output::Collect { .. } => collect,
    });
    builder.check(shape.fits(&traits, stride), "queries that fit into shared memory")?;
    let params = pass.parameters(&mut builder, output)?;
    let across = pass.queries.count.div_ceil(shape.queries);
    let along = blocks(&traits, shape, stride, across, pass.visited());
    let shape = LaunchShape {
        grid: [along, across as u32],
        threads: 2 * shape.rows as u32,
        shared_bytes: shape.shared_bytes(stride),
    };
    builder.launch(&mut *workspace.queue, shape, &params)
}

/// Returns the number of blocks along the rows such that, with all those across, they run at once.
fn blocks(
    traits: &DeviceTraits,
    shape: &Shape,
    stride: usize,
    across: usize,
    visited: usize,
) -> u32 {
    let at_once = shape.at_once(traits, stride).max(1);
    let along = (traits.multiprocessors as usize * at_once / across).max(1);
    along.min(visited.div_ceil(shape.rows)).max(1) as u32
}
