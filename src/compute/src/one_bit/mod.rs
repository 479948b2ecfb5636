//! T0: one bit per component, with factors that yield an estimate and a bound.
//!
//! Let q be the unit query, x a unit row, c a point near x (the centroid of its list, or the mean
//! of the segment), r = x - c, and P the rotation. The code of a row is the signs s of P r. The
//! value o = (s . P r) / (sqrt(D) |r|) measures how well the signs point along r. Then
//!
//! ```text
//! q.x  is approximately  q.c + r.c + a (s . P(q - c))    a = |r| / (sqrt(D) o)
//!                    =   q.c + offset + a (s . P q)      offset = r.c - a (s . P c)
//! ```
//!
//! The estimate is unbiased over rotations, and its error is approximately normal with standard
//! deviation `|q - c| |r| sqrt(1 - o^2) / (o sqrt(D - 1))` (Gao and Long, RaBitQ, SIGMOD 2024,
//! theorem 3.2). The `error` of a row is this deviation divided by |q - c|.
//!
//! ```text
//! block of 64 rows, D = rotated width
//!   D/8 x 64 bytes   byte (p, i): components 8p..8p+4 of row i in the low four bits, 8p+4..8p+8
//!                    in the high four, a set bit for a positive sign
//!   64 x f32         scale (a)         64 x f32  offset         64 x f32  error
//! ```
//! Rows that pad the last block are zeros; their estimate is that of c itself.
//!
//! A scan looks up, for every group of four or six components, one of 16 or 64 precomputed sums of
//! the query's components (Andre, Kermarrec and Le Scouarnec 2015, "fast scan"). The sums for three
//! bytes of a code are added up in 8 bits; the bound includes the rounding loss.

pub mod encode;
pub mod query;
pub mod scan;
mod tables;
pub mod task;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

pub use encode::{ListUnits, OneBitEncoder, OneBitFactors, encode_lists};
pub use query::OneBitQuery;
pub use task::{OneBitRows, Reference};

/// Number of rows in a block.
pub const BLOCK_ROWS: usize = 64;

/// Number of code bytes whose sums are added up in 8 bits.
const TILE: usize = 3;

/// Returns the size in bytes of a block of rows of `width` rotated components.
pub fn block_bytes(width: usize) -> usize {
    width / 8 * BLOCK_ROWS + 3 * BLOCK_ROWS * size_of::<f32>()
}
