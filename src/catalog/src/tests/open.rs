//! Files that are missing, empty, damaged, of other programs, in the way or in use.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::ffi;

use super::*;
use crate::{AuthError, CatalogError, RestoredTenant, migrations};
use lodestone_io::store::testing::MemoryBlobs;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::ErrorKind;

fn open(path: &Path) -> Result<Catalog, CatalogError> {
    let (clock, ids) = (Arc::new(ManualClock::new(Timestamp(5))), Arc::new(SeededIds::new(3)));
    Catalog::open(path, CatalogOptions::default(), clock, ids)
}

/// Creates a directory, and a path for a catalog in it.
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

/// Goal: an empty file is an interrupted first start, unless anything is stored next to it.
#[test]
fn an_empty_file_beside_tenants_is_a_lost_catalog() {
    let (_keep, path) = place();
    let store = MemoryBlobs::default();
    assert!(!Catalog::exists(&path, &store).unwrap());
    Catalog::check(&path, |_| true).unwrap();
    fs::write(&path, "").unwrap();
    assert!(Catalog::exists(&path, &store).unwrap());
    for directory in ["v1/t", "v1/c", "v1/raw"] {
        let store = MemoryBlobs::default();
        store.put(&Key::parse(&format!("{directory}/x")).unwrap(), b"x").unwrap();
        let error = Catalog::exists(&path, &store).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("catalog.sqlite-wal"), "{error}");
        let error = Catalog::check(&path, |asked| asked == directory).unwrap_err();
        assert!(matches!(error, CatalogError::Emptied { .. }), "{directory}: {error}");
    }
    drop(open(&path).unwrap());
    Catalog::check(&path, |_| true).unwrap();
    // The path cannot even be inspected.
    let error = Catalog::exists(&path.join("below"), &store).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

/// Goal: damage is reported with the file and the remedy, whatever operation finds it.
#[test]
fn damage_is_told_with_the_remedy() {
    let (_keep, path) = place();
    let catalog = open(&path).unwrap();
    for n in 0..50 {
        catalog.create_tenant(tenant(&format!("t{n}")), TenantMode::Standard, None).unwrap();
    }
    catalog.verify().unwrap();
    drop(catalog);
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let page = 4096 * (bytes.len() / 4096 / 3);
    for byte in &mut bytes[page..page + 8 * 4096] {
        *byte ^= 0xA5;
    }
    fs::write(&path, &bytes).unwrap();
    let error = open(&path).and_then(|catalog| catalog.verify()).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
    assert!(text.contains("catalog.sqlite") && text.contains("from a backup"), "{text}");
    fs::write(&path, [b'x'; 8192]).unwrap();
    let error = Catalog::check(&path, |_| false).unwrap_err();
    assert!(error.to_string().contains("from a backup"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    fs::write(&path, whole).unwrap();
    open(&path).unwrap().verify().unwrap();
}

/// Goal: a start that accesses a tenant whose row is damaged names the file, since the index of
/// names still has the tenant.
#[test]
fn a_row_that_contradicts_its_index_is_damage() {
    let (_keep, path) = place();
    let catalog = open(&path).unwrap();
    let made = catalog.create_tenant(tenant("a-tenant"), TenantMode::Standard, None).unwrap();
    drop(catalog);
    let mut bytes = fs::read(&path).unwrap();
    let row = [made.collection.0.as_bytes(), "a-tenant".as_bytes()].concat();
    let at = bytes.windows(row.len()).position(|found| found == row).unwrap();
    bytes[at + 15] ^= 1;
    fs::write(&path, bytes).unwrap();
    let restored = RestoredTenant {
        tenant: (*made).clone(),
        head: None,
        sub_tenants: Vec::new(),
        newest_sequence: Sequence(1),
    };
    let error = open(&path).unwrap().restore_tenant(restored).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
    assert!(text.contains("catalog.sqlite: UNIQUE constraint"), "{text}");
    assert!(text.contains("from a backup"), "{text}");
}

/// Goal: damage found long after the file was opened names it too, to readers and writers.
#[test]
fn damage_that_is_met_later_names_the_file() {
    let (_keep, path) = place();
    let catalog = open(&path).unwrap();
    let made = catalog.create_tenant(tenant("a-tenant"), TenantMode::Standard, None).unwrap();
    let name = sub("a-sub-tenant");
    catalog.reserve_sequence(made.collection, &name, &source("s"), None).unwrap();
    drop(catalog);
    let mut bytes = fs::read(&path).unwrap();
    let found = name.as_str().as_bytes();
    let at = bytes.windows(found.len()).position(|bytes| bytes == found).unwrap();
    bytes[at / 4096 * 4096..][..4096].fill(0);
    fs::write(&path, bytes).unwrap();
    let catalog = open(&path).unwrap();
    let read = catalog.sub_tenants(made.collection).unwrap_err();
    let written = catalog.delete_sub_tenant(made.collection, &name).unwrap_err();
    for error in [read, written] {
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
        assert_eq!(text.matches("catalog.sqlite:").count(), 1, "{text}");
        assert!(text.contains("from a backup"), "{text}");
    }
}

/// Goal: a database of another program that sets neither number is left alone too.
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

/// Goal: a failed migration leaves the existing format, and the next start tries again.
#[test]
fn a_migration_that_fails_changes_nothing() {
    let (directory, path) = place();
    let older = Connection::open(&path).unwrap();
    migrations::migrate_to(&older, &path, 3).unwrap();
    // The next step creates a table of this name.
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

    // A copy that cannot be renamed leaves no partial file on a disk that may be full.
    let copy = directory.path().join("catalog.sqlite.v3");
    fs::create_dir(&copy).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(names(directory.path()), ["catalog.sqlite", "catalog.sqlite.v3"]);
    fs::remove_dir(&copy).unwrap();
    open(&path).unwrap().verify().unwrap();
}

#[test]
fn logs_of_a_lost_file_are_not_applied_to_a_new_one() {
    let (directory, path) = place();
    let beside = |suffix: &str| directory.path().join(format!("catalog.sqlite{suffix}"));
    Catalog::set_aside_logs(&path).unwrap();
    for suffix in ["-wal", "-shm", "-journal"] {
        fs::write(beside(suffix), suffix).unwrap();
    }
    Catalog::set_aside_logs(&path).unwrap();
    let aside = ["-journal.lost", "-shm.lost", "-wal.lost"];
    assert_eq!(names(directory.path()), aside.map(|suffix| format!("catalog.sqlite{suffix}")));
    fs::write(beside("-wal"), "newer").unwrap();
    fs::remove_file(beside("-wal.lost")).unwrap();
    fs::create_dir(beside("-wal.lost")).unwrap();
    let error = Catalog::set_aside_logs(&path).unwrap_err().to_string();
    assert!(error.contains("catalog.sqlite-wal could not be moved away"), "{error}");
    assert_eq!(fs::read(beside("-wal")).unwrap(), b"newer");

    fs::remove_dir(beside("-wal.lost")).unwrap();
    fs::write(&path, "half").unwrap();
    Catalog::remove_left_over(&path).unwrap();
    assert!(!path.exists() && !beside("-wal").exists());
    fs::create_dir(&path).unwrap();
    let error = Catalog::remove_left_over(&path).unwrap_err().to_string();
    assert!(error.contains("catalog.sqlite could not be moved away"), "{error}");
}

#[test]
fn a_catalog_that_was_built_beside_takes_the_name_whole() {
    let (directory, path) = place();
    let fresh = directory.path().join("catalog.sqlite.fresh");
    let built = open(&fresh).unwrap();
    built.create_tenant(tenant("a"), TenantMode::Standard, None).unwrap();
    let clone = built.clone();
    let error = built.move_to(&fresh, &path).unwrap_err().to_string();
    assert!(error.contains("still in use"), "{error}");
    assert!(!path.exists());
    // A reader in another process keeps the log from being checkpointed.
    let reader = Connection::open(&fresh).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM tenants").unwrap();
    let read = || reader.query_row("SELECT count(*) FROM tenants", [], |row| row.get::<_, i64>(0));
    assert_eq!(read(), Ok(1));
    let error = clone.move_to(&fresh, &path).unwrap_err();
    assert!(!path.exists(), "{error}");
    drop(reader);

    let away = directory.path().join("none/catalog.sqlite");
    let error = open(&fresh).unwrap().move_to(&fresh, &away).unwrap_err().to_string();
    assert!(error.contains("catalog.sqlite.fresh could not be moved away"), "{error}");
    open(&fresh).unwrap().move_to(&fresh, &path).unwrap();
    assert_eq!(names(directory.path()), ["catalog.sqlite"], "with nothing left beside");
    assert!(open(&path).unwrap().tenant(&tenant("a")).unwrap().is_some());
}

/// Goal: a lock held by another process makes a write fail cleanly, and the next write succeeds.
#[test]
fn a_lock_of_another_process_delays_or_refuses_and_poisons_nothing() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    // Avoids waiting out the usual timeout of seconds.
    let impatient =
        |connection: &Connection| Ok(connection.busy_timeout(std::time::Duration::ZERO)?);
    fixture.catalog.write(impatient).unwrap();
    let other = Connection::open(fixture.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = fixture.catalog.submit(fixture.job(of, "s")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("locked"), "{refused}");
    other.execute_batch("COMMIT").unwrap();
    fixture.submit(of, "s");
}

/// Goal: a closure whose error ends the whole transaction fails the closures before it too, and
/// nobody is told that theirs succeeded.
#[test]
fn an_error_that_ends_the_transaction_refuses_the_whole_batch() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    std::thread::scope(|scope| {
        let catalog = &fixture.catalog;
        let release = fixture.hold_writer(scope);
        let before = fixture.job(of, "before");
        let before = scope.spawn(move || catalog.submit(before));
        fixture.until_waiting(1);
        let ends = |connection: &Connection| -> Result<(), CatalogError> {
            connection.execute_batch("ROLLBACK")?;
            Err(CatalogError::StorageFull)
        };
        let ending = scope.spawn(move || catalog.write(ends));
        fixture.until_waiting(2);
        release();
        for refused in [before.join().unwrap().map(drop), ending.join().unwrap()] {
            assert!(matches!(refused, Err(CatalogError::StorageFull)), "{refused:?}");
        }
    });
    assert_eq!(fixture.status(of, "before"), None);
    fixture.submit(of, "after");
}

/// Goal: each error tells its caller what to do: wait, free the disk, or repair the file.
#[test]
fn errors_of_sqlite_keep_their_kind() {
    let of = |code: i32| {
        let error = ffi::Error::new(code);
        CatalogError::from(rusqlite::Error::SqliteFailure(error, None))
    };
    let kinds = [
        (ffi::SQLITE_FULL, ErrorKind::StorageFull),
        (ffi::SQLITE_IOERR_SHMSIZE, ErrorKind::StorageFull),
        (ffi::SQLITE_IOERR_WRITE, ErrorKind::StorageFull),
        (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable),
        (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
        (ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable),
        (ffi::SQLITE_READONLY, ErrorKind::Unavailable),
        (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt),
        (ffi::SQLITE_NOTADB, ErrorKind::Corrupt),
        (ffi::SQLITE_CONSTRAINT, ErrorKind::Internal),
    ];
    for (code, kind) in kinds {
        assert_eq!(of(code).kind(), kind, "{code}");
    }
    let source = Box::new(CatalogError::StorageFull);
    let copy = CatalogError::CopyFailed { copy: "catalog.sqlite.v2".into(), source };
    assert_eq!(copy.kind(), ErrorKind::StorageFull);
    for (error, kind) in [
        (CatalogError::ResponseTooLong { bytes: 2, max: 1 }, ErrorKind::TooLarge),
        (CatalogError::TooOld { found: 1, needed: 2 }, ErrorKind::Unavailable),
    ] {
        assert_eq!(error.kind(), kind, "{error}");
    }
    let none = CatalogError::from(rusqlite::Error::QueryReturnedNoRows);
    assert_eq!(none.kind(), ErrorKind::Internal);
}

/// Goal: values that no release has written are reported as damage, with the problem, and are not
/// misread as something else.
#[test]
fn values_that_nobody_writes_are_damage() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.submit(of, "s");
    let key = fixture.catalog.bootstrap_key().unwrap().unwrap();
    fixture.catalog.set_vector_store(of, &sub("x"), Some("t".into()), None).unwrap();
    let scope = sub("default");
    let batch = crate::FileBatch {
        id: "b".into(),
        created_at: Timestamp(1),
        is_canceled: false,
        files: Vec::new(),
    };
    fixture.catalog.add_file_batch(of, &scope, batch).unwrap();
    let other = Connection::open(fixture.path()).unwrap();
    other.pragma_update(None, "foreign_keys", false).unwrap();
    let page =
        crate::StorePage { reached: None, only: None, after: None, is_ascending: true, limit: 9 };
    type Look<'a> = Box<dyn Fn() -> Option<CatalogError> + 'a>;
    let catalog = &fixture.catalog;
    let latest = || catalog.latest(of, &scope, &source("s")).err();
    let looks: [(&str, &str, Look<'_>); 9] = [
        ("jobs SET detail = '{'", "detail", Box::new(latest)),
        ("jobs SET document_metadata = '['", "metadata", Box::new(latest)),
        ("jobs SET status = 'lost'", "unknown word \"lost\"", Box::new(latest)),
        (
            "jobs SET sub_tenant = 'a b'",
            "sub_tenant_id",
            Box::new(|| catalog.job(&job_id(catalog)).err()),
        ),
        ("tenants SET mode = 'odd'", "odd", Box::new(|| catalog.tenants().err())),
        ("tenants SET schema = '3'", "tenant schema", Box::new(|| catalog.tenants().err())),
        ("vector_stores SET metadata = '3'", "vector store", {
            Box::new(|| catalog.vector_stores(of, &page).err())
        }),
        ("file_batches SET files = '3'", "batch of files", {
            Box::new(|| catalog.file_batch(of, &scope, "b").err())
        }),
        ("api_keys SET role = 'king'", "king", {
            Box::new(|| match catalog.authenticate(key.expose()) {
                Err(AuthError::Storage { source }) => Some(source),
                other => panic!("{other:?}"),
            })
        }),
    ];
    for (change, words, look) in looks {
        let column = change.split([' ', '=']).nth(2).unwrap();
        let table = change.split(' ').next().unwrap();
        let select = format!("SELECT {column} FROM {table}");
        let before: Option<String> = other.query_row(&select, [], |row| row.get(0)).unwrap();
        other.execute_batch(&format!("UPDATE {change}")).unwrap();
        let error = look().unwrap_or_else(|| panic!("{change}: it was read"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{change}: {error}");
        assert!(error.to_string().contains(words), "{change}: {error}");
        other.execute(&format!("UPDATE {table} SET {column} = ?1"), [before]).unwrap();
    }
    assert_eq!(latest().map(|error| error.to_string()), None, "all is whole again");
}

fn job_id(catalog: &Catalog) -> String {
    let sql = "SELECT job_id FROM jobs";
    catalog.read(|connection| Ok(connection.query_row(sql, [], |row| row.get(0))?)).unwrap()
}

/// Goal: an unknown error code of a later release is shown as an internal error, with its job.
#[test]
fn a_fault_that_is_not_known_here_is_internal() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let job = fixture.submit(of, "s").sequence;
    fixture.claim().unwrap();
    fixture.settle(of, job, rejected());
    let other = Connection::open(fixture.path()).unwrap();
    other.execute("UPDATE jobs SET fault = 'of_tomorrow'", []).unwrap();
    let row = fixture.catalog.latest(of, &sub("default"), &source("s")).unwrap().unwrap();
    assert_eq!((row.status, row.error_code), (JobStatus::Errored, Some(JobErrorCode::Internal)));
}

/// Goal: many readers share few connections, and one that cannot be opened blocks no other.
#[test]
fn a_connection_that_fails_is_not_counted() {
    let (_keep, path) = place();
    let readers = crate::readers::Readers::new(&path);
    for _ in 0..20 {
        let missing: Result<(), _> = readers.read(|_| unreachable!("there is no file"));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    drop(open(&path).unwrap());
    let calls = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let read = |connection: &Connection| {
                    calls.fetch_add(1, Ordering::SeqCst);
                    Ok(connection.query_row("SELECT count(*) FROM tenants", [], |row| {
                        row.get::<_, i64>(0)
                    })?)
                };
                assert_eq!(readers.read(read).unwrap(), 0);
            });
        }
    });
    assert_eq!(calls.load(Ordering::SeqCst), 12);
}
