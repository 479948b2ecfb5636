//! Errors of generators.

use lodestone_types::ErrorKind;

/// The reasons why a generator gave no answer, or an incomplete one. Messages contain neither the
/// API key nor text of documents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// The generator cannot be reached.
    #[error("the generator cannot be reached: {cause}")]
    Unreachable {
        /// Cause reported by the network.
        cause: String,
    },
    /// The generator was silent, or slow, for too long.
    #[error("the generator took too long: {phase}")]
    TimedOut {
        /// Phase of the request.
        phase: String,
    },
    /// The generator rejected the request.
    #[error("the generator rejected the request with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Beginning of its message.
        message: String,
    },
    /// The generator is overloaded or failing, and waiting did not help.
    #[error("the generator is overloaded or failing, status {status}")]
    Overloaded {
        /// HTTP status.
        status: u16,
    },
    /// The reply violates the protocol or ends early.
    #[error("the generator's reply is malformed: {problem}")]
    Broken {
        /// Description of the problem.
        problem: String,
    },
    /// The reply exceeds a limit.
    #[error("the generator's reply is larger than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The answer is empty.
    #[error("the generator's answer is empty")]
    Empty,
    /// Question, rules, tools and their results fill the context window.
    #[error(
        "the question, with tools and their results, takes {tokens} tokens of the generator's \
         window of {window}, which leaves no room for sources"
    )]
    QuestionTooLong {
        /// Estimated tokens of the question and everything around it.
        tokens: usize,
        /// Tokens of the context window.
        window: usize,
    },
    /// The client is gone.
    #[error("the client no longer waits for the answer")]
    Cancelled,
}

impl GenerateError {
    /// The kind of the error, which tells the caller what to do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Overloaded { .. } => ErrorKind::Overloaded,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Refused { .. }
            | Self::Broken { .. }
            | Self::TooLong { .. }
            | Self::Empty
            | Self::Cancelled => ErrorKind::Unavailable,
            Self::QuestionTooLong { .. } => ErrorKind::Invalid,
        }
    }

    /// A machine-readable code for the error.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::Refused { .. } => "refused",
            Self::Overloaded { .. } => "overloaded",
            Self::Broken { .. } => "broken_reply",
            Self::TooLong { .. } => "too_long",
            Self::Empty => "empty_answer",
            Self::QuestionTooLong { .. } => "question_too_long",
            Self::Cancelled => "cancelled",
        }
    }
}
