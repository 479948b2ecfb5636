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

/// Fields that few sources have: those given with an upload (API 9.6), those of records of
/// applications (API 3.1 #9) and of memories, and the warnings of reading.
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
    /// Date of the document as its uploader gave it; milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_time: Option<Timestamp>,
    /// Language tag (BCP 47) as its uploader gave it; empty when none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// Whether title, address, date and language that are absent stay as they are stored (a
    /// PATCH). Set until the version is processed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// Parts of this version that were not read (API 9.6); set when it is processed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl SourceDetail {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes over what a PATCH leaves out. `url` is the address beside this detail, `stored` and
    /// `stored_url` are those of the version before.
    pub fn keep_from(&mut self, url: &mut String, stored: &Self, stored_url: &str) {
        if !self.keeps {
            return;
        }
        for (own, stored) in [
            (url, stored_url),
            (&mut self.title, stored.title.as_str()),
            (&mut self.language, stored.language.as_str()),
        ] {
            if own.is_empty() {
                stored.clone_into(own);
            }
        }
        self.source_time = self.source_time.or(stored.source_time);
        self.keeps = stored.keeps;
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
    /// Fields given with the upload.
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
    /// Address from which it was fetched, or that was given with it; empty when none.
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
    /// Date of the document, else its origin time, else the acceptance time; drives recency.
    pub last_updated_at: Timestamp,
    /// 1 for the first version, one more for each replacement.
    pub version: u32,
    /// The operation that made this version.
    pub sequence: Sequence,
    /// Key of the stored original in the blob store; empty for client vectors.
    pub raw_key: String,
    /// Fields given with the upload.
    pub detail: SourceDetail,
}

impl SourceRecord {
    /// The first version of a source that was accepted and last changed `at` this time, with
    /// nothing known of it but its name and kind.
    pub fn new(
        sub_tenant: SubTenantId,
        id: SourceId,
        kind: SourceKind,
        sequence: Sequence,
        at: Timestamp,
    ) -> Self {
        Self {
            sub_tenant,
            id,
            kind,
            title: String::new(),
            description: String::new(),
            filename: String::new(),
            url: String::new(),
            content_type: String::new(),
            size_bytes: 0,
            tenant_metadata: Metadata::new(),
            document_metadata: Metadata::new(),
            uploaded_at: at,
            last_updated_at: at,
            version: 1,
            sequence,
            raw_key: String::new(),
            detail: SourceDetail::default(),
        }
    }

    /// The word for its type on the wire.
    pub fn source_type(&self) -> &str {
        match self.detail.source_type.as_str() {
            "" => self.kind.as_str(),
            own => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(title: &str, time: Option<u64>, keeps: bool) -> SourceDetail {
        let (title, source_time) = (title.to_owned(), time.map(Timestamp));
        SourceDetail { title, source_time, keeps, ..SourceDetail::default() }
    }

    #[test]
    fn a_patch_keeps_what_it_leaves_out() {
        let kept = |mut own: SourceDetail, own_url: &str, stored: &SourceDetail| {
            let mut url = own_url.to_owned();
            own.keep_from(&mut url, stored, "s:u");
            (own, url)
        };
        let stored = detail("old", Some(1), false);
        assert_eq!(kept(detail("", None, true), "", &stored), (stored.clone(), "s:u".into()));
        let own = detail("new", Some(2), true);
        assert_eq!(kept(own, "n:u", &stored), (detail("new", Some(2), false), "n:u".into()));
        let whole = detail("", None, false);
        assert_eq!(kept(whole.clone(), "", &stored), (whole, String::new()));
        let waiting = detail("waits", None, true);
        assert_eq!(kept(detail("", None, true), "", &waiting).0, waiting, "more is to be kept");
    }

    #[test]
    fn details_of_earlier_versions_are_read() {
        let old: SourceDetail = serde_json::from_str(r#"{"title": "t", "note": "n"}"#).unwrap();
        let expected = SourceDetail { note: "n".into(), ..detail("t", None, false) };
        assert_eq!(old, expected);
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"title":"t","note":"n"}"#);
    }
}
