//! Tests of a tenant with slow documents and other tenants beside it.

use super::*;
use lodestone_catalog::TenantLimits;

/// Uploads to the tenant of a name.
fn submit_to(engine: &Engine, tenant: &str, source: &str, content: &str) {
    let tenant = TenantId::parse(tenant).unwrap();
    let scope = Scope { tenant, sub_tenant: SubTenantId::default_name() };
    let access = engine.open_or_create(&grant(), &scope).unwrap();
    engine.submit(&access, submission(source, content, &Metadata::new())).unwrap();
}

fn count(engine: &Engine, status: JobStatus) -> u64 {
    let jobs = engine.jobs(&grant(), None, None, None, 1, None).unwrap().counts;
    match status {
        JobStatus::Queued => jobs.queued,
        JobStatus::InProgress => jobs.in_progress,
        JobStatus::Success => jobs.success,
        JobStatus::Errored => jobs.errored,
    }
}

/// Goal: a claim reads documents for two seconds and publishes those; the others are queued again
/// and lose nothing.
/// Method: each slow document advances the clock by 1.5 seconds. The worker waits at the gate with
/// whatever it has read.
#[test]
fn a_claim_ends_after_a_time_however_many_jobs_it_took() {
    let rig = Rig::new();
    rig.upload("first", "makes the tenant");
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "busy", "keeps the worker busy", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    for n in 0..7 {
        submit(engine, &format!("slow{n}"), &format!("{SLOW} {n}"), &Metadata::new());
    }
    rig.gate.let_pass(1);
    wait_for("the next claim", || {
        let is_busy_done = count(engine, JobStatus::Success) == 2;
        (is_busy_done && rig.gate.has_waiting()).then_some(())
    });
    assert_eq!(count(engine, JobStatus::InProgress), 2, "the documents of three seconds");
    assert_eq!(count(engine, JobStatus::Queued), 5);
    rig.gate.open();
    for n in 0..7 {
        let view = settled(engine, &format!("slow{n}"));
        assert_eq!((view.status, view.version), (JobStatus::Success, 1));
    }
}

/// Goal: a tenant with any number of slow documents leaves a worker for a tenant that comes later.
/// Method: the documents of the first tenant wait at the closed gate.
#[test]
fn no_tenant_has_all_workers() {
    let rig = Rig::new();
    rig.upload("first", "makes the tenant");
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "one", "keeps the worker busy", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    for n in 0..100 {
        submit(engine, &format!("more{n}"), "waits", &Metadata::new());
    }
    submit_to(engine, "other", "text", "comes later and does not wait");
    wait_for("the other tenant's text", || (rig.gate.waiting() == 2).then_some(()));
    assert_eq!(count(engine, JobStatus::Queued), 100);
    rig.gate.open();
    assert_eq!(settled(engine, "more99").status, JobStatus::Success);
}

/// Goal: a tenant with a limit of workers never has more documents in progress, whatever is queued;
/// the next worker goes to another tenant; a limit that was lifted no longer applies.
/// Method: every document in progress waits at the closed gate.
#[test]
fn a_limited_tenant_has_as_many_workers_as_it_may_and_others_have_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(GatedEmbedder::with_passes(0));
    let mut settings = Settings::new(dir.path().join("data"), "unused".into());
    settings.ingest_threads = 4;
    let mut components = Components::real(Arc::clone(&gate) as Arc<dyn Embedder>);
    components.parser = Arc::new(InProcess);
    let engine = Engine::start(settings, components).unwrap();
    let limits = TenantLimits { ingest_workers: Some(2), ..TenantLimits::default() };
    let plan = TenantPlan { limits, ..TenantPlan::default() };
    let acme = scope().tenant;
    engine.create_tenant(&grant(), Some(acme.clone()), TenantMode::Standard, None, plan).unwrap();
    let stand = |count| wait_for("the gate", || (gate.waiting() == count).then_some(()));
    // One at a time, because a claim takes everything that is queued.
    for n in 0..2 {
        submit(&engine, &format!("doc{n}"), "everywhere is wind", &Metadata::new());
        stand(n + 1);
    }
    submit(&engine, "doc2", "everywhere is wind", &Metadata::new());
    submit_to(&engine, "other", "page", "everywhere is snow");
    stand(3);
    assert_eq!((count(&engine, JobStatus::InProgress), count(&engine, JobStatus::Queued)), (3, 1));
    assert_eq!(engine.usage(&grant(), &acme).unwrap().ingest_workers, 2);
    engine.set_tenant_limits(&grant(), &acme, TenantLimits::default()).unwrap();
    stand(4);
    gate.open();
    for n in 0..3 {
        assert_eq!(settled(&engine, &format!("doc{n}")).status, JobStatus::Success);
    }
    engine.shut_down();
}
