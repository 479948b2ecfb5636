//! The rest of a body that nobody read.
//!
//! A request may be answered before its body is there: a wrong key, a wrong path. If the connection
//! then ended without a word, the next request on it, which may be another client's behind a proxy,
//! would be lost. So a short rest is read and dropped, and the connection stays; before a longer
//! one the answer says `Connection: close`.

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

/// Bytes of a rest that is read for the sake of the connection.
const DISCARDED_BYTES_MAX: u64 = 1 << 20;

/// A body on loan: what is left of it comes back when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    body: Option<Incoming>,
    rest: Arc<Mutex<Option<Incoming>>>,
}

/// The place where the rest of a body comes back.
#[derive(Debug)]
pub(super) struct Leftover {
    rest: Arc<Mutex<Option<Incoming>>>,
    /// The client waits for a word before it sends the body.
    is_announced_only: bool,
}

/// Lends a body.
pub(super) fn lend(body: Incoming, headers: &HeaderMap) -> (Lent, Leftover) {
    let rest = Arc::default();
    let is_announced_only = headers.contains_key(EXPECT);
    (Lent { body: Some(body), rest: Arc::clone(&rest) }, Leftover { rest, is_announced_only })
}

impl Leftover {
    /// Reads the rest, or has the response say that the connection ends.
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

/// Reads a body to its end; false where it is too long or breaks off.
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
