//! Errors of a blob store in a bucket.

use lodestone_fetch::bucket::BucketError;
use lodestone_io::IoError;
use lodestone_io::store::{Key, StoreError};

/// Error of opening a blob store in a bucket.
#[derive(Debug, thiserror::Error)]
pub enum SharedStoreError {
    /// The bucket cannot be reached, or refuses a request.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The disk with the local copies failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The bucket lacks a guarantee that the blob store needs, or its prefix cannot be used.
    #[error("{place} cannot hold the data of a server: {problem}")]
    Unfit {
        /// The bucket and prefix.
        place: String,
        /// The reason.
        problem: String,
    },
    /// Another process writes to the prefix.
    #[error(
        "{place} is in use by {holder}: stop it, or choose another prefix; a second server \
             waits for it with --standby true"
    )]
    InUse {
        /// The bucket and prefix.
        place: String,
        /// The name that the other process gives itself.
        holder: String,
    },
}

/// Error of a transfer between a bucket and a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    #[error(transparent)]
    Bucket(#[from] BucketError),
    #[error(transparent)]
    Io(#[from] IoError),
    #[error("there is no blob {0}")]
    Missing(Key),
}

impl From<TransferError> for StoreError {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Bucket(error) => remote(&error),
            TransferError::Io(error) => Self::Io(error),
            TransferError::Missing(key) => Self::Missing { key },
        }
    }
}

/// Converts an error of the bucket to one of a blob store.
pub(crate) fn remote(error: &BucketError) -> StoreError {
    StoreError::Remote { problem: error.to_string() }
}
