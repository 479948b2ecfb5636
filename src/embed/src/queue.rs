//! Worker threads over the two lanes.
//!
//! A worker takes a batch from the query lane, else from the bulk lane. During a bulk batch it
//! looks at the query lane after every layer and serves what it finds, so a query waits for one
//! layer of a batch at most, not for the batch. No worker is kept free for queries: on two
//! cores that would halve ingestion to gain what the look between layers gives already.
//!
//! With less waiting than fills every idle worker's budget, what waits is shared out evenly
//! between those that are idle.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::lanes::{LaneQueue, Passage, Reply};
use crate::{EmbedError, EmbedStats, Engine, Lane};

/// What runs on the workers: token ids to vectors.
pub(super) trait Forward: Send + Sync + fmt::Debug {
    /// One vector of length 1 for each passage, in order. Single-threaded. Calls `pause` now and
    /// then; other batches may run inside that call.
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// How it likes its batches now, where the queue's `usual` pace does not suit it.
    fn pace(&self, usual: Pace) -> Pace {
        usual
    }

    /// What computes at the moment.
    fn engine(&self) -> Engine {
        Engine::Cpu
    }

    /// What a device did, where there is one.
    fn device_counts(&self) -> DeviceCounts {
        DeviceCounts::default()
    }
}

/// How work is dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
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
    /// What one bulk call may have waiting; the call blocks at more. So a large document cannot
    /// fill the lane.
    pub bulk_call: usize,
    /// What all bulk calls may have waiting together; calls block at more.
    pub bulk: usize,
    /// What all queries may have waiting; queries are refused at more.
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
    has_room: Condvar,
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
            has_room: Condvar::new(),
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

    /// Hands passages of one call to the workers. In the bulk lane, waits for room; in the query
    /// lane, refuses where there is none.
    pub fn push(
        &self,
        lane: Lane,
        reply: &Arc<Reply>,
        passages: Vec<Passage>,
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
                    self.shared.has_room.wait(&mut lanes);
                }
            }
        }
        drop(lanes);
        self.shared.has_work.notify_all();
        Ok(())
    }

    /// Drops what waits of a call that its caller gave up.
    pub fn abandon(&self, reply: &Arc<Reply>) {
        let mut lanes = self.shared.lanes.lock();
        lanes.query.forget(reply);
        lanes.bulk.forget(reply);
        drop(lanes);
        self.shared.has_room.notify_all();
    }

    /// Refuses new work and fails what waits; batches in progress are finished.
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
        self.shared.has_room.notify_all();
    }

    /// What the workers have done so far.
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

    /// What computes at the moment.
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
                self.has_room.notify_all();
            }
            self.run(lane, batch);
            let mut lanes = self.lanes.lock();
            lanes.busy -= 1;
            lanes.busy_with_bulk -= bulk;
            let may_be_for_others = bulk > 0 && lanes.bulk.tokens() > 0;
            drop(lanes);
            if may_be_for_others {
                // The pace may be another than when they went to sleep.
                self.has_work.notify_all();
            }
        }
    }

    fn next(&self, lanes: &mut Lanes) -> Option<(Lane, Vec<Passage>)> {
        let pace = self.pace();
        let query = lanes.query.take(self.share(pace, lanes.query.tokens(), lanes.busy));
        if !query.is_empty() {
            return Some((Lane::Query, query));
        }
        if lanes.busy_with_bulk >= pace.workers.max(1) {
            return None;
        }
        // As many as the pace lets into bulk batches count as idle at most.
        let barred = self.worker_count.saturating_sub(pace.workers);
        let busy = lanes.busy.max(lanes.busy_with_bulk + barred);
        let bulk = lanes.bulk.take(self.share(pace, lanes.bulk.tokens(), busy));
        (!bulk.is_empty()).then_some((Lane::Bulk, bulk))
    }

    fn pace(&self) -> Pace {
        let (batch, workers) = (self.bounds.batch, self.worker_count);
        self.forward.pace(Pace { batch, share: SHARE_TOKENS_MIN, workers })
    }

    /// Tokens of the next batch, where `waiting` tokens wait and `busy` workers are occupied.
    fn share(&self, pace: Pace, waiting: usize, busy: usize) -> usize {
        let idle = self.worker_count.saturating_sub(busy).max(1);
        waiting.div_ceil(idle).max(pace.share).min(pace.batch)
    }

    /// Runs one batch and answers all who have a passage in it, whatever happens.
    fn run(&self, lane: Lane, batch: Vec<Passage>) {
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
        let budget = self.share(self.pace(), lanes.query.tokens(), lanes.busy);
        let batch = lanes.query.take(budget);
        drop(lanes);
        if !batch.is_empty() {
            self.run(Lane::Query, batch);
        }
    }

    fn fail(&self, batch: &[Passage], error: &EmbedError) {
        let mut lanes = self.lanes.lock();
        for passage in batch {
            lanes.query.forget(&passage.reply);
            lanes.bulk.forget(&passage.reply);
        }
        drop(lanes);
        for passage in batch {
            passage.reply.fail(error);
        }
        self.has_room.notify_all();
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
