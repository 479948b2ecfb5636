//! The layers around every operation, from the router to the handler and back.
//!
//! ```text
//! outer     request id, trace, CORS, access log
//!   compression, never of event streams, and once of what never changes
//!     routing (axum: path to entry, or to a page for browsers)
//!       dispatch: key -> rate -> 404/405 -> role -> 415 -> 413 -> body -> slot -> syntax ->
//!                 handler
//!                 on a query node, after 413 or an error of the handler: forwarded to the writer
//! ```
//!
//! No tenant is looked up here: handlers check scope and existence as their first step.
//!
//! Invariants: no part of a body is read before key, route, role, media type and announced length
//! have been checked; every response carries `x-request-id`; a panic becomes a 500.
//!
//! - `dispatch`: the checks in this order; `media`: the check of the media type; `inputs`: the
//!   parts of a request; `placed`: requests that another query node answers
//! - `outer`: request ids, CORS, the access log; `trace`: the trace that a request belongs to
//! - `audit`: the audit log of administrative actions; `encoded`: compressed copies of documents

pub mod audit;
pub mod dispatch;
pub(crate) mod encoded;
mod inputs;
mod media;
pub mod outer;
mod placed;
pub mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::routing::any;
use axum::{Router, middleware};
use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Request, StatusCode, Version};
use tokio::sync::Semaphore;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

use crate::admission::{Admission, AdmissionSettings, Gate, KEY_LOOKUPS_MAX, MEMORY_WAITS_MAX};
use crate::auth::Authenticator;
use crate::file_body::FromFile;
use crate::forward::Upstream;
use crate::frame::dispatch::{Entry, Shared, dispatch};
use crate::frame::encoded::{Copies, keep_encoded};
use crate::frame::outer::{Outer, outer};
use crate::frame::placed::Placement;
use crate::listen::pace::Pace;
use crate::mcp;
use crate::rate::RateLimiter;
use crate::reply::Document;
use crate::request::Call;
use crate::routes::{Route, openapi};
use crate::watch::HttpMeters;
use lodestone_engine::ingest::MemoryBudget;
use lodestone_engine::settings::RateLimit;
use lodestone_engine::{Peers, Spills};
use lodestone_fetch::forward::Addresses;
use lodestone_types::{Clock, IdSource};

/// Settings of the HTTP layer.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Request rate allowed per key; `None` means unlimited.
    pub rate_limit: Option<RateLimit>,
    /// Origins whose pages may call the server; `*` allows any, an empty list none.
    pub cors_origins: Vec<String>,
    /// Bounds on operations that run and wait concurrently.
    pub admission: AdmissionSettings,
    /// Least rate at which a client must send its body.
    pub pace: Pace,
    /// Delay of the response to an immediately visible change, so that query nodes show the change
    /// by the time the client receives the response; 0 without such nodes.
    pub change_delay: Duration,
    /// Name under which this server writes to a bucket, if it does.
    pub writer_name: Option<String>,
    /// Whether clients connect with TLS.
    pub has_tls: bool,
    /// Prefix of every path, for example `/lodestone`; empty for none.
    pub path_prefix: String,
    /// Whether each request is logged at level info; otherwise at level debug.
    pub has_access_log: bool,
    /// Whether traces are sent to a collector.
    pub is_recording: bool,
}

/// Everything that the HTTP layer is built from.
pub struct Frame<S> {
    /// State handed to every handler.
    pub app: S,
    /// Verifies API keys.
    pub keys: Arc<dyn Authenticator>,
    /// The clock used for request ids.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness used for request ids.
    pub ids: Arc<dyn IdSource>,
    /// Spill files for large requests and responses.
    pub spills: Arc<Spills>,
    /// Memory budget for request inputs and responses.
    pub memory: Arc<MemoryBudget>,
    /// Request metrics.
    pub meters: HttpMeters,
    /// The addresses of the writer, on a query node; `None` on the writer itself.
    pub writer: Option<Arc<Addresses>>,
    /// The query nodes that tenants are distributed over, if this process is one of them.
    pub peers: Option<Arc<Peers>>,
    /// Settings made by the operator.
    pub settings: HttpSettings,
}

impl<S> std::fmt::Debug for Frame<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Builds the service from the table of routes and from `pages`, which bypass the checks of the
/// table and authenticate by themselves: browser files and requests of other nodes. Adds
/// `/openapi.json` to the table.
pub fn router<S>(mut table: Vec<Route<S>>, pages: Router, frame: Frame<S>) -> Router
where
    S: Clone + Send + Sync + 'static,
{
    table.push(openapi_route(&table));
    let Frame { app, keys, clock, ids, spills, memory, meters, writer, peers, settings } = frame;
    let gate = Arc::new(Gate {
        limiter: settings.rate_limit.map(RateLimiter::new),
        admission: Admission::new(settings.admission),
        spills,
        memory,
        memory_waits: Semaphore::new(MEMORY_WAITS_MAX),
        key_lookups: Arc::new(Semaphore::new(KEY_LOOKUPS_MAX)),
    });
    let path_prefix = settings.path_prefix.clone();
    let HttpSettings { pace, change_delay, .. } = settings;
    let name = settings.writer_name.clone();
    let scheme = HeaderValue::from_static(if settings.has_tls { "https" } else { "http" });
    let writer = writer.map(Upstream::new);
    let placement = peers.zip(writer.as_ref());
    let placement = placement.map(|(peers, writer)| Placement::new(peers, writer));
    let shared = Arc::new(Shared {
        app,
        keys,
        gate,
        pace,
        change_delay,
        scheme,
        name,
        writer,
        placement,
        path_prefix,
    });
    let mut entries: BTreeMap<&'static str, Vec<Route<S>>> = BTreeMap::new();
    for route in table {
        entries.entry(route.spec.path).or_default().push(route);
    }
    let mut router = Router::new();
    for (path, routes) in entries {
        let entry = Arc::new(Entry { path, routes });
        let shared = Arc::clone(&shared);
        let service = any(move |request: Request<Body>| {
            dispatch(Arc::clone(&shared), Some(Arc::clone(&entry)), request)
        });
        let path = format!("{}{}", settings.path_prefix, path.trim_end_matches('/'));
        router = router.route(&format!("{path}/"), service.clone());
        if !path.is_empty() {
            router = router.route(&path, service);
        }
    }
    let tools = Arc::new(mcp::Endpoint::new(Arc::clone(&shared), router.clone()));
    let service = any(move |request: Request<Body>| {
        let tools = Arc::clone(&tools);
        async move { tools.answer(request).await }
    });
    let path = format!("{}{}", settings.path_prefix, mcp::PATH);
    router = router.route(&format!("{path}/"), service.clone()).route(&path, service);
    router = match settings.path_prefix.as_str() {
        "" => router.merge(pages),
        prefix => router.nest(prefix, pages),
    };
    let fallback = move |request: Request<Body>| dispatch(Arc::clone(&shared), None, request);
    let HttpSettings { cors_origins, has_access_log, is_recording, .. } = settings;
    let around = Arc::new(Outer { clock, ids, cors_origins, meters, has_access_log, is_recording });
    router
        .fallback(fallback)
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(is_in_memory)))
        .layer(middleware::from_fn_with_state(Arc::<Copies>::default(), keep_encoded))
        .layer(middleware::from_fn_with_state(around, outer))
}

/// Whether a response may be compressed on request; see [`FromFile`].
fn is_in_memory(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<FromFile>().is_none()
}

fn openapi_route<S: Send + 'static>(table: &[Route<S>]) -> Route<S> {
    const PATH: &str = "/openapi.json";
    let route = |document: Bytes| {
        Route::<S>::public(PATH, "Get this document").handle(move |_: S, _: Call, (): ()| {
            let document = document.clone();
            async move { Ok(Document { name: PATH, json: document }) }
        })
    };
    let own = route(Bytes::new());
    let specs = table.iter().chain([&own]).map(|route| &route.spec);
    route(Bytes::from(openapi::document(specs).to_string()))
}
