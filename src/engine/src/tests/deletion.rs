//! Tests of deleted tenants and requests that began before the deletion.

use std::path::PathBuf;

use super::rebuild::files;
use super::*;
use crate::ingest::NewMemory;
use lodestone_catalog::descriptors;
use lodestone_metrics::Registry;
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_types::{CollectionId, ErrorKind};

fn tenant(engine: &Engine, name: &str) -> (TenantId, CollectionId) {
    let id = TenantId::parse(name).unwrap();
    let plan = TenantPlan::default();
    let made = engine.create_tenant(&grant(), Some(id.clone()), TenantMode::Standard, None, plan);
    (id, made.unwrap().collection)
}

fn is_described(engine: &Engine, id: CollectionId) -> bool {
    descriptors::read(&*engine.store, id).unwrap().is_some()
}

/// Goal: whatever a request writes that began before the deletion of its tenant is removed with the
/// tenant. Otherwise its files would stay, and without their descriptor a lost catalog could not be
/// rebuilt.
/// Method: two tenants without requests are deleted afterwards, so at least one round has met it.
#[test]
fn a_deletion_waits_for_the_requests_that_began_before() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let held = access(engine);
    let acme = held.tenant.collection;
    let others = ["first", "second"].map(|name| tenant(engine, name));
    engine.delete_tenant(&grant(), &held.tenant.id).unwrap();
    for (name, id) in others {
        engine.delete_tenant(&grant(), &name).unwrap();
        wait_for("the end of a tenant", || (!is_described(engine, id)).then_some(()));
    }
    assert!(is_described(engine, acme));

    let added = NewMemory { content: "Nora likes slate.".into(), ..NewMemory::default() };
    let refused = engine.add_memory(&held, added, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let originals = rig.dir.path().join("data/v1/raw");
    assert_eq!(files(&originals, ""), [] as [PathBuf; 0], "nothing is kept of it");
    let label = UploadLabel {
        sub_tenant: "default".into(),
        source: "late".into(),
        kind: "text".into(),
        filename: String::new(),
        content_type: String::new(),
        uploaded_at: START.0,
        tenant_metadata: None,
        document_metadata: None,
        origin: Origin::default(),
        after: None,
    };
    uploads::put(&*engine.store, &*engine.ids, acme, &label, b"late").unwrap();
    assert_eq!(engine.ingest.open(&held.tenant).unwrap_err().kind(), refused.kind());
    drop(held);
    engine.ingest.clear_deleted_tenants();
    wait_for("the end of the tenant", || (!is_described(engine, acme)).then_some(()));
    assert_eq!(files(&originals, ""), [] as [PathBuf; 0]);
}

/// Goal: a deleted tenant that cannot be removed does not delay the others.
#[test]
fn a_tenant_that_cannot_be_cleared_holds_up_no_other() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let mut tenants = ["first", "second"].map(|name| tenant(engine, name));
    tenants.sort_by_key(|(_, id)| *id);
    let [(damaged, first), (name, second)] = tenants;
    let descriptor = rig.dir.path().join("data/v1/t").join(first.to_string());
    std::fs::write(&descriptor, "damaged").unwrap();
    assert!(engine.delete_tenant(&grant(), &damaged).is_err());
    engine.delete_tenant(&grant(), &name).unwrap();
    wait_for("the end of the second", || (!is_described(engine, second)).then_some(()));
    assert!(descriptor.exists());
}

/// Goal: files that a reader holds when garbage is collected are deleted after its end, without
/// another change of the collection.
#[test]
fn files_go_after_their_last_reader() {
    let rig = Rig::new();
    let engine = &rig.engine;
    rig.upload("doc", "everywhere is wind");
    let access = access(engine);
    let folder = rig.dir.path().join(format!("data/v1/c/{}", access.collection.id()));
    let reader = access.collection.snapshot();
    engine.delete_sources(&access, &[id("doc")]).unwrap();
    let is_collected = || files(&folder.join("m"), "").len() == 1;
    wait_for("garbage collection", || is_collected().then_some(()));
    assert_eq!(files(&folder, ".seg").len(), 1, "held");
    drop(reader);
    wait_for("the deletion", || files(&folder, ".seg").is_empty().then_some(()));
}

/// Goal: a job that a worker has when its tenant is deleted does not stay in the counts of stages.
#[test]
fn a_job_of_a_deleted_tenant_leaves_its_stage() {
    let rig = Rig::new().restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "doc", "everywhere is wind", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    let is_in_work = || {
        let mut registry = Registry::default();
        engine.catalog.enter_meters(&mut registry);
        let text = registry.text();
        let mut depths = text.lines().filter(|line| line.contains("ingest_queue_depth{"));
        depths.any(|line| !line.contains("queued") && !line.ends_with(" 0"))
    };
    assert!(is_in_work());
    engine.delete_tenant(&grant(), &scope().tenant).unwrap();
    rig.gate.open();
    wait_for("the end of the claim", || (!is_in_work()).then_some(()));
}
