//! Shares of searches that other query nodes give to this one.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::Request;
use tokio::sync::Semaphore;

use super::{Answer, busy, bytes_response, read, refused, sent};
use crate::auth::{bearer_token, invalid_key};
use crate::routes::off_thread;
use lodestone_engine::Engine;
use lodestone_engine::query::shares::wire::{SHARE, TASK_BYTES_MAX};

/// Shares that are searched at once: each node admits no more searches than its own bounds, and
/// this is reached where several are at theirs.
const SHARES_MAX: usize = 256;

/// The service of shares; none where this node shares no searches.
pub fn share_router(engine: &Arc<Engine>) -> Router {
    if !engine.peers().is_some_and(|peers| peers.shares_searches()) {
        return Router::new();
    }
    let (engine, places) = (Arc::clone(engine), Arc::new(Semaphore::new(SHARES_MAX)));
    let serve = move |request: Request<Body>| {
        let (engine, places) = (Arc::clone(&engine), Arc::clone(&places));
        async move { sent(share(engine, places, request).await) }
    };
    Router::new().route(SHARE, post(serve))
}

async fn share(engine: Arc<Engine>, places: Arc<Semaphore>, request: Request<Body>) -> Answer {
    if !engine.accepts_node(bearer_token(request.headers())?) {
        return Err(invalid_key());
    }
    let place = places.try_acquire_owned().map_err(|_| busy())?;
    let task = read(request.into_body(), TASK_BYTES_MAX).await?;
    let work = move || {
        // Held until the work is done, also where nobody waits for it any more.
        let _place = place;
        engine.work_on_share(&task).map_err(refused)
    };
    Ok(bytes_response(off_thread(work).await?))
}
