//! Model Context Protocol endpoint: tools and resources for language models, at `/mcp`.
//!
//! ```text
//! POST /mcp -> key, rate, body -> rmcp (streamable HTTP, stateless) -> Handler
//!                                    tools, resources -> Session -> the table of routes, with the
//!                                                                   same key
//!              on a query node that may not know the key: forwarded to the writer
//! ```
//!
//! A tool combines a few operations of the table of routes behind one typed input and one typed
//! result. Each operation passes the usual order of checks, so a tool cannot do anything that its
//! key could not do directly. No session is kept: any server over the same data can answer the next
//! message.
//!
//! Specification: <https://modelcontextprotocol.io/specification>.
//!
//! - `api`: calls operations of the table in-process
//! - `caller`: the caller of one message; `session`: one tool call and its tenant
//! - `tool`: a tool and its schemas; `tools`: the tools; `resources`: sources as resources
//! - `handler`: the protocol's requests

mod api;
mod caller;
mod handler;
mod resources;
mod session;
mod tool;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;

use crate::auth;
use crate::error::{ApiError, Condition};
use crate::forward::{Origin, Outgoing, require_name};
use crate::frame::dispatch::{Shared, is_for_writer};
use crate::frame::outer::{KeyId, RequestId, Template};
use crate::listen::Peer;
use crate::mcp::api::Api;
use crate::mcp::caller::Caller;
use crate::mcp::handler::Handler;
use crate::request::body::BodyReader;
use crate::request::spool::Spooler;
use lodestone_engine::ingest::ResultShare;
use lodestone_types::limits;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// Marks an operation as part of a request that was already counted against the key's rate limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted;

/// The `/mcp` endpoint.
pub(super) struct Endpoint<S> {
    shared: Arc<Shared<S>>,
    protocol: StreamableHttpService<Handler, NeverSessionManager>,
}

impl<S> Endpoint<S> {
    /// Creates the endpoint over the operations of `table`, which have the state `shared`.
    pub fn new(shared: Arc<Shared<S>>, table: Router) -> Self {
        let handler = Handler::new(Arc::new(Api::new(table, &shared.path_prefix)));
        // Pages of other sites cannot send the key, so the host need not be checked here;
        // `LODESTONE_CORS_ORIGINS` decides which pages may call.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(limits::MCP_MESSAGE_BYTES_MAX)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sessions = Arc::new(NeverSessionManager::default());
        let protocol = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
        Self { shared, protocol }
    }

    /// Answers one message.
    pub async fn answer(&self, request: Request<Body>) -> Response {
        let id = request.extensions().get::<RequestId>().map(|RequestId(id)| Arc::clone(id));
        let id = id.unwrap_or_else(|| "".into());
        let mut response = match self.answered(request, &id).await {
            Ok(response) => response,
            Err(error) => error.into_response(&id),
        };
        response.extensions_mut().insert(Template(PATH));
        response
    }

    async fn answered(&self, request: Request<Body>, id: &Arc<str>) -> Result<Response, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Shared { keys, gate, writer, name, .. } = &*self.shared;
        require_name(&parts.headers, name.as_deref())?;
        let peer = parts.extensions.get::<Arc<Peer>>().cloned();
        let granted = auth::authenticate(keys, &gate.key_lookups, &parts.headers).await;
        let grant = match (granted, writer) {
            // The writer may know the key.
            (Err(error), Some(writer)) if is_for_writer(&error, &parts) => {
                let body = self.body_of(&parts, body, "".into())?;
                let body = body.map_or(Outgoing::Nothing, Outgoing::Unread);
                let from = peer.as_ref().map(|peer| peer.address());
                let origin = Origin { request_id: Arc::clone(id), owner: "".into(), from };
                return self.shared.pass(writer, &parts, body, origin).await;
            }
            (granted, _) => granted?,
        };
        gate.count(&grant.key_id)?;
        let owner = grant.owner();
        if let Some(peer) = &peer {
            peer.authenticate(&owner)?;
        }
        let key_id = Arc::clone(&grant.key_id);
        let bytes = match self.body_of(&parts, body, owner)? {
            Some(reader) => reader.collect().await?,
            None => Bytes::new(),
        };
        if parts.method == Method::POST {
            check_message(&bytes)?;
        }
        let authorization = parts.headers.get(AUTHORIZATION).cloned();
        let authorization = authorization.unwrap_or_else(|| HeaderValue::from_static(""));
        let results = ResultShare::new(Arc::clone(&self.shared.gate.memory));
        let caller = Caller::new(&parts, grant, authorization, Arc::clone(id), peer, results)?;
        // The key is passed on to the operations of the table and no further.
        parts.headers.remove(AUTHORIZATION);
        parts.extensions.insert(Arc::new(caller));
        let request = Request::from_parts(parts, Full::new(bytes));
        let mut response = self.protocol.handle(request).await.map(Body::new);
        response.extensions_mut().insert(KeyId(key_id));
        Ok(response)
    }

    /// Prepares to read the body of a message; other requests have none.
    fn body_of(
        &self,
        parts: &Parts,
        body: Body,
        owner: Arc<str>,
    ) -> Result<Option<BodyReader>, ApiError> {
        if parts.method != Method::POST {
            return Ok(None);
        }
        let length = number(&parts.headers, CONTENT_LENGTH.as_str());
        let spooler = Spooler { spills: Arc::clone(&self.shared.gate.spills), owner };
        let bytes_max = limits::MCP_MESSAGE_BYTES_MAX;
        BodyReader::new(body, length, bytes_max, self.shared.pace, spooler).map(Some)
    }
}

/// Rejects a body that is not one JSON object with our own error, because the protocol library
/// would answer 415.
fn check_message(bytes: &Bytes) -> Result<(), ApiError> {
    let read = serde_json::from_slice::<HashMap<String, IgnoredAny>>(bytes);
    read.map(drop).map_err(|error| {
        let message = format!("the body is not a single JSON-RPC message: {error}");
        ApiError::new(Condition::Invalid, "malformed_body", message)
    })
}

fn number(headers: &HeaderMap, name: &str) -> Option<usize> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
