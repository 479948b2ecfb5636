//! Forwarding: a query node passes requests on unchanged to the server that is to answer them.
//!
//! ```text
//! client -> BodyReader -> a few pieces -> thread: Exchange::send -> the writer
//! client <- Body       <- a few pieces <- thread: head, body     <-
//! ```
//! An exchange occupies one thread, because everything below this crate blocks, and the memory of a
//! few pieces, however long its bodies are. Its threads are separate from those that run other
//! requests, and no tenant or key may hold more exchanges than remain free for others.
//!
//! Invariants: nothing is sent twice; if the body breaks off on one side, it breaks off on the
//! other; a request that was forwarded once is not forwarded again, and only the server that the
//! node follows carries it out.

use std::future::pending;
use std::io::{self, Cursor, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf, Bytes};
use futures_util::stream;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, ORIGIN, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::error::{ApiError, Condition};
use crate::file_body::FromFile;
use crate::frame::outer::REQUEST_ID_HEADER;
use crate::frame::trace::{TRACEPARENT, TraceContext};
use crate::request::body::BodyReader;
use crate::shares::Shares;
use lodestone_fetch::Forwarder;
use lodestone_fetch::forward::{Addresses, Exchange, ForwardBody, ForwardError, ForwardRequest};

/// Header that marks a request forwarded by a query node; its value names the writer.
const FORWARDED: HeaderName = HeaderName::from_static("x-lodestone-forwarded");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Value of the mark while the name of the writer is not yet known.
const ANY: HeaderValue = HeaderValue::from_static("any");
/// Headers that apply to a single connection (RFC 9110 7.6.1), in addition to those that
/// `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Maximum number of exchanges at a time.
const EXCHANGES_MAX: usize = 512;
/// Number of body pieces buffered in a channel, in each direction.
const PIECES_MAX: usize = 4;
/// Size of one piece of a response, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Time for which a response is awaited while the writer is unusable, and the interval at which
/// that is checked.
const LOST: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(1);
/// Reason of the error returned when a server does not answer.
pub(crate) const AWAY: &str = "writer_away";
/// Warning added when a change was sent but no response came.
const MAY_BE: &str = "a requested change may have been applied";
/// Seconds after which a client should retry.
const RETRY_SECONDS: u32 = 1;

/// A server that requests are forwarded to: the writer or another query node.
#[derive(Debug)]
pub(crate) struct Upstream {
    server: Arc<Addresses>,
    exchanges: Arc<Shares>,
}

/// The origin of a forwarded request: what the node sends along, and the owner it counts for.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The id of the request.
    pub request_id: Arc<str>,
    /// The owner of the key ([`lodestone_types::Grant::owner`]); empty if there is no key.
    pub owner: Arc<str>,
    /// Address of the other end of the client's connection.
    pub from: Option<IpAddr>,
}

/// A body to forward.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// The request has no body.
    Nothing,
    /// A body that is read while it is forwarded.
    Unread(BodyReader),
    /// A body that has already been read.
    Whole(Bytes),
}

/// Refuses a request that a query node sent to a server of another name, which would apply it to
/// the wrong data. Checked before the key, which such a server mostly does not know: a 401 would
/// blame the key. Whoever guesses the name learns nothing, because `/healthz` tells it.
///
/// # Errors
/// 503 `writer_differs`.
pub(crate) fn require_name(headers: &HeaderMap, own: Option<&str>) -> Result<(), ApiError> {
    match headers.get(FORWARDED) {
        Some(name) if *name != ANY && own.is_none_or(|own| own != *name) => {
            let message = "the query node that forwarded this request follows other data than this \
                server writes; nothing was changed; correct its writer-url";
            Err(unavailable("writer_differs", message))
        }
        _ => Ok(()),
    }
}

/// Returns the client address reported by the query node that forwarded the request. Anyone can
/// send these headers, so it is a claim of the caller.
pub(crate) fn client_of(headers: &HeaderMap) -> Option<&str> {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back().filter(|_| is_marked(headers));
    last.and_then(|value| value.to_str().ok())
}

/// Whether a query node has forwarded the request.
pub(crate) fn is_marked(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}

impl Upstream {
    pub fn new(server: Arc<Addresses>) -> Self {
        Self { server, exchanges: Shares::new(EXCHANGES_MAX) }
    }

    /// Creates an upstream for another server whose exchanges count against the same bounds.
    pub fn beside(&self, way: Arc<Forwarder>) -> Self {
        Self { server: Arc::new(way.into()), exchanges: Arc::clone(&self.exchanges) }
    }

    /// Forwards a request; `target` is its path and query. The returned future owns the exchange,
    /// which is aborted if the client disconnects.
    ///
    /// # Errors
    /// 503 if the request was forwarded before, if too many exchanges are open, or if no response
    /// arrives; and the errors of reading the body.
    pub async fn pass(
        &self,
        parts: &Parts,
        target: &str,
        body: Outgoing,
        origin: Origin,
    ) -> Result<Response, ApiError> {
        if is_marked(&parts.headers) {
            let message = "this server and the one that forwarded the request are both query \
                nodes; writer-url must name the writer";
            return Err(unavailable("forwarding_loop", message));
        }
        let way = self.server.current();
        if way.unusable_for().is_some() {
            return Err(away("nothing was changed"));
        }
        let permit = self.exchanges.take(&origin.owner).ok_or_else(overloaded)?;
        let (body, feed) = split(body);
        let mut headers = request_headers(parts, &origin);
        headers.insert(FORWARDED, mark(way));
        let (method, target) = (parts.method.clone(), target.to_owned());
        let request = ForwardRequest { method, target, headers, body, within: None };
        let exchange = way.begin();
        let guard = AbortOnDrop(exchange.clone());
        let (head_in, head) = oneshot::channel();
        let (pieces_in, pieces) = mpsc::channel(PIECES_MAX);
        let span = tracing::Span::current();
        let work = move || {
            let _permit = permit;
            span.in_scope(|| carry(&exchange, request, head_in, &pieces_in));
        };
        let thread = std::thread::Builder::new().name("forward".to_owned());
        thread.spawn(work).map_err(|error| overloaded().caused_by(error.to_string()))?;
        let head = tokio::select! {
            biased;
            head = head => head.map_err(|_| ApiError::internal("an exchange ended early"))?,
            Err(error) = fed(feed) => return Err(error),
            () = lost(way) => return Err(away(MAY_BE)),
        };
        let head = head.map_err(|error| {
            tracing::debug!(%error, "a forwarded request got no response");
            away(MAY_BE)
        })?;
        Ok(answered(head, pieces, guard))
    }
}

/// Returns the name of the server that is to carry a request out, as far as it is known.
fn mark(way: &Forwarder) -> HeaderValue {
    let name = way.name().and_then(|name| HeaderValue::try_from(name).ok());
    name.unwrap_or(ANY)
}

/// Resolves once the writer has been unusable for [`LOST`].
async fn lost(way: &Forwarder) {
    while way.unusable_for().is_none_or(|time| time < LOST) {
        sleep(LOOK).await;
    }
}

/// A body that is being forwarded to an exchange.
struct Feed {
    body: BodyReader,
    pieces: mpsc::Sender<Piece>,
}

/// A piece of a body; `None` marks its end. If the channel closes without it, the body broke off.
type Piece = Option<Bytes>;

fn split(body: Outgoing) -> (Option<ForwardBody>, Option<Feed>) {
    match body {
        Outgoing::Nothing => (None, None),
        Outgoing::Whole(bytes) if bytes.is_empty() => (None, None),
        Outgoing::Whole(bytes) => {
            let length = Some(bytes.len() as u64);
            (Some(ForwardBody { reader: Box::new(Cursor::new(bytes)), length }), None)
        }
        Outgoing::Unread(body) => {
            let length = body.length();
            let (pieces, received) = mpsc::channel(PIECES_MAX);
            let reader = Box::new(Pieces { received, rest: Bytes::new(), has_ended: false });
            (Some(ForwardBody { reader, length }), Some(Feed { body, pieces }))
        }
    }
}

/// Forwards a body to its exchange as fast as the exchange accepts it. Resolves only on an error of
/// the body; completion shows in the response.
async fn fed(feed: Option<Feed>) -> Result<(), ApiError> {
    let Some(Feed { mut body, pieces }) = feed else { return pending().await };
    loop {
        let piece = body.next().await?;
        let is_end = piece.is_none();
        if pieces.send(piece).await.is_err() || is_end {
            // Keeps the body until the response has arrived; its unread rest then goes back to the
            // connection.
            return pending().await;
        }
    }
}

/// Blocking reader of a body that arrives in pieces.
struct Pieces {
    received: mpsc::Receiver<Piece>,
    rest: Bytes,
    has_ended: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !self.has_ended {
            match self.received.blocking_recv() {
                Some(Some(piece)) => self.rest = piece,
                Some(None) => self.has_ended = true,
                None => return Err(io::Error::other("the request ended early")),
            }
        }
        let count = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// The status and headers of a response.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
}

/// Carries out one exchange, from its request to the end of its response. Blocks.
fn carry(
    exchange: &Exchange,
    request: ForwardRequest,
    head: oneshot::Sender<Result<Head, ForwardError>>,
    pieces: &mpsc::Sender<io::Result<Piece>>,
) {
    let mut body = match exchange.send(request) {
        Ok(answer) => {
            let (status, headers) = (answer.status, answer.headers);
            if head.send(Ok(Head { status, headers })).is_err() {
                return exchange.abort();
            }
            answer.body
        }
        Err(error) => return drop(head.send(Err(error))),
    };
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let piece = match body.read(&mut buffer) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(Bytes::copy_from_slice(&buffer[..count]))),
            Err(error) => Err(error),
        };
        let is_last = !matches!(piece, Ok(Some(_)));
        if let (Err(error), false) = (&piece, pieces.is_closed()) {
            tracing::warn!(%error, "a response from another server ended early");
        }
        if pieces.blocking_send(piece).is_err() || is_last {
            return;
        }
    }
}

/// Builds a response that relays another server's response piece by piece.
fn answered(head: Head, pieces: mpsc::Receiver<io::Result<Piece>>, guard: AbortOnDrop) -> Response {
    let pieces = stream::unfold(Some((pieces, guard)), |state| async move {
        let (mut pieces, guard) = state?;
        match pieces.recv().await {
            Some(Ok(Some(piece))) => Some((Ok(piece), Some((pieces, guard)))),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some((Err(error), None)),
            None => Some((Err(io::Error::other("the response ended early")), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    *response.status_mut() = head.status;
    *response.headers_mut() = end_to_end(&head.headers);
    // The other server has already decided whether this response is compressed.
    response.extensions_mut().insert(FromFile);
    response
}

/// Aborts an exchange when the client loses interest in it.
struct AbortOnDrop(Exchange);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the headers of a request, plus those that describe its client.
fn request_headers(parts: &Parts, origin: &Origin) -> HeaderMap {
    let mut headers = end_to_end(&parts.headers);
    // CORS is checked by this server, and the HTTP client sets the framing.
    for name in [CONTENT_LENGTH, EXPECT, ORIGIN] {
        headers.remove(name);
    }
    for name in [HOST, AUTHORIZATION] {
        // These may occur once, and only in ASCII.
        if let Some(value) = headers.remove(&name).filter(|value| value.to_str().is_ok()) {
            headers.insert(name, value);
        }
    }
    if let Ok(id) = HeaderValue::try_from(&*origin.request_id) {
        headers.insert(REQUEST_ID_HEADER, id);
    }
    if let Some(trace) = parts.extensions.get::<TraceContext>() {
        headers.insert(TRACEPARENT, trace.header());
    }
    if let Some(from) = origin.from.and_then(|from| HeaderValue::try_from(from.to_string()).ok()) {
        headers.append(FORWARDED_FOR, from);
    }
    headers
}

/// Returns the headers without those that apply to a single connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    for name in named.flat_map(|value| value.split(',')) {
        kept.remove(name.trim());
    }
    for name in HOP_BY_HOP {
        kept.remove(name);
    }
    kept
}

fn unavailable(reason: &'static str, message: &str) -> ApiError {
    ApiError::new(Condition::Unavailable, reason, message).with_retry_after(RETRY_SECONDS)
}

fn overloaded() -> ApiError {
    unavailable("overloaded", "too many requests are waiting for the writer")
}

fn away(outcome: &str) -> ApiError {
    let message = format!(
        "the writer is unavailable: {outcome}; try again in a moment, or see what /readyz of this \
         node says about it"
    );
    unavailable(AWAY, &message)
}

#[cfg(test)]
mod tests;
