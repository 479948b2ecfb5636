//! Requests and results of searches.

use crate::query::legs::VectorEffort;
use lodestone_storage::filter::RequestFilter;
pub use lodestone_storage::segment::lists::Recall;
use lodestone_text::{Fuzzy, Operator, WordQuery};
use lodestone_types::{Filter, Relations, RetrievedChunk, SourceId};

/// Weight of meaning against words in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alpha {
    /// The default weight, unless the model cannot read the query's script.
    Default,
    /// From 0 (words only) to 1 (meaning only).
    Fixed(f32),
    /// Chosen by the form of the query.
    Auto,
}

/// Whether a search uses the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphContext {
    /// Never.
    Off,
    /// Always.
    On,
    /// Decided from the query and its first results.
    Auto,
}

/// Effort of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One pass.
    Fast,
    /// Larger pools, a second pass with vector feedback, and the reranker if there is one.
    Accurate,
}

impl Mode {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Accurate => "accurate",
        }
    }
}

/// When neighboring chunks of one source become one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Never: each chunk is a result.
    Never,
    /// In every source.
    Always,
    /// In short sources.
    #[default]
    Auto,
}

/// A hybrid search.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrieveRequest {
    /// The query.
    pub query: String,
    /// Steers the semantic leg and the reranker; its words are not searched for.
    pub extra_context: Option<String>,
    /// Maximum number of results.
    pub max_chunks: usize,
    /// Effort.
    pub mode: Mode,
    /// Share of the nearest vectors that a `fast` search should find when it does not scan all.
    pub recall: Recall,
    /// Weight of meaning.
    pub alpha: Alpha,
    /// Weight of recency, 0 to 1.
    pub recency_bias: f32,
    /// Whether the scope's memories steer the ranking.
    pub is_personalised: bool,
    /// Whether the graph contributes to the ranking, and relations are returned.
    pub graph_context: GraphContext,
    /// Maximum number of chunks per source; `None` for no limit.
    pub per_source_max: Option<usize>,
    /// When neighboring chunks become one result.
    pub join: Join,
    /// Minimum confidence of results.
    pub min_confidence: f32,
    /// Filter on the sources.
    pub filter: RequestFilter,
}

impl RetrieveRequest {
    /// The query and its extra context, as models read it.
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
    /// Whether one term suffices or all are required.
    pub operator: Operator,
    /// Tolerance of misspellings.
    pub fuzzy: Fuzzy,
    /// Whether the last word may be the beginning of a longer one.
    pub is_prefix: bool,
    /// Number of best results to skip.
    pub offset: usize,
    /// Maximum number of results.
    pub max_chunks: usize,
    /// Minimum confidence of results.
    pub min_confidence: f32,
    /// Metadata keys whose values are counted over all matching chunks.
    pub facets: Vec<String>,
    /// Whether all matching chunks are counted. Without this, facets or a minimum confidence, most
    /// matching chunks are never examined.
    pub is_counted: bool,
    /// Filter on the sources.
    pub filter: RequestFilter,
}

impl FullTextRequest {
    /// A search for any of the words of a query, in all sources.
    pub fn new(query: impl Into<String>, max_chunks: usize) -> Self {
        Self {
            query: query.into(),
            operator: Operator::Or,
            fuzzy: Fuzzy::Off,
            is_prefix: false,
            offset: 0,
            max_chunks,
            min_confidence: 0.0,
            facets: Vec::new(),
            is_counted: false,
            filter: Filter::All.into(),
        }
    }

    /// Whether every matching chunk has to be examined.
    pub(super) fn needs_all(&self) -> bool {
        self.is_counted || !self.facets.is_empty() || self.min_confidence > 0.0
    }
}

/// The result of a search for whole words.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundWords {
    /// Chunks, best first.
    pub chunks: Vec<RetrievedChunk>,
    /// Number of all matching chunks, if they were counted.
    pub total: Option<u64>,
    /// Counts for the requested keys, in their order.
    pub facets: Vec<Facet>,
    /// The query with all forms of its words, for highlighting them in the chunks.
    pub query: WordQuery,
}

/// Counts of matching chunks by the values of a metadata key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    /// The key.
    pub key: String,
    /// The most frequent values with their numbers of chunks, most frequent first.
    pub values: Vec<(String, u64)>,
    /// Upper bound of the number of further values.
    pub left_out: u64,
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
    /// True scores for the union, fusion, recency, ordering.
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
    /// The weight of meaning that was used.
    pub alpha: f32,
    /// The reason for that weight, if it was chosen from the query.
    pub alpha_reason: Option<&'static str>,
    /// Name of the model that reads the query: the one that made the vectors or, if it is not
    /// loaded, the model of new tenants.
    pub embedding_model: String,
    /// Name of the reranker that scored the ranking; `None` if none was requested or installed, or
    /// if it failed.
    pub reranker: Option<String>,
    /// Whether the reranker ran out of time before it had read all of its candidates.
    pub is_reranked_in_part: bool,
    /// Ids of the memories that steered the ranking, nearest first.
    pub memories_used: Vec<SourceId>,
    /// Relations of the results; `None` if the graph was not used.
    pub relations: Option<Relations>,
    /// Reason for the decision under [`GraphContext::Auto`]; `None` for the other settings.
    pub graph_reason: Option<&'static str>,
    /// Numbers of candidates by leg.
    pub candidates: CandidateCounts,
    /// Whether a filter was in force.
    pub is_filtered: bool,
    /// Effort and paths of the vector search.
    pub effort: VectorEffort,
    /// Milliseconds by stage.
    pub timings: Timings,
    /// Number of damaged segments missing from the result.
    pub segments_missing: usize,
    /// Whether only words were searched because the vectors are of another model.
    pub has_foreign_model: bool,
    /// Whether only words were searched because the embedding server is failing.
    pub embedder_fails: bool,
    /// Whether the sparse leg was skipped because rows lack vectors of the sparse model.
    pub lacks_sparse: bool,
}
