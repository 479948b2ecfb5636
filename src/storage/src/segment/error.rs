//! Errors of segments.

use crate::filter::FilterError;
use lodestone_compute::ComputeError;
use lodestone_io::IoError;
use lodestone_io::store::StoreError;
use lodestone_text::TextError;
use lodestone_types::ErrorKind;

/// Errors of writing, opening or reading a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The bytes violate the segment format.
    #[error("segment {segment} is damaged: {problem}")]
    Damaged {
        /// The segment's id, or the file's name if the id cannot be read.
        segment: String,
        /// The rule of the format that is broken.
        problem: String,
    },
    /// The file was written by a newer version of the program.
    #[error("segment {segment} needs reader version {needed}, this program has {ours}")]
    TooNew {
        /// The segment's id.
        segment: String,
        /// The reader version that the file needs.
        needed: u32,
        /// The reader version of this program.
        ours: u32,
    },
    /// The input of a build breaks a rule; nothing was written.
    #[error("cannot build a segment: {problem}")]
    BadInput {
        /// The rule that is broken.
        problem: String,
    },
    /// Error of the disk.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Error of the blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Error of the full-text section.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Error of the filter columns.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Error of the vector tiers.
    #[error(transparent)]
    Compute(#[from] ComputeError),
}

impl SegmentError {
    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::TooNew { .. } => ErrorKind::Unavailable,
            Self::BadInput { .. } => ErrorKind::Internal,
            Self::Io(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Text(error) => error.kind(),
            Self::Filter(error) => error.kind(),
            Self::Compute(error) => error.kind(),
        }
    }
}
