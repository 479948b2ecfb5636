//! Personal memories, stored as sources.
//!
//! A memory is a source of kind [`SourceKind::Memory`] in the scope returned by
//! [`SubTenantId::of_memories`](crate::SubTenantId::of_memories). Its record carries the full text,
//! because chunks overlap and cannot be joined again, and its expiry time, which is filtered on
//! like any other value: an expired memory becomes invisible at once, even before its rows are
//! removed.

use serde_json::Value;

use crate::{Comparison, Condition, Filter, FilterMap, FilterValue};
use crate::{Metadata, SourceId, SourceKind, SourceRecord, Timestamp};

/// Key in `document_metadata` of the expiry time in milliseconds, if there is one.
const EXPIRES_AT: &str = "expires_at";
/// Key in `detail.meta` of the text.
const CONTENT: &str = "content";

/// One personal memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Its id.
    pub id: SourceId,
    /// The remembered text.
    pub content: String,
    /// When the memory was added or last replaced.
    pub created_at: Timestamp,
    /// When the memory expires; `None` for never.
    pub expires_at: Option<Timestamp>,
}

impl Memory {
    /// Reads a memory from its record; `None` for any other source.
    pub fn of(record: &SourceRecord) -> Option<Self> {
        if record.kind != SourceKind::Memory {
            return None;
        }
        let content = record.detail.meta.as_ref()?.get(CONTENT)?.as_str()?.to_owned();
        let expires_at = record.document_metadata.get(EXPIRES_AT);
        Some(Self {
            id: record.id.clone(),
            content,
            created_at: record.uploaded_at,
            expires_at: expires_at.and_then(Value::as_u64).map(Timestamp),
        })
    }

    /// Whether the memory has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Builds the two maps of a memory's record: `document_metadata` and `detail.meta`.
    pub fn maps(content: &str, expires_at: Option<Timestamp>) -> (Metadata, Metadata) {
        let end = expires_at.map(|end| (EXPIRES_AT.to_owned(), end.0.into()));
        let text = (CONTENT.to_owned(), content.into());
        (end.into_iter().collect(), Metadata::from_iter([text]))
    }
}

/// A filter that matches memories that have not expired.
pub fn unexpired(now: Timestamp) -> Filter {
    let is_later = Comparison::Greater(FilterValue::Number(now.0.into()));
    Filter::Or(vec![expires(Comparison::Exists(false)), expires(is_later)])
}

/// A filter that matches expired memories.
pub fn expired(now: Timestamp) -> Filter {
    expires(Comparison::LessOrEqual(FilterValue::Number(now.0.into())))
}

fn expires(comparison: Comparison) -> Filter {
    let path = EXPIRES_AT.to_owned();
    Filter::Is(Condition { map: FilterMap::Document, path, comparison })
}
