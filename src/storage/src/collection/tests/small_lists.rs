//! Source lists in the manifest, for small segments where each file costs a request.

use std::sync::atomic::AtomicU32;

use super::recovery::flip;
use super::*;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs};

/// A directory that behaves like a bucket.
fn bucket() -> (CollectionDir, Arc<FaultyBlobs>) {
    let dir = CollectionDir::new();
    let shared = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    (CollectionDir { store: Arc::clone(&shared) as _, ..dir }, shared)
}

fn manifest(dir: &CollectionDir, collection: &Collection) -> Manifest {
    let version = collection.head().unwrap().version;
    Manifest::decode(&dir.store.get(&layout::manifest(ID, version)).unwrap(), ID, version).unwrap()
}

/// Goal: a commit of a small upload writes the segment and the manifest, and reads only the
/// previous manifest. Method: the calls of the store are counted.
#[test]
fn a_small_commit_to_a_bucket_is_two_writes_and_one_read() {
    let (dir, shared) = bucket();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    let counts = Arc::new([const { AtomicU32::new(0) }; 3]);
    let counted = Arc::clone(&counts);
    shared.set(move |call, key| {
        let is_manifest = layout::manifest_version(key).is_some();
        let kind = match call {
            Call::Put => 0,
            Call::Create => 1,
            // The segment is opened from the local copy that is kept of it.
            Call::Get if is_manifest => 2,
            _ => return Fault::None,
        };
        counted[kind].fetch_add(1, Ordering::SeqCst);
        Fault::None
    });
    add(&collection, &[source("s", "b", 2, &["y"])]);
    assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [1, 1, 1]);
    assert_eq!((dir.count("s/"), dir.count("r/")), (2, 0));
    assert_eq!(collection.repair_source_lists().unwrap(), 0, "none is missing");
    let stored = manifest(&dir, &collection);
    assert_eq!(stored, collection.snapshot().manifest);
    assert_eq!(stored.min_reader, 2, "an older program would look for files");
    assert_eq!(stored.files().len(), 3);
}

/// Goal: the contents of a damaged small segment are known from the manifest: its sources can be
/// deleted and replaced, by the process that writes and after another one has taken over.
#[test]
fn a_damaged_small_segment_is_known_from_the_manifest() {
    let (dir, _) = bucket();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    add(&collection, &[source("s", "c", 3, &["z"])]);
    let harmed = collection.snapshot().segments[0].segment.id();
    flip(&dir, &layout::segment(ID, harmed), 10);
    drop(collection);
    let collection = dir.try_open(2, None).unwrap();
    assert_eq!(damaged(&collection), [harmed]);
    let (sub_tenant, a) = named("s", "a");
    let record = collection.snapshot().record(&sub_tenant, &a).unwrap();
    assert_eq!(record, Some(source("s", "a", 1, &[]).record));
    commit(&collection, &removing("s", "b"));
    let collection = dir.try_open(3, collection.head()).unwrap();
    assert_eq!(damaged(&collection), [harmed], "a is left");
    add(&collection, &[source("s", "a", 4, &["w"])]);
    assert!(damaged(&collection).is_empty());
    assert_eq!(sequences(&collection), owned(&[("a", 4), ("c", 3)]));
}

/// Goal: a list that is too long for the manifest is a file, and as soon as no list is in the
/// manifest an older program can read it; a directory is unaffected.
#[test]
fn a_long_list_is_a_file() {
    let (dir, _) = bucket();
    let collection = dir.open();
    for number in 0..12 {
        add(&collection, &[source("s", &format!("d{number}"), number + 1, &["text"])]);
    }
    assert_eq!((dir.count("r/"), manifest(&dir, &collection).min_reader), (0, 2));
    while collection.merge_once(MergeBudget::MOST).unwrap() {}
    let merged = collection.snapshot().manifest.segments[0].clone();
    assert_eq!((merged.sources, merged.list.is_some(), dir.count("r/")), (12, false, 1));
    let sources: Vec<_> =
        (0..12).map(|n| source("s", &format!("d{n}"), n + 20, &["new"])).collect();
    add(&collection, &sources);
    assert_eq!(manifest(&dir, &collection).min_reader, 1);
    collection.collect_garbage().unwrap();
    assert_eq!((dir.count("s/"), dir.count("r/")), (1, 1));
    let mut wordy = source("s", "wordy", 40, &["text"]);
    wordy.record.title = "long ".repeat(600);
    add(&collection, &[wordy]);
    assert_eq!(dir.count("r/"), 2, "one source may be too long");

    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    assert_eq!((dir.count("r/"), manifest(&dir, &collection).min_reader), (1, 1));
}

/// Goal: data with lists in manifests also work in a directory, as after copying a bucket.
#[test]
fn a_directory_understands_lists_in_the_manifest() {
    let (dir, _) = bucket();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    let inner = CollectionDir::new();
    for key in dir.store.list(&layout::collection_prefix(ID)).unwrap() {
        inner.store.put(&key, &dir.store.get(&key).unwrap()).unwrap();
    }
    let copy = inner.open();
    assert_eq!(visible(&copy), visible(&collection));
    add(&copy, &[source("s", "b", 2, &["y"])]);
    for live in &copy.snapshot().segments {
        assert!(copy.verify_list(&live.entry, &live.segment).unwrap());
    }
    assert_eq!((inner.count("r/"), manifest(&inner, &copy).min_reader), (1, 2));
}
