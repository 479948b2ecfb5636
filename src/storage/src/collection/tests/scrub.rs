//! Scrubs: damage behind what was read, and what is written again from memory.

use super::recovery::{flip, two_segments};
use super::*;
use crate::collection::Scrubbed;

fn scrub(collection: &Collection) -> Scrubbed {
    collection.scrub(&mut |_| true).unwrap()
}

/// Changes a byte of an open file in place, as a disk does.
fn rot(dir: &CollectionDir, key: &Key, at: u64) {
    use std::os::unix::fs::FileExt;
    let path = dir._root.path().join(key.as_str());
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// Goal: bytes that changed after they were verified are found without any request, wherever they
/// are in the file.
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

/// Goal: a segment that was merged away is no damage, and versions that have it stay whole.
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

/// Goal: what is in memory is written again under its name, and the next start finds it.
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
