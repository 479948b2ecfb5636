//! The catalog's log in a blob store, from which another machine can take over if this one is lost.
//!
//! Before it answers its callers, the writer sends everything that a group commit appended to
//! SQLite's write-ahead log to the store. The store is authoritative: the local file is one
//! process's materialisation of it, and whatever was not sent is discarded at the next start.
//!
//! ```text
//! v1/catalog/<number>         entries, create-only, numbered without gaps
//!   claim                     a process takes over; its predecessor's entries are all below
//!   frames                    bytes of the write-ahead log: lap, offset
//!   base                      a copy of the file, and the first entry to apply to it
//! v1/catalog.base/<claim>-<id>  copies of the file, compressed
//!
//! restore   newest entry -> its base -> copy of the file -> laps of frames, each checkpointed
//! write     BEGIN ... COMMIT -> read the tail of the write-ahead log -> put_create -> answers
//! fold      write-ahead log > 4 MiB and all sent -> checkpoint: the next lap begins
//! shorten   frames > max(16 MiB, file) or too many entries -> checkpoint -> copy of the file (in
//!           the background, without checkpoints, so that the file does not change) -> base ->
//!           older entries are removed, except claims
//! ```
//!
//! # Single writer
//! Safety depends on no clock and no lease, only on two properties of the store: of all processes
//! that try to create a key exactly one wins, and a listing shows every key created before it and
//! not removed.
//! - A process claims the first free number, and from then on always appends at its last number +
//!   1.
//! - The newest entry is never removed: only entries below a stored base are.
//! - Claims are never removed.
//! - After claiming, a process lists once more. If its claim is the newest entry, nothing was ever
//!   stored above it. Otherwise its number had been used and removed between the first listing and
//!   the claim; nobody reads a claim there, and it claims anew.
//!
//! Let `n` be the newest entry of a process Z at the time its successor claims. Nothing is above
//! that claim, so it is at `n + 1`, or other processes came in between and the claim of the first
//! of them is at `n + 1`: the first entry of any process is a claim, and there are no gaps. That
//! claim stays forever. So whenever Z wakes up, its next create, of `n + 1`, finds another
//! process's entry and Z is fenced; it has no higher number to try. Hence nothing ever appears
//! below a claim after the claim was made, except at numbers that a base has made obsolete: what
//! the claiming process restores is everything that was ever acknowledged as stored.
//!
//! If claims were removed like other entries, a process that slept through both its successor's
//! claim *and* that claim's removal would create the number anew and acknowledge writes that nobody
//! ever reads; a test demonstrates this. Claims cost one object of some 300 bytes per start.
//!
//! Removal is safe whoever does it, however late: a restore uses the newest base, which needs
//! nothing below what any older base needs. Copies of the file carry the number of their claim in
//! their name. A process removes those of its own claim and of earlier ones, which can no longer
//! get an entry, and never one that a successor is making.
//!
//! # Errors of the store
//! An error of `put_create` leaves open whether the entry was stored, so it is read back. If that
//! fails too, the identical bytes are sent again before anything else: whichever attempt arrives,
//! the number holds this entry or another process's. The callers concerned learn that the outcome
//! is unknown; later callers are refused, before anything is written, until the store answers
//! again.
//!
//! # Visibility
//! Reads see local commits, including those that still wait for the store. Only acknowledged writes
//! are guaranteed.
//!
//! Modules:
//! - `entry`: keys and encoding; `limits`: sizes
//! - `appender`: claims and entries of one process; `reader`: reading entries in order
//! - `wal`: the committed tail of the write-ahead log
//! - `ship`: the writer thread's part; `base`: copies of the file, and removal
//! - `restore`: rebuilding the file from the log alone; `state`: measurements and detection of a
//!   successor
//! - `follow`, `pages`: a local file that follows the log of another process

mod appender;
mod base;
mod entry;
mod follow;
mod limits;
mod pages;
mod reader;
mod restore;
mod ship;
mod state;
#[cfg(test)]
mod tests;
mod wal;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

pub(crate) use follow::{LogFollower, Polled};
pub(crate) use ship::Shipper;
pub use state::LogState;
pub(crate) use state::LogWatch;

use crate::Catalog;
use crate::error::{CatalogError, Result};
use appender::Appender;
use entry::{Kind, Label};
use limits::LogLimits;
use lodestone_io::store::BlobStore;
use lodestone_types::{Clock, IdSource};
use reader::{FETCHES, Plan, claim_of, fetch, newest, newest_writer, numbers};
use ship::Start;
use uuid::Uuid;

/// Maximum number of attempts at a restore while the log is being shortened concurrently.
const RESTORES_MAX: usize = 5;

/// A catalog's log in a blob store, not taken over yet.
#[derive(Debug)]
pub struct CatalogLog {
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    limits: LogLimits,
    is_empty: bool,
}

impl CatalogLog {
    /// Unique name of the process that last took over the log, if one has.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn newest_writer(&self) -> Result<Option<Uuid>> {
        newest_writer(&*self.store)
    }

    /// Inspects the log in `store`. Changes nothing and does not disturb a process that appends to
    /// it.
    ///
    /// # Errors
    /// [`CatalogError::TooNew`] if a newer release has taken it over before;
    /// [`CatalogError::Corrupt`] for a damaged entry; [`CatalogError::LogAway`].
    pub fn open(store: Arc<dyn BlobStore>, ids: Arc<dyn IdSource>) -> Result<Self> {
        let newest = newest(&*store)?;
        if let Some((_, label)) = &newest {
            let claim = claim_of(&*store, label)?;
            let key = entry::key(label.claim);
            let Some(Label { kind: Kind::Claim { format, .. }, .. }) = claim else {
                return Err(entry::damaged(&key, "there is no claim of this number"));
            };
            if format > Catalog::format() {
                return Err(CatalogError::TooNew {
                    path: PathBuf::from(key.as_str()),
                    found: format as i64,
                    supported: Catalog::format() as i64,
                });
            }
        }
        let is_empty = newest.is_none_or(|(number, label)| base_at(number, &label).is_none());
        Ok(Self { store, ids, limits: LogLimits::default(), is_empty })
    }

    /// Whether the log holds no catalog yet. The first catalog opened with it becomes its base.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Reads and checks every entry, including those that no restore needs, and returns their
    /// number. Completeness and order are checked by whoever reconstructs the state.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] for a damaged entry; [`CatalogError::LogAway`].
    pub fn verify(&self) -> Result<usize> {
        let numbers = numbers(&*self.store)?;
        for some in numbers.chunks(FETCHES) {
            for entry in fetch(&self.store, some) {
                // An entry that is gone was removed after it was listed.
                entry?;
            }
        }
        Ok(numbers.len())
    }

    /// Builds the file `path` from the log as it is now, without taking over: another process may
    /// go on appending. Replaces no file, except one left by an earlier attempt.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] with the key of what is missing or damaged, or if the log is
    /// empty; nothing is left at `path` then. [`CatalogError::LogAway`].
    pub fn restore_to(&self, path: &Path) -> Result<()> {
        let mut tries = 1;
        loop {
            let newest = newest(&*self.store)?;
            let (last, label) = newest.ok_or_else(|| CatalogError::corrupt("the log is empty"))?;
            let restored = Plan::new(&*self.store, last, &label).and_then(|plan| {
                let plan = plan.ok_or_else(|| CatalogError::corrupt("the log has no base yet"))?;
                restore::restore(&self.store, &plan, path)
            });
            match restored {
                Err(CatalogError::Corrupt { .. })
                    if tries < RESTORES_MAX && self.has_moved(last) =>
                {
                    tries += 1;
                }
                result => return result.map(drop),
            }
        }
    }

    /// Whether another base was made after `last` was the newest entry.
    fn has_moved(&self, last: u64) -> bool {
        let newest = newest(&*self.store).ok().flatten();
        newest.is_some_and(|(number, label)| base_at(number, &label).is_some_and(|at| at > last))
    }

    /// Takes over the log and, if it holds a catalog, replaces the file at `path` with it. From now
    /// on the previous process cannot store anything. `waits` says whether this process will wait
    /// for followers.
    pub(crate) fn take_over(self, path: &Path, waits: bool) -> Result<Claimed> {
        let format = Catalog::format();
        let (appender, before) = Appender::claim(&self.store, &self.ids, format, waits)?;
        let plan = match &before {
            Some(label) => Plan::new(&*self.store, appender.claim - 1, label)?,
            None => None,
        };
        let Some(plan) = plan else {
            let start = Start { appender, limits: self.limits, base: None, bytes: 0, lap: 0 };
            return Ok(Claimed { start });
        };
        let fresh = beside(path, ".restored");
        let end = restore::restore(&self.store, &plan, &fresh)?;
        replace(path, &fresh)?;
        let (bytes, lap) = (end.bytes, end.lap);
        let start = Start { appender, limits: self.limits, base: Some(plan.base), bytes, lap };
        Ok(Claimed { start })
    }
}

/// Number of the newest base as of entry `number`.
fn base_at(number: u64, label: &Label) -> Option<u64> {
    match label.kind {
        Kind::Base(_) => Some(number),
        Kind::Claim { .. } | Kind::Frames(_) => Some(label.base).filter(|base| *base != 0),
    }
}

/// A log that this process has taken over; the local file reflects its state.
#[derive(Debug)]
pub(crate) struct Claimed {
    start: Start,
}

impl Claimed {
    /// Sends the changes of a migration, or the whole file if the log is empty.
    pub(crate) fn begin(
        self,
        connection: &Connection,
        path: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Shipper> {
        Shipper::new(self.start, connection, path, clock)
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Moves the restored file to `path`. An existing file and its write-ahead log are kept with the
/// suffix `.replaced`: the file may belong to a store other than the one configured now.
fn replace(path: &Path, fresh: &Path) -> Result<()> {
    let replaced = beside(path, ".replaced");
    // If there is none, an earlier attempt has moved it, perhaps without its write-ahead log.
    if fs::exists(path).map_err(restore::local(path))? {
        Catalog::remove_left_over(&replaced)?;
    }
    for suffix in ["", "-wal"] {
        let (old, kept) = (beside(path, suffix), beside(&replaced, suffix));
        match fs::rename(&old, &kept) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(restore::local(&old)(error));
            }
            _ => {}
        }
    }
    Catalog::remove_left_over(path)?;
    let moved = || {
        fs::rename(fresh, path)?;
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    moved().map_err(restore::local(path))
}
