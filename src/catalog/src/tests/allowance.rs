//! Limits of tenants: exact under races, kept across restarts, released at once.

use std::sync::Barrier;

use super::{Fixture, PUBLISHED, faulted, rejected, source, sub, tenant};
use crate::job::Outcome;
use crate::{CatalogError, CatalogOptions, TenantLimits, TenantUse};
use lodestone_types::{CollectionId, CommitHead, JobErrorCode, Sequence};

fn limits(sources: impl Into<Option<u64>>, bytes: impl Into<Option<u64>>) -> TenantLimits {
    TenantLimits { sources: sources.into(), bytes: bytes.into(), ..TenantLimits::default() }
}

fn used(fixture: &Fixture, collection: CollectionId) -> (u64, u64) {
    let TenantUse { sources, bytes } = fixture.catalog.allowance(collection).unwrap().used;
    (sources, bytes)
}

fn submit(fixture: &Fixture, of: CollectionId, name: &str, bytes: u64) -> Result<u64, String> {
    let mut job = fixture.job(of, name);
    job.size_bytes = bytes;
    let submitted = fixture.catalog.submit(job);
    submitted.map(|submitted| submitted.sequence.0).map_err(|error| error.to_string())
}

#[test]
fn of_many_at_once_exactly_as_many_as_fit_are_accepted() {
    const THREADS: usize = 24;
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.set_tenant_limits(of, limits(7, None)).unwrap();
    let start = Barrier::new(THREADS);
    let accepted: usize = std::thread::scope(|scope| {
        let upload = |n: usize| {
            let (fixture, start) = (&fixture, &start);
            scope.spawn(move || {
                start.wait();
                let names = [format!("x{n}"), format!("y{n}")];
                names.iter().filter(|name| submit(fixture, of, name, 10).is_ok()).count()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(upload).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((accepted, used(&fixture, of)), (7, (7, 70)));
}

#[test]
fn a_refusal_names_limit_and_use_and_changes_nothing() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.set_tenant_limits(of, limits(2, 100)).unwrap();
    submit(&fixture, of, "a", 60).unwrap();
    let refused = submit(&fixture, of, "b", 41).unwrap_err();
    let told = "the tenant's limit of 100 bytes is reached: it has 60, and this would make it 101";
    assert_eq!(refused, told);
    assert_eq!(fixture.status(of, "b"), None);
    submit(&fixture, of, "b", 40).unwrap();
    let refused = submit(&fixture, of, "c", 0).unwrap_err();
    assert!(refused.contains("limit of 2 sources is reached: it has 2"), "{refused}");
    let batch = fixture.catalog.reserve_sequence(of, &sub("default"), &source("v"), Some(1));
    assert!(matches!(batch, Err(CatalogError::TenantLimit { limit: "sources", max: 2, .. })));
    let other = fixture.tenant("b").collection;
    submit(&fixture, other, "a", 1 << 30).unwrap();
    assert_eq!((used(&fixture, of), used(&fixture, other)), ((2, 100), (1, 1 << 30)));
}

#[test]
fn a_replacement_counts_the_larger_version_until_it_is_visible() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.set_tenant_limits(of, limits(1, 100)).unwrap();
    let end = |outcome: Outcome| {
        let job = fixture.claim().unwrap().jobs.remove(0);
        fixture.settle(of, job.sequence, outcome);
    };
    submit(&fixture, of, "a", 80).unwrap();
    end(PUBLISHED);
    submit(&fixture, of, "a", 30).unwrap();
    assert_eq!(used(&fixture, of), (1, 80));
    end(Outcome::Rejected { error_code: JobErrorCode::NoText, message: String::new() });
    assert_eq!(used(&fixture, of), (1, 80), "the old version is visible still");
    submit(&fixture, of, "a", 20).unwrap();
    end(PUBLISHED);
    assert_eq!(used(&fixture, of), (1, 20));
    submit(&fixture, of, "a", 101).unwrap_err();
    submit(&fixture, of, "a", 100).unwrap();
    end(faulted());
    assert_eq!(used(&fixture, of), (1, 100));
    let asked = [source("a")];
    fixture.catalog.cancel_sources(of, &sub("default"), &asked).unwrap();
    assert_eq!(used(&fixture, of), (0, 0));
    submit(&fixture, of, "b", 100).unwrap();
}

/// Goal: an upload that was superseded, or that failed before another one, no longer counts, while
/// the visible version and the uploads that still have their originals do.
#[test]
fn originals_that_were_released_do_not_count() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let end = |outcome: Outcome| {
        let job = fixture.claim().unwrap().jobs.remove(0);
        fixture.settle(of, job.sequence, outcome);
    };
    let counted = |visible: u64| {
        fixture.catalog.recount(of, &sub("default"), &source("a"), visible).unwrap();
        used(&fixture, of)
    };
    submit(&fixture, of, "a", 10).unwrap();
    end(PUBLISHED);
    fixture.clock.advance_millis(1);
    submit(&fixture, of, "a", 500).unwrap();
    assert_eq!(counted(10), (1, 500), "it waits");
    fixture.clock.advance_millis(1);
    submit(&fixture, of, "a", 90).unwrap();
    assert_eq!(counted(10), (1, 90), "it was superseded");
    end(rejected());
    assert_eq!(counted(10), (1, 90), "it can be tried again");
    fixture.clock.advance_millis(1);
    submit(&fixture, of, "a", 20).unwrap();
    end(rejected());
    assert_eq!(counted(10), (1, 20));
    assert_eq!(counted(40), (1, 20), "nothing is counted in addition");
    fixture.catalog.recount(of, &sub("default"), &source("unknown"), 7).unwrap();
    assert_eq!(used(&fixture, of), (1, 20));
}

/// Goal: a part of a source that was deleted makes room at once, and only in its own scope.
#[test]
fn what_is_left_of_a_source_is_what_counts() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.set_tenant_limits(of, limits(None, 100)).unwrap();
    let reserve = |scope: &str, batch: &str, bytes| {
        fixture.catalog.reserve_sequence(of, &sub(scope), &source(batch), Some(bytes))
    };
    reserve("x", "v", 60).unwrap();
    reserve("y", "v", 40).unwrap();
    reserve("x", "w", 1).unwrap_err();
    let left = vec![(sub("x"), source("v"), 5), (sub("x"), source("unknown"), 9)];
    fixture.catalog.set_bytes(of, left).unwrap();
    assert_eq!(used(&fixture, of), (2, 45));
    reserve("x", "w", 55).unwrap();
}

/// Goal: only a batch whose upload was cut off has the known sources of its tenant read when it is
/// opened, however many there are.
#[test]
fn a_batch_that_counts_is_noted_until_it_is_stored() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let may = |expected: bool| {
        assert_eq!(fixture.catalog.may_count_unstored(of).unwrap(), expected);
        let not_known = fixture.catalog.tenants_not_known().unwrap();
        assert!(not_known.is_empty(), "{not_known:?}");
    };
    let reserve = |batch: &str, bytes| {
        fixture.catalog.reserve_sequence(of, &sub("x"), &source(batch), bytes).unwrap()
    };
    let head = |version| CommitHead { version, nonce: uuid::Uuid::nil() };
    may(false);
    reserve("memory", None);
    may(false);
    reserve("v", Some(8));
    fixture.catalog.record_head(of, head(1)).unwrap();
    may(true);
    fixture.catalog.record_batch(of, head(2)).unwrap();
    assert_eq!(fixture.catalog.head(of).unwrap(), Some(head(2)));
    may(false);
    reserve("cut off", Some(8));
    reserve("w", Some(8));
    fixture.catalog.record_batch(of, head(3)).unwrap();
    may(true);
    fixture.catalog.all_stored(of).unwrap();
    may(false);
    let last = reserve("w", Some(8));
    fixture.catalog.all_stored(of).unwrap();
    may(false);
    fixture.catalog.raise_sequence(Sequence(last.0 + 1)).unwrap();
    fixture.catalog.all_stored(of).unwrap();
    assert_eq!(fixture.catalog.tenants_not_known().unwrap(), [tenant("a")]);
    assert!(fixture.catalog.may_count_unstored(of).unwrap());
    fixture.catalog.all_known(of).unwrap();
    may(true);
}

#[test]
fn limits_survive_a_restart_and_end_with_their_tenant() {
    let defaults = limits(3, 1000);
    let options = CatalogOptions { tenant_limits: defaults, ..CatalogOptions::default() };
    let fixture = Fixture::with(options);
    let of = fixture.tenant("a").collection;
    fixture.catalog.set_tenant_limits(of, limits(5, None)).unwrap();
    submit(&fixture, of, "a", 10).unwrap();
    fixture.catalog.reserve_sequence(of, &sub("x"), &source("v"), Some(8)).unwrap();
    fixture.catalog.reserve_sequence(of, &sub("x"), &source("memory"), None).unwrap();
    let fixture = fixture.reopen();
    let allowance = fixture.catalog.allowance(of).unwrap();
    assert_eq!((allowance.own, allowance.limits), (limits(5, None), limits(5, 1000)));
    assert_eq!(allowance.used, TenantUse { sources: 2, bytes: 18 });
    fixture.catalog.delete_sub_tenant(of, &sub("x")).unwrap();
    assert_eq!(used(&fixture, of), (1, 10));
    fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap();
    fixture.catalog.finish_delete_collection(of).unwrap();
    let again = fixture.tenant("a").collection;
    let allowance = fixture.catalog.allowance(again).unwrap();
    assert_eq!((allowance.own, allowance.limits), (TenantLimits::default(), defaults));
    assert_eq!(allowance.used, TenantUse::default());
}

#[test]
fn sources_of_an_older_catalog_are_counted_when_they_are_found() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let newest = submit(&fixture, of, "a", 10).unwrap();
    let at = |name: &str, sequence, bytes| {
        (sub("default"), source(name), lodestone_types::Sequence(sequence), bytes)
    };
    let found = vec![
        at("a", newest, Some(30)),
        at("old", 0, Some(5)),
        at("memory", 0, None),
        at("a", newest - 1, Some(99)),
    ];
    fixture.catalog.add_known(of, found).unwrap();
    assert_eq!(used(&fixture, of), (2, 35));
}

#[test]
fn every_limit_is_kept_and_seen_at_once_by_whoever_asks_for_the_tenant() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let found = |fixture: &Fixture| fixture.catalog.tenant(&tenant("a")).unwrap().unwrap();
    assert_eq!(found(&fixture).limits, TenantLimits::default());
    let all = TenantLimits {
        vectors: Some(3),
        requests_per_minute: Some(4),
        ingest_workers: Some(5),
        ..limits(1, 2)
    };
    let set = fixture.catalog.set_tenant_limits(of, all).unwrap();
    fixture.catalog.set_embedding_model(of, Some("other".to_owned())).unwrap();
    assert_eq!((set.own, found(&fixture).limits), (all, all));
    assert_eq!(fixture.catalog.tenants().unwrap(), [(*found(&fixture)).clone()]);
    let fixture = fixture.reopen();
    assert_eq!(found(&fixture).limits, all);
    assert_eq!(found(&fixture).embedding_model.as_deref(), Some("other"));
    fixture.catalog.set_embedding_model(of, None).unwrap();
    assert_eq!(found(&fixture).embedding_model, None);
    let nobody = CollectionId(uuid::Uuid::from_bytes([9; 16]));
    fixture.catalog.set_tenant_limits(nobody, all).unwrap_err();
}

#[test]
fn a_catalog_of_format_6_keeps_its_limits_and_follows_the_models_of_the_server() {
    let fixture = Fixture::new();
    let path = fixture.directory.path().join("older.sqlite");
    let older = rusqlite::Connection::open(&path).unwrap();
    crate::migrations::migrate_to(&older, &path, 6).unwrap();
    let rows = "INSERT INTO tenants (collection, name, mode, created_at)
            VALUES (zeroblob(16), 'a', 'standard', 5), (randomblob(16), 'b', 'standard', 5);
        INSERT INTO tenant_limits VALUES (zeroblob(16), 3, NULL);";
    older.execute_batch(rows).unwrap();
    drop(older);
    let (options, clock, ids) = (fixture.options, fixture.clock.clone(), fixture.ids.clone());
    let opened = crate::Catalog::open(&path, options, clock, ids).unwrap();
    assert!(path.with_file_name("older.sqlite.v6").exists(), "copied before");
    let found = opened.tenants().unwrap();
    let limits: Vec<_> = found.iter().map(|tenant| tenant.limits).collect();
    assert_eq!(limits, [self::limits(3, None), TenantLimits::default()]);
    assert!(found.iter().all(|tenant| tenant.embedding_model.is_none()));
    let more = TenantLimits { vectors: Some(9), ..limits[0] };
    assert_eq!(opened.set_tenant_limits(found[0].collection, more).unwrap().limits, more);
}
