//! Opening the file: connections, pragmas, migrations, and assembly of a running catalog.

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
use super::idempotency::Budgets;
use super::job_watch::JobWatchers;
use super::log::{CatalogLog, Claimed, LogState, LogWatch, Shipper};
use super::readers::{self, Readers};
use super::rows::{Statements, blob};
use super::work::{Changes, Stages, WorkSignal, WorkSignals};
use super::writer::{Reach, Writer};
use super::{Catalog, CatalogOptions, Inner, migrations};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{Clock, CollectionId, IdSource};

/// Maximum time that a statement waits for a lock of another process (a backup, an inspection).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements cached per connection; more than this crate has.
const STATEMENTS_KEPT: usize = 128;
/// Number of cached tenants and keys, at about 1 KiB each.
const TENANTS_CACHED: usize = 10_000;
const KEYS_CACHED: usize = 10_000;

/// Configures a connection; common to readers and the writer.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Opens the writing connection. With WAL and `synchronous=FULL` a commit fsyncs the log, so it
/// survives a power cut; on macOS that takes `fullfsync`. With a log in a blob store (`has_log`)
/// the local file is discarded at the next start, so it is enough that checkpoints are ordered, and
/// the writer runs them itself.
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

/// The parts of a catalog that depend on the mode in which it is opened.
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
    /// Opens or creates the catalog file at `path`, whose directory must exist. Only one process
    /// may do so at a time, which the lock of the data directory ensures.
    ///
    /// # Errors
    /// [`CatalogError::TooNew`], [`CatalogError::Foreign`]; errors of a damaged file or a failing
    /// disk.
    pub fn open(
        path: &Path,
        options: CatalogOptions,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self> {
        Self::start(path, options, clock, ids, None)
    }

    /// Takes over the log and opens the catalog in it. If the log is empty, the file at `path`, or
    /// a new one, becomes its first base. Otherwise the file is rebuilt from the log, and an
    /// existing one is renamed by appending `.replaced`. From now on, a write that returns `Ok`
    /// survives the loss of this machine, and processes that owned the log before cannot write to
    /// it.
    ///
    /// # Errors
    /// Those of [`Catalog::open`]; [`CatalogError::Corrupt`] with the key of what is missing or
    /// damaged, in which case the file is unchanged; [`CatalogError::LogAway`];
    /// [`CatalogError::Fenced`] if yet another process takes over the log concurrently.
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

    /// Assembles the catalog around its opened file.
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
            budgets: Budgets::default(),
            lease_check: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether there is a catalog file at `path`. An empty file counts only if `store` is empty
    /// too, as it may be left by an interrupted first start.
    ///
    /// # Errors
    /// [`CatalogError::Emptied`] if it is empty but the store is not; errors of the disk.
    pub fn exists(path: &Path, store: &dyn BlobStore) -> Result<bool> {
        Self::exists_where(path, |directory| {
            let directory = Key::parse(directory).expect("a fixed name is a key");
            Ok(!store.list(&directory)?.is_empty())
        })
    }

    /// Checks that the file at `path`, if there is one, can be opened. `is_used` tells whether a
    /// directory next to it holds anything. Changes nothing.
    ///
    /// # Errors
    /// Those of [`Catalog::open`] and [`Catalog::exists`].
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

    /// Renames the logs that an earlier file left next to `path`, since SQLite would apply them to
    /// a new file of that name.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] with the file that could not be renamed.
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

    /// Removes a file, and its logs, that an earlier attempt left half built.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] with the file that could not be removed.
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

    /// Closes a catalog that was built under another name and renames it to `path`. Survives a
    /// power cut on return; until then, and after an error, `path` is unchanged.
    ///
    /// # Errors
    /// [`CatalogError::StorageFull`] if the log cannot be checkpointed into the file;
    /// [`CatalogError::Corrupt`] if a clone is still in use or the file cannot be renamed.
    pub fn move_to(self, from: &Path, path: &Path) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => drop(inner),
            Err(_) => return Err(CatalogError::corrupt("the new catalog is still in use")),
        }
        // Closing checkpoints the log but does not report whether that worked. In a journal mode
        // without a write-ahead log the file is complete by itself.
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

    /// Checks every page of the file.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] with the first problems found and the remedy; storage errors.
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

    /// State of the log in the blob store, if there is one.
    pub fn log_state(&self) -> Option<LogState> {
        self.inner.log.as_ref().map(|log| log.state())
    }

    /// Number of the claim under which this process writes to the log; increases from one process
    /// to the next.
    pub fn log_claim(&self) -> Option<u64> {
        self.inner.log.as_ref().map(|log| log.claim())
    }

    /// Unique name under which this process writes to the log, from which its followers know it.
    pub fn writer_name(&self) -> Option<Uuid> {
        self.inner.log.as_ref().map(|log| log.name())
    }

    /// Asks the blob store whether another process has taken over the log, which this process would
    /// otherwise notice only at its next write, answering reads from stale state until then. One
    /// small request. Always false without a log.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`] if the store cannot tell.
    pub fn check_fence(&self) -> Result<bool> {
        self.inner.log.as_ref().map_or(Ok(false), |log| log.check_fence())
    }

    /// Makes everything that this process has committed durable, including changes in doubt.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`]; [`CatalogError::Fenced`] or [`CatalogError::Poisoned`] if that is
    /// no longer possible; storage errors.
    pub fn confirm(&self) -> Result<()> {
        self.write(|_| Ok(()))
    }

    /// Runs `body` in a transaction that is durable once this returns `Ok`.
    pub(super) fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let written = self.named(self.inner.writer.write(Reach::Durable, body));
        if self.inner.log.is_some() && matches!(written, Err(CatalogError::InDoubt { .. })) {
            // The change is visible here even so, but the caller will not announce it.
            self.inner.tenants.clear();
            self.inner.keys.clear();
            self.inner.work.notify();
            self.inner.deliveries.notify();
        }
        written
    }

    /// Like [`Self::write`], for changes that nobody needs once this process ends. They may be
    /// missing from the log in a blob store that is unreachable.
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

    /// Runs a read that takes the longer the more the collection has in the catalog
    /// ([`Readers::read_long`](super::readers::Readers::read_long)).
    pub(super) fn read_long<T>(
        &self,
        collection: CollectionId,
        body: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.named(self.inner.readers.read_long(blob(collection), body))
    }

    /// Adds the name of the file to errors of damage.
    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.with_remedy(self.inner.readers.path()))
    }
}
