//! Errors of archives.

use lodestone_types::{ErrorKind, TenantId};

/// A refused export or import.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A line breaks the format.
    #[error("line {line} of the archive ({member}): {problem}; nothing was imported")]
    Refused {
        /// The line, from 1.
        line: u64,
        /// The kind of line.
        member: String,
        /// The broken rule.
        problem: String,
    },
    /// The end is missing.
    #[error(
        "the archive is cut: it ends after line {lines} without an \"end\" line; nothing was \
         imported; export it again"
    )]
    Cut {
        /// Whole lines.
        lines: u64,
    },
    /// The tenant holds something.
    #[error(
        "tenant {tenant} is not empty: an archive goes into a new tenant, or one into which \
         nothing was uploaded; name another tenant_id"
    )]
    NotEmpty {
        /// The tenant.
        tenant: TenantId,
    },
    /// The empty tenant was made for something else.
    #[error("tenant {tenant} was created with another {what} than the archive has")]
    OtherTenant {
        /// The tenant.
        tenant: TenantId,
        /// The property.
        what: &'static str,
    },
    /// A part of the tenant cannot be read.
    #[error("{segments} segments of the tenant are damaged: an export would lack what they hold")]
    Quarantined {
        /// Segments that are out of service.
        segments: usize,
    },
    /// Others are under way.
    #[error("{max} {what} are under way, which is the most at once")]
    Busy {
        /// Exports or imports.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// Other requests have the memory.
    #[error("the server's memory-limit is in use by other large requests")]
    NoMemory,
    /// The disk is full, and the files that are deleted meanwhile are needed.
    #[error("the disk of the server is full: deletions wait for the export, so it was given up")]
    GivenUp,
}

impl ArchiveError {
    /// The kind of error: it says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { .. } | Self::Cut { .. } => ErrorKind::Invalid,
            Self::NotEmpty { .. } | Self::OtherTenant { .. } => ErrorKind::Conflict,
            Self::Quarantined { .. } => ErrorKind::Corrupt,
            Self::Busy { .. } | Self::NoMemory => ErrorKind::Overloaded,
            Self::GivenUp => ErrorKind::StorageFull,
        }
    }
}
