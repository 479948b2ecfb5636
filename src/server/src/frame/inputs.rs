//! Extraction of the parts of a request that operations read.

use axum::extract::{FromRequestParts, Path, Query};
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::error::{ApiError, Condition, Location};
use crate::request::{Idempotency, Input};
use crate::routes::{RouteSpec, off_thread};

/// Longest `Idempotency-Key` in characters.
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Header with the URL scheme of the client's connection.
pub(super) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

pub(super) fn query_of(parts: &Parts) -> Result<Vec<(String, String)>, ApiError> {
    match Query::<Vec<(String, String)>>::try_from_uri(&parts.uri) {
        Ok(Query(pairs)) => Ok(pairs),
        Err(_) => Err(ApiError::invalid("invalid_value", "the query string is malformed")),
    }
}

/// Collects the headers that the operation documents.
pub(super) fn headers_of(
    spec: &RouteSpec,
    headers: &HeaderMap,
) -> Result<Vec<(String, String)>, ApiError> {
    let mut found = Vec::new();
    for field in spec.fields.iter().filter(|field| field.location == Location::Header) {
        for value in headers.get_all(field.name) {
            let text = std::str::from_utf8(value.as_bytes()).map_err(|_| {
                let problem = "is not valid UTF-8";
                ApiError::field("invalid_value", Location::Header, field.name, problem)
            })?;
            found.push((field.name.to_owned(), text.to_owned()));
        }
    }
    Ok(found)
}

pub(super) async fn path_of(parts: &mut Parts) -> Result<Vec<(String, String)>, ApiError> {
    match Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await {
        Ok(Path(pairs)) => Ok(pairs),
        Err(_) => {
            let message = "the path is not valid UTF-8";
            Err(ApiError::new(Condition::RouteNotFound, "route_not_found", message))
        }
    }
}

/// Returns the base URL of this server as the client sees it. It relies on the client's own `Host`
/// header, but is only ever sent back to that client.
pub(super) fn base_url(parts: &Parts, route: &str) -> String {
    let header = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let is_host = |host: &&str| {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b);
        !host.is_empty() && host.bytes().all(is_allowed)
    };
    let Some(host) = header(HOST).filter(is_host) else { return String::new() };
    let is_secure = header(FORWARDED_PROTO).is_some_and(|scheme| scheme == "https");
    let scheme = if is_secure { "https" } else { "http" };
    let path = parts.uri.path().trim_end_matches('/');
    format!("{scheme}://{host}{}", path.strip_suffix(route).unwrap_or_default())
}

/// Reads the idempotency key and computes the digest of the input, which may take a second for
/// large inputs.
pub(super) async fn idempotency_of(
    headers: &HeaderMap,
    input: Input,
) -> Result<(Input, Option<Idempotency>), ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok((input, None)) };
    match value.to_str() {
        Ok("") => Ok((input, None)),
        Ok(key) if key.len() <= IDEMPOTENCY_KEY_CHARS_MAX => {
            let key = key.to_owned();
            off_thread(move || {
                let digest = input.digest();
                Ok((input, Some(Idempotency { key, digest })))
            })
            .await
        }
        Ok(_) | Err(_) => {
            let problem = format!("must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} ASCII characters");
            let location = Location::Header;
            Err(ApiError::field("invalid_value", location, "idempotency-key", &problem))
        }
    }
}
