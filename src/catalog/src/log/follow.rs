//! A local copy of the catalog file, kept up to date from the log that another process writes.
//!
//! ```text
//! start   newest base -> copy of the file -> entries up to the newest one -> pages of commits
//! poll    entry n + 1? -> its commits -> their pages -> the file, once nobody reads it
//!                   none -> entry n is still there: it is the newest one
//!                           entry n is gone too: the log was shortened; start anew
//! ```
//!
//! # No entry is missed
//! Entries are removed in ascending order; claims and the newest entry are never removed. A poll
//! looks for n + 1 first and for n second. If n + 1 is absent, and n is present and not a claim,
//! then n + 1 had not been removed, so it did not exist. If n is a claim, its presence proves
//! nothing, and the log is listed instead. Number n cannot meanwhile have come to name another
//! entry: only a process that was succeeded could write it again, and the claim of its successor
//! occupies the first number after its entries.
//!
//! A read of the file is as fresh as the start of the last completed poll.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{self, Kind, Label, damaged};
use super::pages::{Commits, read_in_place};
use super::reader::{
    Apply, End, FETCHES, Order, Plan, away, entry_at, frames_of, label_at, newest, newest_writer,
    numbers,
};
use super::restore::{fetch_base, local};
use super::{CatalogLog, RESTORES_MAX, beside};
use crate::error::{CatalogError, Result};
use crate::{Catalog, migrations, readers};
use lodestone_io::store::BlobStore;
use lodestone_types::ErrorKind;
use uuid::Uuid;

/// Reading position in a log that another process appends to.
#[derive(Debug)]
pub(super) struct Cursor {
    store: Arc<dyn BlobStore>,
    /// Number of the newest entry read.
    last: u64,
    order: Order,
    waits: bool,
    /// Nonce of the claim in force, which identifies the writing process.
    writer: Uuid,
}

/// Outcome of a poll that read as far as it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollEnd {
    /// There was no further entry when the poll looked for it.
    UpToDate,
    /// The log was shortened: the entry after the last one read is gone.
    Shortened,
}

impl Cursor {
    /// Creates a cursor positioned after the last entry of a plan that was read to its end.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if the claim in force is missing; [`CatalogError::LogAway`].
    pub(super) fn behind(store: &Arc<dyn BlobStore>, plan: &Plan, end: &End) -> Result<Self> {
        let mut order = end.order;
        let (waits, writer) = match label_at(&**store, order.claim)? {
            Some(Label { kind: Kind::Claim { waits, .. }, nonce, .. }) => (waits, nonce),
            _ => return Err(damaged(&entry::key(order.claim), "there is no claim of this number")),
        };
        // Entries do not know of later bases.
        order.newest_base = u64::MAX;
        Ok(Self { store: Arc::clone(store), last: plan.last, order, waits, writer })
    }

    /// Passes the frames of all further entries to `apply`.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] for an entry that violates a rule; [`CatalogError::TooNew`] if a
    /// process of a later release has taken over the log; [`CatalogError::LogAway`].
    pub(super) fn poll(&mut self, apply: &mut Apply<'_>) -> Result<PollEnd> {
        loop {
            while self.step(apply)? {}
            match self.is_end()? {
                Some(true) => return Ok(PollEnd::UpToDate),
                Some(false) => {}
                None => return Ok(PollEnd::Shortened),
            }
        }
    }

    /// Reads the next entry; returns false if there is none.
    pub(super) fn step(&mut self, apply: &mut Apply<'_>) -> Result<bool> {
        let number = self.last + 1;
        let Some(entry) = entry_at(&*self.store, number)? else { return Ok(false) };
        let key = entry::key(number);
        let (mut waits, mut writer) = (self.waits, self.writer);
        if let Kind::Claim { format, waits: says } = entry.label.kind {
            if format > Catalog::format() {
                let (path, found, supported) =
                    (PathBuf::from(key.as_str()), format as i64, Catalog::format() as i64);
                return Err(CatalogError::TooNew { path, found, supported });
            }
            (waits, writer) = (says, entry.label.nonce);
        }
        let mut order = self.order;
        order.check(number, &entry.label).map_err(|what| damaged(&key, what))?;
        if let Some((place, bytes)) = frames_of(number, &entry)? {
            apply(place, &bytes)?;
        }
        (self.order, self.last) = (order, number);
        (self.waits, self.writer) = (waits, writer);
        Ok(true)
    }

    /// Whether the last entry read is the newest; `None` if it has been removed.
    fn is_end(&self) -> Result<Option<bool>> {
        if self.order.claim == self.last {
            let listed = numbers(&*self.store)?;
            return Ok(match listed.last() {
                Some(newest) if *newest == self.last => Some(true),
                _ => listed.contains(&(self.last + 1)).then_some(false),
            });
        }
        match self.store.len(&entry::key(self.last)) {
            Ok(_) => Ok(Some(true)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(away(error)),
        }
    }
}

/// A local copy of the catalog file that follows a log.
#[derive(Debug)]
pub(crate) struct LogFollower {
    cursor: Cursor,
    path: PathBuf,
    commits: Commits,
    /// Whether a write to the file failed, which makes the file unusable.
    is_lost: bool,
}

/// Result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    /// Nothing new.
    Same,
    /// There are commits to apply.
    Commits,
    /// Entries the follower has not read were removed: it has to start anew.
    Shortened,
}

impl LogFollower {
    /// Builds the file at `path` from the log as it is now, replacing an older one.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if something is missing or damaged, or the log is empty;
    /// [`CatalogError::TooNew`] or [`CatalogError::TooOld`] if the writing process runs another
    /// release; [`CatalogError::LogAway`].
    pub(crate) fn start(log: &CatalogLog, path: &Path) -> Result<Self> {
        let started = Self::started(&log.store, path)?;
        started.install()?;
        Ok(started)
    }

    /// Builds a new follower from the log as it is now. Its file is written next to the current
    /// one, which [`Self::install`] replaces.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub(crate) fn anew(&self) -> Result<Self> {
        Self::started(&self.cursor.store, &self.path)
    }

    /// Replaces the previous follower's file, which nobody may read meanwhile.
    ///
    /// # Errors
    /// Errors of the disk.
    pub(crate) fn install(&self) -> Result<()> {
        Catalog::remove_left_over(&self.path)?;
        std::fs::rename(fresh(&self.path), &self.path).map_err(local(&self.path))
    }

    fn started(store: &Arc<dyn BlobStore>, path: &Path) -> Result<Self> {
        let mut tries = 1;
        loop {
            let newest = newest(&**store)?;
            let (last, label) = newest.ok_or_else(|| CatalogError::corrupt("the log is empty"))?;
            let built = Plan::new(&**store, last, &label).and_then(|plan| {
                let plan = plan.ok_or_else(|| CatalogError::corrupt("the log has no base yet"))?;
                Self::build(store, &plan, path)
            });
            match built {
                // The log may have been shortened in the meantime.
                Err(CatalogError::Corrupt { .. }) if tries < RESTORES_MAX => tries += 1,
                built => return built,
            }
        }
    }

    fn build(store: &Arc<dyn BlobStore>, plan: &Plan, path: &Path) -> Result<Self> {
        let fresh = fresh(path);
        Catalog::remove_left_over(&fresh)?;
        fetch_base(&**store, &plan.base, &fresh)?;
        read_in_place(&fresh)?;
        let mut commits = Commits::default();
        let end = plan.read(store, FETCHES, &mut |place, bytes| {
            commits.add(place, bytes)?;
            commits.write(&fresh)
        })?;
        require_own_format(&fresh)?;
        let (cursor, path) = (Cursor::behind(store, plan, &end)?, path.to_owned());
        Ok(Self { cursor, path, commits, is_lost: false })
    }

    /// Number of the newest entry read.
    pub(crate) fn last(&self) -> u64 {
        self.cursor.last
    }

    /// Unique name of the writing process.
    pub(crate) fn writer(&self) -> Uuid {
        self.cursor.writer
    }

    /// Unique name of the process that last took over the log, even if this release cannot read its
    /// entries.
    pub(crate) fn newest_writer(&self) -> Result<Option<Uuid>> {
        newest_writer(&*self.cursor.store)
    }

    /// Whether the writing process waits for followers before acknowledging a change.
    pub(crate) fn waits(&self) -> bool {
        self.cursor.waits
    }

    /// Reads new entries.
    ///
    /// # Errors
    /// Those of [`Cursor::poll`].
    pub(crate) fn poll(&mut self) -> Result<Polled> {
        let Self { cursor, commits, .. } = self;
        if self.is_lost
            || cursor.poll(&mut |place, bytes| commits.add(place, bytes))? == PollEnd::Shortened
        {
            return Ok(Polled::Shortened);
        }
        Ok(match commits.is_ready() {
            true => Polled::Commits,
            false => Polled::Same,
        })
    }

    /// Writes the commits read so far to the file, which nobody may read meanwhile. On an error the
    /// file is removed, and the next poll returns [`Polled::Shortened`].
    ///
    /// # Errors
    /// Errors of the disk.
    pub(crate) fn apply(&mut self) -> Result<()> {
        self.commits.write(&self.path).inspect_err(|_| {
            self.is_lost = true;
            // If removal fails, the file still has its old length; at worst SQLite finds it
            // damaged.
            let _ = Catalog::remove_left_over(&self.path);
        })
    }
}

/// Path of the file under construction, next to `path`.
fn fresh(path: &Path) -> PathBuf {
    beside(path, ".following")
}

/// Rejects a file that this release would have to migrate, since its writer would not understand
/// the result.
fn require_own_format(path: &Path) -> Result<()> {
    let found = migrations::format(&readers::connect(path)?, path)?;
    match found == Catalog::format() {
        true => Ok(()),
        false => Err(CatalogError::TooOld { found, needed: Catalog::format() }),
    }
}
