//! Backups of a running server: asked for, or by the clock.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::format::BackupManifest;
use super::{BackupError, Folder, Pace, TakeOptions, TakeParts, list, prune, take};
use crate::EngineError;
use crate::ingest::Ingest;
use crate::settings::BackupSettings;
use lodestone_catalog::{Catalog, Tenant};
use lodestone_io::store::{DeletionHold, HeldBlobs};
use lodestone_io::{Fullness, SpaceGauge, run_in_background};
use lodestone_types::{Clock, Timestamp};

/// Longest wait between two looks at the clock, which may be set.
const LOOK: Duration = Duration::from_secs(30);
/// Time after which a scheduled backup that failed is tried again.
const RETRY: Duration = Duration::from_secs(600);

/// The parts of an engine that backups use.
pub(crate) struct BackupParts {
    pub(crate) settings: BackupSettings,
    pub(crate) catalog: Catalog,
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) store: Arc<HeldBlobs>,
    pub(crate) gauge: Arc<SpaceGauge>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The end of the last backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRun {
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its manifest, or the reason for which there is none.
    pub result: Result<BackupManifest, String>,
}

/// State of the backups of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupState {
    /// When the one that is under way began.
    pub running_since: Option<Timestamp>,
    /// Bytes that it has copied.
    pub copied_bytes: u64,
    /// The last one since the start of the server.
    pub last: Option<BackupRun>,
    /// When the next one is due, where there is a schedule.
    pub next_at: Option<Timestamp>,
}

/// The backups of a server.
pub(crate) struct Backups {
    parts: BackupParts,
    state: Mutex<BackupState>,
    is_stopping: Mutex<bool>,
    changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backups").field("state", &*self.state.lock()).finish_non_exhaustive()
    }
}

impl Backups {
    /// The backups of an engine; starts the schedule, where the settings have one.
    pub(crate) fn started(parts: BackupParts) -> Arc<Self> {
        let (state, is_stopping, changed, threads) = Default::default();
        let backups = Arc::new(Self { parts, state, is_stopping, changed, threads });
        backups.start();
        backups
    }

    fn start(self: &Arc<Self>) {
        let settings = &self.parts.settings;
        let (Some(to), Some(every)) = (settings.backup_to.clone(), settings.backup_every) else {
            return;
        };
        // A server that is restarted often still makes its backups on time.
        let newest = Folder::open(&to).and_then(|folder| BackupManifest::newest(&folder)).ok();
        let last = newest.map_or(0, |manifest| manifest.started_at);
        self.state.lock().next_at = Some(Timestamp(last).plus_millis(every.as_millis() as u64));
        let own = Arc::clone(self);
        self.spawn("backup-schedule", move || own.keep_schedule(&to, every));
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
            Err(error) => tracing::error!(%error, "no thread for a backup"),
        }
    }

    fn keep_schedule(&self, to: &Path, every: Duration) {
        while !self.wait(LOOK.min(every)) {
            let now = self.parts.clock.now();
            if self.state.lock().next_at.is_some_and(|due| now < due) || !self.begin() {
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

    /// Waits; returns whether the server stops.
    fn wait(&self, time: Duration) -> bool {
        let mut is_stopping = self.is_stopping.lock();
        if !*is_stopping {
            self.changed.wait_for(&mut is_stopping, time);
        }
        *is_stopping
    }

    /// Begins a backup into the folder of the settings or one below it.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for another folder; [`BackupError::Busy`].
    pub(crate) fn request(
        self: &Arc<Self>,
        to: &Path,
        options: TakeOptions,
    ) -> Result<(), BackupError> {
        options.validate()?;
        self.check_folder(to)?;
        if let Some(only) = &options.tenant
            && self.parts.catalog.tenant(only)?.is_none()
        {
            return Err(BackupError::TenantUnknown { tenant: only.clone() });
        }
        if !self.begin() {
            return Err(BackupError::Busy);
        }
        let (own, to) = (Arc::clone(self), to.to_owned());
        self.spawn("backup", move || {
            own.run(&to, &options, None);
        });
        Ok(())
    }

    /// A key must not make the server write where its operator did not say so.
    fn check_folder(&self, to: &Path) -> Result<(), BackupError> {
        let refused = |problem: String| Err(BackupError::Refused { problem });
        let Some(allowed) = &self.parts.settings.backup_to else {
            return refused(
                "the server has no folder for backups: start it with --backup-to FOLDER, or stop \
                 it and back up its data directory"
                    .to_owned(),
            );
        };
        let is_plain = to.components().all(|part| !matches!(part, Component::ParentDir));
        match is_plain && to.starts_with(allowed) {
            true => Ok(()),
            false => refused(format!(
                "the server writes backups to {} and folders in it alone (--backup-to)",
                allowed.display()
            )),
        }
    }

    fn begin(&self) -> bool {
        let mut state = self.state.lock();
        if state.running_since.is_some() || *self.is_stopping.lock() {
            return false;
        }
        state.running_since = Some(self.parts.clock.now());
        state.copied_bytes = 0;
        true
    }

    /// Makes a backup and notes its end; returns whether it is finished and complete.
    fn run(&self, to: &Path, options: &TakeOptions, keep: Option<usize>) -> bool {
        let began = Instant::now();
        let result = self.take(to, options, keep);
        let seconds = began.elapsed().as_secs_f64();
        let is_done = match &result {
            Ok(made) => {
                let left_out = made.left_out.len();
                tracing::info!(id = %made.id, to = %to.display(), tenants = made.tenants.len(),
                    left_out, new_files = made.new_files, new_bytes = made.new_bytes, seconds,
                    "backup made");
                left_out == 0
            }
            Err(error) => {
                tracing::error!(to = %to.display(), %error, seconds, "no backup was made");
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
        &self,
        to: &Path,
        options: &TakeOptions,
        keep: Option<usize>,
    ) -> Result<BackupManifest, BackupError> {
        let folder = Folder::create(to)?;
        let open = |tenant: &Tenant| Ok::<_, EngineError>(self.parts.ingest.open(tenant)?);
        let pace = ServerPace { owner: self, began: Instant::now() };
        let parts = TakeParts {
            catalog: &self.parts.catalog,
            open: &open,
            store: &self.parts.store,
            clock: &*self.parts.clock,
            pace: &pace,
        };
        let made = take(&parts, &folder, options)?;
        if let Some(keep) = keep {
            match prune(&folder, keep) {
                Ok(pruned) if pruned.removed.is_empty() => {}
                Ok(pruned) => tracing::info!(removed = ?pruned.removed, "old backups removed"),
                Err(error) => tracing::error!(%error, "old backups could not be removed"),
            }
        }
        Ok(made)
    }

    /// Keeps every file in place, as a backup does, until the hold is dropped.
    pub(crate) fn hold(&self) -> DeletionHold {
        self.parts.store.hold()
    }

    /// The state.
    pub(crate) fn state(&self) -> BackupState {
        self.state.lock().clone()
    }

    /// The folder of the settings.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.parts.settings.backup_to.as_ref()
    }

    /// Whether the last backup failed, or none was made for twice the time of the schedule.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let every = self.parts.settings.backup_every?;
        let state = self.state.lock();
        if state.last.as_ref().is_some_and(|last| match &last.result {
            Ok(made) => !made.left_out.is_empty(),
            Err(_) => true,
        }) {
            return Some("the last backup failed or lacks a tenant: see the log");
        }
        let overdue = state.next_at?.plus_millis(every.as_millis() as u64);
        let is_late = state.running_since.is_none()
            && state.last.is_some()
            && self.parts.clock.now() > overdue;
        is_late.then_some("a backup is overdue")
    }

    /// Every backup of the folder of the settings.
    ///
    /// # Errors
    /// Errors of the folder.
    pub(crate) fn list(&self) -> Result<Vec<super::Listed>, BackupError> {
        match self.folder().map(|folder| Folder::open(folder)) {
            Some(Ok(folder)) => list(&folder),
            // The first backup has not been begun, or makes the folder right now.
            Some(Err(BackupError::Refused { .. })) | None => Ok(Vec::new()),
            Some(Err(error)) => Err(error),
        }
    }

    /// Ends the one under way, which is then cut off, and the schedule.
    pub(crate) fn stop(&self) {
        *self.is_stopping.lock() = true;
        self.changed.notify_all();
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a backup panicked");
            }
        }
    }
}

/// Keeps copying below the rate of the settings.
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
            let reason = "the disk of the data directory is full, and deletions wait for backups";
            return Err(BackupError::GivenUp { reason });
        }
        let rate = self.owner.parts.settings.backup_rate;
        let due = Duration::from_secs_f64(copied as f64 / rate as f64);
        let ahead = due.saturating_sub(self.began.elapsed());
        match self.owner.wait(ahead) {
            true => Err(BackupError::GivenUp { reason: "the server stops" }),
            false => Ok(()),
        }
    }
}
