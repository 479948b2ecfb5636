//! The state of the log as operators and background threads see it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::entry::{self, Entry, damaged};
use super::reader::get;
use crate::error::Result;
use lodestone_io::store::BlobStore;
use lodestone_types::Timestamp;
use lodestone_types::limits::FOLLOWERS_MILLIS;

/// State of a catalog's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    /// Number of the newest entry of this process.
    pub entry: u64,
    /// Entries since the newest copy of the file: a restore fetches each of them.
    pub entries_since_base: u64,
    /// Bytes of these entries, before compression.
    pub bytes_since_base: u64,
    /// Bytes of the newest copy of the file, before compression.
    pub base_bytes: u64,
    /// Committed bytes that are not in the store yet. Nothing is written while there are any.
    pub bytes_waiting: u64,
    /// The last error of the store, until an entry is stored or a copy is made.
    pub last_error: Option<String>,
    /// Whether another process has taken over: this one can never write again.
    pub is_fenced: bool,
}

/// The state, shared by the writer and those who ask for it.
#[derive(Debug)]
pub(crate) struct LogWatch {
    store: Arc<dyn BlobStore>,
    /// Number of the claim of this process.
    claim: u64,
    /// Nonce of the claim: no other process has it.
    name: Uuid,
    state: Mutex<LogState>,
    stored: Mutex<Stored>,
}

/// Times at which all that was committed was in the store.
#[derive(Debug, Default)]
struct Stored {
    /// The newest one of which every follower knows.
    known: Timestamp,
    /// Later ones, in their order.
    recent: VecDeque<Timestamp>,
    /// Whether something may be committed here that is not in the store.
    is_writing: bool,
}

impl Stored {
    fn settle(&mut self, now: Timestamp) {
        while self.recent.front().is_some_and(|at| at.0 + FOLLOWERS_MILLIS <= now.0) {
            self.known = self.recent.pop_front().unwrap_or(self.known);
        }
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

    /// Notes that something is about to be committed.
    pub(super) fn note_writing(&self) {
        self.stored.lock().is_writing = true;
    }

    /// Notes that all that is committed is in the store; `is_new`: that some of it came just now.
    pub(super) fn note_stored(&self, now: Timestamp, is_new: bool) {
        let mut stored = self.stored.lock();
        stored.settle(now);
        stored.is_writing = false;
        if is_new {
            stored.recent.push_back(now);
        }
    }

    /// Every follower knows of changes that were made before this time. A change has its time
    /// within its transaction, and the next transaction begins when this one is stored.
    pub(crate) fn known_before(&self, now: Timestamp) -> Timestamp {
        let mut stored = self.stored.lock();
        stored.settle(now);
        // The last change before a quiet time may have the time at which it was stored.
        match stored.recent.is_empty() && !stored.is_writing {
            true => stored.known.max(now),
            false => stored.known,
        }
    }

    /// Whether followers know of everything that was ever stored.
    pub(crate) fn is_all_known(&self, now: Timestamp) -> bool {
        let mut stored = self.stored.lock();
        stored.settle(now);
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

    /// Whether a successor has come: its claim is behind the newest own entry. `false` says that
    /// none had when this began.
    pub(crate) fn check_fence(&self) -> Result<bool> {
        let (next, is_fenced) = {
            let state = self.state.lock();
            (state.entry + 1, state.is_fenced)
        };
        if is_fenced {
            return Ok(true);
        }
        // One own entry may be stored that its writer has not noted yet. A second one was sent
        // after the first was noted, so after this began.
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
