//! Filters of searches (docs/api.md, "Filters").

use crate::error::ApiError;
use crate::request::{Field, Fields, Kind};
use lodestone_engine::EngineError;
use lodestone_engine::query::QueryError;
use lodestone_storage::filter::{self, RequestFilter};
use lodestone_types::limits;

const FILTER_DOC: &str =
    "Metadata filter: equality, lists (any of at most 1,000 values), $gt, $in and others.";

pub(super) static TENANT_FILTER: Field = Field::body("tenant_metadata", Kind::Filter, FILTER_DOC);
pub(super) static DOCUMENT_FILTER: Field =
    Field::body("document_metadata", Kind::Filter, FILTER_DOC);
pub(super) static SYSTEM_FILTER: Field = Field::body(
    "metadata",
    Kind::Filter,
    "Filter on source_title, source_type and other attributes of sources.",
);
pub(super) static CONTEXT_LIST: Field = Field::body(
    "context_list",
    Kind::Texts { min: 0, max: limits::SOURCE_IDS_MAX },
    "Ids of the sources to search; all sources if empty.",
)
.or(&["source_ids", "file_ids", "ids"]);

/// Parses the filter maps of a search and its `context_list`. An invalid filter is a 400 whether or
/// not the tenant exists; the tenant's schema is checked when the search runs.
pub(super) fn read_filter(fields: &mut Fields) -> Result<RequestFilter, ApiError> {
    let sources = fields.source_ids(&CONTEXT_LIST)?.filter(|list| !list.is_empty());
    let tenant = fields.filter(&TENANT_FILTER)?;
    let document = fields.filter(&DOCUMENT_FILTER)?;
    let system = fields.filter(&SYSTEM_FILTER)?;
    let parsed = filter::parse(tenant.as_ref(), document.as_ref(), system.as_ref());
    let parsed = parsed.map_err(|error| EngineError::from(QueryError::Filter(error)))?;
    Ok(match sources {
        Some(sources) => parsed.over_sources(&sources),
        None => parsed,
    })
}
