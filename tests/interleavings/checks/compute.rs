//! The query batcher of a device, and its cache and uploads.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_types;

#[path = "../../../src/compute/src/cuda/batcher.rs"]
mod batcher;
#[path = "../../../src/compute/src/cuda/cache.rs"]
mod cache;
#[path = "../../../src/compute/src/cuda/counters.rs"]
mod counters;
#[path = "../../../src/compute/src/cuda/error.rs"]
mod error;
#[path = "../../../src/compute/src/cuda/uploads.rs"]
mod uploads;

mod cuda {
    pub use crate::error::DeviceError;
    pub(crate) use crate::{counters, numbers};
}

mod numbers {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Numbers {
        Codes,
    }
}

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use batcher::{BatchLimits, Candidate, DeviceCandidates, MachineTimer, QueryBatch, QueryBatcher};
use cache::{CacheKey, DeviceCache, Part};
use error::DeviceError;
use interleavings::{Check, Condvar, Mutex, explore, is_chosen};
use uploads::Uploads;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Overloaded,
    Unavailable,
    Internal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);

impl Timestamp {
    fn plus_millis(self, millis: u64) -> Self {
        Self(self.0 + millis)
    }
}

pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

type Answer = Result<Vec<DeviceCandidates>, DeviceError>;
type Batcher = QueryBatcher<u8, u32>;

fn batcher() -> Arc<Batcher> {
    let limits = BatchLimits { wait_max: Duration::from_micros(200), queries_max: 3 };
    Arc::new(QueryBatcher::new(limits, Arc::new(MachineTimer::default())))
}

fn found(query: u32) -> DeviceCandidates {
    Some(vec![Candidate { row: query, estimate: 0.0, residual: 0.0 }])
}

/// Finds for each query the row with its own number. Fails if a batch contains 66, panics if it
/// contains 67.
fn search(run: QueryBatch<u32>) -> Answer {
    assert!(run.queries.len() <= 3 && run.k >= run.queries.len().min(2));
    if run.queries.contains(&67) {
        resume_unwind(Box::new("on purpose"));
    }
    match run.queries.contains(&66) {
        true => Err(DeviceError::Lost { reason: "on purpose".to_owned() }),
        false => Ok(run.queries.into_iter().map(found).collect()),
    }
}

/// Asks in a thread; the result is `None` after a panic.
fn ask(batcher: &Arc<Batcher>, queries: &'static [u32]) -> thread::JoinHandle<Option<Answer>> {
    let batcher = Arc::clone(batcher);
    thread::spawn(move || {
        let run = || batcher.run(1, queries.to_vec(), 1 + queries.len(), search);
        catch_unwind(AssertUnwindSafe(run)).ok()
    })
}

fn rows(queries: &[u32]) -> Option<Answer> {
    Some(Ok(queries.iter().copied().map(found).collect()))
}

fn assert_empty(batcher: &Batcher) {
    let told = format!("{batcher:?}");
    assert!(told.contains("groups: Mutex({})"), "something is left: {told}");
}

fn requests_get_their_own_rows() {
    let batcher = batcher();
    let sets: [&[u32]; 4] = [&[1], &[2, 3], &[4], &[5, 6, 7]];
    let asked = sets.map(|queries| (ask(&batcher, queries), queries));
    for (asked, queries) in asked {
        assert_eq!(asked.join().unwrap(), rows(queries));
    }
    assert_empty(&batcher);
}

fn a_failed_run_ends_all_its_requests() {
    let batcher = batcher();
    let bad = [ask(&batcher, &[66]), ask(&batcher, &[67])];
    let good: [&[u32]; 2] = [&[1], &[2]];
    let good = good.map(|queries| (ask(&batcher, queries), queries));
    for bad in bad {
        assert!(!matches!(bad.join().unwrap(), Some(Ok(_))));
    }
    for (asked, queries) in good {
        // It may have run in a batch with one that fails.
        let answer = asked.join().unwrap();
        assert!(answer == rows(queries) || !matches!(answer, Some(Ok(_))), "{answer:?}");
    }
    assert_empty(&batcher);
}

/// A clock for which no entry is too young to be evicted.
#[derive(Debug, Default)]
struct Hurrying(AtomicU64);

impl Clock for Hurrying {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(60_000, SeqCst))
    }
}

/// An allocation on the device.
struct Block {
    device: Arc<AtomicU64>,
    id: u128,
}

impl Block {
    const BYTES: u64 = 40;

    fn new(device: &Arc<AtomicU64>, id: u128) -> Self {
        let before = device.fetch_add(Self::BYTES, SeqCst);
        assert!(before + Self::BYTES <= 100, "the budget is exceeded");
        Self { device: Arc::clone(device), id }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.device.fetch_sub(Self::BYTES, SeqCst);
    }
}

fn key(id: u128) -> CacheKey {
    (id, Part::Rows(numbers::Numbers::Codes))
}

/// Entries for three segments compete for room for two, and uploads fail now and then.
fn a_device_holds_no_more_than_its_budget() {
    let cache = DeviceCache::new(100, Arc::new(Hurrying::default()), Arc::default());
    let (cache, device) = (Arc::new(cache), Arc::new(AtomicU64::new(0)));
    let under_way = Arc::new([const { AtomicU64::new(0) }; 3]);
    let threads = [0, 1, 2].map(|first| {
        let (cache, device) = (Arc::clone(&cache), Arc::clone(&device));
        let under_way = Arc::clone(&under_way);
        thread::spawn(move || {
            for id in [first, (first + 1) % 3, first] {
                let entry = cache.get(key(id as u128), Block::BYTES, || {
                    assert_eq!(under_way[id].fetch_add(1, SeqCst), 0, "uploaded twice at once");
                    let block = match is_chosen() {
                        true => Ok(Block::new(&device, id as u128)),
                        false => Err(DeviceError::Lost { reason: "on purpose".to_owned() }),
                    };
                    under_way[id].fetch_sub(1, SeqCst);
                    block
                });
                assert!(entry.as_ref().is_ok_and(|block| block.id == id as u128) || entry.is_err());
                thread::yield_now();
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (told, held) = (format!("{cache:?}"), device.load(SeqCst));
    assert!(told.contains(&format!(" {held} of 100 bytes")), "{told}, {held} bytes held");
}

fn every_upload_runs_once_and_alone() {
    let uploads = Arc::new(Uploads::default());
    let (running, ended) = (Arc::new(AtomicU64::new(0)), Arc::new((Mutex::new(0), Condvar::new())));
    let starters = [1, 2, 3].map(|number| {
        let (uploads, running) = (Arc::clone(&uploads), Arc::clone(&running));
        let ended = Arc::clone(&ended);
        thread::spawn(move || {
            uploads.start(Box::new(move || {
                assert_eq!(running.fetch_add(1, SeqCst), 0, "two at once");
                thread::yield_now();
                running.fetch_sub(1, SeqCst);
                *ended.0.lock() += 1;
                ended.1.notify_all();
                if number == 2 {
                    resume_unwind(Box::new("on purpose"));
                }
            }));
        })
    });
    starters.into_iter().for_each(|starter| starter.join().unwrap());
    let mut count = ended.0.lock();
    while *count < 3 {
        ended.1.wait(&mut count);
    }
}

fn main() -> ExitCode {
    explore(&[
        Check::patient("batcher: requests get their own rows", requests_get_their_own_rows),
        Check::hasty("batcher: so they do when waits end early", requests_get_their_own_rows),
        Check::patient(
            "batcher: a failed run ends its requests",
            a_failed_run_ends_all_its_requests,
        ),
        Check::patient("cache: the budget holds", a_device_holds_no_more_than_its_budget),
        Check::patient("uploads: each runs once and alone", every_upload_runs_once_and_alone),
    ])
}
