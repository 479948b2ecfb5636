//! Errors of operations, as the server sees them: a kind and a message.

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
    /// The tenant does not exist, or the key has no access to it: the answer is the same.
    #[error("tenant_id does not exist or this key has no access to it")]
    TenantNotFound,
    /// The sub-tenant does not exist, or the key has no access to it.
    #[error("sub_tenant_id does not exist or this key has no access to it")]
    SubTenantNotFound,
    /// The key may not do this here.
    #[error("{need}")]
    Forbidden {
        /// The missing permission.
        need: &'static str,
    },
    /// The tenant has made as many requests as it may.
    #[error(
        "the tenant's limit of {max} requests per minute is reached: it has made {used}, and may \
         go on in {wait_seconds} s"
    )]
    TooManyRequests {
        /// The limit.
        max: u64,
        /// Requests that it made in the last minute.
        used: u64,
        /// Seconds until the next one is taken.
        wait_seconds: u64,
    },
    /// No embedding model of the server has this name.
    #[error("embedding_model must name a model of this server: {}", known.join(", "))]
    ModelUnknown {
        /// The names of its models.
        known: Vec<String>,
    },
    /// A tenant of this name exists.
    #[error("tenant {tenant} exists already")]
    TenantExists {
        /// The tenant.
        tenant: TenantId,
    },
    /// The tenant is in another mode.
    #[error(
        "tenant {tenant} is in mode {}, this operation needs mode {}",
        found.name(),
        needed.name()
    )]
    ModeMismatch {
        /// The tenant.
        tenant: TenantId,
        /// Its mode.
        found: TenantMode,
        /// The operation's.
        needed: TenantMode,
    },
    /// `default` stays as long as its tenant.
    #[error("the sub-tenant default cannot be deleted")]
    DefaultProtected,
    /// No such sub-tenant, where one was to be deleted.
    #[error("sub-tenant {sub_tenant} does not exist")]
    SubTenantUnknown {
        /// The sub-tenant.
        sub_tenant: SubTenantId,
    },
    /// No such source.
    #[error("source {source_id} does not exist")]
    SourceNotFound {
        /// The source.
        source_id: SourceId,
    },
    /// No such job, or none that the key reaches.
    #[error("job_id does not exist or this key has no access to it")]
    JobNotFound,
    /// The job cannot be tried again.
    #[error("job {job_id} {problem}")]
    JobNotRetried {
        /// The job.
        job_id: String,
        /// The reason.
        problem: &'static str,
    },
    /// The receiver of a webhook is not one that this server sends to.
    #[error("url is not allowed: {reason}")]
    WebhookUrl {
        /// The rule.
        reason: BlockedReason,
    },
    /// A webhook for a tenant that does not exist.
    #[error("tenants: {tenant} does not exist")]
    WebhookTenant {
        /// The tenant.
        tenant: TenantId,
    },
    /// A test of the webhook, or too many of others, are under way.
    #[error("a test of this webhook is under way, or too many of others are")]
    WebhookTestBusy,
    /// The catalog is missing and cannot be rebuilt without a decision.
    #[error("catalog.sqlite is missing and cannot be rebuilt: {problem}")]
    CatalogLost {
        /// The contradiction, and what the operator can do about it.
        problem: String,
    },
    /// The settings want a GPU and none can be used.
    #[error("LODESTONE_DEVICE is cuda, but no GPU can be used: {reason}")]
    NoDevice {
        /// Why.
        reason: String,
    },
    /// The schema of a new tenant.
    #[error(transparent)]
    Schema(#[from] lodestone_types::schema::SchemaError),
    /// A setting.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// Errors of uploads and changes.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// Errors of searches.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Errors of extractive answers.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// Errors of the generator.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// The model.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The reranker.
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// The disk.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Exports and imports.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Backups.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Pictures of pages.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// The blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Data that were not copied from one place to another.
    #[error("the data are not copied: {problem}")]
    NotCopied {
        /// The rule that is broken.
        problem: String,
    },
    /// The bucket of the data, at the start.
    #[error(transparent)]
    SharedStore(#[from] SharedStoreError),
}

impl EngineError {
    /// Whether another process writes where this one was to.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::SharedStore(SharedStoreError::InUse { .. }))
    }

    /// The kind of error: it says what the caller should do.
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
