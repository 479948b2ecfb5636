//! Runs one batch through the layers on the device.

use crate::config::{Activation, ModelConfig, Pooling};
use crate::device::weights::{DeviceDense, DeviceNorm, DeviceWeights, Layer};
use lodestone_compute::cuda::encoder::{
    self, Attention, Gather, Normalise, Packed, Pool, Product, QueryTile, Token,
};
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_compute::cuda::{Buffer, Device, DeviceError, DeviceTraits, Queue};

/// The smallest size class, in tokens: fits most queries.
const CLASS_TOKENS_MIN: usize = 64;

/// Sizes of a batch, or capacity of the memory for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BatchSize {
    tokens: usize,
    passages: usize,
    tiles: usize,
}

impl BatchSize {
    fn of(packed: &Packed) -> Self {
        let (tokens, passages) = (packed.tokens().len(), packed.passages());
        Self { tokens, passages, tiles: packed.tiles().len() }
    }

    /// Rounds up to powers of two, so that most batches reuse memory.
    fn class(self) -> Self {
        let tokens = self.tokens.next_power_of_two().max(CLASS_TOKENS_MIN);
        let passages = self.passages.next_power_of_two();
        Self { tokens, passages, tiles: self.tiles.next_power_of_two() }
    }

    fn holds(self, other: Self) -> bool {
        let Self { tokens, passages, tiles } = other;
        self.tokens >= tokens && self.passages >= passages && self.tiles >= tiles
    }
}

/// Scratch memory of one batch. `broad` holds queries, keys and values, and later the activations
/// between the two dense layers of a block: sharing saves memory and cache on the device.
#[derive(Debug)]
struct Memory {
    size: BatchSize,
    tokens: Buffer,
    starts: Buffer,
    tiles: Buffer,
    states: Buffer,
    attended: Buffer,
    rows: Buffer,
    context: Buffer,
    broad: Buffer,
    vectors: Buffer,
}

impl Memory {
    fn new(
        device: &dyn Device,
        config: &ModelConfig,
        size: BatchSize,
    ) -> Result<Self, DeviceError> {
        let BatchSize { tokens, passages, tiles } = size;
        let (hidden, broad) = (config.hidden, config.intermediate.max(3 * config.hidden));
        let of = |count: usize, size: usize| device.allocate(count * size);
        Ok(Self {
            size,
            tokens: of(tokens, size_of::<Token>())?,
            starts: of(passages + 1, size_of::<u32>())?,
            tiles: of(tiles, size_of::<QueryTile>())?,
            states: of(tokens * hidden, size_of::<u16>())?,
            attended: of(tokens * hidden, size_of::<u16>())?,
            rows: of(tokens * hidden, size_of::<u16>())?,
            context: of(tokens * hidden, size_of::<u16>())?,
            broad: of(tokens * broad, size_of::<u16>())?,
            vectors: of(passages * hidden, size_of::<f32>())?,
        })
    }
}

/// A queue of work with its scratch memory, for one batch at a time.
#[derive(Debug)]
pub(super) struct EncoderStream {
    queue: Box<dyn Queue>,
    memory: Option<Memory>,
    scratch: Scratch,
}

impl EncoderStream {
    /// Creates a stream that has no memory yet.
    ///
    /// # Errors
    /// As [`Device::queue`].
    pub fn new(device: &dyn Device, scratch: Scratch) -> Result<Self, DeviceError> {
        Ok(Self { queue: device.queue()?, memory: None, scratch })
    }

    /// Returns the number of tokens that its memory can hold.
    pub fn tokens(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.size.tokens)
    }

    /// Whether a batch can use the present memory.
    pub fn fits(&self, packed: &Packed) -> bool {
        let asked = BatchSize::of(packed);
        self.memory.as_ref().is_some_and(|memory| match self.scratch {
            Scratch::Kept => memory.size.holds(asked),
            Scratch::Exact => memory.size == asked,
        })
    }

    /// Returns the vectors of a batch, concatenated. Calls `pause` once all work is enqueued.
    ///
    /// # Errors
    /// Errors of the device. Work may still be in progress then, and the stream must not be used
    /// again.
    pub fn run(
        &mut self,
        device: &dyn Device,
        config: &ModelConfig,
        weights: &DeviceWeights,
        packed: &Packed,
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<f32>, DeviceError> {
        if !self.fits(packed) {
            // Free the old memory first, since both may not fit.
            self.memory = None;
            let asked = BatchSize::of(packed);
            let size = match self.scratch {
                Scratch::Kept => asked.class(),
                Scratch::Exact => asked,
            };
            self.memory = Some(Memory::new(device, config, size)?);
        }
        let memory = self.memory.as_ref().expect("allocated just now");
        let traits = device.traits();
        let mut pass = Pass { queue: &mut *self.queue, traits, config, memory, packed };
        pass.begin(weights)?;
        for layer in &weights.layers {
            pass.layer(layer)?;
        }
        pass.pool()?;
        pause();
        let mut vectors = vec![0.0_f32; packed.passages() * config.hidden];
        self.queue.download(&memory.vectors, 0, bytemuck::cast_slice_mut(&mut vectors))?;
        Ok(vectors)
    }
}

impl Drop for EncoderStream {
    /// Waits for work in progress, so that its memory can be freed.
    fn drop(&mut self) {
        // Work is in progress only after an error or a panic, which is already being reported.
        let _ = self.queue.synchronise();
    }
}

/// The kernel launches of one batch.
struct Pass<'a> {
    queue: &'a mut dyn Queue,
    traits: &'a DeviceTraits,
    config: &'a ModelConfig,
    memory: &'a Memory,
    packed: &'a Packed,
}

impl Pass<'_> {
    fn begin(&mut self, weights: &DeviceWeights) -> Result<(), DeviceError> {
        let (memory, packed) = (self.memory, self.packed);
        self.queue.upload(&memory.tokens, 0, bytemuck::cast_slice(packed.tokens()))?;
        self.queue.upload(&memory.starts, 0, bytemuck::cast_slice(packed.starts()))?;
        self.queue.upload(&memory.tiles, 0, bytemuck::cast_slice(packed.tiles()))?;
        let parts = Gather {
            words: &weights.words,
            positions: &weights.positions,
            tokens: &memory.tokens,
            norm: weights.norm.view(),
            states: &memory.states,
        };
        encoder::gather(self.queue, packed, self.config.hidden, parts)
    }

    fn layer(&mut self, layer: &Layer<DeviceDense, DeviceNorm>) -> Result<(), DeviceError> {
        let (memory, config) = (self.memory, self.config);
        let (hidden, wide) = (config.hidden, config.intermediate);
        let Memory { states, attended, rows, context, broad, .. } = memory;
        self.dense(&layer.query_key_value, states, broad, (hidden, 3 * hidden))?;
        let heads = (config.heads, config.head());
        let parts = Attention { fused: broad, tiles: &memory.tiles, context, heads };
        encoder::attend(self.queue, self.packed, parts)?;
        self.dense_onto(&layer.attended, context, states, (hidden, hidden))?;
        self.norm(rows, &layer.attended_norm, attended)?;
        let activation = match config.activation {
            Activation::Gelu => encoder::Activation::Gelu,
            Activation::GeluTanh => encoder::Activation::GeluTanh,
            Activation::Relu => encoder::Activation::Relu,
            Activation::Silu => {
                let reason = "silu has no kernel".to_owned();
                return Err(DeviceError::Refused { action: "embed", reason });
            }
        };
        let widen = self.product(&layer.widen, attended, broad, (hidden, wide));
        self.send(Product { activation, ..widen })?;
        self.dense_onto(&layer.narrow, broad, attended, (wide, hidden))?;
        self.norm(rows, &layer.output_norm, states)
    }

    fn pool(&mut self) -> Result<(), DeviceError> {
        let Memory { states, starts, vectors, .. } = self.memory;
        let only_first = match self.config.pooling {
            Pooling::First => true,
            Pooling::Mean => false,
        };
        let parts = Pool { states, starts, vectors, only_first };
        encoder::pool(self.queue, self.packed, self.config.hidden, parts)
    }

    fn product<'b>(
        &self,
        dense: &'b DeviceDense,
        states: &'b Buffer,
        output: &'b Buffer,
        widths: (usize, usize),
    ) -> Product<'b> {
        let (weights, bias) = (&dense.weight, &dense.bias);
        let activation = encoder::Activation::None;
        Product { states, weights, bias, residual: None, output, widths, activation }
    }

    fn send(&mut self, product: Product<'_>) -> Result<(), DeviceError> {
        encoder::product(self.queue, self.traits, self.packed.tokens().len(), product)
    }

    fn dense(
        &mut self,
        dense: &DeviceDense,
        states: &Buffer,
        output: &Buffer,
        widths: (usize, usize),
    ) -> Result<(), DeviceError> {
        self.send(self.product(dense, states, output, widths))
    }

    /// Applies a dense layer and adds the block's input `residual`; the result is in `rows`.
    fn dense_onto(
        &mut self,
        dense: &DeviceDense,
        states: &Buffer,
        residual: &Buffer,
        widths: (usize, usize),
    ) -> Result<(), DeviceError> {
        let product = self.product(dense, states, &self.memory.rows, widths);
        self.send(Product { residual: Some(residual), ..product })
    }

    fn norm(
        &mut self,
        rows: &Buffer,
        norm: &DeviceNorm,
        states: &Buffer,
    ) -> Result<(), DeviceError> {
        let parts = Normalise { rows, norm: norm.view(), states };
        encoder::normalise(self.queue, self.packed, self.config.hidden, parts)
    }
}
