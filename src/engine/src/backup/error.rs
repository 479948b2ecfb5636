//! Errors of backups.

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
    /// Stored bytes are not those that were written, or are gone.
    #[error("{file}: {problem}")]
    Damaged {
        /// The file.
        file: String,
        /// The broken rule.
        problem: String,
    },
    /// The backup has no manifest.
    #[error("backup {id} in {place} was cut off: it has no manifest and cannot be restored")]
    CutOff {
        /// The backup.
        id: String,
        /// The folder of backups.
        place: String,
    },
    /// There is no such backup.
    #[error("{place} holds no backup {id}; `lodestone backup ls` lists those that it holds")]
    Unknown {
        /// The backup.
        id: String,
        /// The folder of backups.
        place: String,
    },
    /// There is no backup at all.
    #[error("{place} holds no finished backup")]
    Empty {
        /// The folder.
        place: String,
    },
    /// The backup has no such tenant.
    #[error("backup {id} holds no tenant {tenant}")]
    NoTenant {
        /// The backup.
        id: String,
        /// The tenant.
        tenant: TenantId,
    },
    /// The server holds no such tenant.
    #[error("tenant {tenant} does not exist")]
    TenantUnknown {
        /// The tenant.
        tenant: TenantId,
    },
    /// Folders or choices that cannot be used.
    #[error("{problem}")]
    Refused {
        /// The rule, and the remedy.
        problem: String,
    },
    /// The data that are meant are not this server's.
    #[error("this server's data are in {}, not the directory that is meant", .directory.display())]
    OtherData {
        /// Its data directory.
        directory: PathBuf,
    },
    /// Another backup is under way.
    #[error("another backup is under way")]
    Busy,
    /// The server stops, or its disk is full and the space of deleted files is needed.
    #[error("the backup was given up: {reason}")]
    GivenUp {
        /// The reason.
        reason: &'static str,
    },
    /// A file of the backups.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A bucket.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// The data directory.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// An error of the system about a file.
    pub(super) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// The kind of error: it says what the caller should do.
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
