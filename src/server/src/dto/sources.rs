//! Listing, looking up, deleting and fetching sources (docs/api.md, "Originals" and "Delete").

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{
    OTHER_THAN_FILE_ID, OTHER_THAN_SOURCE_IDS, SUB_TENANT_BODY, SUB_TENANT_QUERY, TENANT_BODY,
    TENANT_QUERY, body_scope, query_scope, required_source_id,
};
use crate::dto::source_maps::SourceMap;
use crate::dto::upload::{Status, Warning};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{JobStatus, Metadata, Scope, SourceId, limits};

pub(super) const STATUS_WORDS: &[&str] = &["queued", "in_progress", "success", "errored"];
const CURSOR_CHARS_MAX: usize = 2048;

static DELETED_IDS: Field = Field::body(
    "source_ids",
    Kind::Texts { min: 1, max: limits::SOURCE_IDS_MAX },
    "Ids of the sources to delete; also accepted as repeated query parameters.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required()
.anywhere();
static LISTED_IDS: Field = Field::body(
    "source_ids",
    Kind::Texts { min: 0, max: limits::SOURCE_IDS_MAX },
    "Ids of the sources to look up.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required();
static LIMIT: Field = Field::query(
    "limit",
    Kind::Integer { min: 1, max: limits::LISTING_PAGE_MAX as u64, default: None },
    "Maximum number of entries per page; all are listed if absent.",
);
pub(super) static CURSOR: Field = Field::query(
    "cursor",
    Kind::Text { chars_max: CURSOR_CHARS_MAX, is_filled: false },
    "`next_cursor` of the previous page.",
);
pub(super) static STATUS: Field = Field::query(
    "status",
    Kind::Choice { words: STATUS_WORDS, default: None, is_exact: true },
    "Only list entries in this state.",
);
static FILE_ID: Field =
    Field::body("file_id", Kind::Identifier, "Source id.").or(OTHER_THAN_FILE_ID).required();
static FILE_TYPE: Field = Field::body(
    "file_type",
    Kind::Text { chars_max: limits::ID_CHARS_MAX, is_filled: false },
    "Accepted without effect.",
)
.without_effect();
/// Longer than any request line, so that every invalid token is refused in the same way.
const TOKEN_CHARS_MAX: usize = 64 << 10;
static TOKEN: Field = Field::path(
    "token",
    Kind::Text { chars_max: TOKEN_CHARS_MAX, is_filled: false },
    "Signed token of `download_url`.",
);
static RETURN_CONTENT: Field = Field::body(
    "return_content",
    Kind::Boolean { default: true },
    "Whether to return the content itself; if false, a signed URL is returned instead.",
);

/// Input of `DELETE /upload/delete_source` and `/delete_source`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteSources {
    /// Scope addressed.
    pub scope: Scope,
    /// The sources to delete; unknown ones are not an error.
    pub source_ids: Vec<SourceId>,
}

impl Request for DeleteSources {
    const FIELDS: &'static [&'static Field] = &[&TENANT_BODY, &SUB_TENANT_BODY, &DELETED_IDS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let source_ids = fields.source_ids(&DELETED_IDS)?.ok_or_else(|| missing(&DELETED_IDS))?;
        Ok(Self { scope, source_ids })
    }
}

/// Input of `GET /list/sources`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListSources {
    /// Scope addressed.
    pub scope: Scope,
    /// Maximum number of entries per page; `None` lists everything.
    pub limit: Option<usize>,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
    /// Restricts the list to sources in this state.
    pub status: Option<JobStatus>,
}

impl Request for ListSources {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &LIMIT, &CURSOR, &STATUS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let limit = fields.integer(&LIMIT)?.map(|limit| limit as usize);
        let cursor = fields.text(&CURSOR)?;
        let status = fields.choice(&STATUS)?.and_then(JobStatus::from_word);
        Ok(Self { scope, limit, cursor, status })
    }
}

/// Input of `POST /list/sources_by_id`.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcesById {
    /// Scope addressed.
    pub scope: Scope,
    /// The sources in request order, without duplicates.
    pub source_ids: Vec<SourceId>,
}

impl Request for SourcesById {
    const FIELDS: &'static [&'static Field] = &[&TENANT_BODY, &SUB_TENANT_BODY, &LISTED_IDS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let given = fields.source_ids(&LISTED_IDS)?.ok_or_else(|| missing(&LISTED_IDS))?;
        let mut seen = std::collections::HashSet::new();
        let source_ids = given.into_iter().filter(|id| seen.insert(id.clone())).collect();
        Ok(Self { scope, source_ids })
    }
}

/// Input of `POST /fetch/fetch_content`.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchContent {
    /// Scope addressed.
    pub scope: Scope,
    /// The source.
    pub file_id: SourceId,
    /// Whether to return the content itself rather than a URL.
    pub return_content: bool,
}

impl Request for FetchContent {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &FILE_ID, &FILE_TYPE, &RETURN_CONTENT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let file_id = required_source_id(fields, &FILE_ID)?;
        let return_content = fields.boolean(&RETURN_CONTENT)?;
        Ok(Self { scope, file_id, return_content })
    }
}

/// Input of `GET /fetch/download/{token}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The signed token that identifies the original and grants access to it.
    pub token: String,
}

impl Request for Download {
    const FIELDS: &'static [&'static Field] = &[&TOKEN];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { token: fields.required_text(&TOKEN)? })
    }
}

/// Response to a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedSources {
    /// Always `true`.
    pub success: bool,
    /// Human-readable message that says if nothing matched.
    pub message: String,
    /// Ids of the deleted sources.
    pub deleted: Vec<String>,
    /// Ids that do not exist.
    pub not_found: Vec<String>,
    /// Length of `deleted`.
    pub deleted_count: usize,
}

/// Source with its metadata and processing state.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Source {
    /// Source id, the same value as `file_id` and `source_id`.
    pub id: String,
    /// Title of the source.
    pub title: String,
    /// Type: `file`, `text` or `embeddings`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Upload time in epoch seconds.
    pub timestamp: String,
    /// Beginning of the text; empty until it is parsed.
    pub description: String,
    /// Metadata of the document.
    pub document_metadata: SourceMap,
    /// Values of the tenant's schema.
    pub tenant_metadata: SourceMap,
    /// Processing state.
    pub status: Status,
    /// Always equal to `status`.
    pub indexing_status: Status,
    /// Processing error code as in `verify_processing`, or empty.
    pub error_code: String,
    /// Processing error message, or empty.
    pub error_message: String,
    /// URL from which it was fetched or that was given on upload; empty if none.
    pub url: String,
    /// Note; empty if none.
    pub note: String,
    /// Media type of the original.
    pub content_type: Option<String>,
    /// Size of the original in bytes.
    pub size_bytes: Option<u64>,
    /// Number of chunks of the visible version.
    pub chunk_count: Option<u64>,
    /// Visible version: `v1`, `v2` and so on.
    pub version: Option<String>,
    /// Time of the last change in epoch seconds.
    pub updated_at: String,
    /// Collections that it belongs to.
    pub source_collection: Vec<String>,
    /// Free-form map, stored and returned but not interpreted.
    pub meta: Option<Metadata>,
    /// Date of the document in epoch seconds; null if none was given.
    pub source_time: Option<String>,
    /// Language tag of the document; null if none was given.
    pub language: Option<String>,
    /// Parts of the visible version that could not be read; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Response of `list/sources`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourceList {
    /// Sources, newest first, then by id.
    pub sources: Vec<Source>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Total number of sources, over all pages.
    pub total: usize,
    /// Cursor of the next page; null on the last page and without `limit`.
    pub next_cursor: Option<String>,
}

/// Response of `list/sources_by_id`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourcesFound {
    /// Sources that exist, in request order.
    pub sources: Vec<Source>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Ids that do not exist, in request order.
    pub not_found: Vec<String>,
}

/// Response of `fetch_content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FetchedContent {
    /// Source id.
    pub file_id: String,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Original as text or base64; empty if not requested.
    pub file_content: String,
    /// `utf-8` or `base64`.
    pub encoding: String,
    /// Media type of the original.
    pub content_type: String,
    /// Size of the original in bytes.
    pub size_bytes: u64,
    /// Signed URL; null if the content is included.
    pub download_url: Option<String>,
    /// Expiry time of the URL in epoch seconds; null if the content is included.
    pub expires_at: Option<String>,
}
