//! Requests and results of searches.

use crate::query::legs::VectorEffort;
use lodestone_storage::filter::RequestFilter;
pub use lodestone_storage::segment::lists::Recall;
use lodestone_text::{Fuzzy, Operator, WordQuery};
use lodestone_types::{Filter, Relations, RetrievedChunk, SourceId};

/// Weight of meaning against words in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alpha {
    /// The default weight, for every query whose script the model reads.
    Default,
    /// 0 (words only) to 1 (meaning only).
    Fixed(f32),
    /// Decided from the query.
    Auto,
}

/// Whether a search uses the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphContext {
    /// No.
    Off,
    /// Yes.
    On,
    /// Decided from the query and its first results.
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

/// When neighbouring chunks of one source become one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Each chunk is a result.
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
    /// Results at most.
    pub max_chunks: usize,
    /// Effort.
    pub mode: Mode,
    /// Share of the nearest vectors that `fast` is to find where it does not read all.
    pub recall: Recall,
    /// Weight of meaning.
    pub alpha: Alpha,
    /// Weight of age, 0 to 1.
    pub recency_bias: f32,
    /// Whether the scope's memories steer the ranking.
    pub is_personalised: bool,
    /// Whether entities of the results take part, and relations are wanted.
    pub graph_context: GraphContext,
    /// Chunks of one source at most; `None` does not limit.
    pub per_source_max: Option<usize>,
    /// When neighbouring chunks become one result.
    pub join: Join,
    /// Confidence below which results are left out.
    pub min_confidence: f32,
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
    /// Misspellings that are forgiven.
    pub fuzzy: Fuzzy,
    /// Whether the last word is the beginning of one.
    pub is_prefix: bool,
    /// Results passed over, best first.
    pub offset: usize,
    /// Results at most.
    pub max_chunks: usize,
    /// Confidence below which results are left out.
    pub min_confidence: f32,
    /// Metadata keys whose values are counted over all matching chunks.
    pub facets: Vec<String>,
    /// Whether all matching chunks are counted. Without that, and without facets and a least
    /// confidence, most of them are not looked at.
    pub is_counted: bool,
    /// Condition on the sources.
    pub filter: RequestFilter,
}

impl FullTextRequest {
    /// Any of the words of a query, in any source.
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

    /// Whether every matching chunk is looked at.
    pub(super) fn needs_all(&self) -> bool {
        self.is_counted || !self.facets.is_empty() || self.min_confidence > 0.0
    }
}

/// The result of a search for whole words.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundWords {
    /// Chunks, best first.
    pub chunks: Vec<RetrievedChunk>,
    /// Matching chunks in all, where all are looked at.
    pub total: Option<u64>,
    /// Counts of the keys that were asked for, in their order.
    pub facets: Vec<Facet>,
    /// The query with all forms of its words, to mark them in the chunks.
    pub query: WordQuery,
}

/// Matching chunks by the value of a metadata key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    /// The key.
    pub key: String,
    /// The most frequent values, most frequent first, each with its number of chunks.
    pub values: Vec<(String, u64)>,
    /// Further values, at most.
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
    /// Reason for the choice where it was made from the query.
    pub alpha_reason: Option<&'static str>,
    /// Name of the model that reads the query: that of the vectors, or, where it is not loaded,
    /// that of new tenants.
    pub embedding_model: String,
    /// Name of the reranker that the ranking may rest on; `None` where none was asked for or
    /// installed, and where it failed.
    pub reranker: Option<String>,
    /// Whether it had no time for all that it would have read.
    pub is_reranked_in_part: bool,
    /// Ids of the memories that steered the ranking, nearest first.
    pub memories_used: Vec<SourceId>,
    /// Relations of the results; `None` where the graph was not used.
    pub relations: Option<Relations>,
    /// Reason for the choice of [`GraphContext::Auto`]; `None` where it was given.
    pub graph_reason: Option<&'static str>,
    /// Candidates by leg.
    pub candidates: CandidateCounts,
    /// Whether a filter was in force.
    pub is_filtered: bool,
    /// The ways in which the segments' vectors were searched.
    pub effort: VectorEffort,
    /// Milliseconds by stage.
    pub timings: Timings,
    /// Number of damaged segments that the answer lacks.
    pub segments_missing: usize,
    /// Whether only words were searched, because the vectors are of another model.
    pub has_foreign_model: bool,
    /// Whether only words were searched, because the embedding server fails.
    pub embedder_fails: bool,
    /// Whether the sparse leg was left out, because rows have no vectors of the sparse model.
    pub lacks_sparse: bool,
}
