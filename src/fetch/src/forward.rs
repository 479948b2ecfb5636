//! Forwards requests unchanged to another server of the operator.
//!
//! ```text
//! Forwarder -> Exchange: one agent of the HTTP library with at most one connection
//!                 |-> send: head, body in pieces -> status, headers, body in pieces -> idle
//!                 '-> abort, from any thread: closes the connection, whatever it waits for
//! ```
//! Nothing is sent twice: without a response, it is unknown whether the request was carried out.
//!
//! - `addresses`: a server that may be at one of several addresses; `early`: responses that arrive
//!   before the request was sent completely

mod addresses;
mod early;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::config::Config;
use ureq::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use ureq::http::{HeaderMap, Method, Request, StatusCode, Uri};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, BodyReader, SendBody};

use crate::Authorities;
pub use addresses::Addresses;
use early::{Early, UntilRefused};

/// Time limit for resolving the server's name, and for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limit for the start of a response and for each read; a large import responds only when all
/// of it is stored.
const ANSWER: Duration = Duration::from_secs(600);
/// Time limit for each write of a request.
const STALL: Duration = Duration::from_secs(60);
/// Maximum size of a document fetched by [`Forwarder::ask`].
const ASKED_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of idle connections.
const IDLE_MAX: usize = 16;
/// Lifetime of an idle connection; shorter than the other server's.
const IDLE: Duration = Duration::from_secs(5);
/// Bodies up to this size are sent with a length; larger ones are chunked, so they can end early.
const SIZED_BYTES_MAX: u64 = 1 << 20;

/// Forwards requests to one server. Blocks the calling thread.
pub struct Forwarder {
    /// URL of the server, without a trailing slash.
    base: String,
    config: Config,
    idle: Arc<Mutex<Vec<Line>>>,
    /// The time since which the server is unusable, and the latest reason.
    problem: Mutex<Option<(Instant, String)>>,
    /// The name that the server gave itself.
    name: Mutex<Option<String>>,
}

/// A request to forward.
pub struct ForwardRequest {
    /// The method.
    pub method: Method,
    /// Path and query, relative to the server's URL.
    pub target: String,
    /// All headers except those that frame the body.
    pub headers: HeaderMap,
    /// The body. An error of its reader aborts the request.
    pub body: Option<ForwardBody>,
    /// Time limit for the whole exchange, including the response body, if it is to be short.
    pub within: Option<Duration>,
}

/// The body of a forwarded request.
pub struct ForwardBody {
    /// Its bytes.
    pub reader: Box<dyn Read + Send>,
    /// Their number, if known.
    pub length: Option<u64>,
}

/// The head of a response; its body is read from `body`.
pub struct ForwardAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers, unchanged.
    pub headers: HeaderMap,
    /// The body, neither decompressed nor limited.
    pub body: ForwardedBody,
}

/// The body of a response. Ends only with the end of the message: a connection that closes early is
/// an error.
pub struct ForwardedBody {
    reader: BodyReader<'static>,
    exchange: Exchange,
    /// Whether the head says where the body ends.
    is_framed: bool,
}

/// No response arrived; the request may or may not have been carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{base}: {problem}")]
pub struct ForwardError {
    /// URL of the server.
    base: String,
    /// Description of the error.
    problem: String,
}

/// One request and its response. Clones refer to the same exchange, so another thread can abort it.
#[derive(Clone)]
pub struct Exchange {
    base: String,
    /// Its connection; `None` once the exchange is over.
    line: Arc<Mutex<Option<Line>>>,
    idle: Arc<Mutex<Vec<Line>>>,
}

/// An HTTP client with at most one connection.
#[derive(Clone)]
struct Line {
    agent: Agent,
    is_refused: Arc<AtomicBool>,
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder").field("base", &self.base).finish_non_exhaustive()
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("base", &self.base).finish_non_exhaustive()
    }
}

impl ForwardError {
    /// Description of the error, without the server's URL.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl Forwarder {
    /// Creates a client of the server at `base`: `http://` or `https://` with a host, optionally a
    /// port and a path. Opens no connection yet.
    ///
    /// # Errors
    /// The rule that the URL breaks.
    pub fn new(base: &str, authorities: &Authorities) -> Result<Self, String> {
        let wrong = |problem: &str| format!("{base}: {problem}");
        let uri: Uri =
            base.parse().map_err(|error| wrong(&format!("is not a valid address: {error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong("must begin with http:// or https:// and a host"));
        }
        if uri.query().is_some() || uri.authority().is_some_and(|one| one.as_str().contains('@')) {
            return Err(wrong("must not contain a query or a user"));
        }
        let has_port = uri.authority().map(|one| one.as_str()) != uri.host();
        if has_port && uri.port().is_none() {
            return Err(wrong("has an invalid port"));
        }
        // Only the headers of the forwarded request are sent.
        let config = authorities
            .client(None)
            .user_agent("")
            .accept("")
            .accept_encoding("")
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_write(Some(STALL))
            .timeout_per_read(Some(ANSWER))
            .max_idle_age(IDLE)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .build();
        let base = base.trim_end_matches('/').to_owned();
        let (idle, problem, name) = Default::default();
        Ok(Self { base, config, idle, problem, name })
    }

    /// The URL of the server.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Fetches a short document from the server, on a connection of its own, with extra `headers`.
    ///
    /// # Errors
    /// [`ForwardError`] unless it arrives within `time`, with status 200 and at most 64 KiB.
    pub fn ask(
        &self,
        path: &str,
        headers: &HeaderMap,
        time: Duration,
    ) -> Result<Vec<u8>, ForwardError> {
        let line = Line::new(&self.config);
        let mut asked = line.agent.get(format!("{}{path}", self.base));
        if let Some(own) = asked.headers_mut() {
            own.extend(headers.clone());
        }
        let error = |problem: String| ForwardError { base: self.base.clone(), problem };
        let answer = asked.config().timeout_global(Some(time)).build().call();
        let answer = answer.map_err(|problem| error(problem.to_string()))?;
        if answer.status() != StatusCode::OK {
            return Err(error(format!("status {}", answer.status().as_u16())));
        }
        let body = answer.into_body().into_with_config().limit(ASKED_BYTES_MAX).read_to_vec();
        body.map_err(|problem| error(problem.to_string()))
    }

    /// Records why the server is currently unusable, or with `None` that it is usable again.
    pub fn note(&self, problem: Option<String>) {
        let mut noted = self.problem.lock();
        *noted = problem.map(|problem| match noted.take() {
            Some((since, _)) => (since, problem),
            None => (Instant::now(), problem),
        });
    }

    /// Records the name that the server gave itself.
    pub fn note_name(&self, name: String) {
        *self.name.lock() = Some(name);
    }

    /// The name that the server gave itself.
    pub fn name(&self) -> Option<String> {
        self.name.lock().clone()
    }

    /// Time for which the server has been unusable; `None` if it is usable as far as known.
    pub fn unusable_for(&self) -> Option<Duration> {
        self.problem.lock().as_ref().map(|(since, _)| since.elapsed())
    }

    /// Starts an exchange, on an idle connection or on a new one.
    pub fn begin(&self) -> Exchange {
        let idle = self.idle.lock().pop();
        let line = idle.unwrap_or_else(|| Line::new(&self.config));
        let line = Arc::new(Mutex::new(Some(line)));
        Exchange { base: self.base.clone(), line, idle: Arc::clone(&self.idle) }
    }
}

impl Line {
    fn new(config: &Config) -> Self {
        let is_refused = Arc::new(AtomicBool::new(false));
        let early = Early { is_refused: Arc::clone(&is_refused) };
        let connector = TcpConnector::default().chain(early).chain(RustlsConnector::default());
        let agent = Agent::with_parts(config.clone(), connector, DefaultResolver::default());
        Self { agent, is_refused }
    }
}

impl Exchange {
    /// Sends the request; returns when the response begins.
    ///
    /// # Errors
    /// [`ForwardError`] if there is no response.
    pub fn send(&self, request: ForwardRequest) -> Result<ForwardAnswer, ForwardError> {
        let line = self.line.lock().clone();
        let line = line.ok_or_else(|| self.error(&"the exchange is over"))?;
        let is_head = request.method == Method::HEAD;
        let request = request.framed(&self.base, &line).map_err(|error| self.error(&error))?;
        let (head, body) = match line.agent.run(request) {
            Ok(answer) => answer.into_parts(),
            Err(error) => {
                self.line.lock().take();
                return Err(self.error(&error));
            }
        };
        let is_framed = is_head
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
            || head.headers.contains_key(CONTENT_LENGTH)
            || head.headers.contains_key(TRANSFER_ENCODING);
        let reader = body.into_with_config().limit(u64::MAX).reader();
        let body = ForwardedBody { reader, exchange: self.clone(), is_framed };
        Ok(ForwardAnswer { status: head.status, headers: head.headers, body })
    }

    /// Ends the exchange by closing its connection, which makes every wait on it fail immediately.
    /// Does nothing once the response was read to its end.
    pub fn abort(&self) {
        if let Some(line) = self.line.lock().take() {
            line.agent.shutdown();
        }
    }

    /// Returns the connection to the idle ones.
    fn end(&self) {
        let Some(line) = self.line.lock().take() else { return };
        let mut idle = self.idle.lock();
        if !line.is_refused.load(Ordering::Relaxed) && idle.len() < IDLE_MAX {
            idle.push(line);
        }
    }

    fn error(&self, problem: &dyn fmt::Display) -> ForwardError {
        ForwardError { base: self.base.clone(), problem: problem.to_string() }
    }
}

impl ForwardRequest {
    fn framed(
        self,
        base: &str,
        line: &Line,
    ) -> Result<Request<SendBody<'static>>, ureq::http::Error> {
        let Self { method, target, mut headers, body, within } = self;
        headers.remove(TRANSFER_ENCODING);
        headers.remove(CONTENT_LENGTH);
        // For methods that usually have a body, its absence must be stated.
        let is_usual = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        let nothing = ForwardBody { reader: Box::new(io::empty()), length: Some(0) };
        let body = match body.or(is_usual.then_some(nothing)) {
            None => SendBody::none(),
            Some(ForwardBody { reader, length: Some(length) }) if length <= SIZED_BYTES_MAX => {
                headers.insert(CONTENT_LENGTH, length.into());
                SendBody::from_owned_reader(reader)
            }
            Some(ForwardBody { reader, .. }) => {
                let is_refused = Arc::clone(&line.is_refused);
                SendBody::from_owned_reader(UntilRefused { reader, is_refused })
            }
        };
        let mut request = Request::builder().method(method).uri(format!("{base}{target}"));
        if let Some(own) = request.headers_mut() {
            *own = headers;
        }
        let request = request.body(body)?;
        Ok(match within {
            None => request,
            Some(time) => line.agent.configure_request(request).timeout_global(Some(time)).build(),
        })
    }
}

impl Read for ForwardedBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            if !self.is_framed {
                let message = "the response does not tell where it ends";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            self.exchange.end();
        }
        Ok(count)
    }
}
