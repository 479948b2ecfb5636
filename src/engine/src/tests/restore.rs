//! Tests that a lost catalog is rebuilt from the other files, or that the start says why not.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::ingest::Amendment;
use lodestone_catalog::Tenant;
use lodestone_types::{FieldType, SchemaField, TenantSchema};

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn at(engine: &Engine, name: &str, sub_tenant: &str) -> TenantAccess {
    let sub_tenant = SubTenantId::parse(sub_tenant).unwrap();
    engine.open(&grant(), &Scope { tenant: tenant(name), sub_tenant }, None).unwrap()
}

fn schema() -> TenantSchema {
    let field = SchemaField {
        key: "team".into(),
        field_type: FieldType::String,
        searchable: true,
        filterable: true,
    };
    TenantSchema { fields: vec![field] }
}

/// Creates a standard tenant with a schema, two sub-tenants and metadata changed later; one for
/// vectors; an empty one; and a deleted one.
fn filled() -> Rig {
    let rig = Rig::new();
    let engine = &rig.engine;
    let create = |name: &str, mode, schema| {
        engine
            .create_tenant(&grant(), Some(tenant(name)), mode, schema, TenantPlan::default())
            .unwrap();
    };
    create("acme", TenantMode::Standard, Some(schema()));
    create("vectors", TenantMode::EMBEDDINGS, None);
    create("empty", TenantMode::Standard, None);
    rig.upload("doc", "first version");
    rig.upload("doc", "everywhere is wind");
    rig.upload("other", "everywhere is water");
    let beside = at(engine, "acme", "beside");
    engine.submit(&beside, submission("doc", "everywhere is sand", &Metadata::new())).unwrap();
    wait_for("the sub-tenant", || {
        let view = engine.source(&beside, &id("doc")).unwrap();
        view.filter(|view| view.status == JobStatus::Success)
    });
    let amendment =
        Amendment { tenant_metadata: Some(map(json!({"year": 1999}))), document_metadata: None };
    engine.amend(&access(engine), &id("other"), amendment).unwrap();
    let vectors = vec![vec![1.0, 0.0, 0.0]];
    engine.upload_vectors(&at(engine, "vectors", "default"), Some(id("b")), vectors).unwrap();
    create("gone", TenantMode::Standard, None);
    engine
        .submit(&at(engine, "gone", "default"), submission("doc", "secret", &Metadata::new()))
        .unwrap();
    engine.delete_tenant(&grant(), &tenant("gone")).unwrap();
    rig
}

/// Everything that a user sees of every tenant.
type Sight = Vec<(Tenant, Vec<(SubTenantId, Vec<SourceView>, u64)>)>;

fn look(engine: &Engine) -> Sight {
    let mut sight = Vec::new();
    for found in engine.tenants(&grant()).unwrap() {
        let (_, names) = engine.sub_tenants(&grant(), &found.id).unwrap();
        let scopes = names.into_iter().map(|name| {
            let access = at(engine, found.id.as_str(), name.as_str());
            let objects = engine.stats(&grant(), &access).unwrap().objects;
            (name, all_sources(engine, &access), objects)
        });
        let scopes = scopes.collect();
        sight.push((found, scopes));
    }
    sight
}

pub(super) fn lose_catalog(data: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(data.join(format!("catalog.sqlite{suffix}")));
    }
    assert!(!data.join("catalog.sqlite").exists());
}

fn descriptors(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("v1/t")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_lost_catalog_is_rebuilt() {
    let rig = filled();
    let before = look(&rig.engine);
    assert_eq!(before.len(), 3);
    assert!(rig.engine.take_first_key().is_some());
    // A stale log and a partial rebuilt file must not get in the way.
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        lose_catalog(data);
        std::fs::write(data.join("catalog.sqlite-wal"), "of the lost file").unwrap();
        std::fs::write(data.join("catalog.sqlite.rebuilt"), "half").unwrap();
    });
    let engine = &rig.engine;
    assert!(engine.take_first_key().is_some(), "keys are lost: a new one is made");
    assert_eq!(look(engine), before);
    let gone = engine.find_tenant(&grant(), &tenant("gone")).unwrap_err();
    assert!(matches!(gone, EngineError::TenantNotFound));
    // Writes continue where they stopped.
    let next = engine.submit(&access(engine), submission("doc", "third", &Metadata::new()));
    assert_eq!(next.unwrap().version, 3);
    assert_eq!(settled(engine, "doc").status, JobStatus::Success);
    let deleted = engine.delete_sources(&access(engine), &[id("other")]).unwrap();
    assert_eq!(deleted.deleted, [id("other")]);
    let wrong = vec![vec![1.0]];
    let vectors = at(engine, "vectors", "default");
    assert!(engine.upload_vectors(&vectors, Some(id("c")), wrong).is_err(), "the width holds");
    drop(vectors);
    let after = look(engine);
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        assert!(data.join("catalog.sqlite-wal.lost").exists());
        assert!(!data.join("catalog.sqlite.rebuilt").exists());
    });
    assert_eq!(look(&rig.engine), after);
    assert!(rig.engine.take_first_key().is_none());
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    assert_eq!(look(&rig.engine), after, "what was deleted stays so");
}

/// Goal: uploads acknowledged and not yet processed are processed, and the last version wins.
#[test]
fn accepted_uploads_outlive_the_catalog() {
    let rig = Rig::new();
    rig.upload("seen", "everywhere is wind");
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    for content in ["everywhere is rain", "everywhere is snow"] {
        // Names of originals sort by time.
        rig.clock.advance_millis(1000);
        let kept = map(json!({"title": "Kept"}));
        submit(&rig.engine, "late", content, &kept);
        submit(&rig.engine, "seen", content, &Metadata::new());
    }
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    let late = settled(&rig.engine, "late");
    assert_eq!((late.record.title.as_str(), late.record.version), ("Kept", 1));
    let seen = settled(&rig.engine, "seen");
    assert_eq!((seen.status, seen.record.version), (JobStatus::Success, 2));
    for source in ["late", "seen"] {
        let mut original = rig.engine.original(&access(&rig.engine), &id(source)).unwrap();
        let content = content_of(&rig.engine, &mut original);
        assert_eq!(content, b"everywhere is snow");
    }
}

/// Goal: of two versions, the one accepted later wins, whatever the clock said.
#[test]
fn a_clock_that_was_set_back_changes_no_order() {
    const HOUR: u64 = 3_600_000;
    let rig = Rig::new();
    rig.upload("seen", "everywhere is wind");
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    submit(&rig.engine, "late", "everywhere is rain", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    rig.clock.set_back_millis(HOUR);
    for source in ["seen", "late"] {
        submit(&rig.engine, source, "everywhere is snow", &Metadata::new());
    }
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    for source in ["seen", "late"] {
        assert_eq!(settled(&rig.engine, source).status, JobStatus::Success);
        let mut original = rig.engine.original(&access(&rig.engine), &id(source)).unwrap();
        let content = content_of(&rig.engine, &mut original);
        assert_eq!(content, b"everywhere is snow", "{source}");
    }
}

#[test]
fn contradictions_are_refused_and_nothing_is_touched() {
    type Harm = fn(&Path);
    let harms: [(Harm, &str); 3] = [
        (|data| std::fs::remove_dir_all(data.join("v1/t")).unwrap(), "no descriptor"),
        (
            |data| {
                let path = &descriptors(data)[0];
                let mut bytes = std::fs::read(path).unwrap();
                bytes[60] ^= 1;
                std::fs::write(path, bytes).unwrap();
            },
            "is damaged",
        ),
        (
            |data| {
                let twin = lodestone_types::CollectionId(uuid::Uuid::from_u128(9));
                let blobs = DataDir::open(data, Arc::new(RealDisk)).unwrap();
                let blobs = lodestone_io::store::LocalBlobs::new(Arc::new(blobs));
                let first = descriptors(data)[0].file_name().unwrap().to_owned();
                let first = uuid::Uuid::try_parse(first.to_str().unwrap()).unwrap();
                let first = lodestone_types::CollectionId(first);
                let found = lodestone_catalog::descriptors::read(&blobs, first).unwrap().unwrap();
                let twin_of = Tenant { collection: twin, ..found.tenant };
                let twin_of = lodestone_catalog::descriptors::Descriptor {
                    tenant: twin_of,
                    is_deleted: false,
                };
                lodestone_catalog::descriptors::write(&blobs, &twin_of).unwrap();
                let raw = data.join(format!("v1/raw/{twin}"));
                std::fs::create_dir_all(&raw).unwrap();
                std::fs::write(raw.join("a"), "b").unwrap();
            },
            "both claim",
        ),
    ];
    for (harm, expected) in harms {
        let rig = Rig::new();
        rig.upload("doc", "everywhere is wind");
        let dir = rig.stop();
        let data = dir.path().join("data");
        lose_catalog(&data);
        harm(&data);
        let clock = Arc::new(ManualClock::new(START));
        let error = start(dir.path(), &Arc::default(), &Arc::default(), &clock).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, EngineError::CatalogLost { .. }), "{text}");
        assert!(text.contains(expected) && text.contains("restore"), "{text}");
        assert!(!data.join("catalog.sqlite").exists(), "the next start asks again");
    }
}

/// Goal: directories of earlier releases get descriptors, and remains of deletions are removed.
#[test]
fn descriptors_are_completed_at_the_start() {
    let rig = filled();
    let data = rig.dir.path().join("data");
    wait_for("the end of the deleted tenant", || (descriptors(&data).len() == 3).then_some(()));
    let before = look(&rig.engine);
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        std::fs::remove_dir_all(data.join("v1/t")).unwrap();
    });
    wait_for("new descriptors", || {
        let is_there = data.join("v1/t").exists() && descriptors(&data).len() == 3;
        is_there.then_some(())
    });
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    assert_eq!(look(&rig.engine), before);
}
