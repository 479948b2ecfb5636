//! Scrubs: damage to data that was already verified, and files that are rewritten from memory.

use super::recovery::{flip, two_segments};
use super::*;
use crate::collection::Scrubbed;
use crate::segment::TombstoneSet;
use lodestone_io::StandInDisk;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs};

fn scrub(collection: &Collection) -> Scrubbed {
    collection.scrub(&mut |_| true).unwrap()
}

/// Changes a byte of an open file in place, as a failing disk does.
fn rot(dir: &CollectionDir, key: &Key, at: u64) {
    use std::os::unix::fs::FileExt;
    let path = dir._root.path().join(key.as_str());
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// Goal: bytes that changed after they were verified are found without any request, wherever in the
/// file they are.
#[test]
fn a_segment_that_rots_while_it_serves_is_quarantined() {
    for from_end in [false, true] {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        let before = sequences(&collection);
        assert_eq!(scrub(&collection), Scrubbed::default(), "all of it was verified");
        let live = Arc::clone(&collection.snapshot().segments[0]);
        let at = if from_end { live.entry.bytes - 3 } else { 4200 };
        rot(&dir, &layout::segment(ID, live.segment.id()), at);
        assert_eq!(sequences(&collection), before, "nobody has noticed");
        assert_eq!(scrub(&collection), Scrubbed { segments: 1, ..Scrubbed::default() });
        assert_eq!(damaged(&collection), [live.segment.id()]);
        assert_eq!(sequences(&collection), owned(&[("c", 3)]));
        assert_eq!(scrub(&collection), Scrubbed::default(), "it is told once");
    }
}

/// Goal: a segment that was merged away is not damage, and versions that contain it stay whole.
#[test]
fn a_segment_that_leaves_during_a_scrub_is_not_condemned() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    add(&collection, &[source("s", "b", 2, &["y"]), source("s", "c", 3, &["z"])]);
    commit(&collection, &removing("s", "b"));
    let pinned = collection.snapshot();
    let worn = layout::segment(ID, pinned.segments[1].segment.id());
    let mut has_left = false;
    let leave = &mut |_| {
        if collection.merge_once(MergeBudget::MOST).unwrap() {
            dir.store.delete(&worn).unwrap();
            has_left = true;
        }
        true
    };
    assert_eq!(collection.scrub(leave).unwrap(), Scrubbed::default());
    assert!(has_left && pinned.check().is_ok());
}

/// Goal: what is in memory is rewritten under its name, and the next start finds it.
#[test]
fn manifest_tombstones_and_lists_are_written_again() {
    for is_missing in [false, true] {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        let (before, head) = (visible(&collection), collection.head());
        let snapshot = collection.snapshot();
        let first = &snapshot.segments[0];
        let dead = first.entry.tombstones.as_ref().unwrap();
        let keys = [
            layout::manifest(ID, snapshot.manifest.version),
            layout::tombstone(ID, dead.id),
            layout::source_list(ID, first.segment.id()),
        ];
        for key in &keys {
            match is_missing {
                true => dir.store.delete(key).unwrap(),
                false => flip(&dir, key, 40),
            }
        }
        let expected = Scrubbed { segments: 0, lists: 1, tombstones: 1, manifests: 1 };
        assert_eq!(scrub(&collection), expected);
        assert_eq!(scrub(&collection), Scrubbed::default());
        drop((snapshot, collection));
        let again = dir.try_open(2, head).unwrap();
        assert!(damaged(&again).is_empty());
        assert_eq!(visible(&again), before);
    }
}

#[test]
fn a_scrub_ends_when_it_is_told_to() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let mut told = 0;
    let stopped = collection.scrub(&mut |bytes| {
        assert!(bytes > 0);
        told += 1;
        false
    });
    assert_eq!((stopped.unwrap(), told), (Scrubbed::default(), 1));
}

/// Goal: a scrub reports a store that is away, whichever file it is reading, and does not take that
/// for damage.
#[test]
fn a_store_that_is_away_ends_a_scrub() {
    let dir = CollectionDir::new();
    two_segments(&dir);
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&faulty) as _;
    let collection = Collection::open(ID, store, Arc::clone(&dir.ids), 1, None).unwrap();
    for place in ["/m/", "/d/", "/r/", "/s/"] {
        faulty.set(move |call, key| match call == Call::Get && key.as_str().contains(place) {
            true => Fault::Before,
            false => Fault::None,
        });
        let error = collection.scrub(&mut |_| true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{place}: {error}");
        assert!(damaged(&collection).is_empty(), "{place}");
    }
    faulty.set(|_, _| Fault::None);
    assert_eq!(scrub(&collection), Scrubbed::default());
}

/// Goal: no manifest is rewritten if none is known to be the newest: before the first commit, and
/// while it is in doubt whether the last one has happened.
#[test]
fn a_manifest_that_may_not_be_the_newest_is_not_written_again() {
    let dir = CollectionDir::new();
    assert_eq!(scrub(&dir.open()), Scrubbed::default());
    assert!(dir.files().is_empty());
    two_segments(&dir);
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&faulty) as _;
    let collection = Collection::open(ID, store, Arc::clone(&dir.ids), 1, None).unwrap();
    faulty.set(|call, _| if call == Call::Create { Fault::After } else { Fault::None });
    let error = collection.writer().unwrap().commit(&removing("s", "a")).unwrap_err();
    assert!(matches!(error, CollectionError::InDoubt { .. }), "{error}");
    let version = collection.head().unwrap().version;
    for lost in [version, version + 1] {
        dir.store.delete(&layout::manifest(ID, lost)).unwrap();
    }
    let files = dir.files();
    assert_eq!(scrub(&collection), Scrubbed::default());
    assert_eq!(dir.files(), files);
}

/// Goal: tombstones that a commit has replaced meanwhile are not rewritten.
#[test]
fn tombstones_that_were_replaced_meanwhile_are_no_damage() {
    let root = tempfile::tempdir().unwrap();
    let (path, disk) = (root.path().to_path_buf(), Arc::new(StandInDisk::default()));
    let dir = CollectionDir::on(root, Arc::clone(&disk) as Arc<dyn Disk>, &path);
    let collection = Arc::new(dir.open());
    let sources = ["a", "b", "c"].map(|id| source("s", id, 1, &["x"]));
    add(&collection, &sources);
    commit(&collection, &removing("s", "a"));
    let first = collection.snapshot().segments[0].entry.tombstones.clone().unwrap();
    let (at_work, is_replaced) = (Arc::downgrade(&collection), AtomicBool::new(false));
    disk.before_read(move |path| {
        if path.ends_with(first.id.as_simple().to_string())
            && !is_replaced.swap(true, Ordering::SeqCst)
        {
            let collection = at_work.upgrade().unwrap();
            commit(&collection, &removing("s", "b"));
            collection.collect_garbage().unwrap();
        }
    });
    assert_eq!(scrub(&collection), Scrubbed::default());
    assert_eq!(dir.count("d/"), 1, "those of the newest version");
    assert_eq!(sequences(&dir.open()), owned(&[("c", 1)]));
}

/// Goal: damaged tombstones are replaced only by what was read from the same file.
#[test]
fn tombstones_of_which_memory_holds_others_are_not_written_again() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let Snapshot { manifest, segments, .. } = &*collection.snapshot();
    let mut segments = segments.clone();
    let (entry, segment) = (segments[0].entry.clone(), Arc::clone(&segments[0].segment));
    let key = layout::tombstone(ID, entry.tombstones.as_ref().unwrap().id);
    segments[0] = Arc::new(LiveSegment::new(entry, segment, TombstoneSet::default()));
    let (manifest, damaged) = (manifest.clone(), Vec::new());
    collection.snapshot.store(Arc::new(Snapshot { manifest, segments, damaged }));
    flip(&dir, &key, 40);
    let bytes = dir.store.get(&key).unwrap();
    let error = collection.scrub(&mut |_| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("cannot be written again"), "{error}");
    assert_eq!(dir.store.get(&key).unwrap(), bytes);
}
