//! The query pipeline: from a request to ranked chunks.
//!
//! The input is a request and one snapshot of the collection that the caller's key has opened.
//! Nothing is changed here. Of jobs this module knows only what a listing shows.
//!
//! ```text
//! request -> plan (alpha, pool) -> segments of the scope, their live rows, filter bitmaps
//!         -> candidates: tops of the semantic leg (cosine), of the keyword leg (BM25), and of the
//!            sparse leg, where there is a sparse model
//!         -> features: the true scores for all; verdicts of the reranker; links; recency
//!         -> order -> hydrate
//! ```
//! Invariants:
//! - One snapshot per request: what it returns was visible together.
//! - Filters and scopes apply before ranking, so as many results come back as match, up to the
//!   number asked for.
//! - Scores do not depend on how rows are spread over segments, on dead rows, or on other scopes.
//! - Ties are broken by rule, so that the same data gives the same answer.
//!
//! - `request`: requests and results; `plan`: decisions before the search
//! - `legs`: the segments of a scope and the semantic leg over them; `words`: the keyword leg;
//!   `sparse`: the sparse leg; `side_by_side`: all on several threads;
//!   `condense`: filters that are repeated
//! - `ranking`: candidates, their features, their order
//! - `facets`: counts of metadata values over what matches; `mismatch`: conditions that match
//!   nothing because of the types of their values
//! - `steer`: moving the query vector towards memories and first results
//! - `rerank`: verdicts of the reranker on the first candidates
//! - `graph`: links, paths and statements of the results
//! - `join`: neighbouring chunks as one result
//! - `shares`: large collections, searched by several nodes
//! - `retrieve`, `full_text`, `vectors`: the searches; `around`: chunks beside those found
//! - `passages`: the chunks of one source in reading order
//! - `vocabulary`: the words of a scope, for misspelt questions
//! - `memories`: personal memories, listed, looked up and near a query
//! - `translated`: the search by words of other languages
//! - `timing`: times of the parts
//! - `listing`: sources in every state; `hydrate`: rows to chunks; `texts`: their
//!   texts; `error`: errors of searches

mod around;
mod condense;
mod error;
mod facets;
mod full_text;
mod graph;
mod hydrate;
mod join;
mod legs;
mod listing;
mod memories;
mod mismatch;
mod passages;
mod plan;
mod ranking;
mod request;
mod rerank;
mod retrieve;
pub mod shares;
mod side_by_side;
mod sparse;
mod steer;
mod texts;
mod timing;
mod translated;
mod vectors;
mod vocabulary;
mod words;

use std::sync::Arc;

pub use error::QueryError;
pub use legs::VectorEffort;
pub use listing::SourceView;
pub use lodestone_storage::filter::TypeMismatch;
pub use memories::{FoundMemory, MemoryRequest, NearMemory, memories, memory_count};
pub use passages::{Passage, Passages};
pub use request::{
    Alpha, CandidateCounts, Facet, FoundWords, FullTextRequest, GraphContext, Join, Mode, Recall,
    RetrieveRequest, Retrieved, Timings,
};
pub use vectors::{StoredVector, VectorHit, VectorPage, VectorParts, VectorScroll, VectorSearch};

use lodestone_compute::ComputeBackend;
use lodestone_embed::{Embedder, SparseModel};
use lodestone_rank::Reranker;
use lodestone_storage::collection::{KeptFilters, Snapshot};
use lodestone_types::{Filter, RequestContext, SubTenantId};

use crate::Models;
use shares::ShareNodes;

/// Runs searches with a compute backend, models and perhaps a reranker.
#[derive(Debug, Clone)]
pub struct Query {
    backend: Arc<dyn ComputeBackend>,
    models: Models,
    reranker: Option<Arc<dyn Reranker>>,
    kept_filters: Arc<KeptFilters>,
    sparse: Option<Arc<SparseModel>>,
    nodes: Option<Arc<dyn ShareNodes>>,
}

/// Bytes of kept filters where nothing is said of memory.
const KEPT_FILTERS_BYTES: u64 = 64 << 20;

impl Query {
    /// Searches with a compute backend and models.
    pub fn new(backend: Arc<dyn ComputeBackend>, models: impl Into<Models>) -> Self {
        let kept_filters = KeptFilters::new(KEPT_FILTERS_BYTES);
        let (reranker, sparse, nodes) = Default::default();
        Self { backend, models: models.into(), reranker, sparse, kept_filters, nodes }
    }

    /// The model for the queries of a version of a tenant; the current one where that of its
    /// vectors is not loaded, and they are not searched.
    fn model(&self, snapshot: &Snapshot) -> &dyn Embedder {
        &**self.models.of(&snapshot.manifest, None).unwrap_or(self.models.current())
    }

    /// Sets the bytes of the cache that keeps the passing rows of repeated filters.
    pub fn with_kept_filters(self, bytes_max: u64) -> Self {
        Self { kept_filters: KeptFilters::new(bytes_max), ..self }
    }

    /// The segments with rows of a sub-tenant that pass a filter.
    fn in_scope(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        filter: &Filter,
    ) -> Result<Vec<legs::SegmentScope>, QueryError> {
        let (all, kept) = (snapshot.segments.iter(), Some(&self.kept_filters));
        legs::segments_in_scope(context, all, sub_tenant, filter, kept)
    }

    /// Sets the reranker of `accurate` searches, if there is one.
    pub fn with_reranker(self, reranker: Option<Arc<dyn Reranker>>) -> Self {
        Self { reranker, ..self }
    }
}
