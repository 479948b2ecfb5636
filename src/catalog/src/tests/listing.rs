//! Listings, and the cost of listings and claims.

use super::*;
use crate::claim::CHOOSE;
use crate::job::Duty;
use crate::submit::WAITING;
use crate::{JobFilter, JobScope, RestoredTenant};
use lodestone_types::Scope;

fn sources(rows: &[crate::job::JobRow]) -> Vec<&str> {
    rows.iter().map(|row| row.job.source.as_str()).collect()
}

#[test]
fn pages_cover_everything_once_newest_first() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    for n in 0..7 {
        let mut job = fixture.job(if n % 3 == 0 { b } else { a }, &format!("s{n}"));
        job.sub_tenant = sub(if n == 4 { "x" } else { "default" });
        fixture.catalog.submit(job).unwrap();
    }
    let claim =
        fixture.catalog.claim(Duty::Process, ClaimLimits { jobs: 1, bytes: 0 }).unwrap().unwrap();
    fixture.settle(claim.collection, claim.jobs[0].sequence, PUBLISHED);
    for scope in [JobScope::Everywhere, JobScope::Within(vec![(a, None), (b, None)])] {
        let mut filter = JobFilter { scope, status: None, limit: 3, before: None };
        let mut seen = Vec::new();
        loop {
            let page = fixture.catalog.list_jobs(&filter).unwrap();
            assert_eq!((page.counts.queued, page.counts.success), (6, 1));
            seen.extend(sources(&page.jobs).into_iter().map(str::to_owned));
            filter.before = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
    }
    let scope = JobScope::Within(vec![(a, Some(vec![sub("x")]))]);
    let filter = JobFilter { scope, status: Some(JobStatus::Queued), limit: 9, before: None };
    let page = fixture.catalog.list_jobs(&filter).unwrap();
    assert_eq!((sources(&page.jobs), page.counts.queued), (vec!["s4"], 1));
    for status in [JobStatus::Queued, JobStatus::Success, JobStatus::Errored] {
        let scope = JobScope::Everywhere;
        let filter = JobFilter { scope, status: Some(status), limit: 9, before: None };
        let page = fixture.catalog.list_jobs(&filter).unwrap();
        assert!(page.jobs.iter().all(|row| row.status == status));
    }
}

#[test]
fn a_source_is_found_wherever_the_key_may_look() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    fixture.submit(a, "s");
    fixture.submit(b, "s");
    let mut inner = fixture.job(a, "s");
    inner.sub_tenant = sub("x");
    fixture.catalog.submit(inner).unwrap();
    fixture.catalog.reserve_sequence(b, &sub("y"), &source("s"), None).unwrap();
    let places = |scope: &JobScope| {
        let scopes = fixture.catalog.scopes_of(&source("s"), scope, None).unwrap();
        let place = |scope: &Scope| format!("{}/{}", scope.tenant, scope.sub_tenant);
        scopes.iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(places(&JobScope::Everywhere), ["b/y", "a/x", "b/default", "a/default"]);
    let only = |sub_tenants| JobScope::Within(vec![(a, sub_tenants)]);
    assert_eq!(places(&only(None)), ["a/x", "a/default"]);
    assert_eq!(places(&only(Some(vec![sub("default")]))), ["a/default"]);
    assert!(places(&JobScope::Within(Vec::new())).is_empty());
    let both = JobScope::Within(vec![(a, Some(vec![sub("x")])), (b, None)]);
    assert_eq!(places(&both), ["b/y", "a/x", "b/default"]);

    fixture.catalog.cancel_sources(a, &sub("default"), &[source("s")]).unwrap();
    fixture.catalog.delete_sub_tenant(b, &sub("y")).unwrap();
    assert_eq!(places(&JobScope::Everywhere), ["a/x", "b/default"]);
    fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap();
    assert_eq!(places(&JobScope::Everywhere), ["b/default"]);
    fixture.catalog.finish_delete_collection(a).unwrap();
    assert_eq!(places(&JobScope::Everywhere), ["b/default"]);
}

/// Goal: a source is found after its job has been purged.
#[test]
fn a_source_stays_known_without_its_job() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    let old = fixture.submit(a, "old");
    fixture.claim().unwrap();
    fixture.settle(a, old.sequence, PUBLISHED);
    fixture.clock.advance_millis(crate::RETENTION_MILLIS + 1);
    let next = fixture.submit(a, "next");
    fixture.claim().unwrap();
    fixture.settle(a, next.sequence, PUBLISHED);
    assert_eq!(fixture.status(a, "old"), None);
    let found = fixture.catalog.scopes_of(&source("old"), &JobScope::Everywhere, None).unwrap();
    assert_eq!(found.len(), 1);
}

/// Goal: sources of an earlier release are found too, once they have been added.
#[test]
fn sources_of_a_restored_tenant_become_known() {
    let fixture = Fixture::new();
    let tenant = fixture.catalog.fresh_tenant(tenant("a"), TenantMode::EMBEDDINGS, None);
    let collection = tenant.collection;
    let (head, sub_tenants) = (None, vec![sub("x")]);
    let newest_sequence = Sequence(9);
    let restored = RestoredTenant { tenant, head, sub_tenants, newest_sequence };
    fixture.catalog.restore_tenant(restored).unwrap();
    assert_eq!(fixture.catalog.tenants_not_known().unwrap(), [super::tenant("a")]);
    let sources = vec![(sub("x"), source("batch"), Sequence(4))];
    let sources = sources.into_iter().map(|(at, id, seq)| (at, id, seq, None)).collect();
    fixture.catalog.add_known(collection, sources).unwrap();
    fixture.catalog.all_known(collection).unwrap();
    assert!(fixture.catalog.tenants_not_known().unwrap().is_empty());
    let found = fixture.catalog.scopes_of(&source("batch"), &JobScope::Everywhere, None).unwrap();
    assert_eq!(found[0].sub_tenant, sub("x"));

    // A catalog that lacks another tenant may lack sources of this one.
    let tenant = fixture.catalog.fresh_tenant(super::tenant("b"), TenantMode::EMBEDDINGS, None);
    let restored = RestoredTenant { tenant, head, sub_tenants: Vec::new(), newest_sequence };
    fixture.catalog.restore_tenant(restored).unwrap();
    assert_eq!(fixture.catalog.tenants_not_known().unwrap().len(), 2);
}

#[test]
fn sources_that_are_not_settled_well_are_listed_once() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    for (name, outcome) in [("good", PUBLISHED), ("bad", rejected()), ("again", rejected())] {
        let job = fixture.submit(a, name);
        fixture.claim().unwrap();
        fixture.settle(a, job.sequence, outcome);
    }
    fixture.submit(a, "again");
    let mut open = fixture.catalog.open_sources(a, &sub("default")).unwrap();
    open.sort_by(|a, b| a.source.cmp(&b.source));
    let open: Vec<_> = open.iter().map(|open| (open.source.as_str(), open.status)).collect();
    assert_eq!(open, [("again", JobStatus::Queued), ("bad", JobStatus::Errored)]);
    assert!(fixture.catalog.open_sources(a, &sub("x")).unwrap().is_empty());
}

/// Goal: with 50,000 waiting jobs in one collection, a claim takes no more steps than with 500. The
/// work is counted in SQLite instructions, so the result does not depend on the machine.
#[test]
fn a_claim_costs_the_same_however_many_jobs_wait() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    let fill = |from: i64, to: i64| {
        fixture
            .catalog
            .write(move |connection| {
                connection.execute(
                    "WITH RECURSIVE n (i) AS
                        (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
                     INSERT INTO jobs (job_id, collection, sub_tenant, source, kind, status,
                        version, overwritten, size_bytes, content_hash, raw_key, filename, url,
                        content_type, uploaded_at, updated_at)
                     SELECT 'job_' || i, ?3, 'default', 's' || i, 'text', 'queued', 1, 0, 10,
                        zeroblob(32), '', '', '', '', 0, 0 FROM n",
                    rusqlite::params![from, to, a.0.as_bytes()],
                )?;
                Ok(())
            })
            .unwrap();
    };
    let steps = || {
        fixture.catalog.write(move |connection| {
            let mut choose = connection.prepare(CHOOSE)?;
            let mut rows = choose.query(rusqlite::params![a.0.as_bytes(), 4096, 0])?;
            for _ in 0..16 {
                rows.next()?;
            }
            drop(rows);
            Ok(choose.get_status(rusqlite::StatementStatus::VmStep))
        })
    };
    fill(0, 500);
    let few = steps().unwrap();
    fill(500, 50_000);
    assert_eq!(steps().unwrap(), few);
    let sixteen = ClaimLimits { jobs: 16, bytes: u64::MAX };
    assert_eq!(fixture.catalog.claim(Duty::Process, sixteen).unwrap().unwrap().jobs.len(), 16);
    fixture.submit(a, "one more");
}

/// Goal: an upload costs no more if the jobs that wait are of thousands of sub-tenants.
#[test]
fn waiting_jobs_are_summed_at_no_cost_however_many_sub_tenants_have_some() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    let submit = |from: usize, to: usize| {
        for n in from..to {
            let mut job = fixture.job(a, &format!("s{n}"));
            job.sub_tenant = sub(&format!("user{n}"));
            fixture.catalog.submit(job).unwrap();
        }
    };
    let steps = || {
        fixture.catalog.write(move |connection| {
            let mut sum = connection.prepare(WAITING)?;
            let jobs: i64 = sum.query_row([a.0.as_bytes()], |row| row.get(0))?;
            Ok((jobs, sum.get_status(rusqlite::StatementStatus::VmStep)))
        })
    };
    submit(0, 5);
    let (jobs, few) = steps().unwrap();
    assert_eq!(jobs, 5);
    submit(5, 300);
    assert_eq!(steps().unwrap(), (300, few));
}

/// Goal: no look-up on a hot path scans a whole table or sorts.
#[test]
fn hot_queries_use_their_indexes() {
    let fixture = Fixture::new();
    let plan = |sql: &str| {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        fixture
            .catalog
            .read(|connection| {
                let mut explain = connection.prepare(&sql)?;
                let lines = explain.query_map([], |row| row.get::<_, String>(3))?;
                Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?.join("\n"))
            })
            .unwrap()
    };
    let choose = CHOOSE.replace("?1", "x''").replace("?2", "5").replace("?3", "0");
    let checks: [(&str, &str); 10] = [
        (&choose, "jobs_ready"),
        (
            "SELECT 1 FROM jobs WHERE status = 'queued' AND not_before = 0 AND fetch = 0",
            "jobs_ready",
        ),
        (
            "SELECT min(not_before) FROM jobs WHERE status = 'queued' AND not_before > 0",
            "jobs_delayed",
        ),
        (
            "SELECT seq FROM jobs WHERE source = 'a' AND collection = x'' AND sub_tenant = 'b'
             ORDER BY seq DESC LIMIT 1",
            "jobs_by_source",
        ),
        (
            "SELECT * FROM jobs j JOIN tenants t ON t.collection = j.collection
             WHERE j.collection = x'' AND j.status = 'queued' AND j.seq < 9 AND t.deleting = 0
             ORDER BY j.seq DESC LIMIT 5",
            "jobs_by_status",
        ),
        (
            "DELETE FROM jobs WHERE source = 'a' AND collection = x'' AND sub_tenant = 'b'
             AND status = 'queued'",
            "jobs_by_source",
        ),
        (
            "SELECT * FROM jobs j JOIN tenants t ON t.collection = j.collection
             WHERE j.seq < 9 AND t.deleting = 0 AND j.status = 'errored'
               AND j.status <> 'success' ORDER BY j.seq DESC LIMIT 5",
            "jobs_open",
        ),
        (
            "SELECT seq FROM jobs WHERE purge_at IS NOT NULL AND purge_at <= 5
             ORDER BY purge_at LIMIT 5",
            "jobs_purgeable",
        ),
        ("SELECT * FROM tenants WHERE name = 'a' AND deleting = 0", "tenants_by_name"),
        (
            "SELECT name FROM tenants WHERE sources_known = 0 AND deleting = 0
             ORDER BY collection",
            "tenants_unknown",
        ),
    ];
    for (sql, index) in checks {
        let plan = plan(sql);
        assert!(plan.contains(index), "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
        let scans = |line: &str| line.starts_with("SCAN j") && !line.contains("INDEX");
        assert!(!plan.lines().any(scans), "{sql}\n{plan}");
    }
}
