//! Verification of a collection that is not open, beside a process that writes to it.

use super::recovery::flip;
use super::*;
use crate::collection::uploads::{self, UploadLabel};
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs};
use lodestone_types::Origin;

/// A source with its original in the store.
fn stored(dir: &CollectionDir, id: &str, sequence: u64) -> NewSource {
    let label = UploadLabel {
        sub_tenant: "s".to_owned(),
        source: id.to_owned(),
        kind: "text".to_owned(),
        filename: String::new(),
        content_type: "text/plain".to_owned(),
        uploaded_at: sequence,
        tenant_metadata: None,
        document_metadata: None,
        origin: Origin::default(),
        after: None,
    };
    let content = format!("The original of {id}.");
    let key = uploads::put(&*dir.store, &*dir.ids, ID, &label, content.as_bytes()).unwrap();
    let mut stored = source("s", id, sequence, &["x", "y"]);
    stored.record.raw_key = key.as_str().to_owned();
    stored
}

/// Two segments, one of which has tombstones; the original of the removed source is deleted.
fn two_segments(dir: &CollectionDir) -> Collection {
    let collection = dir.open();
    let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(id, at)| stored(dir, id, at));
    let gone = Key::parse(&b.record.raw_key).unwrap();
    add(&collection, &[a, b]);
    add(&collection, &[c]);
    commit(&collection, &removing("s", "b"));
    dir.store.delete(&gone).unwrap();
    collection
}

/// Keys of the damaged files, and the counts.
fn verified(
    store: &Arc<dyn BlobStore>,
    expected: Option<CommitHead>,
) -> Result<(Vec<String>, VerifiedCollection), CollectionError> {
    let mut keys = Vec::new();
    let (store, ids) = (Arc::clone(store), Arc::new(SeededIds::new(9)));
    let verified = Collection::verify(ID, store, ids, expected, &mut |seen| match seen {
        VerifyEvent::Damage { key, .. } => keys.push(key.to_owned()),
        VerifyEvent::Progress(census) => assert!(census.bytes <= census.bytes_total),
    })?;
    Ok((keys, verified))
}

/// Goal: every kind of file is examined, and named if it is damaged or missing; the rest is still
/// verified.
#[test]
fn what_is_damaged_is_named() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let (keys, end) = verified(&dir.store, collection.head()).unwrap();
    assert_eq!(end.newest_sequence, Sequence(3));
    let census = end.census;
    assert!(keys.is_empty(), "{keys:?}");
    let counts = (census.segments, census.rows, census.sources, census.originals);
    assert_eq!((counts, census.without_list), ((2, 4, 2, 2), 0));
    assert_eq!(census.bytes, census.bytes_total);
    let snapshot = collection.snapshot();
    let first = &snapshot.segments[0];
    let original = Key::parse(&first.segment.record(0).unwrap().raw_key).unwrap();
    let keys = [
        layout::segment(ID, first.segment.id()),
        layout::tombstone(ID, first.entry.tombstones.as_ref().unwrap().id),
        layout::source_list(ID, first.segment.id()),
        original,
    ];
    for (kind, key) in keys.iter().enumerate() {
        let bytes = dir.store.get(key).unwrap();
        flip(&dir, key, bytes.len() - 5);
        let (found, _) = verified(&dir.store, None).unwrap();
        assert_eq!(found, [key.as_str()], "changed");
        dir.store.delete(key).unwrap();
        let (found, end) = verified(&dir.store, None).unwrap();
        // Older releases wrote no lists.
        let is_list = kind == 2;
        assert_eq!(end.census.without_list, u64::from(is_list), "{key}");
        assert_eq!(found.len(), usize::from(!is_list), "missing: {key}");
        dir.store.put(key, &bytes).unwrap();
    }
    let newest = layout::manifest(ID, snapshot.manifest.version);
    flip(&dir, &newest, 60);
    let error = verified(&dir.store, None).unwrap_err();
    assert!(error.to_string().contains(newest.as_str()), "{error}");
    dir.store.delete(&newest).unwrap();
    let error = verified(&dir.store, collection.head()).unwrap_err();
    assert!(matches!(error, CollectionError::HeadMissing { .. }), "{error}");
}

/// Goal: whatever the writing process deletes between any two reads of the verification does not
/// count as damage; real damage beside it is found.
#[test]
fn what_another_process_removes_meanwhile_is_no_damage() {
    for (when, is_merged) in (0..16).flat_map(|when| [(when, false), (when, true)]) {
        let dir = CollectionDir::new();
        let writer = Arc::new(two_segments(&dir));
        let lost = stored(&dir, "lost", 5);
        dir.store.delete(&Key::parse(&lost.record.raw_key).unwrap()).unwrap();
        let key = lost.record.raw_key.clone();
        add(&writer, &[lost]);
        let original = writer
            .snapshot()
            .find(&sub("s"), &named("s", "a").1)
            .map(|found| Key::parse(&found.record().unwrap().raw_key).unwrap());
        let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        let (store, mut reads) = (Arc::clone(&dir.store), 0);
        faulty.set(move |call, _| {
            reads += u32::from(call == Call::Get);
            if call == Call::Get && reads == when {
                commit(&writer, &removing("s", "a"));
                if is_merged {
                    let base = writer.snapshot();
                    let all: Vec<usize> = (0..base.segments.len()).collect();
                    let edit = super::merging::replacement(&writer, &base, &all);
                    drop(base);
                    commit(&writer, &edit);
                }
                writer.collect_garbage().unwrap();
                store.delete_many(original.as_slice()).unwrap();
            }
            Fault::None
        });
        let (found, end) = verified(&(faulty as _), None).unwrap();
        let place = format!("before read {when}, merged {is_merged}");
        assert!(!found.is_empty() && found.iter().all(|one| *one == key), "{place}: {found:?}");
        assert!(end.census.originals >= 1, "{place}");
    }
}

#[test]
fn a_store_that_is_away_is_no_damage() {
    let dir = CollectionDir::new();
    two_segments(&dir);
    // First originals, then segments.
    for place in ["v1/raw/", "/s/"] {
        let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        faulty.set(move |call, key| match call == Call::Get && key.as_str().contains(place) {
            true => Fault::Before,
            false => Fault::None,
        });
        let error = verified(&(faulty as _), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{place}");
    }
}

/// Goal: a source deleted meanwhile takes its original and the previous tombstones with it; neither
/// counts as damage of the segment, which stays for another source.
#[test]
fn what_dies_meanwhile_in_a_segment_that_stays_is_no_damage() {
    for when in 0..10 {
        let dir = CollectionDir::new();
        let writer = Arc::new(dir.open());
        let all = [("a", 1), ("b", 2), ("c", 3)].map(|(id, at)| stored(&dir, id, at));
        let [a, b, c] = all.each_ref().map(|one| Key::parse(&one.record.raw_key).unwrap());
        add(&writer, &all);
        commit(&writer, &removing("s", "b"));
        dir.store.delete_many(&[b, c.clone()]).unwrap();
        let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        let (store, mut reads) = (Arc::clone(&dir.store), 0);
        faulty.set(move |call, _| {
            reads += u32::from(call == Call::Get);
            if call == Call::Get && reads == when {
                commit(&writer, &removing("s", "a"));
                writer.collect_garbage().unwrap();
                store.delete(&a).unwrap();
            }
            Fault::None
        });
        let (found, _) = verified(&(faulty as _), None).unwrap();
        assert_eq!(found, [c.as_str()], "before read {when}");
    }
}

/// Goal: a segment that is missing together with the manifests is reported as the loss of those.
#[test]
fn manifests_that_are_lost_meanwhile_are_told() {
    let dir = CollectionDir::new();
    let version = two_segments(&dir).head().unwrap().version;
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&dir.store);
    faulty.set(move |call, key| {
        if call == Call::Get && key.as_str().contains("/s/") {
            store.delete_prefix(&layout::collection_prefix(ID)).unwrap();
        }
        Fault::None
    });
    let error = verified(&(faulty as _), None).unwrap_err();
    let CollectionError::HeadMissing { found, expected, .. } = error else { panic!("{error}") };
    assert_eq!((found, expected), (0, version));
}
