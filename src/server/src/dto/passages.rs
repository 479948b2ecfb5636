//! The chunks of one source in reading order.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::chunks::{BoundingBox, page_number};
use crate::dto::inputs::{
    OTHER_THAN_FILE_ID, SUB_TENANT_BODY, TENANT_BODY, body_scope, required_source_id,
};
use crate::error::ApiError;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_engine::query::Passage;
use lodestone_types::{Scope, SourceId};

/// Maximum number of chunks per response.
const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;

static FILE_ID: Field =
    Field::body("file_id", Kind::Identifier, "Source id.").or(OTHER_THAN_FILE_ID).required();
static PAGE: Field = Field::body(
    "page",
    Kind::Integer { min: 1, max: u32::MAX as u64, default: None },
    "Only list chunks of this page, slide or sheet, counted from 1.",
);
static OFFSET: Field = Field::body(
    "offset",
    Kind::Integer { min: 0, max: u32::MAX as u64, default: Some(0) },
    "Number of chunks to skip.",
);
static LIMIT: Field = Field::body(
    "limit",
    Kind::Integer { min: 1, max: LIMIT_MAX, default: Some(LIMIT_DEFAULT) },
    "Maximum number of chunks; fewer are returned if their text exceeds 1 MiB.",
);

/// Input of `POST /list/chunks`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListChunks {
    /// Scope addressed.
    pub scope: Scope,
    /// The source.
    pub file_id: SourceId,
    /// Restricts the list to this page, slide or sheet.
    pub page: Option<u32>,
    /// Number of chunks to skip.
    pub offset: usize,
    /// Maximum number of chunks.
    pub limit: usize,
}

impl Request for ListChunks {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &FILE_ID, &PAGE, &OFFSET, &LIMIT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let file_id = required_source_id(fields, &FILE_ID)?;
        let page = fields.integer(&PAGE)?.map(|page| page as u32);
        let offset = fields.integer(&OFFSET)?.unwrap_or(0) as usize;
        let limit = fields.integer(&LIMIT)?.unwrap_or(LIMIT_DEFAULT) as usize;
        Ok(Self { scope, file_id, page, offset, limit })
    }
}

/// Chunk of a source listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedChunk {
    /// Chunk id, as in search results.
    pub chunk_uuid: String,
    /// Position in the source, from 0.
    pub index: u32,
    /// Text of the chunk.
    pub chunk_content: String,
    /// Headings above it and the header row of its table, one per line; empty if there are none.
    pub headings: String,
    /// Page, slide or sheet, if the format has them.
    pub page: Option<u32>,
    /// Start position in the text of the document, in Unicode characters.
    pub start: usize,
    /// Rectangles, one per page; empty if the format has no fixed pages.
    pub boxes: Vec<BoundingBox>,
}

impl From<Passage> for ListedChunk {
    fn from(passage: Passage) -> Self {
        Self {
            page: page_number(&passage.place),
            start: passage.place.document_start as usize,
            boxes: passage.boxes.iter().map(BoundingBox::from).collect(),
            chunk_uuid: passage.uuid,
            index: passage.index,
            chunk_content: passage.text,
            headings: passage.headings,
        }
    }
}

/// Response of `list/chunks`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChunkList {
    /// Source id.
    pub file_id: String,
    /// Title of the source.
    pub title: String,
    /// Version of the source: `v1`, `v2` and so on. Offsets apply only within one version.
    pub version: String,
    /// The chunks in reading order.
    pub chunks: Vec<ListedChunk>,
    /// Total number of chunks of the source or of the page.
    pub total: usize,
    /// `offset` of the next chunks; null at the end.
    pub next_offset: Option<usize>,
    /// Always `true`.
    pub success: bool,
}
