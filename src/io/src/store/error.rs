//! Errors of the blob store.

use crate::IoError;
use crate::store::Key;
use lodestone_types::ErrorKind;

/// Errors of the blob store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not a name that the store accepts.
    #[error("key {key:?} {problem}")]
    InvalidKey {
        /// The name as it was given.
        key: String,
        /// The rule that it breaks.
        problem: &'static str,
    },
    /// The disk beneath failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// There is no blob of this name.
    #[error("there is no blob {key}")]
    Missing {
        /// The name.
        key: Key,
    },
    /// The store behind the blobs refused, or cannot be reached.
    #[error("{problem}")]
    Remote {
        /// The store's words.
        problem: String,
    },
}

impl StoreError {
    /// The caller's remedy. Keys are made by the server and not by users, so a bad one is internal.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidKey { .. } => ErrorKind::Internal,
            Self::Io(error) => error.kind(),
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Remote { .. } => ErrorKind::Unavailable,
        }
    }
}
