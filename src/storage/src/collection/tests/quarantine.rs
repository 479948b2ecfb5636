//! Damaged segments whose sources are known: these can be deleted, replaced and rebuilt.

use super::recovery::{flip, two_segments};
use super::*;
use crate::collection::draft::Draft;
use crate::collection::source_list::SourceList;
use crate::segment::TombstoneSet;
use lodestone_io::store::testing::{Fault, FaultyBlobs};
use lodestone_io::{StandInDisk, sealed};

/// Segment 1 holds `a` and the dead `b`, segment 2 holds `c`. The first is damaged, then all is
/// reopened.
fn harmed(dir: &CollectionDir) -> (Collection, SegmentId) {
    let collection = two_segments(dir);
    let first = collection.snapshot().segments[0].segment.id();
    flip(dir, &layout::segment(ID, first), 10);
    let head = collection.head();
    drop(collection);
    (dir.try_open(2, head).unwrap(), first)
}

fn lost(collection: &Collection) -> Vec<(String, u64)> {
    let snapshot = collection.snapshot();
    let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
    lost.map(|record| (record.id.to_string(), record.sequence.0)).collect()
}

#[test]
fn what_a_damaged_segment_held_is_known() {
    let dir = CollectionDir::new();
    let (collection, first) = harmed(&dir);
    assert_eq!(damaged(&collection), [first]);
    assert_eq!(lost(&collection), owned(&[("a", 1)]), "b was deleted");
    let (sub_tenant, a) = named("s", "a");
    let snapshot = collection.snapshot();
    let record = snapshot.record(&sub_tenant, &a).unwrap().unwrap();
    assert_eq!(record, source("s", "a", 1, &[]).record);
    assert!(snapshot.find(&sub_tenant, &a).is_none());
    assert!(snapshot.record(&named("s", "b").0, &named("s", "b").1).unwrap().is_none());
}

/// Goal: the segment leaves the manifest with the last of its sources, whatever became of them.
#[test]
fn a_damaged_segment_leaves_with_its_last_source() {
    let rebuilt = source("s", "a", 1, &["x"]);
    let newer = source("s", "a", 7, &["other"]);
    let ends = [
        (None, owned(&[("c", 3)])),
        (Some(&rebuilt), owned(&[("a", 1), ("c", 3)])),
        (Some(&newer), owned(&[("a", 7), ("c", 3)])),
    ];
    for (end, expected) in ends {
        let dir = CollectionDir::new();
        let (collection, _) = harmed(&dir);
        let outcome = match end {
            Some(source) => add(&collection, std::slice::from_ref(source)),
            None => commit(&collection, &removing("s", "a")),
        };
        let is_rebuilt = end == Some(&rebuilt);
        let orphaned: &[&str] = if is_rebuilt { &[] } else { &["v1/raw/a-1"] };
        assert_eq!(outcome.orphaned_uploads, orphaned);
        assert!(damaged(&collection).is_empty());
        assert_eq!(sequences(&collection), expected);
        let segments = expected.len();
        collection.collect_garbage().unwrap();
        let counts = (dir.count("s/"), dir.count("r/"), dir.count("d/"));
        assert_eq!(counts, (segments, segments, 0), "the damaged file, its list and tombstones go");
        let again = dir.try_open(3, collection.head()).unwrap();
        assert!(damaged(&again).is_empty());
        assert_eq!(sequences(&again), expected);
    }
}

/// Goal: sources rebuilt before a stop are not rebuilt again, and the others are still known.
#[test]
fn a_rebuild_goes_on_after_a_stop() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let sources = [source("s", "a", 1, &["x", "y"]), source("t", "b", 2, &["z"])];
    add(&collection, &sources);
    let first = collection.snapshot().segments[0].segment.id();
    flip(&dir, &layout::segment(ID, first), 10);
    let collection = dir.try_open(2, collection.head()).unwrap();
    add(&collection, &sources[..1]);
    assert_eq!(lost(&collection), owned(&[("b", 2)]));
    let collection = dir.try_open(3, collection.head()).unwrap();
    assert_eq!((damaged(&collection), lost(&collection)), (vec![first], owned(&[("b", 2)])));
    assert_eq!(sequences(&collection), owned(&[("a", 1)]));
    add(&collection, &sources[1..]);
    assert!(damaged(&collection).is_empty());
    assert_eq!(visible(&collection).len(), 2);
}

/// Goal: a rebuilt older version does not replace a newer one that was published meanwhile.
#[test]
fn a_rebuilt_source_loses_against_later_operations() {
    let dir = CollectionDir::new();
    let (collection, _) = harmed(&dir);
    let late = adding(&collection, &[source("s", "a", 1, &["x"])]);
    add(&collection, &[source("s", "a", 9, &["newer"])]);
    commit(&collection, &late);
    assert_eq!(sequences(&collection), owned(&[("a", 9), ("c", 3)]));
}

#[test]
fn sub_tenants_are_emptied_and_segments_merged_beside_damage() {
    let dir = CollectionDir::new();
    let (collection, first) = harmed(&dir);
    for n in 10..20 {
        add(&collection, &[source("s", &format!("m{n}"), n, &["w"])]);
    }
    assert!(collection.merge_once(MergeBudget::MOST).unwrap());
    assert_eq!(damaged(&collection), [first]);
    let remove_sub_tenant = Some(sub("s"));
    commit(&collection, &Edit { remove_sub_tenant, ..Edit::default() });
    assert!(damaged(&collection).is_empty() && visible(&collection).is_empty());
}

fn long() -> NewSource {
    let words: Vec<String> = (0..200_000).map(|n| format!("w{}", n * 7919 % 60_013)).collect();
    let texts: Vec<String> = words.chunks(500).map(|chunk| chunk.join(" ")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    source("s", "long", 1, &texts)
}

/// A collection whose first segment is damaged in a part that is read only later.
fn with_unread_damage(dir: &CollectionDir) -> (Collection, SegmentId) {
    let collection = dir.open();
    add(&collection, &[long()]);
    add(&collection, &[source("s", "c", 3, &["z"])]);
    let (id, head) = (collection.snapshot().segments[0].segment.id(), collection.head());
    drop(collection);
    // The second block holds texts, which opening does not read.
    flip(dir, &layout::segment(ID, id), 70_000);
    let collection = dir.try_open(2, head).unwrap();
    assert!(damaged(&collection).is_empty());
    (collection, id)
}

/// Goal: damage in a part that is read only later is found by reading every block, and takes the
/// segment out of service without a restart.
#[test]
fn damage_is_found_while_serving() {
    let dir = CollectionDir::new();
    let (collection, id) = with_unread_damage(&dir);
    let reader = collection.snapshot();
    let found = reader.find(&named("s", "long").0, &named("s", "long").1).unwrap();
    assert!(found.live.segment.text(RowId(0)).is_ok(), "another block");
    let read = |row| found.live.segment.text(RowId(row));
    let error = (0..400).find_map(|row| read(row).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(read(0).unwrap_err().kind(), ErrorKind::Corrupt, "the whole segment is suspect");
    assert_eq!(collection.quarantine_damaged(), 1);
    assert_eq!(damaged(&collection), [id]);
    assert_eq!(lost(&collection), owned(&[("long", 1)]));
    assert_eq!(sequences(&collection), owned(&[("c", 3)]));
    assert_eq!(collection.quarantine_damaged(), 0);
    add(&collection, &[long()]);
    assert!(damaged(&collection).is_empty());
    assert_eq!(visible(&collection).len(), 2);
}

/// Goal: damage that no read has met is found by reading every block, by one caller at a time.
#[test]
fn blocks_that_nobody_has_read_are_looked_at() {
    let dir = CollectionDir::new();
    let (collection, id) = with_unread_damage(&dir);
    let other = collection.scrubbing.lock();
    assert_eq!(collection.quarantine_damaged(), 0, "another caller is at it");
    drop(other);
    assert_eq!(collection.quarantine_damaged(), 1);
    assert_eq!((damaged(&collection), lost(&collection)), (vec![id], owned(&[("long", 1)])));
    assert_eq!(collection.quarantine_damaged(), 0);
}

/// Goal: in an unreadable segment the index of each row is unknown, so no chunk is removed by
/// index. Nothing is drafted on a segment of which nothing is known.
#[test]
fn nothing_is_decided_about_rows_that_are_not_known() {
    let dir = CollectionDir::new();
    let (collection, first) = harmed(&dir);
    let remove = |id| {
        let (sub_tenant, id) = named("s", id);
        Edit { remove_chunks: vec![(sub_tenant, id, vec![0])], ..Edit::default() }
    };
    let error = collection.writer().unwrap().commit(&remove("a")).unwrap_err();
    assert!(matches!(error, CollectionError::Quarantined { segments: 1, .. }), "{error}");
    assert!(!collection.is_poisoned());
    assert_eq!(lost(&collection), owned(&[("a", 1)]));
    assert_eq!(commit(&collection, &remove("c")).removed, [named("s", "c")]);

    flip(&dir, &layout::source_list(ID, first), 50);
    let snapshot = dir.try_open(3, None).unwrap().snapshot();
    assert_eq!(snapshot.unknown_segments(), 1);
    let error = Draft::new(&snapshot, &removing("t", "none")).unwrap_err();
    assert!(matches!(error, CollectionError::Quarantined { segments: 1, .. }), "{error}");
}

/// Number of segments without a list.
fn without_list(collection: &Collection) -> Result<usize, CollectionError> {
    let snapshot = collection.snapshot();
    let lists = snapshot.segments.iter().map(|live| {
        let has_list = collection.verify_list(&live.entry, &live.segment)?;
        Ok(usize::from(!has_list))
    });
    lists.sum()
}

#[test]
fn lists_that_are_missing_or_damaged_are_written_anew() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    assert_eq!(without_list(&collection).unwrap(), 0);
    let ids: Vec<SegmentId> =
        collection.snapshot().segments.iter().map(|live| live.segment.id()).collect();
    dir.store.delete(&layout::source_list(ID, ids[1])).unwrap();
    assert_eq!(without_list(&collection).unwrap(), 1, "as older releases left it");
    flip(&dir, &layout::source_list(ID, ids[0]), 60);
    assert_eq!(without_list(&collection).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(collection.repair_source_lists().unwrap(), 2);
    assert_eq!(without_list(&collection).unwrap(), 0);
    assert_eq!(collection.repair_source_lists().unwrap(), 0);
    commit(&collection, &removing("s", "c"));
    dir.store.delete(&layout::source_list(ID, ids[0])).unwrap();
    assert_eq!(collection.snapshot().segments.len(), 1);
    assert_eq!(collection.repair_source_lists().unwrap(), 1);
}

/// Goal: files written by a later release are refused as such, never as damage, and stay unchanged.
#[test]
fn lists_tombstones_and_manifests_of_a_later_release_are_left_alone() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let entries = collection.snapshot().manifest.segments.clone();
    let (first, second) = (SegmentId(entries[0].id), SegmentId(entries[1].id));
    let later = sealed::seal("lodestone sources 9", b"of another shape");
    dir.store.put(&layout::source_list(ID, second), &later).unwrap();
    assert_eq!(collection.repair_source_lists().unwrap(), 0);
    assert_eq!(dir.store.get(&layout::source_list(ID, second)).unwrap(), later);
    assert!(without_list(&collection).unwrap_err().is_too_new());

    // The manifest holds the hash of the tombstones, so decode them under the hash that they have.
    let dead = entries[0].tombstones.as_ref().unwrap();
    let mut bytes = dir.store.get(&layout::tombstone(ID, dead.id)).unwrap();
    bytes[8] = 9;
    let end = bytes.len() - 8;
    let hash = lodestone_io::checksum(&bytes[..end]);
    bytes[end..].copy_from_slice(&hash.to_le_bytes());
    let error = TombstoneSet::decode(&bytes, ID, first, hash).unwrap_err();
    assert!(CollectionError::from(error).is_too_new());

    let key = layout::manifest(ID, collection.snapshot().manifest.version);
    drop(collection);
    let before = dir.store.list(&layout::collection_prefix(ID)).unwrap();
    dir.store.put(&key, &sealed::seal("lodestone manifest 9", b"of another shape")).unwrap();
    let registry = Registry::new(Arc::clone(&dir.store), Arc::clone(&dir.ids), 9, 10);
    let get = || registry.get(ID, || Ok::<_, CollectionError>(None), |_| Ok(()));
    assert!(get().unwrap_err().is_too_new());
    assert_eq!((registry.too_new(), registry.unopenable()), (1, 0));
    assert_eq!(dir.store.list(&layout::collection_prefix(ID)).unwrap(), before);
}

/// Goal: a list must match its segment, not only be intact.
#[test]
fn a_list_of_other_sources_is_damage() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let live = Arc::clone(&collection.snapshot().segments[0]);
    let sources = [source("s", "a", 1, &["x"]), source("s", "z", 2, &["y"])];
    let other = SourceList::of(&build(&collection, &sources).segment).unwrap();
    let bytes = other.encode(ID, live.segment.id());
    dir.store.put(&layout::source_list(ID, live.segment.id()), &bytes).unwrap();
    let error = collection.verify_list(&live.entry, &live.segment).unwrap_err();
    assert!(matches!(error, CollectionError::BadList { .. }), "{error}");
    assert!(error.to_string().contains("other sources"), "{error}");
}

/// Goal: no list is written for a segment that has left meanwhile, nor while the store is away.
#[test]
fn lists_are_written_for_segments_that_are_there() {
    let root = tempfile::tempdir().unwrap();
    let (path, disk) = (root.path().to_path_buf(), Arc::new(StandInDisk::default()));
    let dir = CollectionDir::on(root, Arc::clone(&disk) as Arc<dyn Disk>, &path);
    let collection = Arc::new(two_segments(&dir));
    let leaving = collection.snapshot().segments[1].segment.id();
    dir.store.delete(&layout::source_list(ID, leaving)).unwrap();
    let (at_work, has_left) = (Arc::downgrade(&collection), AtomicBool::new(false));
    disk.before_read(move |path| {
        if path.ends_with(leaving.to_string()) && !has_left.swap(true, Ordering::SeqCst) {
            commit(&at_work.upgrade().unwrap(), &removing("s", "c"));
        }
    });
    assert_eq!(collection.repair_source_lists().unwrap(), 0);
    assert_eq!(dir.count("r/"), 1, "that of the other segment");

    let faulty = Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)));
    let store = Arc::clone(&faulty) as _;
    let collection = Collection::open(ID, store, Arc::clone(&dir.ids), 1, None).unwrap();
    faulty.set(|_, _| Fault::Before);
    let error = collection.repair_source_lists().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[test]
fn lists_leave_descriptions_out() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let mut described = source("s", "a", 1, &["x"]);
    described.record.description = "long".to_owned();
    let list = SourceList::of(&build(&collection, &[described.clone()]).segment).unwrap();
    described.record.description.clear();
    assert_eq!(list.sources()[0].record, described.record);
}

/// Shortens the file of an open segment in place, like an operator's mistake.
fn cut(dir: &CollectionDir, segment: SegmentId, bytes: u64) {
    let path = dir._root.path().join(layout::segment(ID, segment).as_str());
    std::fs::File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// Goal: no decision is based on what a damaged segment reads as.
#[test]
fn a_writer_does_not_build_upon_a_segment_that_was_cut() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let first = collection.snapshot().segments[0].segment.id();
    let before = collection.snapshot();
    cut(&dir, first, 5000);
    assert_eq!(before.check().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(collection.writer().unwrap().base().damaged.len(), 1);
    assert_eq!((damaged(&collection), lost(&collection)), (vec![first], owned(&[("a", 1)])));
    assert_eq!(add(&collection, &[source("s", "a", 9, &["n"])]).orphaned_uploads, ["v1/raw/a-1"]);
    assert_eq!(sequences(&collection), owned(&[("a", 9), ("c", 3)]));

    // While a writer is deciding: its commit changes nothing.
    let second = collection.snapshot().segments[0].segment.id();
    let edit = adding(&collection, &[source("s", "d", 10, &["m"])]);
    let (mut writer, head) = (collection.writer().unwrap(), collection.head());
    cut(&dir, second, 5000);
    assert_eq!(writer.commit(&edit).unwrap_err().kind(), ErrorKind::Corrupt);
    drop(writer);
    assert!(!collection.is_poisoned());
    assert_eq!(collection.head(), head);
    commit(&collection, &edit);
    assert_eq!(sequences(&collection), owned(&[("a", 9), ("d", 10)]));
    assert_eq!(lost(&collection), owned(&[("c", 3)]));
}

/// Goal: a merge does not write zeros in place of input that could not be read.
#[test]
fn a_merge_of_a_segment_that_was_cut_is_not_committed() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    for n in 10..20 {
        add(&collection, &[source("s", &format!("m{n}"), n, &["w"])]);
    }
    let all = sequences(&collection);
    let third = collection.snapshot().segments[2].segment.id();
    cut(&dir, third, 5000);
    assert!(collection.merge_once(MergeBudget::MOST).is_err());
    collection.quarantine_damaged();
    assert_eq!((damaged(&collection), lost(&collection)), (vec![third], vec![all[2].clone()]));
    let rest: Vec<_> = all.iter().filter(|source| **source != all[2]).cloned().collect();
    assert_eq!(sequences(&collection), rest);
    assert!(collection.merge_once(MergeBudget::MOST).unwrap(), "the others go on");
    assert_eq!(sequences(&collection), rest);
}

/// Goal: without its list, a segment's sources are taken from the open file, if they are intact.
#[test]
fn sources_are_saved_from_the_sound_part_of_an_open_file() {
    for (cut_at, is_known) in [(u64::MAX, true), (5000, false)] {
        let dir = CollectionDir::new();
        let collection = two_segments(&dir);
        let live = Arc::clone(&collection.snapshot().segments[0]);
        dir.store.delete(&layout::source_list(ID, live.segment.id())).unwrap();
        cut(&dir, live.segment.id(), cut_at.min(live.entry.bytes - 10));
        assert_eq!(collection.quarantine_damaged(), 1);
        assert_eq!(collection.snapshot().unknown_segments() == 0, is_known);
        let expected = if is_known { owned(&[("a", 1)]) } else { Vec::new() };
        assert_eq!(lost(&collection), expected);
    }
}

/// Goal: requests that fail for reasons other than damage cause every block to be read once, not
/// each time.
#[test]
fn sound_blocks_are_not_read_again_and_again() {
    let dir = CollectionDir::new();
    let collection = two_segments(&dir);
    let read = || {
        let snapshot = collection.snapshot();
        snapshot.segments.iter().map(|live| live.segment.verified_bytes()).sum::<u64>()
    };
    let before = read();
    assert_eq!(collection.quarantine_damaged(), 0);
    let after = read();
    assert!(after > before);
    assert_eq!((collection.quarantine_damaged(), read()), (0, after));
    add(&collection, &[source("s", "d", 4, &["new"])]);
    let before = read();
    collection.quarantine_damaged();
    assert!(read() > before, "another version");
}

/// Goal: however many sub-tenants are asked for, only a few scopes are kept, those in use.
#[test]
fn few_scopes_of_a_segment_are_kept() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let names: Vec<String> = (0..400).map(|n| format!("t{n}")).collect();
    let sources: Vec<NewSource> =
        names.iter().zip(1..).map(|(name, n)| source(name, "a", n, &["x"])).collect();
    add(&collection, &sources);
    let live = Arc::clone(&collection.snapshot().segments[0]);
    let busy = live.scope(&sub("t0"));
    for name in &names {
        assert_eq!(live.scope(&sub(name)).rows.len(), 1);
        assert!(Arc::ptr_eq(&busy, &live.scope(&sub("t0"))), "after {name}");
        assert!(live.kept_scopes() <= 256);
    }
    assert_eq!(live.kept_scopes(), 256);
}
