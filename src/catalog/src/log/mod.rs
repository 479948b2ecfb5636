//! The log of the catalog in a blob store, so that another machine can go on when this one is lost.
//!
//! The writer sends what each group commit appended to SQLite's write-ahead log to the store before
//! it answers its callers. The store is the truth: the local file is what one process makes of it,
//! and whatever of it was not sent is forgotten at the next start.
//!
//! ```text
//! v1/catalog/<number>         entries, create-only, one after the other without a gap
//!   claim                     a process takes over; all of the one before it is below
//!   frames                    bytes of the write-ahead log: lap, offset
//!   base                      a copy of the file, and the first entry to apply to it
//! v1/catalog.base/<claim>-<id>  copies of the file, compressed
//!
//! restore   newest entry -> its base -> copy of the file -> laps of frames, each folded in
//! write     BEGIN ... COMMIT -> read the end of the write-ahead log -> put_create -> answers
//! fold      write-ahead log > 4 MiB and all sent -> checkpoint: the next lap begins
//! shorten   frames > max(16 MiB, file) or too many entries -> checkpoint -> copy of the file (in
//!           the background; no checkpoint meanwhile, so the file does not change) -> base -> what
//!           is older goes, except claims
//! ```
//!
//! # One writer
//! Safety needs no clock and no lease, only that of all that want to create a key one wins, and
//! that a listing shows every key that was created before it and not removed.
//! - A process claims at the first free number, and then appends at its last number + 1, always.
//! - The newest entry is never removed: only what lies below a stored base goes.
//! - Claims are never removed.
//! - A process lists once more after it has claimed. If its claim is the newest entry, nothing was
//!   ever stored above it. Otherwise its number had been used and removed between the first listing
//!   and the claim; nobody reads a claim there, and it claims anew.
//!
//! Let `n` be the newest entry of a process Z when its successor claims. Nothing is above that
//! claim, so it is at `n + 1`, or processes came in between and the first of them has its claim
//! there: the first entry of any process is a claim, and there are no gaps. That claim stays for
//! ever. So whenever Z wakes up, its next create, of `n + 1`, finds another's entry, and Z is
//! fenced; it has no number further up to try. Hence nothing ever comes to be below a claim after
//! it was made, except at numbers that a base has made superfluous: what its process restores is
//! all that anybody before was told is stored.
//!
//! If claims were removed with the rest, a process that slept through its successor's claim *and*
//! its removal would create that number anew and acknowledge what nobody ever reads: a test shows
//! that. Claims cost an object of some 300 bytes for each start.
//!
//! Removal is safe whoever does it and however late: a restore uses the newest base, which needs
//! nothing below what any older base needs. Copies of the file have the number of their claim in
//! their name: a process removes those of its own claim and of earlier ones, which can get no entry
//! any more, and never one that a successor is making.
//!
//! # Errors of the store
//! An error of `put_create` leaves open whether the entry is there, so it is read back. If that
//! fails as well, the very same bytes are sent again before anything else: whichever attempt
//! arrives, the number holds this entry or another's. Callers learn that the outcome is unknown;
//! later ones are refused before anything is written, until the store answers again.
//!
//! # What is visible when
//! Reads see local commits, also those that wait for the store. Only writes are promised.
//!
//! Modules:
//! - `entry`: names and bytes; `limits`: sizes
//! - `appender`: claims and entries of one process; `reader`: entries in their order
//! - `wal`: the committed end of the write-ahead log
//! - `ship`: the part of the writer's thread; `base`: copies of the file and removal
//! - `restore`: the file from the log alone; `state`: measurements, and a look for a successor
//! - `follow`, `pages`: a file that follows the log of another process

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
use reader::{FETCHES, Plan, claim_of, fetch, newest, numbers};
use ship::Start;

/// Times that a restore begins anew because the log was shortened under its hands.
const RESTORES_MAX: usize = 5;

/// The log of a catalog in a blob store, not taken over yet.
#[derive(Debug)]
pub struct CatalogLog {
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    limits: LogLimits,
    is_empty: bool,
}

impl CatalogLog {
    /// Looks at the log in `store`. Changes nothing, and disturbs no process that appends to it.
    ///
    /// # Errors
    /// [`CatalogError::TooNew`] where a newer release has taken it over before;
    /// [`CatalogError::Corrupt`] names a damaged entry; [`CatalogError::LogAway`].
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

    /// Whether it holds no catalog yet. The first one that is opened with it becomes its base.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Reads every entry, those that no restore needs too, and returns their number. That none is
    /// missing, and that they follow each other, is checked by whoever reads the state from them.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] names a damaged entry; [`CatalogError::LogAway`].
    pub fn verify(&self) -> Result<usize> {
        let numbers = numbers(&*self.store)?;
        for some in numbers.chunks(FETCHES) {
            for entry in fetch(&self.store, some) {
                // One that is gone was removed since it was listed.
                entry?;
            }
        }
        Ok(numbers.len())
    }

    /// Makes the file `path` from the log as it is now, without taking it over: another process may
    /// go on appending. Replaces no file, except one that an attempt before left.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] names the key of what is missing or damaged, or says that the log
    /// is empty; nothing is left at `path` then. [`CatalogError::LogAway`].
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

    /// Whether another base was made since the entry `last` was the newest.
    fn has_moved(&self, last: u64) -> bool {
        let newest = newest(&*self.store).ok().flatten();
        newest.is_some_and(|(number, label)| base_at(number, &label).is_some_and(|at| at > last))
    }

    /// Takes the log over and, where it holds a catalog, puts that in the place of the file at
    /// `path`. From now on the process before can store nothing. `waits`: whether followers are
    /// waited for.
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

/// Number of the newest base at the entry `number`.
fn base_at(number: u64, label: &Label) -> Option<u64> {
    match label.kind {
        Kind::Base(_) => Some(number),
        Kind::Claim { .. } | Kind::Frames(_) => Some(label.base).filter(|base| *base != 0),
    }
}

/// A log that this process has taken over; the local file is its state.
#[derive(Debug)]
pub(crate) struct Claimed {
    start: Start,
}

impl Claimed {
    /// Sends what a migration changed, or the whole file where the log is empty.
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

/// Gives the restored file the name `path`. A file of that name gets the suffix `.replaced`, with
/// its write-ahead log: it may belong to another store than this process was told.
fn replace(path: &Path, fresh: &Path) -> Result<()> {
    let replaced = beside(path, ".replaced");
    // Where there is none, an attempt before has moved it, perhaps without its write-ahead log.
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
