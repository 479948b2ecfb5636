//! Sending requests to a bucket, with retries.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_xml::DeError;
use ureq::http::{Request, Response, header};
use ureq::{Agent, AsSendBody, Body, Proxy};

use super::answers::Problem;
use super::credentials::{Credentials, Variable};
use super::dialect::{Dialect, Opened};
use super::limits::{self, ANSWER, CONNECT, STALL};
use super::provider::{CredentialProvider, provider};
use super::request::{Ask, Unsigned};
use super::url::{Store, StoreKind, is_loopback};
use super::{BucketError, BucketOptions, BucketUrl, Pause, azure, google, s3, sign};
use crate::Authorities;
use lodestone_types::{Clock, Timestamp};

/// Maximum size of an XML body; more than a page of 1,000 keys of 1,024 characters.
const XML_BYTES_MAX: u64 = 8 << 20;
/// Maximum number of idle connections.
const IDLE_MAX: usize = 16;

/// A prefix in a bucket.
pub struct Bucket {
    url: BucketUrl,
    store: Store,
    pub(super) dialect: Box<dyn Dialect>,
    credentials: CredentialProvider,
    agent: Agent,
    clock: Arc<dyn Clock>,
    pause: Box<Pause>,
    sent: [AtomicU64; 5],
}

/// The kinds of requests that [`Bucket::requests`] counts.
const KINDS: [&str; 5] = ["put", "get", "head", "list", "delete"];

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("url", &self.url).field("store", &self.store).finish()
    }
}

impl Ask<'_> {
    /// Index in [`KINDS`].
    fn kind(&self) -> usize {
        match (self.method, self.key) {
            ("PUT" | "POST", _) => 0,
            ("GET", Some(_)) => 1,
            ("HEAD", _) => 2,
            ("DELETE", _) => 4,
            _ => 3,
        }
    }

    fn what(&self) -> String {
        let action = self.query.first().map_or("", |(name, _)| name);
        format!("{} {} {action}", self.method, self.key.unwrap_or("a listing")).trim().to_owned()
    }
}

impl Bucket {
    /// Opens a bucket with the credentials from the environment. Sends no request to the bucket; if
    /// the credentials come from a role, its service is called.
    ///
    /// # Errors
    /// [`BucketError::Credentials`]; [`BucketError::Invalid`] if the store's address cannot be
    /// used.
    pub fn new(
        url: BucketUrl,
        options: &BucketOptions,
        authorities: &Authorities,
        clock: Arc<dyn Clock>,
        pause: Box<Pause>,
    ) -> Result<Self, BucketError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::with_variables(&variable, url, options, authorities, clock, pause)
    }

    /// Opens a bucket with other variables than those of this process.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_variables(
        variable: Variable<'_>,
        url: BucketUrl,
        options: &BucketOptions,
        authorities: &Authorities,
        clock: Arc<dyn Clock>,
        pause: Box<Pause>,
    ) -> Result<Self, BucketError> {
        let opened = match url.kind {
            StoreKind::S3 => s3::open(variable, &url, options),
            StoreKind::Google => google::open(variable, &url),
            StoreKind::Azure => azure::open(variable, &url),
        };
        let Opened { store, dialect, source, advice } = opened?;
        if source.is_sent() && store.is_in_the_open() {
            let origin = &store.origin;
            let problem = format!("{url} at {origin}: a token is only sent to https://");
            return Err(BucketError::Invalid { problem });
        }
        let agent = authorities
            .client(if is_loopback(&store.host) { None } else { Proxy::try_from_env() })
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_write(Some(STALL))
            .timeout_per_read(Some(ANSWER))
            .max_idle_connections_per_host(IDLE_MAX)
            .max_idle_connections(IDLE_MAX)
            .build()
            .new_agent();
        let credentials = provider(source, &advice, authorities, &clock, &*pause);
        let credentials = credentials.map_err(|error| BucketError::Credentials {
            problem: format!("{url} at {}: {error}", store.origin),
        })?;
        let sent = Default::default();
        Ok(Self { credentials, url, store, dialect, agent, clock, pause, sent })
    }

    /// The URL of the bucket and prefix.
    pub fn url(&self) -> &BucketUrl {
        &self.url
    }

    /// The bucket and prefix, and the URL of the store, for messages.
    pub fn place(&self) -> String {
        format!("{} at {}", self.url, self.store.origin)
    }

    /// The current time, by the clock that requests are signed with.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Requests sent since the bucket was opened, including retries, by kind. As stores bill them,
    /// requests that begin, add to or complete a multipart upload count as `put`.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.sent.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Waits for the given time; returns whether the process is to stop.
    pub fn pause(&self, time: Duration) -> bool {
        (self.pause)(time)
    }

    /// Sends a request, retrying it where that may help. Responses other than 2xx, 404 and a failed
    /// condition are errors.
    pub(super) fn ask(&self, ask: &Ask<'_>) -> Result<Response<Body>, BucketError> {
        let (mut tries, mut is_renewed, begun) = (0, false, Instant::now());
        loop {
            let (error, after) = match self.credentials.current() {
                // Nothing was sent, so even a request that must not be repeated may be retried.
                Err(problem) => (self.unreachable(ask, &problem), None),
                Ok(credentials) => match self.send(ask, &credentials, tries) {
                    Ok(answer) => match answer.status().as_u16() {
                        200..=299 | 404 => return Ok(answer),
                        status if self.dialect.is_refusal(status, self.code_of(&answer)) => {
                            return Ok(answer);
                        }
                        // A gateway reports that it got no response; the request may have been
                        // carried out.
                        408 | 502 | 504 if ask.is_once => return Err(self.refused(ask, answer)),
                        status @ (408 | 409 | 429 | 500..=599) if status != 501 => {
                            let after = answer.headers().get(header::RETRY_AFTER);
                            let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
                            (self.refused(ask, answer), after.map(Duration::from_secs))
                        }
                        _ => match self.refused(ask, answer) {
                            // A role may have newer credentials.
                            error if !is_renewed && error.may_mean_expired() => {
                                if !self.credentials.discard(&credentials) {
                                    return Err(error);
                                }
                                is_renewed = true;
                                (error, None)
                            }
                            error => return Err(error),
                        },
                    },
                    Err(error) if ask.is_once => return Err(self.unreachable(ask, &error)),
                    Err(error) => (self.unreachable(ask, &error), None),
                },
            };
            if !ask.is_tried_again(tries, begun) {
                return Err(error);
            }
            tracing::debug!(%error, tries, "repeating a request to the bucket");
            self.wait(tries, after)?;
            tries += 1;
        }
    }

    /// Pauses before a retry, with random jitter so that many clients do not retry simultaneously.
    pub(super) fn wait(&self, tries: u32, at_least: Option<Duration>) -> Result<(), BucketError> {
        let chance = RandomState::new().hash_one(tries) % 1000;
        match (self.pause)(limits::pause(tries, at_least, chance as f64 / 1000.0)) {
            true => Err(BucketError::Stopped),
            false => Ok(()),
        }
    }

    fn send(
        &self,
        ask: &Ask<'_>,
        credentials: &Credentials,
        tries: u32,
    ) -> Result<Response<Body>, ureq::Error> {
        self.sent[ask.kind()].fetch_add(1, Ordering::Relaxed);
        let root = &self.store.root;
        let path = match ask.key {
            Some(key) => sign::path(&format!("{root}/{}", self.full_key(key))),
            // With a trailing slash, a container could be taken for a blob with an empty name.
            None if !root.is_empty() => sign::path(root),
            None => "/".to_owned(),
        };
        let (method, host, now) = (ask.method, &*self.store.host, self.clock.now());
        let (query, headers) = (ask.query.clone(), ask.headers.clone());
        let mut unsigned = Unsigned { method, path: &path, query, host, headers, body: ask.body };
        self.dialect.prepare(&mut unsigned, now);
        let mut query = sign::query(&unsigned.query);
        let headers = match credentials {
            Credentials::Key(key) => self.dialect.sign(&unsigned, key, now),
            Credentials::SharedAccess(signature) => {
                let and = if query.is_empty() { "" } else { "&" };
                query += &format!("{and}{signature}");
                unsigned.headers
            }
            Credentials::Bearer(token) => {
                let mut headers = unsigned.headers;
                headers.push(("authorization", format!("Bearer {token}")));
                headers
            }
        };
        let mark = if query.is_empty() { "" } else { "?" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}{mark}{query}", self.store.origin));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = ask.answer_time(tries);
        match method {
            "PUT" | "POST" => self.run(request.body(ask.body)?, answer),
            _ => self.run(request.body(())?, answer),
        }
    }

    fn run(
        &self,
        request: Request<impl AsSendBody>,
        answer: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let limited = self.agent.configure_request(request).timeout_recv_response(Some(answer));
        self.agent.run(limited.timeout_connect(Some(CONNECT.min(answer))).build())
    }

    pub(super) fn full_key(&self, key: &str) -> String {
        match self.url.prefix.is_empty() {
            true => key.to_owned(),
            false => format!("{}/{key}", self.url.prefix),
        }
    }

    pub(super) fn refused(&self, ask: &Ask<'_>, answer: Response<Body>) -> BucketError {
        let status = answer.status().as_u16();
        let told = self.code_of(&answer).to_owned();
        let text = body_of(answer).unwrap_or_default();
        let Problem { code, message } = quick_xml::de::from_str(&text).unwrap_or_default();
        let code = if code.is_empty() { told } else { code };
        let place = self.place();
        BucketError::Refused { place, what: ask.what(), status, code, message }
    }

    /// The error code, if a header has it.
    fn code_of<'a>(&self, answer: &'a Response<Body>) -> &'a str {
        let value = self.dialect.code_header().and_then(|name| answer.headers().get(name));
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Examines a 404: an error if the bucket is missing, and not just the key.
    pub(super) fn absent(&self, ask: &Ask<'_>, answer: Response<Body>) -> Result<(), BucketError> {
        match self.refused(ask, answer) {
            error if error.code() == self.dialect.no_bucket() => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn unreachable(&self, ask: &Ask<'_>, problem: &dyn fmt::Display) -> BucketError {
        let (place, problem) = (self.place(), problem.to_string());
        BucketError::Unreachable { place, what: ask.what(), problem }
    }

    /// Sends a request whose response body is parsed by `read`.
    pub(super) fn ask_text<T>(
        &self,
        ask: &Ask<'_>,
        read: impl FnOnce(&str) -> Result<T, DeError>,
    ) -> Result<T, BucketError> {
        let answer = self.ask_done(ask)?;
        let text = body_of(answer).map_err(|error| self.unreachable(ask, &error))?;
        // Once the store has begun a response, it can report a failure only in the body.
        read(&text).map_err(|error| match quick_xml::de::from_str::<Problem>(&text) {
            Ok(Problem { code, message }) if !code.is_empty() => {
                let place = self.place();
                BucketError::Refused { place, what: ask.what(), status: 200, code, message }
            }
            _ => self.unreachable(ask, &error),
        })
    }

    /// Sends a request for which a missing object is an error, too.
    pub(super) fn ask_done(&self, ask: &Ask<'_>) -> Result<Response<Body>, BucketError> {
        let answer = self.ask(ask)?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(self.refused(ask, answer)),
        }
    }
}

pub(super) fn tag_of(answer: &Response<Body>) -> String {
    let tag = answer.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    tag.unwrap_or_default().to_owned()
}

fn body_of(answer: Response<Body>) -> Result<String, ureq::Error> {
    let text = answer.into_body().into_with_config().limit(XML_BYTES_MAX).read_to_string()?;
    // Azure's bodies begin with a byte order mark.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

#[cfg(test)]
mod tests;
