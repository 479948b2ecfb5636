//! One request: a GET of a page or a POST of a message, without cookies, credentials, proxies or
//! redirects.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::{HeaderMap, HeaderName, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{Connector, RustlsConnector};

use crate::body::{self, Overflow};
use crate::connection::{Dialer, Meter, Pinned};
use crate::error::RequestError;
use lodestone_types::limits::WEB_HEAD_BYTES_MAX;
use lodestone_types::{FetchProblem, WebPost, WebUrl};

/// The name of this client in `robots.txt`.
pub(super) const PRODUCT: &str = "Lodestone";

const USER_AGENT: &str = concat!("Lodestone/", env!("CARGO_PKG_VERSION"), " (page on request)");
const POST_AGENT: &str = concat!("Lodestone/", env!("CARGO_PKG_VERSION"), " (webhook)");
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,text/*;q=0.9,\
     application/pdf;q=0.9,*/*;q=0.5";
const ACCEPT_ENCODING: &str = "gzip, br, zstd";

/// Sends each request over a connection of its own.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    /// Opens the connections.
    pub dialer: Arc<dyn Dialer>,
    /// The trusted root certificates.
    pub roots: RootCerts,
}

/// The head of a response; its body is still to be read.
pub(super) struct Answer {
    /// The status.
    pub status: u16,
    headers: HeaderMap,
    body: ureq::Body,
    meter: Arc<Meter>,
    is_https: bool,
}

impl HttpClient {
    /// Requests `url` from one of `addresses`, which the gate approved.
    pub(super) fn get(
        &self,
        url: &WebUrl,
        addresses: Vec<SocketAddr>,
        meter: &Arc<Meter>,
    ) -> Result<Answer, RequestError> {
        let agent = self.agent(USER_AGENT, &addresses, meter)?;
        let request = agent
            .get(url.as_str())
            .header(header::ACCEPT, ACCEPT)
            .header(header::ACCEPT_ENCODING, ACCEPT_ENCODING)
            .header(header::CONNECTION, "close");
        match request.call() {
            Ok(response) => {
                let (head, body) = response.into_parts();
                Ok(Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body,
                    meter: Arc::clone(meter),
                    is_https: url.is_https(),
                })
            }
            Err(error) => Err(explain(&error, meter, url.is_https())),
        }
    }

    /// Sends a message to one of `addresses`, which the gate approved; returns the status of the
    /// response.
    pub(super) fn post(
        &self,
        post: &WebPost<'_>,
        addresses: Vec<SocketAddr>,
        meter: &Arc<Meter>,
    ) -> Result<u16, RequestError> {
        let agent = self.agent(POST_AGENT, &addresses, meter)?;
        let mut request = agent
            .post(post.url.as_str())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close");
        for (name, value) in post.headers {
            request = request.header(*name, value);
        }
        match request.send(post.body) {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) => Err(explain(&error, meter, post.url.is_https())),
        }
    }

    /// Creates a client for one request, so that no state survives it.
    fn agent(
        &self,
        user_agent: &'static str,
        addresses: &[SocketAddr],
        meter: &Arc<Meter>,
    ) -> Result<Agent, FetchProblem> {
        let pinned = || Pinned {
            dialer: Arc::clone(&self.dialer),
            addresses: addresses.to_vec(),
            meter: Arc::clone(meter),
        };
        let tls = TlsConfig::builder().root_certs(self.roots.clone()).build();
        let config = Config::builder()
            .proxy(None)
            .tls_config(tls)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .max_response_header_size(WEB_HEAD_BYTES_MAX)
            .user_agent(user_agent)
            .timeout_global(Some(meter.left()?))
            .build();
        let connector = pinned().chain(RustlsConnector::default());
        Ok(Agent::with_parts(config, connector, pinned()))
    }
}

impl Answer {
    /// The first header of this name, if it is text.
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
    }

    /// Reads the body, decompressed.
    pub(super) fn read(
        self,
        bytes_max: usize,
        overflow: Overflow,
    ) -> Result<Vec<u8>, RequestError> {
        let encoding = body::Encoding::of(&self.headers)?;
        let (meter, is_https) = (self.meter, self.is_https);
        let explain = |error: &io::Error| explain_io(error, &meter, is_https);
        body::read(self.body.into_reader(), encoding, bytes_max, overflow, &explain)
    }
}

/// Translates an error of the HTTP library. A recorded error of the connection takes precedence.
fn explain(error: &ureq::Error, meter: &Meter, is_https: bool) -> RequestError {
    if let Some(error) = meter.take_error() {
        return error;
    }
    if meter.left().is_err() {
        return meter.timed_out().into();
    }
    let problem = match error {
        ureq::Error::Timeout(_) => meter.timed_out(),
        ureq::Error::LargeResponseHeader(..) => FetchProblem::HeadTooLarge,
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => {
            FetchProblem::Insecure
        }
        // The TLS library reports its errors as this kind.
        ureq::Error::Io(error) if is_https && error.kind() == io::ErrorKind::InvalidData => {
            FetchProblem::Insecure
        }
        ureq::Error::Io(_) | ureq::Error::BodyStalled => FetchProblem::Lost,
        _ => FetchProblem::Malformed,
    };
    problem.into()
}

fn explain_io(error: &io::Error, meter: &Meter, is_https: bool) -> RequestError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        Some(inner) => explain(inner, meter, is_https),
        None => {
            let kind = io::Error::from(error.kind());
            explain(&ureq::Error::Io(kind), meter, is_https)
        }
    }
}
