//! Checks the media type of a request against its operation.

use axum::body::{Body, HttpBody};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use crate::error::{ApiError, Condition, Location};
use crate::routes::{Media, RouteSpec, openapi};

/// Returns 415 unless the media type fits the operation. A request without a body may have any
/// media type.
pub(super) fn check_media(
    spec: &RouteSpec,
    headers: &HeaderMap,
    body: &Body,
) -> Result<Option<HeaderValue>, ApiError> {
    if spec.media == Media::None || body.is_end_stream() {
        return Ok(None);
    }
    let refuse = |message: &str| {
        Err(ApiError::new(Condition::UnsupportedMediaType, "unsupported_media_type", message)
            .at(Location::Header, "content-type"))
    };
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return refuse("compressed request bodies (content-encoding) are not accepted");
    }
    let content_type = headers.get(CONTENT_TYPE).filter(|value| !value.is_empty());
    let essence = content_type.map(essence_of);
    match (spec.media, essence.as_deref()) {
        (Media::Multipart, Some("multipart/form-data")) => Ok(content_type.cloned()),
        (Media::Multipart, _) => refuse("this operation expects multipart/form-data"),
        (Media::UrlEncoded, Some(openapi::URL_ENCODED)) => Ok(content_type.cloned()),
        (Media::JsonOrNpy, Some(openapi::NPY)) => Ok(content_type.cloned()),
        (Media::Lines, Some("application/x-ndjson" | "application/jsonl") | None) => Ok(None),
        (Media::Lines, _) => refuse("this operation expects application/x-ndjson"),
        (_, None) => Ok(None),
        (_, Some(essence)) if is_json(essence) => Ok(None),
        (Media::JsonOrNpy, Some(_)) => {
            refuse("this operation expects application/json or application/x-npy")
        }
        (_, Some(_)) => refuse("this operation expects application/json"),
    }
}

fn essence_of(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    text.split(';').next().unwrap_or_default().trim().to_owned()
}

fn is_json(essence: &str) -> bool {
    let Some(subtype) = essence.strip_prefix("application/") else { return false };
    subtype == "json" || subtype.strip_suffix("+json").is_some_and(|stem| !stem.is_empty())
}
