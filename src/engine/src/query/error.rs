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
    /// The filter of the request is invalid.
    #[error(transparent)]
    Filter(FilterError),
    /// The query vector has another dimension than the tenant's vectors.
    #[error("the query vector has {received} dimensions; this tenant's vectors have {expected}")]
    DimensionMismatch {
        /// The tenant's dimension.
        expected: usize,
        /// The dimension in the request.
        received: usize,
    },
    /// The query could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// An error of the vector kernels.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// An error of the text index.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An error of a segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// An error of the collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// The request was canceled or ran out of time.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl QueryError {
    /// Classifies the error by what the caller should do. Damage found while searching is
    /// temporary: the segment is quarantined, and the request may be repeated.
    pub fn kind(&self) -> ErrorKind {
        match self.cause() {
            ErrorKind::Corrupt => ErrorKind::Unavailable,
            kind => kind,
        }
    }

    /// Whether the cause is damage of stored data.
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
