//! Requests and results of searches.

use lodestone_storage::filter::RequestFilter;
use lodestone_text::Operator;
use lodestone_types::{Relations, RetrievedChunk, SourceId};

/// Weight of meaning against words in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alpha {
    /// 0 (words only) to 1 (meaning only).
    Fixed(f32),
    /// Decided from the query.
    Auto,
}

/// Effort of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One pass.
    Fast,
    /// Larger pools, a second pass with vector feedback, and a reranker where there is one.
    Accurate,
}

impl Mode {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Accurate => "accurate",
        }
    }
}

/// A hybrid search.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrieveRequest {
    /// The query.
    pub query: String,
    /// Steers the semantic leg and the reranker; its words are not searched for.
    pub extra_context: Option<String>,
    /// Results at most.
    pub max_chunks: usize,
    /// Effort.
    pub mode: Mode,
    /// Weight of meaning.
    pub alpha: Alpha,
    /// Weight of age, 0 to 1.
    pub recency_bias: f32,
    /// Whether the scope's memories steer the ranking.
    pub is_personalised: bool,
    /// Whether entities of the results take part, and relations are wanted.
    pub has_graph_context: bool,
    /// Chunks of one source at most; `None` does not limit.
    pub per_source_max: Option<usize>,
    /// Condition on the sources.
    pub filter: RequestFilter,
}

impl RetrieveRequest {
    /// The query with what steers it, as models read it.
    pub(super) fn steered_query(&self) -> String {
        match &self.extra_context {
            Some(context) => format!("{}\n{context}", self.query),
            None => self.query.clone(),
        }
    }
}

/// A search for whole words.
#[derive(Debug, Clone, PartialEq)]
pub struct FullTextRequest {
    /// The query.
    pub query: String,
    /// Whether one term suffices.
    pub operator: Operator,
    /// Results at most.
    pub max_chunks: usize,
    /// Condition on the sources.
    pub filter: RequestFilter,
}

/// Numbers of candidates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    /// From the semantic leg.
    pub semantic: usize,
    /// From the keyword leg.
    pub keyword: usize,
    /// In the union that was ranked.
    pub fused: usize,
}

/// Milliseconds by stage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// Embedding the query.
    pub embed: f64,
    /// The semantic leg.
    pub semantic: f64,
    /// The keyword leg.
    pub keyword: f64,
    /// True scores for the union, fusion, recency, order.
    pub fuse: f64,
    /// Reranking the first candidates.
    pub rerank: f64,
    /// Entities of the results and their relations.
    pub graph: f64,
    /// From beginning to end.
    pub total: f64,
}

/// The result of a hybrid search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Retrieved {
    /// Chunks, best first.
    pub chunks: Vec<RetrievedChunk>,
    /// Weight of meaning that was used.
    pub alpha: f32,
    /// Reason for the choice of `auto`; `None` where it was given.
    pub alpha_reason: Option<&'static str>,
    /// Name of the reranker that the ranking may rest on; `None` where none was asked for or
    /// installed, and where it failed.
    pub reranker: Option<String>,
    /// Ids of the memories that steered the ranking, nearest first.
    pub memories_used: Vec<SourceId>,
    /// Relations of the results; `None` where they were not asked for.
    pub relations: Option<Relations>,
    /// Candidates by leg.
    pub candidates: CandidateCounts,
    /// Whether a filter was in force.
    pub is_filtered: bool,
    /// Ways in which the segments' vectors were searched, distinct, in order.
    pub paths: Vec<&'static str>,
    /// Milliseconds by stage.
    pub timings: Timings,
    /// Number of damaged segments that the answer lacks.
    pub segments_missing: usize,
    /// Whether only words were searched, because the vectors are of another model.
    pub has_foreign_model: bool,
}
