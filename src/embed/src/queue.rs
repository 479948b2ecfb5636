//! The worker threads that serve the lanes.
//!
//! An idle worker takes a batch of queries, otherwise of answers, otherwise of documents. Batches
//! of queries and answers are as small as is efficient. Between the layers of a batch of documents
//! a worker serves waiting queries and answers, and between those of a batch of answers waiting
//! queries, so a query waits for at most one layer rather than a whole batch. No worker is reserved
//! for queries: on two cores that would halve ingestion, and serving queries between layers already
//! gains as much.
//!
//! If too few documents are waiting to fill the budget of every idle worker, they are split evenly
//! between the idle workers.
//!
//! A call whose request is over leaves its lane at once: a cancellation hook removes it when the
//! client disconnects, and its caller removes it when the deadline passes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::forward::{BatchPolicy, DeviceCounts, Forward};
use crate::lanes::{Lanes, QueuedText};
use crate::reply::Reply;
use crate::{EmbedError, EmbedMeters, EmbedStats, Engine, Lane};
use lodestone_types::{RequestContext, Stopped};

/// Bounds of a queue, in tokens. A token takes four bytes and a passage has at least one token, so
/// these bound memory and the number of passages as well.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueBounds {
    /// Maximum size of a batch.
    pub batch: usize,
    /// Maximum waiting tokens of one call for documents or answers; the call blocks beyond that, so
    /// that a large document cannot fill the lane.
    pub call: usize,
    /// Maximum waiting tokens of all such calls of a lane; calls block beyond that.
    pub lane: usize,
    /// Maximum waiting tokens of one tenant's queries; queries are refused beyond that. The number
    /// of tenants is bounded by the number of requests that run concurrently.
    pub query: usize,
}

/// The smallest batch worth computing on its own on a CPU when waiting work is split: below it, a
/// matrix product is bound by reading the weights.
pub(super) const SHARE_TOKENS_MIN: usize = 128;

/// The lanes and the threads that serve them. Dropping it closes the queue and joins the threads.
#[derive(Debug)]
pub(super) struct Queue {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    forward: Arc<dyn Forward>,
    bounds: QueueBounds,
    worker_count: usize,
    state: Mutex<State>,
    has_work: Condvar,
    has_capacity: Condvar,
    model_nanos: AtomicU64,
    tokens: AtomicU64,
    passages: AtomicU64,
    meters: EmbedMeters,
}

#[derive(Debug, Default)]
struct State {
    lanes: Lanes,
    is_closed: bool,
}

impl Queue {
    /// Starts `workers` threads (at least one) that run `forward`.
    pub fn start(forward: Arc<dyn Forward>, workers: usize, bounds: QueueBounds) -> Self {
        let worker_count = workers.max(1);
        let shared = Arc::new(Shared {
            forward,
            bounds,
            worker_count,
            state: Mutex::default(),
            has_work: Condvar::new(),
            has_capacity: Condvar::new(),
            model_nanos: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            passages: AtomicU64::new(0),
            meters: EmbedMeters::default(),
        });
        let spawn = |number| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("embed-{number}"))
                .spawn(move || shared.work())
                .expect("the system starts a thread at start-up")
        };
        let workers = (0..worker_count).map(spawn).collect();
        Self { shared, workers }
    }

    /// Registers a call of `count` texts for a request. Cancelling the request fails the call and
    /// removes its waiting texts.
    pub fn call(&self, context: &RequestContext, count: usize) -> Arc<Reply> {
        let reply = Reply::new(context, count);
        let (shared, ended) = (Arc::clone(&self.shared), Arc::downgrade(&reply));
        context.cancel().on_cancel(move || {
            if let Some(reply) = ended.upgrade() {
                reply.fail(&Stopped::ClientGone.into());
                shared.forget(&reply);
            }
        });
        reply
    }

    /// Pushes texts of a call to a lane. Queries are refused if their tenant has too many waiting;
    /// in the other lanes the caller blocks until there is space.
    pub fn push(
        &self,
        lane: Lane,
        reply: &Arc<Reply>,
        passages: Vec<QueuedText>,
    ) -> Result<(), EmbedError> {
        let tokens: usize = passages.iter().map(|passage| passage.ids.len()).sum();
        let bounds = self.shared.bounds;
        let mut state = self.shared.state.lock();
        loop {
            if state.is_closed {
                return Err(EmbedError::Closed);
            }
            reply.check()?;
            let queue = state.lanes.of(lane);
            let fits = match lane {
                Lane::Query => {
                    let own = queue.tokens_of_owner(reply.owner());
                    if own > 0 && own + tokens > bounds.query {
                        let (waiting, max) = (own + tokens, bounds.query);
                        return Err(EmbedError::Overloaded { waiting, max });
                    }
                    true
                }
                Lane::Answer | Lane::Bulk => {
                    let (own, all) = (queue.tokens_of(reply), queue.tokens());
                    let fits_call = own == 0 || own + tokens <= bounds.call;
                    fits_call && (all == 0 || all + tokens <= bounds.lane)
                }
            };
            if fits {
                queue.push(reply, passages);
                break;
            }
            match reply.context().deadline() {
                Some(until) => {
                    self.shared.has_capacity.wait_until(&mut state, until);
                }
                None => self.shared.has_capacity.wait(&mut state),
            }
        }
        drop(state);
        self.shared.has_work.notify_all();
        Ok(())
    }

    /// Drops the waiting texts of a call that its caller gave up.
    pub fn abandon(&self, reply: &Arc<Reply>) {
        self.shared.forget(reply);
    }

    /// Refuses new work and fails waiting texts; batches in progress are completed.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let waiting = state.lanes.drain();
        drop(state);
        for reply in waiting {
            reply.fail(&EmbedError::Closed);
        }
        self.shared.has_work.notify_all();
        self.shared.has_capacity.notify_all();
    }

    /// Returns the counters of the work done so far.
    pub fn stats(&self) -> EmbedStats {
        let nanos = self.shared.model_nanos.load(Ordering::Relaxed);
        let DeviceCounts { batches, fallbacks } = self.shared.forward.device_counts();
        EmbedStats {
            model_seconds: Duration::from_nanos(nanos).as_secs_f64(),
            tokens: self.shared.tokens.load(Ordering::Relaxed),
            passages: self.shared.passages.load(Ordering::Relaxed),
            device_batches: batches,
            device_fallbacks: fallbacks,
        }
    }

    /// Returns the metrics of waiting texts and batches.
    pub fn meters(&self) -> &EmbedMeters {
        &self.shared.meters
    }

    /// Returns the engine that currently computes.
    pub fn engine(&self) -> Engine {
        self.shared.forward.engine()
    }

    /// Returns the number of tokens waiting in a lane.
    #[cfg(test)]
    pub fn waiting(&self, lane: Lane) -> usize {
        self.shared.state.lock().lanes.of(lane).tokens()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
        for worker in self.workers.drain(..) {
            // Workers catch the panics of their batches; nothing else in them can panic.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut state = self.state.lock();
            let (lane, batch) = loop {
                if let Some(found) = state.lanes.next(self.policy(), self.worker_count) {
                    break found;
                }
                if state.is_closed {
                    return;
                }
                self.has_work.wait(&mut state);
            };
            drop(state);
            self.run(lane, batch);
            if self.state.lock().lanes.ended(lane) {
                // The policy may have changed since the others went to sleep.
                self.has_work.notify_all();
            }
        }
    }

    fn policy(&self) -> BatchPolicy {
        let (batch, workers) = (self.bounds.batch, self.worker_count);
        self.forward.policy(BatchPolicy { batch, share: SHARE_TOKENS_MIN, workers })
    }

    /// Runs one batch and settles every call that has a text in it, even on an error or a panic.
    fn run(&self, lane: Lane, batch: Vec<QueuedText>) {
        if lane != Lane::Query {
            self.has_capacity.notify_all();
        }
        let ids: Vec<&[u32]> = batch.iter().map(|passage| passage.ids.as_slice()).collect();
        let began = Instant::now();
        let waited =
            batch.iter().map(|text| began.saturating_duration_since(text.since).as_secs_f64());
        self.meters.begin_batch(lane, ids.iter().map(|ids| ids.len()).sum(), waited);
        let mut elsewhere = Duration::ZERO;
        let mut pause = || {
            let left = Instant::now();
            self.serve_between(lane);
            elsewhere += left.elapsed();
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.forward.forward(&ids, &mut pause)));
        self.count(&ids, began.elapsed().saturating_sub(elsewhere));
        match outcome {
            Ok(Ok(vectors)) if vectors.len() == batch.len() => {
                for (passage, vector) in batch.into_iter().zip(vectors) {
                    passage.reply.fulfil(passage.index, vector);
                }
            }
            Ok(Ok(vectors)) => {
                let problem = format!("{} vectors for {} texts", vectors.len(), batch.len());
                self.fail(&batch, &EmbedError::Compute { problem });
            }
            Ok(Err(error)) => self.fail(&batch, &error),
            Err(panic) => {
                let message = panic_message(panic.as_ref());
                tracing::error!(%message, passages = batch.len(), "the model panicked");
                self.fail(&batch, &EmbedError::Panicked { message });
            }
        }
    }

    /// Runs one waiting batch of higher priority than `lane`, if there is one. Only one, so that a
    /// stream of queries cannot stall the paused batch.
    fn serve_between(&self, lane: Lane) {
        let policy = self.policy();
        let found = self.state.lock().lanes.between(lane, policy);
        if let Some((lane, batch)) = found {
            self.run(lane, batch);
        }
    }

    fn forget(&self, reply: &Arc<Reply>) {
        self.state.lock().lanes.forget(reply);
        self.has_capacity.notify_all();
    }

    fn fail(&self, batch: &[QueuedText], error: &EmbedError) {
        for passage in batch {
            passage.reply.fail(error);
            self.forget(&passage.reply);
        }
    }

    fn count(&self, ids: &[&[u32]], spent: Duration) {
        let tokens: usize = ids.iter().map(|ids| ids.len()).sum();
        self.model_nanos.fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
        self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        self.passages.fetch_add(ids.len() as u64, Ordering::Relaxed);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
