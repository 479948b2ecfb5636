//! Durability: stops, failed commits, full disks, other formats.

use crate::job::Duty;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::*;
use crate::{CatalogError, migrations};
use lodestone_types::{ErrorKind, limits};

#[test]
fn everything_acknowledged_is_there_after_a_stop() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    for n in 0..20 {
        fixture.submit(collection, &format!("s{n}"));
    }
    let two = ClaimLimits { jobs: 2, bytes: u64::MAX };
    let claimed = fixture.catalog.claim(Duty::Process, two).unwrap().unwrap().jobs;
    fixture.settle(collection, claimed[0].sequence, PUBLISHED);

    let fixture = fixture.reopen();
    let left = fixture.catalog.interrupted().unwrap();
    assert_eq!(left, [(collection, vec![claimed[1].sequence])]);
    let early = fixture.catalog.claim(Duty::Process, two).unwrap_err();
    assert!(matches!(early, CatalogError::NotRecovered));
    assert_eq!(fixture.catalog.requeue_interrupted().unwrap(), 1);
    assert_eq!(fixture.catalog.requeue_interrupted().unwrap(), 0);
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["s1"], "interrupted: alone");
    assert_eq!(fixture.claim().unwrap().jobs.len(), 18);
    assert_eq!(fixture.status(collection, "s0"), Some(JobStatus::Success));
}

#[test]
fn an_interrupted_job_that_was_applied_is_settled_not_repeated() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let job = fixture.submit(collection, "s");
    fixture.claim().unwrap();
    let fixture = fixture.reopen();
    fixture.settle(collection, job.sequence, PUBLISHED);
    assert_eq!(fixture.catalog.requeue_interrupted().unwrap(), 0);
    assert_eq!(fixture.claim(), None);
}

#[test]
fn a_document_that_stops_the_server_again_and_again_ends() {
    let mut fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    fixture.submit(collection, "poison");
    let mut starts = 0;
    while fixture.claim().is_some() {
        fixture = fixture.reopen();
        fixture.catalog.requeue_interrupted().unwrap();
        starts += 1;
        assert!(starts < 20);
    }
    let limit = limits::ATTEMPTS_MAX * limits::INTERRUPTIONS_PER_ATTEMPT;
    assert_eq!(starts, limit, "so many stops of the server cost one attempt");
    assert_eq!(fixture.status(collection, "poison"), Some(JobStatus::Errored));
}

#[test]
fn callers_that_wait_together_share_one_commit() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let counters = &fixture.catalog.inner.writer.counters;
    let counts =
        || (counters.commits.load(Ordering::SeqCst), counters.writes.load(Ordering::SeqCst));
    let (commits_before, writes_before) = counts();
    std::thread::scope(|scope| {
        let catalog = &fixture.catalog;
        let release = fixture.hold_writer(scope);
        let callers: Vec<_> = (0..24)
            .map(|n| {
                let job = fixture.job(collection, &format!("s{n}"));
                scope.spawn(move || catalog.submit(job).unwrap())
            })
            .collect();
        fixture.until_waiting(24);
        release();
        callers.into_iter().for_each(|caller| drop(caller.join().unwrap()));
    });
    let (commits, writes) = counts();
    assert_eq!(writes - writes_before, 25);
    assert!(commits - commits_before <= 3, "{}", commits - commits_before);
    assert_eq!(fixture.claim().unwrap().jobs.len(), 24);
}

#[test]
fn a_failing_closure_undoes_only_itself() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let failed: Result<(), _> = fixture.catalog.write(|connection| {
        connection.execute("DELETE FROM tenants", [])?;
        Err(CatalogError::NotRecovered)
    });
    assert!(matches!(failed, Err(CatalogError::NotRecovered)));
    fixture.submit(collection, "s");
}

#[test]
fn after_a_failed_commit_nothing_is_written_until_reopened() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    fixture.submit(collection, "before");
    // A deferred constraint is violated only at the commit.
    let failed = fixture.catalog.write(|connection| {
        connection.execute_batch(
            "PRAGMA defer_foreign_keys = ON;
             INSERT INTO key_scopes (key_id, tenant) VALUES ('none', 't');",
        )?;
        Ok(())
    });
    assert!(matches!(failed.unwrap_err(), CatalogError::InDoubt { .. }));
    let refused = fixture.catalog.submit(fixture.job(collection, "after")).unwrap_err();
    assert!(matches!(refused, CatalogError::Poisoned { .. }));
    assert_eq!(fixture.status(collection, "before"), Some(JobStatus::Queued), "reads go on");
    let fixture = fixture.reopen();
    fixture.submit(collection, "after");
    assert_eq!(fixture.claim().unwrap().jobs.len(), 2);
}

#[test]
fn a_failed_sync_poisons_and_a_refused_write_does_not() {
    let fixture = Fixture::new();
    let fail = |code: i32| {
        fixture.catalog.write(move |_| -> Result<(), CatalogError> {
            let code = rusqlite::ffi::Error::new(code);
            Err(rusqlite::Error::SqliteFailure(code, None).into())
        })
    };
    let refused = fail(rusqlite::ffi::SQLITE_IOERR_WRITE);
    assert!(matches!(refused, Err(CatalogError::StorageFull)));
    fixture.catalog.write(|_| Ok(())).unwrap();
    assert!(matches!(fail(rusqlite::ffi::SQLITE_IOERR_FSYNC), Err(CatalogError::Io { .. })));
    assert!(fixture.catalog.write(|_| Ok(())).is_err());
}

#[test]
fn a_panic_in_the_writer_fails_its_callers_and_hangs_nobody() {
    let fixture = Fixture::new();
    let failed: Result<(), _> = fixture.catalog.write(|_| panic!("on purpose"));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(fixture.catalog.write(|_| Ok(())).is_err());
}

#[test]
fn a_full_disk_refuses_and_then_goes_on() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let limit_pages = |pages: i64| {
        fixture
            .catalog
            .write(move |connection| {
                Ok(connection.pragma_update_and_check(None, "max_page_count", pages, |row| {
                    row.get::<_, i64>(0)
                })?)
            })
            .unwrap()
    };
    limit_pages(1); // SQLite raises this to the present size.
    let mut accepted = 0;
    let refused = loop {
        let mut job = fixture.job(collection, &format!("s{accepted}"));
        job.filename = "x".repeat(500);
        match fixture.catalog.submit(job) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 1000);
    };
    assert_eq!(refused.kind(), ErrorKind::StorageFull);
    let count = || fixture.catalog.job_counts(&crate::JobScope::Everywhere).unwrap();
    assert_eq!(count().queued, accepted, "nothing of the refused one stayed");
    limit_pages(1_000_000);
    fixture.submit(collection, "more");
    assert_eq!(count().queued, accepted + 1);
}

#[test]
fn a_newer_format_and_a_foreign_file_are_refused() {
    let fixture = Fixture::new();
    let path = fixture.path();
    let Fixture { directory: _keep, clock, ids, options, catalog } = fixture;
    drop(catalog);
    let set = |pragma: &str| Connection::open(&path).unwrap().execute_batch(pragma).unwrap();
    let open = || Catalog::open(&path, options, clock.clone(), ids.clone());
    set("PRAGMA user_version = 99");
    let error = open().unwrap_err();
    assert!(matches!(error, CatalogError::TooNew { found: 99, .. }));
    assert!(error.to_string().contains("upgrade"), "{error}");
    set("PRAGMA user_version = 1; PRAGMA application_id = 77");
    assert!(matches!(open().unwrap_err(), CatalogError::Foreign { found: 77, .. }));
    std::fs::write(&path, "not a database, but long enough to be looked at as one".repeat(9))
        .unwrap();
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn an_older_file_is_copied_before_it_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.sqlite");
    let copy = directory.path().join("catalog.sqlite.v2");
    let partial = directory.path().join("catalog.sqlite.v2.partial");
    let format_of = |path: &Path| -> i64 {
        let file = Connection::open(path).unwrap();
        file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let mark = |value: &str| {
        let file = Connection::open(&path).unwrap();
        file.execute("CREATE TABLE IF NOT EXISTS mark (value TEXT)", []).unwrap();
        file.execute("INSERT INTO mark VALUES (?1)", [value]).unwrap();
    };
    let older = Connection::open(&path).unwrap();
    migrations::migrate_to(&older, &path, 2).unwrap();
    drop(older);
    mark("one");
    let fixture = Fixture::new();
    let open = || Catalog::open(&path, fixture.options, fixture.clock.clone(), fixture.ids.clone());

    // If the copy cannot be made, nothing changes.
    fs::create_dir(&partial).unwrap();
    let error = open().unwrap_err().to_string();
    assert!(
        error.contains("catalog.sqlite.v2") && error.contains("nothing was changed"),
        "{error}"
    );
    assert_eq!(format_of(&path), 2);
    assert!(!copy.exists());
    fs::remove_dir(&partial).unwrap();

    // Copies of an interrupted attempt are replaced.
    fs::write(&partial, "half a copy").unwrap();
    fs::write(&copy, "one of yesterday").unwrap();
    drop(open().unwrap());
    assert_eq!(format_of(&path), Catalog::format() as i64);
    assert_eq!(format_of(&copy), 2);
    assert!(!partial.exists());

    // Only a migration makes a copy, and the copy opens.
    mark("two");
    drop(open().unwrap());
    let kept = Connection::open(&copy).unwrap();
    let marks = kept.query_row("SELECT group_concat(value) FROM mark", [], |row| row.get(0));
    assert_eq!(marks, Ok("one".to_owned()));
    drop(kept);
    fs::rename(&copy, &path).unwrap();
    drop(open().unwrap());
    assert_eq!(format_of(&path), Catalog::format() as i64);
}

#[test]
fn settings_that_durability_rests_on_are_in_force() {
    let fixture = Fixture::new();
    let number = |pragma: &'static str| {
        fixture
            .catalog
            .write(move |c| Ok(c.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))?))
            .unwrap()
    };
    assert_eq!(number("synchronous"), 2, "FULL");
    assert_eq!(number("foreign_keys"), 1);
    let mode = fixture
        .catalog
        .read(|c| Ok(c.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))?));
    assert_eq!(mode.unwrap(), "wal");
}
