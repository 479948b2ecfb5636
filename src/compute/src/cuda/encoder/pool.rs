//! Pools states into vectors (kernels/embed_pool.cu).

use bytemuck::{Pod, Zeroable};

use crate::cuda::encoder::{Packed, check_hidden};
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::{Buffer, DeviceError, Queue};

const THREADS: u32 = 256;
/// Bytes of shared memory per component of a state, and in addition to that.
const SHARED_BYTES: (usize, usize) = (32, 32);

/// `EmbedPoolParams` of kernels/embed_pool.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct EmbedPoolParams {
    states: u64,
    starts: u64,
    vectors: u64,
    hidden: u32,
    only_first: u32,
}

/// Arguments of [`pool`].
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    /// f16 (tokens, hidden).
    pub states: &'a Buffer,
    /// A copy of [`Packed::starts`].
    pub starts: &'a Buffer,
    /// f32 (passages, hidden), written.
    pub vectors: &'a Buffer,
    /// Whether a passage's vector is the state of its first token; otherwise it is the mean of all.
    pub only_first: bool,
}

/// Computes one unit vector per passage of `packed`.
pub fn pool(
    queue: &mut dyn Queue,
    packed: &Packed,
    hidden: usize,
    parts: Pool<'_>,
) -> Result<(), DeviceError> {
    let mut builder = LaunchBuilder::new("embed_pool");
    check_hidden(&builder, hidden)?;
    let (tokens, passages) = (packed.tokens().len(), packed.passages());
    let params = EmbedPoolParams {
        states: builder.reads::<u16>(parts.states, tokens * hidden)?,
        starts: builder.reads::<u32>(parts.starts, passages + 1)?,
        vectors: builder.writes::<f32>(parts.vectors, passages * hidden)?,
        hidden: hidden as u32,
        only_first: u32::from(parts.only_first),
    };
    let shared_bytes = SHARED_BYTES.0 * hidden + SHARED_BYTES.1;
    let shape = LaunchShape { grid: [passages as u32, 1], threads: THREADS, shared_bytes };
    builder.launch(queue, shape, &params)
}
