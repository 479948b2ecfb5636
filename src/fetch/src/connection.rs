//! Connections to addresses that the gate approved, and no others, within the limits of a fetch.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use crate::address::plain;
use crate::error::RequestError;
use lodestone_types::limits::WEB_HEAD_BYTES_MAX;
use lodestone_types::{BlockedReason, FetchProblem};

/// Maximum number of addresses of one host that are tried.
const ATTEMPTS_MAX: usize = 4;
/// Time limit for connecting to an address while others remain.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(8);
/// Size of a connection's buffers, each way. Twice the limit of a head, so that a head that is too
/// large is recognised as such.
const BUFFER_BYTES: usize = 2 * WEB_HEAD_BYTES_MAX;

/// Opens connections. Outside of tests, the machine's network is the only implementation.
pub trait Dialer: fmt::Debug + Send + Sync + 'static {
    /// Connects to `address`.
    ///
    /// # Errors
    /// The error of the operating system.
    fn dial(&self, address: SocketAddr, timeout: Duration) -> io::Result<Connection>;
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// The TCP stream.
    pub stream: TcpStream,
    /// The address at the other end.
    pub peer: SocketAddr,
}

/// The machine's network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network;

impl Dialer for Network {
    #[allow(clippy::disallowed_methods)] // The only code that connects to the network.
    fn dial(&self, address: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        let peer = stream.peer_addr()?;
        Ok(Connection { stream, peer })
    }
}

/// The remaining time and byte allowance of a fetch, shared by its requests.
#[derive(Debug)]
pub(super) struct Meter {
    /// Time at which the fetch ends.
    pub deadline: Instant,
    total: Duration,
    bytes_max: u64,
    bytes_left: AtomicU64,
    /// The error of the current connection, which errors of the HTTP library cannot carry.
    error: Mutex<Option<RequestError>>,
}

impl Meter {
    /// Starts the allowances of a fetch now.
    pub(super) fn new(total: Duration, bytes_max: u64) -> Self {
        Self {
            deadline: Instant::now() + total,
            total,
            bytes_max,
            bytes_left: AtomicU64::new(bytes_max),
            error: Mutex::new(None),
        }
    }

    /// The remaining time; an error if there is none.
    pub(super) fn left(&self) -> Result<Duration, FetchProblem> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // Socket timeouts are in whole microseconds, and zero would mean no timeout.
        if left < Duration::from_micros(10) { Err(self.timed_out()) } else { Ok(left) }
    }

    /// The error of a fetch that exceeded its time.
    pub(super) fn timed_out(&self) -> FetchProblem {
        FetchProblem::TimedOut { seconds: self.total.as_millis().div_ceil(1000) as u64 }
    }

    fn received(&self, bytes: usize) -> Result<(), FetchProblem> {
        let take = |left: u64| left.checked_sub(bytes as u64);
        match self.bytes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(FetchProblem::TooLarge { bytes_max: self.bytes_max }),
        }
    }

    /// Takes the recorded error of the current connection.
    pub(super) fn take_error(&self) -> Option<RequestError> {
        self.error.lock().take()
    }

    /// Records the error of the connection; returns an error that makes the HTTP library stop.
    fn stop(&self, error: impl Into<RequestError>) -> ureq::Error {
        *self.error.lock() = Some(error.into());
        ureq::Error::ConnectionFailed
    }
}

/// Connects only to approved addresses, whatever address the HTTP library asks for.
#[derive(Debug)]
pub(super) struct Pinned {
    /// Opens the connections.
    pub dialer: Arc<dyn Dialer>,
    /// The approved addresses.
    pub addresses: Vec<SocketAddr>,
    /// The remaining allowances.
    pub meter: Arc<Meter>,
}

impl Connector for Pinned {
    type Out = Stream;

    fn connect(
        &self,
        _details: &ConnectionDetails,
        _chained: Option<()>,
    ) -> Result<Option<Stream>, ureq::Error> {
        let tried = self.addresses.len().min(ATTEMPTS_MAX);
        for (attempt, &address) in self.addresses[..tried].iter().enumerate() {
            let left = self.meter.left().map_err(|problem| self.meter.stop(problem))?;
            let is_last = attempt + 1 == tried;
            let timeout = if is_last { left } else { left.min(CONNECT_TIME_MAX) };
            let Ok(Connection { stream, peer }) = self.dialer.dial(address, timeout) else {
                continue;
            };
            // The peer must be the very address that was approved.
            if (plain(peer.ip()), peer.port()) != (address.ip(), address.port()) {
                return Err(self.meter.stop(BlockedReason::Address));
            }
            stream.set_nodelay(true)?;
            let buffers = LazyBuffers::new(BUFFER_BYTES, BUFFER_BYTES);
            return Ok(Some(Stream { stream, buffers, meter: Arc::clone(&self.meter) }));
        }
        self.meter.left().map_err(|problem| self.meter.stop(problem))?;
        Err(self.meter.stop(FetchProblem::Refused))
    }
}

impl Resolver for Pinned {
    /// Satisfies the HTTP library, which resolves before it connects; the result is not used.
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut known = self.empty();
        known.push(*self.addresses.first().ok_or(ureq::Error::HostNotFound)?);
        Ok(known)
    }
}

/// A connection bounded by the allowances of its fetch.
#[derive(Debug)]
pub(super) struct Stream {
    stream: TcpStream,
    buffers: LazyBuffers,
    meter: Arc<Meter>,
}

impl Stream {
    /// Explains an I/O error. The remaining time of the fetch is the only timeout set, so a timeout
    /// means that the fetch exceeded its time.
    fn explain(&self, error: io::Error) -> ureq::Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                self.meter.stop(self.meter.timed_out())
            }
            _ => self.meter.stop(FetchProblem::Lost),
        }
    }
}

impl Transport for Stream {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        let mut sent = 0;
        while sent < amount {
            let left = self.meter.left().map_err(|problem| self.meter.stop(problem))?;
            self.stream.set_write_timeout(Some(left))?;
            match self.stream.write(&self.buffers.output()[sent..amount]) {
                Ok(0) => return Err(self.meter.stop(FetchProblem::Lost)),
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        let bytes = loop {
            let left = self.meter.left().map_err(|problem| self.meter.stop(problem))?;
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(bytes) => break bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        };
        self.meter.received(bytes).map_err(|problem| self.meter.stop(problem))?;
        self.buffers.input_appended(bytes);
        Ok(bytes > 0)
    }

    fn is_open(&mut self) -> bool {
        // Connections are not reused.
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_without_time_has_none_left_rather_than_an_endless_wait() {
        let meter = Meter::new(Duration::ZERO, 1);
        assert_eq!(meter.left(), Err(FetchProblem::TimedOut { seconds: 0 }));
    }
}
