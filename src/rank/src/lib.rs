//! Pure ranking arithmetic: from the true scores of candidates to the order of a response.
//!
//! Nothing here searches, reads a clock or knows about chunks: numbers in, numbers out.
//!
//! ```text
//! cosine, keyword score - fuse -> relevance in 0-1 - blend - lifted - apply_recency -> final score
//!                                                             - sort -> cap_per_source -> order
//! ```
//!
//! Invariants
//! - Every score is finite and in 0-1, whatever the input.
//! - Recency and fusion are monotone: raising the score of either leg never lowers a candidate's
//!   rank.
//! - The order is total: by score, then newer source, then chunk id.
//!
//! Children
//! - `confidence`: the probability that a result is about the subject of the query
//! - `diversity`: limits the number of chunks of one source in a result
//! - `fusion`: convex combination of both legs
//! - `links`: the boost for being named by a good result
//! - `recency`: weighting by the age of the source
//! - `reranker`: the trait of models that read query and passage together, and the weight of their
//!   scores
//! - `order`: rounding of scores to a grid above float noise, and the final order

#![forbid(unsafe_code)]

pub mod confidence;
pub mod diversity;
pub mod fusion;
pub mod links;
pub mod order;
pub mod recency;
pub mod reranker;

pub use confidence::confidence;
pub use diversity::cap_per_source;
pub use fusion::{Candidate, Fused, fuse};
pub use links::{lifted, link_weight};
pub use order::{RankKey, settle, sort_by_rank};
pub use recency::apply_recency;
pub use reranker::{RerankError, Reranker, Verdicts, blend};
