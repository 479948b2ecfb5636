//! Migration of a catalog in use to format 8.

use std::fs;
use std::path::Path;

use super::*;
use crate::job::FetchedOriginal;
use crate::migrations;
use lodestone_types::SessionId;

/// Tables that hold rows in format 7, parents first, with their columns. Triggers fill the others.
const TABLES: [(&str, &str); 6] = [
    ("tenants", "*"),
    ("sub_tenants", "*"),
    ("jobs", "*"),
    ("known_sources", "*"),
    ("sessions", "id, collection, sub_tenant, name, last_at"),
    ("turns", "*"),
];

/// Creates a catalog with jobs in every state, sources and conversations in several sub-tenants,
/// and a tenant that is being deleted.
fn in_use() -> Fixture {
    let fixture = Fixture::new();
    let [a, b, gone] = ["a", "b", "gone"].map(|name| fixture.tenant(name).collection);
    let submit = |of, place: &str, name: &str, size_bytes| {
        let job = NewJob { sub_tenant: sub(place), size_bytes, ..fixture.job(of, name) };
        fixture.catalog.submit(job).unwrap().sequence
    };
    let published = submit(a, "north", "published", 1);
    let refused = submit(a, "north", "refused", 20);
    let failed = submit(a, "south", "failed", 300);
    submit(a, "south", "in progress", 4000);
    fixture.claim().unwrap();
    fixture.settle(a, published, PUBLISHED);
    fixture.settle(a, refused, rejected());
    fixture.settle(a, failed, faulted());
    // A page has no size until it is fetched, and waits again with it.
    let (kind, raw_key) = (SourceKind::Webpage, String::new());
    let page = NewJob { kind, raw_key, size_bytes: 0, ..fixture.job(b, "page") };
    let page = fixture.catalog.submit(page).unwrap().sequence;
    fixture.catalog.claim(Duty::Fetch, NO_LIMIT).unwrap().unwrap();
    let original = FetchedOriginal {
        raw_key: "raw/page".into(),
        url: "https://example.org".into(),
        content_type: "text/html".into(),
        size_bytes: 50_000,
        content_hash: [9; 32],
    };
    assert!(fixture.catalog.fetched(page, original).unwrap());
    fixture.settle(b, page, Outcome::Released);
    for size_bytes in [600_000, 7_000_000] {
        submit(b, "default", "replaced", size_bytes);
    }
    submit(b, "default", "deleted", 80_000_000);
    fixture.catalog.cancel_sources(b, &sub("default"), &[source("deleted")]).unwrap();
    fixture.catalog.reserve_sequence(b, &sub("x"), &source("vectors"), Some(64)).unwrap();
    fixture.catalog.reserve_sequence(b, &sub("x"), &source("memory"), None).unwrap();
    submit(gone, "default", "waits", 9);
    for (of, place, name) in
        [(a, "north", "one"), (a, "north", "one"), (b, "x", "two"), (gone, "default", "three")]
    {
        let (name, answer) = (SessionId::parse(name).unwrap(), "because, därför".to_owned());
        fixture.catalog.append_turn(of, &sub(place), &name, "why?".into(), answer).unwrap();
    }
    fixture.catalog.begin_delete_tenant(&tenant("gone")).unwrap();
    fixture
}

/// Copies the rows of a catalog into a new file of format 7.
fn as_format_7(from: &Fixture, path: &Path) -> Connection {
    let older = Connection::open(path).unwrap();
    older.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    migrations::migrate_to(&older, path, 7).unwrap();
    older.execute("ATTACH ?1 AS newer", [from.path().to_str().unwrap()]).unwrap();
    for (table, columns) in TABLES {
        let copy = format!("INSERT INTO {table} SELECT {columns} FROM newer.{table}");
        assert!(older.execute(&copy, []).unwrap() > 0, "{table}");
    }
    // With what their triggers made of every change, and not only of the last states.
    let counts = "DELETE FROM job_counts; INSERT INTO job_counts SELECT * FROM newer.job_counts";
    older.execute_batch(counts).unwrap();
    older.execute_batch("DETACH newer").unwrap();
    older
}

/// Goal: a process that is killed during the migration leaves a file of format 7, and the next
/// start gives the sums of a count over all rows, which later changes keep exact.
/// Method: copy the file and its log while the transaction of the step is open and partly written.
#[test]
fn sums_are_exact_after_a_migration_that_was_killed() {
    let (from, place) = (in_use(), tempfile::tempdir().unwrap());
    from.assert_sums_are_exact();
    let path = place.path().join("catalog.sqlite");
    let older = as_format_7(&from, &path);
    let log = |path: &Path| path.with_file_name("catalog.sqlite-wal");
    let length = || fs::metadata(log(&path)).unwrap().len();
    let before = length();
    older.pragma_update(None, "cache_size", 1).unwrap();
    older.execute_batch(&format!("BEGIN IMMEDIATE; {}", migrations::STEPS[7])).unwrap();
    assert!(length() > before, "pages of the transaction are written before its end");
    let directory = tempfile::tempdir().unwrap();
    let killed = directory.path().join("catalog.sqlite");
    fs::copy(&path, &killed).unwrap();
    fs::copy(log(&path), log(&killed)).unwrap();
    let copy = directory.path().join("catalog.sqlite.v7");
    fs::write(&copy, "of the first attempt").unwrap();
    drop(older);
    let format = |path: &Path| migrations::format(&Connection::open(path).unwrap(), path).unwrap();
    assert_eq!(format(&killed), 7);

    let (clock, ids, options) = (from.clock.clone(), from.ids.clone(), from.options);
    let catalog = Catalog::open(&killed, options, clock.clone(), ids.clone()).unwrap();
    let migrated = Fixture { directory, clock, ids, options, catalog };
    assert_eq!(format(&copy), 7);
    migrated.assert_sums_are_exact();
    let rows = |fixture: &Fixture| {
        let sums = "SELECT (SELECT sum(bytes) FROM queue_use), (SELECT sum(bytes) FROM \
            sub_tenant_use), (SELECT sum(bytes) FROM session_use), (SELECT count(*) FROM jobs)";
        fixture.catalog.read(|connection| {
            Ok(connection.query_row(sums, [], |row| {
                Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })?)
        })
    };
    assert_eq!(rows(&migrated).unwrap(), rows(&from).unwrap());
    let of = migrated.catalog.tenant(&tenant("a")).unwrap().unwrap().collection;
    assert!(migrated.catalog.may_count_unstored(of).unwrap(), "batches of earlier releases");

    migrated.catalog.requeue_interrupted().unwrap();
    migrated.catalog.delete_sub_tenant(of, &sub("north")).unwrap();
    migrated.submit(of, "later");
    let name = SessionId::parse("later").unwrap();
    let here = sub("default");
    migrated.catalog.append_turn(of, &here, &name, "why?".into(), "because".into()).unwrap();
    migrated.assert_sums_are_exact();
}
