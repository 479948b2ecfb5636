//! Migration of older catalog formats to the current one, one file per step.
//!
//! `PRAGMA user_version` holds the format; 0 is an empty file. Each step and its new format number
//! are one transaction, so a crash leaves the file in one format or the next. A file of a newer
//! format is refused, since an older release could not preserve what it does not know.
//!
//! Before the first step, the file is copied next to itself, as `catalog.sqlite.v2` for format 2,
//! so that the previous release can be restored.
//!
//! - `v1`: the first format; `v2`: application records and web pages; `v3`: known sources
//! - `v4`: limits and usage of tenants; `v5`: files, vector stores and file batches
//! - `v6`: webhooks, look-up of jobs by id; `v7`: more limits, embedding models of tenants
//! - `v8`: sums of waiting jobs, of bytes and of sessions

mod v1;
mod v2;
mod v3;
mod v4;
mod v5;
mod v6;
mod v7;
mod v8;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::{CatalogError, Result};

/// "LODE", by which tools recognise the file.
const APPLICATION_ID: i64 = 0x4C4F_4445;
/// Step `n` migrates format `n` to format `n + 1`.
pub(super) const STEPS: [&str; 8] =
    [v1::SQL, v2::SQL, v3::SQL, v4::SQL, v5::SQL, v6::SQL, v7::SQL, v8::SQL];

/// Reads the format of a file, refusing one that this release cannot open.
pub(super) fn format(connection: &Connection, path: &Path) -> Result<usize> {
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let found = number("user_version")?;
    let is_empty = || {
        connection
            .query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
    };
    if application != APPLICATION_ID && ((application, found) != (0, 0) || !is_empty()?) {
        return Err(CatalogError::Foreign { path: path.to_owned(), found: application });
    }
    let supported = STEPS.len() as i64;
    if found > supported {
        return Err(CatalogError::TooNew { path: path.to_owned(), found, supported });
    }
    Ok(found as usize)
}

pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<()> {
    let found = format(connection, path)?;
    if (1..STEPS.len()).contains(&found) {
        let copy = beside(path, &format!(".v{found}"));
        keep(connection, &copy).map_err(|error| CatalogError::CopyFailed {
            copy: copy.clone(),
            source: Box::new(error),
        })?;
        tracing::info!(
            copy = %copy.display(),
            "the catalog has format {found}: copied before the upgrade to format {}",
            STEPS.len()
        );
    }
    migrate_to(connection, path, STEPS.len())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Copies the database to `copy`, which survives a power cut on return and is never visible
/// incomplete. An existing copy was left by an attempt that ended before its migration, and is
/// replaced.
fn keep(connection: &Connection, copy: &Path) -> Result<()> {
    let failed = |error: io::Error| CatalogError::corrupt(format!("{}: {error}", copy.display()));
    let partial = beside(copy, ".partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let rename = || {
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, copy)?;
        File::open(copy.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    let vacuumed = connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()]);
    let made = vacuumed.map_err(CatalogError::from).and_then(|_| rename().map_err(failed));
    if made.is_err() {
        // A full disk needs the space back; the first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    made
}

/// Migrates up to format `last`, which this release must know.
pub(super) fn migrate_to(connection: &Connection, path: &Path, last: usize) -> Result<()> {
    let found = format(connection, path)?;
    for (format, sql) in (1_i64..).zip(STEPS).take(last).skip(found) {
        let step = format!(
            "BEGIN IMMEDIATE; {sql}
             PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {format}; COMMIT;"
        );
        if let Err(error) = connection.execute_batch(&step) {
            // The first failure is the one to report.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(error.into());
        }
    }
    Ok(())
}
