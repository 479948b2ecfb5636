//! Errors of models, and of texts on their way to a vector.

use lodestone_types::{ErrorKind, Stopped};

/// Error of a refused model, or of a text without a vector.
///
/// The enum is `Clone` because one failed batch is reported to every submitter that had a
/// passage in it; causes are therefore kept as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model directory is missing or cannot be read.
    #[error("the model's file {path} cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// Message of the operating system.
        problem: String,
    },
    /// A file of the model directory was read but does not parse.
    #[error("the model's {file} is malformed: {problem}")]
    Malformed {
        /// Its path in the directory.
        file: String,
        /// Description of the problem.
        problem: String,
    },
    /// The model is of a kind that this server does not compute.
    #[error("the model is not supported: {field} is {found}, expected {expected}")]
    Unsupported {
        /// The setting of the model's configuration.
        field: &'static str,
        /// Its value.
        found: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// The weights lack a tensor.
    #[error("the model's weights lack the tensor {tensor}")]
    MissingTensor {
        /// Its name.
        tensor: String,
    },
    /// A tensor has another shape than the configuration says.
    #[error("tensor {tensor} has shape {found:?}, the configuration says {expected:?}")]
    WrongShape {
        /// Its name.
        tensor: String,
        /// Sizes by the configuration.
        expected: Vec<usize>,
        /// Sizes in the file.
        found: Vec<usize>,
    },
    /// The tokenizer failed on a text.
    #[error("a text cannot be tokenised: {problem}")]
    Tokenise {
        /// Message of the tokenizer.
        problem: String,
    },
    /// The forward pass failed.
    #[error("the model failed: {problem}")]
    Compute {
        /// Description of the problem.
        problem: String,
    },
    /// The forward pass panicked; the worker goes on, the batch is lost.
    #[error("the model panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// More queries of the tenant wait for the model than may.
    #[error("{waiting} tokens of queries of this tenant wait for the model, at most {max} may")]
    Overloaded {
        /// Tokens that would wait.
        waiting: usize,
        /// Tokens that may wait.
        max: usize,
    },
    /// The server that computes the model is not usable now.
    #[error("the embedding server fails: {problem}")]
    Remote {
        /// Description of the problem.
        problem: String,
    },
    /// The embedder was closed before the text had its turn.
    #[error("the model is shutting down")]
    Closed,
    /// The request that it was for is over.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl EmbedError {
    /// Its kind, which says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { .. } | Self::Remote { .. } | Self::Closed | Self::Stopped(_) => {
                ErrorKind::Unavailable
            }
            Self::Unsupported { .. } => ErrorKind::Invalid,
            Self::Malformed { .. } | Self::MissingTensor { .. } | Self::WrongShape { .. } => {
                ErrorKind::Corrupt
            }
            Self::Overloaded { .. } => ErrorKind::Overloaded,
            Self::Tokenise { .. } | Self::Compute { .. } | Self::Panicked { .. } => {
                ErrorKind::Internal
            }
        }
    }
}

impl From<candle_core::Error> for EmbedError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute { problem: error.to_string() }
    }
}
