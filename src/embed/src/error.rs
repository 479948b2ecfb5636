//! Errors from loading a model and from embedding texts.

use lodestone_types::{ErrorKind, Stopped};

/// Reason why a model was refused or a text got no vector.
///
/// The enum is `Clone` because a failed batch is reported to every caller that had a passage in it;
/// causes are therefore kept as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model directory is missing or cannot be read.
    #[error("the model's file {path} cannot be read: {problem}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Message of the operating system.
        problem: String,
    },
    /// A file of the model directory was read but does not parse.
    #[error("the model's {file} is malformed: {problem}")]
    Malformed {
        /// Path of the file within the directory.
        file: String,
        /// Description of the problem.
        problem: String,
    },
    /// The model is of a kind that this server does not support.
    #[error("the model is not supported: {field} is {found}, expected {expected}")]
    Unsupported {
        /// Name of the configuration field.
        field: &'static str,
        /// Value of the field.
        found: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// The weights lack a tensor.
    #[error("the model's weights have no tensor {tensor}")]
    MissingTensor {
        /// Name of the tensor.
        tensor: String,
    },
    /// A tensor's shape differs from the one that the configuration implies.
    #[error("tensor {tensor} has shape {found:?}, but the configuration requires {expected:?}")]
    WrongShape {
        /// Name of the tensor.
        tensor: String,
        /// Shape according to the configuration.
        expected: Vec<usize>,
        /// Shape in the file.
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
    /// The forward pass panicked. The batch is lost; the worker continues.
    #[error("the model panicked: {message}")]
    Panicked {
        /// The panic message.
        message: String,
    },
    /// The tenant already has too many queries waiting for the model.
    #[error(
        "{waiting} query tokens of this tenant are waiting for the model; at most {max} are \
        allowed"
    )]
    Overloaded {
        /// Tokens that would be waiting with this call.
        waiting: usize,
        /// Maximum number of waiting tokens.
        max: usize,
    },
    /// The remote server that runs the model is currently unavailable.
    #[error("the embedding server fails: {problem}")]
    Remote {
        /// Description of the problem.
        problem: String,
    },
    /// The embedder was closed before the text was processed.
    #[error("the model is shutting down")]
    Closed,
    /// The request that needed the vector is over.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl EmbedError {
    /// Returns the kind of the error, which tells the caller how to react.
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
