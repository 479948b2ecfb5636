//! Metadata changes before visibility, fetched pages, and tenants whose collections are built
//! elsewhere.

use super::*;
use crate::job::FetchedOriginal;
use crate::steps::ROWS_PER_STEP;
use crate::{Amended, CatalogError, JobCounts, NewKey, TenantLimits, TenantUse};
use lodestone_types::{CommitHead, ErrorKind, KeyScope, Role, SourceRecord, TenantGrant};

impl Fixture {
    fn amend(&self, of: CollectionId, name: &str, value: &str) -> Amended {
        let (default, map) = (sub("default"), metadata("team", value));
        self.catalog.amend(of, &default, &source(name), Some(&map), None).unwrap()
    }

    fn page(&self, of: CollectionId, name: &str) -> Submitted {
        let (kind, raw_key) = (SourceKind::Webpage, String::new());
        let job = NewJob { kind, raw_key, size_bytes: 0, ..self.job(of, name) };
        self.catalog.submit(job).unwrap()
    }

    fn used(&self, of: CollectionId) -> TenantUse {
        self.catalog.allowance(of).unwrap().used
    }
}

#[test]
fn an_amendment_reaches_every_job_that_has_not_succeeded() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.submit(of, "failed");
    let failed = fixture.claim().unwrap().jobs[0].sequence;
    fixture.settle(of, failed, rejected());
    fixture.submit(of, "done");
    let done = fixture.claim().unwrap().jobs[0].sequence;
    fixture.settle(of, done, PUBLISHED);
    fixture.submit(of, "running");
    let running = fixture.claim().unwrap().jobs[0].clone();
    fixture.submit(of, "waiting");

    let reached = |name: &str| {
        let Amended { waits, is_errored, .. } = fixture.amend(of, name, "red");
        (waits, is_errored)
    };
    assert_eq!(reached("waiting"), (true, false));
    assert_eq!(reached("running"), (true, false));
    assert_eq!(reached("failed"), (false, true));
    assert_eq!(reached("done"), (false, false));
    let other = fixture.tenant("b").collection;
    assert_eq!(fixture.amend(other, "waiting", "blue"), Amended::default());

    // The worker of the running job is notified, and takes the new map after releasing the job.
    let claimed = [(running.sequence, running.revision), (done, 0)];
    assert_eq!(fixture.catalog.amended(&claimed).unwrap(), [running.sequence]);
    fixture.settle(of, running.sequence, Outcome::Released);
    let again = fixture.claim().unwrap();
    let maps: Vec<_> = again.jobs.iter().map(|job| job.tenant_metadata.clone()).collect();
    assert_eq!(maps, [(); 2].map(|()| MetadataChange::Replace(metadata("team", "red"))));
    let kept = &again.jobs[0].document_metadata;
    assert_eq!(*kept, MetadataChange::Replace(metadata("by", "running")), "none was given");
    assert!(fixture.catalog.amended(&[(again.jobs[0].sequence, 1)]).unwrap().is_empty());

    let names = |asked: Option<&[SourceId]>| -> Vec<String> {
        let found = fixture.catalog.yet_to_succeed(of, &sub("default"), asked).unwrap();
        found.iter().map(ToString::to_string).collect()
    };
    let mut every = names(None);
    every.sort();
    assert_eq!(every, ["failed", "running", "waiting"]);
    assert_eq!(names(Some(&["done", "waiting", "none"].map(source))), ["waiting"]);
    let keys = fixture.catalog.raw_keys(of).unwrap();
    assert_eq!(keys.len(), 4, "{keys:?}");
}

/// Goal: the content of a visible version is not accepted once more after another upload was
/// accepted, or a failed one was queued again.
#[test]
fn a_version_is_not_accepted_again_over_a_later_upload() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let first = fixture.submit(of, "s").sequence;
    fixture.claim().unwrap();
    fixture.settle(of, first, PUBLISHED);
    let seen = fixture.amend(of, "s", "red").newest;
    assert_eq!(seen, Some(first));
    let is_accepted = |seen: Option<Sequence>| {
        fixture.catalog.submit_again(fixture.job(of, "s"), seen).unwrap().is_some()
    };
    let second = fixture.submit(of, "s").sequence;
    assert!(!is_accepted(seen), "it waits");
    fixture.claim().unwrap();
    assert!(!is_accepted(seen), "it is processed");
    fixture.settle(of, second, rejected());
    assert!(!is_accepted(seen), "it has failed without the new map");
    let seen = fixture.amend(of, "s", "red").newest;
    fixture.catalog.retry(second).unwrap();
    assert!(!is_accepted(seen), "it waits again");
    fixture.claim().unwrap();
    fixture.settle(of, second, rejected());
    assert!(is_accepted(seen));
}

/// Goal: the fields that jobs keep of a visible version are copied into them before that version
/// goes.
#[test]
fn what_a_job_keeps_is_written_into_it() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let tenant_metadata = MetadataChange::Replace(metadata("own", "1"));
    let detail = SourceDetail { keeps: true, language: "de".into(), ..SourceDetail::default() };
    let document_metadata = MetadataChange::Keep;
    let job = NewJob { tenant_metadata, document_metadata, detail, ..fixture.job(of, "s") };
    fixture.catalog.submit(job).unwrap();
    let record = |sub_tenant: &str, word: &str| {
        let (sub_tenant, at) = (sub(sub_tenant), Timestamp(3));
        let new = SourceRecord::new(sub_tenant, source("s"), SourceKind::Text, Sequence(1), at);
        let detail = SourceDetail { title: word.into(), ..SourceDetail::default() };
        let (tenant_metadata, document_metadata) = (metadata("t", word), metadata("d", word));
        SourceRecord { url: word.into(), detail, tenant_metadata, document_metadata, ..new }
    };
    fixture.catalog.keep_stored(of, vec![record("default", "old"), record("x", "no")]).unwrap();
    let job = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(job.tenant_metadata, MetadataChange::Replace(metadata("own", "1")));
    assert_eq!(job.document_metadata, MetadataChange::Replace(metadata("d", "old")));
    let SourceDetail { title, language, keeps, .. } = &job.detail;
    assert_eq!((job.url.as_str(), title.as_str(), language.as_str()), ("old", "old", "de"));
    assert!(!keeps, "it needs no visible version any more");
    let stored = metadata("a", "b");
    assert_eq!(job.document_metadata.applied_to(&stored), metadata("d", "old"));
    assert_eq!(MetadataChange::Keep.applied_to(&stored), stored);
}

/// Goal: a page counts once it is fetched, only while its job is claimed, and within the limit.
#[test]
fn a_fetched_page_counts_and_is_refused_where_there_is_no_room() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let limits = TenantLimits { bytes: Some(20), ..TenantLimits::default() };
    fixture.catalog.set_tenant_limits(of, limits).unwrap();
    let (first, second) = (fixture.page(of, "first"), fixture.page(of, "second"));
    assert_eq!(fixture.claim(), None, "there is nothing to process");
    let original = |size_bytes: u64| FetchedOriginal {
        raw_key: "v1/raw/page".into(),
        url: "https://example.org/moved".into(),
        content_type: "text/html".into(),
        size_bytes,
        content_hash: [9; 32],
    };
    let fetched =
        |job: &Submitted, bytes: u64| fixture.catalog.fetched(job.sequence, original(bytes));
    let too_early = fetched(&first, 15).unwrap();
    assert_eq!((too_early, fixture.used(of).bytes), (false, 0), "nobody has it in hands");
    fixture.catalog.claim(Duty::Fetch, NO_LIMIT).unwrap().unwrap();
    assert!(fetched(&first, 15).unwrap());
    assert!(!fetched(&first, 20).unwrap(), "it was fetched already");
    assert_eq!(fixture.used(of), TenantUse { sources: 2, bytes: 15 });
    let refused = fetched(&second, 6).unwrap_err();
    let CatalogError::TenantLimit { limit: "bytes", max: 20, used: 15, needed: 21 } = refused
    else {
        panic!("{refused}")
    };
    fixture.settle(of, second.sequence, Outcome::Released);
    let again = fixture.catalog.claim(Duty::Fetch, NO_LIMIT).unwrap().unwrap().jobs;
    assert_eq!((again.len(), again[0].is_fetched), (1, false), "nothing of it was recorded");
    fixture.settle(of, first.sequence, Outcome::Released);
    let page = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(
        (page.url.as_str(), page.size_bytes, page.is_fetched),
        (&*original(0).url, 15, true)
    );

    let place = sub("default");
    let require = |source: Option<&SourceId>, bytes| {
        fixture.catalog.require_allowed(of, &place, source, bytes)
    };
    require(Some(&source("first")), 20).unwrap();
    let refused = require(None, 6).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let tenant = fixture.catalog.tenant(&tenant("a")).unwrap().unwrap();
    assert_eq!(fixture.catalog.limits_of(&tenant), limits);
}

/// Goal: a collection built elsewhere replaces an empty tenant of the same name, and nothing else.
#[test]
fn a_built_collection_replaces_an_empty_tenant_alone() {
    let fixture = Fixture::new();
    let catalog = &fixture.catalog;
    let scope = TenantGrant { tenant: tenant("a"), sub_tenants: None };
    let scope = KeyScope::Tenants(vec![scope]);
    let (name, role, expires_at) = ("k".to_owned(), Role::Read, None);
    let new = NewKey { name, role, scope, expires_at };
    let key = catalog.create_key(&Catalog::operator_grant(), new).unwrap().text;
    let empty = fixture.tenant("a").collection;
    let full = fixture.tenant("full").collection;
    fixture.submit(full, "s");
    let head = CommitHead { version: 3, nonce: uuid::Uuid::from_bytes([3; 16]) };
    let insert = |name: &str, replaces: Option<CollectionId>| {
        let built = catalog.fresh_tenant(tenant(name), TenantMode::Standard, None);
        let collection = built.collection;
        catalog.insert_built(built, Some(head), vec![sub("x")], replaces).map(|()| collection)
    };
    for (name, replaces) in
        [("a", None), ("a", Some(full)), ("full", Some(full)), ("new", Some(empty))]
    {
        let error = insert(name, replaces).unwrap_err();
        assert!(matches!(error, CatalogError::TenantExists { .. }), "{name}: {error}");
    }
    assert_eq!(catalog.tenant(&tenant("a")).unwrap().unwrap().collection, empty);
    let built = insert("a", Some(empty)).unwrap();
    assert_eq!(catalog.tenant(&tenant("a")).unwrap().unwrap().collection, built);
    assert_eq!(catalog.head(built).unwrap(), Some(head));
    assert_eq!(catalog.sub_tenants(built).unwrap(), ["default", "x"].map(sub));
    assert_eq!(catalog.collections_pending_delete().unwrap(), [empty]);
    assert!(catalog.authenticate(key.expose()).unwrap().allows_tenant(&tenant("a")));
    insert("new", None).unwrap();
    assert_eq!(catalog.tenants().unwrap().len(), 3);
    assert_eq!(catalog.collections().unwrap().len(), 4, "with the one that goes");
    assert!(!catalog.is_empty(built).unwrap(), "its sources are not known yet");
}

#[test]
fn the_model_of_a_tenant_and_its_head_are_kept() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let model = |fixture: &Fixture| {
        fixture.catalog.tenant(&tenant("a")).unwrap().unwrap().embedding_model.clone()
    };
    assert_eq!(model(&fixture), None);
    fixture.catalog.set_embedding_model(of, Some("large".into())).unwrap();
    assert_eq!(model(&fixture).as_deref(), Some("large"));
    let head = |version| CommitHead { version, nonce: uuid::Uuid::from_bytes([version as u8; 16]) };
    assert_eq!(fixture.catalog.head(of).unwrap(), None);
    for version in [2, 5, 4] {
        fixture.catalog.record_head(of, head(version)).unwrap();
    }
    let fixture = fixture.reopen();
    assert_eq!(model(&fixture).as_deref(), Some("large"));
    assert_eq!(fixture.catalog.head(of).unwrap(), Some(head(5)), "an older one is ignored");
    fixture.catalog.set_embedding_model(of, None).unwrap();
    assert_eq!(model(&fixture), None);
    let owner = fixture.catalog.tenant_of(of).unwrap().unwrap();
    assert_eq!(owner.id, tenant("a"));
    let unknown = CollectionId(uuid::Uuid::nil());
    assert_eq!(fixture.catalog.tenant_of(unknown).unwrap(), None);
    assert_eq!(fixture.catalog.head(unknown).unwrap_err().kind(), ErrorKind::NotFound);
    let error = fixture.catalog.set_embedding_model(unknown, None).unwrap_err();
    assert_eq!(error.to_string(), format!("collection {unknown} does not exist"));
}

/// Goal: a sequence that comes with an imported tenant is not reissued, and a caller that brings
/// one not issued yet is told to look for further sources.
#[test]
fn numbers_from_elsewhere_are_not_given_again() {
    let fixture = Fixture::new();
    let catalog = &fixture.catalog;
    assert_eq!(catalog.newest_sequence().unwrap(), Sequence(0));
    let of = fixture.tenant("a").collection;
    assert_eq!(catalog.oldest_unsettled(of).unwrap(), None);
    let first = fixture.submit(of, "s").sequence;
    assert!(!catalog.raise_sequence(first).unwrap());
    assert!(catalog.tenants_not_known().unwrap().is_empty());
    assert!(catalog.raise_sequence(Sequence(40)).unwrap());
    assert_eq!(catalog.tenants_not_known().unwrap(), [tenant("a")]);
    assert_eq!(fixture.submit(of, "t").sequence, Sequence(41));
    catalog.make_room_for(Sequence(70)).unwrap();
    catalog.make_room_for(Sequence(60)).unwrap();
    assert_eq!(catalog.newest_sequence().unwrap(), Sequence(70));
    assert_eq!(fixture.submit(of, "u").sequence, Sequence(71));
    assert_eq!(catalog.oldest_unsettled(of).unwrap(), Some(first));
    let batch = catalog.reserve_sequence(of, &sub("x"), &source("v"), Some(12)).unwrap();
    assert_eq!((batch, fixture.used(of).bytes), (Sequence(72), 42));
    let limits = TenantLimits { bytes: Some(50), ..TenantLimits::default() };
    catalog.set_tenant_limits(of, limits).unwrap();
    let refused = catalog.reserve_sequence(of, &sub("y"), &source("w"), Some(9)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(catalog.newest_sequence().unwrap(), batch, "no number was taken");
    assert!(!catalog.sub_tenant_exists(of, &sub("y")).unwrap());
}

/// Adds this many jobs of sources in the sub-tenant `x`.
fn add_jobs(fixture: &Fixture, of: CollectionId, status: &'static str, rows: i64) {
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO jobs (job_id, collection, sub_tenant, source, kind, status,
            version, overwritten, size_bytes, content_hash, raw_key, filename, url,
            content_type, uploaded_at, updated_at)
         SELECT 'j' || i, ?2, 'x', ?3 || i, 'text', ?3, 1, 0, 10, zeroblob(32),
            ?3 || i, '', '', '', 0, 0 FROM n";
    let parameters = (rows, of.0.into_bytes(), status);
    fixture.catalog.write(move |connection| Ok(connection.execute(sql, parameters)?)).unwrap();
}

/// Goal: a removal of a sub-tenant interrupted between two steps leaves the newer of two jobs of a
/// source, and the next removal completes it. Method: the second step of the waiting jobs fails,
/// and the catalog is reopened.
#[test]
fn a_removal_that_was_cut_off_is_finished_by_the_next() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let submit = || {
        let mut job = fixture.job(of, "s");
        job.sub_tenant = sub("x");
        fixture.catalog.submit(job).unwrap();
    };
    submit();
    fixture.claim().unwrap();
    let rows = 2 * ROWS_PER_STEP;
    add_jobs(&fixture, of, "queued", rows);
    submit();
    let cut = format!(
        "CREATE TEMP TRIGGER cut BEFORE DELETE ON main.jobs
         WHEN (SELECT jobs FROM queue_total) <= {} BEGIN SELECT raise(ABORT, 'cut off'); END",
        rows + 1 - ROWS_PER_STEP
    );
    fixture.catalog.write(move |connection| Ok(connection.execute_batch(&cut)?)).unwrap();
    fixture.catalog.delete_sub_tenant(of, &sub("x")).unwrap_err();
    let fixture = fixture.reopen();
    let left = fixture.catalog.job_counts(&crate::JobScope::Everywhere).unwrap();
    let expected = JobCounts { queued: (rows + 1 - ROWS_PER_STEP) as u64, ..JobCounts::default() };
    assert_eq!(left, expected, "what ran is gone, and a step of what waited");
    let version = fixture.catalog.read(|connection| {
        let sql = "SELECT version FROM jobs WHERE source = 's'";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(version.unwrap(), 2);
    assert!(fixture.catalog.sub_tenant_exists(of, &sub("x")).unwrap());
    fixture.catalog.verify().unwrap();
    let canceled = fixture.catalog.delete_sub_tenant(of, &sub("x")).unwrap();
    assert_eq!(canceled.sequences.len() as u64, expected.queued);
    assert!(!fixture.catalog.sub_tenant_exists(of, &sub("x")).unwrap());
    let left = fixture.catalog.job_counts(&crate::JobScope::Everywhere).unwrap();
    assert_eq!(left, JobCounts::default());
}

/// Goal: removals in steps continue until nothing is left.
#[test]
fn what_takes_several_steps_is_removed_whole() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.reserve_sequence(of, &sub("x"), &source("v"), None).unwrap();
    let rows = 2 * ROWS_PER_STEP + 5;
    let fill = || {
        for status in ["success", "errored", "queued"] {
            add_jobs(&fixture, of, status, rows);
        }
        let known = "INSERT INTO known_sources
            SELECT source, collection, sub_tenant, seq, 1 FROM jobs WHERE sub_tenant = 'x'";
        fixture.catalog.write(move |connection| Ok(connection.execute(known, [])?)).unwrap();
    };
    fill();
    let canceled = fixture.catalog.delete_sub_tenant(of, &sub("x")).unwrap();
    assert_eq!(canceled.sequences.len() as i64, 3 * rows);
    assert_eq!(canceled.raw_keys.len() as i64, 3 * rows);
    assert!(canceled.had_open);
    assert_eq!(
        fixture.catalog.job_counts(&crate::JobScope::Everywhere).unwrap(),
        Default::default()
    );
    assert_eq!(fixture.used(of), TenantUse::default());
    fill();
    fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap();
    fixture.catalog.finish_delete_collection(of).unwrap();
    let left = fixture.catalog.read(|connection| {
        let sql = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM known_sources)";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(left.unwrap(), 0);
}
