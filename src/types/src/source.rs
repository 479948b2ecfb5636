//! Sources: uploads as a segment keeps them beside their chunks.

use serde::{Deserialize, Serialize};

use crate::{Metadata, Sequence, SourceId, SubTenantId, Timestamp, Warning};

/// Kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// An uploaded document.
    File,
    /// Uploaded text.
    Text,
    /// A batch of client vectors.
    Embeddings,
    /// A page of the web, fetched by the server.
    Webpage,
    /// A record of an application.
    App,
    /// A personal memory; only in the scope of [`SubTenantId::of_memories`].
    Memory,
}

words!(SourceKind {
    File = "file",
    Text = "text",
    Embeddings = "embeddings",
    Webpage = "webpage",
    App = "app",
    Memory = "memory",
});

/// Fields that few sources have: those of records of applications (API 3.1 #9) and of memories, and
/// the warnings of reading.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceDetail {
    /// A title given apart from the metadata; it takes precedence over any other (API 8.8).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The application's word for its type; empty: the word of its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_type: String,
    /// A description given instead of the leading text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A remark.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Names of collections that it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    /// Kept and returned, not filterable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Metadata>,
    /// Parts of this version that were not read (API 9.6); set when it is processed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl SourceDetail {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Origin of a source, as far as it is known when the source is accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Its address; empty when it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Time of its last change there, milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Fields given by an application.
    #[serde(skip_serializing_if = "SourceDetail::is_empty")]
    pub detail: SourceDetail,
}

/// One version of one source. All its live rows are in one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRecord {
    /// The sub-tenant it belongs to.
    pub sub_tenant: SubTenantId,
    /// Its id inside that sub-tenant.
    pub id: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// The title by the chain of API 4.2.
    pub title: String,
    /// Leading text, up to [`crate::limits::DESCRIPTION_CHARS`] characters.
    pub description: String,
    /// Name of the uploaded file, without path parts; empty when none.
    pub filename: String,
    /// Address from which it was fetched; empty when none.
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
    /// Fields given by an application.
    pub detail: SourceDetail,
}

impl SourceRecord {
    /// The word for its type on the wire.
    pub fn source_type(&self) -> &str {
        match self.detail.source_type.as_str() {
            "" => self.kind.as_str(),
            own => own,
        }
    }
}
