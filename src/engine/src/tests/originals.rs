//! Tests of originals that are read while their source changes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::backup::{Folder, TakeOptions, TakeParts, Unpaced, take};
use lodestone_catalog::Tenant;
use lodestone_io::store::HeldBlobs;
use lodestone_io::store::testing::FaultyBlobs;

/// Goal: a replacement published between lookup and read, so that the old file is gone, is no
/// error.
/// Method: the disk publishes one just before each of the first two reads.
#[test]
fn an_original_is_found_although_it_is_replaced_meanwhile() {
    let rig = Rig::new();
    rig.upload("doc", "first version");
    let (weak, reads) = (Arc::downgrade(&rig.engine), Arc::new(AtomicUsize::new(0)));
    let first = access(&rig.engine).collection.snapshot().all_sources().next().unwrap().record();
    let first = rig.engine.data.root().join(first.unwrap().raw_key);
    assert!(first.exists());
    let is_mine = std::thread::current().id();
    let counted = Arc::clone(&reads);
    rig.disk.before_read(move |path| {
        let is_original = path.components().any(|part| part.as_os_str() == "raw");
        if !is_original || std::thread::current().id() != is_mine {
            return;
        }
        let turn = counted.fetch_add(1, Ordering::SeqCst);
        if turn < 2 {
            let engine = weak.upgrade().unwrap();
            submit(&engine, "doc", &format!("version after {turn}"), &Metadata::new());
            settled(&engine, "doc");
            wait_for("the end of the old file", || (!path.exists()).then_some(()));
        }
    });
    let mut original = rig.engine.original(&access(&rig.engine), &id("doc")).unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 3, "two were gone, the third is read");
    let content = content_of(&rig.engine, &mut original);
    assert_eq!((&content[..], original.record.version), (&b"version after 1"[..], 3));
    assert!(!first.exists());
}

#[test]
fn an_original_that_is_lost_is_damage_and_not_absence() {
    let rig = Rig::new();
    rig.upload("doc", "some words");
    let access = access(&rig.engine);
    let record = rig.engine.original(&access, &id("doc")).unwrap().record;
    std::fs::remove_file(rig.engine.data.root().join(&record.raw_key)).unwrap();
    let error = rig.engine.original(&access, &id("doc")).unwrap_err();
    assert_eq!(error.kind(), lodestone_types::ErrorKind::Corrupt, "{error}");
    let error = rig.engine.original(&access, &id("other")).unwrap_err();
    assert!(matches!(error, EngineError::SourceNotFound { .. }), "{error}");
}

/// Goal: an original that is whole in the bucket gets into a backup although its local copy is
/// damaged.
#[test]
fn a_damaged_copy_leaves_no_tenant_out_of_a_backup() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is snow");
    let record = rig.engine.original(&access(&rig.engine), &id("doc")).unwrap().record;
    let path = rig.engine.data.root().join(&record.raw_key);
    let sound = std::fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let copies = FaultyBlobs::new(Arc::clone(&rig.engine.store));
    copies.set_copies(move |_| std::fs::write(&path, &sound).is_ok());
    let open = |tenant: &Tenant| Ok(rig.engine.ingest.open(tenant)?);
    let parts = TakeParts {
        catalog: &rig.engine.catalog,
        open: &open,
        store: &Arc::new(HeldBlobs::new(Arc::new(copies))),
        clock: &*rig.clock,
        pace: &Unpaced,
    };
    let to = tempfile::tempdir().unwrap();
    let place = Folder::create(to.path()).unwrap();
    let made = take(&parts, &place, &TakeOptions::default()).unwrap();
    assert!(made.is_complete(), "{:?}", made.left_out);
}
