//! Errors of exports and imports.

use lodestone_types::{ErrorKind, TenantId};

/// An export or import that was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A line violates the format.
    #[error("line {line} of the archive ({member}): {problem}; nothing was imported")]
    Refused {
        /// Number of the line, from 1.
        line: u64,
        /// The kind of the line.
        member: String,
        /// The violated rule.
        problem: String,
    },
    /// The archive is truncated: its last line is missing.
    #[error(
        "the archive is truncated: it ends after line {lines} without an \"end\" line; nothing was \
         imported; export it again"
    )]
    Cut {
        /// Number of complete lines.
        lines: u64,
    },
    /// The target tenant is not empty.
    #[error(
        "tenant {tenant} is not empty: an archive can only be imported into a new or empty tenant; \
         choose another tenant_id"
    )]
    NotEmpty {
        /// The tenant.
        tenant: TenantId,
    },
    /// The empty target tenant was created with other properties.
    #[error("tenant {tenant} was created with a {what} that differs from the archive's")]
    OtherTenant {
        /// The tenant.
        tenant: TenantId,
        /// The property that differs.
        what: &'static str,
    },
    /// A part of the tenant cannot be read.
    #[error("{segments} segments of the tenant are damaged: an export would be incomplete")]
    Quarantined {
        /// Number of quarantined segments.
        segments: usize,
    },
    /// Too many exports or imports are running.
    #[error("{max} {what} are already running, which is the maximum")]
    Busy {
        /// `exports` or `imports`.
        what: &'static str,
        /// Maximum number at once.
        max: usize,
    },
    /// Other requests hold the memory.
    #[error("the server's memory-limit is in use by other large requests")]
    NoMemory,
    /// The disk is full, and the export was holding back deletions that would free space.
    #[error(
        "the server's disk is full: the export was aborted because deletions were waiting for \
        it"
    )]
    GivenUp,
}

impl ArchiveError {
    /// Classifies the error by what the caller should do.
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
