//! Passes one request through the checks that precede its handler, in the order shown in the parent
//! module.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request};
use tokio::time::sleep;

use crate::admission::Gate;
use crate::auth::{self, Authenticator};
use crate::error::{ApiError, Condition, ErrorForm};
use crate::forward::{AWAY, Origin, Outgoing, Upstream, client_of, is_marked, require_name};
use crate::frame::audit::{Act, Subject};
use crate::frame::inputs::{
    FORWARDED_PROTO, base_url, headers_of, idempotency_of, path_of, query_of,
};
use crate::frame::media::check_media;
use crate::frame::outer::{KeyId, RequestId, Template};
use crate::frame::placed::Placement;
use crate::listen::Peer;
use crate::listen::pace::Pace;
use crate::mcp::Counted;
use crate::request::body::BodyReader;
use crate::request::names::Handling;
use crate::request::spool::Spooler;
use crate::request::{Call, Input, Payload, multipart};
use crate::routes::{Effect, Media, Route, RouteSpec, ServingNode, openapi};
use lodestone_engine::ingest::ResultShare;
use lodestone_types::{Grant, Role, Tally, limits};

/// State shared by all requests.
pub(crate) struct Shared<S> {
    pub app: S,
    pub keys: Arc<dyn Authenticator>,
    pub gate: Arc<Gate>,
    pub pace: Pace,
    /// Delay of responses to changes.
    pub change_delay: Duration,
    /// URL scheme of the listener.
    pub scheme: HeaderValue,
    /// Name under which this server writes, checked against requests that nodes forward.
    pub name: Option<String>,
    /// The way to the writer, on a query node.
    pub writer: Option<Upstream>,
    /// The query nodes that tenants are distributed over, if this process is one of them.
    pub(super) placement: Option<Placement>,
    /// Prefix of every path.
    pub path_prefix: String,
}

impl<S> Shared<S> {
    /// Returns the form of error bodies for a path.
    fn error_form(&self, path: &str) -> ErrorForm {
        ErrorForm::of_path(self.below_prefix(path))
    }

    fn below_prefix<'a>(&self, path: &'a str) -> &'a str {
        path.strip_prefix(self.path_prefix.as_str()).unwrap_or(path)
    }

    /// Forwards a request to the writer.
    pub(crate) async fn pass(
        &self,
        writer: &Upstream,
        parts: &Parts,
        body: Outgoing,
        origin: Origin,
    ) -> Result<Response, ApiError> {
        writer.pass(parts, self.target(parts), body, origin).await
    }

    /// Returns path and query of a request, without this server's prefix.
    fn target<'a>(&self, parts: &'a Parts) -> &'a str {
        self.below_prefix(parts.uri.path_and_query().map_or("/", PathAndQuery::as_str))
    }
}

/// All operations at one path.
pub(super) struct Entry<S> {
    pub path: &'static str,
    pub routes: Vec<Route<S>>,
}

/// Answers a request; `entry` is `None` if no path matched. Never fails and never panics.
pub(super) async fn dispatch<S>(
    shared: Arc<Shared<S>>,
    entry: Option<Arc<Entry<S>>>,
    request: Request<Body>,
) -> Response
where
    S: Clone + Send + Sync + 'static,
{
    let request_id = match request.extensions().get::<RequestId>() {
        Some(RequestId(id)) => Arc::clone(id),
        None => "".into(),
    };
    let path = entry.as_ref().map_or("-", |entry| entry.path);
    let form = shared.error_form(request.uri().path());
    let answered = answer(&shared, entry.as_deref(), request, &request_id);
    let outcome = AssertUnwindSafe(answered).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(ApiError::internal("the handler panicked")));
    let mut response = outcome.unwrap_or_else(|error| {
        if let Some(cause) = error.cause() {
            tracing::error!(route = path, %request_id, cause, "request failed");
        }
        error.into_response_as(form, &request_id)
    });
    response.extensions_mut().insert(Template(path));
    response
}

async fn answer<S>(
    shared: &Shared<S>,
    entry: Option<&Entry<S>>,
    request: Request<Body>,
    request_id: &Arc<str>,
) -> Result<Response, ApiError>
where
    S: Clone + Send + Sync + 'static,
{
    let (mut parts, body) = request.into_parts();
    // Set as a proxy would, because a server that receives the forwarded request cannot know it.
    parts.headers.entry(FORWARDED_PROTO).or_insert_with(|| shared.scheme.clone());
    let is_public =
        entry.is_some_and(|entry| entry.routes.iter().all(|route| route.spec.role.is_none()));
    let is_counted = parts.extensions.get::<Counted>().is_some();
    require_name(&parts.headers, shared.name.as_deref())?;
    let peer = parts.extensions.get::<Arc<Peer>>().cloned();
    let admitted = match is_public {
        true => Ok(None),
        false => admit(shared, &parts.headers, is_counted).await.map(Some),
    };
    let grant = match (admitted, &shared.writer) {
        // The writer may know the key.
        (Err(error), Some(writer)) if is_for_writer(&error, &parts) => {
            let spec = &find_route(entry, &parts.method)?.spec;
            if spec.served_by == ServingNode::Asked {
                return Err(error);
            }
            let reader = open_body(shared, spec, spec.body_bytes_max, &parts.headers, body, None)?;
            let body = reader.map_or(Outgoing::Nothing, Outgoing::Unread);
            let from = peer.as_ref().map(|peer| peer.address());
            let (request_id, owner) = (Arc::clone(request_id), "".into());
            return shared.pass(writer, &parts, body, Origin { request_id, owner, from }).await;
        }
        (admitted, _) => admitted?,
    };
    if let (Some(grant), Some(peer)) = (&grant, &peer) {
        peer.authenticate(&grant.owner())?;
    }
    let route = find_route(entry, &parts.method)?;
    let key_id = grant.as_ref().map(|grant| KeyId(Arc::clone(&grant.key_id)));
    let from = peer.as_ref().map(|peer| peer.address());
    let audited = grant.clone();
    // A forwarded request is logged by the writer.
    let is_own = shared.writer.is_none() || route.spec.served_by != ServingNode::Writer;
    let headers = parts.headers.clone();
    let audited = audited.as_ref().filter(|_| is_own);
    let act = Act::begin(&route.spec, audited, request_id, from, client_of(&headers));
    let subject = act.as_ref().map(|act| Arc::clone(&act.subject)).unwrap_or_default();
    let arrived = Arrived { parts, body, grant, peer, request_id, subject };
    let mut outcome = carried_out(shared, route, arrived).await;
    if let Some(act) = act {
        act.end(&outcome);
    }
    if let (Ok(response), Some(key_id)) = (&mut outcome, key_id) {
        response.extensions_mut().insert(key_id);
    }
    outcome
}

/// A request whose key and route are known.
struct Arrived<'a> {
    parts: Parts,
    body: Body,
    grant: Option<Grant>,
    peer: Option<Arc<Peer>>,
    request_id: &'a Arc<str>,
    subject: Subject,
}

/// Checks role, media type and size, then runs the operation or forwards it to another process.
async fn carried_out<S>(
    shared: &Shared<S>,
    route: &Route<S>,
    arrived: Arrived<'_>,
) -> Result<Response, ApiError>
where
    S: Clone + Send + Sync + 'static,
{
    let Arrived { mut parts, body, mut grant, peer, request_id, subject } = arrived;
    if let (Some(found), Some(role)) = (&mut grant, route.spec.role) {
        auth::require_role(found, role)?;
        // Administrative work on a tenant does not count towards the tenant's own usage.
        if role < Role::Admin {
            found.tally = Tally::counting();
        }
    }
    let content_type = check_media(&route.spec, &parts.headers, &body)?;
    let bytes_max = match (route.spec.media, &content_type) {
        (Media::JsonOrNpy, Some(_)) => limits::NPY_BYTES_MAX,
        _ => route.spec.body_bytes_max,
    };
    let reader = open_body(shared, &route.spec, bytes_max, &parts.headers, body, grant.as_ref())?;
    let from = peer.as_ref().map(|peer| peer.address());
    let owner = grant.as_ref().map_or_else(|| "".into(), Grant::owner);
    let origin = Origin { request_id: Arc::clone(request_id), owner, from };
    if let (Some(writer), ServingNode::Writer) = (&shared.writer, route.spec.served_by) {
        let body = reader.map_or(Outgoing::Nothing, Outgoing::Unread);
        return shared.pass(writer, &parts, body, origin).await;
    }
    let query = query_of(&parts)?;
    let path = path_of(&mut parts).await?;
    let payload = payload_of(&route.spec, reader, content_type).await?;
    let placed = match &shared.placement {
        Some(nodes) => nodes.place(&route.spec, &parts, &query, &payload).await,
        None => None,
    };
    let asked = Asked { query, path, payload, grant, peer, subject, origin: origin.clone() };
    let here = carried_out_here(shared, route, &parts, asked);
    match placed {
        None => here.await,
        Some(placed) => placed.answer(&parts, shared.target(&parts), origin, here).await,
    }
}

/// A request that has been read and may be carried out by this process.
struct Asked {
    query: Vec<(String, String)>,
    path: Vec<(String, String)>,
    payload: Payload,
    grant: Option<Grant>,
    peer: Option<Arc<Peer>>,
    subject: Subject,
    origin: Origin,
}

/// Runs the operation in this process; if that cannot answer, forwards it to the writer.
async fn carried_out_here<S>(
    shared: &Shared<S>,
    route: &Route<S>,
    parts: &Parts,
    asked: Asked,
) -> Result<Response, ApiError>
where
    S: Clone + Send + Sync + 'static,
{
    let Asked { query, path, payload, grant, peer, subject, origin } = asked;
    // Kept for the writer, in case this node cannot answer. Other kinds of body belong to changes,
    // which were forwarded before.
    let kept = match (&payload, &shared.writer) {
        (Payload::Json(bytes), Some(writer)) => Some((writer, bytes.clone())),
        _ => None,
    };
    let handling = match (Handling::of(&parts.headers), ErrorForm::of_path(route.spec.path)) {
        // OpenAI clients send parameters that are meant for other servers.
        (Handling::Usual, ErrorForm::OpenAi) => Handling::Lenient,
        (handling, _) => handling,
    };
    let headers = headers_of(&route.spec, &parts.headers)?;
    let input = Input { query, path, headers, payload, handling };
    let (input, idempotency) = idempotency_of(&parts.headers, input).await?;
    let call = Call {
        grant,
        request_id: Arc::clone(&origin.request_id),
        route: route.spec.path,
        base_url: base_url(parts, route.spec.path),
        idempotency,
        ignored: [].into(),
        memory: None,
        results: Arc::new(ResultShare::new(Arc::clone(&shared.gate.memory))),
        admitted: None,
        gate: Arc::clone(&shared.gate),
        peer,
        subject,
        is_at_node: shared.writer.is_some(),
    };
    match (route.answer(shared.app.clone(), call, input).await, kept) {
        (Err(error), Some((writer, body))) if is_for_writer(&error, parts) => {
            let passed = shared.pass(writer, parts, Outgoing::Whole(body), origin).await;
            // The request changes nothing, so if the writer is unreachable, the first error stands.
            passed.map_err(|failed| if failed.reason() == AWAY { error } else { failed })
        }
        (Ok(response), _) if route.spec.effect == Effect::Visible => {
            // The slot has been released, so this delay holds up no other request.
            sleep(shared.change_delay).await;
            Ok(response)
        }
        (outcome, _) => outcome,
    }
}

/// Whether the writer should answer instead; false if a node has already forwarded the request.
pub(crate) fn is_for_writer(error: &ApiError, parts: &Parts) -> bool {
    error.condition() == Condition::AtWriter && !is_marked(&parts.headers)
}

/// Reads the whole body.
async fn payload_of(
    spec: &RouteSpec,
    reader: Option<BodyReader>,
    content_type: Option<HeaderValue>,
) -> Result<Payload, ApiError> {
    let Some(reader) = reader else { return Ok(Payload::Json(Bytes::new())) };
    Ok(match (spec.media, content_type) {
        (Media::Multipart, Some(content_type)) => {
            Payload::Form(multipart::read(reader, content_type, spec.fields).await?)
        }
        (Media::UrlEncoded, Some(_)) => {
            Payload::Form(multipart::read_urlencoded(&reader.collect().await?)?)
        }
        (Media::JsonOrNpy, Some(_)) => Payload::Npy(reader.collect().await?),
        (Media::Lines, _) => Payload::Lines(reader.collect().await?),
        _ => Payload::Json(reader.collect().await?),
    })
}

/// Checks the key, then the rate, both before the request is routed or its body is read.
async fn admit<S>(
    shared: &Shared<S>,
    headers: &HeaderMap,
    is_counted: bool,
) -> Result<Grant, ApiError> {
    let grant = auth::authenticate(&shared.keys, &shared.gate.key_lookups, headers).await?;
    if !is_counted {
        shared.gate.count(&grant.key_id)?;
    }
    Ok(grant)
}

fn find_route<'a, S>(
    entry: Option<&'a Entry<S>>,
    method: &Method,
) -> Result<&'a Route<S>, ApiError> {
    let Some(entry) = entry else {
        let message = "path not found";
        return Err(ApiError::new(Condition::RouteNotFound, "route_not_found", message));
    };
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let found = entry.routes.iter().find(|route| route.spec.method == *method);
    found.ok_or_else(|| {
        let methods = entry.routes.iter().map(|route| &route.spec.method);
        ApiError::method_not_allowed(openapi::allow(methods))
    })
}

/// Prepares to read the body; fails with 413 by the announced length, before reading a byte.
fn open_body<S>(
    shared: &Shared<S>,
    spec: &RouteSpec,
    bytes_max: usize,
    headers: &HeaderMap,
    body: Body,
    grant: Option<&Grant>,
) -> Result<Option<BodyReader>, ApiError> {
    if spec.media == Media::None || body.is_end_stream() {
        return Ok(None);
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = announced.and_then(|text| text.parse().ok());
    let owner = grant.map_or_else(|| "".into(), Grant::owner);
    let spooler = Spooler { spills: Arc::clone(&shared.gate.spills), owner };
    BodyReader::new(body, length, bytes_max, shared.pace, spooler).map(Some)
}
