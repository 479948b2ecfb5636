//! Errors of extractive answers.

use lodestone_embed::EmbedError;
use lodestone_types::ErrorKind;

/// Why there is no answer. Finding nothing is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The sentences could not be compared with the question.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

impl AnswerError {
    /// The kind of error: it says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Embed(error) => error.kind(),
        }
    }
}
