//! What a token looks like before the first layer and between them (kernels/embed_norm.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::encoder::{Packed, Token, check_hidden};
use crate::cuda::reach::{Reach, Spread};
use crate::cuda::{Buffer, DeviceError, Queue};

const THREADS: u32 = 256;
/// Rows of a block.
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
    /// f32, one a number of the row.
    pub scale: &'a Buffer,
    /// The same.
    pub shift: &'a Buffer,
    /// Added to the variance.
    pub epsilon: f32,
}

/// What [`gather`] reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct Gather<'a> {
    /// f16 (vocabulary, hidden).
    pub words: &'a Buffer,
    /// f16 (window, hidden).
    pub positions: &'a Buffer,
    /// A copy of [`Packed::tokens`].
    pub tokens: &'a Buffer,
    /// Of the sum.
    pub norm: Norm<'a>,
    /// f16 (tokens, hidden), written.
    pub states: &'a Buffer,
}

/// States of the tokens of `packed` before the first layer.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn gather(
    queue: &mut dyn Queue,
    packed: &Packed,
    hidden: usize,
    parts: Gather<'_>,
) -> Result<(), DeviceError> {
    let mut reach = Reach::new("embed_gather");
    check_hidden(&reach, hidden)?;
    let count = packed.tokens().len();
    let params = EmbedGatherParams {
        words: reach.reads::<u16>(parts.words, packed.vocabulary().saturating_mul(hidden))?,
        positions: reach.reads::<u16>(parts.positions, packed.window().saturating_mul(hidden))?,
        tokens: reach.reads::<Token>(parts.tokens, count)?,
        scale: reach.reads::<f32>(parts.norm.scale, hidden)?,
        shift: reach.reads::<f32>(parts.norm.shift, hidden)?,
        states: reach.writes::<u16>(parts.states, count * hidden)?,
        count: count as u32,
        hidden: hidden as u32,
        epsilon: parts.norm.epsilon,
        unused: 0,
    };
    reach.launch(queue, spread(count), &params)
}

/// What [`normalise`] reads and writes: two buffers, f16 (tokens, hidden).
#[derive(Debug, Clone, Copy)]
pub struct Normalise<'a> {
    /// Read.
    pub rows: &'a Buffer,
    /// Of each row.
    pub norm: Norm<'a>,
    /// Written.
    pub states: &'a Buffer,
}

/// The rows of `packed`'s tokens, normalised.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn normalise(
    queue: &mut dyn Queue,
    packed: &Packed,
    hidden: usize,
    parts: Normalise<'_>,
) -> Result<(), DeviceError> {
    let mut reach = Reach::new("embed_norm");
    check_hidden(&reach, hidden)?;
    reach.check(parts.rows.address() != parts.states.address(), "two buffers")?;
    let count = packed.tokens().len();
    let params = EmbedNormParams {
        rows: reach.reads::<u16>(parts.rows, count * hidden)?,
        scale: reach.reads::<f32>(parts.norm.scale, hidden)?,
        shift: reach.reads::<f32>(parts.norm.shift, hidden)?,
        states: reach.writes::<u16>(parts.states, count * hidden)?,
        count: count as u32,
        hidden: hidden as u32,
        epsilon: parts.norm.epsilon,
        unused: 0,
    };
    reach.launch(queue, spread(count), &params)
}

fn spread(count: usize) -> Spread {
    Spread { grid: [count.div_ceil(ROWS) as u32, 1], threads: THREADS, shared_bytes: 0 }
}
