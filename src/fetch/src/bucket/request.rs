//! Requests to a bucket as data: what is asked for, and what is signed.

use std::borrow::Cow;

/// Names and values of a query, not encoded.
pub(super) type Query<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Names in lower case, and values.
pub(super) type Headers = Vec<(&'static str, String)>;

/// A request as it is signed.
pub(super) struct Unsigned<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, encoded.
    pub path: &'a str,
    /// The query.
    pub query: Query<'a>,
    /// Host, with the port unless it is the scheme's own.
    pub host: &'a str,
    /// The headers, without `host`.
    pub headers: Headers,
    /// The body.
    pub body: &'a [u8],
}

/// A request, before it is signed.
#[derive(Default)]
pub(super) struct Ask<'a> {
    pub method: &'static str,
    /// Key below the prefix; `None` asks about the bucket.
    pub key: Option<&'a str>,
    pub query: Query<'a>,
    pub headers: Headers,
    pub body: &'a [u8],
    /// Whether it must not come to the store twice: one without an answer is not repeated.
    pub is_once: bool,
    /// Whether it and its answer are small: it is tried again soon, where no answer comes.
    pub is_small: bool,
}

/// Version of an object, of the store's own kind: an ETag, or a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(pub(super) String);

/// Condition under which an object is written.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// Always.
    None,
    /// There is no object of this key.
    Absent,
    /// The object of this key is still of this version.
    Unchanged(&'a Version),
}

/// End of writing an object under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is written, and has this version.
    Done(Version),
    /// The condition does not hold.
    Refused,
}
