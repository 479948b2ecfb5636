//! Placement: directs requests about a tenant to the query node that has the tenant open.
//!
//! ```text
//! tenant of the request -> its node (engine, `Peers`) -> forwarded; [`ELSEWHERE`]: run here
//!                                      '- no response within a second: run here too, first wins
//! ```
//! A tenant whose searches are distributed over the nodes is open on all of them, and any node
//! answers for it. Only requests that change nothing are placed, so running one twice is harmless.
//! A request that was forwarded once is not forwarded again.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::forward::{AWAY, Origin, Outgoing, Upstream, is_marked};
use crate::request::Payload;
use crate::routes::{PARSE_INLINE_BYTES_MAX, RouteSpec, ServingNode, off_thread};
use crate::sse;
use lodestone_engine::{Assignment, PeerEnd, Peers};
use lodestone_types::TenantId;

/// Delay after which this node runs a search as well, in parallel to the node that was asked.
const HEDGE: Duration = Duration::from_secs(1);
/// Reasons of a 503 that mean that another node is not the right one to answer now. After any other
/// reason, this node could do no better.
const ELSEWHERE: [&str; 4] = ["node_behind", "overloaded", "shutting_down", "standby"];
/// Largest 503 body that is examined, in bytes, and the time allowed for reading it.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const REFUSAL: Duration = Duration::from_secs(1);
/// Name of the tenant parameter, in the query and in the body.
const TENANT: &str = "tenant_id";

/// The query nodes that tenants are distributed over.
#[derive(Debug)]
pub(super) struct Placement {
    peers: Arc<Peers>,
    ways: Vec<Upstream>,
}

/// A request about a tenant that is assigned to a node.
pub(super) struct Placed<'a> {
    placement: &'a Placement,
    assignment: Assignment,
    body: Bytes,
    /// Whether two nodes may run it at the same time; not the case for an answer written by a
    /// language model.
    is_hedged: bool,
}

impl Placement {
    /// Creates the placement. Requests to nodes count against the same bounds as those to the
    /// writer.
    pub fn new(peers: Arc<Peers>, writer: &Upstream) -> Self {
        let ways = peers.forwarders().map(|way| writer.beside(Arc::clone(way))).collect();
        Self { peers, ways }
    }

    /// Assigns a request to a node; returns `None` if this process should answer it without
    /// placement.
    pub async fn place(
        &self,
        spec: &RouteSpec,
        parts: &Parts,
        query: &[(String, String)],
        payload: &Payload,
    ) -> Option<Placed<'_>> {
        let is_placed = spec.served_by == ServingNode::Any && spec.role.is_some();
        let Payload::Json(body) = payload else { return None };
        if !is_placed || is_marked(&parts.headers) {
            return None;
        }
        let tenant = match query.iter().find(|(name, _)| name == TENANT) {
            Some((_, name)) => TenantId::parse(name).ok()?,
            None if body.len() <= PARSE_INLINE_BYTES_MAX => tenant_in(body)?,
            None => {
                let body = body.clone();
                off_thread(move || Ok(tenant_in(&body))).await.ok()??
            }
        };
        let assignment = self.peers.begin(&tenant)?;
        if assignment.other().is_some() && self.peers.shares_searches() {
            let peers = Arc::clone(&self.peers);
            // The check reads the catalog, which may block.
            let is_shared = off_thread(move || Ok(peers.is_shared(&tenant))).await;
            if is_shared.is_ok_and(|is_shared| is_shared) {
                return None;
            }
        }
        let is_hedged = !spec.media_types.contains(&sse::MEDIA_TYPE);
        Some(Placed { placement: self, assignment, body: body.clone(), is_hedged })
    }
}

/// Returns the tenant named in the body of a request.
fn tenant_in(body: &[u8]) -> Option<TenantId> {
    #[derive(Deserialize)]
    struct Named {
        tenant_id: Option<String>,
    }
    let named: Named = serde_json::from_slice(body).ok()?;
    TenantId::parse(&named.tenant_id?).ok()
}

impl Placed<'_> {
    /// Returns the response of the assigned node, or that of `here` if this process is that node or
    /// the other fails to answer or is slow.
    pub async fn answer(
        self,
        parts: &Parts,
        target: &str,
        origin: Origin,
        here: impl Future<Output = Result<Response, ApiError>>,
    ) -> Result<Response, ApiError> {
        let hedge = self.is_hedged.then_some(HEDGE);
        match self.assignment.other() {
            None => here.await,
            Some(at) => first_of(hedge, self.ask(at, parts, target, origin), here).await,
        }
    }

    /// Asks a node; returns `None` if it does not respond or declines. Only a node that does not
    /// respond is reported as lost: a request refused by this process itself says nothing about the
    /// node.
    async fn ask(
        &self,
        at: usize,
        parts: &Parts,
        target: &str,
        origin: Origin,
    ) -> Option<Response> {
        let Self { placement: Placement { peers, ways }, body, .. } = self;
        let passed = ways[at].pass(parts, target, Outgoing::Whole(body.clone()), origin).await;
        let (end, answer) = match passed {
            Ok(answer) => end_of(answer).await,
            Err(error) if error.reason() == AWAY => (PeerEnd::Lost, None),
            Err(error) => {
                tracing::debug!(reason = error.reason(), "a request was not forwarded");
                return None;
            }
        };
        peers.note(at, end);
        answer
    }
}

/// Classifies a node's response, which is returned if it is usable.
async fn end_of(answer: Response) -> (PeerEnd, Option<Response>) {
    #[derive(Deserialize)]
    struct Refusal {
        reason: String,
    }
    if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
        return (PeerEnd::Answered, Some(answer));
    }
    let (head, body) = answer.into_parts();
    let Ok(Ok(body)) = timeout(REFUSAL, to_bytes(body, REFUSAL_BYTES_MAX)).await else {
        return (PeerEnd::Lost, None);
    };
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { reason }) if ELSEWHERE.contains(&&*reason) => (PeerEnd::Refused, None),
        _ => (PeerEnd::Answered, Some(Response::from_parts(head, Body::from(body)))),
    }
}

/// Returns the response of another node, or that of `here` if the node has none. If the node has
/// not begun to respond after `hedge`, both run and the first response wins, but a failure of
/// `here` still waits for the node.
async fn first_of(
    hedge: Option<Duration>,
    there: impl Future<Output = Option<Response>>,
    here: impl Future<Output = Result<Response, ApiError>>,
) -> Result<Response, ApiError> {
    let mut there = pin!(there);
    let first = match hedge {
        Some(hedge) => timeout(hedge, there.as_mut()).await,
        None => Ok(there.as_mut().await),
    };
    match first {
        Ok(Some(response)) => Ok(response),
        Ok(None) => here.await,
        Err(_late) => {
            let mut here = pin!(here);
            tokio::select! {
                answer = there.as_mut() => match answer {
                    Some(response) => Ok(response),
                    None => here.await,
                },
                outcome = here.as_mut() => match outcome {
                    Err(error) if error.condition().row().0.is_server_error() => {
                        there.await.ok_or(error)
                    }
                    outcome => outcome,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::future::{pending, ready};

    use crate::error::Condition;
    use tokio::sync::oneshot;

    fn response(status: u16) -> Response {
        Response::builder().status(status).body(Body::empty()).unwrap()
    }

    async fn first(
        hedge: Option<Duration>,
        there: impl Future<Output = Option<Response>>,
        here: impl Future<Output = Result<Response, ApiError>>,
    ) -> u16 {
        first_of(hedge, there, here).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn the_other_node_answers_or_this_one_does() {
        let here = || ready(Ok(response(201)));
        for hedge in [Some(Duration::ZERO), Some(HEDGE), None] {
            assert_eq!(first(hedge, ready(Some(response(202))), pending()).await, 202);
            assert_eq!(first(hedge, ready(None), here()).await, 201);
        }
        assert_eq!(first(Some(Duration::ZERO), pending(), here()).await, 201);
        // Both are in progress; this node ends the wait for the other, with or without a response.
        for answer in [Some(202), None] {
            let (tell, told) = oneshot::channel::<()>();
            let there = async {
                let _ = told.await;
                answer.map(response)
            };
            let here = async {
                tell.send(()).unwrap();
                match answer {
                    Some(_) => pending().await,
                    None => Ok(response(201)),
                }
            };
            let expected = answer.unwrap_or(201);
            assert_eq!(first(Some(Duration::ZERO), there, here).await, expected);
        }
        // A failure here waits for the other node; a request that is refused here would be refused
        // there.
        let failed = |condition| ready(Err(ApiError::new(condition, "x", "y")));
        let (tell, told) = oneshot::channel::<()>();
        let there = async {
            let _ = told.await;
            Some(response(202))
        };
        let here = async {
            tell.send(()).unwrap();
            failed(Condition::Unavailable).await
        };
        assert_eq!(first(Some(Duration::ZERO), there, here).await, 202);
        for (there, condition) in [(None, Condition::Unavailable), (Some(()), Condition::Invalid)] {
            let there = async {
                match there {
                    None => tokio::task::yield_now().await,
                    Some(()) => pending().await,
                }
                None
            };
            let outcome = first_of(Some(Duration::ZERO), there, failed(condition)).await;
            assert_eq!(outcome.unwrap_err().condition(), condition);
        }
        // Without a hedge, nothing is started here in parallel.
        let mut alone = pin!(first_of(None, pending(), async { unreachable!("nobody asked") }));
        assert!(timeout(Duration::ZERO, alone.as_mut()).await.is_err());
    }

    /// Goal: refusals that this node could not improve on are returned as they are, while refusals
    /// that mean "ask another node" are not.
    #[tokio::test]
    async fn refusals_of_a_node_are_told_from_its_answers() {
        let unavailable =
            |body: String| Response::builder().status(503).body(Body::from(body)).unwrap();
        for reason in ELSEWHERE {
            let error = ApiError::new(Condition::Unavailable, reason, "later");
            let (end, answer) = end_of(error.into_response("id")).await;
            assert_eq!((end, answer.is_none()), (PeerEnd::Refused, true), "{reason}");
        }
        let damaged = ApiError::new(Condition::Unavailable, "data_damaged", "lost");
        for body in [damaged.body("id").to_string(), "<html>".to_owned(), String::new()] {
            let (end, answer) = end_of(unavailable(body.clone())).await;
            let answer = answer.unwrap();
            assert_eq!((end, answer.status().as_u16()), (PeerEnd::Answered, 503));
            assert_eq!(to_bytes(answer.into_body(), REFUSAL_BYTES_MAX).await.unwrap(), body);
        }
        let cut = unavailable("x".repeat(REFUSAL_BYTES_MAX + 1));
        assert_eq!(end_of(cut).await.0, PeerEnd::Lost);
        assert_eq!(end_of(response(404)).await.0, PeerEnd::Answered);
    }

    #[test]
    fn the_tenant_of_a_request_is_found_in_its_body() {
        let named = |body: &str| tenant_in(body.as_bytes()).map(|tenant| tenant.to_string());
        assert_eq!(named(r#"{"x": [1], "tenant_id": "b"}"#).as_deref(), Some("b"));
        for value in ["7", "\"\"", "null", "[]"] {
            assert_eq!(named(&format!(r#"{{"tenant_id": {value}}}"#)), None, "{value}");
        }
        for body in ["", "[]", "{"] {
            assert_eq!(named(body), None, "{body}");
        }
    }
}
