//! Files of vector stores, individually and in batches.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::pages::{AFTER, BEFORE, LIMIT, ORDER, PageQuery};
use super::vector_stores::{FileCounts, OneStore};
use super::{
    BATCH_ID, CHUNKING, FILE_ID, FILE_IDS_DOC, TENANT_HEADER, VECTOR_STORE_ID, attributes,
};
use crate::error::{ApiError, Location};
use crate::request::fields::{each, missing};
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Metadata, SourceId, limits};

static TAKEN_FILE: Field = Field::body("file_id", Kind::Identifier, "File id.").required();
static ATTRIBUTES: Field = Field::body(
    "attributes",
    attributes::FLAT,
    "At most 16 texts, numbers or booleans, by which searches can filter.",
);
static FILTER: Field = Field::query(
    "filter",
    Kind::Choice {
        words: &["in_progress", "completed", "failed", "cancelled"],
        default: None,
        is_exact: true,
    },
    "Only list files in this state.",
);
static FILE_IDS: Field =
    Field::body("file_ids", Kind::Texts { min: 1, max: limits::FILE_BATCH_MAX }, FILE_IDS_DOC);
static FILES: Field = Field::body(
    "files",
    Kind::Objects {
        item: &[&TAKEN_FILE, &ATTRIBUTES, &CHUNKING],
        min: 1,
        max: limits::FILE_BATCH_MAX,
    },
    "Files with individual attributes, instead of `file_ids`.",
);
static PART: Field = Field::query(
    "page",
    Kind::Integer { min: 0, max: u32::MAX as u64, default: Some(0) },
    "`next_page` of the previous response.",
);

/// A file to add, with its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenFile {
    /// Id of the file.
    pub file_id: SourceId,
    /// Its attributes.
    pub attributes: Metadata,
}

fn taken_file(fields: &mut Fields) -> Result<TakenFile, ApiError> {
    let file_id = fields.id(&TAKEN_FILE, SourceId::parse_field)?;
    let file_id = file_id.ok_or_else(|| missing(&TAKEN_FILE))?;
    let attributes = attributes::read(fields, &ATTRIBUTES, false)?.unwrap_or_default();
    Ok(TakenFile { file_id, attributes })
}

/// Input of `POST /v1/vector_stores/{vector_store_id}/files`.
#[derive(Debug, Clone, PartialEq)]
pub struct AttachFile {
    /// The vector store.
    pub store: OneStore,
    /// The file to add.
    pub file: TakenFile,
}

impl Request for AttachFile {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &TAKEN_FILE, &ATTRIBUTES, &CHUNKING, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let file = taken_file(fields)?;
        Ok(Self { store: OneStore::of(fields)?, file })
    }
}

/// Input of `GET /v1/vector_stores/{vector_store_id}/files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListStoreFiles {
    /// The vector store.
    pub store: OneStore,
    /// Restricts the list to files in this state.
    pub filter: Option<&'static str>,
    /// The page requested.
    pub page: PageQuery,
}

impl Request for ListStoreFiles {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &FILTER, &LIMIT, &ORDER, &AFTER, &BEFORE, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let (filter, page) = (fields.choice(&FILTER)?, PageQuery::read(fields)?);
        Ok(Self { store: OneStore::of(fields)?, filter, page })
    }
}

/// A file of a vector store, addressed by a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneStoreFile {
    /// The vector store.
    pub store: OneStore,
    /// Id of the file as sent, not validated.
    pub file_id: String,
}

impl Request for OneStoreFile {
    const FIELDS: &'static [&'static Field] = &[&VECTOR_STORE_ID, &FILE_ID, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let file_id = fields.required_text(&FILE_ID)?;
        Ok(Self { store: OneStore::of(fields)?, file_id })
    }
}

/// Input of `GET /v1/vector_stores/{vector_store_id}/files/{file_id}/content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFileContent {
    /// The file.
    pub file: OneStoreFile,
    /// Number of text pieces to skip.
    pub page: usize,
}

impl Request for StoreFileContent {
    const FIELDS: &'static [&'static Field] = &[&VECTOR_STORE_ID, &FILE_ID, &PART, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let page = fields.integer(&PART)?.unwrap_or_default() as usize;
        Ok(Self { file: OneStoreFile::read(fields)?, page })
    }
}

/// Input of `POST /v1/vector_stores/{vector_store_id}/files/{file_id}`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStoreFile {
    /// The file.
    pub file: OneStoreFile,
    /// New attributes of the file; `None` keeps them.
    pub attributes: Option<Metadata>,
}

impl Request for UpdateStoreFile {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &FILE_ID, &ATTRIBUTES, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let attributes = attributes::read(fields, &ATTRIBUTES, false)?;
        Ok(Self { file: OneStoreFile::read(fields)?, attributes })
    }
}

/// Input of `POST /v1/vector_stores/{vector_store_id}/file_batches`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateBatch {
    /// The vector store.
    pub store: OneStore,
    /// The files to add.
    pub files: Vec<TakenFile>,
}

impl Request for CreateBatch {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &FILE_IDS, &FILES, &ATTRIBUTES, &CHUNKING, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let ids = fields.source_ids(&FILE_IDS)?;
        let attributes = attributes::read(fields, &ATTRIBUTES, false)?.unwrap_or_default();
        let mut files: Vec<TakenFile> = match (ids, fields.items(&FILES)?) {
            (Some(_), Some(_)) => {
                let problem = "and file_ids are mutually exclusive";
                let code = "conflicting_values";
                return Err(ApiError::field(code, Location::Body, FILES.name, problem));
            }
            (None, None) => return Err(missing(&FILE_IDS)),
            (Some(ids), None) => ids
                .into_iter()
                .map(|file_id| TakenFile { file_id, attributes: attributes.clone() })
                .collect(),
            (None, Some(items)) => each(&FILES, items, |item| taken_file(&mut item.fields()?))?,
        };
        // A file can be in a batch only once.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.file_id.clone()));
        Ok(Self { store: OneStore::of(fields)?, files })
    }
}

/// A batch addressed by a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneBatch {
    /// The vector store.
    pub store: OneStore,
    /// Id of the batch as sent, not validated.
    pub id: String,
}

impl Request for OneBatch {
    const FIELDS: &'static [&'static Field] = &[&VECTOR_STORE_ID, &BATCH_ID, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let id = fields.required_text(&BATCH_ID)?;
        Ok(Self { store: OneStore::of(fields)?, id })
    }
}

/// Input of `GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBatchFiles {
    /// The batch.
    pub batch: OneBatch,
    /// Restricts the list to files in this state.
    pub filter: Option<&'static str>,
    /// The page requested.
    pub page: PageQuery,
}

impl Request for ListBatchFiles {
    const FIELDS: &'static [&'static Field] =
        &[&VECTOR_STORE_ID, &BATCH_ID, &FILTER, &LIMIT, &ORDER, &AFTER, &BEFORE, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let (filter, page) = (fields.choice(&FILTER)?, PageQuery::read(fields)?);
        Ok(Self { batch: OneBatch::read(fields)?, filter, page })
    }
}

/// Reason why a file could not be processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastError {
    /// `unsupported_file`, `invalid_file` or `server_error`.
    pub code: &'static str,
    /// Error message.
    pub message: String,
}

/// Sizes of the chunks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChunkingView {
    /// Always `static`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Chunk sizes.
    #[serde(rename = "static")]
    pub sizes: ChunkSizesView,
}

/// Chunk sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChunkSizesView {
    /// Maximum size of a chunk.
    pub max_chunk_size_tokens: usize,
    /// Maximum overlap of adjacent chunks.
    pub chunk_overlap_tokens: usize,
}

impl ChunkingView {
    /// Returns the chunk sizes that the server uses.
    pub fn own() -> Self {
        let sizes = ChunkSizesView {
            max_chunk_size_tokens: limits::CHUNK_TOKENS,
            chunk_overlap_tokens: limits::CHUNK_OVERLAP_TOKENS,
        };
        Self { kind: "static", sizes }
    }
}

/// File of a vector store.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoreFileView {
    /// Id of the file, else of the source.
    pub id: String,
    /// Always `vector_store.file`.
    pub object: &'static str,
    /// Size of its original in bytes.
    pub usage_bytes: u64,
    /// Time in epoch seconds at which it was added.
    pub created_at: u64,
    /// Vector store id.
    pub vector_store_id: String,
    /// `in_progress`, `completed`, `failed` or, in a batch, `cancelled`.
    pub status: &'static str,
    /// Error, if it failed; otherwise null.
    pub last_error: Option<LastError>,
    /// Sizes of its chunks, independent of the request.
    pub chunking_strategy: ChunkingView,
    /// Metadata values that are not nested.
    pub attributes: Metadata,
}

/// Batch of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileBatchView {
    /// Batch id.
    pub id: String,
    /// Always `vector_store.files_batch`.
    pub object: &'static str,
    /// Creation time in epoch seconds.
    pub created_at: u64,
    /// Vector store id.
    pub vector_store_id: String,
    /// `in_progress` while any file is; `cancelled` once it was cancelled; `failed` if all files
    /// failed; otherwise `completed`.
    pub status: &'static str,
    /// Numbers of its files.
    pub file_counts: FileCounts,
}

/// Piece of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextPiece {
    /// Always `text`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Text of the piece.
    pub text: String,
}

impl TextPiece {
    /// Creates a piece of text.
    pub fn new(text: String) -> Self {
        Self { kind: "text", text }
    }
}

/// Text of a file, in the chunks that searches find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreFileText {
    /// Always `vector_store.file_content.page`.
    pub object: &'static str,
    /// Chunks in order; adjacent ones may overlap.
    pub data: Vec<TextPiece>,
    /// Whether there are more than fit into one response.
    pub has_more: bool,
    /// `page` of the next chunks; null at the end.
    pub next_page: Option<String>,
}

/// The JSON schema of a requested chunking strategy, which has no effect.
pub(super) fn chunking_schema() -> serde_json::Value {
    json!({"type": "object", "additionalProperties": true})
}
