//! What was uploaded, as a segment keeps it beside its chunks.

use crate::types::{Metadata, Sequence, SourceId, SubTenantId, Timestamp};

/// What kind of thing a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// An uploaded document.
    File,
    /// Uploaded text.
    Text,
    /// A batch of client vectors.
    Embeddings,
}

impl SourceKind {
    /// The word used on the wire (API 4.2) and in the catalog.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Text => "text",
            Self::Embeddings => "embeddings",
        }
    }

    /// The inverse of [`Self::as_str`].
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "file" => Some(Self::File),
            "text" => Some(Self::Text),
            "embeddings" => Some(Self::Embeddings),
            _ => None,
        }
    }
}

/// One version of one source. All its live rows are in one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRecord {
    /// The sub-tenant it belongs to.
    pub sub_tenant: SubTenantId,
    /// Its id inside that sub-tenant.
    pub id: SourceId,
    /// What it is.
    pub kind: SourceKind,
    /// The title by the chain of API 4.2.
    pub title: String,
    /// Leading text, up to [`crate::types::limits::DESCRIPTION_CHARS`] characters.
    pub description: String,
    /// Name of the uploaded file, without path parts; empty when none.
    pub filename: String,
    /// Where it was fetched from; empty when nowhere.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Bytes of the original.
    pub size_bytes: u64,
    /// Free-form map of the tenant's schema.
    pub tenant_metadata: Metadata,
    /// Free-form map of the document.
    pub document_metadata: Metadata,
    /// When this version was accepted.
    pub uploaded_at: Timestamp,
    /// Origin time if the source has one, else the acceptance time; drives recency.
    pub last_updated_at: Timestamp,
    /// 1 for the first version, one more for each replacement.
    pub version: u32,
    /// The operation that made this version.
    pub sequence: Sequence,
    /// Key of the stored original in the blob store; empty for client vectors.
    pub raw_key: String,
}
