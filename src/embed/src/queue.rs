//! Worker threads over the two lanes.
//!
//! A worker takes a batch from the query lane, else from the bulk lane. During a bulk batch it
//! serves waiting queries after every layer, so a query waits for one layer of a batch at most,
//! not for the batch. No worker is kept free for queries: on two cores that would halve ingestion
//! for no more than the queries between layers gain already.
//!
//! Less waiting work than fills every idle worker's budget is shared out evenly between the idle
//! workers.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::lanes::{LaneQueue, QueuedText, Reply};
use crate::{EmbedError, EmbedStats, Engine, Lane};

/// A forward pass that runs on the workers: token ids to vectors.
pub(super) trait Forward: Send + Sync + fmt::Debug {
    /// One vector of length 1 for each passage, in order. Single-threaded. Calls `pause` now and
    /// then; other batches may run inside that call.
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Its batch policy at the moment, where the queue's `usual` one does not suit it.
    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        usual
    }

    /// The engine that computes at the moment.
    fn engine(&self) -> Engine {
        Engine::Cpu
    }

    /// Counters of a device, where there is one.
    fn device_counts(&self) -> DeviceCounts {
        DeviceCounts::default()
    }
}

/// Sizes of batches, and the number of workers in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchPolicy {
    /// Tokens of a batch at most.
    pub batch: usize,
    /// Tokens of a batch at least, before waiting work is shared out between idle workers.
    pub share: usize,
    /// Workers in bulk batches at the same time; queries find any that is idle.
    pub workers: usize,
}

/// Batches that a device computed, and that it failed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceCounts {
    pub batches: u64,
    pub fallbacks: u64,
}

/// The bounds of a queue, in tokens. A token takes four bytes, and a passage has at least one,
/// so these bound items and bytes as well.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueBounds {
    /// A batch through the model.
    pub batch: usize,
    /// Tokens of one bulk call that may wait; the call blocks at more. So a large document cannot
    /// fill the lane.
    pub bulk_call: usize,
    /// Tokens of all bulk calls that may wait; calls block at more.
    pub bulk: usize,
    /// Tokens of all queries that may wait; queries are refused at more.
    pub query: usize,
}

/// The smallest share of waiting work worth a batch of its own on a CPU: below it a product with
/// the weights is bound by reading them.
pub(super) const SHARE_TOKENS_MIN: usize = 128;

/// Two lanes and the threads that serve them. Dropping it closes it and waits for the threads.
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
    lanes: Mutex<Lanes>,
    has_work: Condvar,
    has_capacity: Condvar,
    model_nanos: AtomicU64,
    tokens: AtomicU64,
    passages: AtomicU64,
}

#[derive(Debug, Default)]
struct Lanes {
    query: LaneQueue,
    bulk: LaneQueue,
    /// Workers inside a batch.
    busy: usize,
    /// Those of them whose batch is of the bulk lane.
    busy_with_bulk: usize,
    is_closed: bool,
}

impl Queue {
    /// Starts `workers` threads (at least one) over `forward`.
    pub fn start(forward: Arc<dyn Forward>, workers: usize, bounds: QueueBounds) -> Self {
        let worker_count = workers.max(1);
        let shared = Arc::new(Shared {
            forward,
            bounds,
            worker_count,
            lanes: Mutex::new(Lanes::default()),
            has_work: Condvar::new(),
            has_capacity: Condvar::new(),
            model_nanos: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            passages: AtomicU64::new(0),
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

    /// Hands texts of one call to the workers. A full bulk lane blocks; a full query lane refuses.
    pub fn push(
        &self,
        lane: Lane,
        reply: &Arc<Reply>,
        passages: Vec<QueuedText>,
    ) -> Result<(), EmbedError> {
        let tokens: usize = passages.iter().map(|passage| passage.ids.len()).sum();
        let bounds = self.shared.bounds;
        let mut lanes = self.shared.lanes.lock();
        loop {
            if lanes.is_closed {
                return Err(EmbedError::Closed);
            }
            if let Some(error) = reply.error() {
                return Err(error);
            }
            match lane {
                Lane::Query => {
                    let waiting = lanes.query.tokens() + tokens;
                    if lanes.query.tokens() > 0 && waiting > bounds.query {
                        return Err(EmbedError::Overloaded { waiting, max: bounds.query });
                    }
                    lanes.query.push(reply, passages);
                    break;
                }
                Lane::Bulk => {
                    let (own, all) = (lanes.bulk.tokens_of(reply), lanes.bulk.tokens());
                    let fits_call = own == 0 || own + tokens <= bounds.bulk_call;
                    let fits_lane = all == 0 || all + tokens <= bounds.bulk;
                    if fits_call && fits_lane {
                        lanes.bulk.push(reply, passages);
                        break;
                    }
                    self.shared.has_capacity.wait(&mut lanes);
                }
            }
        }
        drop(lanes);
        self.shared.has_work.notify_all();
        Ok(())
    }

    /// Drops the waiting texts of a call that its caller gave up.
    pub fn abandon(&self, reply: &Arc<Reply>) {
        let mut lanes = self.shared.lanes.lock();
        lanes.query.forget(reply);
        lanes.bulk.forget(reply);
        drop(lanes);
        self.shared.has_capacity.notify_all();
    }

    /// Refuses new work and fails waiting texts; batches in progress are finished.
    pub fn close(&self) {
        let mut lanes = self.shared.lanes.lock();
        lanes.is_closed = true;
        let mut waiting = lanes.query.drain();
        waiting.extend(lanes.bulk.drain());
        drop(lanes);
        for reply in waiting {
            reply.fail(&EmbedError::Closed);
        }
        self.shared.has_work.notify_all();
        self.shared.has_capacity.notify_all();
    }

    /// Counters of the workers' work so far.
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

    /// The engine that computes at the moment.
    pub fn engine(&self) -> Engine {
        self.shared.forward.engine()
    }

    /// Tokens that wait: queries, bulk.
    #[cfg(test)]
    pub fn waiting(&self) -> (usize, usize) {
        let lanes = self.shared.lanes.lock();
        (lanes.query.tokens(), lanes.bulk.tokens())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its batches; nothing else in it can panic.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut lanes = self.lanes.lock();
            let (lane, batch) = loop {
                if let Some(found) = self.next(&mut lanes) {
                    break found;
                }
                if lanes.is_closed {
                    return;
                }
                self.has_work.wait(&mut lanes);
            };
            let bulk = usize::from(lane == Lane::Bulk);
            lanes.busy += 1;
            lanes.busy_with_bulk += bulk;
            drop(lanes);
            if lane == Lane::Bulk {
                self.has_capacity.notify_all();
            }
            self.run(lane, batch);
            let mut lanes = self.lanes.lock();
            lanes.busy -= 1;
            lanes.busy_with_bulk -= bulk;
            let may_be_for_others = bulk > 0 && lanes.bulk.tokens() > 0;
            drop(lanes);
            if may_be_for_others {
                // The policy may have changed since they went to sleep.
                self.has_work.notify_all();
            }
        }
    }

    fn next(&self, lanes: &mut Lanes) -> Option<(Lane, Vec<QueuedText>)> {
        let policy = self.policy();
        let query = lanes.query.take(self.share(policy, lanes.query.tokens(), lanes.busy));
        if !query.is_empty() {
            return Some((Lane::Query, query));
        }
        if lanes.busy_with_bulk >= policy.workers.max(1) {
            return None;
        }
        // At most as many as the policy lets into bulk batches count as idle.
        let barred = self.worker_count.saturating_sub(policy.workers);
        let busy = lanes.busy.max(lanes.busy_with_bulk + barred);
        let bulk = lanes.bulk.take(self.share(policy, lanes.bulk.tokens(), busy));
        (!bulk.is_empty()).then_some((Lane::Bulk, bulk))
    }

    fn policy(&self) -> BatchPolicy {
        let (batch, workers) = (self.bounds.batch, self.worker_count);
        self.forward.policy(BatchPolicy { batch, share: SHARE_TOKENS_MIN, workers })
    }

    /// Tokens of the next batch, where `waiting` tokens wait and `busy` workers are occupied.
    fn share(&self, policy: BatchPolicy, waiting: usize, busy: usize) -> usize {
        let idle = self.worker_count.saturating_sub(busy).max(1);
        waiting.div_ceil(idle).max(policy.share).min(policy.batch)
    }

    /// Runs one batch and answers all calls that have a text in it, whatever happens.
    fn run(&self, lane: Lane, batch: Vec<QueuedText>) {
        let ids: Vec<&[u32]> = batch.iter().map(|passage| passage.ids.as_slice()).collect();
        let began = Instant::now();
        let mut elsewhere = Duration::ZERO;
        let mut pause = || {
            if lane == Lane::Bulk {
                let left = Instant::now();
                self.serve_queries();
                elsewhere += left.elapsed();
            }
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

    /// One batch of queries, where any wait. Only one, so that a stream of queries cannot hold
    /// up the bulk batch that paused for it.
    fn serve_queries(&self) {
        let mut lanes = self.lanes.lock();
        let budget = self.share(self.policy(), lanes.query.tokens(), lanes.busy);
        let batch = lanes.query.take(budget);
        drop(lanes);
        if !batch.is_empty() {
            self.run(Lane::Query, batch);
        }
    }

    fn fail(&self, batch: &[QueuedText], error: &EmbedError) {
        let mut lanes = self.lanes.lock();
        for passage in batch {
            lanes.query.forget(&passage.reply);
            lanes.bulk.forget(&passage.reply);
        }
        drop(lanes);
        for passage in batch {
            passage.reply.fail(error);
        }
        self.has_capacity.notify_all();
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
