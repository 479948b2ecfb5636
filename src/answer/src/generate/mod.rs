//! Answers that a language model writes over chunks that were found, held to their sources.
//!
//! Not here: finding the chunks (`query`), extractive answers (the module above), the fallback when
//! the generator fails (`qna`), sessions (`catalog`).
//!
//! ```text
//! past turns, question --queries--> queries for the search (a short call; the rule without it)
//! chunks, question -> prompt: rules, numbered sources between fences, past turns; fits the window
//!        -> Generator (openai: request -> reply: events -> thinking) -> deltas
//!        -> marks: [n] put right while it streams -> tell -> support: is it in the source?
//! ```
//!
//! Invariants:
//! - Text of documents reaches the model between lines with a random fence that no text of the
//!   request holds, as data. What it can do at worst is to spoil this one answer: nothing is
//!   called, fetched or rendered, and only chunks of the request's scope are shown. A client that
//!   offers `tools` gets the calls, and decides.
//! - Every `[n]` that goes out names a source that was shown: `sources[n - 1]`. Joined deltas are
//!   the answer.
//! - Every call is bounded in time, bytes, attempts and number at once, and ends when nobody waits
//!   for it. Nothing is asked twice once a delta has gone out.
//! - The key goes into one header of requests to one URL, and into no log and no error. Redirects
//!   are not followed, proxies of the environment are not used.
//!
//! - `settings`: which generator; `openai`: the client, `request` and `reply` its two halves
//! - `events`, `thinking`: parts of a reply
//! - `prompt`, `tokens`, `plain`: the text that the model is shown
//! - `marks`, `support`: citations while and after they are written
//! - `tools`: functions of the client
//! - `condense`: sentences worth remembering; `lines`: a reply of one thing a line
//! - `queries`: queries for a question; `write`: the steps in order; `error`: errors of generators

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

/// Role of the author of a chat message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Rules.
    System,
    /// The one who asks.
    User,
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its author.
    pub speaker: Speaker,
    /// Its text.
    pub text: String,
}

/// A request to a generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The chat so far.
    pub messages: Vec<Message>,
    /// Tokens of the reply at most.
    pub reply_tokens_max: usize,
    /// Freedom in the choice of words, 0 to 2.
    pub temperature: f64,
    /// Limits of time and attempts.
    pub effort: Effort,
    /// Functions of the client, if it offers some.
    pub tools: Option<Tools>,
}

impl Prompt {
    /// A request for a step that an answer can do without.
    fn preparing(rules: String, text: String, reply_tokens_max: usize) -> Self {
        let messages = vec![
            Message { speaker: Speaker::System, text: rules },
            Message { speaker: Speaker::User, text },
        ];
        Self { messages, reply_tokens_max, temperature: 0.0, effort: PREPARING, tools: None }
    }
}

/// Wishes of a client as to how an answer is written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampling {
    /// Tokens of the answer at most; more than the server's own limit has no effect.
    pub tokens_max: Option<usize>,
    /// Freedom in the choice of words, 0 to 2; 0 where it is not given.
    pub temperature: Option<f64>,
}

/// Limits of time and attempts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Requests in all, where the generator is overloaded or out of reach.
    pub attempts_max: u32,
    /// Longest silence, before the first byte and between two.
    pub silence_max: Duration,
    /// Time in all.
    pub time_max: Duration,
}

/// For an answer that somebody waits for. Small machines take their time to read a long prompt.
pub(super) const ANSWERING: Effort = Effort {
    attempts_max: 3,
    silence_max: Duration::from_secs(60),
    time_max: Duration::from_secs(300),
};
/// For a step that an answer can do without.
pub(super) const PREPARING: Effort = Effort {
    attempts_max: 1,
    silence_max: Duration::from_secs(8),
    time_max: Duration::from_secs(10),
};

/// Tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub input_tokens: u64,
    /// Of the reply.
    pub output_tokens: u64,
}

/// The end of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Usage as the generator has counted it, if it reports that.
    pub usage: Option<Usage>,
    /// Why it stopped, as it reports it: `stop`, `length`, `tool_calls`.
    pub finish_reason: Option<String>,
    /// Calls that it wants made, in their order.
    pub tool_calls: Vec<ToolCall>,
}

/// Takes the pieces of a reply as they come; breaking off ends the reply.
pub type Tell<'a> = &'a mut dyn FnMut(&str) -> ControlFlow<()>;

/// A language model. Blocking: call it from a thread that may wait.
pub trait Generator: Send + Sync + fmt::Debug {
    /// The model's name on the wire.
    fn model(&self) -> &str;

    /// Its address, for people.
    fn place(&self) -> &str;

    /// Tokens that prompt and reply may have together.
    fn context_tokens(&self) -> usize;

    /// Writes a reply, telling its pieces in order. Ends soon after `cancel`.
    ///
    /// # Errors
    /// [`GenerateError::Cancelled`] after `cancel` and after breaking off; otherwise what went
    /// wrong, at any point of the reply.
    fn generate(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError>;

    /// Whether it answers at all; says something about it for people. Takes some seconds at most.
    ///
    /// # Errors
    /// The error that keeps it from answering.
    fn look(&self) -> Result<String, GenerateError>;
}
