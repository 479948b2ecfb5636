//! Pure ranking arithmetic: from the true scores of candidates to the order of a response.
//!
//! Nothing here searches, reads a clock or knows what a chunk is: numbers in, numbers out.
//!
//! ```text
//! cosine, keyword score - fuse -> relevance in 0-1 - apply_recency -> final score - sort -> order
//! ```
//!
//! Invariants
//! - Every score is finite and in 0-1, whatever comes in.
//! - Recency and fusion are monotone: more of either leg never ranks a candidate lower.
//! - The order is total (API 5.7): score, then newer source, then chunk id.
//!
//! Children
//! - `fusion`: convex combination of both legs (API 5.7, RETRIEVAL 1.1)
//! - `recency`: how much the age of a source weighs
//! - `order`: scores on a grid above float rounding, and the final order

pub mod fusion;
pub mod order;
pub mod recency;

pub use fusion::{Candidate, Fused, fuse};
pub use order::{RankKey, settle, sort_by_rank};
pub use recency::apply_recency;
