//! What was uploaded, as a segment keeps it beside its chunks.

use serde::{Deserialize, Serialize};

use crate::{Metadata, Sequence, SourceId, SubTenantId, Timestamp};

/// What kind of thing a source is.
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

impl SourceKind {
    /// The word used on the wire (API 4.2) and in the catalog.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Text => "text",
            Self::Embeddings => "embeddings",
            Self::Webpage => "webpage",
            Self::App => "app",
            Self::Memory => "memory",
        }
    }

    /// The inverse of [`Self::as_str`].
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "file" => Some(Self::File),
            "text" => Some(Self::Text),
            "embeddings" => Some(Self::Embeddings),
            "webpage" => Some(Self::Webpage),
            "app" => Some(Self::App),
            "memory" => Some(Self::Memory),
            _ => None,
        }
    }
}

/// What records of applications (API 3.1 #9) and memories say of themselves. Empty for anything
/// else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceDetail {
    /// A title given apart from the metadata; it comes before any other (API 8.8).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The application's own word for what it is; empty: the word of its kind.
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
}

impl SourceDetail {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a source comes from, as far as that is known when it is accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Its address; empty when it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// When it was last changed there, milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// What an application said of it.
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
    /// What it is.
    pub kind: SourceKind,
    /// The title by the chain of API 4.2.
    pub title: String,
    /// Leading text, up to [`crate::limits::DESCRIPTION_CHARS`] characters.
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
    /// What an application said of it.
    pub detail: SourceDetail,
}

impl SourceRecord {
    /// The word for what it is, as the wire shows it.
    pub fn source_type(&self) -> &str {
        match self.detail.source_type.as_str() {
            "" => self.kind.as_str(),
            own => own,
        }
    }
}
