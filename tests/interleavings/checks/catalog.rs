//! The catalog's writer, readers and cache, and the signals of its queue.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_metrics;
extern crate self as lodestone_types;
extern crate self as rusqlite;

#[path = "../../../src/catalog/src/cache.rs"]
mod cache;
#[path = "../../../src/catalog/src/readers.rs"]
mod readers;
#[path = "../../../src/catalog/src/work.rs"]
mod work;
#[path = "../../../src/catalog/src/writer.rs"]
mod writer;

mod error {
    /// The product's error type, reduced to the variants that checks need.
    #[derive(Debug, thiserror::Error)]
    pub enum CatalogError {
        #[error("full")]
        StorageFull,
        #[error("away: {cause}")]
        LogAway { cause: String },
        #[error("in doubt: {cause}")]
        InDoubt { cause: String },
        #[error("poisoned: {cause}")]
        Poisoned { cause: String },
        #[error("fenced")]
        Fenced,
        #[error("read only")]
        ReadOnly,
        #[error("refused")]
        Refused,
    }

    pub type Result<T> = std::result::Result<T, CatalogError>;

    impl CatalogError {
        pub fn is_poisoning(&self) -> bool {
            false
        }
    }
}

mod job {
    pub enum Duty {
        Process,
        Fetch,
    }
}

mod log {
    use crate::{Connection, error::Result};
    use std::time::Duration;

    /// A stub, as no check has a log.
    pub struct Shipper;

    impl Shipper {
        pub fn pause(&self) -> Option<Duration> {
            None
        }

        pub fn maintain(&mut self, _: &Connection, _: bool) -> Result<()> {
            Ok(())
        }

        pub fn catch_up(&mut self, _: &Connection) -> Result<()> {
            Ok(())
        }

        pub fn ship(&mut self, _: &Connection) -> Result<()> {
            Ok(())
        }
    }
}

mod meters {
    use crate::Stage;
    use std::time::Instant;

    #[derive(Debug, Default)]
    pub struct JobMeters;

    impl JobMeters {
        pub fn begin(&self, _: Stage) {}
        pub fn leave(&self, _: Stage, _: Instant) {}
        pub fn cancelled(&self, _: u64) {}
    }
}

mod open {
    use crate::{Connection, error::Result};

    pub fn prepare(_: &Connection) -> Result<()> {
        Ok(())
    }
}

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::BitOr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use cache::Cache;
use error::{CatalogError, Result};
use interleavings::{Check, Mutex, explore, is_chosen};
use job::Duty;
use readers::Readers;
use work::WorkSignals;
use writer::{Reach, Writer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Validating,
}

#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub stage: Stage,
    pub chunks_done: u32,
    pub chunks: u32,
}

#[derive(Default)]
pub struct Counter;

impl Counter {
    fn inc(&self) {}
}

pub struct Labelled<M, const N: usize>([M; N]);

impl<M, const N: usize> Labelled<M, N> {
    fn new(_: &str, _: [&str; N], make: impl Fn() -> M) -> Self {
        Self(std::array::from_fn(|_| make()))
    }

    fn at(&self, index: usize) -> &M {
        &self.0[index]
    }
}

thread_local! {
    /// The number of open connections, and of changes to the file that they would not notice. All
    /// tasks of an execution run on the same OS thread.
    static OPEN: Cell<usize> = const { Cell::new(0) };
    static CHANGES: Cell<usize> = const { Cell::new(0) };
}

pub struct OpenFlags;

impl OpenFlags {
    const SQLITE_OPEN_READ_ONLY: Self = Self;
    const SQLITE_OPEN_NO_MUTEX: Self = Self;
}

impl BitOr for OpenFlags {
    type Output = Self;

    fn bitor(self, _: Self) -> Self {
        self
    }
}

/// A connection, with uncommitted and committed writes.
pub struct Connection {
    changes: usize,
    pending: RefCell<Vec<u8>>,
    saved: Cell<usize>,
    is_in_transaction: Cell<bool>,
    committed: Arc<Mutex<Vec<u8>>>,
}

impl Connection {
    fn new(committed: Arc<Mutex<Vec<u8>>>) -> Self {
        OPEN.set(OPEN.get() + 1);
        let (pending, saved, is_in_transaction) = Default::default();
        Self { changes: CHANGES.get(), pending, saved, is_in_transaction, committed }
    }

    fn open_with_flags(_: &Path, _: OpenFlags) -> Result<Self> {
        let is_refused = is_chosen() && is_chosen();
        thread::yield_now();
        match is_refused {
            true => Err(CatalogError::Refused),
            false => Ok(Self::new(Arc::default())),
        }
    }

    fn is_autocommit(&self) -> bool {
        !self.is_in_transaction.get()
    }

    fn execute_batch(&self, sql: &str) -> Result<()> {
        let mut pending = self.pending.borrow_mut();
        match sql {
            "BEGIN IMMEDIATE" => self.is_in_transaction.set(true),
            "SAVEPOINT task" => self.saved.set(pending.len()),
            "RELEASE task" => {}
            "ROLLBACK TO task; RELEASE task" => pending.truncate(self.saved.get()),
            "COMMIT" if is_chosen() => return Err(CatalogError::StorageFull),
            "COMMIT" => {
                self.committed.lock().append(&mut pending);
                self.is_in_transaction.set(false);
            }
            "ROLLBACK" => {
                pending.clear();
                self.is_in_transaction.set(false);
            }
            other => unreachable!("{other}"),
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        OPEN.set(OPEN.get() - 1);
    }
}

/// Goal: each caller learns the outcome of its own change, after it was committed.
fn callers_are_told_of_their_own_commit() {
    let committed = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::new(Writer::start(Connection::new(Arc::clone(&committed)), None).unwrap());
    let callers = [1, 2, 3, 4].map(|number| {
        let (writer, committed) = (Arc::clone(&writer), Arc::clone(&committed));
        thread::spawn(move || {
            let told = writer.write(Reach::Durable, move |connection| {
                connection.pending.borrow_mut().push(number);
                if number == 4 { Err(CatalogError::Refused) } else { Ok(number) }
            });
            let is_there = committed.lock().contains(&number);
            match told {
                Ok(own) => assert!(own == number && is_there, "{number} was told of {own}"),
                Err(CatalogError::Refused) => assert!(number == 4 && !is_there),
                Err(CatalogError::StorageFull) => assert!(!is_there, "{number} is there"),
                Err(other) => panic!("{other}"),
            }
        })
    });
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    assert_eq!(writer.counters.waiting.load(SeqCst), 0);
    drop(Arc::into_inner(writer).expect("all callers have ended"));
    assert_eq!(Arc::strong_count(&committed), 1, "the writer is still open");
}

/// Five readers, and changes of the file, one of which panics.
fn nobody_reads_a_file_that_changes() {
    (OPEN.set(0), CHANGES.set(0));
    let (readers, reading) =
        (Arc::new(Readers::new(Path::new("file"))), Arc::new(AtomicU64::new(0)));
    let all = || (Arc::clone(&readers), Arc::clone(&reading));
    let mut threads: Vec<_> = (0..5)
        .map(|_| {
            let (readers, reading) = all();
            thread::spawn(move || {
                let _ = readers.read(|connection| {
                    reading.fetch_add(1, SeqCst);
                    assert!(OPEN.get() <= 4, "{} connections", OPEN.get());
                    assert_eq!(connection.changes, CHANGES.get(), "it knows an earlier file");
                    reading.fetch_sub(1, SeqCst);
                    Ok(())
                });
            })
        })
        .collect();
    let (own, reading) = all();
    threads.push(thread::spawn(move || {
        for panics in [true, false] {
            let changed = catch_unwind(AssertUnwindSafe(|| {
                own.alone(|| {
                    assert_eq!((reading.load(SeqCst), OPEN.get()), (0, 0), "somebody reads");
                    CHANGES.set(CHANGES.get() + 1);
                    if panics {
                        resume_unwind(Box::new("on purpose"));
                    }
                })
            }));
            assert_eq!(changed.is_err(), panics);
        }
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Goal: a value that was read before a change is not cached after it.
fn a_cache_keeps_nothing_old() {
    let (cache, file) =
        (Arc::new(Cache::new(2).with_negative_entries()), Arc::new(AtomicU64::new(0)));
    let told = Arc::new(AtomicU64::new(0));
    let read = |cache: &Cache<u8, u64>, file: &AtomicU64, told: &AtomicU64| {
        let least = told.load(SeqCst);
        let load = || Ok(Some(file.load(SeqCst)).filter(|value| *value > 0));
        let value = cache.get_or_load(&1, load).unwrap().map_or(0, |value| *value);
        assert!(value >= least, "{value} after {least} was told");
    };
    let readers = [(); 2].map(|()| {
        let (cache, file, told) = (Arc::clone(&cache), Arc::clone(&file), Arc::clone(&told));
        thread::spawn(move || (0..3).for_each(|_| read(&cache, &file, &told)))
    });
    for value in 1..=2 {
        file.store(value, SeqCst);
        match is_chosen() {
            true => cache.forget(&1),
            false => cache.clear(),
        }
        told.store(value, SeqCst);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    read(&cache, &file, &told);
}

/// Two workers with the same loop as the product's, on a queue of numbers.
fn every_job_is_taken_and_workers_end() {
    let (signals, jobs) = (Arc::new(WorkSignals::default()), Arc::new(Mutex::new(VecDeque::new())));
    let (is_over, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let workers = [(); 2].map(|()| {
        let (signals, jobs) = (Arc::clone(&signals), Arc::clone(&jobs));
        let (is_over, taken) = (Arc::clone(&is_over), Arc::clone(&taken));
        thread::spawn(move || {
            let signal = signals.of(Duty::Process);
            while !is_over.load(SeqCst) {
                let begun = signal.changes();
                let job = jobs.lock().pop_front();
                match job {
                    Some(job) => taken.lock().push(job),
                    None => {
                        signal.found_nothing(begun, None);
                        signal.wait(Duration::from_secs(60), || Timestamp(0));
                    }
                }
            }
        })
    });
    for job in 0..3 {
        jobs.lock().push_back(job);
        signals.notify();
    }
    while taken.lock().len() < 3 {
        thread::yield_now();
    }
    is_over.store(true, SeqCst);
    signals.end();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

fn main() -> ExitCode {
    explore(&[
        Check::patient(
            "writer: callers are told of their own commit",
            callers_are_told_of_their_own_commit,
        ),
        Check::patient(
            "readers: nobody reads a file that changes",
            nobody_reads_a_file_that_changes,
        ),
        Check::patient("cache: it keeps nothing old", a_cache_keeps_nothing_old),
        Check::patient(
            "jobs: every one is taken, and workers end",
            every_job_is_taken_and_workers_end,
        ),
    ])
}
