//! Errors of uploads and changes.

use crate::ingest::app::AppProblem;
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_embed::EmbedError;
use lodestone_extract::ExtractError;
use lodestone_io::Fullness;
use lodestone_storage::collection::CollectionError;
use lodestone_types::metadata::InvalidMetadata;
use lodestone_types::schema::SchemaError;
use lodestone_types::{ErrorKind, SourceId};

/// The refusal to switch back to a model that is not loaded.
pub(super) const NOT_LOADED: &str = "the model of the previous vectors is not loaded: load it with \
    --previous-model-dir, --further-model-dirs or --model-dir";
/// Advice for a chosen model that is not loaded.
const NAME_IT: &str = "load it with --further-model-dirs, or choose another model with --to";

/// A refused or failed write.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The document cannot be parsed.
    #[error(transparent)]
    Document(#[from] ExtractError),
    /// A record of an application cannot be read.
    #[error(transparent)]
    App(#[from] AppProblem),
    /// A value violates the tenant's schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A metadata map exceeds a limit.
    #[error("{field} {problem}")]
    Metadata {
        /// Name of the map.
        field: &'static str,
        /// The limit.
        problem: InvalidMetadata,
    },
    /// There is no such source in this scope.
    #[error("source {source_id} does not exist")]
    SourceUnknown {
        /// The id.
        source_id: SourceId,
    },
    /// There is no such memory in this scope.
    #[error("memory {memory_id} does not exist")]
    MemoryUnknown {
        /// The id.
        memory_id: SourceId,
    },
    /// The text of a memory cannot be stored.
    #[error("the memory cannot be read: {problem}")]
    MemoryText {
        /// The reason.
        problem: String,
    },
    /// Some chunks do not exist; nothing was changed.
    #[error("{} of the chunk ids do not exist", missing.len())]
    ChunksUnknown {
        /// The ids of the missing chunks, in the order of the request.
        missing: Vec<String>,
    },
    /// A chunk id that was neither given by a client nor derived from a batch.
    #[error("embeddings contains {chunk_id:?}, which is not a chunk id")]
    ChunkIdMalformed {
        /// The id.
        chunk_id: String,
    },
    /// A change of vectors that spans several batches.
    #[error("embeddings must contain chunks of one batch only")]
    SeveralBatches,
    /// A chunk id is already used by a vector of another batch; nothing was stored.
    #[error("chunk id {chunk_id:?} is already used under another file_id")]
    ChunkIdTaken {
        /// The id.
        chunk_id: String,
    },
    /// A vector has another dimension than the tenant's vectors.
    #[error("embeddings have {received} dimensions; this tenant's vectors have {expected}")]
    DimensionMismatch {
        /// The tenant's dimension.
        expected: usize,
        /// The dimension in the request.
        received: usize,
    },
    /// The vectors of the tenant were made by a model that is not loaded.
    #[error(
        "this tenant's vectors were made by another model ({made_by}) than the loaded one \
         ({loaded}): start the server with it in --further-model-dirs, re-embed the tenant, or \
         delete the tenant and upload its sources again"
    )]
    ModelMismatch {
        /// Fingerprint of the model that made them.
        made_by: String,
        /// Fingerprint of the loaded model.
        loaded: String,
    },
    /// A change of model that is refused.
    #[error("{problem}")]
    ReembedRefused {
        /// The reason.
        problem: String,
    },
    /// The change may have been made, entirely or in part, or not at all.
    #[error("the change may have been applied: {cause}")]
    OutcomeUnknown {
        /// The source that the change was about, if it was about one.
        id: Option<SourceId>,
        /// The underlying error.
        cause: String,
    },
    /// The disk is too full for this kind of change.
    #[error("the disk is full ({level:?}): {free_bytes} bytes left")]
    DiskFull {
        /// The level of free space.
        level: Fullness,
        /// Free bytes.
        free_bytes: u64,
    },
    /// The embedding model failed while the caller waited for it.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// An error of the catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An error of the collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
}

impl IngestError {
    /// Adds the id that a change was about to an error that leaves its outcome unknown.
    pub(super) fn about(self, id: &SourceId) -> Self {
        match self {
            Self::Catalog(CatalogError::InDoubt { cause })
            | Self::Collection(CollectionError::InDoubt { cause, .. })
            | Self::OutcomeUnknown { id: None, cause } => {
                Self::OutcomeUnknown { id: Some(id.clone()), cause }
            }
            error => error,
        }
    }

    /// The error if the model chosen for a tenant is not loaded.
    pub(crate) fn chosen_not_loaded(tenant: &Tenant) -> Self {
        let name = tenant.embedding_model.as_deref().unwrap_or_default();
        let problem = format!("the tenant's model {name} is not loaded: {NAME_IT}");
        Self::ReembedRefused { problem }
    }

    /// The error of a step that failed after an earlier one had become durable.
    pub(crate) fn half_done(error: impl std::fmt::Display) -> Self {
        Self::OutcomeUnknown { id: None, cause: error.to_string() }
    }

    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Document(error) => error.kind(),
            Self::App(_)
            | Self::Schema(_)
            | Self::MemoryText { .. }
            | Self::ChunkIdMalformed { .. }
            | Self::SeveralBatches
            | Self::DimensionMismatch { .. } => ErrorKind::Invalid,
            Self::Metadata { problem: InvalidMetadata::TooLarge { .. }, .. } => ErrorKind::TooLarge,
            Self::Metadata { .. } => ErrorKind::Invalid,
            Self::ModelMismatch { .. }
            | Self::ReembedRefused { .. }
            | Self::ChunkIdTaken { .. } => ErrorKind::Conflict,
            Self::OutcomeUnknown { .. } => ErrorKind::Unavailable,
            Self::DiskFull { .. } => ErrorKind::StorageFull,
            Self::SourceUnknown { .. }
            | Self::MemoryUnknown { .. }
            | Self::ChunksUnknown { .. } => ErrorKind::NotFound,
            Self::Embed(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Collection(error) => error.kind(),
        }
    }
}
