//! Kept filters: found again, but never by another scope or version, and dropped with the version.

use super::*;
use roaring::RoaringBitmap;

type Found = Arc<crate::segment::flat::RowFilter<'static>>;

fn rows(filters: &Arc<KeptFilters>, snapshot: &Snapshot, asked: &str) -> Found {
    let live = &snapshot.segments[0];
    let find = || Ok::<_, ()>(live.scope(&sub("a")).rows.clone());
    filters.rows(live, &Arc::from(asked.as_bytes()), find).unwrap()
}

#[test]
fn rows_are_kept_for_one_state_of_a_segment_and_one_question() {
    let directory = CollectionDir::new();
    let collection = directory.open();
    let sources = [source("a", "one", 1, &["x", "y"]), source("a", "two", 2, &["z"])];
    commit(&collection, &adding(&collection, &sources));
    let filters = KeptFilters::new(1 << 20);
    let before = collection.snapshot();
    let first = rows(&filters, &before, "a");
    assert!(Arc::ptr_eq(&first, &rows(&filters, &before, "a")));
    // One mask for all searches of a version: a device recognises it by its identity.
    let mask = |rows: &Found| rows.dense().identity();
    assert_eq!(mask(&first), mask(&rows(&filters, &before, "a")));
    assert!(!Arc::ptr_eq(&first, &rows(&filters, &before, "b")));
    // A separate cache does not know the entry.
    assert!(!Arc::ptr_eq(&first, &rows(&KeptFilters::new(1 << 20), &before, "a")));

    commit(&collection, &removing("a", "one"));
    let after = collection.snapshot();
    let kept = filters.bytes();
    let second = rows(&filters, &after, "a");
    let bitmap = |rows: &Found| -> RoaringBitmap { rows.bitmap().clone() };
    assert_eq!((bitmap(&first).len(), bitmap(&second).len()), (3, 1));
    assert_ne!(mask(&first), mask(&second));
    assert!(filters.bytes() > kept);
    drop(before);
    assert!(filters.bytes() < kept);
    drop((after, collection));
    assert_eq!(filters.bytes(), 0);
}

/// Goal: if concurrent searches compute the same rows, all later ones share those that were cached
/// first, and their bytes count once.
#[test]
fn rows_that_were_found_twice_at_once_are_kept_once() {
    let directory = CollectionDir::new();
    let collection = directory.open();
    commit(&collection, &adding(&collection, &[source("a", "one", 1, &["x", "y"])]));
    let (filters, snapshot) = (KeptFilters::new(1 << 20), collection.snapshot());
    let (mut first, mut bytes) = (None, 0);
    let second = filters.rows(&snapshot.segments[0], &Arc::from(*b"a"), || {
        first = Some(rows(&filters, &snapshot, "a"));
        bytes = filters.bytes();
        Ok::<_, ()>(snapshot.segments[0].scope(&sub("a")).rows.clone())
    });
    assert_eq!(second.unwrap().bitmap(), first.as_ref().unwrap().bitmap());
    assert_eq!(filters.bytes(), bytes);
    assert!(Arc::ptr_eq(&first.unwrap(), &rows(&filters, &snapshot, "a")));
}
