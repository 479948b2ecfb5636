//! Backups of a running server, on request or on schedule.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::format::BackupManifest;
use super::{
    BackupError, Listed, Location, Opener, Pace, TakeOptions, TakeParts, list, prune, take,
};
use crate::EngineError;
use crate::ingest::stopping::{Stopping, is_due};
use crate::ingest::{Ingest, IngestError};
use crate::settings::BackupSettings;
use lodestone_catalog::{Catalog, Tenant, descriptors};
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{BucketError, Pause};
use lodestone_io::store::{DeletionHold, HeldBlobs};
use lodestone_io::{Fullness, SpaceGauge, run_in_background};
use lodestone_storage::collection::{CollectionError, layout, uploads};
use lodestone_types::{Clock, CollectionId, Timestamp};

/// Longest wait between two checks of the clock, since the clock may be set.
const LOOK: Duration = Duration::from_secs(30);
/// Time after which a failed scheduled backup is retried.
const RETRY: Duration = Duration::from_secs(600);

/// Interval between attempts to open a tenant that another thread is opening.
const OPEN_PAUSE: Duration = Duration::from_secs(1);

/// The parts of an engine that backups use.
pub(crate) struct BackupParts {
    pub(crate) settings: BackupSettings,
    pub(crate) authorities: Authorities,
    pub(crate) catalog: Catalog,
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) store: Arc<HeldBlobs>,
    pub(crate) gauge: Arc<SpaceGauge>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The outcome of the last backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRun {
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its manifest, or the reason why there is none.
    pub result: Result<BackupManifest, String>,
}

/// The state of a server's backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupState {
    /// When the running backup began, if one is running.
    pub running_since: Option<Timestamp>,
    /// Bytes that the running backup has copied.
    pub copied_bytes: u64,
    /// The last backup since the start of the server.
    pub last: Option<BackupRun>,
    /// When the next backup is due, if there is a schedule.
    pub next_at: Option<Timestamp>,
}

/// The backups of a server.
pub(crate) struct Backups {
    parts: BackupParts,
    opener: Opener,
    /// The last listing of a bucket.
    listed: Mutex<Vec<Listed>>,
    state: Mutex<BackupState>,
    stopping: Stopping,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backups").field("state", &*self.state.lock()).finish_non_exhaustive()
    }
}

impl Backups {
    /// Creates the backups of an engine, without starting the schedule.
    pub(crate) fn new(parts: BackupParts) -> Arc<Self> {
        let (state, stopping, threads) = Default::default();
        let opener = Opener {
            settings: parts.settings.bucket.clone(),
            authorities: parts.authorities.clone(),
        };
        let listed = Mutex::default();
        Arc::new(Self { parts, opener, listed, state, stopping, threads })
    }

    /// Starts the schedule, if the settings define one.
    pub(crate) fn start(self: &Arc<Self>) {
        let settings = &self.parts.settings;
        let (Some(to), every) = (settings.backup_to.clone(), settings.backup_every) else { return };
        let is_bucket = matches!(to, Location::Bucket(_));
        if !is_bucket {
            self.look(&to, every);
        }
        if !is_bucket && every.is_none() {
            return;
        }
        let own = Arc::clone(self);
        self.spawn("backup-schedule", move || {
            // The start of the server does not wait for a bucket.
            if is_bucket {
                own.look(&to, every);
            }
            if let Some(every) = every {
                own.keep_schedule(&to, every);
            }
        });
    }

    /// Checks the location and, with a schedule, sets the time of the next backup from the last
    /// one, so that a server that is often restarted still makes backups on time. A backup that
    /// lacks a tenant, or is dated in the future by a clock that was ahead, does not count as the
    /// last one. One that only lacks originals does: another one would lack them too.
    fn look(self: &Arc<Self>, to: &Location, every: Option<Duration>) {
        let backups = self.opener.open(to, self.pause());
        let now = self.parts.clock.now().0;
        let counts = |made: &BackupManifest| {
            made.is_whole && made.left_out.is_empty() && made.started_at <= now
        };
        let newest = backups.and_then(|backups| BackupManifest::newest(&*backups, counts));
        if let Err(BackupError::Bucket(error)) = &newest
            && !matches!(error, BucketError::Stopped)
        {
            tracing::warn!(%error, "the backup location is not usable: no backups are made");
        }
        if let Some(every) = every {
            let last = newest.map_or(0, |manifest| manifest.started_at);
            let due = Timestamp(last).plus_millis(every.as_millis() as u64);
            self.state.lock().next_at = Some(due);
        }
    }

    /// The waits of a bucket client, which end when the server stops.
    fn pause(self: &Arc<Self>) -> Box<Pause> {
        let own = Arc::downgrade(self);
        Box::new(move |time| own.upgrade().is_none_or(|own| own.wait(time)))
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            run_in_background();
            run();
        });
        match spawned {
            Ok(thread) => {
                let mut threads = self.threads.lock();
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => tracing::error!(%error, "cannot start a backup thread"),
        }
    }

    fn keep_schedule(self: &Arc<Self>, to: &Location, every: Duration) {
        while !self.wait(LOOK.min(every)) {
            let now = self.parts.clock.now();
            let next_at = self.state.lock().next_at;
            if next_at.is_some_and(|due| !is_due(due, now, every.as_millis() as u64))
                || !self.begin()
            {
                continue;
            }
            let options = TakeOptions {
                with_keys: self.parts.settings.backup_with_keys,
                ..TakeOptions::default()
            };
            let is_done = self.run(to, &options, self.parts.settings.backup_keep);
            let pause = if is_done { every } else { every.min(RETRY) };
            self.state.lock().next_at = Some(now.plus_millis(pause.as_millis() as u64));
        }
    }

    /// Waits for `time`; returns whether the server is stopping.
    fn wait(&self, time: Duration) -> bool {
        self.stopping.wait(time)
    }

    /// Starts a backup into the configured location or one inside it.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for any other location; [`BackupError::Busy`].
    pub(crate) fn request(
        self: &Arc<Self>,
        to: Option<&Location>,
        options: TakeOptions,
    ) -> Result<(), BackupError> {
        options.validate()?;
        let to = self.permitted(to)?;
        self.opener.check(&to)?;
        if let Some(only) = &options.tenant
            && self.parts.catalog.tenant(only)?.is_none()
        {
            return Err(BackupError::TenantUnknown { tenant: only.clone() });
        }
        if !self.begin() {
            return Err(BackupError::Busy);
        }
        let own = Arc::clone(self);
        self.spawn("backup", move || {
            own.run(&to, &options, None);
        });
        Ok(())
    }

    /// Checks a location: a key must not make the server write where its operator did not allow it.
    fn permitted(&self, to: Option<&Location>) -> Result<Location, BackupError> {
        let refused = |problem: String| Err(BackupError::Refused { problem });
        let Some(allowed) = &self.parts.settings.backup_to else {
            return refused(
                "the server has no backup location: start it with --backup-to FOLDER or a bucket \
                 URL, or stop it and back up its data directory"
                    .to_owned(),
            );
        };
        match to.unwrap_or(allowed) {
            to if to.is_within(allowed) => Ok(to.clone()),
            _ => refused(format!(
                "the server writes backups only to {allowed} and locations inside it (--backup-to)"
            )),
        }
    }

    fn begin(&self) -> bool {
        let mut state = self.state.lock();
        if state.running_since.is_some() || self.stopping.is_set() {
            return false;
        }
        state.running_since = Some(self.parts.clock.now());
        state.copied_bytes = 0;
        true
    }

    /// Makes a backup and records its outcome; returns whether it has all tenants. Lost originals
    /// do not come back, so another attempt would not find them either.
    fn run(self: &Arc<Self>, to: &Location, options: &TakeOptions, keep: Option<usize>) -> bool {
        let began = Instant::now();
        let result = self.take(to, options, keep);
        let seconds = began.elapsed().as_secs_f64();
        let is_done = match &result {
            Ok(made) => {
                let left_out = made.left_out.len();
                let missing_originals: u64 = made.missing_originals().map(|(_, count)| count).sum();
                tracing::info!(id = %made.id, %to, tenants = made.tenants.len(), left_out,
                    missing_originals, new_files = made.new_files, new_bytes = made.new_bytes,
                    damage = made.damage.len(), seconds, "backup made");
                left_out == 0
            }
            Err(error) => {
                tracing::error!(%to, %error, seconds, "backup failed");
                false
            }
        };
        let result = result.map_err(|error| error.to_string());
        let mut state = self.state.lock();
        state.running_since = None;
        state.last = Some(BackupRun { ended_at: self.parts.clock.now(), result });
        is_done
    }

    fn take(
        self: &Arc<Self>,
        to: &Location,
        options: &TakeOptions,
        keep: Option<usize>,
    ) -> Result<BackupManifest, BackupError> {
        let backups = self.opener.create(to, self.pause())?;
        let open = |tenant: &Tenant| loop {
            match self.parts.ingest.open(tenant) {
                // Another thread is fetching it from a bucket.
                Err(IngestError::Collection(CollectionError::Behind { .. }))
                    if !self.wait(OPEN_PAUSE) => {}
                opened => return Ok::<_, EngineError>(opened?),
            }
        };
        let pace = ServerPace { owner: self, began: Instant::now() };
        let parts = TakeParts {
            catalog: &self.parts.catalog,
            open: &open,
            store: &self.parts.store,
            clock: &*self.parts.clock,
            pace: &pace,
        };
        let made = take(&parts, &*backups, options)?;
        if let Some(keep) = keep {
            match prune(&*backups, keep, self.parts.clock.now()) {
                Ok(pruned) if pruned.removed.is_empty() => {}
                Ok(pruned) => tracing::info!(removed = ?pruned.removed, "old backups removed"),
                Err(error) => tracing::error!(%error, "removing old backups failed"),
            }
        }
        Ok(made)
    }

    /// Keeps the files of a tenant until the hold is dropped, and its descriptor longest of all.
    pub(crate) fn hold(&self, id: CollectionId) -> DeletionHold {
        let files = [layout::collection_prefix(id), uploads::prefix(id), descriptors::key(id)];
        self.parts.store.hold_below(files.to_vec())
    }

    /// The current state.
    pub(crate) fn state(&self) -> BackupState {
        self.state.lock().clone()
    }

    /// The problem, if the last backup failed or none was made for twice the scheduled interval.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let every = self.parts.settings.backup_every?;
        let state = self.state.lock();
        if state.last.as_ref().is_some_and(|last| match &last.result {
            Ok(made) => !made.lacks_nothing(),
            Err(_) => true,
        }) {
            return Some(
                "the last backup failed or lacks tenants or originals: see the server log",
            );
        }
        let overdue = state.next_at?.plus_millis(every.as_millis() as u64);
        let is_late = state.running_since.is_none()
            && state.last.is_some()
            && self.parts.clock.now() > overdue;
        is_late.then_some("a backup is overdue")
    }

    /// Lists the backups at the configured location. While one is being made, a bucket's listing is
    /// that of before, since a client that polls for the end would otherwise list it several times
    /// a second.
    ///
    /// # Errors
    /// Errors of the location.
    pub(crate) fn list(self: &Arc<Self>) -> Result<Vec<Listed>, BackupError> {
        let Some(to) = &self.parts.settings.backup_to else { return Ok(Vec::new()) };
        let is_bucket = matches!(to, Location::Bucket(_));
        if is_bucket && self.state.lock().running_since.is_some() {
            return Ok(self.listed.lock().clone());
        }
        let listed = match self.opener.open(to, self.pause()) {
            Ok(backups) => list(&*backups)?,
            // The first backup has not begun, or is just creating the location.
            Err(BackupError::Refused { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        if is_bucket {
            self.listed.lock().clone_from(&listed);
        }
        Ok(listed)
    }

    /// Aborts the running backup and ends the schedule.
    pub(crate) fn stop(&self) {
        self.stopping.set();
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a backup panicked");
            }
        }
    }
}

/// Limits copying to the rate of the settings.
struct ServerPace<'a> {
    owner: &'a Backups,
    began: Instant,
}

impl Pace for ServerPace<'_> {
    fn spend(&self, bytes: u64) -> Result<(), BackupError> {
        let copied = {
            let mut state = self.owner.state.lock();
            state.copied_bytes += bytes;
            state.copied_bytes
        };
        if self.owner.parts.gauge.level() >= Fullness::Full {
            let reason =
                "the data directory's disk is full, and deletions are waiting for the backup";
            return Err(BackupError::GivenUp { reason });
        }
        let rate = self.owner.parts.settings.backup_rate;
        let due = Duration::from_secs_f64(copied as f64 / rate as f64);
        let ahead = due.saturating_sub(self.began.elapsed());
        match self.owner.wait(ahead) {
            true => Err(BackupError::GivenUp { reason: "the server is shutting down" }),
            false => Ok(()),
        }
    }
}
