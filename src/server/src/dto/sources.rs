//! Listing, looking up, deleting and fetching sources (docs/api.md, "Originals" and "Delete").

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{
    OTHER_THAN_FILE_ID, OTHER_THAN_SOURCE_IDS, SUB_TENANT_BODY, SUB_TENANT_QUERY, TENANT_BODY,
    TENANT_QUERY, body_scope, query_scope, required_source_id,
};
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
    "Sources to delete; also as repeated query parameters.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required()
.anywhere();
static LISTED_IDS: Field = Field::body(
    "source_ids",
    Kind::Texts { min: 0, max: limits::SOURCE_IDS_MAX },
    "Sources to look up.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required();
static LIMIT: Field = Field::query(
    "limit",
    Kind::Integer { min: 1, max: limits::LISTING_PAGE_MAX as u64, default: None },
    "Entries per page; without it everything is listed.",
);
pub(super) static CURSOR: Field = Field::query(
    "cursor",
    Kind::Text { chars_max: CURSOR_CHARS_MAX, is_filled: false },
    "`next_cursor` of the previous page.",
);
pub(super) static STATUS: Field = Field::query(
    "status",
    Kind::Choice { words: STATUS_WORDS, default: None, is_exact: true },
    "List only entries in this state.",
);
static FILE_ID: Field =
    Field::body("file_id", Kind::Identifier, "The source.").or(OTHER_THAN_FILE_ID).required();
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
    "Whether the content itself is wanted; false gives a signed URL.",
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

/// Answer to a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedSources {
    /// Always true.
    pub success: bool,
    /// Says so when nothing matched.
    pub message: String,
    /// Ids that were there.
    pub deleted: Vec<String>,
    /// Ids that were not.
    pub not_found: Vec<String>,
    /// Length of `deleted`.
    pub deleted_count: usize,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Source {
    /// Same value as `file_id` and `source_id`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// `file`, `text` or `embeddings`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Upload time, epoch seconds.
    pub timestamp: String,
    /// Leading text; empty until parsed.
    pub description: String,
    /// Map of the document.
    pub document_metadata: Metadata,
    /// Map of the tenant's schema.
    pub tenant_metadata: Metadata,
    /// State of processing.
    pub status: Status,
    /// Always equal to `status`.
    pub indexing_status: Status,
    /// Error code of processing (as `verify_processing` gives it), or empty.
    pub error_code: String,
    /// The error of processing in words, or empty.
    pub error_message: String,
    /// Address that it was fetched from or that was given with it; empty where there is none.
    pub url: String,
    /// A note; empty when none.
    pub note: String,
    /// Media type of the original.
    pub content_type: Option<String>,
    /// Bytes of the original.
    pub size_bytes: Option<u64>,
    /// Chunks of the visible version.
    pub chunk_count: Option<u64>,
    /// Visible version: `v1`, `v2` and so on.
    pub version: Option<String>,
    /// Last change, epoch seconds.
    pub updated_at: String,
    /// Collections it belongs to.
    pub source_collection: Vec<String>,
    /// Kept and returned, not interpreted.
    pub meta: Option<Metadata>,
    /// Date of the document, epoch seconds; null where none was given.
    pub source_time: Option<String>,
    /// Language tag of the document; null where none was given.
    pub language: Option<String>,
    /// Parts of the visible version that were not read; absent where all of it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Answer to `list/sources`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourceList {
    /// Newest first, then by id.
    pub sources: Vec<Source>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
    /// Sources of the whole listing.
    pub total: usize,
    /// Cursor of the next page; null on the last page and without `limit`.
    pub next_cursor: Option<String>,
}

/// Answer to `list/sources_by_id`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourcesFound {
    /// Known ones in request order.
    pub sources: Vec<Source>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
    /// Unknown ids in request order.
    pub not_found: Vec<String>,
}

/// Answer to `fetch_content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FetchedContent {
    /// Id of the source.
    pub file_id: String,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
    /// The original as text or base64; empty when not asked for.
    pub file_content: String,
    /// `utf-8` or `base64`.
    pub encoding: String,
    /// Media type of the original.
    pub content_type: String,
    /// Bytes of the original.
    pub size_bytes: u64,
    /// Signed URL; null where the content is included.
    pub download_url: Option<String>,
    /// Time at which the URL expires, epoch seconds; null where the content is included.
    pub expires_at: Option<String>,
}
