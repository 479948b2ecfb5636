//! One ingest node: its known state and its tasks in progress.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::wire::{self, Description, TASKS_MAX};
use crate::nodes::RELEASE;
use crate::settings::InvalidSetting;
use lodestone_fetch::forward::{Exchange, ForwardBody, ForwardRequest};
use lodestone_fetch::{Authorities, Forwarder};

/// Timeout of a probe.
const LOOK_ANSWER: Duration = Duration::from_secs(5);
/// Consecutive failed probes after which the node's tasks are done elsewhere.
const FAILURES: u32 = 2;
/// Time limit of one task; a large model on a small machine takes minutes.
const TASK: Duration = Duration::from_secs(900);
/// Time for which a node is not used after a useless answer.
const REST: Duration = Duration::from_secs(60);

/// A node and its current state.
#[derive(Debug)]
pub(super) struct Node {
    forwarder: Forwarder,
    /// The headers with the key.
    headers: HeaderMap,
    state: Mutex<NodeState>,
    next_task: AtomicU64,
}

#[derive(Debug, Default)]
struct NodeState {
    /// The description of the node, while it is usable.
    usable: Option<Description>,
    failures: u32,
    rests_until: Option<Instant>,
    problem: Option<String>,
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    task: u64,
    exchange: Exchange,
    since: Instant,
}

/// The reason why a task has no answer.
pub(super) enum Failure {
    /// The node is busy.
    Busy,
    /// The node cannot be reached, or was lost before its answer was complete.
    Lost(String),
    /// The answer is an error or makes no sense.
    Useless(String),
}

/// A task assigned to a node; dropping it frees the slot.
pub(super) struct TaskPermit<'a> {
    node: &'a Node,
    task: u64,
    exchange: Exchange,
}

impl Drop for TaskPermit<'_> {
    fn drop(&mut self) {
        self.node.state.lock().running.retain(|running| running.task != self.task);
    }
}

/// Asks a node for its description.
///
/// # Errors
/// The reason why there is none.
pub fn describe(forwarder: &Forwarder, headers: &HeaderMap) -> Result<Description, String> {
    let answer = forwarder.ask(wire::DESCRIPTION, headers, LOOK_ANSWER);
    let answer = answer.map_err(|error| reason(error.problem()))?;
    serde_json::from_slice(&answer).map_err(|_| "it is not an ingest node".to_owned())
}

/// Adds what a problem of the HTTP client means for a node.
fn reason(problem: &str) -> String {
    let meaning = match problem {
        "status 400" => "it may require https://",
        "status 401" => "it has another node-key, or is not an ingest node",
        "status 404" => "it is not an ingest node",
        timeout if timeout.starts_with("timeout") => {
            return "it did not answer in time".to_owned();
        }
        other if other.contains("InvalidContentType") => "it may require http://",
        other if other.contains("UnknownIssuer") => "ca-file lacks its certificate authority",
        other => return other.to_owned(),
    };
    format!("{problem}: {meaning}")
}

impl Node {
    /// Creates a node in unknown state.
    ///
    /// # Errors
    /// An invalid address.
    pub(super) fn new(
        url: &str,
        authorities: &Authorities,
        headers: &HeaderMap,
    ) -> Result<Self, InvalidSetting> {
        let forwarder = Forwarder::new(url, authorities)
            .map_err(|problem| InvalidSetting { name: "ingest-nodes", problem })?;
        let (state, next_task) = Default::default();
        Ok(Self { forwarder, headers: headers.clone(), state, next_task })
    }

    /// Whether it is not usable, or only in part.
    pub(super) fn has_problem(&self) -> bool {
        self.state.lock().problem.is_some()
    }

    /// The number of its tasks, if it is usable for such a task and has room for another.
    pub(super) fn tasks(&self, serves: impl Fn(&Description) -> bool) -> Option<usize> {
        let state = self.state.lock();
        let is_usable = state.usable.as_ref().is_some_and(serves);
        (is_usable && state.running.len() < TASKS_MAX).then_some(state.running.len())
    }

    /// The address of the node.
    pub(super) fn base(&self) -> &str {
        self.forwarder.base()
    }

    pub(super) fn is_usable(&self) -> bool {
        self.state.lock().usable.is_some()
    }

    /// Reserves a slot for a task; `None` if another thread has just taken the last one.
    pub(super) fn take(&self) -> Option<TaskPermit<'_>> {
        let task = self.next_task.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        if state.usable.is_none() || state.running.len() >= TASKS_MAX {
            return None;
        }
        let exchange = self.forwarder.begin();
        state.running.push(Running { task, exchange: exchange.clone(), since: Instant::now() });
        Some(TaskPermit { node: self, task, exchange })
    }

    /// Records that the node failed a task: it is not used again before its next successful probe.
    pub(super) fn failed(&self, failure: Failure) {
        match failure {
            Failure::Busy => {}
            Failure::Lost(problem) => self.note("an ingest node failed a task", problem),
            Failure::Useless(problem) => {
                self.state.lock().rests_until = Some(Instant::now() + REST);
                self.note("an ingest node gave no usable answer, and rests a minute", problem);
            }
        }
    }

    fn note(&self, event: &'static str, problem: String) {
        let node = self.forwarder.base();
        let mut state = self.state.lock();
        state.usable = None;
        if state.problem.as_ref() != Some(&problem) {
            tracing::warn!(node, problem, "{event}");
        }
        state.problem = Some(problem);
    }

    /// Aborts the node's tasks, which are then done elsewhere.
    pub(super) fn abort(&self) {
        let mut state = self.state.lock();
        state.usable = None;
        state.running.iter().for_each(|running| running.exchange.abort());
    }

    pub(super) fn look(&self, models: &[String]) {
        let described = describe(&self.forwarder, &self.headers);
        let mut state = self.state.lock();
        state.running.iter().filter(|one| one.since.elapsed() > TASK).for_each(|one| {
            one.exchange.abort();
        });
        if state.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let base = self.forwarder.base();
        match described {
            Ok(node) => {
                (state.failures, state.rests_until) = (0, None);
                let device = &node.device;
                let has_model = node.models.iter().any(|known| models.contains(known));
                let problem = match (has_model, node.version == RELEASE) {
                    (true, true) => None,
                    (true, false) => Some("it is of another release, so it only embeds"),
                    (false, true) => Some("it has none of this server's models, so it only parses"),
                    (false, false) => Some("it is of another release and has other models"),
                };
                let problem = problem.map(str::to_owned);
                if problem != state.problem {
                    match &problem {
                        Some(problem) => {
                            tracing::warn!(node = base, problem, "an ingest node is partly used");
                        }
                        None => tracing::info!(node = base, device, "an ingest node is usable"),
                    }
                } else if state.usable.is_none() && problem.is_none() {
                    tracing::info!(node = base, device, "an ingest node is usable");
                }
                state.problem = problem;
                state.usable = Some(node);
            }
            Err(problem) => {
                state.failures += 1;
                if state.failures >= FAILURES {
                    drop(state);
                    self.note("an ingest node is not used", problem);
                    self.abort();
                }
            }
        }
    }
}

impl TaskPermit<'_> {
    pub(super) fn run(
        &self,
        target: &str,
        media: &'static str,
        body: Vec<u8>,
        bytes_max: u64,
    ) -> Result<Vec<u8>, Failure> {
        let mut headers = self.node.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        let length = Some(body.len() as u64);
        let body = Some(ForwardBody { reader: Box::new(io::Cursor::new(body)), length });
        let (method, target, within) = (Method::POST, target.to_owned(), None);
        let request = ForwardRequest { method, target, headers, body, within };
        let answer = self.exchange.send(request);
        let answer = answer.map_err(|error| Failure::Lost(error.problem().to_owned()))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::SERVICE_UNAVAILABLE => {
                self.exchange.abort();
                return Err(Failure::Busy);
            }
            status => {
                self.exchange.abort();
                return Err(Failure::Useless(format!("status {}", status.as_u16())));
            }
        }
        let mut bytes = Vec::new();
        // Reads one byte more than allowed, so that the caller can tell an answer that is too long.
        let read = answer.body.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| Failure::Lost(error.to_string()))?;
        Ok(bytes)
    }
}
