//! Response headers for uploaded content.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};

/// Keeps browsers from rendering uploaded content, which is untrusted, as a page of this server.
pub(super) fn guard(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let sandbox = HeaderValue::from_static("default-src 'none'; sandbox");
    headers.insert(CONTENT_SECURITY_POLICY, sandbox);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
}
