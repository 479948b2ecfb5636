//! Concurrent writers and failing disks.

use super::recovery::flip;
use super::*;
use lodestone_io::{CrashDisk, Fault, FaultKind};

/// Goal: a commit builds on that of a second writer with the same epoch instead of overwriting it.
#[test]
fn a_commit_is_rebased_on_another_writers() {
    let dir = CollectionDir::new();
    let ours = dir.open();
    add(&ours, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    let edit = {
        let theirs = dir.open();
        add(&theirs, &[source("s", "c", 3, &["z"])]);
        commit(&theirs, &removing("s", "a"));
        // Built only now, because opening deletes files that nobody has listed.
        adding(&ours, &[source("s", "b", 4, &["newer"]), source("s", "c", 2, &["older"])])
    };
    let outcome = commit(&ours, &edit);
    assert_eq!(outcome.outdated, [Sequence(2)]);
    assert_eq!(sequences(&ours), owned(&[("b", 4), ("c", 3)]));
    assert_eq!(ours.head().unwrap().version, 4);
    assert_eq!(sequences(&dir.open()), owned(&[("b", 4), ("c", 3)]));
    assert!(ours.snapshot().manifest.applied.contains(&3), "their jobs are not forgotten");
}

#[test]
fn a_later_epoch_fences_an_earlier_writer() {
    let dir = CollectionDir::new();
    let old = dir.open();
    add(&old, &[source("s", "a", 1, &["x"])]);
    let new = dir.try_open(2, None).unwrap();
    add(&new, &[source("s", "b", 2, &["y"])]);
    let edit = adding(&old, &[source("s", "c", 3, &["z"])]);
    let error = old.writer().unwrap().commit(&edit).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    let error = old.writer().err().expect("no further attempt");
    assert!(matches!(error, CollectionError::Poisoned { .. }), "{error}");
    assert_eq!(old.collect_garbage().unwrap(), 0, "and it deletes nothing");
    assert_eq!(sequences(&old), owned(&[("a", 1)]), "reads go on");
    assert_eq!(sequences(&dir.open()), owned(&[("a", 1), ("b", 2)]));
}

/// Goal: a number that was used, collected and used again is not taken for a commit.
#[test]
fn a_writer_that_slept_through_commits_and_garbage_collection_is_fenced() {
    let dir = CollectionDir::new();
    let slow = dir.open();
    let fast = dir.open();
    for n in 1..=3 {
        add(&fast, &[source("s", "a", n, &["x"])]);
    }
    fast.collect_garbage().unwrap();
    let edit = adding(&slow, &[source("s", "b", 9, &["y"])]);
    let error = slow.writer().unwrap().commit(&edit).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    assert_eq!(sequences(&dir.open()), owned(&[("a", 3)]));
}

pub(super) fn on_crash_disk() -> (CollectionDir, Arc<CrashDisk>) {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(CrashDisk::new(root.path()));
    let path = disk.root().join("data");
    let dynamic: Arc<dyn Disk> = disk.clone();
    (CollectionDir::on(root, dynamic, &path), disk)
}

/// Goal: a disk that is full, or refuses a file, fails the commit and changes nothing; the same
/// collection continues later, and nothing of the failed attempts remains.
#[test]
fn a_refused_write_is_no_poison() {
    let kinds =
        [(FaultKind::Full, ErrorKind::StorageFull), (FaultKind::Device, ErrorKind::Internal)];
    for (nth, (fault, kind)) in (0..3).flat_map(|nth| kinds.map(|kind| (nth, kind))) {
        let (dir, disk) = on_crash_disk();
        let collection = dir.open();
        add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
        let edit = adding(&collection, &[source("s", "a", 3, &["z"])]);
        disk.inject(Fault::Write(disk.writes() + nth), fault);
        let result = collection.writer().unwrap().commit(&edit);
        // Tombstones and manifest are two files; no third one is written.
        assert_eq!(result.is_err(), nth < 2);
        if let Err(error) = result {
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(sequences(&collection), owned(&[("a", 1), ("b", 2)]));
            commit(&collection, &edit);
        }
        assert_eq!(sequences(&collection), owned(&[("a", 3), ("b", 2)]));
        drop(edit);
        collection.collect_garbage().unwrap();
        assert_eq!((dir.count("m/"), dir.count("s/"), dir.count("d/")), (1, 2, 1));
    }
}

/// Goal: in a directory, which is locked, a commit whose file got its name has happened, whatever
/// cannot be read after that.
#[test]
fn a_base_that_cannot_be_read_leaves_no_doubt_in_a_directory() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    let version = collection.head().unwrap().version;
    dir.store.put(&layout::manifest(ID, version), b"damaged").unwrap();
    add(&collection, &[source("s", "b", 2, &["y"])]);
    assert!(!collection.is_poisoned());
    assert_eq!(sequences(&dir.open()), owned(&[("a", 1), ("b", 2)]));
}

#[test]
fn a_failed_sync_is_poison_and_reads_go_on() {
    // The steps: tombstone directory, tombstones, their directory, manifest, its directory.
    for nth in 0..5 {
        let (dir, disk) = on_crash_disk();
        let collection = dir.open();
        add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
        let edit = adding(&collection, &[source("s", "c", 3, &["z"])]);
        let edit = Edit { remove_sources: vec![named("s", "a")], ..edit };
        disk.inject(Fault::Sync(disk.syncs() + nth), FaultKind::Device);
        let error = collection.writer().unwrap().commit(&edit).unwrap_err();
        let is_in_doubt = matches!(error, CollectionError::InDoubt { .. });
        assert_eq!(is_in_doubt, nth >= 3, "sync {nth}: {error}");
        let error = collection.writer().err().expect("refused from now on");
        assert!(matches!(error, CollectionError::Poisoned { .. }), "{error}");
        assert_eq!(collection.collect_garbage().unwrap(), 0);
        assert_eq!(sequences(&collection), owned(&[("a", 1), ("b", 2)]));
        // The data directory is poisoned too, but can be opened and read.
        assert!(!sequences(&dir.open()).is_empty());
    }
}

/// Goal: unreadable sources fail the edit, not the collection: nothing was written.
#[test]
fn a_refused_edit_is_no_poison() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let twice = [source("s", "a", 1, &["x"]), source("s", "a", 2, &["y"])];
    assert!(collection.build(DIMENSION, VectorKind::F16, &twice).is_err());
    assert!(dir.files().is_empty());
    add(&collection, &[source("s", "a", 3, &["z"])]);
    assert!(!collection.is_poisoned());
}

/// Goal: a commit is not built on another writer's version if a part of it is unknown, because that
/// part's contents would be missing from the next manifest.
#[test]
fn a_commit_is_not_rebased_on_what_cannot_be_read() {
    let dir = CollectionDir::new();
    let ours = dir.open();
    add(&ours, &[source("s", "a", 1, &["x"])]);
    let theirs = dir.open();
    add(&theirs, &[source("s", "b", 2, &["y"])]);
    let edit = adding(&ours, &[source("s", "c", 3, &["z"])]);
    let harmed = theirs.snapshot().segments[1].segment.id();
    flip(&dir, &layout::segment(ID, harmed), 10);
    flip(&dir, &layout::source_list(ID, harmed), 50);
    let error = ours.writer().unwrap().commit(&edit).unwrap_err();
    assert!(matches!(error, CollectionError::Quarantined { segments: 1, .. }), "{error}");
    assert_eq!(sequences(&ours), owned(&[("a", 1)]), "reads go on");
    let head = dir.try_open(2, theirs.head()).unwrap().head();
    assert_eq!(head, theirs.head(), "nothing was committed over it");
}
