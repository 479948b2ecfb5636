//! Pure ranking arithmetic: from the true scores of candidates to the order of a response.
//!
//! Nothing here searches, reads a clock or knows what a chunk is: numbers in, numbers out.
//!
//! ```text
//! cosine, keyword score - fuse -> relevance in 0-1 - blend - lifted - apply_recency -> final score
//!                                                             - sort -> cap_per_source -> order
//! ```
//!
//! Invariants
//! - Every score is finite and in 0-1, whatever comes in.
//! - Recency and fusion are monotone: more of either leg never ranks a candidate lower.
//! - The order is total (API 5.7): score, then newer source, then chunk id.
//!
//! Children
//! - `diversity`: how many chunks of one source may come first
//! - `fusion`: convex combination of both legs (API 5.7, RETRIEVAL 1.1)
//! - `links`: how much it weighs to be named by a good result
//! - `recency`: how much the age of a source weighs
//! - `reranker`: who reads query and passage together, and how much that weighs
//! - `order`: scores on a grid above float rounding, and the final order

pub mod diversity;
pub mod fusion;
pub mod links;
pub mod order;
pub mod recency;
pub mod reranker;

pub use diversity::cap_per_source;
pub use fusion::{Candidate, Fused, fuse};
pub use links::{lifted, link_weight};
pub use order::{RankKey, settle, sort_by_rank};
pub use recency::apply_recency;
pub use reranker::{RerankError, Reranker, blend};
