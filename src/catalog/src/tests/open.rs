//! Files that are missing, empty, damaged, of other programs, in the way or in use.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::{CatalogError, migrations};
use lodestone_types::ErrorKind;

fn open(path: &Path) -> Result<Catalog, CatalogError> {
    let (clock, ids) = (Arc::new(ManualClock::new(Timestamp(5))), Arc::new(SeededIds::new(3)));
    Catalog::open(path, CatalogOptions::default(), clock, ids)
}

/// A directory and the path of a catalog in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.sqlite");
    (directory, path)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Goal: a database of another program that has set neither of the numbers is left alone too.
#[test]
fn a_database_of_another_program_is_not_changed() {
    let (_keep, path) = place();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    for error in [open(&path).unwrap_err(), Catalog::check(&path, |_| false).unwrap_err()] {
        assert!(matches!(error, CatalogError::Foreign { found: 0, .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables = Connection::open(&path).unwrap().query_row(count, [], |row| row.get::<_, i64>(0));
    assert_eq!(tables, Ok(1));
}

/// Goal: a migration that fails leaves the format that was there, and the next start tries again.
#[test]
fn a_migration_that_fails_changes_nothing() {
    let (directory, path) = place();
    let older = Connection::open(&path).unwrap();
    migrations::migrate_to(&older, &path, 3).unwrap();
    // The next step makes a table of this name.
    older.execute_batch("CREATE TABLE tenant_use (other)").unwrap();
    let error = migrations::migrate_to(&older, &path, 7).unwrap_err();
    assert!(error.to_string().contains("tenant_use"), "{error}");
    assert!(older.is_autocommit(), "no transaction is left open");
    assert_eq!(migrations::format(&older, &path).unwrap(), 3);
    let sql = "SELECT count(*) FROM pragma_table_info('known_sources') WHERE name = 'bytes'";
    let columns = older.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(columns, Ok(0), "the step is undone as a whole");
    older.execute_batch("DROP TABLE tenant_use").unwrap();
    drop(older);

    // A copy that cannot get its name leaves no part of itself on a disk that may be full.
    let copy = directory.path().join("catalog.sqlite.v3");
    fs::create_dir(&copy).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(names(directory.path()), ["catalog.sqlite", "catalog.sqlite.v3"]);
    fs::remove_dir(&copy).unwrap();
    open(&path).unwrap().verify().unwrap();
}
