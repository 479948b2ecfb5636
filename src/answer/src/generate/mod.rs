//! Answers that a language model writes from retrieved chunks, checked against their sources.
//!
//! Out of scope: retrieving the chunks (`query`), extractive answers (the modules beside this one),
//! the fallback if the generator fails (`qna`), and sessions (`catalog`).
//!
//! ```text
//! past turns, question --queries--> queries for the search (a short call; the rule without it)
//! chunks, question -> prompt: rules, numbered sources between fences, past turns; fits the window
//!        -> Generator (openai: request -> reply: events -> thinking) -> deltas
//!        -> marks: [n] corrected while it streams -> tell -> support: is it in the source?
//! ```
//!
//! Invariants:
//! - Text of documents reaches the model as data, between lines with a random fence that occurs in
//!   no text of the request. The worst it can do is spoil this one answer: nothing is called,
//!   fetched or rendered, and only chunks within the request's scope are shown. A client that
//!   offers `tools` receives the calls and decides about them.
//! - Every emitted `[n]` names a source that was shown: `sources[n - 1]`. The concatenated deltas
//!   are the answer.
//! - Every call is bounded in time, bytes, attempts and concurrency, and ends when nobody waits for
//!   it any more. Nothing is retried after a delta has been emitted.
//! - The API key only goes into one header of requests to one URL, and never into logs or errors.
//!   Redirects are not followed, and proxies from the environment are not used.
//!
//! - `settings`: the choice of generator; `openai`: the client, with its halves `request` and
//!   `reply`
//! - `events`, `thinking`: parsing of a reply
//! - `prompt`, `tokens`, `plain`: the text shown to the model
//! - `marks`, `support`: citations during and after writing
//! - `tools`: functions of the client
//! - `condense`: sentences worth remembering; `lines`: replies with one item per line
//! - `queries`: search queries for a question; `write`: the steps in order; `error`: errors of
//!   generators

mod condense;
mod error;
mod events;
mod lines;
mod marks;
mod openai;
mod plain;
mod prompt;
mod queries;
mod reply;
mod request;
mod settings;
mod support;
mod thinking;
mod tokens;
mod tools;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

pub use condense::{CONDENSED_MAX, Said};
pub use error::GenerateError;
pub use openai::OpenAiGenerator;
pub use queries::{QUERIES_MAX, Understood};
pub use settings::{CONTEXT_TOKENS_DEFAULT, GeneratorSettings};
pub use tools::{CALLS_MAX, ToolCall, Tools};
pub use write::{Delivery, Question, Unsupported, Writer, Written};

use lodestone_types::CancellationToken;

/// Author of a chat message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The rules.
    System,
    /// The user.
    User,
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Author of the message.
    pub speaker: Speaker,
    /// Text of the message.
    pub text: String,
}

/// A request to a generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The chat so far.
    pub messages: Vec<Message>,
    /// Maximum tokens of the reply.
    pub reply_tokens_max: usize,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// Limits on time and attempts.
    pub effort: Effort,
    /// Functions offered by the client, if any.
    pub tools: Option<Tools>,
}

impl Prompt {
    /// A request for a preparatory step that an answer can do without.
    fn preparing(rules: String, text: String, reply_tokens_max: usize) -> Self {
        let messages = vec![
            Message { speaker: Speaker::System, text: rules },
            Message { speaker: Speaker::User, text },
        ];
        Self { messages, reply_tokens_max, temperature: 0.0, effort: PREPARING, tools: None }
    }
}

/// A client's sampling parameters for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampling {
    /// Maximum tokens of the answer; a value above the server's own limit has no effect.
    pub tokens_max: Option<usize>,
    /// Sampling temperature, 0 to 2; defaults to 0.
    pub temperature: Option<f64>,
}

/// Limits on time and attempts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of requests if the generator is overloaded or unreachable.
    pub attempts_max: u32,
    /// Longest silence, before the first byte and between bytes.
    pub silence_max: Duration,
    /// Maximum total time.
    pub time_max: Duration,
}

/// Limits for an answer that somebody waits for. Small machines need time to read a long prompt.
pub(super) const ANSWERING: Effort = Effort {
    attempts_max: 3,
    silence_max: Duration::from_secs(60),
    time_max: Duration::from_secs(300),
};
/// Limits for a preparatory step that an answer can do without.
pub(super) const PREPARING: Effort = Effort {
    attempts_max: 1,
    silence_max: Duration::from_secs(8),
    time_max: Duration::from_secs(10),
};

/// Tokens used by a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
}

/// The end of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Usage as counted by the generator, if it reports it.
    pub usage: Option<Usage>,
    /// The reported reason for stopping: `stop`, `length`, `tool_calls`.
    pub finish_reason: Option<String>,
    /// The tool calls requested by the model, in order.
    pub tool_calls: Vec<ToolCall>,
}

/// Callback that receives the pieces of a reply as they arrive; breaking ends the reply.
pub type Tell<'a> = &'a mut dyn FnMut(&str) -> ControlFlow<()>;

/// A language model. Calls block, so they must run on a thread that may wait.
pub trait Generator: Send + Sync + fmt::Debug {
    /// Returns the model's name in the protocol.
    fn model(&self) -> &str;

    /// Returns the generator's address, for display.
    fn place(&self) -> &str;

    /// Returns the size of the context window, shared by prompt and reply, in tokens.
    fn context_tokens(&self) -> usize;

    /// Generates a reply and passes its pieces to `tell` in order. Ends soon after `cancel`.
    ///
    /// # Errors
    /// [`GenerateError::Cancelled`] after `cancel` or if `tell` breaks; otherwise any failure, at
    /// any point of the reply.
    fn generate(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError>;

    /// Checks that the generator responds and returns a description for display. Takes at most a
    /// few seconds.
    ///
    /// # Errors
    /// The error that prevents it from responding.
    fn look(&self) -> Result<String, GenerateError>;
}
