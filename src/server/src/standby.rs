//! The HTTP services of a standby process, which waits to take over as the writer.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use crate::error::{ApiError, Condition};
use crate::frame::outer::{REQUEST_ID_HEADER, request_id};
use crate::nodes::json_response;
use crate::watch::text_response;
use lodestone_metrics::{Gauge, Registry};
use lodestone_types::{RandomIds, SystemClock};

/// Seconds after which a refused client should retry.
const RETRY_SECONDS: u32 = 5;

/// Returns the router of a standby process, which answers health checks and 503 for everything
/// else, and the router of its metrics.
pub fn standby_routers() -> (Router, Router) {
    let (mut registry, waiting) = (Registry::default(), Gauge::default());
    let help = "Whether this process is a standby that waits to become the writer";
    registry.enter("standby", help, &waiting);
    waiting.set(1);
    let text = registry.text();
    let metrics = Router::new().route("/metrics", get(async || text_response(text)));
    let alive = async || json_response(&json!({"status": "ok", "standby": true}));
    (Router::new().route("/healthz", get(alive)).fallback(elsewhere), metrics)
}

async fn elsewhere(headers: HeaderMap) -> Response {
    let id = request_id(&headers, &RandomIds, &SystemClock);
    let message = "this process is a standby: it takes over when the writer is gone";
    let error = ApiError::new(Condition::Unavailable, "standby", message);
    let mut response = error.with_retry_after(RETRY_SECONDS).into_response(&id);
    let id = HeaderValue::try_from(&*id).expect("request ids are plain ASCII");
    response.headers_mut().insert(REQUEST_ID_HEADER, id);
    response
}
