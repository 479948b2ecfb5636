//! The HTTP client of a model hub.
//!
//! Redirects are followed here rather than by the library: large files are on other hosts, which
//! must never see the token and whose URLs carry signatures that must not appear in messages.

use std::time::Duration;

use lodestone_fetch::Authorities;
use serde_json::Value;
use ureq::http::{HeaderMap, Response, Uri, header};
use ureq::{Agent, Body, Proxy};

use super::place::Token;
use crate::cli::transport::is_loopback;

const CONNECT: Duration = Duration::from_secs(10);
/// A connection that is silent for this long is considered lost.
const SILENCE: Duration = Duration::from_secs(60);
const REDIRECTS_MAX: usize = 5;
/// Largest file list with hashes; the largest repositories have a few thousand files.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// A client of one hub.
pub struct HubClient {
    /// Client that uses the proxy named by the environment, if there is one.
    agent: Agent,
    /// Client for this machine, which a proxy cannot reach for us.
    direct: Agent,
    endpoint: Uri,
    token: Option<Token>,
}

/// A response with status 200 or 206.
pub struct FileResponse {
    /// Offset in the file at which the body begins.
    pub from: u64,
    /// Length of the body in bytes, if known.
    pub body_bytes: Option<u64>,
    /// SHA-256 of the whole file, if the hub states it.
    pub sha256: Option<String>,
    /// The body of the response.
    pub body: Body,
}

/// The reason why there is no usable response.
#[derive(Debug)]
pub enum Refusal {
    /// Retrying will not help.
    Final(String),
    /// The requested range does not fit the file.
    BadRange,
    /// Retrying may help, after the pause requested by the hub.
    Later {
        /// Description of the problem.
        problem: String,
        /// Pause requested by the hub.
        pause: Option<Duration>,
    },
}

impl HubClient {
    /// Creates a client of the hub at `endpoint`, an address that was already validated.
    pub fn new(endpoint: &str, token: Option<Token>, authorities: &Authorities) -> Self {
        let agent = |proxy| {
            authorities
                .client(proxy)
                .timeout_connect(Some(CONNECT))
                .timeout_recv_response(Some(SILENCE))
                .timeout_per_read(Some(SILENCE))
                .build()
                .new_agent()
        };
        let endpoint = endpoint.parse().expect("an address that was checked");
        Self { agent: agent(Proxy::try_from_env()), direct: agent(None), endpoint, token }
    }

    /// Requests a path below the endpoint, starting at byte `from` of the file.
    ///
    /// # Errors
    /// [`Refusal`] if there is no usable response.
    pub fn get(&self, path: &str, from: u64) -> Result<FileResponse, Refusal> {
        let address = format!("{}{path}", self.endpoint.to_string().trim_end_matches('/'));
        let mut address = parsed(&address)?;
        let mut sha256 = None;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&address, from)?;
            sha256 = sha256.or_else(|| linked_hash(response.headers()));
            let status = response.status().as_u16();
            match status {
                200 | 206 => return found(response, from, sha256),
                301 | 302 | 303 | 307 | 308 => address = next(&address, response.headers())?,
                416 => return Err(Refusal::BadRange),
                _ => return Err(refused(&address, status, response.headers())),
            }
        }
        Err(Refusal::Final(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// Requests a JSON document.
    ///
    /// # Errors
    /// [`Refusal`] if there is no usable response.
    pub fn json(&self, path: &str) -> Result<Value, Refusal> {
        let mut found = self.get(path, 0)?;
        let body = found.body.with_config().limit(LIST_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| later(error.to_string()))?;
        serde_json::from_slice(&body)
            .map_err(|_| Refusal::Final("the response is not JSON: is it a model hub?".to_owned()))
    }

    fn ask(&self, address: &Uri, from: u64) -> Result<Response<Body>, Refusal> {
        let agent = if is_loopback(&address.to_string()) { &self.direct } else { &self.agent };
        // Ranges refer to the stored bytes, so the body must not be compressed.
        let mut call = agent.get(address).header(header::ACCEPT_ENCODING, "identity");
        if from > 0 {
            call = call.header(header::RANGE, format!("bytes={from}-"));
        }
        if let Some(Token(token)) = self.token.as_ref().filter(|_| self.is_own(address)) {
            call = call.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        call.call().map_err(|error| match error {
            // These errors include the address, which may be signed.
            ureq::Error::BadUri(_) => Refusal::Final("not a valid address".to_owned()),
            error => later(format!("{}: {error}", host(address))),
        })
    }

    /// Whether an address has the scheme, host and port of the hub.
    fn is_own(&self, address: &Uri) -> bool {
        let port = |uri: &Uri| {
            let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            uri.port_u16().unwrap_or(usual)
        };
        let endpoint = &self.endpoint;
        let same_host = host(address).eq_ignore_ascii_case(host(endpoint));
        same_host && address.scheme() == endpoint.scheme() && port(address) == port(endpoint)
    }
}

fn host(address: &Uri) -> &str {
    address.host().unwrap_or_default()
}

fn later(problem: String) -> Refusal {
    Refusal::Later { problem, pause: None }
}

fn parsed(address: &str) -> Result<Uri, Refusal> {
    let uri = address.parse::<Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|host| !host.as_str().contains('@'))
    });
    uri.ok_or_else(|| Refusal::Final("the address must be http or https".to_owned()))
}

/// Returns the target of a redirect: an absolute URL, or a path on the same host.
fn next(address: &Uri, headers: &HeaderMap) -> Result<Uri, Refusal> {
    let wrong = || Refusal::Final(format!("{}: a redirect without a valid target", host(address)));
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(wrong)?;
    let (scheme, authority) = (address.scheme_str(), address.authority());
    let next = match location.starts_with('/') && !location.starts_with("//") {
        true => {
            let (scheme, authority) = scheme.zip(authority).ok_or_else(wrong)?;
            parsed(&format!("{scheme}://{authority}{location}"))?
        }
        false => parsed(location)?,
    };
    if scheme == Some("https") && next.scheme_str() != Some("https") {
        return Err(Refusal::Final(format!("{}: a redirect from https to http", host(address))));
    }
    Ok(next)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the hash that the hub states for a file stored elsewhere; other entity tags are not
/// hashes.
fn linked_hash(headers: &HeaderMap) -> Option<String> {
    let tag = text(headers, "x-linked-etag")?.trim_start_matches("W/").trim_matches('"');
    is_sha256(tag).then(|| tag.to_ascii_lowercase())
}

/// Whether a text is a SHA-256 in hexadecimal.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn found(
    response: Response<Body>,
    asked: u64,
    sha256: Option<String>,
) -> Result<FileResponse, Refusal> {
    let headers = response.headers();
    let body_bytes = text(headers, "content-length").and_then(|text| text.trim().parse().ok());
    let from = match response.status().as_u16() {
        // The server ignored the range and sends the whole file.
        200 => 0,
        _ => {
            let range = text(headers, "content-range").and_then(|text| text.strip_prefix("bytes "));
            let begin = range.and_then(|range| range.split('-').next()?.trim().parse().ok());
            match begin {
                Some(begin) if begin == asked => begin,
                _ => return Err(Refusal::BadRange),
            }
        }
    };
    Ok(FileResponse { from, body_bytes, sha256, body: response.into_body() })
}

fn refused(address: &Uri, status: u16, headers: &HeaderMap) -> Refusal {
    let host = host(address);
    if matches!(status, 408 | 429 | 500..=599) {
        let pause = text(headers, "retry-after").and_then(|text| text.trim().parse().ok());
        let problem = format!("{host} answers {status}");
        return Refusal::Later { problem, pause: pause.map(Duration::from_secs) };
    }
    let reason = text(headers, "x-error-code").unwrap_or_default();
    Refusal::Final(match (status, reason) {
        (401, _) => format!(
            "{host} answers 401: the model does not exist, or is private or gated; set a token \
             with HF_TOKEN or HF_TOKEN_PATH"
        ),
        (403, _) => format!(
            "{host} answers 403: the token has no access; for a gated model, accept the conditions \
             on its page first"
        ),
        (404, "RevisionNotFound") => format!("{host} answers 404: revision not found"),
        (404, "EntryNotFound") => format!("{host} answers 404: file not found"),
        (404, _) => format!("{host} answers 404: model or revision not found"),
        _ => format!("{host} answers {status}"),
    })
}
