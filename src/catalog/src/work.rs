//! In-memory state of the queue: signals for workers, change counters, and the stages of claimed
//! jobs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::job::Duty;
use crate::meters::JobMeters;
use lodestone_types::{Progress, Sequence, Stage, Timestamp};

/// Number of change counters.
const COUNTERS: usize = 4096;

#[derive(Debug)]
struct Seen {
    /// Number of changes that may have made a job claimable.
    changes: u64,
    /// The value of `changes` when a claim last found nothing.
    idle_at: u64,
    /// When the next job waiting for its retry is due.
    due_at: Option<Timestamp>,
    /// Whether all waits have ended, for shutdown.
    is_over: bool,
}

/// Wakes workers. A change between an empty claim and the wait that follows it is not lost, since
/// the wait compares counters.
#[derive(Debug)]
pub(super) struct WorkSignal {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Default for WorkSignal {
    fn default() -> Self {
        // One change is pending initially: the file may hold work from an earlier run.
        let seen = Seen { changes: 1, idle_at: 0, due_at: None, is_over: false };
        Self { seen: Mutex::new(seen), changed: Condvar::new() }
    }
}

impl WorkSignal {
    pub(super) fn notify(&self) {
        self.seen.lock().changes += 1;
        self.changed.notify_all();
    }

    /// Ends all waits, including later ones.
    fn end(&self) {
        self.seen.lock().is_over = true;
        self.changed.notify_all();
    }

    pub(super) fn changes(&self) -> u64 {
        self.seen.lock().changes
    }

    /// Records that a claim, begun when the counter was `changes`, found no job.
    pub(super) fn found_nothing(&self, changes: u64, due_at: Option<Timestamp>) {
        let mut seen = self.seen.lock();
        if changes >= seen.idle_at {
            seen.idle_at = changes;
            seen.due_at = due_at;
        }
    }

    /// Blocks until there may be work, at most for `timeout`; returns whether there may be work.
    pub(super) fn wait(&self, timeout: Duration, now: impl Fn() -> Timestamp) -> bool {
        let deadline = Instant::now() + timeout;
        let mut seen = self.seen.lock();
        loop {
            let due_in = seen.due_at.map(|due| due.0.saturating_sub(now().0));
            if seen.is_over || seen.changes != seen.idle_at || due_in == Some(0) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let pause = due_in.map_or(left, |millis| left.min(Duration::from_millis(millis)));
            self.changed.wait_for(&mut seen, pause);
        }
    }
}

/// One signal per duty, so that a worker of one duty does not clear the signal of the other.
#[derive(Debug, Default)]
pub(super) struct WorkSignals {
    process: WorkSignal,
    fetch: WorkSignal,
}

impl WorkSignals {
    pub(super) fn of(&self, duty: Duty) -> &WorkSignal {
        match duty {
            Duty::Process => &self.process,
            Duty::Fetch => &self.fetch,
        }
    }

    pub(super) fn notify(&self) {
        self.process.notify();
        self.fetch.notify();
    }

    /// Ends all current and future waits.
    pub(super) fn end(&self) {
        self.process.end();
        self.fetch.end();
    }
}

/// Change counters, shared by the sources whose hashes collide: enough of them that a source is
/// rarely affected by another, in constant memory for any number of sources.
pub(super) struct Changes(Box<[AtomicU64]>);

impl Default for Changes {
    fn default() -> Self {
        Self((0..COUNTERS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Changes {
    fn counter(&self, source: &str) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        source.hash(&mut hasher);
        &self.0[hasher.finish() as usize % COUNTERS]
    }

    pub(super) fn of(&self, source: &str) -> u64 {
        self.counter(source).load(Ordering::SeqCst)
    }

    pub(super) fn note(&self, source: &str) {
        self.counter(source).fetch_add(1, Ordering::SeqCst);
    }
}

/// Progress of claimed jobs. Its size is bounded by the number of jobs in progress.
#[derive(Debug, Default)]
pub(super) struct Stages {
    jobs: Mutex<HashMap<Sequence, Running>>,
    pub(super) meters: JobMeters,
}

/// A claimed job and the start of its current stage.
#[derive(Debug, Clone, Copy)]
struct Running {
    progress: Progress,
    since: Instant,
}

impl Stages {
    pub(super) fn begin(&self, sequences: impl Iterator<Item = Sequence>) {
        let mut jobs = self.jobs.lock();
        let progress = Progress { stage: Stage::Validating, chunks_done: 0, chunks: 0 };
        let begun = Running { progress, since: Instant::now() };
        for sequence in sequences {
            if jobs.insert(sequence, begun).is_none() {
                self.meters.begin(Stage::Validating);
            }
        }
    }

    /// Sets the stage of claimed jobs; ignores jobs that have ended or were cancelled.
    pub(super) fn set(&self, sequences: &[Sequence], stage: Stage) {
        let mut jobs = self.jobs.lock();
        for sequence in sequences {
            let changed = jobs.get_mut(sequence).filter(|known| known.progress.stage != stage);
            if let Some(known) = changed {
                self.meters.leave(known.progress.stage, known.since);
                (known.progress.stage, known.since) = (stage, Instant::now());
                self.meters.begin(stage);
            }
        }
    }

    pub(super) fn set_chunks(&self, sequence: Sequence, chunks_done: u32, chunks: u32) {
        if let Some(Running { progress, .. }) = self.jobs.lock().get_mut(&sequence) {
            (progress.chunks_done, progress.chunks) = (chunks_done, chunks);
        }
    }

    /// Removes ended jobs; returns how many of them were claimed.
    pub(super) fn end(&self, sequences: impl Iterator<Item = Sequence>) -> u64 {
        let mut jobs = self.jobs.lock();
        let ended = sequences.filter_map(|sequence| jobs.remove(&sequence));
        ended.map(|known| self.meters.leave(known.progress.stage, known.since)).count() as u64
    }

    /// Removes jobs that a deletion has cancelled.
    pub(super) fn cancel(&self, sequences: &[Sequence]) {
        self.meters.cancelled(self.end(sequences.iter().copied()));
    }

    pub(super) fn get(&self, sequence: Sequence) -> Option<Progress> {
        self.jobs.lock().get(&sequence).map(|known| known.progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn a_change_after_an_empty_claim_is_not_lost() {
        let signal = WorkSignal::default();
        assert!(signal.wait(Duration::ZERO, || NOW), "the first claim is always worth trying");
        let begun = signal.changes();
        signal.notify();
        signal.found_nothing(begun, None);
        assert!(signal.wait(Duration::ZERO, || NOW));
        signal.found_nothing(signal.changes(), None);
        assert!(!signal.wait(Duration::ZERO, || NOW));
        // A claim begun before the last one says nothing about later changes.
        signal.found_nothing(begun, Some(NOW));
        assert!(!signal.wait(Duration::ZERO, || NOW));
    }

    /// Goal: a stop during a claim is not missed by the wait that follows the claim.
    #[test]
    fn nobody_waits_after_the_end() {
        let signals = WorkSignals::default();
        signals.end();
        let signal = signals.of(Duty::Fetch);
        signal.found_nothing(signal.changes(), None);
        assert!(signal.wait(Duration::from_secs(60), || NOW));
    }

    #[test]
    fn a_due_retry_is_work() {
        let signal = WorkSignal::default();
        signal.found_nothing(signal.changes(), Some(Timestamp(1_500)));
        assert!(!signal.wait(Duration::ZERO, || NOW));
        assert!(signal.wait(Duration::ZERO, || Timestamp(1_500)));
    }

    #[test]
    fn a_waiting_worker_is_woken() {
        let signal = WorkSignal::default();
        signal.found_nothing(signal.changes(), None);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Duration::from_secs(60), || NOW));
            signal.notify();
            assert!(waiter.join().unwrap());
        });
    }
}
