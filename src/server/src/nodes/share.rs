//! A query node's description of itself, and the parts of searches that other nodes send it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, Request};
use tokio::sync::Semaphore;

use super::{Answer, busy, bytes_response, json_response, read, refused};
use crate::auth::{bearer_token, invalid_key};
use crate::error::ApiError;
use crate::frame::outer::RequestId;
use crate::routes::off_thread;
use lodestone_engine::Engine;
use lodestone_engine::nodes::QUERY_NODE;
use lodestone_engine::query::shares::wire::{SHARE, TASK_BYTES_MAX};

/// Number of parts that are searched concurrently. Each node bounds its own searches, so this limit
/// matters only when several nodes reach their bounds.
const SHARES_MAX: usize = 256;

/// Returns the routes for other nodes: none unless this is a query node, and parts of searches only
/// if it shares searches.
pub fn share_router(engine: &Arc<Engine>) -> Router {
    if engine.follow_state().is_none() {
        return Router::new();
    }
    let own = Arc::clone(engine);
    let tell = move |headers: HeaderMap| async move { description(&own, &headers) };
    let tell = get(tell).fallback(|request| only("GET, HEAD", request));
    let router = Router::new().route(QUERY_NODE, tell);
    if !engine.peers().is_some_and(|peers| peers.shares_searches()) {
        return router;
    }
    let (engine, places) = (Arc::clone(engine), Arc::new(Semaphore::new(SHARES_MAX)));
    let serve = move |request: Request<Body>| {
        let (engine, places) = (Arc::clone(&engine), Arc::clone(&places));
        async move {
            let id = RequestId::of(request.extensions()).to_owned();
            share(engine, places, request).await.unwrap_or_else(|error| error.into_response(&id))
        }
    };
    router.route(SHARE, post(serve).fallback(|request| only("POST", request)))
}

/// Refuses a method that the path does not support.
async fn only(methods: &str, request: Request<Body>) -> Response {
    let error = ApiError::method_not_allowed(methods.to_owned());
    error.into_response(RequestId::of(request.extensions()))
}

fn description(engine: &Engine, headers: &HeaderMap) -> Response {
    let node = engine.query_node(bearer_token(headers).unwrap_or_default());
    json_response(&node)
}

async fn share(engine: Arc<Engine>, places: Arc<Semaphore>, request: Request<Body>) -> Answer {
    if !engine.accepts_node(bearer_token(request.headers())?) {
        return Err(invalid_key());
    }
    let place = places.try_acquire_owned().map_err(|_| busy())?;
    let task = read(request.into_body(), TASK_BYTES_MAX).await?;
    let work = move || {
        // Held until the work is done, even if nobody waits for it any more.
        let _place = place;
        engine.work_on_share(&task).map_err(refused)
    };
    Ok(bytes_response(off_thread(work).await?))
}
