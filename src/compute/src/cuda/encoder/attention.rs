//! Attention within each passage (kernels/embed_attention.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::encoder::{HEADS, Packed, QueryTile, check_hidden, packed::TILE};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::{Buffer, DeviceError, Queue};

const THREADS: u32 = 128;
/// Rows of a head in shared memory: one tile of queries, two of keys and two of values.
const ROWS: usize = 5 * TILE;

/// `EmbedAttentionParams` of kernels/embed_attention.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EmbedAttentionParams {
    fused: u64,
    tiles: u64,
    context: u64,
    hidden: u32,
    unused: u32,
}

/// Arguments of [`attend`].
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// f16 (tokens, 3, hidden): queries, already scaled, keys and values.
    pub fused: &'a Buffer,
    /// A copy of [`Packed::tiles`].
    pub tiles: &'a Buffer,
    /// f16 (tokens, hidden), written.
    pub context: &'a Buffer,
    /// Number of heads, and components of each; their product is `hidden`.
    pub heads: (usize, usize),
}

/// Computes attention within each passage of `packed`.
pub fn attend(
    queue: &mut dyn Queue,
    packed: &Packed,
    parts: Attention<'_>,
) -> Result<(), DeviceError> {
    let (heads, head) = parts.heads;
    let kernel = if head == HEADS[0] { "embed_attention_32" } else { "embed_attention_64" };
    let mut builder = LaunchBuilder::new(kernel);
    builder.check(HEADS.contains(&head), "a head of 32 or 64 numbers")?;
    let hidden = heads.saturating_mul(head);
    check_hidden(&builder, hidden)?;
    let (tokens, tiles) = (packed.tokens().len(), packed.tiles().len());
    let params = EmbedAttentionParams {
        fused: builder.reads::<u16>(parts.fused, 3 * tokens * hidden)?,
        tiles: builder.reads::<QueryTile>(parts.tiles, tiles)?,
        context: builder.writes::<u16>(parts.context, tokens * hidden)?,
        hidden: hidden as u32,
        unused: 0,
    };
    let grid = [tiles as u32, heads as u32];
    let shared_bytes = ROWS * head * size_of::<u16>();
    builder.launch(queue, LaunchShape { grid, threads: THREADS, shared_bytes }, &params)
}
