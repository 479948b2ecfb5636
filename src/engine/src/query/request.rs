//! What a search asks for, and what it gives back.

use serde_json::Value;

use crate::query::QueryError;
use lodestone_storage::filter;
use lodestone_text::Operator;
use lodestone_types::{Filter, Relations, RetrievedChunk, SourceId, TenantSchema};

/// The share of meaning in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alpha {
    /// 0 (words only) to 1 (meaning only).
    Fixed(f32),
    /// Decided from the query.
    Auto,
}

/// How much effort a search makes.
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

/// Restrictions, as the request carries them. Absent and empty maps restrict nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restriction {
    /// On the tenant's map.
    pub tenant_metadata: Option<Value>,
    /// On the document's map.
    pub document_metadata: Option<Value>,
    /// On system keys, and either map.
    pub metadata: Option<Value>,
    /// `context_list`: only these sources. `None` and empty restrict nothing; unknown ids match
    /// nothing.
    pub sources: Option<Vec<SourceId>>,
}

impl Restriction {
    /// Parses the maps.
    ///
    /// # Errors
    /// [`QueryError::Filter`] names the key and the rule of API 5.3 that is broken.
    pub fn parse(&self, schema: Option<&TenantSchema>) -> Result<Filter, QueryError> {
        let parsed = filter::parse(
            self.tenant_metadata.as_ref(),
            self.document_metadata.as_ref(),
            self.metadata.as_ref(),
            schema,
        )
        .map_err(QueryError::Filter)?;
        match &self.sources {
            Some(sources) if !sources.is_empty() => {
                Ok(Filter::And(vec![filter::sources(sources), parsed]))
            }
            _ => Ok(parsed),
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
    /// Share of meaning.
    pub alpha: Alpha,
    /// Weight of age, 0 to 1.
    pub recency_bias: f32,
    /// Whether the scope's memories steer the ranking.
    pub is_personalised: bool,
    /// Whether what the results name takes part, and relations are wanted.
    pub has_graph_context: bool,
    /// Chunks of one source at most; `None` does not limit.
    pub per_source_max: Option<usize>,
    /// Restrictions.
    pub restriction: Restriction,
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
    /// Restrictions.
    pub restriction: Restriction,
}

/// How many chunks took part.
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
    /// Having the first candidates read by the reranker.
    pub rerank: f64,
    /// What the results name, and where that leads.
    pub graph: f64,
    /// From beginning to end.
    pub total: f64,
}

/// The result of a hybrid search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Retrieved {
    /// Chunks, best first.
    pub chunks: Vec<RetrievedChunk>,
    /// The share of meaning that was used.
    pub alpha: f32,
    /// Why `auto` chose it; `None` where it was given.
    pub alpha_reason: Option<&'static str>,
    /// Name of the reranker that the ranking may rest on; `None` where none was asked for or
    /// installed, and where it failed.
    pub reranker: Option<String>,
    /// Ids of the memories that steered the ranking, nearest first.
    pub memories_used: Vec<SourceId>,
    /// What the graph adds; `None` where it was not asked for.
    pub relations: Option<Relations>,
    /// Candidates by leg.
    pub candidates: CandidateCounts,
    /// Whether a filter was in force.
    pub is_filtered: bool,
    /// How each segment's vectors were searched, distinct, in order.
    pub paths: Vec<&'static str>,
    /// Milliseconds by stage.
    pub timings: Timings,
    /// Damaged segments that the answer had to do without.
    pub segments_missing: usize,
}
