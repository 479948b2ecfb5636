//! Records of applications (API 3.1 #9).
//!
//! Ids and metadata maps that are wrong fail the request; anything else fails its item.

use serde_json::{Value, json};

use crate::dto::inputs::{
    DOCUMENT_METADATA, SUB_TENANT_QUERY, TENANT_METADATA, TENANT_QUERY, check_distinct, chosen_id,
    query_scope, source_id,
};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::json::JsonBody;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Metadata, Origin, Scope, SourceDetail, SourceId, limits};

const LINE: Kind = Kind::Text { chars_max: limits::APP_LINE_CHARS_MAX, is_filled: false };
const PROSE: Kind = Kind::Text { chars_max: limits::APP_PROSE_CHARS_MAX, is_filled: false };

static RECORDS: Field = Field::body(
    "sources",
    Kind::Objects { item: record_schema, min: 1, max: limits::BATCH_ITEMS_MAX },
    "The records: the body itself is this list.",
)
.required()
.whole();
static ID: Field = Field::body("id", Kind::Identifier, "Id of the source; generated when absent.");
static TITLE: Field =
    Field::body("title", LINE, "Title; it takes precedence over the document's own.");
static TYPE: Field =
    Field::body("type", LINE, "Type of the record, a free word; `app` when absent.");
static DESCRIPTION: Field =
    Field::body("description", PROSE, "Description that is shown instead of the leading text.");
static NOTE: Field = Field::body("note", PROSE, "Stored and returned.");
static URL: Field = Field::body("url", LINE, "Address of the record; nothing is fetched from it.");
static TIMESTAMP: Field =
    Field::body("timestamp", Kind::Moment, "Time of origin, used for recency; default now.");
static META: Field = Field::body("meta", Kind::Metadata, "Stored and returned, not filterable.");
static COLLECTIONS: Field = Field::body(
    "collections",
    Kind::Texts { min: 0, max: limits::APP_COLLECTIONS_MAX },
    "Collections of the record; returned as `source_collection`.",
);

fn record_schema() -> Value {
    let (text, map) = (json!({"type": "string"}), json!({"type": "object"}));
    let texts = json!({"type": "array", "items": text});
    json!({
        "type": "object",
        "properties": {
            "id": text, "title": text, "type": text, "description": text, "note": text,
            "url": text, "timestamp": TIMESTAMP.kind.schema(), "collections": texts, "meta": map,
            "tenant_metadata": map, "document_metadata": map,
            "content": {
                "type": "object",
                "properties": {
                    "text": text, "markdown": text, "html_base64": text, "csv_base64": text,
                    "files": {"type": "array"}, "layout": {},
                },
            },
            "attachments": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": text, "url": text, "title": text, "content_type": text,
                    "content_url": text, "misc": {}, "content": text,
                },
            }},
        },
    })
}

/// One record on its way in.
#[derive(Debug, Clone, PartialEq)]
pub struct AppItem {
    /// Its id; generated when `None`.
    pub id: Option<SourceId>,
    /// Its own description and the whole record as JSON; or the error of this item.
    pub record: Result<(Origin, Vec<u8>), ApiError>,
    /// Map of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// Map of the document.
    pub document_metadata: Option<Metadata>,
}

/// `POST /upload/upload_app_sources`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadAppSources {
    /// Destination scope.
    pub scope: Scope,
    /// The records in request order.
    pub items: Vec<AppItem>,
}

impl Request for UploadAppSources {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &RECORDS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let records = fields.objects(&RECORDS)?.ok_or_else(|| missing(&RECORDS))?;
        let items: Vec<AppItem> = records.into_iter().map(item).collect::<Result<_, _>>()?;
        check_distinct(items.iter().filter_map(|item| item.id.as_ref()))?;
        Ok(Self { scope, items })
    }
}

fn item(members: Metadata) -> Result<AppItem, ApiError> {
    let original = serde_json::to_vec(&members).expect("JSON values always print");
    let body = JsonBody { members, vectors: None };
    let mut fields = Fields { body, ..Fields::default() };
    let id = source_id(&mut fields, &ID)?;
    let tenant_metadata = fields.metadata(&TENANT_METADATA)?;
    let document_metadata = fields.metadata(&DOCUMENT_METADATA)?;
    let id = chosen_id(id, document_metadata.as_ref())?;
    let record = match original.len() > limits::FILE_BYTES_MAX {
        true => {
            let message = format!("the record is larger than {} bytes", limits::FILE_BYTES_MAX);
            Err(ApiError::too_large("content_too_large", message))
        }
        false => origin(&mut fields).map(|origin| (origin, original)),
    };
    Ok(AppItem { id, record, tenant_metadata, document_metadata })
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
            "holds a name of {chars} characters, at most {} are allowed",
            limits::ID_CHARS_MAX
        );
        return Err(ApiError::field(
            "invalid_value", COLLECTIONS.location, "collections", &problem,
        ));
    }
    let meta = fields.metadata(&META)?;
    let changed_at = fields.moment(&TIMESTAMP)?;
    Ok(Origin { url, changed_at, detail: SourceDetail { collections, meta, ..detail } })
}
