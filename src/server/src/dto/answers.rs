//! Responses of searches, and the events of a streamed answer (docs/api.md, "Retrieve", "Questions"
//! and "Streaming").

use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::dto::chunks::{Chunk, QnaChunk, QnaCitation, QnaSource};
use crate::dto::graph::{EntityPath, GraphRelations};
use crate::dto::search_warning::SearchWarning;
use crate::error::ApiError;
use crate::reply::{Json, Reply};
use crate::sse;
use crate::sse::EventStream;
use lodestone_answer::generate::ToolCall;

/// Number of candidates by search method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CandidateCounts {
    /// Candidates of semantic search.
    pub semantic: usize,
    /// Candidates of keyword search.
    pub keyword: usize,
    /// Candidates of both combined.
    pub fused: usize,
}

/// Use of the knowledge graph in a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphCounts {
    /// Number of entries in `entity_paths`.
    pub entity_paths: usize,
    /// Number of entries in `chunk_triplets`.
    pub chunk_triplets: usize,
    /// Reason why `auto` used the graph or not; null if the request decided.
    pub reason: Option<String>,
}

/// Duration of each stage in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct StageTimings {
    /// Embedding the query.
    pub embed: f64,
    /// Semantic search.
    pub semantic: f64,
    /// Keyword search.
    pub keyword: f64,
    /// Combining both.
    pub fuse: f64,
    /// Reranking.
    pub rerank: f64,
    /// Graph lookup: entities and relations.
    pub graph: f64,
    /// Writing the answer; absent if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<f64>,
    /// Total.
    pub total: f64,
}

/// `metadata` of a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchMetadata {
    /// Id of the request.
    pub request_id: String,
    /// Query as searched, if it was completed from the conversation.
    pub completed_query: Option<String>,
    /// `fast` or `accurate`.
    pub mode: String,
    /// Weight used, 0 to 1.
    pub alpha: f32,
    /// `fixed`: the given weight or the default; `auto`: chosen from the query.
    pub alpha_mode: String,
    /// Reason for the weight chosen by `auto`; null if it was given.
    pub alpha_reason: Option<String>,
    /// Value from the request.
    pub recency_bias: f32,
    /// Value from the request.
    pub max_chunks: usize,
    /// Number of chunks returned.
    pub returned: usize,
    /// Numbers of candidates.
    pub candidates: CandidateCounts,
    /// Whether a filter was applied.
    pub filtered: bool,
    /// Name of the model.
    pub embedding_model: String,
    /// Name of the reranker, if one ran.
    pub reranker: Option<String>,
    /// Whether memories influenced the ranking.
    pub personalised: bool,
    /// Ids of these memories.
    pub memories_used: Vec<String>,
    /// Relations returned, and why they were looked up.
    pub graph: GraphCounts,
    /// Duration of each stage in milliseconds.
    pub timings_ms: StageTimings,
    /// Methods by which segments were searched for nearest vectors: `gather`, `masked_scan`, `scan`
    /// and `one_bit_scan` are exact; `lists` finds the share given by `vector_recall`. The choice
    /// depends on the number of rows that pass the filter, so it may change when segments are
    /// merged.
    pub vector_paths: Vec<String>,
    /// Share of the nearest vectors that `lists` aims to find; null if all methods were exact.
    pub vector_recall: Option<VectorRecall>,
    /// Parts of the response that were skipped or are missing.
    pub degraded: Vec<String>,
    /// Human-readable explanation since when and why the tenant's embedding server is failing; new
    /// texts wait meanwhile. Null while it works.
    pub degraded_message: Option<String>,
    /// Parameters in the request that have no effect.
    pub ignored_parameters: Vec<String>,
    /// Possible reasons why a filter matched nothing, and ignored names that may have been meant as
    /// filters.
    pub warnings: Vec<SearchWarning>,
}

/// Share of the nearest vectors found by a search that does not compare all rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VectorRecall {
    /// Target share: .99, or .97 with `mode: fast`. Each segment was measured for it when written.
    pub target: f64,
    /// Number of consecutive lists without a better row after which a search ends, the largest of
    /// any segment.
    pub patience: usize,
}

/// Response of `search/retrieve`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrieveResponse {
    /// Chunks, best first.
    pub chunks: Vec<Chunk>,
    /// Relations of the graph; null unless requested.
    pub graph_relations: Option<GraphRelations>,
    /// Details of the search and the generation.
    pub metadata: SearchMetadata,
    /// Always `true`.
    pub success: bool,
    /// Copy of `graph_relations.entity_paths`.
    pub extra_graph_context: Option<Vec<EntityPath>>,
}

/// Details of the generation of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GenerationMetadata {
    /// Name of the generator, or of the extractive method.
    pub model: Option<String>,
    /// Whether the answer was extracted because there is no generator or it failed.
    pub fallback: bool,
    /// Number of tokens sent to the generator.
    pub input_tokens: u64,
    /// Number of tokens written by the generator.
    pub output_tokens: u64,
    /// Reason for the fallback: `not_configured` without a generator; `unreachable`, `timed_out`,
    /// `refused`, `overloaded`, `broken_reply`, `too_long`, `empty_answer` or `question_too_long`
    /// if it failed.
    pub fallback_reason: Option<String>,
    /// Reason why the generator stopped: `stop`, or `length` for a truncated answer.
    pub finish_reason: Option<String>,
    /// Queries that were searched if the generator completed or split the question: the question,
    /// then its parts.
    pub queries: Vec<String>,
    /// Number of chunks shown to the generator; the least relevant ones may not fit.
    pub chunks_shown: usize,
    /// Citations not supported by their sources, as far as that can be determined.
    pub unsupported: Vec<UnsupportedCitation>,
}

/// Citation that is not supported by its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsupportedCitation {
    /// Number of the citation. It is removed from a complete answer, but remains in a streamed one.
    pub number: usize,
    /// Start of the sentence in the answer.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
}

/// `metadata` of qna.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaMetadata {
    /// As for retrieve.
    #[serde(flatten)]
    pub search: SearchMetadata,
    /// Words of the question that occur nowhere in the data and were read as others that do, but
    /// never numbers or codes. Empty if a generator reads the question.
    pub corrections: Vec<Correction>,
    /// Whether the answer reports what several editions of a document say because they differ.
    pub conflict: bool,
    /// Language of the passages quoted by an extracted answer if it differs from that of the
    /// question: `en`, `de`, `fr` or `es`; otherwise null.
    pub language: Option<String>,
    /// Details of the generation.
    pub generation: GenerationMetadata,
}

/// Word of a question that was read as another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Correction {
    /// Word as written.
    pub from: String,
    /// Word as read.
    pub to: String,
}

/// Response of `search/qna`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaResponse {
    /// Answer, in which `[n]` refers to the n-th entry of `sources`; empty without generation.
    pub answer: String,
    /// Sources, cited ones first; by relevance if a generator is configured.
    pub sources: Vec<QnaSource>,
    /// Passages cited by the answer, in the order of their citations.
    pub citations: Vec<QnaCitation>,
    /// Retrieved chunks.
    pub chunks: Vec<QnaChunk>,
    /// Always `true`.
    pub success: bool,
    /// Id of the conversation, or null.
    pub session_id: Option<String>,
    /// Relations of the graph; null unless requested.
    pub graph_relations: Option<GraphRelations>,
    /// Name of the model that wrote the answer.
    pub model_used: Option<String>,
    /// Details of the search and the generation.
    pub metadata: QnaMetadata,
    /// Calls of a client's functions, which chat completions alone can tell.
    #[serde(skip)]
    pub tool_calls: Vec<ToolCall>,
}

/// Data of the first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StartEvent {
    /// Id of the request.
    pub request_id: String,
    /// Id of the conversation, or null.
    pub session_id: Option<String>,
    /// Model that will write the answer.
    pub model: Option<String>,
}

/// Data of the second event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourcesEvent {
    /// As in the response.
    pub sources: Vec<QnaSource>,
    /// As in the response.
    pub chunks: Vec<QnaChunk>,
    /// As in the response.
    pub graph_relations: Option<GraphRelations>,
}

/// An answer in one of its two forms.
#[derive(Debug)]
pub enum QnaReply {
    /// A complete response.
    Whole(Box<Json<QnaResponse>>),
    /// An event stream.
    Stream(EventStream),
}

impl Reply for QnaReply {
    const MEDIA_TYPES: &'static [&'static str] = &["application/json", sse::MEDIA_TYPE];

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<QnaResponse>()
    }

    fn into_response(self) -> Result<Response, ApiError> {
        match self {
            Self::Whole(json) => json.into_response(),
            Self::Stream(stream) => Ok(stream.into_response()),
        }
    }
}
