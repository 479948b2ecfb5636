//! One connection as the table of connections and its stream see it.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Phase of a connection, as what is expected of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client is sending the header of a request, since then.
    Header(Instant),
    /// The client may send another request, since then.
    Idle(Instant),
    /// A request is being read, carried out or answered.
    Busy,
    /// The last answer was sent, at that time; what the client still sends is dropped.
    Lingering(Instant),
}

/// Times that a client may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the header of a request.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
}

/// The state of one connection. The frame marks it once a request is authenticated: connections
/// that never had such a request are the first to go when the table is full.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    phase: Mutex<Phase>,
    is_authenticated: AtomicBool,
    is_timed_out: AtomicBool,
    evicted: Notify,
}

impl Peer {
    /// A connection that was just accepted.
    pub(super) fn new(address: IpAddr) -> Self {
        Self {
            address,
            phase: Mutex::new(Phase::Header(Instant::now())),
            is_authenticated: AtomicBool::new(false),
            is_timed_out: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }

    /// The address of its other end: the client's, or that of a proxy in front.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Notes that the connection carries a request of a known key.
    pub fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// The time since which no request is under way, `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        match *self.phase.lock() {
            Phase::Header(since) | Phase::Idle(since) | Phase::Lingering(since) => Some(since),
            Phase::Busy => None,
        }
    }

    /// Notes bytes from the client: the first ones after a pause begin a header.
    pub(super) fn received(&self) {
        let mut phase = self.phase.lock();
        if let Phase::Idle(_) = *phase {
            *phase = Phase::Header(Instant::now());
        }
    }

    /// Notes bytes to the client: the pause begins after the last of them.
    pub(super) fn sent(&self) {
        let mut phase = self.phase.lock();
        if let Phase::Idle(since) = &mut *phase {
            *since = Instant::now();
        }
    }

    /// Notes that a whole header is there.
    pub(super) fn begin_request(&self) {
        *self.phase.lock() = Phase::Busy;
    }

    /// Notes that the answer has been handed over.
    pub(super) fn end_request(&self) {
        *self.phase.lock() = Phase::Idle(Instant::now());
    }

    /// Notes that the last answer has been sent.
    pub(super) fn linger(&self) {
        *self.phase.lock() = Phase::Lingering(Instant::now());
    }

    /// Time at which the client has to have sent something; `None` while nothing is expected.
    pub(super) fn read_deadline(&self, patience: Patience) -> Option<Instant> {
        match *self.phase.lock() {
            Phase::Header(since) => Some(since + patience.header),
            Phase::Idle(since) => Some(since + patience.idle),
            Phase::Busy | Phase::Lingering(_) => None,
        }
    }

    /// Notes that the client let its time pass.
    pub(super) fn time_out(&self) {
        self.is_timed_out.store(true, Ordering::Relaxed);
    }

    /// Whether the connection is ended without waiting for the client.
    pub(super) fn is_timed_out(&self) -> bool {
        self.is_timed_out.load(Ordering::Relaxed)
    }

    /// Asks the connection to end now.
    pub(super) fn evict(&self) {
        self.time_out();
        self.evicted.notify_one();
    }

    /// Resolves when the connection is to end now.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// The body of an answer, at whose end the request ends.
#[derive(Debug)]
pub(super) struct Answered {
    body: Body,
    peer: Arc<Peer>,
}

impl Answered {
    pub(super) fn new(body: Body, peer: Arc<Peer>) -> Self {
        Self { body, peer }
    }
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.peer.end_request();
    }
}
