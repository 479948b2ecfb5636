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

/// Number of candidates from each leg.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CandidateCounts {
    /// Of the vector side.
    pub semantic: usize,
    /// Of the keyword side.
    pub keyword: usize,
    /// Of both together.
    pub fused: usize,
}

/// The graph's part in a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphCounts {
    /// Entries of `entity_paths`.
    pub entity_paths: usize,
    /// Entries of `chunk_triplets`.
    pub chunk_triplets: usize,
    /// Why `auto` used the graph or not; null where the request decided.
    pub reason: Option<String>,
}

/// Milliseconds of each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct StageTimings {
    /// Making the query's vector.
    pub embed: f64,
    /// Chunks from the semantic leg.
    pub semantic: f64,
    /// Chunks from the keyword leg.
    pub keyword: f64,
    /// Joining the two.
    pub fuse: f64,
    /// The reranker.
    pub rerank: f64,
    /// Graph: entities and relations.
    pub graph: f64,
    /// Writing the answer; absent where none is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<f64>,
    /// Everything.
    pub total: f64,
}

/// `metadata` of a search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchMetadata {
    /// Id of the request.
    pub request_id: String,
    /// The query as it was searched, where the conversation before it completed it.
    pub completed_query: Option<String>,
    /// `fast` or `accurate`.
    pub mode: String,
    /// Weight that was used.
    pub alpha: f32,
    /// `fixed`: the given share, or the default; `auto`: decided from the query.
    pub alpha_mode: String,
    /// Reason for the number that `auto` chose; null where it was given.
    pub alpha_reason: Option<String>,
    /// Value of the request.
    pub recency_bias: f32,
    /// Value of the request.
    pub max_chunks: usize,
    /// Chunks returned.
    pub returned: usize,
    /// Candidates of each side.
    pub candidates: CandidateCounts,
    /// Whether a filter applied.
    pub filtered: bool,
    /// Name of the model.
    pub embedding_model: String,
    /// Name of the reranker, where one ran.
    pub reranker: Option<String>,
    /// Whether memories steered the ranking.
    pub personalised: bool,
    /// Ids of those memories.
    pub memories_used: Vec<String>,
    /// Relations returned, and why they were looked for.
    pub graph: GraphCounts,
    /// Milliseconds of each stage.
    pub timings_ms: StageTimings,
    /// Ways in which segments were searched for near vectors: `gather`, `masked_scan`, `scan` and
    /// `one_bit_scan` are exact, `lists` finds the share that `vector_recall` says. Which it is
    /// depends on how many rows pass, and so changes with merging.
    pub vector_paths: Vec<String>,
    /// Share of the near vectors that `lists` is to find; null where every path was exact.
    pub vector_recall: Option<VectorRecall>,
    /// Parts of the answer that were skipped or are missing.
    pub degraded: Vec<String>,
    /// Since when and why the embedding server of the tenant fails, for people: new texts wait for
    /// it meanwhile. Null while it works.
    pub degraded_message: Option<String>,
    /// Parameters that were sent and have no effect.
    pub ignored_parameters: Vec<String>,
    /// Why a filter may have let nothing pass, and ignored names that may be meant to narrow.
    pub warnings: Vec<SearchWarning>,
}

/// Share of the near vectors that a search finds which leaves rows unread.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VectorRecall {
    /// The share: .99, or .97 with `mode: fast`. Each segment was measured for it when it was
    /// written.
    pub target: f64,
    /// Lists of near rows that a search passes in a row without a better row before it ends, the
    /// most of any segment.
    pub patience: usize,
}

/// Answer to `search/retrieve`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrieveResponse {
    /// Best first.
    pub chunks: Vec<Chunk>,
    /// Null unless asked for.
    pub graph_relations: Option<GraphRelations>,
    /// Details of the search and of the generation.
    pub metadata: SearchMetadata,
    /// Always true.
    pub success: bool,
    /// Mirror of `graph_relations.entity_paths`.
    pub extra_graph_context: Option<Vec<EntityPath>>,
}

/// Details of how an answer was generated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GenerationMetadata {
    /// Name of the generator, or of the extractive method.
    pub model: Option<String>,
    /// Whether the answer is extracted because a generator is absent or failed.
    pub fallback: bool,
    /// Tokens given to the generator.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// Why there was a fallback: `not_configured` without a generator; `unreachable`, `timed_out`,
    /// `refused`, `overloaded`, `broken_reply`, `too_long`, `empty_answer`, `question_too_long` or
    /// `busy` where it failed.
    pub fallback_reason: Option<String>,
    /// Reason why the generator stopped: `stop`, or `length` for an answer that is cut.
    pub finish_reason: Option<String>,
    /// Queries that were searched, where the generator completed or split the question: the
    /// question, then its parts.
    pub queries: Vec<String>,
    /// Chunks that were shown to the generator; the least relevant ones may not fit.
    pub chunks_shown: usize,
    /// Citations that their sources do not support, as far as that can be judged.
    pub unsupported: Vec<UnsupportedCitation>,
}

/// A citation that its source does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsupportedCitation {
    /// Number of the citation. It is removed from a whole answer and stays in a streamed one.
    pub number: usize,
    /// First character of the sentence in the answer.
    pub start: usize,
    /// Position after its last character.
    pub end: usize,
}

/// `metadata` of qna.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaMetadata {
    /// As for retrieve.
    #[serde(flatten)]
    pub search: SearchMetadata,
    /// Words of the question that occur nowhere here and were read as others that do; never numbers
    /// or codes. Empty where a generator reads the question.
    pub corrections: Vec<Correction>,
    /// Whether the answer tells what several editions of one document say, as they differ.
    pub conflict: bool,
    /// Language of the passages that an extracted answer quotes, where it is another than the
    /// question's: `en`, `de`, `fr` or `es`; else null.
    pub language: Option<String>,
    /// Details of the generation.
    pub generation: GenerationMetadata,
}

/// A word of a question that was read as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Correction {
    /// As it was written.
    pub from: String,
    /// As it was read.
    pub to: String,
}

/// Answer to `search/qna`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaResponse {
    /// The answer; `[n]` refers to the n-th of `sources`. Empty without generation.
    pub answer: String,
    /// Cited ones first; where a generator is configured, by relevance.
    pub sources: Vec<QnaSource>,
    /// The passages that the answer cites, in its order.
    pub citations: Vec<QnaCitation>,
    /// The retrieved chunks.
    pub chunks: Vec<QnaChunk>,
    /// Always true.
    pub success: bool,
    /// The conversation, or null.
    pub session_id: Option<String>,
    /// Null unless asked for.
    pub graph_relations: Option<GraphRelations>,
    /// Model that wrote the answer.
    pub model_used: Option<String>,
    /// Details of the search and of the generation.
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
    /// The conversation, or null.
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
