//! Vectors of another model beside those that are searched, and the switch.

use lodestone_io::store::testing::{Call, Fault as Answer, FaultyBlobs};
use lodestone_io::{CrashDisk, CrashMode, Fault, FaultKind};

use super::recovery::{flip, two_segments};
use super::writers::on_crash_disk;
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

/// A collection with rows of the test model.
fn filled(dir: &CollectionDir) -> Collection {
    let collection = two_segments(dir);
    let edit = adding(&collection, &[source("s", "d", 4, &["v", "w"])]);
    commit(&collection, &Edit { embedding: Some("narrow".into()), ..edit });
    collection
}

/// Builds what one segment lacks; returns the pieces including the new one, or `None` if nothing is
/// missing.
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
    entries.push(collection.fresh_entry(&built).unwrap());
    collection.writer().unwrap().set_other(Some(noted(entries.clone()))).unwrap();
    Some(entries)
}

/// Goal: a writer that was superseded writes nothing more, whatever it was writing when it learns
/// that.
#[test]
fn a_writer_that_is_fenced_with_other_vectors_is_poisoned() {
    let dir = CollectionDir::new();
    let late = filled(&dir);
    commit(&dir.try_open(2, late.head()).unwrap(), &removing("s", "d"));
    let error = late.writer().unwrap().set_other(None).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    assert!(late.is_poisoned() && late.writer().is_err());
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

/// Goal: pieces survive a reopening; uploads, deletions and replacements in the meantime are found
/// by comparing; there is no switch while a source is missing; switching back works alike.
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

/// Goal: whenever power fails, a collection opened afterwards has all old or all new vectors, no
/// acknowledged piece is lost, and the work can be completed.
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
            entries.push(collection.fresh_entry(&built).unwrap());
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

/// Builds pieces until nothing is missing.
fn complete(collection: &Collection) {
    while piece(collection).is_some() {}
}

/// Ids of the sources that the other vectors lack.
fn missing(collection: &Collection) -> Vec<String> {
    let base = collection.snapshot();
    let open = collection.open_other(&base.manifest).unwrap();
    let compared = base.compare(&open).unwrap();
    let rows: usize = compared.missing.iter().map(|found| found.rows().len()).sum();
    assert_eq!(compared.missing_rows, rows as u64);
    compared.missing.iter().map(|found| found.id().to_owned()).collect()
}

/// Goal: vectors that were put away keep their dead rows: a source deleted before the switch and
/// added again after it is not brought back from them, even one without rows.
#[test]
fn what_was_dead_in_vectors_that_were_put_away_stays_dead() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let bare = source("s", "n", 6, &[]);
    let edit = adding(&collection, &[source("s", "e", 5, &["u"]), bare.clone()]);
    commit(&collection, &Edit { embedding: Some("narrow".into()), ..edit });
    commit(&collection, &removing("s", "n"));
    complete(&collection);
    switch(&collection).unwrap();
    let mut again = source("s", "b", 2, &["y"]);
    again.rows[0].vector = wide("y");
    let segment = collection.build(WIDE, VectorKind::F16, &[again, bare]).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    let embedding = Some("wide".to_owned());
    commit(&collection, &Edit { add, embedding, ..Edit::default() });
    collection.collect_garbage().unwrap();
    let manifest = collection.snapshot().manifest.clone();
    assert_eq!(collection.open_other(&manifest).unwrap().len(), 4, "with their tombstones");
    assert_eq!(missing(&collection), ["b", "n"]);
    let error = switch(&collection).unwrap_err();
    assert!(matches!(error, CollectionError::OtherModel { .. }), "{error}");
    let all = owned(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("n", 6)]);
    assert_eq!(sequences(&collection), all);
}

/// Goal: a source whose record was changed under the same number, for instance its title, is built
/// again; chunks deleted before are not built at all.
#[test]
fn pieces_are_of_the_records_and_rows_that_are_visible() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let (sub_tenant, d) = named("s", "d");
    let remove_chunks = vec![(sub_tenant.clone(), d.clone(), vec![0])];
    commit(&collection, &Edit { remove_chunks, ..Edit::default() });
    complete(&collection);
    let open = collection.open_other(&collection.snapshot().manifest).unwrap();
    assert_eq!(open.iter().map(|live| live.live_rows()).sum::<u64>(), 3, "a, c and one of d");
    let mut writer = collection.writer().unwrap();
    let base = writer.base();
    let found = base.find(&sub_tenant, &d).unwrap();
    let record = SourceRecord { title: "Better".into(), ..found.record().unwrap() };
    let segment = collection.build_amended(&found, record).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    writer.commit(&Edit { add, ..Edit::default() }).unwrap();
    drop(writer);
    assert_eq!(missing(&collection), ["d"]);
    complete(&collection);
    let before = visible(&collection);
    assert_eq!(before[&key("s", "d")].1, [(1, "w".to_owned())]);
    switch(&collection).unwrap();
    assert_eq!((visible(&collection), widths(&collection)), (before, vec![WIDE]));
    let snapshot = collection.snapshot();
    assert_eq!(snapshot.find(&sub_tenant, &d).unwrap().record().unwrap().title, "Better");
}

/// Goal: a damaged piece is built again; one that is only unavailable at the moment is not.
#[test]
fn pieces_that_cannot_be_read_are_missing_and_a_store_that_is_away_is_told() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let pieces = piece(&collection).unwrap();
    assert_eq!(missing(&collection), ["c", "d"]);
    let first = layout::segment(ID, SegmentId(pieces[0].id));
    let manifest = collection.snapshot().manifest.clone();
    let head = collection.head();
    drop(collection);
    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&faulty) as _;
    let reader = Collection::open_to_read(ID, store, Arc::clone(&dir.ids), head).unwrap();
    faulty.set(|_, _| Answer::Before);
    assert_eq!(reader.open_other(&manifest).unwrap_err().kind(), ErrorKind::Unavailable);
    flip(&dir, &first, 10);
    let collection = dir.open();
    assert_eq!(missing(&collection), ["a", "c", "d"]);
    complete(&collection);
    switch(&collection).unwrap();
    assert_eq!(sequences(&collection), owned(&[("a", 1), ("c", 3), ("d", 4)]));
}

#[test]
fn nothing_is_switched_to_beside_damage() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    complete(&collection);
    let first = collection.snapshot().segments[0].segment.id();
    flip(&dir, &layout::segment(ID, first), 10);
    let collection = dir.try_open(2, collection.head()).unwrap();
    let error = switch(&collection).unwrap_err();
    assert!(matches!(error, CollectionError::Quarantined { segments: 1, .. }), "{error}");
    assert_eq!(widths(&collection), [DIMENSION]);
}

/// Goal: recording other vectors fails as commits do: a full disk changes nothing, a missing answer
/// is settled by the next writer, and a later epoch wins.
#[test]
fn notes_that_fail_are_told_apart() {
    let (dir, disk) = on_crash_disk();
    let collection = two_segments(&dir);
    let set = |collection: &Collection| {
        let mut writer = collection.writer()?;
        writer.set_other(Some(noted(Vec::new())))
    };
    let has_other = |collection: &Collection| collection.snapshot().manifest.other.is_some();
    disk.inject(Fault::Write(disk.writes()), FaultKind::Full);
    assert_eq!(set(&collection).unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(!collection.is_poisoned() && !has_other(&collection));
    let later = dir.try_open(2, None).unwrap();
    set(&later).unwrap();
    let error = set(&collection).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    assert!(!has_other(&collection) && has_other(&later));

    for (end, has_happened) in [(Answer::Before, false), (Answer::After, true)] {
        let dir = CollectionDir::new();
        two_segments(&dir);
        let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
        let store = Arc::clone(&faulty) as _;
        let collection = Collection::open(ID, store, Arc::clone(&dir.ids), 1, None).unwrap();
        faulty.set(move |call, _| if call == Call::Create { end } else { Answer::None });
        let error = set(&collection).unwrap_err();
        assert!(matches!(error, CollectionError::InDoubt { .. }), "{error}");
        assert!(!collection.is_poisoned() && !has_other(&collection));
        faulty.set(|_, _| Answer::None);
        drop(collection.writer().unwrap());
        assert_eq!(has_other(&collection), has_happened, "{end:?}");
    }
}
