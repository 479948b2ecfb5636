//! The differences between object stores.
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
//! The trait's default methods implement S3; each store overrides the rest in a module of its own.

use std::collections::BTreeMap;
use std::fmt;

use quick_xml::DeError;

use super::answers::{Begun, Completed, Listing, Page, Uploads};
use super::credentials::Key;
use super::request::{Condition, Headers, Query, Unsigned, Version};
use super::roles::Source;
use super::url::Store;
use lodestone_types::Timestamp;

/// A store as configured by the environment.
pub(super) struct Opened {
    pub store: Store,
    pub dialect: Box<dyn Dialect>,
    pub source: Source,
    /// Instructions for setting credentials, shown if there are none.
    pub advice: String,
}

/// The protocol of a store. Builds and parses messages; the client sends them and knows no dialect.
pub(super) trait Dialect: fmt::Debug + Send + Sync {
    /// The headers of a request, including its signature.
    fn sign(&self, request: &Unsigned<'_>, key: &Key, now: Timestamp) -> Headers;

    /// Adds the headers that a request needs whatever its credentials.
    fn prepare(&self, _request: &mut Unsigned<'_>, _now: Timestamp) {}

    /// The header that states a condition.
    fn condition(&self, condition: Condition<'_>) -> Option<(&'static str, String)> {
        match condition {
            Condition::None => None,
            Condition::Absent => Some(("if-none-match", "*".to_owned())),
            Condition::Unchanged(Version(tag)) => Some(("if-match", tag.clone())),
        }
    }

    /// The response header with the object's version.
    fn version_header(&self) -> &'static str {
        "etag"
    }

    /// Whether a response says that the condition does not hold. `code` is the value of
    /// [`Self::code_header`].
    fn is_refusal(&self, status: u16, _code: &str) -> bool {
        status == 412
    }

    /// The response header with the error code, for stores that do not only send it in the body.
    fn code_header(&self) -> Option<&'static str> {
        None
    }

    /// The error code for a missing bucket.
    fn no_bucket(&self) -> &'static str {
        "NoSuchBucket"
    }

    /// The query for a page of keys that begin with `prefix`, in ascending order.
    fn list<'a>(&self, prefix: &'a str, next: Option<&'a str>) -> Query<'a> {
        let mut query = vec![("list-type", "2".into()), ("prefix", prefix.into())];
        query.extend(next.map(|next| ("continuation-token", next.into())));
        query
    }

    /// Parses that page.
    fn read_page(&self, text: &str) -> Result<Page, DeError> {
        quick_xml::de::from_str::<Listing>(text).map(Page::from)
    }

    /// The query that starts a multipart upload; `None` if parts can be sent without a start.
    fn begin_parts(&self) -> Option<Query<'static>> {
        Some(vec![("uploads", "".into())])
    }

    /// Parses the id of the upload just started.
    fn read_begun(&self, text: &str) -> Result<String, DeError> {
        quick_xml::de::from_str(text).map(|Begun { upload_id }| upload_id)
    }

    /// The query that sends a part.
    fn part<'a>(&self, upload: &'a str, number: usize) -> Query<'a> {
        vec![("partNumber", number.to_string().into()), ("uploadId", upload.into())]
    }

    /// Method, query and body of the request that completes an upload; `parts` maps part numbers to
    /// the tags that the store returned for them.
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

    /// Checks the response to it: once it has begun, a failure can be reported only in its body.
    fn read_ended(&self, text: &str) -> Result<(), DeError> {
        quick_xml::de::from_str::<Completed>(text).map(drop)
    }

    /// The query that discards parts; `None` if the store does so by itself.
    fn abandon_parts<'a>(&self, upload: &'a str) -> Option<Query<'a>> {
        Some(vec![("uploadId", upload.into())])
    }

    /// The query for a page of unfinished uploads; `None` if the store has no such listing.
    fn list_uploads<'a>(&self, prefix: &'a str) -> Option<Query<'a>> {
        Some(vec![("uploads", "".into()), ("prefix", prefix.into())])
    }

    /// Parses that page: keys and upload ids.
    fn read_uploads(&self, text: &str) -> Result<Vec<(String, String)>, DeError> {
        let page: Uploads = quick_xml::de::from_str(text)?;
        Ok(page.uploads.into_iter().map(|upload| (upload.key, upload.upload_id)).collect())
    }
}
