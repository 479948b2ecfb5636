//! Vector stores.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::pages::{AFTER, BEFORE, LIMIT, ORDER, PageQuery};
use super::{CHUNKING, FILE_IDS_DOC, TENANT_HEADER, VECTOR_STORE_ID, attributes};
use crate::error::{ApiError, Location};
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Metadata, SourceId, TenantId, limits};

const TITLE: Kind = Kind::Text { chars_max: limits::ID_CHARS_MAX, is_filled: false };

static NAME: Field = Field::body("name", TITLE, "Display name; the id if absent.");
static NOTES: Field =
    Field::body("metadata", attributes::FLAT, "At most 16 texts, stored and returned.");
static FILE_IDS: Field =
    Field::body("file_ids", Kind::Texts { min: 0, max: limits::FILE_BATCH_MAX }, FILE_IDS_DOC);
static EXPIRES_AFTER: Field = Field::body(
    "expires_after",
    Kind::Json { values_max: 64, bytes_max: 4096, schema: || json!({"type": ["object", "null"]}) },
    "Refused unless null, because vector stores are kept until they are deleted.",
);

/// Refuses requests for a vector store that expires by itself.
fn refuse_expiry(fields: &mut Fields) -> Result<(), ApiError> {
    if fields.json(&EXPIRES_AFTER)?.is_none() {
        return Ok(());
    }
    let problem = "is not supported: vector stores are kept until they are deleted";
    let code = "unsupported_parameter";
    Err(ApiError::field(code, Location::Body, EXPIRES_AFTER.name, problem))
}

/// Input of `POST /v1/vector_stores`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateStore {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// Name of the store; possibly empty.
    pub name: String,
    /// Metadata of the store.
    pub metadata: Metadata,
    /// Files to add.
    pub file_ids: Vec<SourceId>,
}

impl Request for CreateStore {
    const FIELDS: &'static [&'static Field] =
        &[&NAME, &NOTES, &FILE_IDS, &CHUNKING, &EXPIRES_AFTER, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        refuse_expiry(fields)?;
        Ok(Self {
            name: fields.text(&NAME)?.unwrap_or_default(),
            metadata: attributes::read(fields, &NOTES, true)?.unwrap_or_default(),
            file_ids: fields.source_ids(&FILE_IDS)?.unwrap_or_default(),
            tenant: fields.tenant(&TENANT_HEADER)?,
        })
    }
}

/// Input of `GET /v1/vector_stores`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListStores {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// The page requested.
    pub page: PageQuery,
}

impl Request for ListStores {
    const FIELDS: &'static [&'static Field] = &[&LIMIT, &ORDER, &AFTER, &BEFORE, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let page = PageQuery::read(fields)?;
        Ok(Self { tenant: fields.tenant(&TENANT_HEADER)?, page })
    }
}

/// A vector store addressed by a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneStore {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// Id of the store as sent, not validated.
    pub id: String,
}

impl OneStore {
    pub(super) fn of(fields: &mut Fields) -> Result<Self, ApiError> {
        let id = fields.required_text(&VECTOR_STORE_ID)?;
        Ok(Self { tenant: fields.tenant(&TENANT_HEADER)?, id })
    }
}

impl Request for OneStore {
    const FIELDS: &'static [&'static Field] = &[&VECTOR_STORE_ID, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Self::of(fields)
    }
}

/// Input of `POST /v1/vector_stores/{vector_store_id}`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStore {
    /// The vector store.
    pub store: OneStore,
    /// New name.
    pub name: Option<String>,
    /// New metadata.
    pub metadata: Option<Metadata>,
}

impl Request for UpdateStore {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &NAME, &NOTES, &EXPIRES_AFTER, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        refuse_expiry(fields)?;
        let name = fields.text(&NAME)?;
        let metadata = attributes::read(fields, &NOTES, true)?;
        Ok(Self { store: OneStore::of(fields)?, name, metadata })
    }
}

/// Numbers of files by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileCounts {
    /// Queued or being processed.
    pub in_progress: u64,
    /// Processed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// For a batch: files that have been removed. For a vector store always 0.
    pub cancelled: u64,
    /// All files.
    pub total: u64,
}

/// Vector store.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VectorStoreView {
    /// Id, which is the name of the sub-tenant.
    pub id: String,
    /// Always `vector_store`.
    pub object: &'static str,
    /// Creation time in epoch seconds.
    pub created_at: u64,
    /// Name, or the id if it has none.
    pub name: String,
    /// Size of its files in bytes.
    pub usage_bytes: u64,
    /// Numbers of its files.
    pub file_counts: FileCounts,
    /// `in_progress` while any file is, otherwise `completed`.
    pub status: &'static str,
    /// Always null, because vector stores are kept until they are deleted.
    pub expires_after: Option<String>,
    /// Always null.
    pub expires_at: Option<u64>,
    /// Always null.
    pub last_active_at: Option<u64>,
    /// Metadata of the vector store.
    pub metadata: Metadata,
}
