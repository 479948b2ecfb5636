//! The memory budget of the process. Work that would exceed the limit waits, and the log says so.
//!
//! ```text
//! limit = idle process + connections + kept filters + shares of requests, answers, claims
//! ```
//! A request with a large input holds a share while it is processed, but not while its client sends
//! or reads. One request can always proceed, however little memory is left.
//!
//! A worker reserves the bytes that its claim may take before it reads an original. It waits as
//! long as the memory of the process, all reservations and its own request together exceed the
//! limit. A reservation is counted twice once its memory is in use, which errs on the safe side.
//! One claim can always proceed, however little is left. Smaller claims pass a waiting one, but
//! only while claims are still running that came before it; then they queue behind it, so that
//! nothing starves. A merge takes what is left, up to a share of the limit; a merge that would take
//! more is planned smaller.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::ingest::Stopping;
use lodestone_extract::PIXELS_MAX;
use lodestone_extract::sandbox::MEMORY_BYTES_MAX;
use lodestone_io::MemoryGauge;
use lodestone_types::{ResultMemory, metadata};

/// Interval at which a waiting worker checks the memory of the process.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that every claim takes: texts, the vectors of a slice, a segment of a few megabytes.
const CLAIM_BYTES: u64 = 32 << 20;
/// Bytes per byte of an original: the original, its text, its chunks, the passages for the model,
/// and 1.5 KiB of vector for every 700 bytes of text.
const BYTES_PER_BYTE: u64 = 7;
/// Bytes per entry of the columns under construction. A value takes one entry, a key part two.
const BYTES_PER_ENTRY: u64 = 200;
/// Bytes per byte of metadata: a two-byte part of a key takes two entries.
const BYTES_PER_METADATA_BYTE: u64 = BYTES_PER_ENTRY;
/// Bytes of the child process that parses a document: the program itself, plus a multiple of the
/// document's length, up to the memory limit of that process.
const PARSER_BYTES: u64 = 48 << 20;
const PARSER_BYTES_PER_BYTE: u64 = 16;

/// Bytes to reserve for a claim, given the size and the metadata bytes of each original. Originals
/// are parsed one after the other.
pub(super) fn claim_bytes(originals: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (mut all, mut all_metadata, mut largest) = (0_u64, 0_u64, 0);
    for (bytes, metadata) in originals {
        all = all.saturating_add(bytes);
        all_metadata = all_metadata.saturating_add(metadata);
        largest = bytes.max(largest);
    }
    let parser = PARSER_BYTES.saturating_add(largest.saturating_mul(PARSER_BYTES_PER_BYTE));
    CLAIM_BYTES
        .saturating_add(all.saturating_mul(BYTES_PER_BYTE))
        .saturating_add(all_metadata.saturating_mul(BYTES_PER_METADATA_BYTE))
        .saturating_add(parser.min(MEMORY_BYTES_MAX))
}

/// Upper bound of the bytes that a metadata map takes in columns under construction.
pub(crate) fn column_bytes(counts: metadata::Counts) -> u64 {
    (2 * counts.key_parts + counts.values) as u64 * BYTES_PER_ENTRY
}

/// Bytes per pixel of an image: with alpha channel, without, and encoded.
const BYTES_PER_PIXEL: u64 = 8;

/// Bytes to reserve for rendering a page of an original of this length, which is read as a whole.
pub(crate) fn drawing_bytes(original: u64) -> u64 {
    let parser = PARSER_BYTES
        .saturating_add(original.saturating_mul(PARSER_BYTES_PER_BYTE))
        .saturating_add(PIXELS_MAX as u64 * BYTES_PER_PIXEL);
    original.saturating_add(parser.min(MEMORY_BYTES_MAX))
}

/// Divisor of the memory limit that gives the most that a merge may take.
const MERGE_SHARE: u64 = 4;
/// Bytes that a merge may take without a limit, and in any case at most.
const MERGE_BYTES_MAX: u64 = 2 << 30;
/// Bytes that a merge may always take, so that small segments never pile up.
const MERGE_BYTES_MIN: u64 = 64 << 20;

/// The memory budget of the process. Without a limit nothing waits.
#[derive(Debug)]
pub struct MemoryBudget {
    gauge: Box<dyn MemoryGauge>,
    limit_bytes: Option<u64>,
    /// Bytes of the idle process, of its connections and of kept filters.
    base_bytes: u64,
    promised: Mutex<Promised>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Promised {
    requests: usize,
    bytes: u64,
    /// Number of claims so far; each claim is identified by its arrival number.
    claims: u64,
    running: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
}

/// Memory reserved for one claim or merge; released on drop.
#[derive(Debug)]
pub(super) struct Share<'a> {
    budget: &'a MemoryBudget,
    /// Number of the claim; `None` for a merge.
    claim: Option<u64>,
    bytes: u64,
}

/// Memory reserved for one request; released on drop.
#[derive(Debug)]
pub struct MemoryShare {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

/// Bytes that a result takes without a reservation.
const RESULT_BYTES_FREE: u64 = 4 << 20;
/// Least bytes that a growing result reserves at a time.
const RESULT_STEP: u64 = 8 << 20;

/// Memory reserved for the result of one request as it grows; released on drop.
#[derive(Debug)]
pub struct ResultShare {
    budget: Arc<MemoryBudget>,
    taken: Mutex<ResultTaken>,
}

#[derive(Debug, Default)]
struct ResultTaken {
    used: u64,
    reserved: u64,
    shares: Vec<MemoryShare>,
}

impl ResultShare {
    /// Prepares to reserve memory; small results need none.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        let taken = ResultTaken { reserved: RESULT_BYTES_FREE, ..ResultTaken::default() };
        Self { budget, taken: Mutex::new(taken) }
    }
}

impl ResultMemory for ResultShare {
    fn reserve(&self, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        let used = taken.used.saturating_add(bytes);
        if used > taken.reserved {
            let step = (used - taken.reserved).max(RESULT_STEP);
            let Some(share) = self.budget.take(step, Duration::ZERO) else { return false };
            taken.shares.push(share);
            taken.reserved = taken.reserved.saturating_add(step);
        }
        taken.used = used;
        true
    }
}

impl MemoryBudget {
    /// Creates a budget. The idle process, and `held_bytes` for connections and kept filters, are
    /// deducted from what requests may take.
    pub fn new(gauge: Box<dyn MemoryGauge>, limit_bytes: Option<u64>, held_bytes: u64) -> Self {
        let base_bytes = gauge.own_bytes().unwrap_or(0).saturating_add(held_bytes);
        Self {
            gauge,
            limit_bytes,
            base_bytes,
            promised: Mutex::default(),
            given_back: Condvar::new(),
        }
    }

    /// The limit in bytes, if there is one.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Private memory of the process in bytes; `None` if the system does not report it.
    pub fn own_bytes(&self) -> Option<u64> {
        self.gauge.own_bytes()
    }

    /// Bytes that work has reserved.
    pub fn reserved_bytes(&self) -> u64 {
        self.promised.lock().bytes
    }

    /// Reserves memory for a request; `None` if there is not enough within `wait`. Blocks.
    pub fn take(self: &Arc<Self>, bytes: u64, wait: Duration) -> Option<MemoryShare> {
        let deadline = Instant::now() + wait;
        let mut promised = self.promised.lock();
        while promised.requests > 0 && !self.has_room(&promised, bytes) {
            if self.given_back.wait_until(&mut promised, deadline).timed_out() {
                return None;
            }
        }
        promised.requests += 1;
        promised.bytes = promised.bytes.saturating_add(bytes);
        Some(MemoryShare { budget: Arc::clone(self), bytes })
    }

    fn has_room(&self, promised: &Promised, bytes: u64) -> bool {
        let wanted = self.base_bytes.saturating_add(promised.bytes).saturating_add(bytes);
        self.limit_bytes.is_none_or(|limit| wanted <= limit)
    }

    /// Whether ingest work is waiting for memory.
    pub(super) fn is_waiting(&self) -> bool {
        !self.promised.lock().waiting.is_empty()
    }

    /// Waits until `bytes` can be reserved for a claim; `None` if the server stops meanwhile.
    pub(super) fn share(&self, bytes: u64, stopping: &Stopping) -> Option<Share<'_>> {
        let mut promised = self.promised.lock();
        let claim = promised.claims;
        promised.claims += 1;
        while let Some(problem) = self.problem(&promised, claim, bytes) {
            if stopping.is_set() {
                promised.waiting.remove(&claim);
                return None;
            }
            if promised.waiting.is_empty() {
                let Shortage { limit_bytes, own_bytes } = problem;
                let message = "ingestion is waiting for memory";
                tracing::warn!(limit_bytes, own_bytes, wanted_bytes = bytes, message);
            }
            promised.waiting.insert(claim);
            self.given_back.wait_for(&mut promised, LOOK);
        }
        if promised.waiting.remove(&claim) && promised.waiting.is_empty() {
            tracing::info!("ingestion continues");
        }
        promised.running.insert(claim);
        promised.bytes = promised.bytes.saturating_add(bytes);
        // Those behind it may fit beside it.
        self.given_back.notify_all();
        Some(Share { budget: self, claim: Some(claim), bytes })
    }

    /// Bytes that a merge may take now: what is left, up to a fixed share of the limit, and always
    /// enough for small segments.
    pub(super) fn room_for_merge(&self) -> u64 {
        let Some(limit_bytes) = self.limit_bytes else { return MERGE_BYTES_MAX };
        let most = (limit_bytes / MERGE_SHARE).min(MERGE_BYTES_MAX);
        let taken = self.gauge.own_bytes().unwrap_or(0).saturating_add(self.promised.lock().bytes);
        limit_bytes.saturating_sub(taken).clamp(MERGE_BYTES_MIN.min(most), most)
    }

    /// Reserves memory for a merge that was planned for [`Self::room_for_merge`]. All claims but
    /// the first wait until there is memory beside it.
    pub(super) fn take_for_merge(&self, bytes: u64) -> Share<'_> {
        let mut promised = self.promised.lock();
        promised.bytes = promised.bytes.saturating_add(bytes);
        Share { budget: self, claim: None, bytes }
    }

    /// The shortage that makes a claim wait; `None` if it may proceed.
    fn problem(&self, promised: &Promised, claim: u64, bytes: u64) -> Option<Shortage> {
        let limit_bytes = self.limit_bytes?;
        let own_bytes = self.gauge.own_bytes()?;
        let wanted = own_bytes.saturating_add(promised.bytes).saturating_add(bytes);
        let is_short = !promised.running.is_empty() && wanted > limit_bytes;
        let must_wait = is_short || promised.is_behind(claim);
        must_wait.then_some(Shortage { limit_bytes, own_bytes })
    }
}

impl Promised {
    /// Whether a claim has to let an earlier one go first: one that is now only kept waiting by
    /// claims that came after it.
    fn is_behind(&self, claim: u64) -> bool {
        let first = self.waiting.first().filter(|first| **first < claim);
        first.is_some_and(|first| self.running.first().is_none_or(|running| running > first))
    }
}

struct Shortage {
    limit_bytes: u64,
    own_bytes: u64,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut promised = self.budget.promised.lock();
        promised.requests -= 1;
        promised.bytes = promised.bytes.saturating_sub(self.bytes);
        self.budget.given_back.notify_all();
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut promised = self.budget.promised.lock();
        if let Some(claim) = self.claim {
            promised.running.remove(&claim);
        }
        promised.bytes = promised.bytes.saturating_sub(self.bytes);
        self.budget.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Clone, Default)]
    struct Told(Arc<AtomicU64>);

    impl MemoryGauge for Told {
        fn own_bytes(&self) -> Option<u64> {
            Some(self.0.load(Ordering::SeqCst))
        }
    }

    /// Goal: small results cost nothing, large ones are counted as they grow, one alone always gets
    /// its first share, and everything is given back.
    #[test]
    fn results_reserve_memory_as_they_grow() {
        let budget = MemoryBudget::new(Box::new(Told::default()), Some(64 << 20), 0);
        let budget = Arc::new(budget);
        let small = ResultShare::new(Arc::clone(&budget));
        assert!((0..4).all(|_| small.reserve(1 << 20)));
        assert_eq!(budget.reserved_bytes(), 0);
        let large = ResultShare::new(Arc::clone(&budget));
        assert!((0..60).all(|_| large.reserve(1 << 20)));
        assert_eq!(budget.reserved_bytes(), 56 << 20);
        assert!(!large.reserve(16 << 20) && !small.reserve(16 << 20));
        assert!(small.reserve(8 << 20));
        drop(large);
        assert!(small.reserve(16 << 20));
        drop(small);
        assert_eq!(budget.reserved_bytes(), 0);
        let alone = ResultShare::new(budget);
        assert!(alone.reserve(1 << 30) && !alone.reserve(1 << 30));
    }

    #[test]
    fn the_process_that_reads_the_largest_document_counts() {
        let bytes = |originals: &[u64]| claim_bytes(originals.iter().map(|bytes| (*bytes, 0)));
        let small = bytes(&[1 << 10]);
        assert!(small > CLAIM_BYTES + PARSER_BYTES);
        // Parsers run one at a time: the second document costs its text, but no second process.
        assert_eq!(bytes(&[1 << 10, 1 << 10]) - small, BYTES_PER_BYTE << 10);
        let large = bytes(&[100 << 20]);
        assert_eq!(large, CLAIM_BYTES + (BYTES_PER_BYTE * (100 << 20)) + MEMORY_BYTES_MAX);
        assert_eq!(bytes(&[u64::MAX, u64::MAX]), u64::MAX);
        let with_metadata = claim_bytes([(1 << 10, 1 << 16)].into_iter());
        assert_eq!(with_metadata - small, BYTES_PER_METADATA_BYTE << 16);
    }

    #[test]
    fn one_claim_always_goes_on_and_others_wait_for_it() {
        let own = Told::default();
        own.0.store(1 << 40, Ordering::SeqCst);
        let budget = MemoryBudget::new(Box::new(own.clone()), Some(1 << 30), 0);
        let stopping = Stopping::default();
        let first = budget.share(100 << 20, &stopping).expect("the first never waits");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.share(CLAIM_BYTES, &stopping).is_some());
            while !budget.is_waiting() {
                std::thread::yield_now();
            }
            drop(first);
            assert!(second.join().unwrap());
        });
        assert!(!budget.is_waiting());
    }

    /// Goal: a claim that needs to be alone is neither passed forever, nor does it hold others up
    /// while it could not run anyway.
    #[test]
    fn claims_pass_a_larger_one_until_it_waits_for_them_alone() {
        let budget = MemoryBudget::new(Box::new(Told::default()), Some(1 << 30), 0);
        let stopping = Stopping::default();
        let share = |bytes| budget.share(bytes, &stopping).unwrap();
        let wait_for = |waiting: usize| {
            while budget.promised.lock().waiting.len() != waiting {
                std::thread::yield_now();
            }
        };
        let before = share(CLAIM_BYTES);
        std::thread::scope(|scope| {
            let large = scope.spawn(|| share(1 << 30));
            wait_for(1);
            let passing = share(CLAIM_BYTES);
            drop(before);
            let later = scope.spawn(|| share(CLAIM_BYTES));
            while budget.promised.lock().waiting.len() < 2 {
                assert!(!later.is_finished(), "it has passed as well");
                std::thread::yield_now();
            }
            drop(passing);
            let large = large.join().unwrap();
            wait_for(1);
            drop(large);
            drop(later.join().unwrap());
        });
        let left = budget.promised.lock();
        assert!(left.running.is_empty() && left.waiting.is_empty() && left.bytes == 0);
    }

    #[test]
    fn room_that_the_process_makes_is_noticed_and_a_stop_ends_the_wait() {
        let own = Told::default();
        own.0.store(1 << 30, Ordering::SeqCst);
        let budget = MemoryBudget::new(Box::new(own.clone()), Some(1 << 30), 0);
        let stopping = Stopping::default();
        let first = budget.share(CLAIM_BYTES, &stopping).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.share(CLAIM_BYTES, &stopping).is_some());
            while !budget.is_waiting() {
                std::thread::yield_now();
            }
            own.0.store(1 << 20, Ordering::SeqCst);
            assert!(second.join().unwrap(), "the second fits beside the first now");
        });
        own.0.store(1 << 30, Ordering::SeqCst);
        stopping.set();
        assert!(budget.share(CLAIM_BYTES, &stopping).is_none());
        drop(first);
    }

    /// Goal: requests share what the idle process and the connections leave; one can always
    /// proceed, and one that finds no memory is refused.
    #[test]
    fn requests_share_what_is_left() {
        let own = Told::default();
        own.0.store(100, Ordering::SeqCst);
        let budget = Arc::new(MemoryBudget::new(Box::new(own.clone()), Some(1000), 300));
        let take = |bytes| budget.take(bytes, Duration::ZERO);
        let large = take(5000).expect("the first always goes on");
        assert!(take(1).is_none());
        drop(large);
        let half = take(400).unwrap();
        assert!(take(201).is_none());
        let rest = take(200).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take(200, Duration::from_secs(600)).is_some());
            drop(rest);
            assert!(waiting.join().unwrap());
        });
        drop(half);
        assert_eq!(budget.promised.lock().bytes, 0);
    }

    #[test]
    fn a_merge_takes_its_share_of_what_is_left_and_claims_wait_beside_it() {
        let own = Told::default();
        let budget = MemoryBudget::new(Box::new(own.clone()), Some(1 << 30), 0);
        assert_eq!(budget.room_for_merge(), 256 << 20);
        own.0.store((1 << 30) - (100 << 20), Ordering::SeqCst);
        assert_eq!(budget.room_for_merge(), 100 << 20);
        let merge = budget.take_for_merge(90 << 20);
        assert_eq!(budget.room_for_merge(), MERGE_BYTES_MIN);
        let stopping = Stopping::default();
        let first = budget.share(CLAIM_BYTES, &stopping).expect("the first never waits");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.share(CLAIM_BYTES, &stopping).is_some());
            while !budget.is_waiting() {
                std::thread::yield_now();
            }
            own.0.store(1 << 20, Ordering::SeqCst);
            drop((merge, first));
            assert!(second.join().unwrap());
        });
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let budget = MemoryBudget::new(Box::new(Told(Arc::new(AtomicU64::new(u64::MAX)))), None, 0);
        let stopping = Stopping::default();
        let shares = [u64::MAX, 7, 1 << 40].map(|bytes| budget.share(bytes, &stopping));
        assert!(shares.iter().all(Option::is_some) && !budget.is_waiting());
        assert_eq!(budget.room_for_merge(), MERGE_BYTES_MAX);
    }
}
