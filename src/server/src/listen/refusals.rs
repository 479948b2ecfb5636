//! Connections that receive an error and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{ApiError, Condition};
use crate::listen::linger::{BRIEF, read_on};

/// Number of refusals that may be sent concurrently, and the time for each; beyond that,
/// connections are just closed.
const REFUSALS_MAX: usize = 32;
const REFUSAL: Duration = Duration::from_secs(2);

/// Connections refused because their address has too many open.
pub(super) struct Refusals {
    pub(super) count: AtomicU64,
    answering: Arc<Semaphore>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), answering: Arc::new(Semaphore::new(REFUSALS_MAX)) }
    }
}

impl Refusals {
    /// Answers the first request of a connection with 503; over TLS, just closes it. Logs each time
    /// the count doubles, so that nobody can flood the log.
    pub(super) fn refuse(&self, stream: TcpStream, is_tls: bool, connections: &mut JoinSet<()>) {
        let refused = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            let message = "connections from an address refused: more than connections-per-address";
            tracing::warn!(refused, message);
        }
        // A TLS client could only read an answer after a handshake, which costs more than closing.
        if is_tls {
            return;
        }
        let Ok(permit) = Arc::clone(&self.answering).try_acquire_owned() else { return };
        connections.spawn(async move {
            let message = "too many open connections from this address (connections-per-address)";
            let (condition, reason) = (Condition::Unavailable, "too_many_connections");
            if let Some(stream) = answer_once(stream, condition, reason, message).await {
                read_on(stream, BRIEF, BRIEF).await;
            }
            drop(permit);
        });
    }
}

/// Answers the first request of a connection with an error, within a time limit. Returns the
/// connection so that the caller can close it.
pub(super) async fn answer_once(
    stream: TcpStream,
    condition: Condition,
    reason: &'static str,
    message: &'static str,
) -> Option<TcpStream> {
    let service = service_fn(|_: hyper::Request<Incoming>| {
        let error = ApiError::new(condition, reason, message);
        std::future::ready(Ok::<_, std::convert::Infallible>(error.into_response("")))
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).header_read_timeout(None::<Duration>);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let parts = timeout(REFUSAL, connection.without_shutdown()).await.ok()?.ok()?;
    Some(parts.io.into_inner())
}
