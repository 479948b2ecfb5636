//! The query pipeline: from a request to ranked chunks.
//!
//! The input is a request and one snapshot of the collection that the caller's key has opened.
//! Nothing is modified here, and jobs are only known as far as listings show them.
//!
//! ```text
//! request -> plan (alpha, pool) -> segments of the scope, their live rows, filter bitmaps
//!         -> candidates: best rows of the semantic leg (cosine), of the keyword leg (BM25) and,
//!            with a sparse model, of the sparse leg
//!         -> features: true scores by all legs; reranker verdicts; links; recency
//!         -> order -> hydrate
//! ```
//! Invariants:
//! - One snapshot per request: everything in a result was visible at the same time.
//! - Filters and scopes apply before ranking, so as many results come back as match, up to the
//!   requested number.
//! - Scores depend neither on the distribution of rows over segments, nor on dead rows or other
//!   scopes.
//! - Ties are broken by fixed rules, so that equal data yield equal results.
//!
//! - `request`: requests and results; `plan`: decisions made before the search
//! - `legs`: the segments of a scope and the semantic leg; `words`: the keyword leg; `sparse`: the
//!   sparse leg; `side_by_side`: runs them on several threads; `condense`: condenses filters that
//!   are repeated
//! - `ranking`: candidates, their features, their order
//! - `facets`: counts of metadata values over the matches; `mismatch`: conditions that match
//!   nothing because of the types of their values
//! - `steer`: moves the query vector towards memories and first results
//! - `rerank`: reranker verdicts on the first candidates
//! - `graph`: links, paths and statements of the results
//! - `join`: merges neighboring chunks into one result
//! - `shares`: large collections, searched by several nodes
//! - `retrieve`, `full_text`, `vectors`: the searches; `around`: chunks surrounding those found
//! - `passages`: the chunks of one source in reading order
//! - `vocabulary`: the words of a scope, to correct misspelled questions
//! - `memories`: personal memories: listing, search, near a query
//! - `translated`: keyword search in other languages
//! - `timing`: times of the stages
//! - `listing`: sources in any state; `hydrate`: rows to chunks; `texts`: texts of rows; `error`:
//!   errors of searches

mod around;
mod condense;
mod error;
mod facets;
#[cfg(test)]
mod fixture;
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

/// Runs searches with a compute backend, models and optionally a reranker.
#[derive(Debug, Clone)]
pub struct Query {
    backend: Arc<dyn ComputeBackend>,
    models: Models,
    reranker: Option<Arc<dyn Reranker>>,
    kept_filters: Arc<KeptFilters>,
    sparse: Option<Arc<SparseModel>>,
    nodes: Option<Arc<dyn ShareNodes>>,
}

/// Size in bytes of the cache of filter results, unless one is set.
const KEPT_FILTERS_BYTES: u64 = 64 << 20;

impl Query {
    /// Creates a query service with a compute backend and models.
    pub fn new(backend: Arc<dyn ComputeBackend>, models: impl Into<Models>) -> Self {
        let kept_filters = KeptFilters::new(KEPT_FILTERS_BYTES);
        let (reranker, sparse, nodes) = Default::default();
        Self { backend, models: models.into(), reranker, sparse, kept_filters, nodes }
    }

    /// The model for queries on a snapshot: the one that made its vectors. If that is not loaded,
    /// the vectors are not searched, and the current model merely stands in.
    fn model(&self, snapshot: &Snapshot) -> &dyn Embedder {
        &**self.models.of(&snapshot.manifest, None).unwrap_or(self.models.current())
    }

    /// Sets the size in bytes of the cache of rows that pass repeated filters.
    pub fn with_kept_filters(self, bytes_max: u64) -> Self {
        Self { kept_filters: KeptFilters::new(bytes_max), ..self }
    }

    /// The segments with rows of a sub-tenant, and in each the rows that pass a filter.
    fn in_scope(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        filter: &Filter,
    ) -> Result<Vec<legs::SegmentScope>, QueryError> {
        let (all, kept) = (snapshot.segments.iter(), self.kept_for(sub_tenant));
        legs::segments_in_scope(context, all, sub_tenant, filter, kept)
    }

    /// The cache for filters of a sub-tenant; `None` for the scopes of memories, whose filter names
    /// the current time and is thus never repeated.
    fn kept_for(&self, sub_tenant: &SubTenantId) -> Option<&Arc<KeptFilters>> {
        (!sub_tenant.is_of_memories()).then_some(&self.kept_filters)
    }

    /// Sets the reranker of `accurate` searches, if any.
    pub fn with_reranker(self, reranker: Option<Arc<dyn Reranker>>) -> Self {
        Self { reranker, ..self }
    }
}
