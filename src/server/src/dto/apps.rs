//! Records uploaded from other applications (docs/api.md, "Records of applications").
//!
//! An invalid metadata map fails the whole request; anything else fails only its record.

use serde_json::{Value, json};

use crate::dto::inputs::{
    BatchItem, DOCUMENT_METADATA, OTHER_THAN_ID, SUB_TENANT_QUERY, TENANT_METADATA, TENANT_QUERY,
    batch_items, query_scope,
};
use crate::error::ApiError;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Origin, Scope, SourceDetail, limits};

const LINE: Kind = Kind::Text { chars_max: limits::APP_LINE_CHARS_MAX, is_filled: false };
const PROSE: Kind = Kind::Text { chars_max: limits::APP_PROSE_CHARS_MAX, is_filled: false };

static RECORDS: Field = Field::body(
    "sources",
    Kind::Objects {
        item: &[
            &ID, &TITLE, &TYPE, &DESCRIPTION, &NOTE, &URL, &TIMESTAMP, &COLLECTIONS, &META,
            &TENANT_METADATA, &DOCUMENT_METADATA, &CONTENT, &ATTACHMENTS,
        ],
        min: 1,
        max: limits::BATCH_ITEMS_MAX,
    },
    "List of records, which is the entire body.",
)
.required()
.whole();
static ID: Field =
    Field::body("id", Kind::Identifier, "Source id; generated if absent.").or(OTHER_THAN_ID);
static TITLE: Field =
    Field::body("title", LINE, "Title; takes precedence over the document's own.");
static TYPE: Field = Field::body("type", LINE, "Type of the record, any word; `app` if absent.");
static DESCRIPTION: Field =
    Field::body("description", PROSE, "Description that is shown instead of the leading text.");
static NOTE: Field = Field::body("note", PROSE, "Free-form note, stored and returned.");
static URL: Field = Field::body("url", LINE, "URL of the record; it is not fetched.");
static TIMESTAMP: Field =
    Field::body("timestamp", Kind::Moment, "Date of the record, used for recency; now if absent.");
static META: Field =
    Field::body("meta", Kind::Metadata, "Free-form map, stored and returned but not filterable.");
static COLLECTIONS: Field = Field::body(
    "collections",
    Kind::Texts { min: 0, max: limits::APP_COLLECTIONS_MAX },
    "Collections of the record; returned as `source_collection`.",
);

static CONTENT: Field = Field::body(
    "content",
    Kind::Parts {
        members: &[&TEXT, &MARKDOWN, &HTML_BASE64, &CSV_BASE64, &FILES, &LAYOUT],
        is_list: false,
    },
    "Text of the record in one or more formats.",
);
static TEXT: Field =
    Field::body("text", PART, "Plain text; used if `markdown` and `html_base64` are absent.");
static MARKDOWN: Field =
    Field::body("markdown", PART, "Markdown; takes precedence over the others.");
static HTML_BASE64: Field =
    Field::body("html_base64", PART, "Base64-encoded HTML; takes precedence over `text`.");
static CSV_BASE64: Field =
    Field::body("csv_base64", PART, "Base64-encoded CSV, appended to the text.");
static FILES: Field =
    Field::body("files", Kind::Any { schema: list_schema }, "Stored but not interpreted.");
static LAYOUT: Field =
    Field::body("layout", Kind::Any { schema: any_schema }, "Stored but not interpreted.");

static ATTACHMENTS: Field = Field::body(
    "attachments",
    Kind::Parts {
        members: &[
            &ATTACHMENT_ID, &ATTACHMENT_URL, &ATTACHMENT_TITLE, &CONTENT_TYPE, &CONTENT_URL, &MISC,
            &ATTACHMENT_CONTENT,
        ],
        is_list: true,
    },
    "Attachments of the record.",
);
static ATTACHMENT_ID: Field = Field::body("id", STORED, "Stored but not interpreted.");
static ATTACHMENT_URL: Field = Field::body("url", STORED, "URL, stored but not fetched.");
static ATTACHMENT_TITLE: Field =
    Field::body("title", PART, "Heading above the text of the attachment.");
static CONTENT_TYPE: Field = Field::body("content_type", STORED, "Stored but not interpreted.");
static CONTENT_URL: Field = Field::body("content_url", STORED, "URL, stored but not fetched.");
static MISC: Field =
    Field::body("misc", Kind::Any { schema: any_schema }, "Stored but not interpreted.");
static ATTACHMENT_CONTENT: Field =
    Field::body("content", PART, "Text of the attachment, appended to that of the record.");

/// Text that is indexed with the record; its length is limited only by the size of the record.
const PART: Kind = Kind::Text { chars_max: limits::FILE_BYTES_MAX, is_filled: false };
/// Text that is stored with the record, whatever its type.
const STORED: Kind = Kind::Any { schema: text_schema };

fn text_schema() -> Value {
    json!({"type": "string"})
}

fn list_schema() -> Value {
    json!({"type": "array"})
}

fn any_schema() -> Value {
    json!({})
}

/// Input of `POST /upload/upload_app_sources`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadAppSources {
    /// Destination scope.
    pub scope: Scope,
    /// The records in request order.
    pub items: Vec<BatchItem<(Origin, Vec<u8>)>>,
}

impl Request for UploadAppSources {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &RECORDS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let items = batch_items(fields, &RECORDS, record)?;
        Ok(Self { scope, items })
    }
}

/// Reads one record: the attributes that describe it, and the whole record as JSON.
fn record(mut item: Item) -> Result<BatchItem<(Origin, Vec<u8>)>, ApiError> {
    let text = std::mem::take(&mut item.text);
    BatchItem::read(item, &ID, |fields| {
        if text.len() > limits::FILE_BYTES_MAX {
            let message = format!("the record must be at most {} bytes", limits::FILE_BYTES_MAX);
            return (String::new(), Err(ApiError::too_large("content_too_large", message)));
        }
        let origin = origin(fields);
        let title = origin.as_ref().map(|origin| origin.detail.title.clone()).unwrap_or_default();
        (title, origin.map(|origin| (origin, text)))
    })
}

fn origin(fields: &mut Fields) -> Result<Origin, ApiError> {
    let mut text = |field: &'static Field| {
        let text = fields.text(field)?.unwrap_or_default();
        Ok::<_, ApiError>(text.trim().to_owned())
    };
    let detail = SourceDetail {
        title: text(&TITLE)?,
        source_type: text(&TYPE)?,
        description: text(&DESCRIPTION)?,
        note: text(&NOTE)?,
        ..SourceDetail::default()
    };
    let url = text(&URL)?;
    let collections = fields.texts(&COLLECTIONS)?.unwrap_or_default();
    if let Some(long) = collections.iter().find(|name| name.chars().count() > limits::ID_CHARS_MAX)
    {
        let chars = long.chars().count();
        let problem = format!(
            "has a name of {chars} characters; at most {} are allowed",
            limits::ID_CHARS_MAX
        );
        return Err(ApiError::field(
            "invalid_value", COLLECTIONS.location, "collections", &problem,
        ));
    }
    fields.parts(&CONTENT)?;
    fields.parts(&ATTACHMENTS)?;
    let meta = fields.metadata(&META)?;
    let changed_at = fields.moment(&TIMESTAMP)?;
    let detail = SourceDetail { collections, meta, source_time: changed_at, ..detail };
    Ok(Origin { url, changed_at, detail })
}
