//! Webhooks: delivers the events that the catalog records to their receivers.
//!
//! ```text
//! catalog: state change + event in one transaction
//!    | wakes
//! dispatcher: next due event, webhooks in turn -> one thread per attempt, up to 32 at once
//!                                                   | sign, post, record the outcome
//! ```
//! Delivery is at least once: an attempt whose outcome was not recorded, for example because of a
//! crash, is repeated. While the catalog cannot record outcomes, they are kept in memory and
//! nothing else is sent. The catalog (`lodestone_catalog`, `deliveries`) decides on order, pauses
//! and giving up.
//!
//! No receiver delays another. An attempt takes at most ten seconds. A webhook uses at most two of
//! the threads, and only one while it fails. The number of webhooks that may reach one tenant is
//! limited so that half of the threads remain for others. Host names are resolved separately from
//! those of page fetches.
//!
//! - `signature`: signs messages; `operations`: the administration of webhooks

mod operations;
mod signature;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use operations::TestedWebhook;

use lodestone_catalog::{Attempt, Catalog, CatalogError, DueDelivery, NextDelivery, WebhookSecret};
use lodestone_metrics::{Counter, Gauge, Labelled, Registry};
use lodestone_types::limits::WEBHOOK_SENDERS_MAX;
use lodestone_types::{Clock, DeliveryState, IdSource, WebPost, WebUrl, WebhookClient};

/// Time that an idle dispatcher sleeps unless an event wakes it.
const IDLE: Duration = Duration::from_secs(30);
/// Pause after an error of the catalog or the system.
const PAUSE: Duration = Duration::from_secs(5);
/// Time for which `stop` waits for attempts in flight.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// Stack size of an attempt: enough for TLS and a request of a few kilobytes.
const STACK_BYTES: usize = 512 << 10;

/// Delivers events to their receivers.
#[derive(Debug)]
pub(crate) struct Webhooks {
    catalog: Catalog,
    client: Arc<dyn WebhookClient>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    senders: Mutex<Senders>,
    /// Outcomes that the catalog could not record yet.
    unrecorded: Mutex<Vec<Ended>>,
    /// Signalled when a sender ends and when stopping.
    changed: Condvar,
    /// Ids of the webhooks under test.
    testing: Mutex<HashSet<String>>,
    pub(crate) meters: WebhookMeters,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

/// Attempts in flight, by webhook.
#[derive(Debug, Default)]
struct Senders {
    sending: HashMap<String, Vec<u64>>,
    count: usize,
    is_stopping: bool,
}

/// The outcome of an attempt.
#[derive(Debug)]
struct Ended {
    id: u64,
    webhook: String,
    event: String,
    attempt: Attempt,
}

/// Metrics of webhooks.
#[derive(Debug)]
pub(crate) struct WebhookMeters {
    /// By outcome: delivered, failed, given up.
    attempts: Labelled<Counter, 3>,
    pub(crate) backlog: Gauge,
    pub(crate) disabled: Gauge,
}

impl Default for WebhookMeters {
    fn default() -> Self {
        let outcomes = ["delivered", "failed", "given_up"];
        Self {
            attempts: Labelled::new("outcome", outcomes, Counter::default),
            backlog: Gauge::default(),
            disabled: Gauge::default(),
        }
    }
}

impl WebhookMeters {
    /// Registers the metrics.
    pub(crate) fn enter(&self, registry: &mut Registry) {
        let help = "Attempts to deliver an event to a webhook; failed ones are retried";
        registry.enter("webhook_attempts_total", help, &self.attempts);
        registry.enter("webhook_backlog", "Events waiting for their webhooks", &self.backlog);
        let help = "Webhooks disabled because they failed for days";
        registry.enter("webhooks_disabled", help, &self.disabled);
    }

    fn attempted(&self, state: DeliveryState) {
        let outcome = match state {
            DeliveryState::Delivered => 0,
            DeliveryState::Pending => 1,
            DeliveryState::GivenUp => 2,
        };
        self.attempts.at(outcome).inc();
    }
}

/// The result of sending one message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    status: Option<u16>,
    /// The reason of a failure; empty if the receiver accepted the message.
    problem: String,
}

impl Webhooks {
    /// Creates the dispatcher; it sends nothing until [`Self::start`].
    pub(crate) fn new(
        catalog: &Catalog,
        client: Arc<dyn WebhookClient>,
        clock: &Arc<dyn Clock>,
        ids: &Arc<dyn IdSource>,
    ) -> Arc<Self> {
        Arc::new(Self {
            catalog: catalog.clone(),
            client,
            clock: Arc::clone(clock),
            ids: Arc::clone(ids),
            senders: Mutex::default(),
            unrecorded: Mutex::default(),
            changed: Condvar::new(),
            testing: Mutex::default(),
            meters: WebhookMeters::default(),
            dispatcher: Mutex::default(),
        })
    }

    /// Starts the dispatcher thread.
    pub(crate) fn start(self: &Arc<Self>) {
        let dispatching = Arc::clone(self);
        let thread = std::thread::Builder::new().name("webhooks".to_owned());
        let thread = thread.spawn(move || dispatching.dispatch());
        let thread = thread.expect("the system provides threads at start");
        *self.dispatcher.lock() = Some(thread);
    }

    /// Stops the dispatcher. Attempts in flight get a moment to be recorded; those that take longer
    /// are repeated after the next start.
    pub(crate) fn stop(&self) {
        let mut senders = self.senders.lock();
        senders.is_stopping = true;
        self.changed.notify_all();
        self.catalog.wake_senders();
        let until = Instant::now() + STOP_WAIT;
        while senders.count > 0 && !self.changed.wait_until(&mut senders, until).timed_out() {}
        drop(senders);
        let dispatcher = self.dispatcher.lock().take();
        if dispatcher.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of webhooks panicked");
        }
    }

    fn dispatch(self: &Arc<Self>) {
        let mut last = String::new();
        while let Some(sending) = self.wait_for_slot() {
            match self.next(&last, &sending) {
                Ok(NextDelivery::Due(due)) => {
                    last.clone_from(&due.webhook);
                    self.begin(*due);
                }
                // An attempt ended before the catalog was asked, so its wake-up has been used up;
                // look again.
                Ok(NextDelivery::Wait(_)) if self.has_changed_since(&sending) => {}
                Ok(NextDelivery::Wait(_)) => self.catalog.wait_for_deliveries(IDLE),
                Err(error) => {
                    tracing::warn!(%error, "webhook events wait: the catalog is unavailable");
                    self.pause();
                }
            }
        }
    }

    /// Returns the next delivery, after recording all pending outcomes: otherwise messages already
    /// sent would be due again.
    fn next(
        &self,
        last: &str,
        sending: &HashMap<String, Vec<u64>>,
    ) -> Result<NextDelivery, CatalogError> {
        let mut unrecorded = self.unrecorded.lock();
        while let Some(ended) = unrecorded.last() {
            self.record(ended)?;
            unrecorded.pop();
        }
        drop(unrecorded);
        self.catalog.next_delivery(last, sending)
    }

    /// Waits until another attempt may start; returns the attempts in flight, or `None` when
    /// stopping.
    fn wait_for_slot(&self) -> Option<HashMap<String, Vec<u64>>> {
        let mut senders = self.senders.lock();
        while senders.count >= WEBHOOK_SENDERS_MAX && !senders.is_stopping {
            self.changed.wait(&mut senders);
        }
        (!senders.is_stopping).then(|| senders.sending.clone())
    }

    /// Whether an attempt has ended or a stop was requested since `sending` was read.
    fn has_changed_since(&self, sending: &HashMap<String, Vec<u64>>) -> bool {
        let senders = self.senders.lock();
        senders.is_stopping || senders.sending != *sending
    }

    fn pause(&self) {
        let mut senders = self.senders.lock();
        let until = Instant::now() + PAUSE;
        while !senders.is_stopping && !self.changed.wait_until(&mut senders, until).timed_out() {}
    }

    /// Makes one attempt on a thread of its own.
    fn begin(self: &Arc<Self>, due: DueDelivery) {
        let slot = Slot::take(self, &due);
        let thread = std::thread::Builder::new().name("webhook".to_owned()).stack_size(STACK_BYTES);
        let attempt = move || slot.webhooks.attempt(&due);
        if let Err(error) = thread.spawn(attempt) {
            tracing::warn!(%error, "starting a webhook thread failed");
            self.pause();
        }
    }

    fn attempt(&self, due: &DueDelivery) {
        let DueDelivery { id, webhook, url, secret, event, body } = due;
        // A panic counts as a failed attempt, so that it is not repeated at once.
        let sent = catch_unwind(AssertUnwindSafe(|| self.post(url, secret, event, body)));
        let Sent { status, problem } = sent.unwrap_or_else(|_| Sent {
            status: None,
            problem: "not delivered: internal error".to_owned(),
        });
        let mut jitter = [0; 8];
        self.ids.fill(&mut jitter);
        let attempt = Attempt { status, problem, jitter: u64::from_le_bytes(jitter) };
        let (webhook, event) = (webhook.clone(), event.clone());
        let ended = Ended { id: *id, webhook, event, attempt };
        if let Err(error) = self.record(&ended) {
            let webhook = &ended.webhook;
            tracing::warn!(%error, webhook, "recording a webhook delivery failed, and is tried \
                again");
            self.unrecorded.lock().push(ended);
        }
    }

    fn record(&self, ended: &Ended) -> Result<(), CatalogError> {
        let Ended { id, webhook, event, attempt } = ended;
        if let Some(state) = self.catalog.record_attempt(*id, attempt.clone())? {
            self.meters.attempted(state);
            if state == DeliveryState::GivenUp {
                // The URL is not logged, since it may contain a secret.
                tracing::warn!(
                    webhook,
                    event,
                    "a webhook event was not delivered, and is not retried"
                );
            }
        }
        Ok(())
    }

    /// Signs and sends one message.
    fn post(&self, url: &WebUrl, secret: &WebhookSecret, event: &str, body: &str) -> Sent {
        let headers = signature::headers(secret.expose(), event, body, self.clock.now());
        match self.client.post(&WebPost { url, headers: &headers, body }) {
            Ok(status) => {
                let problem = match status {
                    200..=299 => String::new(),
                    300..=399 => {
                        format!("the server answered {status}; redirects are not followed")
                    }
                    _ => format!("the server answered {status}"),
                };
                Sent { status: Some(status), problem }
            }
            Err(failure) => Sent { status: None, problem: failure.to_string() },
        }
    }
}

/// An attempt in flight; its slot is freed on drop.
struct Slot {
    webhooks: Arc<Webhooks>,
    webhook: String,
    id: u64,
}

impl Slot {
    fn take(webhooks: &Arc<Webhooks>, due: &DueDelivery) -> Self {
        let mut senders = webhooks.senders.lock();
        senders.count += 1;
        senders.sending.entry(due.webhook.clone()).or_default().push(due.id);
        Self { webhooks: Arc::clone(webhooks), webhook: due.webhook.clone(), id: due.id }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut senders = self.webhooks.senders.lock();
        senders.count -= 1;
        if let Some(ids) = senders.sending.get_mut(&self.webhook) {
            ids.retain(|id| *id != self.id);
            if ids.is_empty() {
                senders.sending.remove(&self.webhook);
            }
        }
        drop(senders);
        self.webhooks.changed.notify_all();
        // The dispatcher may have asked the catalog while this event still counted as in flight.
        self.webhooks.catalog.wake_senders();
    }
}
