//! The HTTP client used by every verb that queries a running server.

use std::io::Read;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lodestone_fetch::Authorities;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::{Agent, Body, BodyReader, Proxy, SendBody};

use crate::cli::ingest::form::Form;

/// Timeout for connecting: a healthy server accepts at once, a dead host never answers.
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout for a response: longer than the longest poll (30 s) and than writing a batch to a busy
/// disk.
const ANSWER: Duration = Duration::from_secs(120);
/// A request body that makes no progress for this long is considered lost.
const STALL: Duration = Duration::from_secs(60);
/// Time that an upload waits for "100 Continue" before it sends its body anyway.
const GO_AHEAD: Duration = Duration::from_secs(2);
/// Largest response accepted. A listing of 1,000 sources with full metadata fits.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A request to the server.
#[derive(Debug)]
pub struct Request<'a> {
    /// Path and query, relative to the server's address.
    pub path: String,
    /// Body of the request; `None` sends a GET.
    pub body: Option<Payload<'a>>,
}

/// Body of a request; it also determines the method.
#[derive(Debug)]
pub enum Payload<'a> {
    /// POST without a body.
    Empty,
    /// DELETE without a body.
    Delete,
    /// DELETE with JSON.
    DeleteJson(&'a Value),
    /// POST with JSON.
    Json(&'a Value),
    /// PATCH with JSON.
    PatchJson(&'a Value),
    /// PATCH with a multipart form.
    Form(&'a Form),
}

/// A response with any status.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Seconds given by `Retry-After`.
    pub retry_after_s: Option<u64>,
    /// The body; null if it is not JSON.
    pub json: Value,
}

/// A response whose body is read as it arrives.
pub struct Opened {
    /// Status code.
    pub status: u16,
    /// Seconds given by `Retry-After`.
    pub retry_after_s: Option<u64>,
    /// The body.
    pub body: BodyReader<'static>,
}

/// No complete response arrived; the request may or may not have taken effect.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{problem}")]
pub struct Lost {
    /// Description of the error.
    pub problem: String,
}

/// Sends requests to one server.
pub trait Transport: Sync {
    /// Sends a request once. Bytes of forms are added to `sent_bytes` as they are sent.
    ///
    /// # Errors
    /// [`Lost`] if no complete response arrives.
    fn exchange(&self, request: &Request<'_>, sent_bytes: &AtomicU64) -> Result<Reply, Lost>;
}

/// HTTP transport, through the proxy named by the environment unless the server is on this machine.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    server: String,
    /// Name and value of the header that carries the key.
    key: Option<(&'static str, String)>,
}

impl Http {
    /// Creates a client of `server`, an address without a trailing slash, that trusts these
    /// authorities.
    pub fn new(server: &str, api_key: Option<&str>, authorities: &Authorities) -> Self {
        let proxy = if is_loopback(server) { None } else { Proxy::try_from_env() };
        let agent = authorities
            .client(proxy)
            .timeout_connect(Some(CONNECT))
            .timeout_await_100(Some(GO_AHEAD))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_write(Some(STALL))
            .timeout_per_read(Some(ANSWER))
            .build()
            .new_agent();
        let key = api_key.map(|key| ("authorization", format!("Bearer {key}")));
        Self { agent, server: server.to_owned(), key }
    }

    /// Sends a key in a header of another name.
    #[must_use]
    pub fn with_key(self, header: &'static str, key: Option<String>) -> Self {
        Self { key: key.map(|key| (header, key)), ..self }
    }

    /// Sends a request once and returns as soon as the response begins.
    ///
    /// # Errors
    /// [`Lost`] if no response arrives.
    pub fn open(&self, request: &Request<'_>, sent_bytes: &AtomicU64) -> Result<Opened, Lost> {
        self.send(request, sent_bytes).map(opened).map_err(lost)
    }

    /// Posts JSON with additional headers and returns as soon as the response begins, which is JSON
    /// or an event stream.
    ///
    /// # Errors
    /// [`Lost`] if no response arrives.
    pub fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        json: &Value,
    ) -> Result<Opened, Lost> {
        let mut call = self.agent.post(format!("{}{path}", self.server));
        call = call.header("content-type", "application/json");
        call = call.header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            call = call.header(*name, *value);
        }
        if let Some((name, key)) = &self.key {
            call = call.header(*name, key);
        }
        call.send(json.to_string()).map(opened).map_err(lost)
    }

    fn send(
        &self,
        request: &Request<'_>,
        sent_bytes: &AtomicU64,
    ) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let url = format!("{}{}", self.server, request.path);
        let without_body = match &request.body {
            None => Some(self.agent.get(&url)),
            Some(Payload::Delete) => Some(self.agent.delete(&url)),
            Some(_) => None,
        };
        if let Some(mut call) = without_body {
            if let Some((name, key)) = &self.key {
                call = call.header(*name, key);
            }
            return call.call();
        }
        let mut call = match &request.body {
            Some(Payload::DeleteJson(_)) => self.agent.delete(&url).force_send_body(),
            Some(Payload::PatchJson(_) | Payload::Form(_)) => self.agent.patch(&url),
            _ => self.agent.post(&url),
        };
        if let Some((name, key)) = &self.key {
            call = call.header(*name, key);
        }
        match &request.body {
            None | Some(Payload::Empty | Payload::Delete) => call.send_empty(),
            Some(Payload::Json(json) | Payload::DeleteJson(json) | Payload::PatchJson(json)) => {
                call.header("content-type", "application/json").send(json.to_string())
            }
            Some(Payload::Form(form)) => {
                let mut reader = form.reader(sent_bytes)?;
                // Lets the server refuse the request before the body is sent.
                call.header("expect", "100-continue")
                    .header("content-type", form.content_type())
                    .header("content-length", form.content_length().to_string())
                    .send(SendBody::from_reader(&mut reader))
            }
        }
    }
}

impl Opened {
    /// Reads the rest of the body.
    ///
    /// # Errors
    /// [`Lost`] if it breaks off.
    pub fn whole(self) -> Result<Vec<u8>, Lost> {
        let mut body = Vec::new();
        let mut reader = self.body.take(ANSWER_BYTES_MAX);
        reader.read_to_end(&mut body).map_err(|error| lost(error.into()))?;
        Ok(body)
    }
}

fn opened(response: ureq::http::Response<Body>) -> Opened {
    opened_within(response, ANSWER_BYTES_MAX)
}

fn opened_within(response: ureq::http::Response<Body>, bytes_max: u64) -> Opened {
    let status = response.status().as_u16();
    let retry_after = response.headers().get("retry-after");
    let retry_after_s = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = response.into_body().into_with_config().limit(bytes_max).reader();
    Opened { status, retry_after_s, body }
}

fn lost(error: ureq::Error) -> Lost {
    let problem = error.to_string();
    // The second word occurs if another authority has the same name.
    let is_unknown = ["UnknownIssuer", "BadSignature"].iter().any(|word| problem.contains(word));
    let remedy = if is_unknown {
        " (set the certificate of its authority with --ca-file)"
    } else if problem.contains("InvalidContentType") {
        " (the server there uses plain HTTP: use an http:// address)"
    } else {
        ""
    };
    Lost { problem: problem + remedy }
}

/// Transfers of archives, which may have any length.
impl Http {
    /// Sends a GET whose response may have any length.
    ///
    /// # Errors
    /// [`Lost`] if no response arrives.
    pub fn open_whole(&self, path: &str) -> Result<Opened, Lost> {
        let mut call = self.agent.get(format!("{}{path}", self.server));
        if let Some((name, key)) = &self.key {
            call = call.header(*name, key);
        }
        call.call().map(|response| opened_within(response, u64::MAX)).map_err(lost)
    }

    /// Sends JSON Lines and waits for the response without a timeout.
    ///
    /// # Errors
    /// [`Lost`] if no response arrives; errors of reading `lines`.
    pub fn send_lines(&self, path: &str, lines: &mut dyn Read) -> Result<Opened, Lost> {
        let call = self.agent.post(format!("{}{path}", self.server));
        let mut call = call.config().timeout_recv_response(None).timeout_per_read(None).build();
        if let Some((name, key)) = &self.key {
            call = call.header(*name, key);
        }
        let mut lines = lines;
        let sent = call
            .header("expect", "100-continue")
            .header("content-type", "application/x-ndjson")
            .send(SendBody::from_reader(&mut lines));
        sent.map(opened).map_err(lost)
    }
}

impl Transport for Http {
    fn exchange(&self, request: &Request<'_>, sent_bytes: &AtomicU64) -> Result<Reply, Lost> {
        let opened = self.open(request, sent_bytes)?;
        let (status, retry_after_s) = (opened.status, opened.retry_after_s);
        let body = opened.whole()?;
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Reply { status, retry_after_s, json })
    }
}

/// Whether an address is on this machine, which a proxy cannot reach for us.
pub fn is_loopback(server: &str) -> bool {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback_address =
        host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback_address || host.eq_ignore_ascii_case("localhost")
}

/// Every byte except letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a value for use in a path.
pub fn escaped(value: &str) -> String {
    utf8_percent_encode(value, RESERVED).to_string()
}

/// Formats names and values as a query string.
pub fn query(pairs: &[(&str, &str)]) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(name);
        query.push('=');
        query.extend(utf8_percent_encode(value, RESERVED));
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        for server in [
            "http://127.0.0.1:8080", "http://127.9.9.9", "https://[::1]:8080/prefix",
            "http://LOCALHOST:1/x", "http://user@localhost",
        ] {
            assert!(is_loopback(server), "{server}");
        }
        for server in ["http://example.com", "http://10.0.0.1:8080", "http://localhost@evil.org"] {
            assert!(!is_loopback(server), "{server}");
        }
    }

    #[test]
    fn queries_are_escaped() {
        assert_eq!(query(&[("a", "x y&z"), ("b", "é:1")]), "?a=x%20y%26z&b=%C3%A9%3A1");
        assert_eq!(query(&[]), "");
    }
}
