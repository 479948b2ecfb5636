//! Errors of searches.

use lodestone_compute::ComputeError;
use lodestone_embed::EmbedError;
use lodestone_storage::collection::CollectionError;
use lodestone_storage::filter::FilterError;
use lodestone_storage::segment::SegmentError;
use lodestone_text::TextError;
use lodestone_types::{ErrorKind, Stopped};

/// A refused or failed read.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The filter of the request.
    #[error(transparent)]
    Filter(FilterError),
    /// A query vector of another width than the tenant's.
    #[error("the query vector is {received} wide, this tenant's are {expected}")]
    DimensionMismatch {
        /// The tenant's.
        expected: usize,
        /// The request's.
        received: usize,
    },
    /// The query could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A kernel refused.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The text index.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// The request is over.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl QueryError {
    /// The kind of error: it says what the caller should do. Damage found while searching is
    /// temporary: the part is quarantined, and the request may be repeated.
    pub fn kind(&self) -> ErrorKind {
        match self.cause() {
            ErrorKind::Corrupt => ErrorKind::Unavailable,
            kind => kind,
        }
    }

    /// Whether stored bytes are not what they must be.
    pub fn is_damage(&self) -> bool {
        self.cause() == ErrorKind::Corrupt
    }

    fn cause(&self) -> ErrorKind {
        match self {
            Self::Filter(_) | Self::DimensionMismatch { .. } => ErrorKind::Invalid,
            Self::Embed(error) => error.kind(),
            Self::Compute(error) => error.kind(),
            Self::Text(error) => error.kind(),
            Self::Segment(error) => error.kind(),
            Self::Collection(error) => error.kind(),
            Self::Stopped(_) => ErrorKind::Unavailable,
        }
    }
}
