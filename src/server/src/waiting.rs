//! The HTTP services of a process that cannot open the data of its bucket yet.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use crate::error::{ApiError, Condition};
use crate::frame::outer::{REQUEST_ID_HEADER, request_id};
use crate::nodes::json_response;
use crate::watch::text_response;
use lodestone_engine::WaitsFor;
use lodestone_metrics::{Gauge, Registry};
use lodestone_types::{RandomIds, SystemClock};

/// Seconds after which a refused client should retry.
const RETRY_SECONDS: u32 = 5;

/// Returns the router of a waiting process, which answers health checks and 503 for everything
/// else, and the router of its metrics.
pub fn waiting_routers(waits_for: WaitsFor) -> (Router, Router) {
    let (mut registry, waiting) = (Registry::default(), Gauge::default());
    waiting.set(1);
    let (name, help, reason, message) = match waits_for {
        WaitsFor::Takeover => (
            "standby",
            "Whether this process is a standby that waits to become the writer",
            "standby",
            "this process is a standby: it takes over when the writer is gone",
        ),
        WaitsFor::FirstData => (
            "waiting",
            "Whether this process is a query node that waits for the first data in the bucket",
            "node_behind",
            "the bucket has no data yet: this query node waits for the writer",
        ),
    };
    registry.enter(name, help, &waiting);
    let text = registry.text();
    let metrics = Router::new().route("/metrics", get(async || text_response(text)));
    let alive = async move || json_response(&json!({"status": "ok", name: true}));
    let elsewhere = async move |headers: HeaderMap| refusal(&headers, reason, message);
    (Router::new().route("/healthz", get(alive)).fallback(elsewhere), metrics)
}

fn refusal(headers: &HeaderMap, reason: &'static str, message: &str) -> Response {
    let id = request_id(headers, &RandomIds, &SystemClock);
    let error = ApiError::new(Condition::Unavailable, reason, message);
    let mut response = error.with_retry_after(RETRY_SECONDS).into_response(&id);
    let id = HeaderValue::try_from(&*id).expect("request ids are plain ASCII");
    response.headers_mut().insert(REQUEST_ID_HEADER, id);
    response
}
