//! The accept loop: HTTP/1.1 with time limits.
//!
//! `axum::serve` (0.8.9) has no limits on time: a silent connection, half a header and a client
//! that does not read stay for ever, and with them the memory of an answer.
//!
//! ```text
//! accept -> table: limits, eviction -> hyper: counts, sizes -> router -> rest of body -> linger
//!                                        |
//!                        stream: times for a header, between requests, and for reading
//! ```
//!
//! - `table`: the open connections, and which of them is closed when there are too many
//! - `peer`: the state of one connection
//! - `refusals`: connections that get an error and nothing else
//! - `stream`: its socket, with the times that the client may take
//! - `pace`: the least rate of a client
//! - `leftover`: bodies that nobody read
//! - `linger`: the end of a connection, whose client may still be sending
//! - `tls`: certificate and key, and reading them again

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
/// Bytes of an answer that wait for its reader in memory, beside one piece of a large one.
const BUFFER_BYTES: usize = 64 << 10;

/// Bounds of the accept loop.
#[derive(Debug, Clone, Copy)]
pub struct ListenSettings {
    /// Time for a whole request header; also the life of a connection that says nothing.
    pub header_timeout: Duration,
    /// Time between two requests. Proxies that keep connections for 60 s must not meet one that we
    /// are just closing.
    pub idle_timeout: Duration,
    /// Header fields of one request.
    pub headers_max: usize,
    /// Bytes of one request header.
    pub header_bytes_max: usize,
    /// Least rate at which a client must take what is written to it.
    pub pace: Pace,
    /// Connections at once; at this bound idle ones are closed.
    pub connections_max: usize,
    /// Connections at once from one public address; 0 is no limit.
    pub connections_per_address_max: usize,
    /// Time for the rest of a body that nobody wants.
    pub rest_timeout: Duration,
    /// Times for which a closing connection is read on.
    pub linger: Linger,
    /// Time that requests in flight get to finish when the server stops.
    pub drain: Duration,
}

impl ListenSettings {
    /// The bounds that the operator set.
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
            // A query of 1,000 ids of 40 characters.
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

/// Stages of stopping the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Serve.
    Run,
    /// Accept nothing new, finish what is in flight.
    Drain,
    /// End now.
    Now,
}

/// Turns SIGTERM and SIGINT into [`Stop`]: the first drains, the second ends. The end of `also`
/// ends at once.
///
/// # Errors
/// When the operating system refuses the handlers.
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
        // A dropped sender would look like a third signal.
        std::future::pending::<()>().await;
    });
    Ok(receiver)
}

/// A stop signal that never comes.
pub fn never_stops() -> watch::Receiver<Stop> {
    watch::channel(Stop::Run).1
}

/// Serves until told to stop, over TLS if there is a certificate. Returns whether every request in
/// flight could finish.
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
                tracing::warn!(%error, "a connection could not be accepted");
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

/// The next connection, with its slot unless its address has too many.
async fn enter(
    listener: &TcpListener,
    table: &Arc<Table>,
) -> io::Result<(TcpStream, Option<ConnectionSlot>)> {
    let (stream, peer) = listener.accept().await?;
    let slot = table.enter(peer.ip()).await;
    Ok((stream, slot))
}

/// Resolves once the stop signal is at least `level`; a lost sender means none.
pub(super) async fn reached(stop: &mut watch::Receiver<Stop>, level: Stop) {
    if stop.wait_for(|stop| *stop >= level).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// One connection that has a slot.
struct Connection {
    slot: ConnectionSlot,
    router: Router,
    settings: ListenSettings,
    stop: watch::Receiver<Stop>,
}

impl Connection {
    /// Serves it to its end, over TLS if there is an acceptor.
    async fn serve(mut self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        // Small responses must not wait for the client's delayed acknowledgement.
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
                let message = "this port speaks HTTPS: begin the address with https://";
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

    /// The socket with the times of its client.
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
        // One that timed out has nothing left to send or read.
        if !peer.is_timed_out() {
            linger::linger(stream, &peer, &settings, &mut stop).await;
        }
        drop(slot);
    }
}

/// The answer to one request, and what follows from it for the connection.
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
