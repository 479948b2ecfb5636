//! Batches of documents and texts (docs/api.md, "Batches").
//!
//! An error of the request as a whole (counts, metadata, a repeated id) fails it here. An error of
//! one item (empty file, blank text, wrong type, bad id) is kept with that item.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::dto::given::{
    self, LANGUAGE_BODY, LANGUAGES, SOURCE_TIME_BODY, SOURCE_TIMES, TITLE_BODY, TITLES, URL_BODY,
    URLS,
};
use crate::dto::inputs::{
    BatchItem, CONTENT, DOCUMENT_METADATA, FILE_ID_BODY, OTHER_THAN_DOCUMENT_METADATA,
    OTHER_THAN_FILE_IDS, OTHER_THAN_SOURCE_IDS, SUB_TENANT_QUERY, TENANT_METADATA, TENANT_QUERY,
    batch_items, check_distinct, chosen_id, query_scope,
};
use crate::dto::upload::Status;
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request, UploadedFile};
use lodestone_types::{Metadata, Origin, Scope, SourceId, limits};

const IDS: Kind = Kind::Texts { min: 0, max: limits::BATCH_ITEMS_MAX };
const BATCH_METADATA_DOC: &str = "One map for all files, or a list with one map per file.";

static FILES: Field =
    Field::form("files", Kind::Files, "Document files, at most 512 MiB in total.").required();
static FILE_IDS: Field = Field::form(
    "file_ids",
    IDS,
    "One id per file, as a JSON array or repeated parts; an empty one is replaced by a generated \
     id.",
)
.or(OTHER_THAN_FILE_IDS);
static SOURCE_IDS: Field =
    Field::form("source_ids", IDS, "One id per file, as a JSON array or repeated parts.")
        .or(OTHER_THAN_SOURCE_IDS)
        .required();
static TENANT_METADATA_OF_ITEMS: Field =
    Field::form("tenant_metadata", Kind::MetadataOrList, BATCH_METADATA_DOC);
static DOCUMENT_METADATA_OF_ITEMS: Field =
    Field::form("document_metadata", Kind::MetadataOrList, BATCH_METADATA_DOC)
        .or(OTHER_THAN_DOCUMENT_METADATA);
static ITEMS: Field = Field::body(
    "items",
    Kind::Objects {
        item: &[
            &CONTENT, &FILE_ID_BODY, &TENANT_METADATA, &DOCUMENT_METADATA, &TITLE_BODY, &URL_BODY,
            &SOURCE_TIME_BODY, &LANGUAGE_BODY,
        ],
        min: 1,
        max: limits::BATCH_ITEMS_MAX,
    },
    "Texts to index.",
)
.required();

/// One file of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct FileItem {
    /// The file; if it is empty, only this item fails.
    pub file: UploadedFile,
    /// Its id, generated when `None` (never in an update), or the error of this item.
    pub id: Result<Option<SourceId>, ApiError>,
    /// Values of the tenant's schema; in an update, `None` keeps the stored map.
    pub tenant_metadata: Option<Metadata>,
    /// Metadata of the document; in an update, `None` keeps the stored map.
    pub document_metadata: Option<Metadata>,
    /// Title, address, date and language; in an update, absent ones keep their stored values.
    pub origin: Origin,
}

/// Input of `POST /upload/batch_upload`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchUpload {
    /// Destination scope.
    pub scope: Scope,
    /// The files in request order.
    pub items: Vec<FileItem>,
}

impl Request for BatchUpload {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &SUB_TENANT_QUERY, &FILES, &FILE_IDS, &TENANT_METADATA_OF_ITEMS,
        &DOCUMENT_METADATA_OF_ITEMS, &TITLES, &URLS, &SOURCE_TIMES, &LANGUAGES,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let ids = item_ids(fields, &FILE_IDS)?;
        let items = file_items(fields, ids, &FILE_IDS, true)?;
        Ok(Self { scope, items })
    }
}

/// Input of `PATCH /upload/batch_update`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchUpdate {
    /// Scope addressed.
    pub scope: Scope,
    /// The files in request order, each with its id.
    pub items: Vec<FileItem>,
}

impl Request for BatchUpdate {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &SUB_TENANT_QUERY, &FILES, &SOURCE_IDS, &TENANT_METADATA_OF_ITEMS,
        &DOCUMENT_METADATA_OF_ITEMS, &TITLES, &URLS, &SOURCE_TIMES, &LANGUAGES,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let ids = item_ids(fields, &SOURCE_IDS)?.ok_or_else(|| missing(&SOURCE_IDS))?;
        let items = file_items(fields, Some(ids), &SOURCE_IDS, false)?;
        if items.iter().any(|item| item.id == Ok(None)) {
            let problem = "must name a source for each file";
            let reason = "count_mismatch";
            return Err(ApiError::field(reason, Location::Form, "source_ids", problem));
        }
        Ok(Self { scope, items })
    }
}

/// Ids of the files, each with its own error.
type ItemIds = Vec<Result<Option<SourceId>, ApiError>>;

/// Reads the ids from form parts: one JSON array, or one part per id. `None` if there are no such
/// parts.
fn item_ids(fields: &mut Fields, field: &'static Field) -> Result<Option<ItemIds>, ApiError> {
    let parts = fields.form_texts(field)?;
    let values: Vec<Value> = match parts.as_slice() {
        [] => return Ok(None),
        [array] if array.trim_start().starts_with('[') => fields.values(field, array)?,
        // A single empty or null part is how form clients send "none".
        [none] if matches!(none.trim(), "" | "null") => return Ok(None),
        _ => parts.into_iter().map(Value::String).collect(),
    };
    let wrong = |error: ApiError| error.at(Location::Form, field.name);
    let id = |value| match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => {
            let id = SourceId::parse_field(field.name, &text);
            id.map(Some).map_err(|error| wrong(error.into()))
        }
        _ => {
            let message = format!("{} must contain only strings", field.name);
            Err(wrong(ApiError::invalid("invalid_value", message)))
        }
    };
    Ok(Some(values.into_iter().map(id).collect()))
}

fn file_items(
    fields: &mut Fields,
    ids: Option<ItemIds>,
    ids_field: &'static Field,
    is_new: bool,
) -> Result<Vec<FileItem>, ApiError> {
    let files = fields.files(&FILES)?;
    if files.is_empty() {
        return Err(missing(&FILES));
    }
    let ids = ids.unwrap_or_else(|| vec![Ok(None); files.len()]);
    if ids.len() != files.len() {
        let problem = format!("has {} entries for {} files", ids.len(), files.len());
        let name = ids_field.name;
        return Err(ApiError::field("count_mismatch", Location::Form, name, &problem));
    }
    let tenant_maps = fields.metadata_of_items(&TENANT_METADATA_OF_ITEMS, files.len())?;
    let document_maps = fields.metadata_of_items(&DOCUMENT_METADATA_OF_ITEMS, files.len())?;
    let origins = given::origins_of_files(fields, files.len())?;
    let maps = tenant_maps.into_iter().zip(document_maps);
    let mut items = Vec::with_capacity(files.len());
    for (((file, id), (tenant_metadata, document_metadata)), origin) in
        files.into_iter().zip(ids).zip(maps).zip(origins)
    {
        let id = match is_new {
            _ if file.is_too_large => Err(UploadedFile::too_large(&FILES)),
            true => id.and_then(|id| chosen_id(id, document_metadata.as_ref(), Location::Form)),
            false => id,
        };
        let (id, mut origin) = match origin {
            Ok(origin) => (id, origin),
            Err(error) => (id.and(Err(error)), Origin::default()),
        };
        origin.detail.keeps = !is_new;
        items.push(FileItem { file, id, tenant_metadata, document_metadata, origin });
    }
    check_distinct(ids_field, items.iter().map(|item| item.id.as_ref().ok()?.as_ref()))?;
    Ok(items)
}

/// Input of `POST /upload/batch_upload_text`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchUploadText {
    /// Destination scope.
    pub scope: Scope,
    /// The texts in request order.
    pub items: Vec<BatchItem<(Origin, String)>>,
}

impl Request for BatchUploadText {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &ITEMS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let items = batch_items(fields, &ITEMS, |item| {
            BatchItem::read(item, &FILE_ID_BODY, |fields| {
                let content = fields.required_text(&CONTENT);
                let origin = given::origin(fields, &given::BODY);
                (String::new(), content.and_then(|content| Ok((origin?, content))))
            })
        })?;
        Ok(Self { scope, items })
    }
}

/// Accepted item of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UploadedItem {
    /// Source id.
    pub file_id: String,
    /// File name, or the id of a text.
    pub filename: String,
    /// Processing state.
    pub status: Status,
    /// Whether an existing source is replaced.
    pub overwritten: bool,
}

/// Refused item of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedItem {
    /// Position in the request, from 0.
    pub index: usize,
    /// File name, or the id of a text.
    pub filename: String,
    /// As in an error response.
    pub error: String,
    /// As in an error response.
    pub error_code: String,
    /// As in an error response.
    pub reason: String,
    /// As in an error response.
    pub message: String,
}

impl FailedItem {
    /// Records that the item at `index` failed with `error`.
    pub fn new(index: usize, filename: impl Into<String>, error: &ApiError) -> Self {
        let (_, title, error_code) = error.condition().row();
        Self {
            index,
            filename: filename.into(),
            error: title.into(),
            error_code: error_code.into(),
            reason: error.reason().into(),
            message: error.message().into(),
        }
    }
}

/// Response to a batch request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BatchResult {
    /// Accepted items in request order.
    pub uploaded: Vec<UploadedItem>,
    /// Human-readable message.
    pub message: String,
    /// Whether all items were accepted.
    pub success: bool,
    /// Refused items in request order.
    pub failed: Vec<FailedItem>,
    /// Length of `uploaded`.
    pub uploaded_count: usize,
    /// Length of `failed`.
    pub failed_count: usize,
}

impl BatchResult {
    /// Builds the response, whose `success` is true only if no item failed.
    ///
    /// # Errors
    /// 400 with the member `failed` if no item was accepted.
    pub fn reply(
        uploaded: Vec<UploadedItem>,
        failed: Vec<FailedItem>,
    ) -> Result<Json<Self>, ApiError> {
        let (uploaded_count, failed_count) = (uploaded.len(), failed.len());
        if uploaded_count == 0 {
            let first = failed.first().map_or("the batch is empty", |item| item.message.as_str());
            let message = format!("all items were rejected; the first: {first}");
            let failed = serde_json::to_value(&failed).unwrap_or_default();
            return Err(ApiError::invalid("batch_failed", message).with_member("failed", failed));
        }
        let success = failed_count == 0;
        let message = match success {
            true => format!("{uploaded_count} items accepted for processing"),
            false => format!("{uploaded_count} items accepted, {failed_count} rejected"),
        };
        let result = Self { uploaded, message, success, failed, uploaded_count, failed_count };
        Ok(Json::new(result))
    }
}
