//! Metadata maps of a source in responses, without a copy for each of its chunks.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use lodestone_types::{Metadata, SourceRecord};

/// A metadata map of a source; serialized as the map.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceMap {
    /// The metadata of the document.
    Document(Arc<SourceRecord>),
    /// The values of the tenant's schema.
    Tenant(Arc<SourceRecord>),
}

impl Serialize for SourceMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Document(source) => source.document_metadata.serialize(serializer),
            Self::Tenant(source) => source.tenant_metadata.serialize(serializer),
        }
    }
}

impl JsonSchema for SourceMap {
    fn schema_name() -> Cow<'static, str> {
        Metadata::schema_name()
    }

    fn inline_schema() -> bool {
        Metadata::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Metadata::json_schema(generator)
    }
}
