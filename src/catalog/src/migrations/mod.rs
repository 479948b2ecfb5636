//! From an older format of the catalog to the present one, one file a step.
//!
//! `PRAGMA user_version` holds the format; 0 is an empty file. Each step runs in one transaction
//! with its new number, so a crash leaves the file at one format or the next. A file of a newer
//! format is refused: an older release could not keep what it does not know.
//!
//! - `v1`: the first format; `v2`: records of applications, pages of the web; `v3`: known sources

mod v1;
mod v2;
mod v3;

use std::path::Path;

use rusqlite::Connection;

use super::error::{CatalogError, Result};

/// "LODE", by which tools recognise the file.
const APPLICATION_ID: i64 = 0x4C4F_4445;
/// Step `n` leads from format `n` to format `n + 1`.
pub(super) const STEPS: [&str; 3] = [v1::SQL, v2::SQL, v3::SQL];

/// The format of a file that this release can open.
pub(super) fn format(connection: &Connection, path: &Path) -> Result<usize> {
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let found = number("user_version")?;
    if application != APPLICATION_ID && (application, found) != (0, 0) {
        return Err(CatalogError::Foreign { path: path.to_owned(), found: application });
    }
    let supported = STEPS.len() as i64;
    if found > supported {
        return Err(CatalogError::TooNew { path: path.to_owned(), found, supported });
    }
    Ok(found as usize)
}

pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<()> {
    migrate_to(connection, path, STEPS.len())
}

/// Takes the steps up to a format, all of which this release knows.
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
