//! The HTTP interface of an ingest node: authentication, its tasks, and health checks.
//!
//! ```text
//! GET  /healthz, /readyz           without a key
//! GET  /ingest, /metrics           with the key
//! POST /ingest/embed, /ingest/sparse, /ingest/parse
//!        key -> permit, else 503 -> body, limited -> work off the async threads
//! ```
//! Messages are defined in `ingest::nodes::wire`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, Request};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Answer, busy, bytes_response, json_response, read, refused, sent, unavailable};
use crate::auth::{bearer_token, invalid_key};
use crate::error::{ApiError, Condition};
use crate::routes::off_thread;
use crate::watch::text_response;
use lodestone_engine::ingest::nodes::NodeService;
use lodestone_engine::ingest::nodes::wire::{self, ParseTask};
use lodestone_engine::nodes::NodeRefusal;
use lodestone_metrics::Registry;
use lodestone_types::limits::FILE_BYTES_MAX;

/// Number of embedding tasks running or waiting for the model: enough for two servers that each
/// send as many as they may.
const EMBEDDING_MAX: usize = 2 * wire::TASKS_MAX;

struct Node {
    service: Arc<NodeService>,
    registry: Registry,
    /// Permits held by work until it is done, even if nobody waits for it any more.
    embedding: Arc<Semaphore>,
    parsing: Arc<Semaphore>,
}

type Embed = fn(&NodeService, &[u8]) -> Result<Vec<u8>, NodeRefusal>;

/// Returns the router of an ingest node and the router of its metrics listener, which needs no key.
pub fn ingest_node(service: Arc<NodeService>) -> (Router, Router) {
    let mut registry = Registry::default();
    service.enter_meters(&mut registry);
    // Each parser may take a process and half a gigabyte of memory.
    let parsers = std::thread::available_parallelism().map_or(1, usize::from);
    let [embedding, parsing] = [EMBEDDING_MAX, parsers].map(|max| Arc::new(Semaphore::new(max)));
    let node = Arc::new(Node { service, registry, embedding, parsing });
    let scrape = |State(node): State<Arc<Node>>| async move { text_response(node.registry.text()) };
    let metrics = Router::new().route("/metrics", get(scrape)).with_state(Arc::clone(&node));
    let router = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(measured))
        .route(wire::DESCRIPTION, get(describe))
        .route(wire::EMBED, post(embed))
        .route(wire::SPARSE, post(embed_sparse))
        .route(wire::PARSE, post(parse))
        .fallback(elsewhere)
        .with_state(node);
    (router, metrics)
}

async fn elsewhere() -> Response {
    let message = "this is an ingest node: it serves its server only, not clients";
    ApiError::new(Condition::RouteNotFound, "route_not_found", message).into_response("")
}

async fn alive() -> Response {
    json_response(&json!({"status": "ok", "role": "ingest"}))
}

async fn ready(State(node): State<Arc<Node>>) -> Response {
    sent(match node.service.problem() {
        None => Ok(json_response(&json!({"status": "ready"}))),
        Some(problem) => Err(unavailable(format!("the embedding model fails: {problem}"))),
    })
}

async fn measured(State(node): State<Arc<Node>>, headers: HeaderMap) -> Response {
    sent(node.require_key(&headers).map(|()| text_response(node.registry.text())))
}

async fn describe(State(node): State<Arc<Node>>, headers: HeaderMap) -> Response {
    sent(node.require_key(&headers).map(|()| json_response(node.service.description())))
}

async fn embed(State(node): State<Arc<Node>>, request: Request<Body>) -> Response {
    sent(node.embed(request, NodeService::embed).await)
}

async fn embed_sparse(State(node): State<Arc<Node>>, request: Request<Body>) -> Response {
    sent(node.embed(request, NodeService::embed_sparse).await)
}

async fn parse(
    State(node): State<Arc<Node>>,
    task: Result<Query<ParseTask>, axum::extract::rejection::QueryRejection>,
    request: Request<Body>,
) -> Response {
    sent(node.parse(task.ok().map(|Query(task)| task), request).await)
}

impl Node {
    fn require_key(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match self.service.key().accepts(bearer_token(headers)?) {
            true => Ok(()),
            false => Err(invalid_key()),
        }
    }

    async fn embed(&self, request: Request<Body>, embed: Embed) -> Answer {
        self.require_key(request.headers())?;
        let place = Arc::clone(&self.embedding).try_acquire_owned().map_err(|_| busy())?;
        let task = read(request.into_body(), wire::EMBED_BYTES_MAX).await?;
        let service = Arc::clone(&self.service);
        let work = move || {
            let _place = place;
            embed(&service, &task).map_err(refused)
        };
        Ok(bytes_response(off_thread(work).await?))
    }

    async fn parse(&self, task: Option<ParseTask>, request: Request<Body>) -> Answer {
        self.require_key(request.headers())?;
        let task = task.ok_or_else(|| {
            ApiError::invalid("invalid_value", "format is unknown to this release")
        })?;
        let place = Arc::clone(&self.parsing).try_acquire_owned().map_err(|_| busy())?;
        let document = read(request.into_body(), FILE_BYTES_MAX).await?;
        let service = Arc::clone(&self.service);
        let work = move || {
            let _place = place;
            Ok(service.parse(task.format, &document))
        };
        Ok(bytes_response(off_thread(work).await?))
    }
}
