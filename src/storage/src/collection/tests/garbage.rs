//! Garbage collection: files are deleted once nothing refers to them, and not before.

use super::*;
use lodestone_io::StandInDisk;

fn listed(collection: &Collection) -> usize {
    collection.snapshot().segments.len()
}

#[test]
fn old_manifests_tombstones_and_segments_go() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    commit(&collection, &removing("s", "a"));
    add(&collection, &[source("s", "c", 3, &["z"])]);
    assert_eq!((dir.count("m/"), dir.count("s/"), dir.count("d/")), (3, 2, 1));
    assert_eq!(collection.collect_garbage().unwrap(), 2, "two manifests");
    assert_eq!((dir.count("m/"), dir.count("s/"), dir.count("d/")), (1, 2, 1));
    commit(&collection, &removing("s", "b"));
    assert_eq!(collection.collect_garbage().unwrap(), 3, "manifest, segment, tombstones");
    assert_eq!((dir.count("m/"), dir.count("s/"), dir.count("d/")), (1, 1, 0));
    assert_eq!(sequences(&dir.open()), owned(&[("c", 3)]));
}

#[test]
fn a_file_waits_for_its_last_reader() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    let reader = collection.snapshot();
    commit(&collection, &removing("s", "a"));
    collection.collect_garbage().unwrap();
    assert!(collection.has_garbage());
    assert_eq!(dir.count("s/"), 1, "held");
    assert_eq!(contents(&reader).len(), 1, "and readable");
    drop(reader);
    assert_eq!(collection.collect_garbage().unwrap(), 1);
    assert!(!collection.has_garbage());
    assert_eq!(dir.count("s/"), 0);
    assert_eq!(collection.collect_garbage().unwrap(), 0);
}

/// Goal: builds that never become visible do not fill the disk: one that was dropped, one whose
/// sources were all withheld, one that lost to later operations.
#[test]
fn segments_that_were_never_listed_go_too() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 9, &["x"])]);
    let dropped = build(&collection, &[source("s", "b", 1, &["y"])]);
    collection.collect_garbage().unwrap();
    assert_eq!(dir.count("s/"), 2, "still in the hands of its builder");
    drop(dropped);
    let mut withheld = adding(&collection, &[source("s", "c", 2, &["z"])]);
    withheld.add[0].withheld = vec![named("s", "c")];
    commit(&collection, &withheld);
    drop(withheld);
    add(&collection, &[source("s", "a", 3, &["late"])]);
    assert_eq!((listed(&collection), dir.count("s/")), (1, 4));
    collection.collect_garbage().unwrap();
    assert_eq!((listed(&collection), dir.count("s/")), (1, 1));
    assert_eq!(sequences(&collection), owned(&[("a", 9)]));
}

/// Goal: no writer waits while files are deleted. Method: on each deletion, check that the lock is
/// free.
#[test]
fn writers_do_not_wait_while_files_are_deleted() {
    let root = tempfile::tempdir().unwrap();
    let (path, disk) = (root.path().to_path_buf(), Arc::new(StandInDisk::default()));
    let dir = CollectionDir::on(root, Arc::clone(&disk) as Arc<dyn Disk>, &path);
    let collection = Arc::new(dir.open());
    add(&collection, &[source("s", "a", 1, &["x"])]);
    commit(&collection, &removing("s", "a"));
    let (watched, removed) = (Arc::downgrade(&collection), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&removed);
    disk.before_remove(move |path| {
        let is_free = watched.upgrade().is_some_and(|open| open.writer.try_lock().is_some());
        seen.lock().push((path.to_path_buf(), is_free));
    });
    assert_eq!(collection.collect_garbage().unwrap(), 2, "manifest and segment");
    let removed = removed.lock();
    assert_eq!(removed.len(), 3, "with its list: {removed:?}");
    assert!(removed.iter().all(|(_, is_free)| *is_free), "{removed:?}");
}

#[test]
fn a_discarded_segment_goes_at_once() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let built = build(&collection, &[source("s", "a", 1, &["x"])]);
    collection.discard(&built.segment).unwrap();
    assert!(dir.files().is_empty());
    drop(built);
    collection.collect_garbage().unwrap();
}

#[test]
fn opening_takes_what_a_crash_left_over() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    commit(&collection, &removing("s", "a"));
    let _unlisted = build(&collection, &[source("s", "c", 3, &["z"])]);
    for stray in ["s/notes.txt", "d/00000000000000000000000000000001"] {
        let key = layout::collection_prefix(ID).join(stray).unwrap();
        dir.store.put(&key, b"left over").unwrap();
    }
    let opened = dir.open();
    assert_eq!((dir.count("m/"), dir.count("s/"), dir.count("d/")), (1, 1, 1));
    assert_eq!(sequences(&opened), owned(&[("b", 2)]));
}
