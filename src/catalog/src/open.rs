//! Opening the file: connections, pragmas, migrations, and the parts of a running catalog.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;
use uuid::Uuid;

use super::cache::Cache;
use super::error::{CatalogError, Result};
use super::follow::Following;
use super::job_watch::JobWatchers;
use super::log::{CatalogLog, Claimed, LogState, LogWatch, Shipper};
use super::readers::{self, Readers};
use super::rows::Statements;
use super::work::{Changes, Stages, WorkSignal, WorkSignals};
use super::writer::{Reach, Writer};
use super::{Catalog, CatalogOptions, Inner, migrations};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{Clock, IdSource};

/// Time for which a statement waits for a lock of another process (a backup, an inspection).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Compiled statements kept by each connection; more than this crate has.
const STATEMENTS_KEPT: usize = 128;
/// Tenants and keys in the caches. About 1 KiB each.
const TENANTS_CACHED: usize = 10_000;
const KEYS_CACHED: usize = 10_000;

/// Settings of every connection.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Opens the writing connection. With WAL and `synchronous=FULL` a commit fsyncs the log, so it
/// survives a power cut; `fullfsync` is what makes that true on macOS. With a log in a blob store
/// (`has_log`) the file is forgotten at the next start: it is enough that checkpoints are in order,
/// and the writer makes them itself.
fn connect(path: &Path, has_log: bool) -> Result<Connection> {
    let connection = Connection::open(path)?;
    prepare(&connection)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        let what = format!("journal mode is {mode}, the file system may not support WAL");
        return Err(CatalogError::corrupt(what));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "journal_size_limit", 64_i64 << 20)?;
    if has_log {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    migrations::migrate(&connection, path)?;
    Ok(connection)
}

/// Parts of a catalog that differ by what it is opened for.
pub(super) struct Parts<'a> {
    pub(super) path: &'a Path,
    pub(super) writer: Writer,
    pub(super) log: Option<Arc<LogWatch>>,
    pub(super) following: Option<Following>,
    pub(super) options: CatalogOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) is_recovered: bool,
}

fn moving_failed(path: &Path, error: &std::io::Error) -> CatalogError {
    CatalogError::corrupt(format!("{} could not be moved away: {error}", path.display()))
}

impl Catalog {
    /// Opens or creates the catalog file at `path`; its directory exists. One process at a time:
    /// the lock of the data directory sees to that.
    ///
    /// # Errors
    /// [`CatalogError::TooNew`], [`CatalogError::Foreign`], a damaged file, a failing disk.
    pub fn open(
        path: &Path,
        options: CatalogOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self> {
        Self::start(path, options, clock, ids, None)
    }

    /// Takes the log over and opens the catalog in it. Where the log is empty, the file at `path`,
    /// or a new one, becomes its first base. Otherwise the file is made anew from the log, and one
    /// that is there is renamed to `path` with `.replaced` behind it. From now on a write that
    /// returns `Ok` survives the loss of this machine, and no process that had the log before can
    /// write to it.
    ///
    /// # Errors
    /// As [`Catalog::open`]; [`CatalogError::Corrupt`] names the key of what is missing or damaged,
    /// and the file is as it was then; [`CatalogError::LogAway`]; [`CatalogError::Fenced`] if yet
    /// another process has taken it over meanwhile.
    pub fn open_with_log(
        path: &Path,
        options: CatalogOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        log: CatalogLog,
    ) -> Result<Self> {
        Self::start(path, options, clock, ids, Some(log))
    }

    fn start(
        path: &Path,
        options: CatalogOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        log: Option<CatalogLog>,
    ) -> Result<Self> {
        let waits = options.has_followers;
        let claimed = log.map(|log| log.take_over(path, waits)).transpose()?;
        let connect = || {
            let connection = connect(path, claimed.is_some())?;
            let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'in_progress')";
            let has_interrupted: bool = connection.query_row(sql, [], |row| row.get(0))?;
            Ok((connection, has_interrupted))
        };
        let connected = connect().map_err(|error: CatalogError| error.with_remedy(path));
        let (connection, has_interrupted) = connected?;
        let begin = |claimed: Claimed| claimed.begin(&connection, path, Arc::clone(&clock));
        let shipper = claimed.map(begin).transpose()?;
        let log = shipper.as_ref().map(Shipper::watch);
        let started = Writer::start(connection, shipper);
        let writer = started.map_err(|error| CatalogError::Poisoned {
            cause: format!("the writer thread did not start: {error}"),
        })?;
        Ok(Self::assembled(Parts {
            path,
            writer,
            log,
            following: None,
            options,
            clock,
            ids,
            is_recovered: !has_interrupted,
        }))
    }

    /// The catalog whose file is open.
    pub(super) fn assembled(parts: Parts<'_>) -> Self {
        let Parts { path, writer, log, following, options, clock, ids, is_recovered } = parts;
        let inner = Inner {
            readers: Readers::new(path),
            writer,
            log,
            following,
            options,
            clock,
            ids,
            tenants: Cache::new(TENANTS_CACHED),
            keys: Cache::new(KEYS_CACHED).with_negative_entries(),
            operator_key: RwLock::new(None),
            stages: Stages::default(),
            work: WorkSignals::default(),
            changes: Changes::default(),
            job_watchers: JobWatchers::default(),
            deliveries: WorkSignal::default(),
            last_served: Arc::default(),
            is_recovered: AtomicBool::new(is_recovered),
            in_flight: Mutex::default(),
            lease_check: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether there is a catalog file at `path`. An empty one counts where `store` is empty too: a
    /// first start may have been interrupted.
    ///
    /// # Errors
    /// [`CatalogError::Emptied`]; errors of the disk.
    pub fn exists(path: &Path, store: &dyn BlobStore) -> Result<bool> {
        Self::exists_where(path, |directory| {
            let directory = Key::parse(directory).expect("a fixed name is a key");
            Ok(!store.list(&directory)?.is_empty())
        })
    }

    /// Checks that the file at `path` can be opened, if there is one; `is_used` tells whether a
    /// directory beside it holds anything. Changes nothing.
    ///
    /// # Errors
    /// As [`Catalog::open`] and [`Catalog::exists`].
    pub fn check(path: &Path, is_used: impl Fn(&str) -> bool) -> Result<()> {
        if !Self::exists_where(path, |directory| Ok(is_used(directory)))? {
            return Ok(());
        }
        let format = readers::connect(path).and_then(|found| migrations::format(&found, path));
        format.map(drop).map_err(|error| error.with_remedy(path))
    }

    fn exists_where(path: &Path, is_used: impl Fn(&str) -> Result<bool>) -> Result<bool> {
        let bytes = match fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(CatalogError::corrupt(format!("{path:?}: {error}"))),
        };
        if bytes == 0 && (is_used("v1/t")? || is_used("v1/c")? || is_used("v1/raw")?) {
            return Err(CatalogError::Emptied { path: path.to_owned() });
        }
        Ok(true)
    }

    /// Renames logs that an earlier file left beside `path`, because SQLite would apply them to a
    /// new file of that name.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] names the file that could not be renamed.
    pub fn set_aside_logs(path: &Path) -> Result<()> {
        for suffix in ["-wal", "-shm", "-journal"] {
            let mut left = path.as_os_str().to_owned();
            left.push(suffix);
            let mut aside = left.clone();
            aside.push(".lost");
            match fs::rename(&left, &aside) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(moving_failed(Path::new(&left), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a file that an earlier attempt left half built, with its logs.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] names the file that could not be removed.
    pub fn remove_left_over(path: &Path) -> Result<()> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut left = path.as_os_str().to_owned();
            left.push(suffix);
            match fs::remove_file(&left) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(moving_failed(Path::new(&left), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Closes a catalog that was built under another name and gives it the name `path`. Survives
    /// a power cut on return; before it, and after an error, `path` is as it was.
    ///
    /// # Errors
    /// [`CatalogError::StorageFull`] where the log cannot be folded into the file;
    /// [`CatalogError::Corrupt`] if a clone is still in use or the file cannot be renamed.
    pub fn move_to(self, from: &Path, path: &Path) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => drop(inner),
            Err(_) => return Err(CatalogError::corrupt("the new catalog is still in use")),
        }
        // Closing folds the log in and tells nobody whether it could. Without a log the file is
        // whole by itself.
        let whole = Connection::open(from)?;
        let mode: String =
            whole.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
        if !mode.eq_ignore_ascii_case("delete") {
            return Err(CatalogError::corrupt("the log of the new catalog is still in use"));
        }
        drop(whole);
        let moved = || -> std::io::Result<()> {
            fs::File::open(from)?.sync_all()?;
            fs::rename(from, path)?;
            fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
        };
        moved().map_err(|error| moving_failed(from, &error))
    }

    /// Reads the whole file and checks every page of it.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] with the first problems and the remedy; storage errors.
    pub fn verify(&self) -> Result<()> {
        self.read(|connection| {
            let sql = "PRAGMA integrity_check(5)";
            let problems = connection.all(sql, [], |cells| cells.next::<String>())?;
            match problems.join(", ").as_str() {
                "ok" => Ok(()),
                problems => Err(CatalogError::corrupt(problems)),
            }
        })
    }

    /// State of the log in the blob store, where there is one.
    pub fn log_state(&self) -> Option<LogState> {
        self.inner.log.as_ref().map(|log| log.state())
    }

    /// Number of the claim under which this process writes to the log; it rises from one process to
    /// the next.
    pub fn log_claim(&self) -> Option<u64> {
        self.inner.log.as_ref().map(|log| log.claim())
    }

    /// Name under which this process writes to the log; no other one ever has it. Processes that
    /// follow it know it from the log.
    pub fn writer_name(&self) -> Option<Uuid> {
        self.inner.log.as_ref().map(|log| log.name())
    }

    /// Asks the blob store whether another process has taken over the log, which this one would
    /// otherwise notice at its next write; reads then answer from the past. One small request.
    /// Never true without a log.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`].
    pub fn check_fence(&self) -> Result<bool> {
        self.inner.log.as_ref().map_or(Ok(false), |log| log.check_fence())
    }

    /// Makes everything durable that this process has committed, changes in doubt included.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`]; [`CatalogError::Fenced`] or [`CatalogError::Poisoned`] where it
    /// never will be; storage errors.
    pub fn confirm(&self) -> Result<()> {
        self.write(|_| Ok(()))
    }

    /// Runs `body` in a transaction that is durable when this returns `Ok`.
    pub(super) fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let written = self.named(self.inner.writer.write(Reach::Durable, body));
        if self.inner.log.is_some() && matches!(written, Err(CatalogError::InDoubt { .. })) {
            // The change is visible here all the same, and the caller will tell nobody.
            self.inner.tenants.clear();
            self.inner.keys.clear();
            self.inner.work.notify();
            self.inner.deliveries.notify();
        }
        written
    }

    /// As [`Self::write`], for changes that nobody has to know of if this process ends: they may be
    /// missing in a log in a blob store that is away.
    pub(super) fn write_here<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.named(self.inner.writer.write(Reach::Here, body))
    }

    /// Runs `body` on a read-only connection.
    pub(super) fn read<T>(&self, body: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.named(self.inner.readers.read(body))
    }

    /// A result whose damage names the file.
    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.with_remedy(self.inner.readers.path()))
    }
}
