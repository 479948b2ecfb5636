//! Chat completions: a tenant acts as a model that knows its documents and answers as `qna` does.

use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator};

use crate::app::App;
use crate::dto::answers::QnaResponse;
use crate::dto::chunks::QnaCitation;
use crate::dto::search::Qna;
use crate::dto::v1::chat::Chat;
use crate::dto::v1::completion::{
    Annotation, CalledFunction, ChatChoice, ChatChunk, ChatCitation, ChatCompletion, ChatDelta,
    ChatMessage, ChatToolCall, ChatUsage, ChunkChoice, UrlCitation,
};
use crate::dto::v1::model_name;
use crate::error::{ApiError, Condition, Location};
use crate::reply::{Bare, Reply};
use crate::request::Call;
use crate::routes::off_thread;
use crate::routes::qna::{Answered, Voice, answered};
use crate::sse;
use crate::sse::EventStream;
use lodestone_answer::generate::ToolCall;
use lodestone_engine::qna::Conversation;
use lodestone_engine::query::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_types::{Filter, Scope};

/// Number of chunks that an answer is based on, as in `qna`.
const CHUNKS: usize = 10;

pub(super) async fn complete(app: App, call: Call, chat: Chat) -> Result<ChatReply, ApiError> {
    if let Some(tools) = chat.tools.as_ref().filter(|_| app.engine.writer().is_none()) {
        let name = if tools.offered.is_empty() { "messages" } else { "tools" };
        let problem = "need a generator (--llm-base-url), which this server does not have";
        return Err(ApiError::field("unsupported_parameter", Location::Body, name, problem));
    }
    let is_named_by_model = chat.is_named_by_model;
    let voice = ChatVoice::new(&app, &call, &chat);
    let completed = match chat.stream {
        true => answered(app, call, question(chat), Voice::Chat(voice.clone())).await,
        false => answered(app, call, question(chat), Voice::Own).await,
    };
    let absent = [Condition::TenantNotFound, Condition::SubTenantNotFound];
    let completed =
        completed.map_err(|error| match is_named_by_model && absent.contains(&error.condition()) {
            true => ApiError::model_not_found(Location::Body),
            false => error,
        });
    match completed? {
        Answered::Stream(stream) => Ok(ChatReply::Stream(stream)),
        Answered::Whole(response, degraded) => {
            let whole = off_thread(move || Ok(voice.whole(*response))).await?;
            Ok(ChatReply::Whole(Box::new(Bare { degraded, ..Bare::new(whole) })))
        }
    }
}

/// Converts a chat request into a `qna` question.
fn question(chat: Chat) -> Qna {
    let Chat { scope, question, past, instructions, stream, sampling, tools, .. } = chat;
    let request = RetrieveRequest {
        query: question,
        extra_context: None,
        max_chunks: CHUNKS,
        mode: Mode::Fast,
        recall: Recall::Usual,
        alpha: Alpha::Default,
        recency_bias: 0.0,
        is_personalised: false,
        graph_context: GraphContext::Off,
        per_source_max: None,
        join: Join::Never,
        min_confidence: 0.0,
        filter: Filter::All.into(),
    };
    Qna {
        scope,
        conversation: match past.is_empty() {
            true => Conversation::New,
            false => Conversation::Told(past),
        },
        request,
        explain: false,
        ai_generation: true,
        highlight_chunks: false,
        stream,
        user_name: String::new(),
        user_instructions: instructions,
        multi_step_reasoning: true,
        sampling,
        tools,
    }
}

/// A chat completion in one of its two forms.
#[derive(Debug)]
pub enum ChatReply {
    /// A complete response.
    Whole(Box<Bare<ChatCompletion>>),
    /// An event stream.
    Stream(EventStream),
}

impl Reply for ChatReply {
    const MEDIA_TYPES: &'static [&'static str] = &["application/json", sse::MEDIA_TYPE];

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<ChatCompletion>()
    }

    fn into_response(self) -> Result<Response, ApiError> {
        match self {
            Self::Whole(whole) => whole.into_response(),
            Self::Stream(stream) => Ok(stream.into_response()),
        }
    }
}

/// The members shared by all chunks of one completion.
#[derive(Debug, Clone)]
pub struct ChatVoice {
    app: App,
    id: String,
    created: u64,
    scope: Scope,
    include_usage: bool,
    /// The question and the conversation, for the token count.
    asked: String,
}

impl ChatVoice {
    fn new(app: &App, call: &Call, chat: &Chat) -> Self {
        let mut asked = chat.question.clone();
        for text in chat.past.iter().flat_map(|(question, answer)| [question, answer]) {
            asked.push('\n');
            asked.push_str(text);
        }
        Self {
            app: app.clone(),
            id: format!("chatcmpl-{}", call.request_id),
            created: app.engine.clock().now().0 / 1000,
            scope: chat.scope.clone(),
            include_usage: chat.include_usage,
            asked,
        }
    }

    /// Returns the first chunk.
    pub fn begin(&self) -> ChatChunk {
        let role = Some("assistant");
        let content = Some(String::new());
        self.chunk(ChatDelta { role, content, ..ChatDelta::default() }, None)
    }

    /// Returns a chunk with the next piece of text.
    pub fn piece(&self, delta: &str) -> ChatChunk {
        let content = Some(delta.to_owned());
        self.chunk(ChatDelta { content, ..ChatDelta::default() }, None)
    }

    /// Returns the chunks that follow the text.
    pub fn end(&self, response: &QnaResponse) -> Vec<ChatChunk> {
        let calls = tool_calls(response);
        let numbered = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| ChatToolCall { index: Some(at), ..call });
        let delta = ChatDelta {
            tool_calls: Some(numbered.collect()).filter(|calls: &Vec<_>| !calls.is_empty()),
            annotations: Some(self.annotations(response)),
            citations: Some(citations(response)),
            ..ChatDelta::default()
        };
        let mut chunks = vec![self.chunk(delta, Some(finish_reason(response)))];
        if self.include_usage {
            let usage = Some(self.usage(response));
            let last = self.chunk(ChatDelta::default(), None);
            chunks.push(ChatChunk { choices: Vec::new(), usage, ..last });
        }
        chunks
    }

    fn chunk(&self, delta: ChatDelta, finish_reason: Option<String>) -> ChatChunk {
        ChatChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model(),
            choices: vec![ChunkChoice { index: 0, delta, logprobs: None, finish_reason }],
            usage: None,
        }
    }

    fn whole(&self, response: QnaResponse) -> ChatCompletion {
        let tool_calls = tool_calls(&response);
        let is_silent = response.answer.is_empty() && !tool_calls.is_empty();
        let message = ChatMessage {
            role: "assistant",
            annotations: self.annotations(&response),
            citations: citations(&response),
            refusal: None,
            content: Some(response.answer.clone()).filter(|_| !is_silent),
            tool_calls,
        };
        ChatCompletion {
            id: self.id.clone(),
            object: "chat.completion",
            created: self.created,
            model: self.model(),
            choices: vec![ChatChoice {
                index: 0,
                message,
                logprobs: None,
                finish_reason: finish_reason(&response),
            }],
            usage: self.usage(&response),
            model_used: response.model_used,
        }
    }

    fn model(&self) -> String {
        model_name(&self.scope.tenant, &self.scope.sub_tenant)
    }

    fn usage(&self, response: &QnaResponse) -> ChatUsage {
        let generation = &response.metadata.generation;
        let (mut prompt, mut completion) = (generation.input_tokens, generation.output_tokens);
        if prompt == 0 && completion == 0 {
            let count = |text: &str| self.app.engine.embedder().token_offsets(text).len() as u64;
            (prompt, completion) = (count(&self.asked), count(&response.answer));
        }
        ChatUsage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt + completion,
        }
    }

    /// Returns the citation marks of an answer with their sources.
    fn annotations(&self, response: &QnaResponse) -> Vec<Annotation> {
        let mark = |(number, start_index, end_index): (usize, usize, usize)| {
            let source = response.sources.get(number.checked_sub(1)?)?;
            let url = match source.source_url.as_str() {
                "" => self.address(&source.source_id),
                url => url.to_owned(),
            };
            let title = source.source_title.clone();
            let url_citation = UrlCitation { start_index, end_index, title, url };
            Some(Annotation { kind: "url_citation", url_citation })
        };
        marks(&response.answer).into_iter().filter_map(mark).collect()
    }

    /// Returns the URI of a source that has no web address.
    fn address(&self, source: &str) -> String {
        let Scope { tenant, sub_tenant } = &self.scope;
        let parts = [tenant.as_str(), sub_tenant.as_str(), source];
        let parts = parts.map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string());
        format!("lodestone://{}", parts.join("/"))
    }
}

fn citations(response: &QnaResponse) -> Vec<ChatCitation> {
    let told = |passage: &QnaCitation| {
        let source = response.sources.get(passage.n.checked_sub(1)?)?;
        let url = Some(source.source_url.clone()).filter(|url| !url.is_empty());
        Some(ChatCitation { passage: passage.clone(), title: source.source_title.clone(), url })
    };
    response.citations.iter().filter_map(told).collect()
}

fn tool_calls(response: &QnaResponse) -> Vec<ChatToolCall> {
    let told = |call: &ToolCall| ChatToolCall {
        index: None,
        id: call.id.clone(),
        kind: "function",
        function: CalledFunction { name: call.name.clone(), arguments: call.arguments.clone() },
    };
    response.tool_calls.iter().map(told).collect()
}

fn finish_reason(response: &QnaResponse) -> String {
    if !response.tool_calls.is_empty() {
        return "tool_calls".to_owned();
    }
    response.metadata.generation.finish_reason.clone().unwrap_or_else(|| "stop".to_owned())
}

/// Finds the marks `[n]` in a text: number, index of the first character, index after the last.
fn marks(text: &str) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (at, letter) in text.chars().enumerate() {
        open = match (letter, open) {
            ('[', _) => Some((at, 0)),
            (digit, Some((start, number))) if digit.is_ascii_digit() && number < 100_000 => {
                Some((start, 10 * number + digit.to_digit(10).unwrap_or_default() as usize))
            }
            (']', Some((start, number))) => {
                found.push((number, start, at + 1));
                None
            }
            _ => None,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_by_characters() {
        assert_eq!(marks("Größe 7 [1]. [12][3] [x] [4"), [(1, 8, 11), (12, 13, 17), (3, 17, 20)]);
        assert!(marks("none [a1] [] ").iter().all(|(number, ..)| *number == 0));
    }
}
