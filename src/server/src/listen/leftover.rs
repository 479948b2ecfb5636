//! The unread rest of request bodies.
//!
//! A request may be answered before its body has arrived, for example because of a bad key or path.
//! If the connection were then closed without notice, the next request on it would be lost, and
//! behind a proxy that may belong to another client. A short rest is therefore read and discarded,
//! which keeps the connection open; with a longer one, the response says `Connection: close`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

/// Largest rest in bytes that is read in order to keep the connection.
const DISCARDED_BYTES_MAX: u64 = 1 << 20;

/// A request body on loan; the unread rest is handed back when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    body: Option<Incoming>,
    rest: Arc<Mutex<Option<Incoming>>>,
}

/// Receives the unread rest of a lent body.
#[derive(Debug)]
pub(super) struct Leftover {
    rest: Arc<Mutex<Option<Incoming>>>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    is_announced_only: bool,
}

/// Lends out a body.
pub(super) fn lend(body: Incoming, headers: &HeaderMap) -> (Lent, Leftover) {
    let rest = Arc::default();
    let is_announced_only = headers.contains_key(EXPECT);
    (Lent { body: Some(body), rest: Arc::clone(&rest) }, Leftover { rest, is_announced_only })
}

impl Leftover {
    /// Discards the rest, or makes the response announce that the connection closes.
    pub(super) async fn settle(self, response: &mut Response<Body>, time: Duration) {
        let Some(body) = self.rest.lock().take() else { return };
        let is_short = body.size_hint().lower() <= DISCARDED_BYTES_MAX;
        let is_read = is_short
            && !self.is_announced_only
            && timeout(time, discard(body)).await.unwrap_or(false);
        if !is_read {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Reads a body to its end; returns false if it is too long or breaks off.
async fn discard(mut body: Incoming) -> bool {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        if bytes > DISCARDED_BYTES_MAX {
            return false;
        }
    }
    true
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.rest.lock() = Some(body);
        }
    }
}
