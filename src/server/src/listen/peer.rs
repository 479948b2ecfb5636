//! State of one connection, shared between the connection table and its stream.

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

use crate::error::{ApiError, Condition};
use crate::shares::{Share, Shares};

/// Seconds after which a client with too many busy connections should retry.
const RETRY_SECONDS: u32 = 1;

/// Phase of a connection, which determines what is expected of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client has been sending a request header since this time.
    Header(Instant),
    /// The connection has been waiting for another request since this time.
    Idle(Instant),
    /// A request is being read, processed or answered.
    Busy,
    /// The last response was sent at this time; whatever else the client sends is discarded.
    Lingering(Instant),
}

/// Deadlines for the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Time for a complete request header.
    pub header: Duration,
    /// Time between two requests.
    pub idle: Duration,
}

/// State of one connection. The HTTP layer marks it once a request has been authenticated;
/// connections that never had such a request are the first to be evicted from a full table. A
/// request whose owner is known occupies its connection: it is counted for the owner, and not
/// evicted.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    phase: Mutex<Phase>,
    is_authenticated: AtomicBool,
    is_timed_out: AtomicBool,
    evicted: Notify,
    /// The occupied connections of all owners.
    occupied: Arc<Shares>,
    /// Held by the request in progress once its owner is known.
    share: Mutex<Option<Share>>,
}

impl Peer {
    /// Creates the state of a connection that was just accepted.
    pub(crate) fn new(address: IpAddr, occupied: Arc<Shares>) -> Self {
        Self {
            address,
            phase: Mutex::new(Phase::Header(Instant::now())),
            is_authenticated: AtomicBool::new(false),
            is_timed_out: AtomicBool::new(false),
            evicted: Notify::new(),
            occupied,
            share: Mutex::default(),
        }
    }

    /// Returns the remote address: the client's, or that of a proxy in front.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Records that the connection carries a request with a valid key of `owner`.
    ///
    /// # Errors
    /// As [`Self::occupy`].
    pub fn authenticate(&self, owner: &Arc<str>) -> Result<(), ApiError> {
        self.is_authenticated.store(true, Ordering::Relaxed);
        self.occupy(owner)
    }

    /// Counts the connection for `owner` until the request in progress has been answered.
    ///
    /// # Errors
    /// 503 if the owner occupies as many connections as remain free for others.
    pub fn occupy(&self, owner: &Arc<str>) -> Result<(), ApiError> {
        let mut share = self.share.lock();
        if share.is_none() {
            *share = Some(self.occupied.take(owner).ok_or_else(too_many)?);
        }
        Ok(())
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Whether the connection is counted for the owner of the request in progress.
    pub(super) fn is_occupied(&self) -> bool {
        self.share.lock().is_some()
    }

    /// Returns the time since which no request is in progress; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        match *self.phase.lock() {
            Phase::Header(since) | Phase::Idle(since) | Phase::Lingering(since) => Some(since),
            Phase::Busy => None,
        }
    }

    /// Records bytes from the client: the first ones after an idle period start a header.
    pub(super) fn received(&self) {
        let mut phase = self.phase.lock();
        if let Phase::Idle(_) = *phase {
            *phase = Phase::Header(Instant::now());
        }
    }

    /// Records bytes to the client: the idle period starts after the last of them.
    pub(super) fn sent(&self) {
        let mut phase = self.phase.lock();
        if let Phase::Idle(since) = &mut *phase {
            *since = Instant::now();
        }
    }

    /// Records that a complete header has arrived.
    pub(super) fn begin_request(&self) {
        *self.phase.lock() = Phase::Busy;
    }

    /// Records that the response has been handed over.
    pub(super) fn end_request(&self) {
        *self.phase.lock() = Phase::Idle(Instant::now());
        self.share.lock().take();
    }

    /// Records that the last response has been sent.
    pub(super) fn linger(&self) {
        *self.phase.lock() = Phase::Lingering(Instant::now());
    }

    /// Returns the deadline for the client to send something; `None` while nothing is expected.
    pub(super) fn read_deadline(&self, patience: Patience) -> Option<Instant> {
        match *self.phase.lock() {
            Phase::Header(since) => Some(since + patience.header),
            Phase::Idle(since) => Some(since + patience.idle),
            Phase::Busy | Phase::Lingering(_) => None,
        }
    }

    /// Records that the client missed a deadline.
    pub(super) fn time_out(&self) {
        self.is_timed_out.store(true, Ordering::Relaxed);
    }

    /// Whether the connection is to be closed without waiting for the client.
    pub(super) fn is_timed_out(&self) -> bool {
        self.is_timed_out.load(Ordering::Relaxed)
    }

    /// Asks the connection to close immediately.
    pub(super) fn evict(&self) {
        self.time_out();
        self.evicted.notify_one();
    }

    /// Resolves once the connection is to close immediately.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

fn too_many() -> ApiError {
    let message = "too many connections are busy with requests of this key or tenant, which may \
        use as many as remain free (connections)";
    ApiError::new(Condition::Unavailable, "overloaded", message).with_retry_after(RETRY_SECONDS)
}

/// The body of a response, which ends the request when it ends.
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
