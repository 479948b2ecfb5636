//! The state of the log, for operators and background threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::entry::{self, Entry, damaged};
use super::reader::get;
use crate::error::Result;
use lodestone_io::store::BlobStore;
use lodestone_types::limits::FOLLOWERS_MILLIS;
use lodestone_types::{Clock, Timestamp};

/// The state of a catalog's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    /// Number of this process's newest entry.
    pub entry: u64,
    /// Entries since the newest copy of the file; a restore fetches each of them.
    pub entries_since_base: u64,
    /// Bytes of those entries before compression.
    pub bytes_since_base: u64,
    /// Bytes of the newest copy of the file before compression.
    pub base_bytes: u64,
    /// Committed bytes not yet in the store. While there are any, nothing new is written.
    pub bytes_waiting: u64,
    /// The last error of the store, until an entry is stored or a copy is made.
    pub last_error: Option<String>,
    /// Whether another process has taken over, so that this one can never write again.
    pub is_fenced: bool,
}

/// The state of the log, shared between the writer and its observers.
#[derive(Debug)]
pub(crate) struct LogWatch {
    store: Arc<dyn BlobStore>,
    /// Number of this process's claim.
    claim: u64,
    /// Nonce of the claim, unique to this process.
    name: Uuid,
    state: Mutex<LogState>,
    pub(super) stored: Mutex<Stored>,
}

/// Times at which everything committed was in the store.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The newest of these times that every follower has caught up with.
    known: Timestamp,
    /// The later ones, in order, each with the moment at which it was noted.
    pub(super) recent: VecDeque<(Instant, Timestamp)>,
    /// Whether something may be committed locally that is not in the store.
    is_writing: bool,
    /// The last reading of the clock.
    read: Timestamp,
}

impl Stored {
    /// Settles what followers have had their time for, and returns the time. The clock may be set:
    /// followers get their time by another one, and once it was set back, changes carry earlier
    /// times than those stored before them, so these times no longer tell what is known.
    fn settle(&mut self, clock: &dyn Clock) -> Timestamp {
        let now = clock.now();
        if now < self.read {
            self.known = Timestamp::default();
            self.recent.iter_mut().for_each(|(_, at)| *at = Timestamp::default());
        }
        self.read = now;
        let time = Duration::from_millis(FOLLOWERS_MILLIS);
        while self.recent.front().is_some_and(|(noted, _)| noted.elapsed() >= time) {
            self.known = self.recent.pop_front().map_or(self.known, |(_, at)| at);
        }
        now
    }
}

impl LogWatch {
    pub(super) fn new(store: Arc<dyn BlobStore>, claim: u64, name: Uuid) -> Self {
        let state = LogState { entry: claim, ..LogState::default() };
        Self { store, claim, name, state: Mutex::new(state), stored: Mutex::default() }
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut LogState)) {
        change(&mut self.state.lock());
    }

    /// Records that something is about to be committed.
    pub(super) fn note_writing(&self, clock: &dyn Clock) {
        let mut stored = self.stored.lock();
        stored.settle(clock);
        stored.is_writing = true;
    }

    /// Records that everything committed is in the store; `is_new` if some of it was stored just
    /// now.
    pub(super) fn note_stored(&self, clock: &dyn Clock, is_new: bool) {
        let mut stored = self.stored.lock();
        let now = stored.settle(clock);
        stored.is_writing = false;
        if is_new {
            stored.recent.push_back((Instant::now(), now));
        }
    }

    /// The time before which all changes are known to every follower. A change gets its time within
    /// its transaction, and the next transaction begins only once this one is stored.
    pub(crate) fn known_before(&self, clock: &dyn Clock) -> Timestamp {
        let mut stored = self.stored.lock();
        let now = stored.settle(clock);
        // The last change before a quiet period may carry the very time at which it was stored.
        match stored.recent.is_empty() && !stored.is_writing {
            true => stored.known.max(now),
            false => stored.known,
        }
    }

    /// Whether followers know of everything stored so far.
    pub(crate) fn is_all_known(&self, clock: &dyn Clock) -> bool {
        let mut stored = self.stored.lock();
        stored.settle(clock);
        stored.recent.is_empty()
    }

    pub(crate) fn claim(&self) -> u64 {
        self.claim
    }

    pub(crate) fn name(&self) -> Uuid {
        self.name
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.state.lock().is_fenced
    }

    pub(crate) fn state(&self) -> LogState {
        self.state.lock().clone()
    }

    /// Checks for a successor, whose claim follows this process's newest entry. `false` guarantees
    /// that there was none when this call began.
    pub(crate) fn check_fence(&self) -> Result<bool> {
        let (next, is_fenced) = {
            let state = self.state.lock();
            (state.entry + 1, state.is_fenced)
        };
        if is_fenced {
            return Ok(true);
        }
        // One of our own entries may be stored without the writer having recorded it yet. A second
        // one was sent after the first was recorded, so after this call began.
        for number in [next, next + 1] {
            let key = entry::key(number);
            let Some(bytes) = get(&*self.store, &key)? else { return Ok(false) };
            if entry::is_of_other_format(&bytes) {
                break;
            }
            let found = Entry::decode(&bytes).map_err(|problem| damaged(&key, problem))?;
            match found.label.claim == self.claim {
                true if number > next => return Ok(false),
                true => {}
                false => break,
            }
        }
        self.note(|state| state.is_fenced = true);
        Ok(true)
    }
}
