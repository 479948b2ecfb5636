//! Files that are missing, empty, damaged, of other programs, in the way or in use.

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::CatalogError;
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
