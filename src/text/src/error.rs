//! Errors of the full text of a segment.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lodestone_types::ErrorKind;

/// An error in building, opening, merging or reading a full-text index.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The bytes are not a bundle that this version can have written.
    #[error("full-text bundle is damaged: {problem}")]
    Damaged {
        /// Description of the damage, with names and sizes.
        problem: String,
    },
    /// The bundle was written by another version of the format or of the analysis. Its terms are
    /// not comparable with those of a query, so it must be rebuilt from the rows.
    #[error("full-text bundle has version {found}, this server reads version {expected}")]
    Version {
        /// The version in the bundle.
        found: u32,
        /// The only version supported.
        expected: u32,
    },
    /// Building or merging failed.
    #[error("full-text index could not be written: {problem}")]
    Write {
        /// The message of the index library.
        problem: String,
    },
}

impl TextError {
    /// The error kind, which tells the caller what to do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } | Self::Version { .. } => ErrorKind::Corrupt,
            Self::Write { .. } => ErrorKind::Internal,
        }
    }

    pub(super) fn damaged(problem: impl std::fmt::Display) -> Self {
        Self::Damaged { problem: problem.to_string() }
    }

    pub(super) fn write(problem: impl std::fmt::Display) -> Self {
        Self::Write { problem: problem.to_string() }
    }
}

/// Reads an index, converting panics to errors. The index library asserts on unexpected bytes even
/// if their checksum is valid; that is damage, and must not abort a search that spans other
/// segments.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T, TextError>) -> Result<T, TextError> {
    let damaged = || TextError::damaged("a file of the index does not parse");
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged()))
}
