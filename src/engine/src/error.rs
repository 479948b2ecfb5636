//! The error type of all operations: a kind and a message for the server to report.

use crate::archive::ArchiveError;
use crate::backup::BackupError;
use crate::ingest::IngestError;
use crate::pictures::PictureError;
use crate::query::QueryError;
use crate::settings::InvalidSetting;
use lodestone_answer::AnswerError;
use lodestone_answer::generate::GenerateError;
use lodestone_bucket::SharedStoreError;
use lodestone_catalog::CatalogError;
use lodestone_embed::EmbedError;
use lodestone_io::IoError;
use lodestone_io::store::StoreError;
use lodestone_rank::RerankError;
use lodestone_storage::collection::CollectionError;
use lodestone_types::{BlockedReason, ErrorKind, SourceId, SubTenantId, TenantId, TenantMode};

/// A refused or failed operation.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The tenant does not exist or the key has no access to it. Callers cannot tell the two apart.
    #[error("tenant_id does not exist or this key has no access to it")]
    TenantNotFound,
    /// The sub-tenant does not exist or the key has no access to it.
    #[error("sub_tenant_id does not exist or this key has no access to it")]
    SubTenantNotFound,
    /// The key lacks a permission.
    #[error("{need}")]
    Forbidden {
        /// The missing permission.
        need: &'static str,
    },
    /// The tenant has used up its requests per minute.
    #[error(
        "the tenant's limit of {max} requests per minute is reached ({used} made); try again in \
         {wait_seconds} s"
    )]
    TooManyRequests {
        /// The limit.
        max: u64,
        /// Requests made in the last minute.
        used: u64,
        /// Seconds until the next request is admitted.
        wait_seconds: u64,
    },
    /// No embedding model of this server has the given name.
    #[error("embedding_model must name a model of this server: {}", known.join(", "))]
    ModelUnknown {
        /// The names of the models there are.
        known: Vec<String>,
    },
    /// A tenant of this name already exists.
    #[error("tenant {tenant} already exists")]
    TenantExists {
        /// The tenant.
        tenant: TenantId,
    },
    /// The tenant is in another mode than the operation needs.
    #[error(
        "tenant {tenant} has mode {}; this operation requires mode {}",
        found.name(),
        needed.name()
    )]
    ModeMismatch {
        /// The tenant.
        tenant: TenantId,
        /// The mode of the tenant.
        found: TenantMode,
        /// The mode that the operation needs.
        needed: TenantMode,
    },
    /// The sub-tenant `default` cannot be deleted.
    #[error("the sub-tenant default cannot be deleted")]
    DefaultProtected,
    /// The sub-tenant to delete does not exist.
    #[error("sub-tenant {sub_tenant} does not exist")]
    SubTenantUnknown {
        /// The sub-tenant.
        sub_tenant: SubTenantId,
    },
    /// There is no such source.
    #[error("source {source_id} does not exist")]
    SourceNotFound {
        /// The source.
        source_id: SourceId,
    },
    /// There is no such job, or the key does not reach it.
    #[error("job_id does not exist or this key has no access to it")]
    JobNotFound,
    /// The job cannot be retried.
    #[error("job {job_id} {problem}")]
    JobNotRetried {
        /// The job.
        job_id: String,
        /// The reason, as the rest of a sentence.
        problem: &'static str,
    },
    /// The receiver's URL is one to which this server does not send webhooks.
    #[error("url is not allowed: {reason}")]
    WebhookUrl {
        /// The violated rule.
        reason: BlockedReason,
    },
    /// The scope of a webhook names a tenant that does not exist.
    #[error("tenants: {tenant} does not exist")]
    WebhookTenant {
        /// The tenant.
        tenant: TenantId,
    },
    /// A test of this webhook is running already, or too many tests of others are.
    #[error("a test of this webhook or too many other tests are running; try again")]
    WebhookTestBusy,
    /// The catalog is missing and cannot be rebuilt without a decision by the operator.
    #[error("catalog.sqlite is missing and cannot be rebuilt: {problem}")]
    CatalogLost {
        /// The contradiction, and what the operator can do about it.
        problem: String,
    },
    /// The settings require a GPU and none can be used.
    #[error("LODESTONE_DEVICE is cuda, but no GPU can be used: {reason}")]
    NoDevice {
        /// The reason why not.
        reason: String,
    },
    /// The schema of a new tenant is invalid.
    #[error(transparent)]
    Schema(#[from] lodestone_types::schema::SchemaError),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// An upload or change failed.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// A search failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// An extractive answer failed.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The generator failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// An error of the catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An error of a collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// An error of the embedding model.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// An error of the reranker.
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// An error of the disk.
    #[error(transparent)]
    Io(#[from] IoError),
    /// An export or import failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// An error of backups.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A page image could not be made.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// An error of the blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data of a server could not be copied to another store.
    #[error("cannot copy the data: {problem}")]
    NotCopied {
        /// The violated rule.
        problem: String,
    },
    /// The bucket could not be opened at the start.
    #[error(transparent)]
    SharedStore(#[from] SharedStoreError),
}

impl EngineError {
    /// Whether another process already writes to the bucket that this one was to write to.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::SharedStore(SharedStoreError::InUse { .. }))
    }

    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TenantNotFound
            | Self::SubTenantNotFound
            | Self::SubTenantUnknown { .. }
            | Self::SourceNotFound { .. }
            | Self::JobNotFound => ErrorKind::NotFound,
            Self::WebhookTestBusy | Self::TooManyRequests { .. } => ErrorKind::Overloaded,
            Self::CatalogLost { .. } => ErrorKind::Corrupt,
            Self::NoDevice { .. } | Self::SharedStore(_) => ErrorKind::Unavailable,
            Self::TenantExists { .. } | Self::ModeMismatch { .. } | Self::JobNotRetried { .. } => {
                ErrorKind::Conflict
            }
            Self::Forbidden { .. }
            | Self::ModelUnknown { .. }
            | Self::DefaultProtected
            | Self::WebhookUrl { .. }
            | Self::WebhookTenant { .. }
            | Self::NotCopied { .. }
            | Self::Schema(_)
            | Self::Setting(_) => ErrorKind::Invalid,
            Self::Ingest(error) => error.kind(),
            Self::Query(error) => error.kind(),
            Self::Answer(error) => error.kind(),
            Self::Generate(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Collection(error) => error.kind(),
            Self::Embed(error) => error.kind(),
            Self::Rerank(error) => error.kind(),
            Self::Io(error) => error.kind(),
            Self::Archive(error) => error.kind(),
            Self::Backup(error) => error.kind(),
            Self::Picture(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
