//! Keeps the store up to date from the writer thread: sends what a commit appended to the
//! write-ahead log and, occasionally, a copy of the file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::appender::Appender;
use super::base::{self, Background, Copied, Done, Garbage};
use super::entry::{self, Base, Kind};
use super::limits::{BYTES_PER_ENTRY, LogLimits};
use super::restore::local;
use super::state::LogWatch;
use super::wal::WalTail;
use crate::error::{CatalogError, Result};
use crate::open::BUSY_TIMEOUT;
use crate::rows::Statements;
use lodestone_io::store::Key;
use lodestone_types::{Clock, Timestamp};

/// Interval between attempts to reach an unreachable store; writes in between are refused at once.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Entries before a base that readers of an older state prevented is tried again.
const BASE_PAUSE_ENTRIES: u64 = 8;
/// Interval between checks on the background work.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// A position in the log.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Number of the first entry after it.
    entry: u64,
    /// Bytes of frames before it.
    bytes: u64,
}

/// A copy of the file in progress, from the checkpoint before it until its entry is stored.
#[derive(Debug)]
struct Copying {
    /// Position at which the copy is made.
    here: Mark,
    /// Position from which frames have to be applied to it.
    mark: Mark,
    /// Whether that is the start of a lap whose frames the copy already contains.
    is_early: bool,
    /// The finished copy, once its entry is being stored.
    copied: Option<Copied>,
}

/// State of the log when a process starts, for [`Shipper::new`].
#[derive(Debug)]
pub(super) struct Start {
    pub(super) appender: Appender,
    pub(super) limits: LogLimits,
    /// The newest base, the bytes to be applied to it, and the lap after which this process begins.
    pub(super) base: Option<Base>,
    pub(super) bytes: u64,
    pub(super) lap: u64,
}

/// Sends commits to the store. All calls come from the writer thread.
#[derive(Debug)]
pub(crate) struct Shipper {
    appender: Appender,
    wal: WalTail,
    limits: LogLimits,
    clock: Arc<dyn Clock>,
    /// Kept open: closing any descriptor of the file would release SQLite's locks on it.
    database: Arc<File>,
    /// Bytes of frames sent, counted from an arbitrary position.
    bytes: u64,
    /// The start of the current lap, once it has frames in the store.
    lap: Option<Mark>,
    /// Position from which a restore applies frames to the newest base.
    base: Mark,
    /// Position at which that base was copied: the same, or a later one in the same lap.
    copied: Mark,
    base_bytes: u64,
    /// Nothing obsolete is left below this number.
    collected: u64,
    /// Bytes of the current lap at which it is checkpointed.
    checkpoint_at: u64,
    /// Number of the entry before which no base is attempted.
    base_after: u64,
    background: Background,
    copying: Option<Copying>,
    /// Time and error of the last attempt, while something is waiting.
    away: Option<(Timestamp, String)>,
}

impl Shipper {
    /// Starts from the file at `path`, open in `connection`: either it is the state at the end of
    /// the log plus whatever a migration has committed since, or it becomes the first base.
    pub(super) fn new(
        start: Start,
        connection: &Connection,
        path: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let Start { appender, limits, base, bytes, lap } = start;
        let first = base.as_ref().map_or(appender.next(), |base| base.first);
        let mut shipper = Self {
            wal: WalTail::new(path, lap, limits.piece_bytes),
            limits,
            clock,
            database: Arc::new(File::open(path).map_err(local(path))?),
            bytes,
            lap: None,
            base: Mark { entry: first, bytes: 0 },
            copied: Mark { entry: first, bytes: 0 },
            base_bytes: base.as_ref().map_or(0, |base| base.bytes),
            collected: base.as_ref().map_or(1, |base| base.collected),
            checkpoint_at: limits.checkpoint_bytes,
            base_after: 0,
            background: Background::default(),
            copying: None,
            away: None,
            appender,
        };
        if base.is_none() {
            shipper.first_base(connection)?;
        }
        shipper.ship(connection)?;
        // All earlier commits are in the store.
        shipper.appender.watch.note_stored(&*shipper.clock, true);
        Ok(shipper)
    }

    /// Returns the shared state of the log, for those who monitor it.
    pub(crate) fn watch(&self) -> Arc<LogWatch> {
        Arc::clone(&self.appender.watch)
    }

    /// Checkpoints the whole write-ahead log into the file and sends the file.
    fn first_base(&mut self, connection: &Connection) -> Result<()> {
        if checkpoint(connection, "TRUNCATE")? != Folded::Emptied {
            return Err(CatalogError::corrupt("the catalog is in use by another process"));
        }
        let mark = self.here();
        let blob = entry::base_key(self.appender.claim, &*self.appender.ids);
        let copied =
            base::copy(&*self.appender.store, blob, &self.database, &base::Stop::default())?;
        self.copying = Some(Copying { here: mark, mark, is_early: false, copied: None });
        self.append_base(copied)
    }

    /// Time after which [`Self::maintain`] should be called even if nobody writes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        match (&self.away, self.background.is_busy()) {
            (Some(_), _) => Some(RETRY_PAUSE),
            (None, true) => Some(LOOK_PAUSE),
            (None, false) => None,
        }
    }

    /// Stores everything that is waiting, as a precondition for writing.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`], [`CatalogError::Fenced`].
    pub(crate) fn catch_up(&mut self, connection: &Connection) -> Result<()> {
        if self.appender.watch.is_fenced() {
            return Err(CatalogError::Fenced);
        }
        if let Some((tried_at, cause)) = &self.away {
            let since = self.clock.now().0.checked_sub(tried_at.0);
            if since.is_some_and(|millis| u128::from(millis) < RETRY_PAUSE.as_millis()) {
                return Err(CatalogError::LogAway { cause: cause.clone() });
            }
            self.ship(connection)?;
        }
        self.appender.watch.note_writing(&*self.clock);
        Ok(())
    }

    /// Sends everything that is committed.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`] if something is left waiting; the next attempt begins with it.
    /// [`CatalogError::Fenced`] if it was not stored and nothing ever will be.
    pub(crate) fn ship(&mut self, connection: &Connection) -> Result<()> {
        let before = self.appender.next();
        let shipped = self.ship_all(connection);
        if shipped.is_ok() {
            let is_new = self.appender.next() > before;
            self.appender.watch.note_stored(&*self.clock, is_new);
        }
        self.away = match &shipped {
            Err(CatalogError::LogAway { cause }) => Some((self.clock.now(), cause.clone())),
            _ => None,
        };
        let waiting = self.appender.pending_bytes() + self.wal.waiting();
        let error = shipped.as_ref().err().map(ToString::to_string);
        self.appender.watch.note(|state| {
            state.entries_since_base = self.appender.next() - self.base.entry;
            state.bytes_since_base = self.bytes - self.base.bytes;
            state.base_bytes = self.base_bytes;
            state.bytes_waiting = waiting;
            state.last_error = error;
            state.is_fenced |= matches!(shipped, Err(CatalogError::Fenced));
        });
        shipped
    }

    fn ship_all(&mut self, connection: &Connection) -> Result<()> {
        self.appender.flush()?;
        if let Some(Copying { here, mark, copied: Some(copied), .. }) =
            self.copying.take_if(|copying| copying.copied.is_some())
        {
            (self.base, self.copied, self.base_bytes) = (mark, here, copied.bytes);
            self.collect(copied.blob);
        }
        let committed = committed_frames(connection)?;
        while let Some(piece) = self.wal.next(committed).map_err(|error| {
            CatalogError::corrupt(format!("the write-ahead log could not be read: {error}"))
        })? {
            if piece.place.offset == 0 {
                self.begin_lap();
            }
            self.bytes += piece.place.bytes;
            self.appender.append(Kind::Frames(piece.place), &piece.bytes)?;
        }
        Ok(())
    }

    fn here(&self) -> Mark {
        Mark { entry: self.appender.next(), bytes: self.bytes }
    }

    fn begin_lap(&mut self) {
        let mark = self.here();
        (self.lap, self.checkpoint_at) = (Some(mark), self.limits.checkpoint_bytes);
        if let Some(copying) = &mut self.copying
            && std::mem::take(&mut copying.is_early)
        {
            copying.mark = mark;
        }
    }

    /// Checkpoints the log, and begins or completes copies of the file. Called after every batch,
    /// and after [`Self::pause`] (`has_waited`); callers of the catalog do not wait for it.
    ///
    /// # Errors
    /// Errors after which nothing may be written.
    pub(crate) fn maintain(&mut self, connection: &Connection, has_waited: bool) -> Result<()> {
        if self.away.is_some() {
            return match has_waited {
                true => unless_away(self.ship(connection)),
                false => Ok(()),
            };
        }
        match self.background.done() {
            Some(Done::Copied(Ok(copied))) => {
                // If the entry could not be stored, it goes with the next attempt, right away.
                unless_away(self.append_base(copied))?;
                unless_away(self.ship(connection))?;
            }
            Some(Done::Copied(Err(error))) => {
                tracing::warn!(%error, "storing a copy of the catalog failed: its log grows");
                self.appender.watch.note(|state| state.last_error = Some(error.to_string()));
                self.copying = None;
                self.base_after = self.appender.next() + self.limits.base_entries / 8;
            }
            Some(Done::Collected(Ok(until))) => self.collected = until,
            Some(Done::Collected(Err(error))) => {
                tracing::warn!(%error, "removing old parts of the catalog's log failed");
            }
            None => {}
        }
        if self.away.is_some() || self.background.is_busy() {
            return Ok(());
        }
        if self.is_base_due() {
            return self.begin_base(connection);
        }
        if self.wal.offset() >= self.checkpoint_at {
            // If readers are in the way, retry a little later.
            let step = match checkpoint(connection, "PASSIVE")? {
                Folded::Emptied | Folded::Whole => self.limits.checkpoint_bytes,
                Folded::Partly => self.limits.checkpoint_bytes / 4,
            };
            self.checkpoint_at = self.wal.offset() + step;
        }
        Ok(())
    }

    fn is_base_due(&self) -> bool {
        let here = self.here();
        let (bytes, entries) = (here.bytes - self.copied.bytes, here.entry - self.copied.entry);
        let entries_max = self.limits.base_entries.max(self.base_bytes / BYTES_PER_ENTRY);
        let is_due = bytes > self.limits.base_bytes.max(self.base_bytes) || entries > entries_max;
        is_due && here.entry >= self.base_after
    }

    /// Begins a copy of the file. After a full checkpoint the file does not change until the next
    /// one. If readers keep the log from being truncated, the lap continues: a restore then applies
    /// it from its start, because its later frames need the earlier ones; reapplying those changes
    /// nothing.
    fn begin_base(&mut self, connection: &Connection) -> Result<()> {
        // Do not wait for readers.
        connection.busy_timeout(Duration::ZERO)?;
        let folded = checkpoint(connection, "TRUNCATE");
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let here = self.here();
        let (mark, is_early) = match (folded?, self.lap) {
            (Folded::Whole, Some(lap)) => (lap, true),
            (Folded::Emptied | Folded::Whole, _) => (here, false),
            (Folded::Partly, _) => {
                self.base_after = here.entry + BASE_PAUSE_ENTRIES;
                return Ok(());
            }
        };
        self.copying = Some(Copying { here, mark, is_early, copied: None });
        let (store, file) = (Arc::clone(&self.appender.store), Arc::clone(&self.database));
        let blob = entry::base_key(self.appender.claim, &*self.appender.ids);
        self.background.start(move |stop| Done::Copied(base::copy(&*store, blob, &file, stop)));
        Ok(())
    }

    /// Appends the entry of a copy that is in the store.
    fn append_base(&mut self, copied: Copied) -> Result<()> {
        let copying = self.copying.as_mut().expect("started a copy of the catalog");
        let base = Base {
            blob: copied.blob.as_str().to_owned(),
            bytes: copied.bytes,
            sha256: copied.sha256.clone(),
            first: copying.mark.entry,
            collected: self.collected,
        };
        copying.copied = Some(copied);
        self.appender.append(Kind::Base(base), &[])
    }

    /// Removes what the newest base, whose copy is `keep`, makes obsolete.
    fn collect(&mut self, keep: Key) {
        let (claim, from, until) = (self.appender.claim, self.collected, self.base.entry);
        let garbage = Garbage { claim, from, until, keep };
        let store = Arc::clone(&self.appender.store);
        self.background.start(move |stop| {
            Done::Collected(garbage.collect(&*store, stop).map(|()| garbage.until))
        });
    }
}

/// Filters out an unreachable store; other errors forbid further writes.
fn unless_away(shipped: Result<()>) -> Result<()> {
    match shipped {
        Err(CatalogError::LogAway { .. }) => Ok(()),
        other => other,
    }
}

/// Number of frames in the write-ahead log up to the last commit.
fn committed_frames(connection: &Connection) -> Result<u64> {
    let sql = "PRAGMA wal_checkpoint(NOOP)";
    connection.one(sql, [], |cells| {
        let _is_busy: bool = cells.next()?;
        cells.number()
    })
}

/// Outcome of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folded {
    /// The whole log is in the file, and the next frame starts a new lap. Never after `PASSIVE`.
    Emptied,
    /// The whole log is in the file.
    Whole,
    /// Only a part of the log is in the file, because a reader needs an older state.
    Partly,
}

/// Checkpoints the write-ahead log into the file.
///
/// # Errors
/// Errors after which nothing may be written. A full disk is not one: the log stays as it is.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> Result<Folded> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let outcome = connection.query_row(&sql, [], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    match outcome.map_err(CatalogError::from) {
        Ok((false, 0, 0)) if mode == "TRUNCATE" => Ok(Folded::Emptied),
        // Both are -1 if another process is running a checkpoint.
        Ok((_, frames, folded)) if frames == folded && frames >= 0 => Ok(Folded::Whole),
        Ok(_) => Ok(Folded::Partly),
        Err(error) if error.is_poisoning() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "checkpointing the catalog's write-ahead log failed");
            Ok(Folded::Partly)
        }
    }
}
