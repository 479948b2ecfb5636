//! Errors of backups and restores.

use std::path::{Path, PathBuf};

use lodestone_catalog::CatalogError;
use lodestone_fetch::bucket::BucketError;
use lodestone_io::IoError;
use lodestone_io::store::StoreError;
use lodestone_storage::collection::CollectionError;
use lodestone_types::{ErrorKind, TenantId};

/// A refused or failed backup or restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Stored bytes differ from what was written, or are missing.
    #[error("{file}: {problem}")]
    Damaged {
        /// The damaged file.
        file: String,
        /// The violated rule.
        problem: String,
    },
    /// The backup has no manifest.
    #[error("backup {id} in {place} is incomplete: it has no manifest and cannot be restored")]
    CutOff {
        /// Id of the backup.
        id: String,
        /// The location of the backups.
        place: String,
    },
    /// There is no such backup.
    #[error("backup {id} not found in {place}; `lodestone backup ls` lists the available ones")]
    Unknown {
        /// Id of the backup.
        id: String,
        /// The location of the backups.
        place: String,
    },
    /// The location holds no finished backup.
    #[error("{place} contains no complete backup")]
    Empty {
        /// The location of the backups.
        place: String,
    },
    /// The backup does not contain the tenant.
    #[error("backup {id} does not contain tenant {tenant}")]
    NoTenant {
        /// Id of the backup.
        id: String,
        /// The tenant.
        tenant: TenantId,
    },
    /// The server has no such tenant.
    #[error("tenant {tenant} does not exist")]
    TenantUnknown {
        /// The tenant.
        tenant: TenantId,
    },
    /// Directories or options that cannot be used.
    #[error("{problem}")]
    Refused {
        /// The violated rule, and the remedy.
        problem: String,
    },
    /// The caller meant the data of another server.
    #[error("the data directory of this server is {}, not the one requested", .directory.display())]
    OtherData {
        /// The data directory of this server.
        directory: PathBuf,
    },
    /// Another backup is running.
    #[error("another backup is running")]
    Busy,
    /// The server is stopping, or its disk is full and the space of deleted files is needed.
    #[error("the backup was aborted: {reason}")]
    GivenUp {
        /// The reason.
        reason: &'static str,
    },
    /// An error of a file.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An error of a bucket.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// An error of the catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An error of a collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// An error of the data directory.
    #[error(transparent)]
    Io(#[from] IoError),
    /// An error of the blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// Wraps an operating system error about a file.
    pub(super) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } | Self::CutOff { .. } => ErrorKind::Corrupt,
            Self::Unknown { .. }
            | Self::Empty { .. }
            | Self::NoTenant { .. }
            | Self::TenantUnknown { .. } => ErrorKind::NotFound,
            Self::Refused { .. } => ErrorKind::Invalid,
            Self::Busy | Self::OtherData { .. } => ErrorKind::Conflict,
            Self::GivenUp { .. } => ErrorKind::Unavailable,
            Self::File { .. } => ErrorKind::Internal,
            Self::Bucket(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Collection(error) => error.kind(),
            Self::Io(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
