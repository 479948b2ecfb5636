//! Distance kernels over the vector tiers of one segment: scans, exact scores, selection.
//!
//! This crate is pure computation on slices. It owns no files and sets no policy: filters, the
//! choice of a search path and merges of segments belong to higher layers.
//!
//! ```text
//! vector - OneBitEncoder -> T0  one bit per component, 3 factors (scans read all of it)
//!        + encode_row --> T1  i8 codes, scale, residual          (read for rows that T0 keeps)
//!        + encode_f16 --> T2  f16, or the client's f32 unchanged (read for potential winners)
//!
//! query - OneBitQuery   -> OneBitRows::scan (T0) -> upper bounds
//!       + PreparedQuery -> backend.scan (T1) -> estimate +- ErrorBound -> candidates
//!                          backend.exact (T2) -> cosine in [-1, 1]     -> TopK
//! many queries           -> backend.candidates: one pass over T1 for all of them
//! ```
//!
//! The GPU backend (`cuda`) implements the same trait, with a CPU fallback.
//!
//! Invariants
//! - An estimate differs from the exact score by at most [`ErrorBound::of`]. The bound is derived
//!   in `bound`, and makes a scan over T1 lossless.
//! - A score is a function of query and row alone, never of other rows in the same call.
//! - All backends give bit-identical estimates, and exact scores within [`ErrorBound::rounding`].
//! - Queries whose scores are not cosines go to [`SimdBackend`] only.
//! - Scores are never NaN and never minus zero; a zero query or a zero row scores 0.
//!
//! Children
//! - `rows`: borrowed views of the tiers, whose shapes are checked once
//! - `quantize`: encodes a vector as i8 codes (T1) or as f16 (T2)
//! - `columns`: the tiers of a segment that is being written
//! - `prepared`: a query, normalised and quantised once for all segments
//! - `scoring`: scores by dot product and by distance, from the same tiers
//! - `bound`: the maximum difference between an estimate and the exact score
//! - `candidates`: rows that may be among the best k by T1, for one query or many at once
//! - `rotation`, `one_bit`: T0: the rotation that equalises components, the codes, and their scan
//! - `tiles`: products of many rows with many vectors; `kmeans`: centroids for lists of rows
//! - `prefetch`: prefetches memory before it is needed
//! - `mask`: passing rows as dense words, and the three ways to select rows; `serialised`: parses
//!   the serialised roaring bitmaps from which masks are made
//! - `backend`: the trait that CPU and GPU implementations share; `backend_steps`: their common
//!   steps
//! - `scalar`: the oracle for tests, slow and simple in f64; `simd`: the CPU backend, on simsimd
//! - `cuda`: the GPU backend, whose kernels are in `kernels/`
//! - `select`: the best k, ties to the lower row, NaN below every number
//! - `error`: errors for invalid vectors, columns and rows

pub mod backend;
mod backend_steps;
pub mod bound;
pub mod candidates;
pub mod columns;
pub mod cuda;
pub mod error;
pub mod kmeans;
pub mod mask;
pub mod one_bit;
pub mod prefetch;
pub mod prepared;
pub mod quantize;
pub mod rotation;
pub mod rows;
#[cfg(feature = "testing")]
pub mod scalar;
pub mod scoring;
pub mod select;
mod serialised;
pub mod simd;
pub mod tiles;

pub use backend::ComputeBackend;
pub use bound::ErrorBound;
pub use candidates::BoundedQuery;
pub use columns::{FullColumns, FullKind, VectorColumns};
pub use error::ComputeError;
pub use mask::{RowMask, Selection};
pub use prefetch::{Prefetcher, prefetch};
pub use prepared::PreparedQuery;
pub use quantize::{RowFactors, encode_f16, encode_row};
pub use rows::{FullRows, RowsOwner, VectorRows, code_stride};
#[cfg(feature = "testing")]
pub use scalar::ScalarBackend;
pub use scoring::Scoring;
pub use select::{RankKey, TopK, select_k};
pub use simd::{SimdBackend, dot_codes};

#[cfg(test)]
mod tests;
