//! Launchers of a BERT encoder's kernels (kernels/embed_*.cu), over packed passages.
//!
//! Not here: the model, its weights and the order of its layers, which are in `embed`. The states
//! of all tokens of a batch lie one behind the other, without padding.
//!
//! ```text
//! Packed    token ids of a batch, checked -> tables for the device
//! gather    words + positions, normalised          -> states  (tokens, hidden)
//! product   queries, keys, values                  -> fused   (tokens, 3, hidden)
//! attend    within each passage                    -> context (tokens, hidden)
//! product   + residual -> rows; normalise          -> states
//! product   activation -> wide; product + residual -> rows; normalise -> states
//! pool      one vector of length 1 a passage       -> vectors (passages, hidden), f32
//! ```
//!
//! Invariants
//! - Matrices are f16 row by row, weights (outputs, inputs); bias, scale and shift are f32.
//! - Every launch is checked against the sizes of its buffers and the limits of its kernel. The
//!   tables of a batch are checked where they are made; the caller copies them as they are.
//!
//! Children: `packed`: batches; `rows`: gather and norm; `product`; `attention`; `pool`

mod attention;
mod packed;
mod pool;
mod product;
mod rows;

pub use attention::{Attention, attend};
pub use packed::{Packed, QueryTile, Token};
pub use pool::{Pool, pool};
pub use product::{Activation, Product, product};
pub use rows::{Gather, Norm, Normalise, gather, normalise};

use crate::cuda::DeviceError;
use crate::cuda::launch::LaunchBuilder;

/// Numbers of a token's state at most: what a warp holds in registers.
pub const HIDDEN_MAX: usize = 1024;
/// Numbers of an attention head that there is a kernel for.
pub const HEADS: [usize; 2] = [32, 64];
/// Widths are multiples of this: 16 bytes of f16.
pub const WIDTH_STEP: usize = 8;
/// Tokens of one batch at most: the widest product of them still has indices of 32 bits to spare.
pub const TOKENS_MAX: usize = 1 << 20;

/// Insists on a width that rows of states may have.
fn check_hidden(builder: &LaunchBuilder, hidden: usize) -> Result<(), DeviceError> {
    let is_whole = hidden > 0 && hidden.is_multiple_of(WIDTH_STEP);
    builder.check(is_whole && hidden <= HIDDEN_MAX, "a state of 8, 16 ... 1024 numbers")
}
