//! Opening: what is found, what is refused, and what is quarantined.

use super::*;
use crate::segment::TombstoneSet;
use lodestone_compute::SimdBackend;
use lodestone_io::store::testing::{Fault, FaultyBlobs};

pub(super) fn two_segments(dir: &CollectionDir) -> Collection {
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    add(&collection, &[source("s", "c", 3, &["z"])]);
    commit(&collection, &removing("s", "b"));
    collection
}

pub(super) fn flip(dir: &CollectionDir, key: &Key, at: usize) {
    let mut bytes = dir.store.get(key).unwrap();
    bytes[at] ^= 1;
    dir.store.put(key, &bytes).unwrap();
}

#[test]
fn reopening_finds_the_same() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let again = dir.try_open(2, collection.head()).unwrap();
    assert_eq!(visible(&again), visible(&collection));
    assert_eq!(again.head(), collection.head());
    add(&again, &[source("s", "d", 4, &["new"])]);
    assert_eq!(sequences(&dir.open()), owned(&[("a", 1), ("c", 3), ("d", 4)]));
}

#[test]
fn a_disk_that_lost_a_commit_is_noticed() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let head = collection.head().unwrap();
    let ahead = CommitHead { version: head.version + 1, ..head };
    let error = dir.try_open(2, Some(ahead)).unwrap_err();
    assert!(matches!(error, CollectionError::HeadMissing { found: 3, expected: 4, .. }), "{error}");
    let other = CommitHead { nonce: Uuid::from_u128(1), ..head };
    let error = dir.try_open(2, Some(other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    // An earlier commit that is not an ancestor of the head: the disk has a different history.
    let earlier = CommitHead { version: head.version - 1, nonce: Uuid::from_u128(1) };
    assert_eq!(dir.try_open(2, Some(earlier)).unwrap_err().kind(), ErrorKind::Corrupt);
    let parent = collection.snapshot().manifest.parent;
    let earlier = CommitHead { version: head.version - 1, nonce: parent };
    assert!(dir.try_open(2, Some(earlier)).is_ok());
}

#[test]
fn a_damaged_newest_manifest_is_not_passed_over() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let files = dir.files();
    flip(&dir, &layout::manifest(ID, collection.head().unwrap().version), 60);
    assert_eq!(dir.try_open(2, None).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(dir.files(), files, "nothing is deleted");
}

/// Goal: if it is unknown which sources a damaged segment held, that segment is taken out and
/// nothing else, and nothing is deleted or written until an operator has looked at it.
#[test]
fn a_segment_of_which_nothing_is_known_stays_quarantined() {
    let victims: [fn(&CollectionDir, &SegmentEntry); 4] = [
        |dir, entry| {
            flip(dir, &layout::segment(ID, SegmentId(entry.id)), 10);
            flip(dir, &layout::source_list(ID, SegmentId(entry.id)), 50);
        },
        |dir, entry| {
            dir.store.delete(&layout::segment(ID, SegmentId(entry.id))).unwrap();
            dir.store.delete(&layout::source_list(ID, SegmentId(entry.id))).unwrap();
        },
        |dir, entry| {
            let file = entry.tombstones.as_ref().unwrap();
            flip(dir, &layout::tombstone(ID, file.id), 70);
        },
        |dir, entry| {
            let file = entry.tombstones.as_ref().unwrap();
            dir.store.delete(&layout::tombstone(ID, file.id)).unwrap();
        },
    ];
    for (turn, harm) in victims.into_iter().enumerate() {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        // Without the damage it would be rewritten for its dead row.
        add(&collection, &[source("s", "d", 7, &["v"]), source("s", "e", 8, &["u"])]);
        commit(&collection, &removing("s", "e"));
        let entry = collection.snapshot().manifest.segments[0].clone();
        build(&collection, &[source("s", "orphan", 8, &["w"])]);
        harm(&dir, &entry);
        let files = dir.files();
        let opened = dir.try_open(2, collection.head()).unwrap();
        assert_eq!(damaged(&opened), [SegmentId(entry.id)], "harm {turn}");
        assert_eq!(sequences(&opened), owned(&[("c", 3), ("d", 7)]), "the others serve");
        let refused = opened.writer().err().expect("writes are refused");
        assert!(matches!(refused, CollectionError::Quarantined { segments: 1, .. }));
        assert!(!opened.merge_once(MergeBudget::MOST).unwrap());
        assert_eq!(dir.files(), files, "evidence stays");
    }
}

#[test]
fn applied_jobs_are_remembered_until_the_catalog_has_marked_them() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    add(&collection, &[source("s", "b", 2, &["y"])]);
    assert_eq!(collection.snapshot().manifest.applied, [1, 2]);
    collection.writer().unwrap().forget_applied(&[Sequence(1)]);
    add(&collection, &[source("s", "c", 3, &["z"])]);
    assert_eq!(collection.snapshot().manifest.applied, [2, 3]);

    // The catalog has not seen this head, so its jobs may not be marked.
    let unseen = dir.try_open(2, None).unwrap();
    commit(&unseen, &removing("s", "a"));
    assert_eq!(unseen.snapshot().manifest.applied, [2, 3]);
    // The catalog has recorded this head, and with it the end of its jobs.
    let seen = dir.try_open(3, unseen.head()).unwrap();
    assert_eq!(seen.snapshot().manifest.applied, [2, 3], "for recovery, until the next commit");
    commit(&seen, &removing("s", "b"));
    assert!(seen.snapshot().manifest.applied.is_empty());
}

#[test]
fn the_registry_keeps_what_is_in_use_and_closes_the_rest() {
    let dir = CollectionDir::new();
    let (store, ids) = (Arc::clone(&dir.store), Arc::clone(&dir.ids));
    let registry = Registry::new(store, ids, 1, 4);
    let open = |n: u128| {
        let id = CollectionId(Uuid::from_u128(n));
        registry.get(id, || Ok::<_, CollectionError>(None), |_| Ok(())).unwrap()
    };
    let used = open(1);
    let background = Arc::downgrade(&open(2));
    (3..=4).for_each(|n| drop(open(n)));
    assert_eq!(registry.open_collections().len(), 4);
    assert!(background.upgrade().is_some(), "idle collections stay open below the limit");
    (5..=12).for_each(|n| drop(open(n)));
    assert!(registry.open_collections().len() <= 4);
    assert!(background.upgrade().is_none(), "closed for good, background work cannot go on");
    assert!(Arc::ptr_eq(&used, &open(1)));
    assert_eq!(open(2).id(), CollectionId(Uuid::from_u128(2)));
}

#[test]
fn the_registry_does_not_forget_poison() {
    let dir = CollectionDir::new();
    let (store, ids) = (Arc::clone(&dir.store), Arc::clone(&dir.ids));
    let registry = Registry::new(store, ids, 1, 2);
    let open = |n: u128| {
        let id = CollectionId(Uuid::from_u128(n));
        registry.get(id, || Ok::<_, CollectionError>(None), |_| Ok(())).unwrap()
    };
    open(1).poisoned.store(true, Ordering::SeqCst);
    (2..=9).for_each(|n| drop(open(n)));
    assert!(open(1).writer().is_err());
}

/// Goal: on a shared store, where only the first opening of an epoch looks for leftovers, a
/// collection stays open as long as it has files to delete.
#[test]
fn the_registry_does_not_forget_garbage_in_a_bucket() {
    let dir = CollectionDir::new();
    let store = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let registry = registry(store, Some(1), 2);
    let collection = get(&registry, ID).unwrap();
    add(&collection, &[source("s", "a", 1, &["x"])]);
    let reader = collection.snapshot();
    commit(&collection, &removing("s", "a"));
    collection.collect_garbage().unwrap();
    drop(collection);
    (1..=9).for_each(|n| drop(get(&registry, numbered(n)).unwrap()));
    drop(reader);
    get(&registry, ID).unwrap().collect_garbage().unwrap();
    assert_eq!(dir.count("s/"), 0);
    (1..=9).for_each(|n| drop(get(&registry, numbered(n)).unwrap()));
    assert!(registry.find(ID).is_none(), "it is closed after that");
}

#[test]
fn the_registry_counts_what_damage_keeps_closed() {
    let dir = CollectionDir::new();
    let version = two_segments(&dir).head().unwrap().version;
    let (store, ids) = (Arc::clone(&dir.store), Arc::clone(&dir.ids));
    let registry = Registry::new(store, ids, 1, 4);
    let open = || registry.get(ID, || Ok::<_, CollectionError>(None), |_| Ok(()));
    flip(&dir, &layout::manifest(ID, version), 20);
    assert!(open().is_err() && open().is_err());
    assert_eq!(registry.unopenable(), 1);
    flip(&dir, &layout::manifest(ID, version), 20);
    assert!(open().is_ok());
    assert_eq!(registry.unopenable(), 0);
}

#[test]
fn collections_of_a_registry_have_its_backend() {
    let dir = CollectionDir::new();
    let (store, ids) = (Arc::clone(&dir.store), Arc::clone(&dir.ids));
    let backend: Arc<dyn ComputeBackend> = Arc::new(SimdBackend);
    let registry = Registry::new(store, ids, 1, 4).with_backend(Arc::clone(&backend));
    let opened = registry.get(ID, || Ok::<_, CollectionError>(None), |_| Ok(())).unwrap();
    assert!(Arc::ptr_eq(&opened.backend, &backend));
}

/// Goal: for a collection that was found without manifests, the catalog knows only the number of
/// the commit; any history of that length is accepted.
#[test]
fn a_commit_that_is_known_by_its_number_alone_is_enough() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let head = CommitHead { nonce: Uuid::nil(), ..collection.head().unwrap() };
    assert_eq!(dir.try_open(2, Some(head)).unwrap().head(), collection.head());
    let ahead = CommitHead { version: head.version + 1, ..head };
    let error = dir.try_open(2, Some(ahead)).unwrap_err();
    assert!(matches!(error, CollectionError::HeadMissing { .. }), "{error}");
}

/// Goal: tombstones that are intact but cannot belong to their segment hide nothing.
#[test]
fn tombstones_of_rows_that_are_not_there_are_damage() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    // Two sources of one row each.
    let entry = collection.snapshot().segments[0].entry.clone();
    for (row, source, rows, is_sound) in
        [(1, 1, 1, true), (1, 1, 2, false), (2, 1, 1, false), (1, 2, 1, false)]
    {
        let dead = TombstoneSet { rows: [row].into(), sources: [source].into() };
        let (bytes, checksum) = dead.encode(ID, SegmentId(entry.id));
        let id = dir.ids.uuid();
        dir.store.put(&layout::tombstone(ID, id), &bytes).unwrap();
        let tombstones = Some(TombstoneEntry { id, checksum, rows });
        match collection.read_dead(&SegmentEntry { tombstones, ..entry.clone() }) {
            Ok(read) => assert!(is_sound && read == dead, "row {row}, source {source} of {rows}"),
            Err(error) => assert!(!is_sound && error.kind() == ErrorKind::Corrupt, "{error}"),
        }
    }
}

/// Goal: a damaged local copy of a segment costs nothing while the segment itself is intact,
/// whether it is found on opening or later; a copy of a damaged segment is quarantined.
#[test]
fn a_damaged_copy_is_fetched_again() {
    for (is_open, is_sound) in [(false, true), (false, false), (true, true), (true, false)] {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        let (head, before) = (collection.head(), sequences(&collection));
        let first = collection.snapshot().segments[0].segment.id();
        drop(collection);
        let copies = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        let open = || {
            let store = Arc::clone(&copies) as Arc<dyn BlobStore>;
            Collection::open(ID, store, Arc::clone(&dir.ids), 2, head).unwrap()
        };
        let key = layout::segment(ID, first);
        let (bytes, store) = (dir.store.get(&key).unwrap(), Arc::clone(&dir.store));
        let opened = is_open.then(open);
        let fetched = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&fetched);
        copies.set_copies(move |key| {
            noted.store(true, Ordering::SeqCst);
            if is_sound {
                store.put(key, &bytes).unwrap();
            }
            true
        });
        let place = dir._root.path().join(key.as_str());
        std::fs::File::options().write(true).open(place).unwrap().set_len(5000).unwrap();
        let collection = opened.unwrap_or_else(open);
        assert_eq!(collection.quarantine_damaged(), usize::from(is_open));
        assert!(fetched.load(Ordering::SeqCst));
        assert_eq!(damaged(&collection).is_empty(), is_sound, "open {is_open}");
        let expected = if is_sound { before } else { owned(&[("c", 3)]) };
        assert_eq!(sequences(&collection), expected);
        collection.snapshot().check().unwrap();
    }
}

/// Goal: a damaged local copy of an intact segment that cannot be fetched for now does not make its
/// sources lost; they are missing until it can be fetched. The same holds for a reader.
#[test]
fn a_segment_that_cannot_be_fetched_is_not_lost() {
    for is_reader in [false, true] {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        let (head, before) = (collection.head(), sequences(&collection));
        let first = collection.snapshot().segments[0].segment.id();
        drop(collection);
        let copies = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        let store = Arc::clone(&copies) as Arc<dyn BlobStore>;
        let collection = match is_reader {
            true => Collection::open_to_read(ID, store, Arc::clone(&dir.ids), head).unwrap(),
            false => Collection::open(ID, store, Arc::clone(&dir.ids), 2, head).unwrap(),
        };
        let key = layout::segment(ID, first);
        let (bytes, store) = (dir.store.get(&key).unwrap(), Arc::clone(&dir.store));
        copies.set_copies(move |key| {
            store.put(key, &bytes).unwrap();
            true
        });
        let place = dir._root.path().join(key.as_str());
        std::fs::File::options().write(true).open(place).unwrap().set_len(5000).unwrap();
        copies.set(|_, key| match key.as_str().contains("/s/") {
            true => Fault::Before,
            false => Fault::None,
        });
        assert_eq!(collection.quarantine_damaged(), 1);
        let missing = || (damaged(&collection), collection.snapshot().lost().count());
        assert_eq!((missing(), sequences(&collection)), ((vec![first], 0), owned(&[("c", 3)])));
        let error = collection.fetch_away().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(missing(), (vec![first], 0));
        copies.set(|_, _| Fault::None);
        collection.fetch_away().unwrap();
        assert_eq!((missing(), sequences(&collection)), ((Vec::new(), 0), before));
        collection.snapshot().check().unwrap();
    }
}

/// Goal: sources of a segment that cannot be fetched for now are deleted and replaced like others.
#[test]
fn a_segment_that_cannot_be_fetched_takes_part_in_commits() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    let (head, key) = (collection.head(), {
        let snapshot = collection.snapshot();
        layout::segment(ID, snapshot.segments[0].segment.id())
    });
    drop(collection);
    let copies = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&copies) as Arc<dyn BlobStore>;
    let collection = Collection::open(ID, store, Arc::clone(&dir.ids), 2, head).unwrap();
    let (bytes, store) = (dir.store.get(&key).unwrap(), Arc::clone(&dir.store));
    copies.set_copies(move |key| {
        store.put(key, &bytes).unwrap();
        true
    });
    collection.snapshot().segments[0].segment.condemn("for a test");
    let away = key.clone();
    copies.set(move |_, key| if *key == away { Fault::Before } else { Fault::None });
    commit(&collection, &removing("s", "a"));
    assert_eq!(damaged(&collection).len(), 1);
    assert_eq!(collection.snapshot().lost().count(), 0);
    copies.set(|_, _| Fault::None);
    collection.fetch_away().unwrap();
    assert_eq!(sequences(&collection), owned(&[("b", 2)]));
}

fn registry(store: Arc<dyn BlobStore>, epoch: Option<u64>, open_max: usize) -> Registry {
    Registry::new(store, Arc::new(SeededIds::new(3)), epoch, open_max)
}

fn numbered(n: u128) -> CollectionId {
    CollectionId(Uuid::from_u128(n))
}

fn get(registry: &Registry, id: CollectionId) -> Result<Arc<Collection>, CollectionError> {
    registry.get(id, || Ok(None), |_| Ok(()))
}

/// Goal: a collection that takes long to fetch from another machine delays no one for long: neither
/// callers that ask for it nor callers that ask for others.
#[test]
fn nobody_waits_long_for_a_collection_that_is_fetched() {
    let dir = CollectionDir::new();
    let store = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let registry = registry(store, Some(1), 4);
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let registry = &registry;
    std::thread::scope(move |scope| {
        let opening = scope.spawn(move || {
            let expected = || {
                begin.send(()).unwrap();
                ended.recv().unwrap();
                Ok::<_, CollectionError>(None)
            };
            registry.get(numbered(1), expected, |_| Ok(()))
        });
        begun.recv().unwrap();
        for _ in 0..2 {
            let error = get(registry, numbered(1)).unwrap_err();
            assert!(matches!(error, CollectionError::Behind { .. }), "{error}");
        }
        get(registry, numbered(2)).unwrap();
        end.send(()).unwrap();
        let opened = opening.join().unwrap().unwrap();
        assert!(Arc::ptr_eq(&opened, &get(registry, numbered(1)).unwrap()));
    });
}

/// Goal: the caller that begins to open a collection of another machine waits no longer than those
/// after it, the opening goes on without it, and a failure is told to whoever waits.
#[test]
fn nobody_waits_long_for_an_opening_that_it_has_begun() {
    let dir = CollectionDir::new();
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let registry = Arc::new(registry(Arc::clone(&faulty) as _, Some(1), 4));
    let openings = Openings::new(&registry);
    let open = |n| {
        let own = Arc::clone(&registry);
        openings.open(numbered(n), move || get(&own, numbered(n)))
    };
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let own = Arc::clone(&registry);
    let begun = openings.open(numbered(1), move || {
        let expected = || {
            ended.recv().unwrap();
            Ok::<_, CollectionError>(None)
        };
        own.get(numbered(1), expected, |_| Ok(()))
    });
    for error in [begun.unwrap_err(), open(1).unwrap_err()] {
        assert!(matches!(error, CollectionError::Behind { .. }), "{error}");
    }
    open(2).unwrap();
    end.send(()).unwrap();
    let opened = loop {
        match open(1) {
            Err(CollectionError::Behind { .. }) => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    assert!(Arc::ptr_eq(&opened, &get(&registry, numbered(1)).unwrap()));
    faulty.set(|_, _| Fault::Before);
    for _ in 0..2 {
        let error = open(3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(!matches!(error, CollectionError::Behind { .. }), "{error}");
    }
}

/// Goal: whatever is opened meanwhile, the caller that opens a collection is the one that others
/// wait for.
#[test]
fn a_collection_that_is_being_opened_is_not_closed() {
    let dir = CollectionDir::new();
    let registry = registry(Arc::clone(&dir.store), Some(1), 2);
    let opened = registry.get(
        numbered(1),
        || Ok::<_, CollectionError>(None),
        |opening| {
            assert!(registry.find(opening.id()).is_none(), "it is not open yet");
            for n in 2..=9 {
                get(&registry, numbered(n))?;
            }
            Ok(())
        },
    );
    let opened = opened.unwrap();
    assert!(Arc::ptr_eq(&opened, &get(&registry, numbered(1)).unwrap()));
    assert!(Arc::ptr_eq(&opened, &registry.find(numbered(1)).unwrap()));
    assert!(registry.find(numbered(77)).is_none());
    assert_eq!((registry.open_max(), registry.open_collections().len()), (2, 2));
}

/// Goal: failed attempts give way before collections do, and only damage counts as damage.
#[test]
fn the_registry_forgets_attempts_on_a_store_that_is_away() {
    let dir = CollectionDir::new();
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let registry = registry(Arc::clone(&faulty) as _, Some(1), 2);
    faulty.set(|_, _| Fault::Before);
    let error = get(&registry, numbered(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!((registry.unopenable(), registry.open_collections().len()), (0, 0));
    faulty.set(|_, _| Fault::None);
    (2..=3).for_each(|n| drop(get(&registry, numbered(n)).unwrap()));
    assert!(registry.find(numbered(2)).is_some());
    get(&registry, numbered(1)).unwrap();
}

#[test]
fn a_registry_without_an_epoch_only_reads() {
    let dir = CollectionDir::new();
    let writer = two_segments(&dir);
    let registry = registry(Arc::clone(&dir.store), None, 2);
    let reader = get(&registry, ID).unwrap();
    assert_eq!(visible(&reader), visible(&writer));
    let error = reader.writer().err().expect("another process writes");
    assert!(matches!(error, CollectionError::ReadOnly { .. }), "{error}");
}
