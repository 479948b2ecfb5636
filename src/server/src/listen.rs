//! The accept loop: HTTP/1.1 with time limits.
//!
//! `axum::serve` (0.8.9) has no header timeout: a silent connection, half a header and an idle
//! keep-alive stay open for ever. hyper's builder with a timer closes all of them.
//!
//! ```text
//! accept -> bound per address -> hyper (header timeout, counts, sizes) -> router -> linger
//!                     writes without progress end
//! ```
//!
//! A client that does not read what it asked for would hold its answer in memory for ever: a write
//! that makes no progress for a while ends the connection.
//!
//! After the last response of a connection we close our half and read on for a moment: closing
//! with unread bytes (a refused upload) would reset the connection and could destroy the response.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// Time and bytes for which a closing connection is read on.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;
/// Pause after a failed accept; the usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bounds of the accept loop.
#[derive(Debug, Clone, Copy)]
pub struct ListenSettings {
    /// Time for a whole request header; also the life of a silent or idle connection.
    pub header_timeout: Duration,
    /// Header fields of one request.
    pub headers_max: usize,
    /// Bytes of one request header.
    pub header_bytes_max: usize,
    /// Time in which a client must take some of what is written to it.
    pub write_timeout: Duration,
    /// Connections at once; further ones wait in the operating system's queue.
    pub connections_max: usize,
    /// Connections at once from one address; loopback is exempt.
    pub connections_per_address_max: usize,
    /// Time that requests in flight get to finish when the server stops.
    pub drain: Duration,
}

impl Default for ListenSettings {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(5),
            headers_max: 64,
            header_bytes_max: 16 << 10,
            write_timeout: Duration::from_secs(60),
            connections_max: 1024,
            connections_per_address_max: 64,
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

/// Turns SIGTERM and SIGINT into [`Stop`]: the first drains, the second ends.
///
/// # Errors
/// When the operating system refuses the handlers.
pub fn stop_on_signals() -> io::Result<watch::Receiver<Stop>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (sender, receiver) = watch::channel(Stop::Run);
    tokio::spawn(async move {
        for stop in [Stop::Drain, Stop::Now] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            sender.send_replace(stop);
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

/// Serves until told to stop. Returns whether every request in flight could finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenSettings,
    mut stop: watch::Receiver<Stop>,
) -> bool {
    let slots = Arc::new(Semaphore::new(settings.connections_max));
    let addresses = Arc::new(Addresses::default());
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            () = reached(&mut stop, Stop::Drain) => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let (stream, peer, slot) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let max = settings.connections_per_address_max;
        let Some(permit) = addresses.enter(peer.ip().to_canonical(), max) else { continue };
        let (router, stop) = (router.clone(), stop.clone());
        connections.spawn(async move {
            serve_connection(stream, router, settings, stop).await;
            drop((permit, slot));
        });
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        ended = timeout(settings.drain, all_ended) => ended.is_ok(),
        () = reached(&mut stop, Stop::Now) => false,
    }
}

type Slot = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, Slot)> {
    let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, slot))
}

/// Resolves once the stop signal is at least `level`; a lost sender means none.
pub(super) async fn reached(stop: &mut watch::Receiver<Stop>, level: Stop) {
    if stop.wait_for(|stop| *stop >= level).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    settings: ListenSettings,
    mut stop: watch::Receiver<Stop>,
) {
    // Small responses must not wait for the client's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(settings.write_timeout));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        Box::pin(router.clone().oneshot(request.map(Body::new)))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_headers(settings.headers_max)
        .max_header_size(settings.header_bytes_max)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut is_draining = false;
    let served = loop {
        tokio::select! {
            served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break served,
            () = reached(&mut stop, Stop::Drain), if !is_draining => {
                is_draining = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    // A connection that timed out has nothing left to send or read.
    if !served.is_err_and(|error| error.is_timeout()) {
        linger(connection.into_parts().io.into_inner()).await;
    }
}

async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let read_on = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut discarded = [0; 4096];
        let mut total = 0;
        while total < LINGER_BYTES {
            match stream.read(&mut discarded).await {
                Ok(0) | Err(_) => return,
                Ok(count) => total += count,
            }
        }
    };
    let _ = timeout(LINGER, read_on).await;
}

/// Connections by address.
#[derive(Debug, Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

impl Addresses {
    /// A permit for one more connection of `address`, or `None` at the bound.
    fn enter(self: &Arc<Self>, address: IpAddr, max: usize) -> Option<ConnectionPermit> {
        if address.is_loopback() {
            return Some(ConnectionPermit(None));
        }
        let mut counts = self.0.lock();
        let count = counts.entry(address).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit(Some((Arc::clone(self), address))))
    }
}

/// The permit of one connection; returned on drop.
#[derive(Debug)]
struct ConnectionPermit(Option<(Arc<Addresses>, IpAddr)>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some((addresses, address)) = self.0.take() else { return };
        let mut counts = addresses.0.lock();
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
