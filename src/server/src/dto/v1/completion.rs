//! Responses of `POST /v1/chat/completions`, complete and in chunks.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::chunks::QnaCitation;

/// A cited place in the text of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UrlCitation {
    /// First character of the mark `[n]` in the text.
    pub start_index: usize,
    /// Position after its last character.
    pub end_index: usize,
    /// Title of the source.
    pub title: String,
    /// Address of the source; where it has none, `lodestone://TENANT/SUB_TENANT/FILE_ID`.
    pub url: String,
}

/// An annotation of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Annotation {
    /// Always `url_citation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The cited place.
    pub url_citation: UrlCitation,
}

/// A passage behind an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatCitation {
    /// The passage, as in qna.
    #[serde(flatten)]
    pub passage: QnaCitation,
    /// Title of its source.
    pub title: String,
    /// Address of its source, or null.
    pub url: Option<String>,
}

/// A call of a function that the client has offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChatToolCall {
    /// Its place among the calls, in a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Its id, which the result repeats.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The function.
    pub function: CalledFunction,
}

/// A function with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalledFunction {
    /// Its name.
    pub name: String,
    /// The arguments as the generator wrote them, JSON if it did well.
    pub arguments: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// The answer; `[n]` marks what rests on the n-th source. Null beside calls without a text.
    pub content: Option<String>,
    /// Calls that the generator wants made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatToolCall>,
    /// Always null.
    pub refusal: Option<String>,
    /// The marks of the text with their sources.
    pub annotations: Vec<Annotation>,
    /// The passages that the answer cites, in its order.
    pub citations: Vec<ChatCitation>,
}

/// The one choice.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatChoice {
    /// Always 0.
    pub index: usize,
    /// The answer.
    pub message: ChatMessage,
    /// Always null.
    pub logprobs: Option<String>,
    /// `stop`, `tool_calls`, or `length` for an answer that a generator has cut.
    pub finish_reason: String,
}

/// Tokens of a request: the generator's count, else by the embedding model's tokenizer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChatUsage {
    /// Of the question and the conversation, or of the generator's prompts.
    pub prompt_tokens: u64,
    /// Of the answer.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
}

/// Answer to `POST /v1/chat/completions`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChatCompletion {
    /// Its id.
    pub id: String,
    /// Always `chat.completion`.
    pub object: &'static str,
    /// Epoch seconds.
    pub created: u64,
    /// The scope that has answered.
    pub model: String,
    /// One answer.
    pub choices: Vec<ChatChoice>,
    /// Tokens.
    pub usage: ChatUsage,
    /// Model that wrote the answer; `extractive` where its sentences are those of the documents.
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
