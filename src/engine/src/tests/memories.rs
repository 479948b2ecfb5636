//! Tests that memories live and end as sources do: damage, a lost catalog, expiry, sub-tenants.

use std::sync::Barrier;

use super::rebuild::{HARMS, files};
use super::*;
use crate::ingest::NewMemory;
use lodestone_types::{ErrorKind, Memory};

/// Error number of a full disk.
const ENOSPC: i32 = 28;
const HOUR: u64 = 3_600_000;

fn add(engine: &Engine, memory: &str, content: &str, life_seconds: Option<u64>) {
    let (id, content) = (Some(id(memory)), content.to_owned());
    let added =
        NewMemory { id, content, life_seconds, condensed: Vec::new(), sent: Metadata::new() };
    engine.add_memory(&access(engine), added, None).unwrap();
}

fn memories(engine: &Engine) -> Vec<Memory> {
    engine.memories(&access(engine)).unwrap()
}

fn filled() -> (Rig, Vec<Memory>) {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    add(&rig.engine, "doc", "a memory of the same id", None);
    add(&rig.engine, "old", "replaced later", None);
    add(&rig.engine, "old", &"a long memory with many words ".repeat(200), Some(HOUR));
    let before = memories(&rig.engine);
    assert_eq!(before.len(), 2);
    (rig, before)
}

fn originals(rig: &Rig) -> usize {
    files(&rig.dir.path().join("data/v1/raw"), "").len()
}

#[test]
fn memories_of_damaged_segments_are_built_anew() {
    for (name, harm) in HARMS {
        let (rig, before) = filled();
        let rig = rig.restart(GatedEmbedder::with_passes(0), harm);
        assert!(access(&rig.engine).segments_missing() > 0, "{name}");
        rig.gate.open();
        wait_for("the end of the rebuild", || {
            (access(&rig.engine).segments_missing() == 0).then_some(())
        });
        assert_eq!(memories(&rig.engine), before, "{name}");
        assert!(!access(&rig.engine).needs_help(), "{name}");
    }
}

#[test]
fn memories_outlive_the_catalog_and_make_no_sub_tenant() {
    let (rig, before) = filled();
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(data.join(format!("catalog.sqlite{suffix}")));
        }
    });
    assert_eq!(memories(&rig.engine), before);
    let (_, names) = rig.engine.sub_tenants(&grant(), &scope().tenant).unwrap();
    assert_eq!(names, [SubTenantId::default_name()]);
    assert_eq!(all_sources(&rig.engine, &access(&rig.engine)).len(), 1);
    add(&rig.engine, "doc", "replaced after it", None);
    assert_eq!(memories(&rig.engine)[0].content, "replaced after it", "sequences go on");
}

/// Goal: a memory is invisible once expired, and its disk space is freed without being asked.
#[test]
fn the_end_of_a_memory_is_the_end_of_its_files() {
    let (rig, before) = filled();
    assert_eq!(originals(&rig), 3, "those of the document and of two memories");
    let look = |rig: &Rig| {
        let stats = rig.engine.stats(&grant(), &access(&rig.engine)).unwrap();
        (stats.objects, stats.sources, stats.memories)
    };
    assert_eq!(look(&rig), (1, 1, 2));
    rig.clock.advance_millis(HOUR * 1000);
    assert_eq!(memories(&rig.engine), before[1..]);
    assert_eq!(look(&rig), (1, 1, 1));
    let removed = rig.engine.delete_memory(&access(&rig.engine), &id("never")).unwrap_err();
    assert_eq!(removed.kind(), lodestone_types::ErrorKind::NotFound);
    rig.engine.ingest.clear_deleted_tenants();
    wait_for("the end of its original", || (originals(&rig) == 2).then_some(()));
    let snapshot = access(&rig.engine).collection.snapshot();
    assert_eq!(snapshot.rows_in(&SubTenantId::default_name().of_memories()), 1);
    assert_eq!(memories(&rig.engine), before[1..]);
}

#[test]
fn memories_go_with_their_sub_tenant() {
    let (rig, before) = filled();
    let sub_tenant = SubTenantId::parse("beside").unwrap();
    let beside = Scope { sub_tenant, ..scope() };
    let beside = rig.engine.open(&grant(), &beside, None).unwrap();
    let content = "of another scope".to_owned();
    let added = NewMemory { content, ..NewMemory::default() };
    rig.engine.add_memory(&beside, added, None).unwrap();
    let (_, names) = rig.engine.sub_tenants(&grant(), &scope().tenant).unwrap();
    assert_eq!(names.len(), 2, "the first memory made it");
    rig.engine.delete_sub_tenant(&beside).unwrap();
    assert!(rig.engine.memories(&beside).unwrap().is_empty());
    assert_eq!(memories(&rig.engine), before);
    assert_eq!(originals(&rig), 3);
}

/// Goal: a statement made in concurrent messages is remembered once, and all get the same memory.
#[test]
fn the_same_words_at_once_are_one_memory() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let begin = Barrier::new(12);
    let generate = || {
        let access = access(engine);
        begin.wait();
        engine.generate_memories(&access, "I am allergic to peanuts.", None).unwrap()
    };
    let generated: Vec<_> = std::thread::scope(|scope| {
        let threads = [(); 12].map(|()| scope.spawn(generate));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let kept = memories(engine);
    assert_eq!((kept.len(), originals(&rig)), (1, 1));
    assert!(generated.iter().all(|told| *told == kept));
}

/// Goal: on a full disk no memory is added, existing ones are kept and can be deleted.
#[test]
fn a_full_disk_takes_no_memories() {
    let (rig, before) = filled();
    rig.fill(91);
    let content = "no room".to_owned();
    let added = NewMemory { content, ..NewMemory::default() };
    let refused = rig.engine.add_memory(&access(&rig.engine), added, None).unwrap_err();
    assert_eq!(refused.kind(), lodestone_types::ErrorKind::StorageFull);
    assert_eq!(memories(&rig.engine), before);
    rig.engine.delete_memory(&access(&rig.engine), &id("doc")).unwrap();
    assert_eq!(memories(&rig.engine), before[..1]);
    assert_eq!(originals(&rig), 2);
}

/// Goal: at most five memories are near a query, each once, nearest first, with its vector; none of
/// another scope, none that has expired, none that is not near.
#[test]
fn near_memories_are_few_and_nearest_first() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let near = |query: &str| {
        let vector = engine.embedder().embed(lodestone_embed::Lane::Query, vec![query.to_owned()]);
        let vector = lodestone_compute::PreparedQuery::new(&vector.unwrap()[0]).unwrap();
        let access = access(engine);
        let (snapshot, now) = (access.collection.snapshot(), engine.clock.now());
        let TenantAccess { context, sub_tenant, .. } = &access;
        engine.query.near_memories(context, &snapshot, sub_tenant, &vector, now).unwrap()
    };
    assert!(near("green tea").is_empty(), "there are none");
    rig.upload("doc", "green tea");
    add(engine, "m0", "green tea", None);
    for n in 1..7 {
        add(engine, &format!("m{n}"), &format!("green tea word{n}"), None);
    }
    add(engine, "ending", "green tea", Some(1));
    add(engine, "far", "zebra crossing", None);
    assert_eq!(near("green tea")[0].id, id("ending"), "equals by id");
    rig.clock.advance_millis(1000);
    let found = near("green tea");
    assert_eq!(found.len(), lodestone_types::limits::MEMORIES_USED_MAX);
    assert_eq!((&found[0].id, found[0].text.as_str()), (&id("m0"), "green tea"));
    assert!(found[0].similarity > 0.999);
    assert!(found.is_sorted_by(|a, b| a.similarity >= b.similarity));
    let length: f32 = found[0].vector.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-3 && found.iter().all(|memory| memory.id != id("far")));
}

/// Goal: a memory that is not stored leaves nothing behind: its tenant is still empty.
#[test]
fn a_memory_that_is_not_stored_is_not_known() {
    let rig = Rig::new();
    let access = access(&rig.engine);
    rig.disk.refuse_links(ENOSPC);
    let (id, content) = (Some(id("m")), "Nora likes slate.".to_owned());
    let added = NewMemory { id, content, ..NewMemory::default() };
    let error = rig.engine.add_memory(&access, added, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    assert!(rig.engine.catalog.is_empty(access.tenant.collection).unwrap());
    assert_eq!(originals(&rig), 0);
}
