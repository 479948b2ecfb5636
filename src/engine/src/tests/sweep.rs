//! Originals that nobody refers to go, all others stay.

use lodestone_types::Origin;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::ingest::NewFile;
use lodestone_io::store::Key;
use lodestone_storage::collection::uploads::{self, UploadLabel};

const HOUR: u64 = 3_600_000;

/// An original as a crash before the writing of its job leaves it.
fn orphan(engine: &Engine, at: Timestamp) -> Key {
    let label = UploadLabel {
        sub_tenant: "default".into(),
        source: "never".into(),
        kind: "text".into(),
        filename: String::new(),
        content_type: String::new(),
        uploaded_at: at.0,
        tenant_metadata: None,
        document_metadata: None,
        origin: Origin::default(),
        after: None,
    };
    let collection = access(engine).tenant.collection;
    uploads::put(&*engine.store, &*engine.ids, collection, &label, b"orphan").unwrap()
}

fn exists(engine: &Engine, key: &Key) -> bool {
    engine.store.len(key).is_ok()
}

/// Goal: at a start, and an hour later, what is older than an hour and referred to by nobody goes;
/// what is fresh, visible, waiting or failed stays.
#[test]
fn only_old_orphans_go() {
    let rig = Rig::new();
    rig.upload("visible", "some words");
    submit(&rig.engine, "failed", "  ", &Metadata::new());
    assert_eq!(settled(&rig.engine, "failed").status, JobStatus::Errored);
    let new = NewFile {
        purpose: "assistants".into(),
        filename: "a.txt".into(),
        content_type: String::new(),
        content: "words of a file".into(),
    };
    let file = rig.engine.add_file(&grant(), &scope(), new).unwrap();
    let old = orphan(&rig.engine, Timestamp(START.0 - 2 * HOUR));
    let fresh = orphan(&rig.engine, START);
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "waiting", "other words", &Metadata::new());
    wait_for("the sweep at the start", || (!exists(engine, &old)).then_some(()));
    assert!(exists(engine, &fresh));
    rig.clock.advance_millis(2 * HOUR);
    // Any work wakes the thread; without any it looks every few seconds.
    engine.ingest.clear_deleted_tenants();
    wait_for("the sweep after an hour", || (!exists(engine, &fresh)).then_some(()));
    for source in ["visible", "failed", "waiting"] {
        engine.original(&access(engine), &id(source)).unwrap();
    }
    engine.file_content(&file).unwrap().verify(|_| {}).unwrap();
    rig.gate.open();
    assert_eq!(settled(engine, "waiting").status, JobStatus::Success);
}

/// Goal: no sweep takes an original from under an upload, whatever their order.
/// Method: every upload is hours old when the next sweep looks, and sweeps never pause.
#[test]
fn sweeps_and_uploads_do_not_meet() {
    let rig = Rig::new();
    rig.upload("doc-0", "version 0 of doc-0");
    let (engine, is_done) = (&rig.engine, AtomicBool::new(false));
    let sweeps = std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let mut sweeps = 0;
            while !is_done.load(Ordering::SeqCst) {
                engine.ingest.sweep_originals(&access(engine).collection).unwrap();
                sweeps += 1;
            }
            sweeps
        });
        for n in 1..60 {
            let source = format!("doc-{}", n % 7);
            submit(engine, &source, &format!("version {n} of {source}"), &Metadata::new());
            rig.clock.advance_millis(2 * HOUR);
            if n % 5 == 0 {
                engine.original(&access(engine), &id(&source)).unwrap();
            }
        }
        (0..7).for_each(|n| drop(settled(engine, &format!("doc-{n}"))));
        is_done.store(true, Ordering::SeqCst);
        sweeper.join().unwrap()
    });
    assert!(sweeps > 0);
    for n in 0..7 {
        let view = settled(engine, &format!("doc-{n}"));
        assert_eq!(view.status, JobStatus::Success, "{}", view.message);
        engine.original(&access(engine), &view.record.id).unwrap();
    }
}
