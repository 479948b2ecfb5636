//! Export of catalog rows for backups, and their import into a fresh catalog.
//!
//! A backup takes the rows of a tenant at the same moment as the tenant's manifest: the caller
//! opens a [`Moment`] under the lock of the collection's writer. Rows and segments of a tenant are
//! thus consistent, without holding the locks of several tenants at once.
//!
//! A row is a JSON array of the table name and the columns; blobs are `{"hex": "..."}`. Not
//! included are counters, which triggers recompute, and stored responses to repeated requests.

use std::fs;
use std::path::Path;

use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};

use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::{Catalog, migrations, readers};
use lodestone_types::{CollectionId, Sequence, TenantId};

/// Tables with rows that belong to tenants, each with its query for one tenant. Parents come first.
const OF_TENANT: [(&str, &str); 10] = [
    ("tenants", "SELECT * FROM tenants WHERE collection = ?1 AND deleting = 0"),
    ("tenant_limits", "SELECT * FROM tenant_limits WHERE collection = ?1"),
    ("sub_tenants", "SELECT * FROM sub_tenants WHERE collection = ?1 ORDER BY name"),
    ("jobs", "SELECT * FROM jobs WHERE collection = ?1 ORDER BY seq"),
    (
        "known_sources",
        "SELECT * FROM known_sources WHERE collection = ?1 ORDER BY source, sub_tenant",
    ),
    ("sessions", "SELECT * FROM sessions WHERE collection = ?1 ORDER BY id"),
    (
        "turns",
        "SELECT t.* FROM turns t JOIN sessions s ON s.id = t.session WHERE s.collection = ?1
         ORDER BY t.id",
    ),
    ("files", "SELECT * FROM files WHERE collection = ?1 ORDER BY id"),
    ("vector_stores", "SELECT * FROM vector_stores WHERE collection = ?1 ORDER BY name"),
    ("file_batches", "SELECT * FROM file_batches WHERE collection = ?1 ORDER BY sub_tenant, id"),
];
/// Tables of API keys.
const OF_KEYS: [(&str, &str); 2] = [
    ("api_keys", "SELECT * FROM api_keys ORDER BY id"),
    ("key_scopes", "SELECT * FROM key_scopes ORDER BY key_id, tenant"),
];

/// A read transaction on its own connection: the catalog at one moment.
#[derive(Debug)]
pub struct Moment {
    connection: Connection,
}

impl Catalog {
    /// Opens the catalog as of now, with every change acknowledged before this call. Does not block
    /// writers.
    pub fn moment(&self) -> Result<Moment> {
        let connection = readers::connect(self.inner.readers.path())?;
        // The first read after BEGIN fixes the moment.
        connection.execute_batch("BEGIN")?;
        connection.query_row("SELECT count(*) FROM queue_total", [], |_| Ok(()))?;
        Ok(Moment { connection })
    }

    /// The format version of the catalog file.
    pub fn format() -> usize {
        migrations::STEPS.len()
    }
}

impl Moment {
    /// Passes every row of a tenant to `see`, parents first; returns whether the tenant exists.
    ///
    /// # Errors
    /// Storage errors, and errors of `see`.
    pub fn tenant<E: From<CatalogError>>(
        &self,
        collection: CollectionId,
        see: impl FnMut(Value) -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        self.rows(&OF_TENANT, &[&blob(collection)], see).map(|rows| rows > 0)
    }

    /// Names of the originals that the unfinished jobs and the files of a tenant need.
    ///
    /// # Errors
    /// Storage errors.
    pub fn originals(&self, collection: CollectionId) -> Result<Vec<String>> {
        self.connection.all(
            "SELECT raw_key FROM jobs
                WHERE collection = ?1 AND status IN ('queued', 'in_progress') AND raw_key <> ''
             UNION ALL SELECT raw_key FROM files WHERE collection = ?1",
            [blob(collection)],
            |cells| cells.next(),
        )
    }

    /// Passes every key to `see`: names, scopes and hashes, never secrets.
    ///
    /// # Errors
    /// Those of [`Self::tenant`].
    pub fn keys<E: From<CatalogError>>(
        &self,
        see: impl FnMut(Value) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.rows(&OF_KEYS, &[], see).map(|_| ())
    }

    fn rows<E: From<CatalogError>>(
        &self,
        tables: &[(&str, &str)],
        parameters: &[&dyn rusqlite::ToSql],
        mut see: impl FnMut(Value) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let of_catalog = |error: rusqlite::Error| E::from(CatalogError::from(error));
        let mut count = 0;
        for (table, query) in tables {
            let mut select = self.connection.prepare(query).map_err(of_catalog)?;
            let width = select.column_count();
            let mut rows = select.query(parameters).map_err(of_catalog)?;
            while let Some(row) = rows.next().map_err(of_catalog)? {
                let mut cells = vec![Value::from(*table)];
                for column in 0..width {
                    cells.push(to_json(row.get_ref(column).map_err(of_catalog)?));
                }
                see(Value::Array(cells))?;
                count += 1;
            }
        }
        Ok(count)
    }
}

fn to_json(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => json!({ "hex": hex::encode(bytes) }),
    }
}

fn to_cell(value: &Value) -> Option<Cell> {
    Some(match value {
        Value::Null => Cell::Null,
        Value::String(text) => Cell::Text(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cell::Integer(number),
            None => Cell::Real(number.as_f64()?),
        },
        Value::Object(bytes) => Cell::Blob(hex::decode(bytes.get("hex")?.as_str()?).ok()?),
        Value::Bool(_) | Value::Array(_) => return None,
    })
}

/// A catalog under construction from the rows of a backup.
#[derive(Debug)]
pub struct Import {
    connection: Connection,
}

impl Import {
    /// Creates a fresh file of version `format` at `path`.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] for a format that this release does not know; storage errors.
    pub fn create(path: &Path, format: usize) -> Result<Self> {
        if format == 0 || format > Catalog::format() {
            let problem = format!(
                "the backup contains a catalog of format {format}, this release supports 1 to {}: \
                 use the release that made the backup, or a newer one",
                Catalog::format()
            );
            return Err(CatalogError::corrupt(problem));
        }
        let connection = Connection::open(path)?;
        // Nobody reads the file before it is complete and synced.
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "foreign_keys", false)?;
        migrations::migrate_to(&connection, path, format)?;
        connection.execute_batch("BEGIN")?;
        Ok(Self { connection })
    }

    /// Adds a row produced by a [`Moment`].
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if it is not such a row; storage errors.
    pub fn add(&self, row: &Value) -> Result<()> {
        self.insert(row).map_err(|error| match error {
            CatalogError::Sqlite { source } => CatalogError::corrupt(format!(
                "the backup contains an invalid catalog row: {source}"
            )),
            error => error,
        })
    }

    fn insert(&self, row: &Value) -> Result<()> {
        let bad = || CatalogError::corrupt("the backup contains an invalid catalog row");
        let cells = row.as_array().ok_or_else(bad)?;
        let (table, cells) = cells.split_first().ok_or_else(bad)?;
        let mut tables = OF_TENANT.iter().chain(&OF_KEYS).map(|(table, _)| *table);
        let table = tables.find(|known| table.as_str() == Some(known)).ok_or_else(bad)?;
        let cells: Vec<Cell> = cells.iter().map(to_cell).collect::<Option<_>>().ok_or_else(bad)?;
        if table == "sessions" || table == "turns" {
            return self.add_numbered(table, cells);
        }
        let marks = vec!["?"; cells.len()].join(", ");
        let insert = format!("INSERT INTO {table} VALUES ({marks})");
        self.connection.run(&insert, params_from_iter(cells))
    }

    /// Adds a row of `sessions` or `turns` under a new number: the rows of two tenants were
    /// exported at different moments, between which a number may have been reused.
    fn add_numbered(&self, table: &str, mut cells: Vec<Cell>) -> Result<()> {
        let bad = || CatalogError::corrupt("the backup contains a session without a number");
        let own = cells.first_mut().ok_or_else(bad)?;
        let old = std::mem::replace(own, Cell::Null);
        let number = match (table, old, cells.get(1)) {
            ("sessions", Cell::Integer(old), _) => old,
            ("turns", _, Some(Cell::Integer(old))) => *old,
            _ => return Err(bad()),
        };
        self.connection.execute_batch(
            "CREATE TEMP TABLE IF NOT EXISTS renumbered (old INTEGER PRIMARY KEY, new INTEGER)",
        )?;
        if table == "turns" {
            let find = "SELECT new FROM renumbered WHERE old = ?1";
            let new = self.connection.one(find, [number], |cells| cells.next())?;
            cells[1] = Cell::Integer(new);
        }
        let marks = vec!["?"; cells.len()].join(", ");
        let insert = format!("INSERT INTO {table} VALUES ({marks})");
        self.connection.run(&insert, params_from_iter(cells))?;
        if table == "sessions" {
            let note = "INSERT OR REPLACE INTO renumbered VALUES (?1, ?2)";
            let new = self.connection.last_insert_rowid();
            self.connection.run(note, [number, new])?;
        }
        Ok(())
    }

    /// Renames a tenant.
    ///
    /// # Errors
    /// [`CatalogError::TenantUnknown`]; storage errors.
    pub fn rename(&self, from: &TenantId, to: &TenantId) -> Result<()> {
        let sql = "UPDATE tenants SET name = ?2 WHERE name = ?1";
        match self.connection.execute(sql, [from.as_str(), to.as_str()])? {
            0 => Err(CatalogError::TenantUnknown { tenant: from.clone() }),
            _ => Ok(()),
        }
    }

    /// Completes the file and makes it durable. Later sequences will be above `newest`, and jobs
    /// interrupted by the backup are not charged for it.
    pub fn finish(self, newest: Sequence) -> Result<()> {
        super::sequences::raise(&self.connection, newest)?;
        self.connection.execute_batch("UPDATE jobs SET interruptions = 0; COMMIT")?;
        let path = self.connection.path().map(str::to_owned).unwrap_or_default();
        drop(self.connection);
        let synced = fs::File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|error| CatalogError::corrupt(format!("{path}: {error}")))
    }
}
