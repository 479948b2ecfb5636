//! Originals: their content, or a URL that gives it for an hour.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator};

use crate::app::{App, blocking, degraded, lookup_error};
use crate::download::Claim;
use crate::dto::sources::{Download, FetchContent, FetchedContent};
use crate::error::{ApiError, Condition};
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::routes::{Group, Route, RouteDraft};
use lodestone_engine::{EngineError, Original};
use lodestone_types::access::TenantGrant;
use lodestone_types::{Grant, KeyScope, Role, Scope, SourceRecord, TenantMode};

/// Media type of what is not known better.
const BYTES_TYPE: &str = "application/octet-stream";

/// The operations.
pub fn routes() -> Vec<Route<App>> {
    let download =
        Route::<App>::public("/fetch/download/{token}", "Download an original by its signed URL");
    vec![
        Route::<App>::post(
            "/fetch/fetch_content",
            Group::Fetch,
            Role::Read,
            "Get the original of a source",
        )
        .handle(blocking(fetch_content)),
        RouteDraft { group: Group::Fetch, ..download }.handle(blocking(redeem)),
    ]
}

fn fetch_content(
    app: &App,
    call: &Call,
    request: FetchContent,
) -> Result<Json<FetchedContent>, ApiError> {
    let FetchContent { scope, file_id, return_content } = request;
    let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
    let original = app.engine.original(&access, &file_id);
    let Original { record, content } = original.map_err(|error| lookup_error(&access, error))?;
    let size_bytes = content.len() as u64;
    let (text, encoding) = match String::from_utf8(content) {
        Ok(text) => (text, "utf-8"),
        Err(_) if !return_content => (String::new(), "base64"),
        Err(error) => (STANDARD.encode(error.as_bytes()), "base64"),
    };
    let (file_content, url, end) = match return_content {
        true => (text, None, None),
        false => {
            let collection = access.tenant.collection.to_string();
            let claim = Claim { collection, scope, source: file_id.clone() };
            let (token, end) = app.download.sign(&claim, app.engine.clock().now());
            let url = format!("{}/fetch/download/{token}", call.base_url);
            (String::new(), Some(url), Some(end.to_string()))
        }
    };
    let body = FetchedContent {
        file_id: file_id.to_string(),
        success: true,
        message: "Successfully fetched content".to_owned(),
        file_content,
        encoding: encoding.to_owned(),
        content_type: media_type(&record.content_type).to_owned(),
        size_bytes,
        download_url: url,
        expires_at: end,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn redeem(app: &App, _: &Call, request: Download) -> Result<File, ApiError> {
    let gone = || {
        let message = "the download URL is not valid or has expired";
        ApiError::new(Condition::SourceNotFound, "download_not_found", message)
    };
    let claim = app.download.open(&request.token, app.engine.clock().now()).ok_or_else(gone)?;
    let Claim { collection, scope, source } = claim;
    let access = match app.engine.open(&bearer(&scope), &scope, Some(TenantMode::Standard)) {
        Err(EngineError::TenantNotFound | EngineError::ModeMismatch { .. }) => return Err(gone()),
        access => access?,
    };
    if access.tenant.collection.to_string() != collection {
        return Err(gone());
    }
    match app.engine.original(&access, &source) {
        Ok(original) => Ok(File(original)),
        Err(error) => match lookup_error(&access, error) {
            error if error.condition() == Condition::SourceNotFound => Err(gone()),
            error => Err(error),
        },
    }
}

/// Grant of the holder of a signed URL: read in that one scope.
fn bearer(scope: &Scope) -> Grant {
    let sub_tenants = Some(vec![scope.sub_tenant.clone()]);
    let grants = vec![TenantGrant { tenant: scope.tenant.clone(), sub_tenants }];
    let scope = KeyScope::Tenants(grants).into();
    Grant { key_id: "download".into(), role: Role::Read, scope }
}

/// A media type in the form `type/subtype`; clients may have sent anything.
fn media_type(given: &str) -> &str {
    let is_token = |part: &str| {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    let essence = given.split(';').next().unwrap_or_default().trim();
    match essence.split_once('/') {
        Some((first, second)) if is_token(first) && is_token(second) => given,
        _ => BYTES_TYPE,
    }
}

/// An original as a file to be saved.
struct File(Original);

impl Reply for File {
    // The header names the type of the file; what it may be is for its uploader to say.
    const MEDIA_TYPES: &'static [&'static str] = &["*/*"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "binary"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let Original { record, content } = self.0;
        let mut response = Response::new(Body::from(content));
        describe(response.headers_mut(), &record)?;
        Ok(response)
    }
}

/// Uploaded content is somebody else's: no browser may show it as a page of this server.
fn describe(headers: &mut HeaderMap, record: &SourceRecord) -> Result<(), ApiError> {
    let content_type = HeaderValue::try_from(media_type(&record.content_type))
        .unwrap_or(HeaderValue::from_static(BYTES_TYPE));
    headers.insert(CONTENT_TYPE, content_type);
    let disposition = HeaderValue::try_from(disposition(record))
        .map_err(|error| ApiError::internal(format!("a file name is no header: {error}")))?;
    headers.insert(CONTENT_DISPOSITION, disposition);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let sandbox = HeaderValue::from_static("default-src 'none'; sandbox");
    headers.insert(CONTENT_SECURITY_POLICY, sandbox);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(())
}

/// Every byte but letters, digits and `-._`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// `attachment` with the name twice, as RFC 6266 advises: in ASCII, and whole.
fn disposition(record: &SourceRecord) -> String {
    let name = match record.filename.as_str() {
        "" => format!("{}.txt", record.id),
        filename => filename.to_owned(),
    };
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || " ._-()".contains(c) => c,
        _ => '_',
    };
    let ascii: String = name.chars().map(plain).collect();
    let whole = utf8_percent_encode(&name, RESERVED);
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{whole}")
}
