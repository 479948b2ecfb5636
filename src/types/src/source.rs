//! Sources: uploads, as a segment stores them next to their chunks.

use serde::{Deserialize, Serialize};

use crate::{Metadata, Sequence, SourceId, SubTenantId, Timestamp, Warning, metadata};

/// Bytes of a record besides its texts and maps.
const RECORD_BYTES: u64 = 1024;

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// An uploaded document.
    File,
    /// Uploaded text.
    Text,
    /// A batch of client vectors.
    Embeddings,
    /// A web page fetched by the server.
    Webpage,
    /// A record supplied by an application.
    App,
    /// A personal memory; only found in scopes of [`SubTenantId::of_memories`].
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

/// Optional fields that few sources have: those supplied with an upload, those of application
/// records and memories, and the extraction warnings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceDetail {
    /// A title supplied separately from the metadata; takes precedence over all others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The application's own type name; empty to use the name of the source's kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_type: String,
    /// A description that replaces the leading text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A free-form note.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Names of the collections the source belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    /// Extra metadata that is stored and returned but not filterable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Metadata>,
    /// Document date supplied by the uploader, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_time: Option<Timestamp>,
    /// Language tag (BCP 47) supplied by the uploader; empty if none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// Address of a web page as requested, before redirects and its own declaration; the page is
    /// fetched again from there. Empty for other sources, and for pages of earlier releases.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_url: String,
    /// Whether absent title, address, date and language keep their stored values (PATCH semantics).
    /// Set until the version is processed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// Parts of this version that could not be read; set when it is processed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl SourceDetail {
    /// Whether all fields are empty, so that nothing needs to be stored.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fills in the fields that a PATCH left out. `url` is the address that belongs to this detail;
    /// `stored` and `stored_url` belong to the previous version.
    pub fn keep_from(&mut self, url: &mut String, stored: &Self, stored_url: &str) {
        if !self.keeps {
            return;
        }
        if url.is_empty() {
            stored_url.clone_into(url);
            self.requested_url.clone_from(&stored.requested_url);
        }
        for (own, stored) in
            [(&mut self.title, &stored.title), (&mut self.language, &stored.language)]
        {
            if own.is_empty() {
                own.clone_from(stored);
            }
        }
        self.source_time = self.source_time.or(stored.source_time);
        self.keeps = stored.keeps;
    }
}

/// The origin of a source, as far as it is known on acceptance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The source's address; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Time of the last change at the origin, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Fields supplied with the upload.
    #[serde(skip_serializing_if = "SourceDetail::is_empty")]
    pub detail: SourceDetail,
}

/// One version of one source. All its live rows are in a single segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceRecord {
    /// The sub-tenant that the source belongs to.
    pub sub_tenant: SubTenantId,
    /// The source's id within that sub-tenant.
    pub id: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// The title: the one supplied, else `document_metadata.title`, the file name, the title found
    /// in the text, or the id.
    pub title: String,
    /// Leading text, up to [`crate::limits::DESCRIPTION_CHARS`] characters.
    pub description: String,
    /// Name of the uploaded file without its directory; empty if none.
    pub filename: String,
    /// Address that the source was fetched from or that was supplied with it; empty if none.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Size of the original in bytes.
    pub size_bytes: u64,
    /// Metadata map governed by the tenant's schema.
    pub tenant_metadata: Metadata,
    /// Free-form metadata map of the document.
    pub document_metadata: Metadata,
    /// When this version was accepted.
    pub uploaded_at: Timestamp,
    /// The document's date, else its time at the origin, else the acceptance time; drives recency.
    pub last_updated_at: Timestamp,
    /// 1 for the first version; each replacement adds one.
    pub version: u32,
    /// The operation that created this version.
    pub sequence: Sequence,
    /// Key of the stored original in the blob store; empty for client vectors.
    pub raw_key: String,
    /// Fields supplied with the upload.
    pub detail: SourceDetail,
}

impl SourceRecord {
    /// Estimates the size of the record in memory and in a JSON response, in bytes.
    pub fn size(&self) -> metadata::Size {
        let maps = [&self.tenant_metadata, &self.document_metadata].into_iter();
        let maps: Vec<_> = maps.chain(&self.detail.meta).map(metadata::Size::of).collect();
        let [title, description, filename, url] =
            [&self.title, &self.description, &self.filename, &self.url].map(|text| text.len());
        let text = RECORD_BYTES + (title + description + filename + url) as u64;
        metadata::Size {
            memory: text + maps.iter().map(|map| map.memory).sum::<u64>(),
            json: text + maps.iter().map(|map| map.json).sum::<u64>(),
        }
    }

    /// Creates the first version of a source, accepted and last changed `at` this time, with only
    /// its name and kind known.
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

    /// The address to fetch a web page again from: as requested, since a page may redirect to, or
    /// declare as its own, an address that shows something else later.
    pub fn url_to_fetch(&self) -> &str {
        match self.detail.requested_url.as_str() {
            "" => &self.url,
            requested => requested,
        }
    }

    /// The name of the source's type on the wire.
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
        let page = SourceDetail { requested_url: "r:u".into(), ..stored };
        assert_eq!(kept(detail("", None, true), "", &page), (page.clone(), "s:u".into()));
        let other = kept(detail("", None, true), "n:u", &page).0;
        assert_eq!(other.requested_url, "", "it belongs to the address");
    }

    #[test]
    fn details_of_earlier_versions_are_read() {
        let old: SourceDetail = serde_json::from_str(r#"{"title": "t", "note": "n"}"#).unwrap();
        let expected = SourceDetail { note: "n".into(), ..detail("t", None, false) };
        assert_eq!(old, expected);
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"title":"t","note":"n"}"#);
    }
}
