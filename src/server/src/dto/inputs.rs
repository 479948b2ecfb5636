//! Fields that many operations share.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Metadata, Scope, SourceId, TenantId, limits};

const TENANT_DOC: &str = "The tenant.";
const SUB_TENANT_DOC: &str = "Sub-tenant; absent and empty mean `default`.";
const METADATA_DOC: &str = "Free-form map: 64 KiB, depth 8, keys up to 128 characters.";

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
    Field::body("file_id", Kind::Identifier, "Id of the source; generated when absent.");
pub(super) static FILE_ID_FORM: Field =
    Field::form("file_id", Kind::Identifier, "Id of the source; generated when absent.");
pub(super) static SOURCE_ID_QUERY: Field =
    Field::query("source_id", Kind::Identifier, "Source to replace; created when unknown.")
        .required();
pub(super) static TENANT_METADATA: Field =
    Field::body("tenant_metadata", Kind::Metadata, METADATA_DOC);
pub(super) static DOCUMENT_METADATA: Field =
    Field::body("document_metadata", Kind::Metadata, METADATA_DOC);
pub(super) static TENANT_METADATA_FORM: Field =
    Field::form("tenant_metadata", Kind::Metadata, METADATA_DOC);
pub(super) static DOCUMENT_METADATA_FORM: Field =
    Field::form("document_metadata", Kind::Metadata, METADATA_DOC);

pub(super) static CONTENT: Field = Field::body(
    "content",
    Kind::Content { bytes_max: limits::TEXT_BYTES_MAX },
    "The text; not blank, up to 10 MiB.",
)
.required();

/// The schema of a batch item, which is required to have the text `name`.
pub(super) fn item_schema(name: &str) -> Value {
    let map = json!({"type": "object", "additionalProperties": true});
    json!({
        "type": "object",
        "required": [name],
        "properties": {
            (name): {"type": "string"}, "file_id": {"type": "string"},
            "tenant_metadata": map, "document_metadata": map,
        },
    })
}

/// The scope of an operation with its ids in the query string.
pub(super) fn query_scope(fields: &mut Fields) -> Result<Scope, ApiError> {
    fields.scope(&TENANT_QUERY, &SUB_TENANT_QUERY)
}

/// The scope of an operation with its ids in the JSON body.
pub(super) fn body_scope(fields: &mut Fields) -> Result<Scope, ApiError> {
    fields.scope(&TENANT_BODY, &SUB_TENANT_BODY)
}

/// A tenant alone.
pub(super) fn tenant(fields: &mut Fields, field: &Field) -> Result<Option<TenantId>, ApiError> {
    fields.id(field, TenantId::parse_field)
}

/// A source id.
pub(super) fn source_id(fields: &mut Fields, field: &Field) -> Result<Option<SourceId>, ApiError> {
    fields.id(field, SourceId::parse_field)
}

/// A source id that must be there.
pub(super) fn required_source_id(fields: &mut Fields, field: &Field) -> Result<SourceId, ApiError> {
    source_id(fields, field)?.ok_or_else(|| ApiError::internal("a required id was not enforced"))
}

/// The id of an upload: its own, else a non-empty string `document_metadata.file_id`, else none.
pub(super) fn chosen_id(
    file_id: Option<SourceId>,
    document_metadata: Option<&Metadata>,
) -> Result<Option<SourceId>, ApiError> {
    match document_metadata.and_then(|map| map.get("file_id")) {
        Some(Value::String(id)) if file_id.is_none() && !id.is_empty() => {
            Ok(Some(SourceId::parse_field("document_metadata.file_id", id)?))
        }
        _ => Ok(file_id),
    }
}

/// Refuses a batch in which an id occurs twice.
///
/// # Errors
/// `duplicate_id` names the id.
pub(super) fn check_distinct<'a>(ids: impl Iterator<Item = &'a SourceId>) -> Result<(), ApiError> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            let message = format!("the id {id} occurs twice in one batch");
            return Err(ApiError::invalid("duplicate_id", message));
        }
    }
    Ok(())
}
