//! A read-only catalog that follows the catalog of another process.
//!
//! The writing process waits [`FOLLOWERS_MILLIS`] before it acknowledges a change to anybody. A
//! follower whose last poll of the log began more recently than that may answer: it has seen every
//! change that was acknowledged before the request arrived. Clocks of different machines are never
//! compared; only their rates matter.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::error::{CatalogError, Result};
use super::log::{CatalogLog, LogFollower, Polled};
use super::open::Parts;
use super::writer::Writer;
use super::{Catalog, CatalogOptions};
use lodestone_types::limits::FOLLOWERS_MILLIS;
use lodestone_types::{Clock, IdSource, Timestamp};

/// Lease check of a writing process: returns the reason why another process may have taken the
/// lease, if there is one.
pub type LeaseCheck = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Interval between checks whether followers have seen a change.
const PAUSE: Duration = Duration::from_millis(20);

/// The position of a follower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowState {
    /// Number of the newest log entry known here.
    pub entry: u64,
    /// Milliseconds since it was last known that there is no newer entry.
    pub age_millis: u64,
    /// Name of the writing process; see [`Catalog::writer_name`].
    pub writer: Uuid,
    /// Whether the writer waits for followers; if not, this follower does not answer requests.
    pub is_waited_for: bool,
    /// The error of the last poll of the log.
    pub last_error: Option<String>,
    /// Whether that error was a log format of a later release.
    pub is_later: bool,
}

/// State of a follower.
pub(super) struct Following {
    follower: Mutex<LogFollower>,
    seen: Mutex<Seen>,
}

/// Result of the polls of the log so far.
struct Seen {
    entry: u64,
    writer: Uuid,
    is_waited_for: bool,
    /// When the last completed poll began, by two clocks: one stands still while the machine
    /// sleeps, the other may be set back.
    began: (Instant, Timestamp),
    last_error: Option<String>,
    is_later: bool,
}

impl Seen {
    fn age_millis(&self, clock: &dyn Clock) -> u64 {
        let (by_instant, at) = self.began;
        let by_clock = clock.now().0.saturating_sub(at.0);
        (by_instant.elapsed().as_millis() as u64).max(by_clock)
    }
}

impl Catalog {
    /// Builds the file at `path` from the log and opens it read-only, while another process keeps
    /// writing; [`Self::catch_up`] applies what that process has done since.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if the log is empty or damaged; [`CatalogError::TooNew`] or
    /// [`CatalogError::TooOld`] if the writer runs another release; [`CatalogError::LogAway`].
    pub fn follow(
        path: &Path,
        options: CatalogOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        log: &CatalogLog,
    ) -> Result<Self> {
        let began = (Instant::now(), clock.now());
        let follower = LogFollower::start(log, path)?;
        let (entry, writer) = (follower.last(), follower.writer());
        let is_waited_for = follower.waits();
        let (last_error, is_later) = Default::default();
        let seen = Seen { entry, writer, is_waited_for, began, last_error, is_later };
        let following = Following { follower: Mutex::new(follower), seen: Mutex::new(seen) };
        Ok(Self::assembled(Parts {
            path,
            writer: Writer::refusing(),
            log: None,
            following: Some(following),
            options,
            clock,
            ids,
            is_recovered: false,
        }))
    }

    /// Applies what the writer has done since. Returns whether anything has changed; does nothing
    /// in a catalog that writes itself.
    ///
    /// # Errors
    /// Those of [`Self::follow`]; the next call tries again.
    pub fn catch_up(&self) -> Result<bool> {
        let Some(following) = &self.inner.following else { return Ok(false) };
        let mut follower = following.follower.lock();
        let began = (Instant::now(), self.inner.clock.now());
        let caught_up = self.follow_to_end(&mut follower);
        let mut seen = following.seen.lock();
        seen.last_error = caught_up.as_ref().err().map(ToString::to_string);
        seen.is_later = matches!(caught_up, Err(CatalogError::TooNew { .. }));
        if caught_up.is_ok() {
            (seen.entry, seen.writer) = (follower.last(), follower.writer());
            seen.is_waited_for = follower.waits();
            seen.began = began;
        }
        caught_up
    }

    /// Whether the process of this name writes to the followed log, even if it runs a later
    /// release, of whose log nothing else can be read.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn is_written_by(&self, name: Uuid) -> Result<bool> {
        let Some(following) = &self.inner.following else { return Ok(false) };
        Ok(following.follower.lock().newest_writer()? == Some(name))
    }

    fn follow_to_end(&self, follower: &mut LogFollower) -> Result<bool> {
        let readers = &self.inner.readers;
        match follower.poll()? {
            Polled::Same => return Ok(false),
            Polled::Commits => readers.alone(|| follower.apply())?,
            Polled::Shortened => {
                let anew = follower.anew()?;
                readers.alone(|| anew.install())?;
                *follower = anew;
            }
        }
        self.inner.tenants.clear();
        self.inner.keys.clear();
        Ok(true)
    }

    /// Installs the check that [`Self::require_current`] performs in a writing process. Only the
    /// first call has an effect.
    pub fn set_lease_check(&self, check: LeaseCheck) {
        let _is_first = self.inner.lease_check.set(check);
    }

    /// Fails if this process may lack a change that was already acknowledged to somebody, because
    /// it is a follower or because another process may have taken its lease.
    ///
    /// # Errors
    /// [`CatalogError::Behind`].
    pub fn require_current(&self) -> Result<()> {
        let Some(state) = self.follow_state() else {
            let doubt = self.inner.lease_check.get().and_then(|check| check());
            return doubt.map_or(Ok(()), |cause| Err(CatalogError::Behind { cause }));
        };
        let FollowState { age_millis, is_waited_for, last_error, .. } = state;
        let cause = match is_waited_for {
            true if age_millis < FOLLOWERS_MILLIS => return Ok(()),
            true => last_error.unwrap_or_else(|| format!("it is {age_millis} ms behind")),
            false => "the writer does not wait for query nodes: start it with --with-query-nodes"
                .to_owned(),
        };
        Err(CatalogError::Behind { cause })
    }

    /// The position of a follower; `None` in a catalog that writes.
    pub fn follow_state(&self) -> Option<FollowState> {
        let seen = self.inner.following.as_ref()?.seen.lock();
        Some(FollowState {
            entry: seen.entry,
            writer: seen.writer,
            age_millis: seen.age_millis(&*self.inner.clock),
            is_waited_for: seen.is_waited_for,
            last_error: seen.last_error.clone(),
            is_later: seen.is_later,
        })
    }

    /// Blocks until every follower has seen a change that is visible here and was made at
    /// `changed`.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`] and other errors of a write: the change may not have reached the
    /// store.
    pub fn await_followers(&self, changed: Timestamp) -> Result<()> {
        let (delay, clock) = (self.followers_delay(), &*self.inner.clock);
        let log = self.inner.log.as_ref().filter(|_| !delay.is_zero());
        let Some(log) = log.filter(|log| changed >= log.known_before(clock)) else {
            return Ok(());
        };
        // An empty write, queued behind everything visible, as commits made here may still wait for
        // the store.
        self.write(|_| Ok(()))?;
        let stored = Instant::now();
        while changed >= log.known_before(clock) && !log.is_all_known(clock) {
            let rest = delay.saturating_sub(stored.elapsed());
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(PAUSE));
        }
        Ok(())
    }

    /// The moment before which all changes are known to every follower; the end of time without
    /// followers.
    pub(super) fn known_before(&self) -> Timestamp {
        let log = self.inner.log.as_ref().filter(|_| self.inner.options.has_followers);
        log.map_or(Timestamp(u64::MAX), |log| log.known_before(&*self.inner.clock))
    }

    /// The delay between a change and the moment by which every follower has seen it; zero without
    /// followers.
    pub fn followers_delay(&self) -> Duration {
        match self.inner.options.has_followers {
            true => Duration::from_millis(FOLLOWERS_MILLIS),
            false => Duration::ZERO,
        }
    }
}
