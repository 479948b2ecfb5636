//! Input fields shared by many operations.

use std::collections::HashSet;

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::fields::{each, missing};
use crate::request::indexed::place;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Metadata, Scope, SourceId, TenantId, limits};

const TENANT_DOC: &str = "Tenant id.";
const SUB_TENANT_DOC: &str = "Sub-tenant id; absent or empty means `default`.";
const METADATA_DOC: &str =
    "Free-form map, at most 64 KiB and 8 levels deep; keys have at most 128 characters.";

/// Aliases of `file_id` where one source is addressed: all three names are accepted.
pub(super) const OTHER_THAN_FILE_ID: &[&str] = &["source_id", "id"];
/// Aliases of `source_id` where one source is addressed.
pub(super) const OTHER_THAN_SOURCE_ID: &[&str] = &["file_id", "id"];
/// Aliases of `id` where one source is addressed.
pub(super) const OTHER_THAN_ID: &[&str] = &["file_id", "source_id"];
/// Aliases of `source_ids`.
pub(super) const OTHER_THAN_SOURCE_IDS: &[&str] = &["file_ids", "ids"];
/// Aliases of `file_ids`.
pub(super) const OTHER_THAN_FILE_IDS: &[&str] = &["source_ids", "ids"];

pub(super) static TENANT_QUERY: Field =
    Field::query("tenant_id", Kind::Identifier, TENANT_DOC).required();
pub(super) static TENANT_BODY: Field =
    Field::body("tenant_id", Kind::Identifier, TENANT_DOC).required();
pub(super) static TENANT_FORM: Field =
    Field::form("tenant_id", Kind::Identifier, TENANT_DOC).required();
pub(super) static TENANT_OPTIONAL: Field = Field::query("tenant_id", Kind::Identifier, TENANT_DOC);
pub(super) static SUB_TENANT_QUERY: Field =
    Field::query("sub_tenant_id", Kind::Identifier, SUB_TENANT_DOC);
pub(super) static SUB_TENANT_BODY: Field =
    Field::body("sub_tenant_id", Kind::Identifier, SUB_TENANT_DOC);
pub(super) static SUB_TENANT_FORM: Field =
    Field::form("sub_tenant_id", Kind::Identifier, SUB_TENANT_DOC);
pub(super) static FILE_ID_BODY: Field =
    Field::body("file_id", Kind::Identifier, "Source id; generated if absent.")
        .or(OTHER_THAN_FILE_ID);
pub(super) static FILE_ID_FORM: Field =
    Field::form("file_id", Kind::Identifier, "Source id; generated if absent.")
        .or(OTHER_THAN_FILE_ID);
pub(super) static SOURCE_ID_QUERY: Field =
    Field::query("source_id", Kind::Identifier, "Id of the source to replace; created if unknown.")
        .or(OTHER_THAN_SOURCE_ID)
        .required();
pub(super) static TENANT_METADATA: Field =
    Field::body("tenant_metadata", Kind::Metadata, METADATA_DOC);
/// The former name of the document metadata map.
pub(super) const OTHER_THAN_DOCUMENT_METADATA: &[&str] = &["metadata"];
pub(super) static DOCUMENT_METADATA: Field =
    Field::body("document_metadata", Kind::Metadata, METADATA_DOC).or(OTHER_THAN_DOCUMENT_METADATA);
pub(super) static TENANT_METADATA_FORM: Field =
    Field::form("tenant_metadata", Kind::Metadata, METADATA_DOC);
pub(super) static DOCUMENT_METADATA_FORM: Field =
    Field::form("document_metadata", Kind::Metadata, METADATA_DOC).or(OTHER_THAN_DOCUMENT_METADATA);

pub(super) static CONTENT: Field = Field::body(
    "content",
    Kind::Content { bytes_max: limits::TEXT_BYTES_MAX },
    "Text to index; not blank, at most 10 MiB.",
)
.required();

/// One entry of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchItem<T> {
    /// The content of the entry, or the error that fails only this entry.
    pub content: Result<T, ApiError>,
    /// Name of the entry in the response; empty if it is identified by its id alone.
    pub name: String,
    /// Id of the source; generated when `None`.
    pub id: Option<SourceId>,
    /// Values of the tenant's schema; in an update, `None` keeps the stored map.
    pub tenant_metadata: Option<Metadata>,
    /// Metadata of the document; in an update, `None` keeps the stored map.
    pub document_metadata: Option<Metadata>,
}

impl<T> BatchItem<T> {
    /// Reads an entry with its id from the field `id`; `read` extracts name and content from the
    /// other members.
    ///
    /// # Errors
    /// An invalid metadata map, which fails the whole request.
    pub(super) fn read(
        item: Item,
        id: &Field,
        read: impl FnOnce(&mut Fields) -> (String, Result<T, ApiError>),
    ) -> Result<Self, ApiError> {
        let mut fields = match item.fields() {
            Ok(fields) => fields,
            Err(error) => {
                let (name, id) = (String::new(), None);
                let (tenant_metadata, document_metadata) = (None, None);
                let content = Err(error);
                return Ok(Self { content, name, id, tenant_metadata, document_metadata });
            }
        };
        let tenant_metadata = fields.metadata(&TENANT_METADATA)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA)?;
        let id = source_id(&mut fields, id);
        let id = id.and_then(|id| chosen_id(id, document_metadata.as_ref(), Location::Body));
        let (name, content) = read(&mut fields);
        let (id, content) = match id {
            Ok(id) => (id, content),
            Err(error) => (None, Err(error)),
        };
        Ok(Self { content, name, id, tenant_metadata, document_metadata })
    }
}

/// Reads the entries of a batch, whose ids must be distinct.
///
/// # Errors
/// 400 for a wrong number of entries, a repeated id or an invalid metadata map.
pub(super) fn batch_items<T>(
    fields: &mut Fields,
    field: &Field,
    read: impl Fn(Item) -> Result<BatchItem<T>, ApiError>,
) -> Result<Vec<BatchItem<T>>, ApiError> {
    let items = fields.items(field)?.ok_or_else(|| missing(field))?;
    let items = each(field, items, read)?;
    check_distinct(field, items.iter().map(|item| item.id.as_ref()))?;
    Ok(items)
}

/// Reads the scope of an operation that takes its ids in the query string.
pub(super) fn query_scope(fields: &mut Fields) -> Result<Scope, ApiError> {
    fields.scope(&TENANT_QUERY, &SUB_TENANT_QUERY)
}

/// Reads the scope of an operation that takes its ids in the JSON body.
pub(super) fn body_scope(fields: &mut Fields) -> Result<Scope, ApiError> {
    fields.scope(&TENANT_BODY, &SUB_TENANT_BODY)
}

/// Reads a tenant without a sub-tenant.
pub(super) fn tenant(fields: &mut Fields, field: &Field) -> Result<Option<TenantId>, ApiError> {
    fields.tenant(field)
}

/// Reads a source id.
pub(super) fn source_id(fields: &mut Fields, field: &Field) -> Result<Option<SourceId>, ApiError> {
    fields.id(field, SourceId::parse_field)
}

/// Reads a required source id.
pub(super) fn required_source_id(fields: &mut Fields, field: &Field) -> Result<SourceId, ApiError> {
    source_id(fields, field)?.ok_or_else(|| ApiError::internal("a required id was not enforced"))
}

/// Returns the id of an upload: its own, else a non-empty string `document_metadata.file_id`, else
/// none. `location` is where the metadata map was sent.
pub(super) fn chosen_id(
    file_id: Option<SourceId>,
    document_metadata: Option<&Metadata>,
    location: Location,
) -> Result<Option<SourceId>, ApiError> {
    match document_metadata.and_then(|map| map.get("file_id")) {
        Some(Value::String(id)) if file_id.is_none() && !id.is_empty() => {
            let name = "document_metadata.file_id";
            let id = SourceId::parse_field(name, id);
            id.map(Some).map_err(|error| ApiError::from(error).at(location, name))
        }
        _ => Ok(file_id),
    }
}

/// Refuses a batch that repeats an id. The entries of `field` have these ids, or none.
///
/// # Errors
/// `duplicate_id`, naming the id and its second entry.
pub(super) fn check_distinct<'a>(
    field: &Field,
    ids: impl Iterator<Item = Option<&'a SourceId>>,
) -> Result<(), ApiError> {
    let mut seen = HashSet::new();
    for (at, id) in ids.enumerate() {
        if let Some(id) = id.filter(|id| !seen.insert(*id)) {
            let message = format!("the id {id} occurs more than once in the batch");
            let error = ApiError::invalid("duplicate_id", message);
            return Err(error.at(field.location, &place(field, at)));
        }
    }
    Ok(())
}
