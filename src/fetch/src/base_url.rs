//! Checks of server addresses that the operator sets.

use ureq::http::Uri;

/// Whether a text is an `http` or `https` URL without credentials and without a query.
pub fn is_base_url(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        let host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
        host && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    })
}
