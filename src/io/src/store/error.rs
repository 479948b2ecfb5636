//! What can go wrong in the blob store.

use crate::IoError;
use lodestone_types::ErrorKind;

/// A failure of this room.
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
}

impl StoreError {
    /// What the caller should do. Keys are made by us and not by users, so a bad one is our fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidKey { .. } => ErrorKind::Internal,
            Self::Io(error) => error.kind(),
        }
    }
}
