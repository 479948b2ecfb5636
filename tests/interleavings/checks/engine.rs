//! The memory budget, the queues of background work, the gate of an embedding server, and the
//! helper threads of a search.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_embed;
extern crate self as lodestone_extract;
extern crate self as lodestone_io;
extern crate self as lodestone_storage;
extern crate self as lodestone_types;

#[path = "../../../src/types/src/context.rs"]
mod context;
#[path = "../../../src/engine/src/models/remote/gate.rs"]
mod gate;
#[path = "../../../src/engine/src/ingest/maintenance_queue.rs"]
mod maintenance_queue;
#[path = "../../../src/engine/src/ingest/memory.rs"]
mod memory;
#[path = "../../../src/engine/src/query/side_by_side.rs"]
mod side_by_side;
#[path = "../../../src/engine/src/ingest/stopping.rs"]
mod stopping;

mod ingest {
    pub(crate) use crate::stopping::Stopping;

    pub mod maintenance {
        pub const ROUND: std::time::Duration = std::time::Duration::from_secs(5);
    }
}

pub mod collection {
    use crate::CollectionId;

    #[derive(Debug)]
    pub struct Collection(pub CollectionId);

    impl Collection {
        pub fn id(&self) -> CollectionId {
            self.0
        }
    }
}

pub mod metadata {
    pub struct Counts {
        pub key_parts: usize,
        pub values: usize,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0 + millis)
    }
}

pub mod sandbox {
    pub const MEMORY_BYTES_MAX: u64 = 1;
}

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use collection::Collection;
pub use context::{RequestContext, ResultMemory, Stopped};
use gate::Gate;
use interleavings::{Check, Condvar, Mutex, explore};
use maintenance_queue::Maintenance;
use memory::MemoryBudget;
use stopping::Stopping;

pub const PIXELS_MAX: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionId(pub u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Query,
    Answer,
    Bulk,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    #[error("closed")]
    Closed,
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

pub trait MemoryGauge: Send + Sync + fmt::Debug {
    fn own_bytes(&self) -> Option<u64>;
}

/// A gauge of a process that uses no memory of its own.
#[derive(Debug)]
struct Nothing;

impl MemoryGauge for Nothing {
    fn own_bytes(&self) -> Option<u64> {
        Some(0)
    }
}

const LIMIT: u64 = 100;

fn budget() -> Arc<MemoryBudget> {
    Arc::new(MemoryBudget::new(Box::new(Nothing), Some(LIMIT), 0))
}

/// Counts the bytes of a running claim; a single claim may exceed the limit.
fn take_bytes(used: &AtomicU64, bytes: u64) {
    let before = used.fetch_add(bytes, SeqCst);
    assert!(before == 0 || before + bytes <= LIMIT, "{bytes} beside {before}");
}

fn assert_given_back(budget: &MemoryBudget) {
    assert_eq!((budget.reserved_bytes(), budget.is_waiting()), (0, false));
    let told = format!("{budget:?}");
    assert!(told.contains("requests: 0") && told.contains("running: {}"), "{told}");
}

fn claims_share_the_memory_and_none_waits_for_ever() {
    let (budget, used) = (budget(), Arc::new(AtomicU64::new(0)));
    let claims = [60, 50, 120, 30].map(|bytes| {
        let (budget, used) = (Arc::clone(&budget), Arc::clone(&used));
        thread::spawn(move || {
            let share = budget.share(bytes, &Stopping::default()).expect("nothing stops");
            take_bytes(&used, bytes);
            thread::yield_now();
            used.fetch_sub(bytes, SeqCst);
            drop(share);
        })
    });
    claims.into_iter().for_each(|claim| claim.join().unwrap());
    assert_given_back(&budget);
}

/// Goal: consecutive waiting claims proceed together if both fit. Method: each waits for the other
/// before it ends.
fn claims_that_fit_run_side_by_side() {
    let (budget, running) = (budget(), Arc::new((Mutex::new(0), Condvar::new())));
    let first = budget.share(LIMIT, &Stopping::default()).expect("nothing stops");
    let claims = [60, 30].map(|bytes| {
        let (budget, running) = (Arc::clone(&budget), Arc::clone(&running));
        thread::spawn(move || {
            let _share = budget.share(bytes, &Stopping::default()).expect("nothing stops");
            let mut count = running.0.lock();
            *count += 1;
            running.1.notify_all();
            while *count < 2 {
                running.1.wait(&mut count);
            }
        })
    });
    drop(first);
    claims.into_iter().for_each(|claim| claim.join().unwrap());
    assert_given_back(&budget);
}

/// Requests wait for each other. Returns the number that got their share.
fn requests_share_the_memory() -> usize {
    let (budget, used) = (budget(), Arc::new(AtomicU64::new(0)));
    let requests = [60, 50, 120, 30].map(|bytes| {
        let (budget, used) = (Arc::clone(&budget), Arc::clone(&used));
        thread::spawn(move || {
            let share = budget.take(bytes, Duration::from_secs(10));
            if share.is_some() {
                take_bytes(&used, bytes);
                thread::yield_now();
                used.fetch_sub(bytes, SeqCst);
            }
            share.is_some()
        })
    });
    let served = requests.map(|request| request.join().unwrap());
    assert_given_back(&budget);
    served.iter().filter(|is_served| **is_served).count()
}

fn requests_are_all_served() {
    assert_eq!(requests_share_the_memory(), 4);
}

fn a_request_is_served_or_gives_up() {
    assert!(requests_share_the_memory() >= 1);
}

fn a_stop_ends_claims_that_wait() {
    let (budget, stopping) = (budget(), Arc::new(Stopping::default()));
    let first = budget.share(LIMIT, &stopping).expect("nothing stops");
    let claims = [50, 20].map(|bytes| {
        let (budget, stopping) = (Arc::clone(&budget), Arc::clone(&stopping));
        thread::spawn(move || drop(budget.share(bytes, &stopping)))
    });
    stopping.set();
    claims.into_iter().for_each(|claim| claim.join().unwrap());
    drop(first);
    assert_given_back(&budget);
}

/// The work that the background threads have seen.
#[derive(Debug, Default)]
struct Seen {
    state: Mutex<(Vec<CollectionId>, Vec<CollectionId>, bool)>,
    changed: Condvar,
}

impl Seen {
    fn note(&self, change: impl FnOnce(&mut (Vec<CollectionId>, Vec<CollectionId>, bool))) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    fn wait_until(&self, holds: impl Fn(&(Vec<CollectionId>, Vec<CollectionId>, bool)) -> bool) {
        let mut state = self.state.lock();
        while !holds(&state) {
            self.changed.wait(&mut state);
        }
    }
}

/// Starts the loops of the product's threads on the queue.
fn start_work(
    queue: &Arc<Maintenance>,
    stopping: &Arc<Stopping>,
    seen: &Arc<Seen>,
) -> [thread::JoinHandle<()>; 2] {
    let all = || (Arc::clone(queue), Arc::clone(stopping), Arc::clone(seen));
    let (small, large) = (all(), all());
    let small = thread::spawn(move || {
        let (queue, stopping, seen) = small;
        while !stopping.is_set() {
            if queue.has_deleted_tenants.swap(false, SeqCst) {
                seen.note(|(_, _, has_cleared)| *has_cleared = true);
            }
            for (collection, _) in queue.take(&stopping) {
                seen.note(|(looked_at, ..)| looked_at.push(collection.id()));
            }
        }
    });
    let large = thread::spawn(move || {
        let (queue, stopping, seen) = large;
        while let Some(collection) = queue.large.take(&stopping) {
            seen.note(|(_, merged, _)| merged.push(collection.id()));
            queue.large.end();
        }
    });
    [small, large]
}

fn what_is_woken_is_looked_at_before_the_end() {
    let (queue, stopping) = (Arc::new(Maintenance::default()), Arc::new(Stopping::default()));
    let seen = Arc::new(Seen::default());
    let work = start_work(&queue, &stopping, &seen);
    let collections = [1, 2].map(|id| Arc::new(Collection(CollectionId(id))));
    queue.wake(&collections[0]);
    queue.large.wake(&collections[1]);
    seen.wait_until(|(looked_at, merged, _)| looked_at.len() == 1 && merged.len() == 1);
    // As when a tenant is deleted.
    queue.has_deleted_tenants.store(true, SeqCst);
    queue.interrupt();
    seen.wait_until(|(_, _, has_cleared)| *has_cleared);
    queue.wake_opened(&collections[1]);
    seen.wait_until(|(looked_at, ..)| looked_at.len() == 2);
    stopping.set();
    queue.interrupt();
    work.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Goal: the files of a tenant are deleted only when no large merge is writing, and none starts
/// later.
fn no_large_merge_begins_once_it_is_given_up() {
    let (queue, stopping) = (Arc::new(Maintenance::default()), Arc::new(Stopping::default()));
    let collection = Arc::new(Collection(CollectionId(1)));
    let (is_merging, is_deleted) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let is_deleted = Arc::new(is_deleted);
    let own = (Arc::clone(&queue), Arc::clone(&stopping), Arc::clone(&is_merging));
    let deleted = Arc::clone(&is_deleted);
    let merges = thread::spawn(move || {
        let (queue, stopping, is_merging) = own;
        while queue.large.take(&stopping).is_some() {
            is_merging.store(true, SeqCst);
            assert!(!deleted.load(SeqCst), "a merge after the deletion");
            is_merging.store(false, SeqCst);
            queue.large.end();
        }
    });
    queue.large.wake(&collection);
    while !queue.large.give_up(collection.id()) {
        thread::yield_now();
    }
    assert!(!is_merging.load(SeqCst));
    is_deleted.store(true, SeqCst);
    stopping.set();
    queue.interrupt();
    merges.join().unwrap();
}

fn enter(
    gate: &Arc<Gate>,
    under_way: &Arc<AtomicUsize>,
    lane: Lane,
    context: &RequestContext,
) -> thread::JoinHandle<bool> {
    let (gate, under_way, context) = (Arc::clone(gate), Arc::clone(under_way), context.clone());
    thread::spawn(move || {
        let permit = gate.enter(lane, &context);
        if lane == Lane::Bulk && permit.is_ok() {
            assert!(under_way.fetch_add(1, SeqCst) < 4, "too many documents");
            thread::yield_now();
            under_way.fetch_sub(1, SeqCst);
        }
        permit.is_ok()
    })
}

fn assert_passed(gate: &Gate) {
    let told = format!("{gate:?}");
    assert!(told.contains("under_way: [0, 0, 0], waiting: [0, 0, 0]"), "{told}");
}

fn requests_of_all_lanes_pass() {
    use Lane::{Answer, Bulk, Query};
    let (gate, under_way) = (Arc::new(Gate::default()), Arc::default());
    let context = RequestContext::default();
    let lanes = [Bulk, Bulk, Bulk, Bulk, Bulk, Answer, Query];
    let passing = lanes.map(|lane| enter(&gate, &under_way, lane, &context));
    passing.into_iter().for_each(|one| assert!(one.join().unwrap()));
    assert_passed(&gate);
}

fn closing_ends_every_wait_at_the_gate() {
    let (gate, under_way) = (Arc::new(Gate::default()), Arc::default());
    let context = RequestContext::default();
    let held = gate.enter(Lane::Query, &context).unwrap();
    let passing = [Lane::Bulk; 3].map(|lane| enter(&gate, &under_way, lane, &context));
    let pausing = Arc::clone(&gate);
    let pause = thread::spawn(move || {
        let ended = pausing.pause(Duration::from_secs(60), &RequestContext::default());
        assert_eq!(ended, Err(EmbedError::Closed));
    });
    gate.close();
    passing.into_iter().for_each(|one| _ = one.join().unwrap());
    pause.join().unwrap();
    drop(held);
    assert_passed(&gate);
}

/// Goal: a request that gives up does not block others.
fn a_request_that_gives_up_leaves_the_gate() {
    let (gate, under_way) = (Arc::new(Gate::default()), Arc::default());
    let (gone, context) = (RequestContext::default(), RequestContext::default());
    let held: Vec<_> = (0..32).map(|_| gate.enter(Lane::Query, &context).unwrap()).collect();
    let leaving = enter(&gate, &under_way, Lane::Query, &gone);
    let waiting = enter(&gate, &under_way, Lane::Bulk, &context);
    gone.cancel().cancel();
    assert!(!leaving.join().unwrap());
    assert!(waiting.join().unwrap());
    drop(held);
    assert_passed(&gate);
}

fn helpers_are_bounded_and_results_keep_their_order() {
    let active = Arc::new(AtomicUsize::new(0));
    let searches = [0, 10].map(|first| {
        let active = Arc::clone(&active);
        thread::spawn(move || {
            let items = [first, first + 1, first + 2];
            let results = side_by_side::each(&items, 1_000_000, |item| {
                let others = active.fetch_add(1, SeqCst);
                assert!(others < 4, "two searches and two helpers");
                thread::yield_now();
                active.fetch_sub(1, SeqCst);
                item + 1
            });
            assert_eq!(results, items.map(|item| item + 1));
        })
    });
    searches.into_iter().for_each(|search| search.join().unwrap());
    let both = side_by_side::meanwhile(|| active.load(SeqCst), || 7);
    assert_eq!(both, (0, 7));
}

fn main() -> ExitCode {
    use claims_share_the_memory_and_none_waits_for_ever as claims_share;
    use helpers_are_bounded_and_results_keep_their_order as helpers;
    explore(&[
        Check::patient("memory: claims share it, none waits for ever", claims_share),
        Check::hasty("memory: so they do when waits end early", claims_share),
        Check::patient("memory: claims that fit run together", claims_that_fit_run_side_by_side),
        Check::patient("memory: requests are all served", requests_are_all_served),
        Check::hasty("memory: a request is served or gives up", a_request_is_served_or_gives_up),
        Check::hasty("memory: a stop ends claims that wait", a_stop_ends_claims_that_wait),
        Check::patient(
            "background: what is woken is looked at",
            what_is_woken_is_looked_at_before_the_end,
        ),
        Check::patient(
            "background: no merge once it is given up",
            no_large_merge_begins_once_it_is_given_up,
        ),
        Check::patient("gate: requests of all lanes pass", requests_of_all_lanes_pass),
        Check::patient("gate: closing ends every wait", closing_ends_every_wait_at_the_gate),
        Check::hasty(
            "gate: a request that gives up leaves", a_request_that_gives_up_leaves_the_gate,
        ),
        Check::patient("search: helpers are bounded", helpers),
    ])
}
