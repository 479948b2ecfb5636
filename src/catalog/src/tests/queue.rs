//! Submit, claim, settle and cancel.

use std::time::Duration;

use super::*;
use crate::job::{Duty, QueueLimits};
use crate::{CatalogError, RETENTION_MILLIS, RETRY_PAUSE_MILLIS, Retry};
use lodestone_types::CommitHead;
use lodestone_types::{ErrorKind, Stage};

#[test]
fn a_job_runs_through() {
    let fixture = Fixture::new();
    let tenant = fixture.tenant("a");
    let submitted = fixture.submit(tenant.collection, "s");
    assert_eq!((submitted.version, submitted.overwritten), (1, false));
    assert!(submitted.job_id.starts_with("job_") && submitted.job_id.len() == 30);
    assert_eq!(fixture.status(tenant.collection, "s"), Some(JobStatus::Queued));

    let claim = fixture.claim().unwrap();
    assert_eq!((claim.collection, &claim.tenant), (tenant.collection, &tenant.id));
    let [job] = claim.jobs.as_slice() else { panic!("one job") };
    let sent = fixture.job(tenant.collection, "s");
    assert_eq!(job.sequence, submitted.sequence);
    assert_eq!(job.document_metadata, sent.document_metadata);
    assert_eq!((&job.raw_key, &job.detail), (&sent.raw_key, &sent.detail));
    assert_eq!((job.content_hash, job.origin_at), (sent.content_hash, sent.origin_at));

    fixture.catalog.set_stage(&[job.sequence], Stage::Embedding);
    let stage = |f: &Fixture| {
        let row = f.catalog.latest(tenant.collection, &sub("default"), &source("s")).unwrap();
        row.unwrap().progress.map(|progress| progress.stage)
    };
    assert_eq!(stage(&fixture), Some(Stage::Embedding));
    assert_eq!(fixture.catalog.live(&[job.sequence]).unwrap(), [job.sequence]);

    let head = CommitHead { version: 4, nonce: uuid::Uuid::from_bytes([9; 16]) };
    let end = vec![Settlement { sequence: job.sequence, outcome: PUBLISHED }];
    let settled = fixture.catalog.settle(tenant.collection, end, Some(head)).unwrap();
    assert_eq!(settled.states, [(job.sequence, JobStatus::Success)]);
    assert_eq!(fixture.catalog.head(tenant.collection).unwrap(), Some(head));
    assert_eq!(stage(&fixture), None);
    assert!(fixture.catalog.live(&[job.sequence]).unwrap().is_empty());
    assert_eq!(fixture.claim(), None);
    let older = CommitHead { version: 3, nonce: uuid::Uuid::from_bytes([1; 16]) };
    fixture.catalog.record_head(tenant.collection, older).unwrap();
    assert_eq!(fixture.catalog.head(tenant.collection).unwrap(), Some(head));
}

#[test]
fn collections_take_turns() {
    let fixture = Fixture::new();
    let tenants: Vec<_> = (0..5).map(|n| fixture.tenant(&format!("t{n}"))).collect();
    for n in 0..40 {
        fixture.submit(tenants[0].collection, &format!("s{n}"));
    }
    for tenant in &tenants[1..] {
        fixture.submit(tenant.collection, "s");
    }
    let one = ClaimLimits { jobs: 1, bytes: u64::MAX };
    let first_round: std::collections::BTreeSet<_> = (0..5)
        .map(|_| fixture.catalog.claim(Duty::Process, one).unwrap().unwrap().collection)
        .collect();
    assert_eq!(first_round.len(), 5, "each is served once in the first round");
    for _ in 0..39 {
        let claim = fixture.catalog.claim(Duty::Process, one).unwrap().unwrap();
        assert_eq!(claim.collection, tenants[0].collection);
    }
    assert_eq!(fixture.claim(), None);
}

#[test]
fn a_claim_is_bounded_and_oldest_first() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    for name in ["a", "b", "c", "d", "e"] {
        fixture.submit(collection, name);
    }
    let two = ClaimLimits { jobs: 2, bytes: u64::MAX };
    assert_eq!(fixture.claimed_sources(two), ["a", "b"]);
    // Each has an original and metadata totalling 10 bytes.
    let few_bytes = ClaimLimits { jobs: 9, bytes: 45 };
    assert_eq!(fixture.claimed_sources(few_bytes), ["c", "d"]);
    let no_bytes = ClaimLimits { jobs: 0, bytes: 0 };
    assert_eq!(fixture.claimed_sources(no_bytes), ["e"], "one is taken whatever its size");
}

#[test]
fn the_last_upload_of_a_source_wins() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let first = fixture.submit(collection, "s");
    fixture.clock.advance_millis(1);
    let second = fixture.submit(collection, "s");
    assert_eq!(second.obsolete_raw_keys, ["raw/s/f4240"]);
    assert_eq!((second.version, second.overwritten), (2, true));
    assert!(second.sequence > first.sequence);
    let claim = fixture.claim().unwrap();
    assert_eq!(claim.jobs.len(), 1);
    assert_eq!(claim.jobs[0].sequence, second.sequence);

    // A running job continues; the next one of its source waits for it.
    fixture.clock.advance_millis(1);
    let third = fixture.submit(collection, "s");
    assert!(third.obsolete_raw_keys.is_empty());
    fixture.submit(collection, "other");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["other"]);
    assert_eq!(fixture.claim(), None);
    fixture.settle(collection, second.sequence, PUBLISHED);
    assert_eq!(fixture.claim().unwrap().jobs[0].sequence, third.sequence);
    assert_eq!(fixture.settle(collection, third.sequence, PUBLISHED), ["raw/s/f4241"]);
}

#[test]
fn a_faulted_job_gives_way_to_a_later_upload() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let first = fixture.submit(collection, "s");
    fixture.claim().unwrap();
    let mut later = fixture.job(collection, "s");
    later.raw_key = "raw/later".into();
    let second = fixture.catalog.submit(later).unwrap();
    assert_eq!(fixture.settle(collection, first.sequence, faulted()), ["raw/s/f4240"]);
    assert_eq!(fixture.claim().unwrap().jobs[0].sequence, second.sequence);
}

#[test]
fn kept_metadata_is_that_of_the_upload_before() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let patch = |fixture: &Fixture, known_version| {
        let mut job = fixture.job(collection, "s");
        job.document_metadata = MetadataChange::Keep;
        job.known_version = known_version;
        fixture.catalog.submit(job).unwrap()
    };
    let map = MetadataChange::Replace(metadata("by", "s"));
    fixture.submit(collection, "s");
    patch(&fixture, None);
    let running = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(running.document_metadata, map, "through a queued job");
    patch(&fixture, None);
    fixture.settle(collection, running.sequence, rejected());
    let running = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(running.document_metadata, map, "through a running job");
    fixture.settle(collection, running.sequence, rejected());
    patch(&fixture, None);
    let running = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(running.document_metadata, map, "through an error that is all there is");
    fixture.settle(collection, running.sequence, PUBLISHED);
    patch(&fixture, Some(4));
    let running = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(running.document_metadata, MetadataChange::Keep, "the segment has it");
    assert_eq!(running.version, 5);
}

#[test]
fn the_wait_of_an_idle_worker_can_be_ended() {
    let fixture = Fixture::new();
    assert_eq!(fixture.claim(), None);
    assert!(!fixture.catalog.wait_for_work(Duty::Process, Duration::ZERO));
    fixture.catalog.end_waits();
    assert!(
        fixture.catalog.wait_for_work(Duty::Process, Duration::from_secs(3600)),
        "the end is not lost"
    );
}

#[test]
fn a_retry_does_not_wait_for_a_clock_that_was_set_back() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let bad = fixture.submit(collection, "bad");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["bad"]);
    fixture.settle(collection, bad.sequence, faulted());
    assert_eq!(fixture.claim(), None);
    fixture.clock.set_back_millis(100 * RETRY_PAUSE_MILLIS);
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["bad"]);
}

#[test]
fn faults_are_retried_alone_after_a_pause_and_then_end() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let bad = fixture.submit(collection, "bad");
    fixture.submit(collection, "good");
    assert_eq!(fixture.claim().unwrap().jobs.len(), 2);
    fixture.settle(collection, bad.sequence, faulted());
    fixture.submit(collection, "third");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["third"], "the retry is not due");
    assert_eq!(fixture.claim(), None);
    assert!(!fixture.catalog.wait_for_work(Duty::Process, Duration::ZERO));

    fixture.clock.advance_millis(RETRY_PAUSE_MILLIS);
    assert!(fixture.catalog.wait_for_work(Duty::Process, Duration::ZERO));
    fixture.submit(collection, "fourth");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["bad"], "oldest, and alone");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["fourth"]);
    fixture.settle(collection, bad.sequence, faulted());
    fixture.clock.advance_millis(RETRY_PAUSE_MILLIS);
    assert_eq!(fixture.claim(), None, "the second pause is longer");
    fixture.clock.advance_millis(3 * RETRY_PAUSE_MILLIS);
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["bad"]);
    fixture.settle(collection, bad.sequence, faulted());
    let row = fixture.catalog.latest(collection, &sub("default"), &source("bad")).unwrap().unwrap();
    assert_eq!((row.status, row.job.attempts), (JobStatus::Errored, 3));
    assert_eq!(
        (row.error_code, row.message.as_str()),
        (Some(JobErrorCode::EmbeddingFailed), "no memory")
    );
}

#[test]
fn a_failed_job_is_tried_again_as_often_as_a_new_one() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let retry = |sequence| fixture.catalog.retry(sequence).unwrap();
    let row =
        || fixture.catalog.latest(collection, &sub("default"), &source("s")).unwrap().unwrap();
    let job = fixture.submit(collection, "s");
    assert_eq!(retry(Sequence(99)), Retry::Unknown);
    for attempt in 1..=2 {
        for _ in 0..3 {
            assert_eq!(retry(job.sequence), Retry::Open, "it has not ended");
            assert_eq!(fixture.claimed_sources(NO_LIMIT), ["s"]);
            fixture.settle(collection, job.sequence, faulted());
            fixture.clock.advance_millis(100 * RETRY_PAUSE_MILLIS);
        }
        assert_eq!((row().status, row().job.attempts), (JobStatus::Errored, 3), "{attempt}");
        assert_eq!(fixture.claim(), None);
        assert_eq!(retry(job.sequence), Retry::Open);
        assert!(fixture.catalog.wait_for_work(Duty::Process, Duration::ZERO));
        let queued = row();
        assert_eq!((queued.status, queued.job.attempts), (JobStatus::Queued, 0));
        assert_eq!((queued.error_code, queued.message.as_str()), (None, ""));
        assert_eq!((queued.job.job_id, queued.finished_at), (job.job_id.clone(), None));
    }
    fixture.claim().unwrap();
    fixture.settle(collection, job.sequence, PUBLISHED);
    assert_eq!(retry(job.sequence), Retry::Succeeded);
}

#[test]
fn a_failed_job_is_not_tried_again_over_a_later_one() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let first = fixture.submit(collection, "s");
    fixture.claim().unwrap();
    fixture.settle(collection, first.sequence, rejected());
    let second = fixture.submit(collection, "s");
    let retry = |sequence| fixture.catalog.retry(sequence).unwrap();
    assert_eq!(retry(first.sequence), Retry::Replaced);
    fixture.claim().unwrap();
    fixture.settle(collection, second.sequence, rejected());
    assert_eq!(retry(first.sequence), Retry::Replaced);
    assert_eq!(retry(second.sequence), Retry::Open);
}

#[test]
fn a_full_queue_takes_no_failed_job() {
    let queue = QueueLimits { jobs_max: 1, ..QueueLimits::default() };
    let fixture = Fixture::with(CatalogOptions { queue, ..CatalogOptions::default() });
    let collection = fixture.tenant("a").collection;
    let job = fixture.submit(collection, "s");
    fixture.claim().unwrap();
    fixture.settle(collection, job.sequence, rejected());
    fixture.submit(collection, "other");
    let error = fixture.catalog.retry(job.sequence).unwrap_err();
    assert!(matches!(error, CatalogError::QueueFull { .. }), "{error}");
    assert_eq!(fixture.status(collection, "s"), Some(JobStatus::Errored));
}

#[test]
fn a_released_job_comes_back_at_once_and_uncounted() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let job = fixture.submit(collection, "s");
    for _ in 0..5 {
        fixture.claim().unwrap();
        fixture.settle(collection, job.sequence, Outcome::Released);
    }
    assert_eq!(fixture.claim().unwrap().jobs[0].attempts, 0);
}

#[test]
fn a_canceled_job_is_gone_and_its_settlement_is_passed_over() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let job = fixture.submit(collection, "s");
    fixture.claim().unwrap();
    let asked = [source("none"), source("s")];
    let canceled = fixture.catalog.cancel_sources(collection, &sub("default"), &asked).unwrap();
    assert_eq!(canceled.existed, [source("s")]);
    assert_eq!(canceled.raw_keys, ["raw/s/f4240"]);
    assert!(fixture.catalog.live(&[job.sequence]).unwrap().is_empty());
    let end = vec![Settlement { sequence: job.sequence, outcome: PUBLISHED }];
    let settled = fixture.catalog.settle(collection, end, None).unwrap();
    assert!(settled.states.is_empty());
    assert_eq!(fixture.status(collection, "s"), None);
    assert_eq!(fixture.submit(collection, "s").version, 1);
}

#[test]
fn a_full_queue_refuses_but_replacement_needs_no_room() {
    let queue = QueueLimits { jobs_max: 3, collection_jobs_max: 2, ..QueueLimits::default() };
    let fixture = Fixture::with(CatalogOptions { queue, ..CatalogOptions::default() });
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    let refused = |collection, name: &str| {
        let error = fixture.catalog.submit(fixture.job(collection, name)).unwrap_err();
        assert!(matches!(error, CatalogError::QueueFull { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Overloaded);
    };
    fixture.submit(a, "1");
    fixture.submit(a, "2");
    refused(a, "3");
    fixture.submit(a, "2");
    fixture.submit(b, "1");
    refused(b, "2");
    fixture.claim().unwrap();
    fixture.submit(b, "2");
    let mut large = fixture.job(b, "large");
    large.size_bytes = u64::MAX >> 1;
    assert!(fixture.catalog.submit(large).is_err(), "bytes are bounded too");
}

#[test]
fn rows_of_ended_jobs_stay_for_a_while() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let run = |name: &str, outcome: Outcome| {
        let job = fixture.submit(collection, name);
        fixture.claim().unwrap();
        fixture.settle(collection, job.sequence, outcome);
    };
    run("good", PUBLISHED);
    run("bad", rejected());
    run("mended", rejected());
    run("mended", PUBLISHED);
    fixture.clock.advance_millis(RETENTION_MILLIS);
    run("late", PUBLISHED);
    assert_eq!(fixture.status(collection, "good"), None);
    assert_eq!(fixture.status(collection, "mended"), None);
    assert_eq!(fixture.status(collection, "bad"), Some(JobStatus::Errored));
    assert_eq!(fixture.status(collection, "late"), Some(JobStatus::Success));
}

/// Goal: however often a source is uploaded, settling a job reads a bounded number of earlier ones;
/// the visible version keeps its row.
#[test]
fn a_source_keeps_a_bounded_number_of_ended_jobs() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let ended = |outcome: fn() -> Outcome| {
        for _ in 0..104 {
            let job = fixture.submit(collection, "s");
            fixture.claim().unwrap();
            fixture.settle(collection, job.sequence, outcome());
        }
        let counts = fixture.catalog.job_counts(&crate::JobScope::Everywhere).unwrap();
        (counts.success, counts.errored)
    };
    assert_eq!(ended(|| PUBLISHED), (101, 0));
    assert_eq!(ended(rejected), (1, 101));
}

#[test]
fn an_error_keeps_the_original_of_the_visible_version() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let mut obsolete = Vec::new();
    for (key, outcome) in
        [("v1", PUBLISHED), ("v2", rejected()), ("v3", rejected()), ("v4", PUBLISHED)]
    {
        let mut job = fixture.job(collection, "s");
        job.raw_key = key.into();
        let sequence = fixture.catalog.submit(job).unwrap().sequence;
        fixture.claim().unwrap();
        obsolete.push(fixture.settle(collection, sequence, outcome));
    }
    let none: &[&str] = &[];
    assert_eq!(obsolete[0], none);
    assert_eq!(obsolete[1], none, "v1 is visible, v2 the newest error");
    assert_eq!(obsolete[2], ["v2"]);
    assert_eq!(obsolete[3], ["v1", "v3"]);
}

/// Goal: a caller that waits for a source looks again when a job of that source changed, and not
/// when others did.
#[test]
fn a_change_is_told_to_its_own_source() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    let of = |name: &str| fixture.catalog.job_changes(&source(name));
    let before = of("mine");
    for n in 0..20 {
        fixture.submit(a, &format!("other{n}"));
    }
    for job in fixture.claim().unwrap().jobs {
        fixture.settle(a, job.sequence, PUBLISHED);
    }
    assert_eq!(of("mine"), before);
    let job = fixture.submit(a, "mine");
    let accepted = of("mine");
    fixture.claim().unwrap();
    fixture.settle(a, job.sequence, PUBLISHED);
    let ended = of("mine");
    fixture.catalog.cancel_sources(a, &sub("default"), &[source("mine")]).unwrap();
    assert!(before < accepted && accepted < ended && ended < of("mine"));
}

#[test]
fn collections_that_have_to_wait_are_passed_over() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    for collection in [a, b] {
        fixture.submit(collection, "s");
    }
    let claim = |except| fixture.catalog.claim_except(Duty::Process, NO_LIMIT, except).unwrap();
    assert_eq!(claim(vec![a, b]), None);
    assert_eq!(claim(vec![a]).unwrap().collection, b);
    assert_eq!(claim(vec![a]), None);
    assert_eq!(claim(vec![b]).unwrap().collection, a);
}

/// Goal: operators see the actual numbers.
#[test]
fn gauges_and_meters_tell_what_is_there() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let gone = fixture.tenant("b").collection;
    fixture.submit(gone, "x");
    fixture.catalog.begin_delete_tenant(&tenant("b")).unwrap();
    for name in ["s", "t", "u", "v"] {
        fixture.submit(of, name);
    }
    let gauges = fixture.catalog.gauges().unwrap();
    let crate::CatalogGauges { queued_bytes, tenants, deleting, .. } = gauges;
    assert_eq!((queued_bytes, tenants, deleting), (50, 1, 1));
    let two = ClaimLimits { jobs: 3, bytes: u64::MAX };
    let jobs = fixture.catalog.claim(Duty::Process, two).unwrap().unwrap().jobs;
    fixture.settle(of, jobs[0].sequence, PUBLISHED);
    fixture.settle(of, jobs[1].sequence, faulted());
    fixture.catalog.set_stage(&[jobs[2].sequence], Stage::Parsing);
    fixture.catalog.set_stage(&[jobs[2].sequence], Stage::Parsing);
    // A job that nobody has claimed has no stage.
    fixture.catalog.set_stage(&[jobs[0].sequence], Stage::Parsing);
    fixture.catalog.set_progress(jobs[0].sequence, 1, 2);
    let text = || {
        fixture.catalog.gauges().unwrap();
        let mut registry = lodestone_metrics::Registry::default();
        fixture.catalog.enter_meters(&mut registry);
        registry.text()
    };
    for line in [
        "ingest_queue_depth{stage=\"queued\"} 3",
        "ingest_queue_depth{stage=\"parsing\"} 1",
        "ingest_queue_depth{stage=\"validating\"} 0",
        "ingest_jobs_total{outcome=\"success\"} 1",
        "ingest_jobs_total{outcome=\"requeued\"} 1",
        "ingest_stage_seconds_count{stage=\"validating\"} 3",
        "ingest_jobs_cancelled_total 0",
    ] {
        assert!(text().contains(line), "{line} is not in\n{}", text());
    }
    let source = jobs[2].source.clone();
    fixture.catalog.cancel_sources(of, &sub("default"), &[source]).unwrap();
    assert!(text().contains("ingest_jobs_cancelled_total 1"), "{}", text());
}

/// Goal: a suspect document waits for a claim of its own and delays no other; when no other
/// collection waits, the round starts over.
#[test]
fn a_suspect_between_others_is_left_for_a_claim_of_its_own() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    for name in ["a", "b", "c", "d"] {
        fixture.submit(of, name);
    }
    let second = ClaimLimits { jobs: 2, bytes: u64::MAX };
    let jobs = fixture.catalog.claim(Duty::Process, second).unwrap().unwrap().jobs;
    fixture.settle(of, jobs[1].sequence, faulted());
    fixture.settle(of, jobs[0].sequence, Outcome::Released);
    fixture.clock.advance_millis(RETRY_PAUSE_MILLIS);
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["a", "c", "d"]);
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["b"]);
    assert_eq!(fixture.claim(), None);
    // Later uploads of a running source wait, and the collection is not served meanwhile.
    fixture.submit(of, "a");
    let other = fixture.tenant("b").collection;
    fixture.submit(other, "x");
    assert_eq!(fixture.claimed_sources(NO_LIMIT), ["x"]);
    assert_eq!(fixture.claim(), None);
    assert!(format!("{:?}", fixture.catalog).starts_with("Catalog"));
}

/// Goal: the byte limit can fill the queue, a single upload larger than the limit is accepted when
/// nothing waits, and a job that succeeded, or is unknown, is not retried.
#[test]
fn bytes_that_wait_are_bounded_and_ends_are_told_apart() {
    let queue = QueueLimits { bytes_max: 25, ..QueueLimits::default() };
    let fixture = Fixture::with(CatalogOptions { queue, ..CatalogOptions::default() });
    let of = fixture.tenant("a").collection;
    let large = NewJob { size_bytes: 1000, ..fixture.job(of, "large") };
    fixture.catalog.submit(large).unwrap();
    let refused = fixture.catalog.submit(fixture.job(of, "s")).unwrap_err();
    let words = "the ingest queue is full: 1 jobs with 1000 bytes are waiting";
    assert_eq!(refused.to_string(), words);
    let job = fixture.claim().unwrap().jobs[0].sequence;
    for name in ["s", "t"] {
        fixture.submit(of, name);
    }
    assert!(fixture.catalog.submit(fixture.job(of, "u")).is_err());
    assert_eq!(fixture.catalog.retry(job).unwrap(), Retry::Open, "it runs");
    fixture.settle(of, job, PUBLISHED);
    assert_eq!(fixture.catalog.retry(job).unwrap(), Retry::Succeeded);
    assert_eq!(fixture.catalog.retry(Sequence(999)).unwrap(), Retry::Unknown);
    // Settling a job of another collection, or one that has ended, has no effect.
    let other = fixture.tenant("b").collection;
    let waiting = fixture.claim().unwrap().jobs[0].sequence;
    for (of, sequence) in [(other, waiting), (of, job)] {
        let end = vec![Settlement { sequence, outcome: rejected() }];
        assert!(fixture.catalog.settle(of, end, None).unwrap().states.is_empty());
    }
    assert_eq!(fixture.status(of, "s"), Some(JobStatus::InProgress));
}
