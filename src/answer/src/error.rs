//! Errors of extractive answers.

use lodestone_embed::EmbedError;
use lodestone_types::ErrorKind;

/// The reasons for failing to answer. Finding nothing is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Comparing the sentences with the question failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

impl AnswerError {
    /// The kind of the error, which tells the caller what to do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Embed(error) => error.kind(),
        }
    }
}
