//! Sends one request, retrying until there is an answer that further attempts would not change.
//!
//! 429 and 503 mean "later" and are retried after `Retry-After`. A broken connection, 408, 500, 502
//! and 504 may be due to a restart and are retried with growing pauses. Uploads carry their ids, so
//! sending one twice is harmless. Everything else is final.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::Value;

use super::stop::Pause;
use crate::cli::transport::{Payload, Reply, Request, Transport};

/// Maximum number of attempts without an answer; with the pauses below, a server may be unreachable
/// for two minutes.
pub const LOST_ATTEMPTS_MAX: u32 = 12;
/// Maximum number of attempts before the first answer of a run, so that a wrong address is reported
/// soon.
pub const FIRST_ATTEMPTS_MAX: u32 = 3;
const LOST_PAUSE_MIN: Duration = Duration::from_millis(250);
const LOST_PAUSE_MAX: Duration = Duration::from_secs(20);
/// Pause if a busy server states none.
const BUSY_PAUSE: Duration = Duration::from_secs(2);
/// Longest single pause that a busy server may request.
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(60);
/// A full queue drains as fast as documents are processed; half an hour without progress is an
/// error.
pub const BUSY_PATIENCE: Duration = Duration::from_secs(1800);

/// Error response of the server (docs/api.md, "Errors").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({status} {reason})")]
pub struct ErrorBody {
    /// Status code.
    pub status: u16,
    /// The error code.
    pub error_code: String,
    /// Reason identifier.
    pub reason: String,
    /// Message for people.
    pub message: String,
    /// Failed items of a batch, if the body lists them.
    pub failed: Vec<Value>,
}

/// The reason why a request has no useful answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// There was no answer after several attempts.
    #[error("no answer after {attempts} attempts: {problem}")]
    Unreachable {
        /// Number of attempts.
        attempts: u32,
        /// Error of the last attempt.
        problem: String,
    },
    /// The server answered with an error.
    #[error(transparent)]
    Refused(ErrorBody),
}

impl ErrorBody {
    /// Reads the body of an error response.
    pub fn of(reply: &Reply) -> Self {
        let text = |name: &str| reply.json[name].as_str().unwrap_or_default().to_owned();
        let message = match text("message") {
            none if none.is_empty() => format!("the server answered {}", reply.status),
            message => message,
        };
        let failed = reply.json["failed"].as_array().cloned().unwrap_or_default();
        let (error_code, reason) = (text("error_code"), text("reason"));
        Self { status: reply.status, error_code, reason, message, failed }
    }

    /// Whether all other requests of the run would fail too.
    pub fn ends_the_run(&self) -> bool {
        // A server that failed or was busy for so long will not accept the others either.
        matches!(self.status, 300..=399 | 401 | 403 | 404 | 405 | 429 | 500..)
    }
}

/// Sends requests until they have an answer.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Sends the requests.
    pub transport: &'a dyn Transport,
    /// Waits between attempts.
    pub pause: &'a dyn Pause,
    /// Number of attempts without an answer before giving up.
    pub lost_attempts_max: u32,
    /// Counts the bytes of files as they are sent.
    pub sent_bytes: &'a AtomicU64,
    /// Called before every wait, so that the run does not appear stuck.
    pub note: &'a (dyn Fn(&str) + Sync),
}

impl Caller<'_> {
    /// Sends a request and returns the body of a successful response.
    ///
    /// # Errors
    /// [`CallError`]; a form with unreadable files keeps its error and counts as unreachable.
    pub fn call(&self, request: &Request<'_>) -> Result<Value, CallError> {
        let (mut lost, mut waited) = (0, Duration::ZERO);
        loop {
            if self.pause.is_stopped() {
                return Err(CallError::Stopped);
            }
            let (problem, refused) = match self.transport.exchange(request, self.sent_bytes) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(reply.json),
                Ok(reply) if matches!(reply.status, 429 | 503) => {
                    let body = ErrorBody::of(&reply);
                    let pause = busy_pause(reply.retry_after_s);
                    waited += pause;
                    if waited > BUSY_PATIENCE {
                        return Err(CallError::Refused(body));
                    }
                    (self.note)(&format!("waiting {} s: {body}", pause.as_secs()));
                    self.wait(pause)?;
                    continue;
                }
                Ok(reply) if matches!(reply.status, 408 | 500 | 502 | 504) => {
                    let body = ErrorBody::of(&reply);
                    (body.to_string(), Some(body))
                }
                Ok(reply) => return Err(CallError::Refused(ErrorBody::of(&reply))),
                Err(error) => (error.problem, None),
            };
            // A local file that cannot be read will not become readable by retrying.
            let is_ours = matches!(&request.body, Some(Payload::Form(form)) if form.has_fault());
            lost += 1;
            if lost >= self.lost_attempts_max || is_ours {
                return Err(match refused {
                    Some(body) => CallError::Refused(body),
                    None => CallError::Unreachable { attempts: lost, problem },
                });
            }
            let pause = lost_pause(lost);
            (self.note)(&format!("trying again in {:.1} s: {problem}", pause.as_secs_f64()));
            self.wait(pause)?;
        }
    }

    fn wait(&self, pause: Duration) -> Result<(), CallError> {
        match self.pause.pause(pause) {
            true => Ok(()),
            false => Err(CallError::Stopped),
        }
    }
}

/// Returns the pause after the `lost`-th attempt without an answer, counted from 1.
fn lost_pause(lost: u32) -> Duration {
    LOST_PAUSE_MIN.saturating_mul(1 << (lost - 1).min(10)).min(LOST_PAUSE_MAX)
}

/// Returns the pause before the next attempt at a busy server.
pub fn busy_pause(retry_after_s: Option<u64>) -> Duration {
    let asked = retry_after_s.map_or(BUSY_PAUSE, Duration::from_secs);
    asked.clamp(Duration::from_secs(1), BUSY_PAUSE_MAX)
}
