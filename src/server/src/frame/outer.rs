//! The outermost layer, which treats every request alike: request id, trace, cross-origin rules and
//! one line in the access log.
//!
//! The log line holds method, path template, status, milliseconds, the ids of request, trace and
//! key, and the client's address. Bodies, keys, query strings and tenant names never reach a log.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{Extensions, HeaderMap, HeaderValue, Method, Request};
use tracing::Instrument;

use crate::frame::trace::{TRACEPARENT, TraceContext};
use crate::listen::Peer;
use crate::watch::HttpMeters;
use lodestone_types::{Clock, IdSource};

/// Log target of the access log.
const ACCESS: &str = "lodestone_access";
/// Header that carries the request id.
pub(crate) const REQUEST_ID_HEADER: &str = "x-request-id";
const REQUEST_ID_CHARS_MAX: usize = 128;
/// Offers the unencoded body as the last resort.
const LAST_CHOICE: HeaderValue = HeaderValue::from_static("identity;q=0.001");

/// The request id, as an extension of the request.
#[derive(Debug, Clone)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// Returns the id of the request with these extensions; empty outside of this layer.
    pub fn of(extensions: &Extensions) -> &str {
        extensions.get::<Self>().map_or("", |Self(id)| id)
    }
}

/// The path template that matched, as an extension of the response for the log.
#[derive(Debug, Clone, Copy)]
pub struct Template(pub &'static str);

/// The id of the API key, as an extension of the response for the log.
#[derive(Debug, Clone)]
pub struct KeyId(pub Arc<str>);

/// State of the outermost layer.
#[derive(Debug)]
pub struct Outer {
    /// The clock used for generated ids.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness used for generated ids.
    pub ids: Arc<dyn IdSource>,
    /// Origins whose pages may call the server.
    pub cors_origins: Vec<String>,
    /// Request metrics.
    pub meters: HttpMeters,
    /// Whether each request is logged.
    pub has_access_log: bool,
    /// Whether traces are sent to a collector.
    pub is_recording: bool,
}

/// Handles a request in the outermost layer.
pub async fn outer(
    State(outer): State<Arc<Outer>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let from = request.extensions().get::<Arc<Peer>>().map(|peer| peer.address());
    let id = request_id(request.headers(), &*outer.ids, &*outer.clock);
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let trace = TraceContext::of(request.headers(), &*outer.ids, outer.is_recording);
    request.extensions_mut().insert(trace);
    // Probes and scrapes arrive every few seconds; their traces would bury the others.
    let is_unwanted = !trace.is_sampled() || is_probe(request.uri().path());
    let span = trace.span(&id, outer.is_recording && is_unwanted);
    admit_identity(request.headers_mut());
    let origin = allowed_origin(&outer.cors_origins, request.headers());
    let is_preflight =
        method == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&origin, is_preflight) {
        (Some(_), true) => preflight(),
        _ => next.run(request).instrument(span.clone()).await,
    };
    let headers = response.headers_mut();
    if !outer.cors_origins.is_empty() {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(
            "x-request-id, traceparent, retry-after, x-lodestone-degraded, x-lodestone-warnings, \
             x-ignored-parameters, x-page-count, x-page-height, x-page-width",
        );
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    let id_value = HeaderValue::try_from(&*id).expect("request ids are plain ASCII");
    headers.insert(REQUEST_ID_HEADER, id_value);
    headers.insert(TRACEPARENT, trace.header());
    let route = response.extensions().get::<Template>().map_or("-", |template| template.0);
    let (status, seconds) = (response.status(), started.elapsed().as_secs_f64());
    outer.meters.answered(&method, route, status, seconds);
    let (status, ms) = (status.as_u16(), (seconds * 1e6).round() / 1e3);
    let key_id = response.extensions().get::<KeyId>().map(|key| &*key.0);
    let inside = span.enter();
    tracing::info!(target: "lodestone_stage", %method, route, status, "answered");
    let from = from.map(tracing::field::display);
    match outer.has_access_log && !is_probe(route) {
        true => {
            tracing::info!(target: ACCESS, %method, route, status, ms, key_id, from, "request");
        }
        false => {
            tracing::debug!(target: ACCESS, %method, route, status, ms, key_id, from, "request");
        }
    }
    drop(inside);
    response
}

/// Permits an unencoded response even if the client rejects it (`identity;q=0`, `*;q=0`) and
/// accepts no encoding that we support: by then the work has already been done.
fn admit_identity(headers: &mut HeaderMap) {
    let given: Vec<_> = headers.get_all(ACCEPT_ENCODING).iter().cloned().collect();
    if !given.is_empty() {
        // The first entry for an encoding takes precedence.
        headers.insert(ACCEPT_ENCODING, LAST_CHOICE);
        for value in given {
            headers.append(ACCEPT_ENCODING, value);
        }
    }
}

/// Whether machines poll the path every few seconds.
fn is_probe(path: &str) -> bool {
    ["/healthz", "/readyz", "/metrics"].iter().any(|probe| path.ends_with(probe))
}

/// Returns the caller's request id, or a new one.
pub(crate) fn request_id(headers: &HeaderMap, ids: &dyn IdSource, clock: &dyn Clock) -> Arc<str> {
    callers_id(headers).unwrap_or_else(|| ids.wire_id("req_", clock.now()).into())
}

/// Returns the caller's own id if it is 1 to 128 characters of `[A-Za-z0-9._-]`.
fn callers_id(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get(REQUEST_ID_HEADER)?.to_str().ok()?;
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let is_valid = (1..=REQUEST_ID_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
    is_valid.then(|| text.into())
}

fn allowed_origin(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let is_allowed = |allowed: &String| allowed == "*" || allowed.as_bytes() == origin.as_bytes();
    origins.iter().any(is_allowed).then(|| origin.clone())
}

fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    let names = HeaderValue::from_static(
        "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, \
         mcp-protocol-version, prefer, traceparent, x-lodestone-sub-tenant, x-lodestone-tenant, \
         x-request-id",
    );
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
