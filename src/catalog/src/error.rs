//! Errors of the catalog.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

use lodestone_io::store::StoreError;
use lodestone_types::{CollectionId, ErrorKind, SubTenantId, TenantId};

/// Result with a [`CatalogError`].
pub(super) type Result<T> = std::result::Result<T, CatalogError>;

/// Errors of the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file was written by a newer release.
    #[error("{path} has catalog format {found}, this release reads up to {supported}: upgrade")]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        supported: i64,
    },
    /// The process that writes is of an earlier release than this one, which follows it.
    #[error(
        "the catalog of the process that writes has format {found}, and this release reads \
         {needed}: upgrade that process first"
    )]
    TooOld {
        /// Its format.
        found: usize,
        /// The format that this release reads.
        needed: usize,
    },
    /// The file is of an older format and could not be copied, so it was not changed.
    #[error("no copy {copy} could be made before the upgrade, so nothing was changed: {source}")]
    CopyFailed {
        /// The copy that was to be made.
        copy: PathBuf,
        /// The reason.
        source: Box<CatalogError>,
    },
    /// The file is a database of another program.
    #[error("{path} is not a lodestone catalog (application id {found:#x})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The application id in it.
        found: i64,
    },
    /// The file has no bytes, although there are tenants.
    #[error("{path} is empty although there are tenants: {}", remedy(path))]
    Emptied {
        /// The file.
        path: PathBuf,
    },
    /// A tenant of this name exists.
    #[error("tenant {tenant} exists already")]
    TenantExists {
        /// The tenant.
        tenant: TenantId,
    },
    /// No tenant has this name.
    #[error("tenant {tenant} does not exist")]
    TenantUnknown {
        /// The tenant.
        tenant: TenantId,
    },
    /// No tenant, or only a deleted one, owns this collection.
    #[error("collection {collection} does not exist")]
    CollectionUnknown {
        /// The collection.
        collection: CollectionId,
    },
    /// A tenant owns this collection already.
    #[error("collection {collection} exists already")]
    CollectionExists {
        /// The collection.
        collection: CollectionId,
    },
    /// The collection is not marked for deletion, so its rows are not removed.
    #[error("collection {collection} is in use")]
    CollectionInUse {
        /// The collection.
        collection: CollectionId,
    },
    /// The tenant has no such sub-tenant.
    #[error("sub-tenant {sub_tenant} does not exist")]
    SubTenantUnknown {
        /// The sub-tenant.
        sub_tenant: SubTenantId,
    },
    /// The sub-tenant `default` stays as long as its tenant.
    #[error("the sub-tenant default cannot be deleted")]
    SubTenantProtected,
    /// The queue is at its limit.
    #[error("the ingest queue is full: {jobs} jobs with {bytes} bytes are waiting")]
    QueueFull {
        /// Jobs waiting.
        jobs: u64,
        /// Bytes waiting.
        bytes: u64,
    },
    /// The tenant may not store more.
    #[error(
        "the tenant's limit of {max} {limit} is reached: it has {used}, and this would make it \
         {needed}"
    )]
    TenantLimit {
        /// The limit: `sources`, `bytes` or `vectors`.
        limit: &'static str,
        /// Its value.
        max: u64,
        /// The amount that the tenant stores.
        used: u64,
        /// The amount that it would store.
        needed: u64,
    },
    /// Jobs that a stop interrupted were not requeued yet.
    #[error("interrupted jobs have not been put back yet")]
    NotRecovered,
    /// No key has this id, or none that the caller may see.
    #[error("api key {id:?} does not exist")]
    KeyUnknown {
        /// The id.
        id: String,
    },
    /// The maker of a key has fewer rights than the key would have.
    #[error("a key cannot make one with a wider scope or role")]
    ScopeTooWide,
    /// No webhook has this id, or none that the caller may see.
    #[error("webhook {id:?} does not exist")]
    WebhookUnknown {
        /// The id.
        id: String,
    },
    /// As many webhooks as may be are there already.
    #[error("{whose} has {max} webhooks already, which is the limit")]
    WebhookLimit {
        /// A tenant, or all of them.
        whose: String,
        /// The limit.
        max: usize,
    },
    /// A key given by the operator is too short.
    #[error("an operator's key has {chars} characters, at least {min} are needed")]
    KeyTooShort {
        /// Characters given.
        chars: usize,
        /// Characters needed.
        min: usize,
    },
    /// A response is too long to be kept for repetition.
    #[error("a response of {bytes} bytes is longer than the {max} that are kept")]
    ResponseTooLong {
        /// Bytes of the response.
        bytes: usize,
        /// Bytes kept at most.
        max: usize,
    },
    /// The disk is full, or refuses what is written. Nothing was changed, and the catalog can still
    /// be used.
    #[error("the disk takes nothing more: it is full, a quota is used up, or it fails")]
    StorageFull,
    /// An earlier error makes writing unsafe until the catalog is opened again.
    #[error("the catalog refuses writes since a failure: {cause}")]
    Poisoned {
        /// The error.
        cause: String,
    },
    /// A commit failed in a way that leaves unknown whether it has happened. Nothing is written
    /// after it until the catalog is opened again or, where its log is in a blob store that was
    /// away, until that has stored it.
    #[error("it is not known whether a change of the catalog has happened: {cause}")]
    InDoubt {
        /// The error.
        cause: String,
    },
    /// The blob store with the catalog's log does not answer as it must. Nothing was changed, and
    /// the catalog can be used again once it does.
    #[error("the store of the catalog's log cannot be used now: {cause}")]
    LogAway {
        /// The error.
        cause: String,
    },
    /// Another process has taken over the log of the catalog. Nothing was changed, and nothing will
    /// be by this process.
    #[error("another process has taken over this store")]
    Fenced,
    /// This process follows another one, which alone writes.
    #[error("this process only reads: the one that writes has to do this")]
    ReadOnly,
    /// This process follows another one and does not know what that has done in the last seconds.
    #[error("this process does not know the newest state: {cause}")]
    Behind {
        /// The reason.
        cause: String,
    },
    /// The disk failed.
    #[error("input or output on the catalog failed: {source}")]
    Io {
        /// SQLite's report.
        source: rusqlite::Error,
    },
    /// The file violates its format.
    #[error("the catalog is damaged: {what}")]
    Corrupt {
        /// The broken rule.
        what: String,
    },
    /// The file beside a collection that names its tenant is not what it must be.
    #[error("the descriptor v1/t/{collection} is damaged: {problem}")]
    BadDescriptor {
        /// The collection.
        collection: CollectionId,
        /// Which rule is broken.
        problem: String,
    },
    /// Error of the blob store, which keeps the descriptors.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// SQLite refused for another reason.
    #[error("the catalog failed: {source}")]
    Sqlite {
        /// SQLite's report.
        source: rusqlite::Error,
    },
}

impl CatalogError {
    /// The caller's remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TenantExists { .. }
            | Self::CollectionExists { .. }
            | Self::CollectionInUse { .. }
            | Self::TenantLimit { .. }
            | Self::WebhookLimit { .. } => ErrorKind::Conflict,
            Self::TenantUnknown { .. }
            | Self::CollectionUnknown { .. }
            | Self::SubTenantUnknown { .. }
            | Self::KeyUnknown { .. }
            | Self::WebhookUnknown { .. } => ErrorKind::NotFound,
            Self::SubTenantProtected | Self::ScopeTooWide | Self::KeyTooShort { .. } => {
                ErrorKind::Invalid
            }
            Self::ResponseTooLong { .. } => ErrorKind::TooLarge,
            Self::QueueFull { .. } => ErrorKind::Overloaded,
            Self::StorageFull => ErrorKind::StorageFull,
            Self::TooNew { .. }
            | Self::TooOld { .. }
            | Self::ReadOnly
            | Self::Behind { .. }
            | Self::Foreign { .. }
            | Self::NotRecovered
            | Self::Poisoned { .. }
            | Self::InDoubt { .. }
            | Self::LogAway { .. }
            | Self::Fenced
            | Self::Io { .. } => ErrorKind::Unavailable,
            Self::Emptied { .. } | Self::Corrupt { .. } | Self::BadDescriptor { .. } => {
                ErrorKind::Corrupt
            }
            Self::CopyFailed { source, .. } => source.kind(),
            Self::Store(error) => error.kind(),
            Self::Sqlite { source } => match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                    ErrorKind::Unavailable
                }
                _ => ErrorKind::Internal,
            },
        }
    }

    /// Whether nothing may be written after this error, because the state of the disk is unknown.
    pub(super) fn is_poisoning(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Corrupt { .. })
    }

    /// The error of using `path`; damage names the file and what its operator can do.
    pub(super) fn with_remedy(self, path: &Path) -> Self {
        match self {
            Self::Corrupt { what } => {
                Self::corrupt(format!("{}: {what}; {}", path.display(), remedy(path)))
            }
            error => error,
        }
    }

    pub(super) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }

    /// The error of a row that was looked for and not found before: a constraint that says that it
    /// is there is an index that contradicts its table.
    pub(super) fn of_new_row(self) -> Self {
        match self {
            Self::Sqlite { source }
                if source.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
            {
                Self::corrupt(source.to_string())
            }
            error => error,
        }
    }
}

/// The remedy for damage to the file at `path`.
fn remedy(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().display();
    format!(
        "restore {file} from a backup, or move it away with the files {file}-wal and {file}-shm: \
         the next start then rebuilds it without API keys, conversations and the history of jobs"
    )
}

impl From<rusqlite::Error> for CatalogError {
    fn from(source: rusqlite::Error) -> Self {
        let Some(error) = source.sqlite_error() else {
            // A column of another type than the schema says.
            return Self::Sqlite { source };
        };
        // Every write that the system refuses is undone as one on a full disk is: that beyond a
        // quota, and the growth of the shared-memory index. Only a failed sync leaves doubt.
        let refused = [SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE];
        if error.code == ErrorCode::DiskFull || refused.contains(&error.extended_code) {
            return Self::StorageFull;
        }
        match error.code {
            ErrorCode::SystemIoFailure => Self::Io { source },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Self::corrupt(source.to_string())
            }
            _ => Self::Sqlite { source },
        }
    }
}
