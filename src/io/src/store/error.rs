//! Errors of the blob store.

use crate::IoError;
use crate::store::Key;
use lodestone_types::ErrorKind;

/// Errors of the blob store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name is not a valid key.
    #[error("key {key:?} {problem}")]
    InvalidKey {
        /// The name as it was given.
        key: String,
        /// The violated rule.
        problem: &'static str,
    },
    /// The underlying disk failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// There is no blob of this name.
    #[error("there is no blob {key}")]
    Missing {
        /// The name.
        key: Key,
    },
    /// The remote store refused the call or cannot be reached.
    #[error("{problem}")]
    Remote {
        /// The remote store's message.
        problem: String,
    },
}

impl StoreError {
    /// The error kind. Keys are built by the server, not by users, so an invalid one is internal.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidKey { .. } => ErrorKind::Internal,
            Self::Io(error) => error.kind(),
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Remote { .. } => ErrorKind::Unavailable,
        }
    }
}
