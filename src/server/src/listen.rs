//! The accept loop: HTTP/1.1 with timeouts and limits.
//!
//! `axum::serve` (0.8.9) enforces no timeouts: an idle connection, a half-sent header or a client
//! that does not read would stay open forever, along with the memory of its response.
//!
//! ```text
//! accept -> table: limits, eviction -> hyper: counts, sizes -> router -> rest of body -> linger
//!                                        |
//!                        stream: times for a header, between requests, and for reading
//! ```
//!
//! - `table`: the open connections, and which one to close when there are too many
//! - `peer`: the state of one connection
//! - `refusals`: connections that receive an error and nothing else
//! - `stream`: the socket of one connection, with its client's deadlines
//! - `pace`: the least transfer rate of a client
//! - `leftover`: request bodies that were not read to their end
//! - `linger`: the end of a connection whose client may still be sending
//! - `tls`: certificate and key, and reloading them

mod leftover;
mod linger;
pub mod pace;
mod peer;
mod refusals;
mod stream;
mod table;
mod tls;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::error::Condition;
use crate::listen::pace::Pace;
use crate::listen::peer::Patience;
use crate::listen::refusals::{Refusals, answer_once};
use crate::listen::stream::PeerStream;
use crate::listen::table::{ConnectionSlot, Table};
use crate::listen::tls::{FirstWord, first_word};
use lodestone_engine::settings::Settings;

pub use linger::Linger;
pub use peer::Peer;
pub use tls::{Certificates, TlsError};

/// Pause after a failed accept; the usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a response buffered for its reader, in addition to one piece of a large response.
const BUFFER_BYTES: usize = 64 << 10;

/// Limits of the accept loop.
#[derive(Debug, Clone, Copy)]
pub struct ListenSettings {
    /// Time for a complete request header; also the lifetime of a connection that sends nothing.
    pub header_timeout: Duration,
    /// Time between two requests. It must exceed the 60 s for which proxies keep connections, or
    /// they would send requests on connections that are just being closed.
    pub idle_timeout: Duration,
    /// Maximum number of header fields per request.
    pub headers_max: usize,
    /// Maximum size of a request header in bytes.
    pub header_bytes_max: usize,
    /// Least rate at which a client must read what is written to it.
    pub pace: Pace,
    /// Maximum number of open connections; at this limit, idle ones are closed.
    pub connections_max: usize,
    /// Maximum number of open connections from one public address; 0 means unlimited.
    pub connections_per_address_max: usize,
    /// Time allowed for reading the unwanted rest of a body.
    pub rest_timeout: Duration,
    /// Time limits for reading from a closing connection.
    pub linger: Linger,
    /// Time that requests in flight are given to finish when the server stops.
    pub drain: Duration,
}

impl ListenSettings {
    /// Returns the limits set by the operator, with defaults for the others.
    pub fn of(settings: &Settings) -> Self {
        Self {
            idle_timeout: Duration::from_secs(settings.keep_alive_seconds),
            pace: Pace::of(settings),
            connections_max: settings.connections,
            connections_per_address_max: settings.connections_per_address,
            ..Self::default()
        }
    }
}

impl Default for ListenSettings {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(75),
            headers_max: 64,
            // Fits a query string with 1,000 ids of 40 characters.
            header_bytes_max: 64 << 10,
            pace: Pace::default(),
            connections_max: 1024,
            connections_per_address_max: 256,
            rest_timeout: Duration::from_secs(2),
            linger: Linger::default(),
            drain: Duration::from_secs(30),
        }
    }
}

/// Stages of shutting the server down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Serve normally.
    Run,
    /// Accept no new connections and finish the requests in flight.
    Drain,
    /// Stop immediately.
    Now,
}

/// Turns SIGTERM and SIGINT into [`Stop`]: the first signal drains, the second stops immediately.
/// Completion of `also` stops immediately, too.
///
/// # Errors
/// If the operating system rejects the signal handlers.
pub fn stop_on_signals(
    also: impl Future<Output = ()> + Send + 'static,
) -> io::Result<watch::Receiver<Stop>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (sender, receiver) = watch::channel(Stop::Run);
    tokio::spawn(async move {
        let mut also = std::pin::pin!(also);
        for stop in [Stop::Drain, Stop::Now] {
            let stop = tokio::select! {
                _ = terminate.recv() => stop,
                _ = interrupt.recv() => stop,
                () = &mut also => Stop::Now,
            };
            sender.send_replace(stop);
            if stop == Stop::Now {
                break;
            }
        }
        // Receivers would take a dropped sender for another signal.
        std::future::pending::<()>().await;
    });
    Ok(receiver)
}

/// Returns a stop signal that never fires.
pub fn never_stops() -> watch::Receiver<Stop> {
    watch::channel(Stop::Run).1
}

/// Serves until told to stop, over TLS if there is a certificate. Returns whether all requests in
/// flight were able to finish.
pub async fn serve(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    router: Router,
    settings: ListenSettings,
    mut stop: watch::Receiver<Stop>,
) -> bool {
    let acceptor = certificates.map(|certificates| certificates.acceptor());
    let table = Table::new(settings.connections_max, settings.connections_per_address_max);
    let refusals = Refusals::default();
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let entered = tokio::select! {
            biased;
            () = reached(&mut stop, Stop::Drain) => break,
            entered = enter(&listener, &table) => entered,
        };
        let (stream, slot) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                table.evict_one();
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match slot {
            Some(slot) => {
                let own = Connection { slot, router: router.clone(), settings, stop: stop.clone() };
                connections.spawn(own.serve(stream, acceptor.clone()));
            }
            None => refusals.refuse(stream, acceptor.is_some(), &mut connections),
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        ended = timeout(settings.drain, all_ended) => ended.is_ok(),
        () = reached(&mut stop, Stop::Now) => false,
    }
}

/// Accepts the next connection, with its slot unless its address has too many connections.
async fn enter(
    listener: &TcpListener,
    table: &Arc<Table>,
) -> io::Result<(TcpStream, Option<ConnectionSlot>)> {
    let (stream, peer) = listener.accept().await?;
    let slot = table.enter(peer.ip()).await;
    Ok((stream, slot))
}

/// Resolves once the stop signal is at least `level`; never resolves if the sender is lost.
pub(super) async fn reached(stop: &mut watch::Receiver<Stop>, level: Stop) {
    if stop.wait_for(|stop| *stop >= level).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A connection that holds a slot.
struct Connection {
    slot: ConnectionSlot,
    router: Router,
    settings: ListenSettings,
    stop: watch::Receiver<Stop>,
}

impl Connection {
    /// Serves the connection to its end, over TLS if there is an acceptor.
    async fn serve(mut self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        // Disables Nagle's algorithm, so that small responses do not wait for a delayed ACK.
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = acceptor else {
            let stream = self.watched(stream);
            return self.serve_http(stream).await;
        };
        let peer = Arc::clone(&self.slot.peer);
        let word = tokio::select! {
            word = first_word(&stream, self.settings.header_timeout) => word,
            () = peer.evicted() => FirstWord::Nothing,
            () = reached(&mut self.stop, Stop::Drain) => FirstWord::Nothing,
        };
        match word {
            FirstWord::Nothing => {}
            FirstWord::Plain => {
                let message = "this port serves HTTPS: use an https:// address";
                let reason = "tls_required";
                let answered = answer_once(stream, Condition::Invalid, reason, message).await;
                if let Some(stream) = answered {
                    linger::linger(stream, &peer, &self.settings, &mut self.stop).await;
                }
            }
            FirstWord::Tls => {
                let shaken = tokio::select! {
                    shaken = acceptor.accept(self.watched(stream)) => shaken.ok(),
                    () = peer.evicted() => None,
                    () = reached(&mut self.stop, Stop::Drain) => None,
                };
                if let Some(stream) = shaken {
                    self.serve_http(stream).await;
                }
            }
        }
    }

    /// Wraps the socket so that the client's deadlines are enforced.
    fn watched(&self, stream: TcpStream) -> Pin<Box<PeerStream>> {
        let Self { slot, settings, .. } = self;
        let patience = Patience { header: settings.header_timeout, idle: settings.idle_timeout };
        Box::pin(PeerStream::new(stream, Arc::clone(&slot.peer), patience, settings.pace))
    }

    async fn serve_http(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { slot, router, settings, mut stop } = self;
        let peer = Arc::clone(&slot.peer);
        let of_requests = Arc::clone(&peer);
        let service = service_fn(move |request| {
            Box::pin(answer(request, router.clone(), Arc::clone(&of_requests), settings))
        });
        let mut connection = http1::Builder::new()
            .header_read_timeout(None::<Duration>)
            .max_headers(settings.headers_max)
            .max_header_size(settings.header_bytes_max)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut is_draining = false;
        loop {
            tokio::select! {
                _ = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break,
                () = peer.evicted() => break,
                () = reached(&mut stop, Stop::Drain), if !is_draining => {
                    is_draining = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
        let stream = connection.into_parts().io.into_inner();
        // After a timeout there is nothing left to send or read.
        if !peer.is_timed_out() {
            linger::linger(stream, &peer, &settings, &mut stop).await;
        }
        drop(slot);
    }
}

/// Answers one request and decides whether the connection is kept.
async fn answer(
    request: hyper::Request<Incoming>,
    router: Router,
    peer: Arc<Peer>,
    settings: ListenSettings,
) -> Result<Response<Body>, std::convert::Infallible> {
    peer.begin_request();
    let is_old = request.version() < Version::HTTP_11;
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&peer));
    let (body, leftover) = leftover::lend(body, &parts.headers);
    let mut response = router.oneshot(hyper::Request::from_parts(parts, Body::new(body))).await?;
    leftover.settle(&mut response, settings.rest_timeout).await;
    if !is_old && !response.headers().contains_key(http::header::CONNECTION) {
        let keep_alive = format!("timeout={}", settings.idle_timeout.as_secs());
        let keep_alive = HeaderValue::try_from(keep_alive).expect("digits are a header");
        response.headers_mut().insert("keep-alive", keep_alive);
    }
    Ok(response.map(|body| Body::new(peer::Answered::new(body, peer))))
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
