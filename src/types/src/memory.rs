//! Personal memories (API 3.7, 4.8), as sources.
//!
//! A memory is a source of kind [`SourceKind::Memory`] in the scope that
//! [`SubTenantId::of_memories`](crate::SubTenantId::of_memories) gives. Its record carries the
//! whole text, because chunks overlap and cannot be joined again, and the time of its expiry, which
//! is filtered for like any value: an expired memory is invisible from that time on, even before
//! its rows are removed.

use serde_json::Value;

use crate::{Comparison, Condition, Filter, FilterMap, FilterValue};
use crate::{Metadata, SourceId, SourceKind, SourceRecord, Timestamp};

/// In `document_metadata`: the moment of its end in milliseconds, where there is one.
const EXPIRES_AT: &str = "expires_at";
/// In `detail.meta`: the text.
const CONTENT: &str = "content";

/// One memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Its id.
    pub id: SourceId,
    /// The remembered text.
    pub content: String,
    /// When it was added, or last replaced.
    pub created_at: Timestamp,
    /// When it ends; `None`: never.
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

    /// Whether its end has come.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// The maps of a memory in its record: `document_metadata` and `detail.meta`.
    pub fn maps(content: &str, expires_at: Option<Timestamp>) -> (Metadata, Metadata) {
        let end = expires_at.map(|end| (EXPIRES_AT.to_owned(), end.0.into()));
        let text = (CONTENT.to_owned(), content.into());
        (end.into_iter().collect(), Metadata::from_iter([text]))
    }
}

/// The filter that memories pass until their end.
pub fn unexpired(now: Timestamp) -> Filter {
    let is_later = Comparison::Greater(FilterValue::Number(now.0.into()));
    Filter::Or(vec![expires(Comparison::Exists(false)), expires(is_later)])
}

/// The filter that memories pass from their end on.
pub fn expired(now: Timestamp) -> Filter {
    expires(Comparison::LessOrEqual(FilterValue::Number(now.0.into())))
}

fn expires(comparison: Comparison) -> Filter {
    let path = EXPIRES_AT.to_owned();
    Filter::Is(Condition { map: FilterMap::Document, path, comparison })
}
