//! What restricts a search (API 5.3, 5.6).

use crate::error::ApiError;
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Metadata, SourceId, limits};

const FILTER_DOC: &str = "Filter: equality, lists (any of), $gt, $in and others.";

pub(super) static TENANT_FILTER: Field = Field::body("tenant_metadata", Kind::Filter, FILTER_DOC);
pub(super) static DOCUMENT_FILTER: Field =
    Field::body("document_metadata", Kind::Filter, FILTER_DOC);
pub(super) static SYSTEM_FILTER: Field =
    Field::body("metadata", Kind::Filter, "Filter on source_title, source_type and the like.");
pub(super) static CONTEXT_LIST: Field = Field::body(
    "context_list",
    Kind::Texts { min: 0, max: limits::SOURCE_IDS_MAX },
    "Only these sources; empty: no restriction.",
);

/// The restrictions of a search. The maps are not parsed yet: their grammar is the filter room's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    /// On the map of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// On the map of the document.
    pub document_metadata: Option<Metadata>,
    /// On system keys first.
    pub metadata: Option<Metadata>,
    /// Only these sources. Never empty.
    pub context_list: Option<Vec<SourceId>>,
}

impl Filters {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let context_list = fields.source_ids(&CONTEXT_LIST)?.filter(|list| !list.is_empty());
        Ok(Self {
            tenant_metadata: fields.filter(&TENANT_FILTER)?,
            document_metadata: fields.filter(&DOCUMENT_FILTER)?,
            metadata: fields.filter(&SYSTEM_FILTER)?,
            context_list,
        })
    }
}
