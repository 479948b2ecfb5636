//! Responses of `POST /v1/chat/completions`, complete and in chunks.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::chunks::QnaCitation;

/// Citation of a source in the text of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UrlCitation {
    /// Start of the mark `[n]` in the text.
    pub start_index: usize,
    /// End, exclusive.
    pub end_index: usize,
    /// Title of the source.
    pub title: String,
    /// URL of the source, or `lodestone://TENANT/SUB_TENANT/FILE_ID` if it has none.
    pub url: String,
}

/// Annotation of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Annotation {
    /// Always `url_citation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Cited source.
    pub url_citation: UrlCitation,
}

/// Passage that supports an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatCitation {
    /// The passage, as in qna.
    #[serde(flatten)]
    pub passage: QnaCitation,
    /// Title of its source.
    pub title: String,
    /// URL of its source, or null.
    pub url: Option<String>,
}

/// Call of a function offered by the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChatToolCall {
    /// Position among the calls, in a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Call id, to be repeated with the result.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Function to call.
    pub function: CalledFunction,
}

/// Function with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalledFunction {
    /// Name of the function.
    pub name: String,
    /// Arguments as written by the generator, which should be JSON.
    pub arguments: String,
}

/// Message with an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// Answer, in which `[n]` cites the n-th source; null for tool calls without text.
    pub content: Option<String>,
    /// Tool calls requested by the generator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatToolCall>,
    /// Always null.
    pub refusal: Option<String>,
    /// Citation marks in the text, with their sources.
    pub annotations: Vec<Annotation>,
    /// Passages cited by the answer, in the order of their citations.
    pub citations: Vec<ChatCitation>,
}

/// The only choice.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatChoice {
    /// Always 0.
    pub index: usize,
    /// Answer of the assistant.
    pub message: ChatMessage,
    /// Always null.
    pub logprobs: Option<String>,
    /// `stop`, `tool_calls`, or `length` for an answer truncated by the generator.
    pub finish_reason: String,
}

/// Token counts of a request: reported by the generator, else by the tokenizer of the embedding
/// model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChatUsage {
    /// Tokens of the question and the conversation, or of the generator's prompts.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Sum of both.
    pub total_tokens: u64,
}

/// Response of `POST /v1/chat/completions`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatCompletion {
    /// Id of the completion.
    pub id: String,
    /// Always `chat.completion`.
    pub object: &'static str,
    /// Creation time in epoch seconds.
    pub created: u64,
    /// Tenant or sub-tenant that answered.
    pub model: String,
    /// A single answer.
    pub choices: Vec<ChatChoice>,
    /// Token counts.
    pub usage: ChatUsage,
    /// Model that wrote the answer; `extractive` if its sentences come from the documents.
    pub model_used: Option<String>,
}

/// Part of an answer; holds only the members that are new.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChatDelta {
    /// The author, sent with the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The next piece of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Complete tool calls, sent with the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ChatToolCall>>,
    /// Citation marks, sent with the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Vec<Annotation>>,
    /// Citations, sent with the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citations: Option<Vec<ChatCitation>>,
}

/// The only choice of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChunkChoice {
    /// Always 0.
    pub index: usize,
    /// The new part of the answer.
    pub delta: ChatDelta,
    /// Always null.
    pub logprobs: Option<String>,
    /// The reason why the answer ended, sent with the last chunk.
    pub finish_reason: Option<String>,
}

/// The data of one event of a streamed answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatChunk {
    /// Id of the answer, the same in all chunks.
    pub id: String,
    /// Always `chat.completion.chunk`.
    pub object: &'static str,
    /// Creation time in epoch seconds.
    pub created: u64,
    /// Name of the scope that answers.
    pub model: String,
    /// One choice; none in the chunk that carries the usage.
    pub choices: Vec<ChunkChoice>,
    /// Token usage, in the last chunk if it was requested.
    pub usage: Option<ChatUsage>,
}
