//! Requests to a bucket as data: what is requested, and what is signed.

use std::borrow::Cow;

/// Names and values of a query, not encoded.
pub(super) type Query<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Header names in lower case, and values.
pub(super) type Headers = Vec<(&'static str, String)>;

/// The parts of a request that a signature covers.
pub(super) struct Unsigned<'a> {
    /// The method.
    pub method: &'a str,
    /// The encoded path.
    pub path: &'a str,
    /// The query.
    pub query: Query<'a>,
    /// The host, with its port unless that is the scheme's default.
    pub host: &'a str,
    /// The headers, without `host`.
    pub headers: Headers,
    /// The body.
    pub body: &'a [u8],
}

/// A request to be signed and sent.
#[derive(Default)]
pub(super) struct Ask<'a> {
    pub method: &'static str,
    /// Key relative to the prefix; `None` for requests about the bucket.
    pub key: Option<&'a str>,
    pub query: Query<'a>,
    pub headers: Headers,
    pub body: &'a [u8],
    /// Whether the store must not receive it twice: without a response, it is not retried.
    pub is_once: bool,
    /// Whether request and response are small: if no response comes, it is retried soon.
    pub is_small: bool,
}

/// Version of an object, in the store's own form: an ETag or a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(pub(super) String);

/// Condition for writing an object.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// No condition.
    None,
    /// No object with this key exists.
    Absent,
    /// The object with this key still has this version.
    Unchanged(&'a Version),
}

/// Outcome of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// The object was written and has this version.
    Done(Version),
    /// The condition does not hold; nothing was written.
    Refused,
}
