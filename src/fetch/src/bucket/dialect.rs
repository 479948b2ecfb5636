//! The differences between the stores of buckets.
//!
//! ```text
//!                  S3                       Google, XML API             Azure, Blob service
//! signature        version 4                version 4, own names        Shared Key
//! only if absent   If-None-Match: *         x-goog-if-generation-match: 0   If-None-Match: *
//! only unchanged   If-Match: ETag           ...: generation             If-Match: ETag
//! refused by       412                      412                         412, or 409 by its code
//! large objects    an upload with an id     as S3                       blocks and their list
//! listings         list-type=2              as S3                       comp=list
//! ```
//! The forms of S3 are the defaults of the trait; each store has a file of its own for the rest.

use std::collections::BTreeMap;
use std::fmt;

use quick_xml::DeError;

use super::answers::{Begun, Completed, Listing, Page, Uploads};
use super::credentials::Key;
use super::request::{Condition, Headers, Query, Unsigned, Version};
use super::roles::Source;
use super::url::Store;
use lodestone_types::Timestamp;

/// A store, as the environment describes it.
pub(super) struct Opened {
    pub store: Store,
    pub dialect: Box<dyn Dialect>,
    pub source: Source,
    /// The ways to give credentials, for those who have none.
    pub advice: String,
}

/// The language of a store. Its requests are kept apart from those who send them, who know none.
pub(super) trait Dialect: fmt::Debug + Send + Sync {
    /// The headers of a request, with its signature among them.
    fn sign(&self, request: &Unsigned<'_>, key: &Key, now: Timestamp) -> Headers;

    /// Adds the headers that a request needs however it is authorized.
    fn prepare(&self, _request: &mut Unsigned<'_>, _now: Timestamp) {}

    /// The header that a request is conditional by.
    fn condition(&self, condition: Condition<'_>) -> Option<(&'static str, String)> {
        match condition {
            Condition::None => None,
            Condition::Absent => Some(("if-none-match", "*".to_owned())),
            Condition::Unchanged(Version(tag)) => Some(("if-match", tag.clone())),
        }
    }

    /// The header of an answer with the version of its object.
    fn version_header(&self) -> &'static str {
        "etag"
    }

    /// Whether an answer says that the condition of its request does not hold. `code` is that of
    /// [`Self::code_header`].
    fn is_refusal(&self, status: u16, _code: &str) -> bool {
        status == 412
    }

    /// The header of an answer with the word for the reason of an error, where it is not in the
    /// body alone.
    fn code_header(&self) -> Option<&'static str> {
        None
    }

    /// The word for a bucket that is not there.
    fn no_bucket(&self) -> &'static str {
        "NoSuchBucket"
    }

    /// The query for a page of the keys that begin with `prefix`, ascending.
    fn list<'a>(&self, prefix: &'a str, next: Option<&'a str>) -> Query<'a> {
        let mut query = vec![("list-type", "2".into()), ("prefix", prefix.into())];
        query.extend(next.map(|next| ("continuation-token", next.into())));
        query
    }

    /// Reads that page.
    fn read_page(&self, text: &str) -> Result<Page, DeError> {
        quick_xml::de::from_str::<Listing>(text).map(Page::from)
    }

    /// The query that begins an object in parts; `None` where parts can be sent at once.
    fn begin_parts(&self) -> Option<Query<'static>> {
        Some(vec![("uploads", "".into())])
    }

    /// Reads the id of the upload that was begun.
    fn read_begun(&self, text: &str) -> Result<String, DeError> {
        quick_xml::de::from_str(text).map(|Begun { upload_id }| upload_id)
    }

    /// The query that sends a part.
    fn part<'a>(&self, upload: &'a str, number: usize) -> Query<'a> {
        vec![("partNumber", number.to_string().into()), ("uploadId", upload.into())]
    }

    /// Method, query and body that put an object together; `parts` are the tags that the store gave
    /// to its parts, by their numbers.
    fn end_parts<'a>(
        &self,
        upload: &'a str,
        parts: &BTreeMap<usize, String>,
    ) -> (&'static str, Query<'a>, String) {
        let mut body = String::from("<CompleteMultipartUpload>");
        for (number, tag) in parts {
            let tag = quick_xml::escape::escape(tag);
            body += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
        }
        body.push_str("</CompleteMultipartUpload>");
        ("POST", vec![("uploadId", upload.into())], body)
    }

    /// Checks the answer to it: one that has begun can only say in its body that it failed.
    fn read_ended(&self, text: &str) -> Result<(), DeError> {
        quick_xml::de::from_str::<Completed>(text).map(drop)
    }

    /// The query that throws parts away; `None` where the store does so by itself.
    fn abandon_parts<'a>(&self, upload: &'a str) -> Option<Query<'a>> {
        Some(vec![("uploadId", upload.into())])
    }

    /// The query for a page of uploads that are not finished; `None` where there is no such thing.
    fn list_uploads<'a>(&self, prefix: &'a str) -> Option<Query<'a>> {
        Some(vec![("uploads", "".into()), ("prefix", prefix.into())])
    }

    /// Reads that page: keys, and ids of uploads.
    fn read_uploads(&self, text: &str) -> Result<Vec<(String, String)>, DeError> {
        let page: Uploads = quick_xml::de::from_str(text)?;
        Ok(page.uploads.into_iter().map(|upload| (upload.key, upload.upload_id)).collect())
    }
}
