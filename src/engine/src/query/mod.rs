//! Corridor 2: from a request to ranked chunks.
//!
//! Routes hand in a request and one snapshot of the collection that the caller's key has opened.
//! This room changes nothing. Of jobs it knows what a listing must show.
//!
//! ```text
//! request -> plan (alpha, pool) -> reach: segments, live rows of the scope, filter bitmaps
//!              { nearest: cosine, by tiers          -> top of the leg
//!                keywords: BM25 over the same rows   -> top of the leg }
//!            -> union, true scores of both legs for all -> fuse -> recency -> order
//!            -> accurate: the first are read by the reranker -> blend -> order
//!            -> hydrate
//! ```
//! Invariants:
//! - One snapshot per request: what it returns was visible together.
//! - Filters and scopes apply before ranking, so as many results come back as match, up to the
//!   number asked for.
//! - Scores do not depend on how rows are spread over segments, on dead rows, or on other scopes.
//! - Ties are broken by rule, so that the same data gives the same answer.
//!
//! - `request`: what goes in and out; `plan`: decisions before the search
//! - `shard`: the legs over the segments here; `ranking`: their candidates to one order
//! - `steer`: the query's vector, moved towards memories and first results
//! - `rerank`: the first candidates, read together with the query
//! - `graph`: what results name and state, and where that leads
//! - `retrieve`, `full_text`, `vectors`: the searches
//! - `memories`: personal memories, listed, looked up and near a query
//! - `listing`: sources in every state; `hydrate`: rows to chunks; `error`: what can go wrong

mod error;
mod full_text;
mod graph;
mod hydrate;
mod listing;
mod memories;
mod plan;
mod ranking;
mod request;
mod rerank;
mod retrieve;
mod shard;
mod steer;
mod vectors;

use std::sync::Arc;

pub use error::QueryError;
pub use listing::{SourceView, list};
pub use memories::{FoundMemory, MemoryRequest, NearMemory, memories, memory_count};
pub use request::{
    Alpha, CandidateCounts, FullTextRequest, Mode, Restriction, RetrieveRequest, Retrieved, Timings,
};
pub use vectors::VectorHit;

use lodestone_compute::ComputeBackend;
use lodestone_embed::Embedder;
use lodestone_rank::Reranker;

/// The corridor.
#[derive(Debug, Clone)]
pub struct Query {
    backend: Arc<dyn ComputeBackend>,
    embedder: Arc<dyn Embedder>,
    reranker: Option<Arc<dyn Reranker>>,
}

impl Query {
    /// A corridor over a compute backend and a model.
    pub fn new(backend: Arc<dyn ComputeBackend>, embedder: Arc<dyn Embedder>) -> Self {
        Self { backend, embedder, reranker: None }
    }

    /// The same with what reads the first candidates of `accurate` searches, if there is one.
    pub fn with_reranker(self, reranker: Option<Arc<dyn Reranker>>) -> Self {
        Self { reranker, ..self }
    }
}
