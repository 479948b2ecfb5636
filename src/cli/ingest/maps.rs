//! Metadata of a run, which is sent with every item.

use serde_json::{Map, Value};

use super::options::SourceTime;

/// Data sent with every item: its metadata, and the origin of its date.
#[derive(Debug, Default)]
pub struct Maps {
    /// Metadata of the document.
    pub document: Option<Map<String, Value>>,
    /// Values of the tenant's schema.
    pub tenant: Option<Map<String, Value>>,
    /// Origin of the dates of files.
    pub source_time: Option<SourceTime>,
    /// Hash of both maps.
    pub hash: String,
}

impl Maps {
    /// Returns the given maps as members of a request.
    pub fn given(&self) -> Map<String, Value> {
        let maps = [("document_metadata", &self.document), ("tenant_metadata", &self.tenant)];
        let given = maps.into_iter().filter_map(|(name, map)| Some((name, map.as_ref()?)));
        given.map(|(name, map)| (name.to_owned(), map.clone().into())).collect()
    }
}
