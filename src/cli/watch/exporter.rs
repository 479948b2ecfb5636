//! The thread that sends finished spans to a collector.
//!
//! Spans wait in a bounded queue; when it is full, further spans are dropped and counted. A batch
//! that the collector rejects temporarily is sent twice more and then dropped. Traced code never
//! blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use lodestone_engine::settings::WatchSettings;
use lodestone_fetch::Authorities;
use lodestone_types::{Clock, SystemClock};
use ureq::{Agent, Proxy};

use crate::cli::watch::otlp::{FinishedSpan, body};

/// Capacity of the queue in spans.
const WAITING_MAX: usize = 8192;
/// Maximum number of spans per request to the collector.
const BATCH_MAX: usize = 512;
/// Time that the first span of a batch waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// Timeout of a request to the collector.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// Pauses before a batch is sent again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// Time allowed for sending queued spans when the server stops.
const FLUSH: Duration = Duration::from_secs(3);

enum Message {
    Span(Box<FinishedSpan>),
    /// The server is stopping: send the queued spans, then signal completion.
    End,
}

/// The queue in front of the exporter. Clones share it.
#[derive(Debug, Clone)]
pub struct SpanQueue {
    messages: SyncSender<Message>,
    left_out: Arc<AtomicU64>,
    /// One moment on both clocks: timestamps are the wall-clock time of that moment plus monotonic
    /// time.
    epoch: (Instant, u64),
}

impl SpanQueue {
    /// Returns the current time in nanoseconds since 1970.
    pub fn now(&self) -> u64 {
        self.epoch.1 + self.epoch.0.elapsed().as_nanos() as u64
    }

    /// Queues a span, or drops it if the queue is full.
    pub fn push(&self, span: FinishedSpan) {
        if self.messages.try_send(Message::Span(Box::new(span))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Handle of the exporter. Dropping it sends the queued spans, within a time limit.
#[derive(Debug)]
pub struct Exporter {
    queue: SpanQueue,
    ended: Receiver<()>,
}

impl Exporter {
    /// Starts the exporter thread for a collector at `url`.
    pub fn start(url: &str, settings: &WatchSettings, authorities: &Authorities) -> Self {
        let (messages, waiting) = sync_channel(WAITING_MAX);
        let (ending, ended) = channel();
        let left_out = Arc::new(AtomicU64::new(0));
        let epoch = (Instant::now(), SystemClock.now().0 * 1_000_000);
        let sender = Sender {
            url: format!("{}/v1/traces", url.trim_end_matches('/')),
            service: settings.otlp_service_name.clone(),
            agent: agent(authorities),
            left_out: Arc::clone(&left_out),
            told: 0,
            is_failing: false,
        };
        let run = move || {
            sender.run(&waiting);
            // The receiver is gone if the flush took too long.
            let _ = ending.send(());
        };
        let builder = std::thread::Builder::new().name("traces".to_owned());
        builder.spawn(run).expect("the system starts a thread at start-up");
        Self { queue: SpanQueue { messages, left_out, epoch }, ended }
    }

    /// Returns the queue in front of the exporter.
    pub fn queue(&self) -> SpanQueue {
        self.queue.clone()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let until = Instant::now() + FLUSH;
        while self.queue.messages.try_send(Message::End).is_err() && Instant::now() < until {
            std::thread::yield_now();
        }
        if self.ended.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
            tracing::warn!("traces waiting for the collector are lost");
        }
    }
}

/// Creates the HTTP client for the collector, which treats error statuses as errors.
fn agent(authorities: &Authorities) -> Agent {
    let config = authorities.client(Proxy::try_from_env()).http_status_as_error(true);
    config.timeout_global(Some(POST_TIMEOUT)).build().new_agent()
}

struct Sender {
    url: String,
    service: String,
    agent: Agent,
    left_out: Arc<AtomicU64>,
    /// Number of dropped spans already reported in the log.
    told: u64,
    is_failing: bool,
}

impl Sender {
    fn run(mut self, waiting: &Receiver<Message>) {
        let (mut batch, mut is_ending) = (Vec::new(), false);
        while !is_ending {
            let Ok(first) = waiting.recv() else { return };
            let until = Instant::now() + GATHER;
            let mut next = Some(first);
            while let Some(Message::Span(span)) = next {
                batch.push(*span);
                if batch.len() >= BATCH_MAX {
                    self.send(&mut batch, is_ending);
                }
                let left = until.saturating_duration_since(Instant::now());
                next = waiting.recv_timeout(left).ok();
            }
            is_ending = next.is_some();
            self.send(&mut batch, is_ending);
        }
    }

    /// Sends a batch and clears it. While the server is stopping, it is not sent again after a
    /// failure.
    fn send(&mut self, batch: &mut Vec<FinishedSpan>, is_ending: bool) {
        if batch.is_empty() {
            return;
        }
        let text = body(&self.service, batch).to_string();
        let mut sent = self.post(&text);
        for pause in PAUSES.into_iter().take_while(|_| !is_ending) {
            if !sent.as_ref().is_err_and(may_pass) {
                break;
            }
            std::thread::sleep(pause);
            sent = self.post(&text);
        }
        match sent {
            Ok(()) if self.is_failing => tracing::info!("the collector accepts traces again"),
            Ok(()) => {}
            Err(error) => {
                self.left_out.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !self.is_failing {
                    tracing::warn!(%error, "the collector of traces does not accept them");
                }
                self.is_failing = true;
                batch.clear();
                return;
            }
        }
        self.is_failing = false;
        batch.clear();
        let left_out = self.left_out.load(Ordering::Relaxed);
        if left_out > self.told {
            tracing::warn!(spans = left_out - self.told, "spans were dropped from traces");
            self.told = left_out;
        }
    }

    fn post(&self, text: &str) -> Result<(), ureq::Error> {
        let request = self.agent.post(&self.url).content_type("application/json");
        request.send(text).map(drop)
    }
}

/// Whether a failure may be temporary: no response, or a status that asks to retry.
fn may_pass(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::StatusCode(status) => [429, 502, 503, 504].contains(status),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(bound: usize) -> (SpanQueue, Receiver<Message>) {
        let (messages, waiting) = sync_channel(bound);
        let epoch = (Instant::now(), 1_700_000_000_000_000_000);
        (SpanQueue { messages, left_out: Arc::default(), epoch }, waiting)
    }

    fn span() -> FinishedSpan {
        FinishedSpan {
            trace: 1,
            id: 2,
            parent: 0,
            name: "request",
            is_request: true,
            start: 3,
            end: 4,
            attributes: Vec::new(),
            is_error: false,
        }
    }

    #[test]
    fn a_full_queue_leaves_spans_out_and_waits_for_nobody() {
        let (queue, waiting) = queue(2);
        (0..5).for_each(|_| queue.push(span()));
        assert_eq!(queue.left_out.load(Ordering::Relaxed), 3);
        assert!(waiting.try_iter().count() == 2 && queue.now() >= queue.epoch.1);
        queue.push(span());
        assert!(matches!(waiting.try_recv(), Ok(Message::Span(_))));
    }

    #[test]
    fn a_refusal_for_good_is_not_tried_again() {
        let status = ureq::Error::StatusCode;
        assert!([429, 503].into_iter().all(|code| may_pass(&status(code))));
        assert!(![400, 401, 404, 415].into_iter().any(|code| may_pass(&status(code))));
        assert!(may_pass(&ureq::Error::HostNotFound));
    }
}
