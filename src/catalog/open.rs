//! Opening the file: connections, pragmas, migrations, and the parts of a running catalog.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;

use super::cache::Cache;
use super::error::{CatalogError, Result};
use super::readers::Readers;
use super::work::{Stages, WorkSignal};
use super::writer::Writer;
use super::{Catalog, CatalogOptions, Inner, migrations};
use crate::types::{Clock, IdSource};

/// How long a statement waits for a lock of another process (a backup, an inspection).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Compiled statements kept by each connection; more than this room has.
const STATEMENTS_KEPT: usize = 128;
/// Tenants and keys looked up lately. About 1 KiB each.
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

/// The writing connection. With WAL and `synchronous=FULL` a commit fsyncs the log, so it
/// survives a power cut; `fullfsync` is what makes that true on macOS.
fn connect(path: &Path) -> Result<Connection> {
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
    migrations::migrate(&connection, path)?;
    Ok(connection)
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
        let connection = connect(path)?;
        let has_interrupted: bool = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'in_progress')",
            [],
            |row| row.get(0),
        )?;
        let writer = Writer::start(connection).map_err(|error| CatalogError::Poisoned {
            cause: format!("the writer thread did not start: {error}"),
        })?;
        let inner = Inner {
            readers: Readers::new(path),
            writer,
            options,
            clock,
            ids,
            tenants: Cache::new(TENANTS_CACHED),
            keys: Cache::new(KEYS_CACHED),
            operator_key: RwLock::new(None),
            stages: Stages::default(),
            work: WorkSignal::default(),
            last_served: Arc::default(),
            is_recovered: AtomicBool::new(!has_interrupted),
            in_flight: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs `body` in a transaction that is durable when this returns `Ok`.
    pub(super) fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.inner.writer.write(body)
    }

    /// Runs `body` on a read-only connection.
    pub(super) fn read<T>(&self, body: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.inner.readers.read(body)
    }
}
