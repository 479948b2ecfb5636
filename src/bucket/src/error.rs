//! Errors of a bucket with blobs.

use lodestone_fetch::bucket::BucketError;
use lodestone_io::IoError;
use lodestone_io::store::{Key, StoreError};

/// Errors of opening a bucket with blobs.
#[derive(Debug, thiserror::Error)]
pub enum SharedStoreError {
    /// The store cannot be reached, or refuses.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The disk of the copies.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The store does not do what the blobs need.
    #[error("{place} cannot hold the data of a server: {problem}")]
    Unfit {
        /// The bucket and prefix.
        place: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// Another process writes to it.
    #[error("{place} is in use by {holder}: stop that one, or name another prefix")]
    InUse {
        /// The bucket and prefix.
        place: String,
        /// The process, as it names itself.
        holder: String,
    },
}

/// An error of a transfer between a bucket and a file.
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

/// An error of the bucket as one of the blobs.
pub(crate) fn remote(error: &BucketError) -> StoreError {
    StoreError::Remote { problem: error.to_string() }
}
