//! Vectors of another model beside those that are searched, and the switch.

use lodestone_io::{CrashDisk, CrashMode};

use super::recovery::two_segments;
use super::*;

const WIDE: usize = 96;

fn wide(text: &str) -> Vec<f32> {
    let mut vector = HashEmbedder::vector(text);
    vector.resize(WIDE, 0.0);
    vector
}

fn noted(segments: Vec<SegmentEntry>) -> OtherVectors {
    let embedding = "wide".to_owned();
    OtherVectors { embedding, segments, is_wanted: true, since: 7, job: Uuid::from_u128(5) }
}

/// With the rows of the test model.
fn filled(dir: &CollectionDir) -> Collection {
    let collection = two_segments(dir);
    let edit = adding(&collection, &[source("s", "d", 4, &["v", "w"])]);
    commit(&collection, &Edit { embedding: Some("narrow".into()), ..edit });
    collection
}

/// Builds what is missing of one segment; returns the pieces with it. `None` where nothing is.
fn piece(collection: &Collection) -> Option<Vec<SegmentEntry>> {
    let base = collection.snapshot();
    let open = collection.open_other(&base.manifest).unwrap();
    let compared = base.compare(&open).unwrap();
    let first = *compared.missing.first()?;
    let of_first = compared.missing.iter().filter(|found| Arc::ptr_eq(found.live, first.live));
    let (mut sources, mut vectors) = (Vec::new(), Vec::new());
    for found in of_first {
        sources.push(found.source);
        let text = |row: u32| wide(&found.live.segment.text(RowId(row)).unwrap());
        vectors.extend(found.rows().into_iter().map(text));
    }
    let built = collection.build_with_vectors(first.live, &sources, WIDE, (&vectors, &[])).unwrap();
    let mut entries: Vec<_> = open.iter().map(|live| live.entry.clone()).collect();
    entries.push(SegmentEntry::fresh(built.meta()));
    collection.writer().unwrap().set_other(Some(noted(entries.clone()))).unwrap();
    Some(entries)
}

fn switch(collection: &Collection) -> Result<(), CollectionError> {
    let open = collection.open_other(&collection.snapshot().manifest).unwrap();
    collection.writer().unwrap().switch(&open, Timestamp(9))
}

fn widths(collection: &Collection) -> Vec<usize> {
    let snapshot = collection.snapshot();
    let mut widths: Vec<_> =
        snapshot.segments.iter().map(|live| live.segment.dimension()).collect();
    widths.dedup();
    widths
}

/// Goal: pieces survive a reopening; uploads, deletions and replacements of meanwhile are found by
/// comparing; nothing is switched to that lacks a source; the way back is the same.
#[test]
fn a_switch_has_all_that_is_visible_and_nothing_else() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    assert_eq!(piece(&collection).unwrap().len(), 1);
    let error = switch(&collection).unwrap_err();
    assert!(matches!(error, CollectionError::OtherModel { .. }), "sources are missing: {error}");
    drop(collection);

    let collection = dir.open();
    assert_eq!(piece(&collection).unwrap().len(), 2);
    assert_eq!(piece(&collection).unwrap().len(), 3);
    assert!(piece(&collection).is_none());
    commit(&collection, &removing("s", "c"));
    let edit = adding(&collection, &[source("s", "a", 5, &["new"]), source("t", "e", 6, &["x"])]);
    let foreign = Edit { embedding: Some("wide".into()), ..edit.clone() };
    let error = collection.writer().unwrap().commit(&foreign).unwrap_err();
    assert!(matches!(error, CollectionError::OtherModel { .. }), "{error}");
    commit(&collection, &Edit { embedding: Some("narrow".into()), ..edit });
    assert!(piece(&collection).is_some() && piece(&collection).is_none());
    collection.collect_garbage().unwrap();
    let before = visible(&collection);
    let pinned = collection.snapshot();
    switch(&collection).unwrap();
    assert_eq!((visible(&collection), widths(&collection)), (before.clone(), vec![WIDE]));
    assert_eq!((contents(&pinned), pinned.manifest.model()), (before.clone(), Some("narrow")));
    drop(pinned);
    collection.collect_garbage().unwrap();
    drop(collection);

    let collection = dir.open();
    assert_eq!((visible(&collection), widths(&collection)), (before.clone(), vec![WIDE]));
    assert_eq!(collection.snapshot().manifest.model(), Some("wide"));
    commit(&collection, &removing("t", "e"));
    switch(&collection).unwrap();
    assert_eq!(widths(&collection), [DIMENSION]);
    assert_eq!(sequences(&collection), owned(&[("a", 5), ("d", 4)]));
    drop(collection);

    let collection = dir.open();
    collection.writer().unwrap().set_other(None).unwrap();
    collection.collect_garbage().unwrap();
    assert_eq!(dir.count("s/"), collection.snapshot().segments.len());
    assert_eq!(dir.count("r/"), dir.count("s/"));
}

/// Goal: whenever the power goes, what is opened afterwards has all old or all new vectors, no
/// acknowledged piece is lost, and the work can be ended.
#[test]
fn power_may_go_at_every_sync_of_a_change() {
    let run = |dir: &CollectionDir| -> Result<(), CollectionError> {
        let collection = dir.try_open(1, None)?;
        for _ in 0..9 {
            let base = collection.snapshot();
            let open = collection.open_other(&base.manifest)?;
            let compared = base.compare(&open)?;
            let Some(found) = compared.missing.first() else { break };
            let texts: Result<Vec<_>, _> = found
                .rows()
                .into_iter()
                .map(|row| Ok::<_, CollectionError>(wide(&found.live.segment.text(RowId(row))?)))
                .collect();
            let built =
                collection.build_with_vectors(found.live, &[found.source], WIDE, (&texts?, &[]))?;
            let mut entries: Vec<_> = open.iter().map(|live| live.entry.clone()).collect();
            entries.push(SegmentEntry::fresh(built.meta()));
            collection.writer()?.set_other(Some(noted(entries)))?;
        }
        let open = collection.open_other(&collection.snapshot().manifest)?;
        collection.writer()?.switch(&open, Timestamp(9))?;
        collection.collect_garbage()?;
        Ok(())
    };
    let mut cuts = 0;
    loop {
        let root = tempfile::tempdir().unwrap();
        let disk = Arc::new(CrashDisk::new(root.path()));
        let path = disk.root().join("data");
        let dynamic: Arc<dyn Disk> = disk.clone();
        let store = |disk: Arc<dyn Disk>| -> Arc<dyn BlobStore> {
            Arc::new(LocalBlobs::new(Arc::new(DataDir::open(&path, disk).unwrap())))
        };
        let ids: Arc<dyn IdSource> = Arc::new(SeededIds::new(1));
        let mut dir = CollectionDir { store: store(dynamic), ids, _root: root };
        let before = visible(&filled(&dir));
        disk.fail_at(disk.syncs() + cuts);
        let has_ended = run(&dir).is_ok();
        dir.store = Arc::new(LocalBlobs::new(Arc::new(
            DataDir::open(&dir._root.path().join("none"), Arc::new(RealDisk)).unwrap(),
        )));
        let mode = if cuts % 2 == 0 { CrashMode::Prefix } else { CrashMode::Hostile };
        disk.crash(cuts, mode);
        dir.store = store(disk.clone());
        let collection = dir.try_open(2, None).unwrap();
        assert!(damaged(&collection).is_empty(), "cut {cuts}");
        assert_eq!((visible(&collection), widths(&collection).len()), (before.clone(), 1));
        if collection.snapshot().manifest.model() == Some("narrow") {
            drop(collection);
            dir.ids = Arc::new(SeededIds::new(2));
            run(&dir).unwrap();
        }
        let collection = dir.open();
        assert_eq!((visible(&collection), widths(&collection)), (before, vec![WIDE]));
        if has_ended {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 20, "{cuts} syncs");
}
