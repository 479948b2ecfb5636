//! States before the first layer, and layer norms (kernels/embed_norm.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::encoder::{Packed, Token, check_hidden};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::{Buffer, DeviceError, Queue};

const THREADS: u32 = 256;
/// Rows per block.
const ROWS: usize = 8;

/// `EmbedGatherParams` of kernels/embed_norm.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EmbedGatherParams {
    words: u64,
    positions: u64,
    tokens: u64,
    scale: u64,
    shift: u64,
    states: u64,
    count: u32,
    hidden: u32,
    epsilon: f32,
    unused: u32,
}

/// `EmbedNormParams` of kernels/embed_norm.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EmbedNormParams {
    rows: u64,
    scale: u64,
    shift: u64,
    states: u64,
    count: u32,
    hidden: u32,
    epsilon: f32,
    unused: u32,
}

/// Weights of a layer norm.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// f32, one per component of a row.
    pub scale: &'a Buffer,
    /// f32, one per component of a row; added after scaling.
    pub shift: &'a Buffer,
    /// Added to the variance.
    pub epsilon: f32,
}

/// Arguments of [`gather`].
#[derive(Debug, Clone, Copy)]
pub struct Gather<'a> {
    /// f16 (vocabulary, hidden).
    pub words: &'a Buffer,
    /// f16 (window, hidden).
    pub positions: &'a Buffer,
    /// A copy of [`Packed::tokens`].
    pub tokens: &'a Buffer,
    /// Norm applied to the sum.
    pub norm: Norm<'a>,
    /// f16 (tokens, hidden), written.
    pub states: &'a Buffer,
}

/// Computes the states of the tokens of `packed` before the first layer.
pub fn gather(
    queue: &mut dyn Queue,
    packed: &Packed,
    hidden: usize,
    parts: Gather<'_>,
) -> Result<(), DeviceError> {
    let mut builder = LaunchBuilder::new("embed_gather");
    check_hidden(&builder, hidden)?;
    let count = packed.tokens().len();
    let params = EmbedGatherParams {
        words: builder.reads::<u16>(parts.words, packed.vocabulary().saturating_mul(hidden))?,
        positions: builder.reads::<u16>(parts.positions, packed.window().saturating_mul(hidden))?,
        tokens: builder.reads::<Token>(parts.tokens, count)?,
        scale: builder.reads::<f32>(parts.norm.scale, hidden)?,
        shift: builder.reads::<f32>(parts.norm.shift, hidden)?,
        states: builder.writes::<u16>(parts.states, count * hidden)?,
        count: count as u32,
        hidden: hidden as u32,
        epsilon: parts.norm.epsilon,
        unused: 0,
    };
    builder.launch(queue, shape(count), &params)
}

/// Arguments of [`normalise`]: two distinct buffers, f16 (tokens, hidden).
#[derive(Debug, Clone, Copy)]
pub struct Normalise<'a> {
    /// Input.
    pub rows: &'a Buffer,
    /// Norm applied to each row.
    pub norm: Norm<'a>,
    /// Output.
    pub states: &'a Buffer,
}

/// Normalises the rows of the tokens of `packed`.
pub fn normalise(
    queue: &mut dyn Queue,
    packed: &Packed,
    hidden: usize,
    parts: Normalise<'_>,
) -> Result<(), DeviceError> {
    let mut builder = LaunchBuilder::new("embed_norm");
    check_hidden(&builder, hidden)?;
    builder.check(parts.rows.address() != parts.states.address(), "two buffers")?;
    let count = packed.tokens().len();
    let params = EmbedNormParams {
        rows: builder.reads::<u16>(parts.rows, count * hidden)?,
        scale: builder.reads::<f32>(parts.norm.scale, hidden)?,
        shift: builder.reads::<f32>(parts.norm.shift, hidden)?,
        states: builder.writes::<u16>(parts.states, count * hidden)?,
        count: count as u32,
        hidden: hidden as u32,
        epsilon: parts.norm.epsilon,
        unused: 0,
    };
    builder.launch(queue, shape(count), &params)
}

fn shape(count: usize) -> LaunchShape {
    LaunchShape { grid: [count.div_ceil(ROWS) as u32, 1], threads: THREADS, shared_bytes: 0 }
}
