//! A generator behind the OpenAI interface, which nearly all offer: Ollama, vLLM, llama.cpp, LM
//! Studio and hosted services. Uses `POST {base}/chat/completions` with `stream`.
//!
//! ```text
//! attempt -> connect -> head: 200 -> reply
//!    ^                        429, 5xx, no connection -> wait (Retry-After, else twice as long)
//!    '---------------------------------------------------'     unless a piece was emitted already
//! ```
//! The operator chooses the URL, so the check that keeps page fetches out of private networks does
//! not apply: most generators run on the same machine.

use std::cell::Cell;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, HeaderValue, Response, header};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, Body};

use crate::generate::request::Dialect;
use crate::generate::{
    CancellationToken, Effort, Ended, GenerateError, Generator, GeneratorSettings, Prompt, Tell,
    reply,
};
use lodestone_fetch::Authorities;
use lodestone_types::Secret;

/// Time limit for resolving the host, and for connecting to it.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// The first pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause that a generator may ask for; beyond it there is no further attempt.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of bytes in the headers of a response, and in the body of a refusal.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of characters of a refusal that are reported.
const REFUSAL_CHARS: usize = 200;
/// Maximum number of requests within one attempt to learn what the server accepts.
const DIALECTS_MAX: usize = 4;
/// Limits for checking the server.
const LOOKING: Effort = Effort {
    attempts_max: 1,
    silence_max: Duration::from_secs(5),
    time_max: Duration::from_secs(5),
};

/// A client for one model at one URL.
#[derive(Debug)]
pub struct OpenAiGenerator {
    settings: GeneratorSettings,
    authorities: Authorities,
    dialect: Dialect,
}

/// A failed attempt, with the decision about another.
struct Setback {
    error: GenerateError,
    /// Pause before the next attempt; `None` if there should be none.
    pause: Option<Duration>,
}

impl From<GenerateError> for Setback {
    fn from(error: GenerateError) -> Self {
        Self { error, pause: None }
    }
}

impl OpenAiGenerator {
    /// Creates a client from validated settings.
    pub fn new(settings: GeneratorSettings) -> Self {
        let authorities = Authorities::default();
        Self { settings, authorities, dialect: Dialect::default() }
    }

    /// Trusts these certificate authorities instead of the built-in ones.
    #[must_use]
    pub fn trusting(self, authorities: &Authorities) -> Self {
        Self { authorities: authorities.clone(), ..self }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.settings.base_url.trim_end_matches('/'))
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let key = self.settings.api_key.as_ref().map(Secret::expose)?;
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Makes one attempt: a request, repeated a few times if the server rejects parts of it.
    fn attempt(
        &self,
        prompt: &Prompt,
        until: Instant,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, Setback> {
        for _ in 0..DIALECTS_MAX {
            let agent = agent(&self.authorities, prompt.effort.silence_max, left(until)?);
            // Closes the connection, even while a thread waits on it.
            let connections = agent.clone();
            cancel.on_cancel(move || connections.shutdown());
            let body = self.dialect.body(&self.settings.model, prompt).to_string();
            let mut request = agent
                .post(self.url("/chat/completions"))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "text/event-stream, application/json");
            if let Some(value) = self.authorization() {
                request = request.header(header::AUTHORIZATION, value);
            }
            let response = request.send(body.as_bytes()).map_err(|error| {
                // After a timeout, waiting again is unlikely to help.
                let is_timeout = matches!(error, ureq::Error::Timeout(_));
                Setback { error: explain(&error, cancel), pause: (!is_timeout).then_some(PAUSE) }
            })?;
            let status = response.status().as_u16();
            if status == 200 {
                let is_stream = is_event_stream(response.headers());
                let explain = |error: &io::Error| explain_io(error, cancel);
                let body = response.into_body().into_reader();
                return reply::read(body, is_stream, &explain, tell).map_err(|error| {
                    let is_lost = matches!(error, GenerateError::Broken { .. });
                    Setback { error, pause: is_lost.then_some(PAUSE) }
                });
            }
            match self.refusal(status, response, cancel) {
                Refusal::Learnt => {}
                Refusal::Final(setback) => return Err(setback),
            }
        }
        let message = "it accepts no form of the request".to_owned();
        Err(GenerateError::Refused { status: 400, message }.into())
    }

    fn refusal(
        &self,
        status: u16,
        response: Response<Body>,
        cancel: &CancellationToken,
    ) -> Refusal {
        if matches!(status, 408 | 429 | 500..=599) {
            let pause = asked_pause(response.headers()).unwrap_or(PAUSE);
            let pause = (pause <= PAUSE_MAX).then_some(pause);
            return Refusal::Final(Setback { error: GenerateError::Overloaded { status }, pause });
        }
        let mut words = Vec::new();
        let body = response.into_body().into_reader();
        let read = body.take(HEAD_BYTES_MAX as u64).read_to_end(&mut words);
        if cancel.is_cancelled() {
            return Refusal::Final(GenerateError::Cancelled.into());
        }
        let words = String::from_utf8_lossy(&words);
        if matches!(status, 400 | 422) && read.is_ok() && self.dialect.learn(&words) {
            return Refusal::Learnt;
        }
        let message = self.told(status, &words);
        Refusal::Final(GenerateError::Refused { status, message }.into())
    }

    /// The beginning of a refusal on one line, for the log. If the key is at issue, nothing is
    /// quoted, because servers repeat parts of it.
    fn told(&self, status: u16, words: &str) -> String {
        if matches!(status, 401 | 403) {
            return "is the key right?".to_owned();
        }
        let key = self.settings.api_key.as_ref().map(Secret::expose).filter(|key| !key.is_empty());
        let words = match key {
            Some(key) => words.replace(key, "..."),
            None => words.to_owned(),
        };
        let line = crate::text::snippet::folded(&words);
        line.chars().filter(|c| !c.is_control()).take(REFUSAL_CHARS).collect()
    }

    /// Requests the list of models below `base` and returns the status.
    fn models(&self, base: &str) -> Result<u16, GenerateError> {
        let cancel = CancellationToken::default();
        let agent = agent(&self.authorities, LOOKING.silence_max, LOOKING.time_max);
        let mut request = agent.get(format!("{base}/models"));
        if let Some(value) = self.authorization() {
            request = request.header(header::AUTHORIZATION, value);
        }
        let response = request.call().map_err(|error| explain(&error, &cancel))?;
        Ok(response.status().as_u16())
    }
}

/// Interpretation of a refusal.
enum Refusal {
    /// The request may be accepted without the rejected part.
    Learnt,
    /// The attempt has failed.
    Final(Setback),
}

impl Generator for OpenAiGenerator {
    fn model(&self) -> &str {
        &self.settings.model
    }

    fn place(&self) -> &str {
        &self.settings.base_url
    }

    fn context_tokens(&self) -> usize {
        self.settings.context_tokens
    }

    fn generate(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError> {
        let until = Instant::now() + prompt.effort.time_max;
        let has_told = Cell::new(false);
        let mut telling = |piece: &str| -> ControlFlow<()> {
            has_told.set(true);
            tell(piece)
        };
        let mut doublings = 0;
        loop {
            let Setback { error, pause } = match self.attempt(prompt, until, cancel, &mut telling) {
                Ok(ended) => return Ok(ended),
                Err(_) if cancel.is_cancelled() => return Err(GenerateError::Cancelled),
                Err(setback) => setback,
            };
            let pause = pause.map(|pause| pause.max(PAUSE * (1 << doublings)).min(PAUSE_MAX));
            doublings += 1;
            let may_ask = doublings < prompt.effort.attempts_max && !has_told.get();
            let time_left = until.saturating_duration_since(Instant::now());
            let Some(pause) = pause.filter(|pause| may_ask && *pause < time_left) else {
                return Err(error);
            };
            tracing::debug!(%error, pause_ms = pause.as_millis() as u64, "asking again");
            if cancel.wait(pause) {
                return Err(GenerateError::Cancelled);
            }
        }
    }

    fn look(&self) -> Result<String, GenerateError> {
        let base = self.settings.base_url.trim_end_matches('/');
        match self.models(base)? {
            200 => Ok("it answers".to_owned()),
            404 if self.models(&format!("{base}/v1")).is_ok_and(|status| status == 200) => {
                let message = format!("the base URL should be {base}/v1");
                Err(GenerateError::Refused { status: 404, message })
            }
            // Not all servers list their models.
            404 | 405 => Ok("it answers, but lists no models".to_owned()),
            status => Err(GenerateError::Refused { status, message: self.told(status, "") }),
        }
    }
}

/// Creates a client for a single request: no redirects, proxies, cookies or kept connections.
fn agent(authorities: &Authorities, silence_max: Duration, time_max: Duration) -> Agent {
    let config = authorities
        .client(None)
        .max_idle_connections(0)
        .max_response_header_size(HEAD_BYTES_MAX)
        .timeout_resolve(Some(CONNECT_TIME_MAX))
        .timeout_connect(Some(CONNECT_TIME_MAX))
        .timeout_per_read(Some(silence_max))
        .timeout_recv_response(Some(silence_max))
        .timeout_global(Some(time_max))
        .build();
    let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
    Agent::with_parts(config, connector, DefaultResolver::default())
}

fn left(until: Instant) -> Result<Duration, GenerateError> {
    let left = until.saturating_duration_since(Instant::now());
    match left < Duration::from_millis(1) {
        true => Err(GenerateError::TimedOut { phase: "its time is over".to_owned() }),
        false => Ok(left),
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The requested pause, in whole seconds; dates are ignored.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

fn explain(error: &ureq::Error, cancel: &CancellationToken) -> GenerateError {
    if cancel.is_cancelled() {
        return GenerateError::Cancelled;
    }
    let unreachable = |cause: String| GenerateError::Unreachable { cause };
    match error {
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            unreachable("no connection within five seconds".to_owned())
        }
        ureq::Error::Timeout(phase) => GenerateError::TimedOut { phase: phase.to_string() },
        ureq::Error::HostNotFound => unreachable("no such host".to_owned()),
        ureq::Error::ConnectionFailed => unreachable("no connection".to_owned()),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => {
            unreachable(format!("no secure connection: {error}"))
        }
        ureq::Error::Io(error) => unreachable(error.to_string()),
        error => GenerateError::Broken { problem: error.to_string() },
    }
}

fn explain_io(error: &io::Error, cancel: &CancellationToken) -> GenerateError {
    if cancel.is_cancelled() {
        return GenerateError::Cancelled;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        Some(ureq::Error::Timeout(phase)) => GenerateError::TimedOut { phase: phase.to_string() },
        Some(error) => GenerateError::Broken { problem: error.to_string() },
        None => GenerateError::Broken { problem: error.to_string() },
    }
}
