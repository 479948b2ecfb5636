//! Collections that another process writes.

use super::*;
use crate::collection::reading::EARLIER;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs};

fn read(store: Arc<dyn BlobStore>) -> Collection {
    Collection::open_to_read(ID, store, Arc::new(SeededIds::new(9)), None).unwrap()
}

fn wanted(writer: &Collection) -> Option<CommitHead> {
    writer.head()
}

/// Goal: additions, replacements, deletions and merges arrive; unchanged segments stay open; and
/// nothing is written or deleted, not even files that no manifest lists.
#[test]
fn a_reader_follows_and_changes_nothing() {
    let dir = CollectionDir::new();
    let writer = dir.open();
    let reader = read(Arc::clone(&dir.store));
    assert_eq!(visible(&reader), Contents::new());
    for n in 1..=9 {
        let sources = [
            source("s", &format!("d{n}"), n * 10, &["text"]),
            source("s", "same", n * 10 + 1, &["again"]),
        ];
        add(&writer, &sources);
        let before = reader.snapshot();
        let orphan = build(&writer, &[source("s", "orphan", 999, &["x"])]);
        let files = dir.files();
        reader.refresh(wanted(&writer)).unwrap();
        assert_eq!(visible(&reader), visible(&writer));
        assert_eq!(dir.files(), files);
        drop(orphan);
        let now = reader.snapshot();
        let kept = |is_same: fn(&Arc<LiveSegment>, &Arc<LiveSegment>) -> bool| {
            let is_kept = |old: &&_| now.segments.iter().any(|new| is_same(old, new));
            before.segments.iter().filter(is_kept).count()
        };
        let files = kept(|old, new| Arc::ptr_eq(&old.segment, &new.segment));
        assert_eq!(files, before.segments.len(), "the same files stay open");
        assert_eq!(kept(Arc::ptr_eq), files.saturating_sub(1), "with what is known of them");
    }
    commit(&writer, &removing("s", "d3"));
    assert!(sequences(&reader).iter().any(|(id, _)| id == "d3"), "it is not told yet");
    reader.refresh(wanted(&writer)).unwrap();
    assert!(sequences(&reader).iter().all(|(id, _)| id != "d3"));
    let now = reader.snapshot();
    let before = visible(&writer);
    while writer.merge_once(MergeBudget::MOST).unwrap() {}
    writer.collect_garbage().unwrap();
    assert_eq!(visible(&reader), before, "merged files are still open here");
    reader.refresh(wanted(&writer)).unwrap();
    assert_eq!((visible(&reader), reader.head()), (before, writer.head()));
    let again = reader.snapshot();
    let of_version = |version| reader.snapshot_at(version).map(|found| found.manifest.version);
    let newest = again.manifest.version;
    let versions = [newest, now.manifest.version, newest + 1].map(of_version);
    assert_eq!(versions, [Some(newest), Some(now.manifest.version), None]);
    reader.refresh(wanted(&writer)).unwrap();
    assert!(Arc::ptr_eq(&again, &reader.snapshot()), "nothing is loaded twice");
}

/// Goal: local copies of segments that were merged away, like those of deleted documents, go with
/// the last version that lists them; those in use stay.
#[test]
fn copies_of_given_up_segments_are_forgotten() {
    let dir = CollectionDir::new();
    let writer = dir.open();
    let copies = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let forgotten = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = Arc::clone(&forgotten);
    copies.set_copies(move |key| {
        noted.lock().push(key.clone());
        true
    });
    add(&writer, &[source("s", "a", 1, &["x"])]);
    add(&writer, &[source("s", "b", 2, &["y"])]);
    let reader = read(copies);
    let keys = |collection: &Collection| -> Vec<_> {
        let snapshot = collection.snapshot();
        snapshot.segments.iter().map(|live| layout::segment(ID, live.segment.id())).collect()
    };
    let before = keys(&reader);
    let base = writer.snapshot();
    commit(&writer, &super::merging::replacement(&writer, &base, &[0, 1]));
    reader.refresh(wanted(&writer)).unwrap();
    let forget = || {
        for (replaced, _) in reader.earlier.lock().iter_mut() {
            *replaced = replaced.checked_sub(EARLIER).unwrap();
        }
        reader.forget_earlier();
        std::mem::take(&mut *forgotten.lock())
    };
    reader.forget_earlier();
    assert!(forgotten.lock().is_empty(), "others may search it yet");
    assert_eq!((forget(), forget()), (before, Vec::new()));
}

#[test]
fn a_reader_refuses_writers() {
    let dir = CollectionDir::new();
    add(&dir.open(), &[source("s", "a", 1, &["x"])]);
    let reader = read(Arc::clone(&dir.store));
    let error = reader.writer().err().expect("it only reads");
    assert!(matches!(error, CollectionError::ReadOnly { .. }), "{error}");
    assert!(!reader.is_poisoned());
}

/// Goal: files that are collected while a reader opens them do not count as damage.
#[test]
fn a_version_that_is_collected_while_it_is_loaded_gives_way_to_the_next() {
    let dir = CollectionDir::new();
    let writer = Arc::new(dir.open());
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let shared: Arc<dyn BlobStore> = Arc::clone(&faulty) as _;
    add(&writer, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    let reader = read(Arc::clone(&shared));
    for round in 0..3 {
        add(&writer, &[source("s", &format!("c{round}"), 10 + round, &["z"])]);
        let (merging, mut merges) = (Arc::clone(&writer), 1);
        // The manifest has been read; its segments are merged and collected before they are.
        faulty.set(move |call, key| {
            if call == Call::Get && key.as_str().contains("/s/") && merges > 0 {
                merges -= 1;
                let base = merging.snapshot();
                let all: Vec<usize> = (0..base.segments.len()).collect();
                let edit = super::merging::replacement(&merging, &base, &all);
                drop(base);
                commit(&merging, &edit);
                drop(edit);
                merging.collect_garbage().unwrap();
            }
            Fault::None
        });
        reader.refresh(wanted(&writer)).unwrap();
        assert_eq!(visible(&reader), visible(&writer), "round {round}");
        assert!(damaged(&reader).is_empty() && writer.snapshot().segments.len() == 1);
        let opened = read(Arc::clone(&shared));
        assert_eq!(visible(&opened), visible(&writer), "round {round}");
    }
}

#[test]
fn a_reader_of_a_store_that_is_away_keeps_its_version() {
    let dir = CollectionDir::new();
    let writer = dir.open();
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    add(&writer, &[source("s", "a", 1, &["x"])]);
    let reader = read(Arc::clone(&faulty) as _);
    add(&writer, &[source("s", "b", 2, &["y"])]);
    faulty.set(|_, _| Fault::Before);
    assert_eq!(reader.refresh(wanted(&writer)).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(sequences(&reader), owned(&[("a", 1)]));
    faulty.set(|_, _| Fault::None);
    reader.refresh(wanted(&writer)).unwrap();
    assert_eq!(sequences(&reader), owned(&[("a", 1), ("b", 2)]));
}

/// Goal: a caller waits only for a bounded time while another one loads a version.
#[test]
fn a_version_that_takes_long_to_load_is_not_waited_for() {
    let dir = CollectionDir::new();
    let writer = dir.open();
    let reader = read(Arc::clone(&dir.store));
    add(&writer, &[source("s", "a", 1, &["x"])]);
    let loading = reader.writer.lock();
    let error = reader.refresh(wanted(&writer)).unwrap_err();
    assert!(matches!(error, CollectionError::Behind { .. }), "{error}");
    drop(loading);
    reader.refresh(wanted(&writer)).unwrap();
}

/// Goal: a reader quarantines damage of the newest version too, without writing anything; a store
/// that is away while segments are opened is not damage.
#[test]
fn a_reader_serves_beside_damage() {
    let dir = CollectionDir::new();
    let writer = super::recovery::two_segments(&dir);
    let first = writer.snapshot().segments[0].segment.id();
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    faulty.set(|call, key| match call == Call::Get && key.as_str().contains("/s/") {
        true => Fault::Before,
        false => Fault::None,
    });
    let open = || {
        let store = Arc::clone(&faulty) as _;
        Collection::open_to_read(ID, store, Arc::new(SeededIds::new(9)), writer.head())
    };
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Unavailable);
    faulty.set(|_, _| Fault::None);
    super::recovery::flip(&dir, &layout::segment(ID, first), 10);
    let files = dir.files();
    let reader = open().unwrap();
    assert_eq!(damaged(&reader), [first]);
    assert_eq!(sequences(&reader), owned(&[("c", 3)]));
    assert_eq!(dir.files(), files);
}

/// Goal: a reader that never catches up reports it, after a bounded number of attempts.
#[test]
fn a_version_that_is_always_collected_is_not_followed_for_ever() {
    let dir = CollectionDir::new();
    let writer = Arc::new(dir.open());
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    add(&writer, &[source("s", "a", 1, &["x"])]);
    let reader = read(Arc::clone(&faulty) as _);
    add(&writer, &[source("s", "b", 2, &["y"])]);
    let (replacing, mut sequence) = (Arc::clone(&writer), 2);
    faulty.set(move |call, key| {
        if call == Call::Get && key.as_str().contains("/s/") {
            sequence += 1;
            add(&replacing, &[source("s", "b", sequence, &["y"])]);
            replacing.collect_garbage().unwrap();
        }
        Fault::None
    });
    let error = reader.refresh(wanted(&writer)).unwrap_err();
    assert!(matches!(error, CollectionError::Behind { .. }), "{error}");
    assert_eq!(sequences(&reader), owned(&[("a", 1)]), "the version of before stays");
    faulty.set(|_, _| Fault::None);
    reader.refresh(wanted(&writer)).unwrap();
    assert_eq!(visible(&reader), visible(&writer));
}

/// Goal: a replaced version is dropped after some seconds and not before, together with its files.
/// Method: the time of its replacement is set back.
#[test]
fn earlier_versions_are_given_up() {
    let dir = CollectionDir::new();
    let writer = dir.open();
    add(&writer, &[source("s", "a", 1, &["x"])]);
    let reader = read(Arc::clone(&dir.store));
    let (before, held) = {
        let snapshot = reader.snapshot();
        (snapshot.manifest.version, Arc::downgrade(&snapshot.segments[0].segment))
    };
    commit(&writer, &removing("s", "a"));
    reader.refresh(wanted(&writer)).unwrap();
    reader.forget_earlier();
    assert!(reader.snapshot_at(before).is_some() && held.upgrade().is_some());
    for (replaced, _) in &mut *reader.earlier.lock() {
        *replaced = replaced.checked_sub(std::time::Duration::from_secs(60)).unwrap();
    }
    reader.forget_earlier();
    assert!(reader.snapshot_at(before).is_none() && held.upgrade().is_none());
}
