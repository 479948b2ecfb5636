//! Launchers of a BERT encoder's kernels (kernels/embed_*.cu), over packed passages.
//!
//! Out of scope: the model, its weights and the order of its layers, which are in `embed`. The
//! states of all tokens of a batch are stored back to back, without padding.
//!
//! ```text
//! Packed    validated token ids of a batch         -> tables for the device
//! gather    words + positions, normalised          -> states  (tokens, hidden)
//! product   queries, keys, values                  -> fused   (tokens, 3, hidden)
//! attend    within each passage                    -> context (tokens, hidden)
//! product   + residual -> rows; normalise          -> states
//! product   activation -> wide; product + residual -> rows; normalise -> states
//! pool      one unit vector per passage            -> vectors (passages, hidden), f32
//! ```
//!
//! Invariants
//! - Matrices are f16 in row-major order, weights (outputs, inputs); bias, scale and shift are f32.
//! - Every launch is checked against the sizes of its buffers and the limits of its kernel. The
//!   tables of a batch are validated when they are created; the caller copies them unmodified.
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

/// Maximum components of a token's state, which a warp holds in registers.
pub const HIDDEN_MAX: usize = 1024;
/// Components of attention heads that have a kernel.
pub const HEADS: [usize; 2] = [32, 64];
/// Widths are multiples of this: 16 bytes of f16.
pub const WIDTH_STEP: usize = 8;
/// Maximum tokens of a batch: indices into the widest product still fit 32 bits with room to spare.
pub const TOKENS_MAX: usize = 1 << 20;

/// Checks the width of states.
fn check_hidden(builder: &LaunchBuilder, hidden: usize) -> Result<(), DeviceError> {
    let is_whole = hidden > 0 && hidden.is_multiple_of(WIDTH_STEP);
    builder.check(is_whole && hidden <= HIDDEN_MAX, "a state of 8, 16 ... 1024 numbers")
}
