//! Errors of generators.

use lodestone_types::ErrorKind;

/// Why a generator gave no answer, or none to its end. Messages hold no key and no text of
/// documents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// No connection to it.
    #[error("the generator cannot be reached: {cause}")]
    Unreachable {
        /// Cause, as the network reports it.
        cause: String,
    },
    /// It was silent, or slow, for too long.
    #[error("the generator took too long: {phase}")]
    TimedOut {
        /// Phase of the request.
        phase: String,
    },
    /// It does not want the request.
    #[error("the generator refuses with status {status}: {message}")]
    Refused {
        /// Its status.
        status: u16,
        /// The beginning of its words.
        message: String,
    },
    /// It has too much to do, and waiting did not help.
    #[error("the generator is overloaded or fails, status {status}")]
    Overloaded {
        /// Its status.
        status: u16,
    },
    /// Its reply is not of the form that was agreed, or ends early.
    #[error("the generator's reply is broken: {problem}")]
    Broken {
        /// Description of the error.
        problem: String,
    },
    /// Its reply exceeds a bound.
    #[error("the generator's reply is over {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
    /// It said nothing.
    #[error("the generator's answer is empty")]
    Empty,
    /// Question, rules, tools and their results fill the window.
    #[error(
        "the question, with tools and their results, takes {tokens} tokens of the language model's \
         window of {window}: no source fits in"
    )]
    QuestionTooLong {
        /// Tokens of question and rules, about.
        tokens: usize,
        /// Tokens of the window.
        window: usize,
    },
    /// The limit of answers that are written at once is reached.
    #[error("{running_max} answers are being written already")]
    Busy {
        /// The bound.
        running_max: usize,
    },
    /// The client has gone.
    #[error("nobody waits for the answer any more")]
    Cancelled,
}

impl GenerateError {
    /// The kind of error: it says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy { .. } | Self::Overloaded { .. } => ErrorKind::Overloaded,
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

    /// The kind of error, as a word that programs may compare.
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
            Self::Busy { .. } => "busy",
            Self::Cancelled => "cancelled",
        }
    }
}
