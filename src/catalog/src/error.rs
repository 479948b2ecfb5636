//! Errors of the catalog.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

use lodestone_io::store::StoreError;
use lodestone_types::{CollectionId, ErrorKind, SubTenantId, TenantId};

/// Result of a catalog operation.
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
    /// The writing process runs an earlier release than this follower.
    #[error(
        "the writer's catalog has format {found}, but this release reads {needed}: upgrade the \
         writer first"
    )]
    TooOld {
        /// The writer's format.
        found: usize,
        /// The format that this release reads.
        needed: usize,
    },
    /// The file has an older format and could not be copied first, so it was left unchanged.
    #[error(
        "copying the catalog to {copy} before the upgrade failed, so nothing was changed: \
        {source}"
    )]
    CopyFailed {
        /// Path of the intended copy.
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
    /// The file is empty although tenants exist.
    #[error("{path} is empty, but there are tenants: {}", remedy(path))]
    Emptied {
        /// The file.
        path: PathBuf,
    },
    /// A tenant of this name already exists.
    #[error("tenant {tenant} already exists")]
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
    /// A tenant already owns this collection.
    #[error("collection {collection} already exists")]
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
    /// The sub-tenant `default` cannot be deleted without its tenant.
    #[error("the sub-tenant default cannot be deleted")]
    SubTenantProtected,
    /// The queue has reached its limit.
    #[error("the ingest queue is full: {jobs} jobs with {bytes} bytes are waiting")]
    QueueFull {
        /// Jobs waiting.
        jobs: u64,
        /// Bytes waiting.
        bytes: u64,
    },
    /// The tenant has reached a storage limit.
    #[error(
        "the tenant's limit of {max} {limit} is reached: it has {used}, and this would make it \
         {needed}"
    )]
    TenantLimit {
        /// The limit: `sources`, `bytes` or `vectors`.
        limit: &'static str,
        /// Its value.
        max: u64,
        /// The amount stored by the tenant.
        used: u64,
        /// The amount it would store.
        needed: u64,
    },
    /// Jobs interrupted by a stop have not been requeued yet.
    #[error("interrupted jobs have not been requeued yet")]
    NotRecovered,
    /// No key has this id, or none that the caller may see.
    #[error("api key {id:?} does not exist")]
    KeyUnknown {
        /// The id.
        id: String,
    },
    /// The creator of a key has fewer rights than the key would have.
    #[error("a key cannot create a key with a wider scope or role")]
    ScopeTooWide,
    /// No webhook has this id, or none that the caller may see.
    #[error("webhook {id:?} does not exist")]
    WebhookUnknown {
        /// The id.
        id: String,
    },
    /// The maximum number of webhooks exists already.
    #[error("{whose} already has {max} webhooks, which is the limit")]
    WebhookLimit {
        /// Description of the owner: one tenant, or all of them.
        whose: String,
        /// The limit.
        max: usize,
    },
    /// A key supplied by the operator is too short.
    #[error("an operator's key must have at least {min} characters; this one has {chars}")]
    KeyTooShort {
        /// Characters given.
        chars: usize,
        /// Characters needed.
        min: usize,
    },
    /// A response is too large to be kept for replay.
    #[error("a response of {bytes} bytes exceeds the {max} bytes that can be stored")]
    ResponseTooLong {
        /// Bytes of the response.
        bytes: usize,
        /// Maximum bytes kept.
        max: usize,
    },
    /// Too much is kept for repetitions of requests with an idempotency key.
    #[error(
        "requests with an Idempotency-Key keep {used} bytes for repetitions; the limit is {max} \
         bytes in 24 hours"
    )]
    IdempotencyLimit {
        /// Bytes kept.
        used: u64,
        /// The limit.
        max: u64,
        /// Seconds until they are counted anew.
        wait_seconds: u64,
    },
    /// The disk is full or refuses writes. Nothing was changed, and the catalog remains usable.
    #[error("the disk accepts no more data: it is full, over quota, or failing")]
    StorageFull,
    /// An earlier error makes writing unsafe until the catalog is reopened.
    #[error("the catalog refuses writes after a failure: {cause}")]
    Poisoned {
        /// The error.
        cause: String,
    },
    /// A commit failed in a way that leaves its outcome unknown. Nothing more is written until the
    /// catalog is reopened or, if the blob store with the catalog's log was unreachable, until that
    /// store has the commit.
    #[error("a change of the catalog may have been applied: {cause}")]
    InDoubt {
        /// The error.
        cause: String,
    },
    /// The blob store with the catalog's log is unreachable or misbehaves. Nothing was changed; the
    /// catalog is usable again once the store is.
    #[error("the store of the catalog's log is unavailable: {cause}")]
    LogAway {
        /// The error.
        cause: String,
    },
    /// Another process has taken over the catalog's log. Nothing was changed, and this process will
    /// not write any more.
    #[error("another process has taken over this store")]
    Fenced,
    /// This process is a follower; only the process it follows writes.
    #[error("this process is read-only: only the writer can do this")]
    ReadOnly,
    /// This process is a follower and does not know the writer's changes of the last seconds.
    #[error("this process may not have the newest state: {cause}")]
    Behind {
        /// The reason.
        cause: String,
    },
    /// I/O on the catalog failed.
    #[error("I/O on the catalog failed: {source}")]
    Io {
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// The file violates its format.
    #[error("the catalog is damaged: {what}")]
    Corrupt {
        /// The violated rule.
        what: String,
    },
    /// The descriptor stored next to a collection is invalid.
    #[error("the descriptor v1/t/{collection} is damaged: {problem}")]
    BadDescriptor {
        /// The collection.
        collection: CollectionId,
        /// The violated rule.
        problem: String,
    },
    /// The blob store, which holds the descriptors, failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// SQLite refused for any other reason.
    #[error("the catalog failed: {source}")]
    Sqlite {
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

impl CatalogError {
    /// The error kind.
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
            Self::QueueFull { .. } | Self::IdempotencyLimit { .. } => ErrorKind::Overloaded,
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

    /// Whether the state on disk is unknown after this error, so that nothing may be written.
    pub(super) fn is_poisoning(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Corrupt { .. })
    }

    /// Adds, for damage, the name of the file and the operator's options for repair.
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

    /// Reinterprets a constraint violation on inserting a row that was just looked up and not
    /// found: the index contradicts its table.
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

/// The operator's options for repairing the file at `path`.
fn remedy(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().display();
    format!(
        "restore {file} from a backup, or move it away with the files {file}-wal and {file}-shm: \
         the next start then rebuilds it without API keys, conversations and the job history"
    )
}

impl From<rusqlite::Error> for CatalogError {
    fn from(source: rusqlite::Error) -> Self {
        let Some(error) = source.sqlite_error() else {
            // A column does not have the type that the schema declares.
            return Self::Sqlite { source };
        };
        // Every write that the system refuses is rolled back like one on a full disk, including one
        // over quota and the growth of the shared-memory index. Only a failed sync leaves doubt.
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
