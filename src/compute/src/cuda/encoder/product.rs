//! A dense layer and the operations that follow it (kernels/embed_product.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::encoder::{TOKENS_MAX, WIDTH_STEP};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::{Buffer, Capability, DeviceError, DeviceTraits, Queue};

/// Maximum width of a layer, above three times any width that a configuration may name.
const WIDTH_MAX: usize = 1 << 18;
/// Bytes of a row per stage of shared memory.
const LINE: usize = 128;

/// `EmbedProductParams` of kernels/embed_product.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EmbedProductParams {
    states: u64,
    weights: u64,
    bias: u64,
    residual: u64,
    output: u64,
    tokens: u32,
    inputs: u32,
    outputs: u32,
    activation: u32,
}

/// The activation function applied to each output after the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Identity.
    None,
    /// GELU, exact form with the error function.
    Gelu,
    /// GELU, tanh approximation.
    GeluTanh,
    /// max(x, 0).
    Relu,
}

/// A kernel, and the tile of the output that each of its blocks computes.
#[derive(Debug, PartialEq, Eq)]
struct Tile {
    kernel: &'static str,
    rows: usize,
    columns: usize,
    stages: usize,
    threads: u32,
    /// Concurrent blocks per multiprocessor.
    resident: usize,
    /// Throughput relative to the largest tile, in percent: smaller tiles read more per product.
    /// Estimated from the bytes read, until measured.
    pace: usize,
}

/// Replaces the largest tile on Hopper; for few tokens the smallest tile reads less.
const BY_WARPGROUPS: Tile = Tile {
    kernel: "embed_product_128x128_by_warpgroups",
    rows: 128,
    columns: 128,
    stages: 3,
    threads: 256,
    resident: 2,
    pace: 170,
};

const TILES: [Tile; 3] = [
    Tile {
        kernel: "embed_product_128x128",
        rows: 128,
        columns: 128,
        stages: 3,
        threads: 128,
        resident: 2,
        pace: 100,
    },
    Tile {
        kernel: "embed_product_128x64",
        rows: 128,
        columns: 64,
        stages: 3,
        threads: 128,
        resident: 3,
        pace: 85,
    },
    Tile {
        kernel: "embed_product_64x64",
        rows: 64,
        columns: 64,
        stages: 4,
        threads: 128,
        resident: 3,
        pace: 65,
    },
];

impl Tile {
    fn blocks(&self, tokens: usize, outputs: usize) -> [usize; 2] {
        [outputs.div_ceil(self.columns), tokens.div_ceil(self.rows)]
    }

    fn shared_bytes(&self) -> usize {
        self.stages * (self.rows + self.columns) * LINE
    }

    /// Returns the relative time of a product. It is proportional to the number of blocks per
    /// multiprocessor, but at least that of as many as run concurrently.
    fn cost(&self, tokens: usize, outputs: usize, multiprocessors: usize) -> usize {
        let [x, y] = self.blocks(tokens, outputs);
        let each = (x * y).div_ceil(multiprocessors);
        // Fewer blocks than fit take as long as those: each waits for its own copies.
        let waits = if each < self.resident { self.resident } else { each };
        waits * self.rows * self.columns * 100 / self.pace
    }
}

/// Returns the fastest tile; of equally fast ones the largest.
fn best_tile(tokens: usize, outputs: usize, traits: &DeviceTraits) -> Option<&'static Tile> {
    let hopper = (traits.capability == Capability::HOPPER).then_some(&BY_WARPGROUPS);
    let all = hopper.into_iter().chain(&TILES);
    let fitting = all.filter(|tile| tile.shared_bytes() <= traits.shared_bytes_max as usize);
    let multiprocessors = traits.multiprocessors.max(1) as usize;
    fitting.min_by_key(|tile| tile.cost(tokens, outputs, multiprocessors))
}

/// Arguments of [`product`].
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    /// f16 (tokens, inputs).
    pub states: &'a Buffer,
    /// f16 (outputs, inputs).
    pub weights: &'a Buffer,
    /// f32, one per output.
    pub bias: &'a Buffer,
    /// f16 (tokens, outputs), added at the end.
    pub residual: Option<&'a Buffer>,
    /// f16 (tokens, outputs), written; must differ from the other buffers.
    pub output: &'a Buffer,
    /// Inputs and outputs of the layer.
    pub widths: (usize, usize),
    /// Applied before the residual is added.
    pub activation: Activation,
}

/// Computes activation(states weights^T + bias) + residual of `tokens` tokens.
pub fn product(
    queue: &mut dyn Queue,
    traits: &DeviceTraits,
    tokens: usize,
    parts: Product<'_>,
) -> Result<(), DeviceError> {
    let (inputs, outputs) = parts.widths;
    let tile = best_tile(tokens, outputs, traits);
    let tile = tile.ok_or_else(|| {
        LaunchBuilder::new("embed_product_64x64").refused("shared memory for the smallest tile")
    })?;
    let mut builder = LaunchBuilder::new(tile.kernel);
    builder.check((1..=TOKENS_MAX).contains(&tokens), "1 to 1048576 tokens")?;
    for width in [inputs, outputs] {
        let is_whole = width > 0 && width.is_multiple_of(WIDTH_STEP) && width <= WIDTH_MAX;
        builder.check(is_whole, "widths in steps of 8")?;
    }
    let read = [Some(parts.states), Some(parts.weights), Some(parts.bias), parts.residual];
    let is_apart =
        read.into_iter().flatten().all(|buffer| buffer.address() != parts.output.address());
    builder.check(is_apart, "an output apart from what is read")?;
    let params = EmbedProductParams {
        states: builder.reads::<u16>(parts.states, tokens * inputs)?,
        weights: builder.reads::<u16>(parts.weights, outputs * inputs)?,
        bias: builder.reads::<f32>(parts.bias, outputs)?,
        residual: match parts.residual {
            Some(residual) => builder.reads::<u16>(residual, tokens * outputs)?,
            None => 0,
        },
        output: builder.writes::<u16>(parts.output, tokens * outputs)?,
        tokens: tokens as u32,
        inputs: inputs as u32,
        outputs: outputs as u32,
        activation: parts.activation as u32,
    };
    let [x, y] = tile.blocks(tokens, outputs);
    let (grid, shared_bytes) = ([x as u32, y as u32], tile.shared_bytes());
    builder.launch(queue, LaunchShape { grid, threads: tile.threads, shared_bytes }, &params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_follow_the_shape_and_the_card() {
        let card = |major, multiprocessors, shared_kib: u32| DeviceTraits {
            ordinal: 0,
            name: String::new(),
            capability: Capability { major, minor: 0 },
            multiprocessors,
            shared_bytes_max: shared_kib << 10,
            driver: String::new(),
        };
        let kernel = |tokens, outputs, traits: &DeviceTraits| {
            best_tile(tokens, outputs, traits).map(|tile| tile.kernel)
        };
        let (ampere, hopper) = (card(8, 108, 163), card(9, 132, 227));
        assert_eq!(kernel(16_384, 1536, &ampere), Some("embed_product_128x128"));
        assert_eq!(kernel(16_384, 1152, &hopper), Some("embed_product_128x128_by_warpgroups"));
        for traits in [&ampere, &hopper] {
            assert_eq!(kernel(1, 8, traits), Some("embed_product_64x64"));
        }
        // A block on a small card has less shared memory.
        assert_eq!(kernel(16_384, 1536, &card(8, 20, 99)), Some("embed_product_128x128"));
        assert_eq!(kernel(16_384, 1536, &card(8, 20, 72)), Some("embed_product_128x64"));
        assert_eq!(kernel(1, 8, &card(8, 20, 48)), None);
    }
}
