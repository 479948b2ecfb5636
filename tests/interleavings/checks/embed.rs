//! The queue in front of the model, and weights that are loaded and released.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_types;

#[path = "../../../src/types/src/context.rs"]
mod context;
#[path = "../../../src/embed/src/forward.rs"]
mod forward;
#[path = "../../../src/embed/src/lanes.rs"]
mod lanes;
#[path = "../../../src/embed/src/on_demand.rs"]
mod on_demand;
#[path = "../../../src/embed/src/queue.rs"]
mod queue;
#[path = "../../../src/embed/src/reply.rs"]
mod reply;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

pub use context::{RequestContext, Stopped};
use forward::{BatchPolicy, DeviceCounts, Forward};
use interleavings::{Check, Condvar, Mutex, explore, is_chosen};
use lanes::QueuedText;
use on_demand::OnDemand;
use queue::{Queue, QueueBounds};
use reply::Reply;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionId(pub u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Query,
    Answer,
    Bulk,
}

impl Lane {
    const ALL: [Self; 3] = [Self::Query, Self::Answer, Self::Bulk];
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    #[error("{waiting} of {max}")]
    Overloaded { waiting: usize, max: usize },
    #[error("{problem}")]
    Compute { problem: String },
    #[error("{message}")]
    Panicked { message: String },
    #[error("closed")]
    Closed,
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Cpu,
}

#[derive(Debug)]
pub struct EmbedStats {
    pub model_seconds: f64,
    pub tokens: u64,
    pub passages: u64,
    pub device_batches: u64,
    pub device_fallbacks: u64,
}

#[derive(Debug, Default)]
pub struct EmbedMeters;

impl EmbedMeters {
    fn begin_batch(&self, _: Lane, _: usize, _: impl Iterator<Item = f64>) {}
}

/// Returns for each text a vector made of its first token, after a pause. Fails on 66, panics on
/// 67, and blocks on 68 until released.
#[derive(Debug, Default)]
struct Echo {
    policy: Option<BatchPolicy>,
    batches: AtomicU64,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Held {
    #[default]
    NotYet,
    Waits,
    GoesOn,
}

impl Gate {
    fn set(&self, state: Held) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    fn wait_until(&self, expected: Held) {
        let mut state = self.state.lock();
        while *state != expected {
            self.changed.wait(&mut state);
        }
    }
}

impl Forward for Echo {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        pause();
        self.batches.fetch_add(1, SeqCst);
        match batch[0][0] {
            66 => Err(EmbedError::Compute { problem: "on purpose".to_owned() }),
            67 => std::panic::resume_unwind(Box::new("on purpose")),
            68 => {
                self.gate.set(Held::Waits);
                self.gate.wait_until(Held::GoesOn);
                Ok(of(&[68]))
            }
            _ => Ok(batch.iter().map(|ids| vec![ids[0] as f32]).collect()),
        }
    }

    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        self.policy.unwrap_or(usual)
    }

    fn device_counts(&self) -> DeviceCounts {
        DeviceCounts { batches: self.batches.load(SeqCst), fallbacks: 0 }
    }
}

/// Texts have ten tokens: a batch holds one text, and a call or a lane may have two waiting.
const BOUNDS: QueueBounds = QueueBounds { batch: 10, call: 20, lane: 20, query: 40 };
const POLICY: BatchPolicy = BatchPolicy { batch: 10, share: 10, workers: 2 };

type Vectors = Result<Vec<Vec<f32>>, EmbedError>;

fn start(workers: usize, policy: BatchPolicy) -> Arc<Queue> {
    start_with_gate(workers, policy).0
}

fn start_with_gate(workers: usize, policy: BatchPolicy) -> (Arc<Queue>, Arc<Gate>) {
    let echo = Echo { policy: Some(policy), ..Echo::default() };
    let gate = Arc::clone(&echo.gate);
    (Arc::new(Queue::start(Arc::new(echo), workers, BOUNDS)), gate)
}

/// Embeds one text per tag like the product: text by text, stopping after an error.
fn call(
    queue: &Arc<Queue>,
    context: &RequestContext,
    lane: Lane,
    tags: &'static [u32],
) -> thread::JoinHandle<(Vectors, Arc<Reply>)> {
    let (queue, context) = (Arc::clone(queue), context.clone());
    thread::spawn(move || {
        let reply = queue.call(&context, tags.len());
        let push = |(index, tag): (usize, &u32)| {
            queue.push(lane, &reply, vec![QueuedText::new(vec![*tag; 10], &reply, index)])
        };
        let pushed = tags.iter().enumerate().try_for_each(push);
        let vectors = pushed.and_then(|()| reply.wait());
        (vectors.inspect_err(|_| queue.abandon(&reply)), reply)
    })
}

fn of(tags: &[u32]) -> Vec<Vec<f32>> {
    tags.iter().map(|tag| vec![*tag as f32]).collect()
}

/// Ends the workers and checks that nothing of a finished call is still referenced.
fn end(queue: Arc<Queue>, replies: &[Arc<Reply>]) {
    drop(Arc::into_inner(queue).expect("all callers have ended"));
    assert!(replies.iter().all(|reply| Arc::strong_count(reply) == 1), "something is left");
}

fn calls_of_all_lanes_get_their_own_vectors() {
    let queue = start(2, POLICY);
    let context = RequestContext::default();
    let bulk = call(&queue, &context, Lane::Bulk, &[1, 2, 3]);
    let other = call(&queue, &context.of_tenant(CollectionId(7)), Lane::Bulk, &[4, 5]);
    let query = call(&queue, &context, Lane::Query, &[6]);
    let (bulk, other, query) = (bulk.join().unwrap(), other.join().unwrap(), query.join().unwrap());
    assert_eq!((bulk.0, other.0, query.0), (Ok(of(&[1, 2, 3])), Ok(of(&[4, 5])), Ok(of(&[6]))));
    // Cancellation hooks reference the queue for as long as the request exists.
    drop(context);
    end(queue, &[bulk.1, other.1, query.1]);
}

/// Only one worker may run bulk batches: the other must not miss work while it is barred from them.
fn a_barred_worker_loses_no_work() {
    let queue = start(2, BatchPolicy { workers: 1, ..POLICY });
    let context = RequestContext::default();
    let bulk = call(&queue, &context, Lane::Bulk, &[1, 2, 3]);
    let answer = call(&queue, &context, Lane::Answer, &[4, 5]);
    let (bulk, answer) = (bulk.join().unwrap(), answer.join().unwrap());
    assert_eq!((bulk.0, answer.0), (Ok(of(&[1, 2, 3])), Ok(of(&[4, 5]))));
    end(queue, &[bulk.1, answer.1]);
}

/// The model is occupied with another batch, so that no batch makes room.
fn a_cancelled_call_ends_and_leaves_room() {
    let (queue, gate) = start_with_gate(1, POLICY);
    let held = call(&queue, &RequestContext::default(), Lane::Query, &[68]);
    gate.wait_until(Held::Waits);
    let context = RequestContext::default();
    // It waits for room, or for its vectors.
    let tags: &[u32] = if is_chosen() { &[1, 2, 3, 4] } else { &[1, 2] };
    let cancelled = call(&queue, &context, Lane::Bulk, tags);
    context.cancel().cancel();
    let cancelled = cancelled.join().unwrap();
    assert_eq!(cancelled.0, Err(Stopped::ClientGone.into()));
    let reply = queue.call(&RequestContext::default(), 2);
    for (index, tag) in [5, 6].into_iter().enumerate() {
        let text = QueuedText::new(vec![tag; 10], &reply, index);
        queue.push(Lane::Bulk, &reply, vec![text]).unwrap();
    }
    gate.set(Held::GoesOn);
    assert_eq!(reply.wait(), Ok(of(&[5, 6])));
    let held = held.join().unwrap();
    assert_eq!(held.0, Ok(of(&[68])));
    end(queue, &[held.1, cancelled.1, reply]);
}

fn a_failed_batch_ends_its_call_alone() {
    let queue = start(2, POLICY);
    let context = RequestContext::default();
    let failed = call(&queue, &context, Lane::Bulk, &[1, 66, 2, 3]);
    let panicked = call(&queue, &context, Lane::Bulk, &[67, 4]);
    let other = call(&queue, &context, Lane::Bulk, &[5, 6]);
    let (failed, panicked) = (failed.join().unwrap(), panicked.join().unwrap());
    let other = other.join().unwrap();
    assert!(matches!(failed.0, Err(EmbedError::Compute { .. })), "{:?}", failed.0);
    assert!(matches!(panicked.0, Err(EmbedError::Panicked { .. })), "{:?}", panicked.0);
    assert_eq!(other.0, Ok(of(&[5, 6])));
    drop(context);
    end(queue, &[failed.1, panicked.1, other.1]);
}

fn closing_ends_every_call() {
    let queue = start(2, POLICY);
    let context = RequestContext::default();
    let bulk = call(&queue, &context, Lane::Bulk, &[1, 2, 3]);
    let query = call(&queue, &context, Lane::Query, &[4]);
    queue.close();
    let (bulk, query) = (bulk.join().unwrap(), query.join().unwrap());
    assert!(bulk.0 == Err(EmbedError::Closed) || bulk.0 == Ok(of(&[1, 2, 3])), "{:?}", bulk.0);
    assert!(query.0 == Err(EmbedError::Closed) || query.0 == Ok(of(&[4])), "{:?}", query.0);
    drop(context);
    end(queue, &[bulk.1, query.1]);
}

fn a_call_ends_with_its_time() {
    let queue = start(1, POLICY);
    let limit = Duration::from_secs(1);
    let context = RequestContext::with_limit(limit);
    let late = call(&queue, &context, Lane::Bulk, &[1, 2, 3]);
    let other = call(&queue, &RequestContext::default(), Lane::Bulk, &[4, 5]);
    let (late, other) = (late.join().unwrap(), other.join().unwrap());
    let exceeded = EmbedError::Stopped(Stopped::DeadlineExceeded { limit });
    assert!(late.0 == Err(exceeded) || late.0 == Ok(of(&[1, 2, 3])), "{:?}", late.0);
    assert_eq!(other.0, Ok(of(&[4, 5])));
    drop(context);
    end(queue, &[late.1, other.1]);
}

/// Batches, a thread that releases idle weights, and the counters of both.
fn weights_come_and_go_between_batches() {
    let (loads, at_once) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&loads);
    let load = move || {
        assert_eq!(at_once.fetch_add(1, SeqCst), 0, "they are read twice at once");
        counted.fetch_add(1, SeqCst);
        at_once.fetch_sub(1, SeqCst);
        Ok(Arc::new(Echo::default()) as Arc<dyn Forward>)
    };
    let weights = Arc::new(OnDemand::new(Box::new(load), Duration::from_secs(600)));
    let batches = [1, 2, 3].map(|tag| {
        let weights = Arc::clone(&weights);
        thread::spawn(move || {
            for _ in 0..2 {
                assert_eq!(weights.forward(&[&[tag]], &mut || {}), Ok(of(&[tag])));
            }
        })
    });
    let unloads = (0..3).filter(|_| weights.unload(Duration::ZERO)).count() as u64;
    batches.into_iter().for_each(|batch| batch.join().unwrap());
    assert_eq!(weights.device_counts().batches, 6, "a count has gone with the weights");
    let loads = loads.load(SeqCst);
    assert!(loads == unloads || loads == unloads + 1, "{loads} loads, {unloads} unloads");
    assert!(weights.unload(Duration::ZERO) == (loads > unloads), "a batch is counted for good");
}

fn main() -> ExitCode {
    explore(&[
        Check::patient(
            "queue: calls get their own vectors", calls_of_all_lanes_get_their_own_vectors,
        ),
        Check::patient("queue: a barred worker loses no work", a_barred_worker_loses_no_work),
        Check::patient(
            "queue: a cancelled call leaves room", a_cancelled_call_ends_and_leaves_room,
        ),
        Check::patient(
            "queue: a failed batch ends its call alone",
            a_failed_batch_ends_its_call_alone,
        ),
        Check::patient("queue: closing ends every call", closing_ends_every_call),
        Check::hasty("queue: a call ends with its time", a_call_ends_with_its_time),
        Check::patient(
            "weights: they come and go between batches",
            weights_come_and_go_between_batches,
        ),
    ])
}
