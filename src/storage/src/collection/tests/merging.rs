//! Merges: nothing visible changes, whatever happens meanwhile.

use super::super::edit::Replacement;
use super::super::plan::FAN_IN;
use super::*;
use lodestone_compute::SimdBackend;
use proptest::prelude::*;

/// A collection with enough small segments to fill a tier, with some sources replaced and some
/// removed.
fn filled(dir: &CollectionDir) -> Collection {
    let collection = dir.open();
    // One more than a tier holds, because the fourth has nothing alive in the end.
    for n in 0..=FAN_IN as u64 {
        let (own, text) = (format!("own{n}"), format!("text {n}"));
        let shared = source("s", "shared", 100 + n, &["first", &text]);
        add(&collection, &[source("s", &own, n + 1, &[&text, "more"]), shared]);
    }
    commit(&collection, &removing("s", "own3"));
    collection
}

pub(super) fn replacement(collection: &Collection, base: &Snapshot, chosen: &[usize]) -> Edit {
    let inputs: Vec<_> = chosen.iter().map(|at| Arc::clone(&base.segments[*at])).collect();
    let shape = SegmentShape {
        collection: ID,
        segment: SegmentId(collection.ids.uuid()),
        dimension: DIMENSION,
        vector_kind: VectorKind::F16,
    };
    let key = layout::segment(ID, shape.segment);
    let pinned = inputs.iter().map(|live| (&*live.segment, &live.dead)).collect();
    let merged =
        segment::write_merged(&*collection.store, &key, shape, pinned, &SimdBackend).unwrap();
    let replace = Some(Replacement { segment: collection.adopt(&merged).unwrap(), inputs });
    Edit { replace, ..Edit::default() }
}

#[test]
fn a_merge_changes_nothing_that_is_visible() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let before = visible(&collection);
    assert!(collection.merge_once(MergeBudget::MOST).unwrap());
    let snapshot = collection.snapshot();
    assert_eq!((snapshot.segments.len(), visible(&collection)), (1, before.clone()));
    assert!(snapshot.segments[0].dead.rows.is_empty(), "dead rows are gone");
    segment::verify(&snapshot.segments[0].segment).unwrap();
    assert!(!collection.merge_once(MergeBudget::MOST).unwrap(), "once is enough");
    collection.collect_garbage().unwrap();
    drop(snapshot);
    assert_eq!(visible(&dir.open()), before);
}

#[test]
fn a_worn_segment_is_rewritten() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let sources: Vec<NewSource> =
        (1..=10).map(|n| source("s", &format!("d{n}"), n, &["text"])).collect();
    add(&collection, &sources);
    commit(&collection, &removing("s", "d1"));
    commit(&collection, &removing("s", "d2"));
    assert!(!collection.merge_once(MergeBudget::MOST).unwrap(), "a fifth may be dead");
    commit(&collection, &removing("s", "d3"));
    let before = visible(&collection);
    assert!(collection.merge_once(MergeBudget::MOST).unwrap());
    assert_eq!(visible(&collection), before);
    assert!(!collection.merge_once(MergeBudget::MOST).unwrap());
}

/// Goal: what dies between the reading of the inputs and the commit stays dead, and what is
/// replaced meanwhile stays replaced.
#[test]
fn what_happens_during_a_merge_is_kept() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let base = collection.snapshot();
    let merge = replacement(&collection, &base, &[0, 1, 2, 4, 7]);

    commit(&collection, &removing("s", "own0"));
    add(&collection, &[source("s", "own1", 200, &["replaced"])]);
    let (sub_tenant, id) = named("s", "own2");
    let remove_chunks = vec![(sub_tenant, id, vec![1])];
    commit(&collection, &Edit { remove_chunks, ..Edit::default() });
    commit(&collection, &removing("s", "shared"));
    let before = visible(&collection);

    commit(&collection, &merge);
    assert_eq!(visible(&collection), before);
    let again = dir.open();
    assert_eq!(visible(&again), before);
    assert!(!again.snapshot().segments.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Goal: this holds for any inputs and any changes, also of sources and rows that died before.
    #[test]
    fn whatever_happens_during_a_merge_is_kept(
        earlier in proptest::collection::vec((0_u8..3, 0_u64..9), 0..5),
        chosen in proptest::sample::subsequence((0..8).collect::<Vec<_>>(), 1..8),
        meanwhile in proptest::collection::vec((0_u8..4, 0_u64..9), 0..8),
    ) {
        let dir = CollectionDir::new();
        let collection = filled(&dir);
        let mut sequence = 200;
        let mut change = |(kind, number): (u8, u64)| {
            sequence += 1;
            let id = format!("own{number}");
            let (sub_tenant, source_id) = named("s", &id);
            match kind {
                0 => drop(commit(&collection, &removing("s", &id))),
                1 => {
                    let remove_chunks = vec![(sub_tenant, source_id, vec![(number % 2) as u32])];
                    commit(&collection, &Edit { remove_chunks, ..Edit::default() });
                }
                2 => drop(add(&collection, &[source("s", &id, sequence, &["new"])])),
                _ => drop(collection.merge_once(MergeBudget::MOST).unwrap()),
            }
        };
        earlier.into_iter().for_each(&mut change);
        let base = collection.snapshot();
        let chosen: Vec<_> = chosen.into_iter().filter(|at| *at < base.segments.len()).collect();
        prop_assume!(!chosen.is_empty());
        let merge = replacement(&collection, &base, &chosen);
        meanwhile.into_iter().for_each(&mut change);
        let before = visible(&collection);
        commit(&collection, &merge);
        prop_assert_eq!(visible(&collection), before.clone());
        prop_assert_eq!(visible(&dir.open()), before);
    }
}

#[test]
fn a_merge_whose_rows_all_died_meanwhile_leaves_nothing() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let base = collection.snapshot();
    let merge = replacement(&collection, &base, &[0, 1]);
    drop(base);
    for id in ["own0", "own1"] {
        commit(&collection, &removing("s", id));
    }
    let before = visible(&collection);
    commit(&collection, &merge);
    assert_eq!(visible(&collection), before);
    drop(merge);
    collection.collect_garbage().unwrap();
    assert_eq!(dir.count("s/"), collection.snapshot().segments.len(), "no file is left over");
}

/// Goal: a merge whose inputs another merge has taken does not duplicate their rows.
#[test]
fn inputs_that_another_merge_took_are_passed_over() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let before = visible(&collection);
    let base = collection.snapshot();
    let first = replacement(&collection, &base, &[0, 1, 2]);
    let second = replacement(&collection, &base, &[2, 4, 5]);
    commit(&collection, &first);
    commit(&collection, &second);
    assert_eq!(visible(&collection), before);
    assert_eq!(visible(&dir.open()), before);
}

#[test]
fn a_source_without_chunks_survives_a_merge() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    add(&collection, &[source("s", "none", 300, &[])]);
    let before = visible(&collection);
    assert!(collection.merge_once(MergeBudget::MOST).unwrap());
    assert_eq!(visible(&collection), before);
    assert_eq!(collection.snapshot().segments.len(), 1);
}

/// Goal: the output fits into the size that was requested for it; less is merged if less is free.
#[test]
fn a_merge_asks_for_the_sum_of_its_inputs() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    for n in 0..8 {
        add(&collection, &[source("s", &format!("s{n}"), n + 1, &["x"])]);
    }
    let inputs: Vec<u64> =
        collection.snapshot().segments.iter().map(|live| live.entry.bytes).collect();
    let with = |disk_bytes| MergeBudget { disk_bytes, ..MergeBudget::MOST };
    let (files, before) = (dir.files(), visible(&collection));
    let two = inputs[0] + inputs[1];
    assert!(!collection.merge_once(with(two - 1)).unwrap());
    assert_eq!(dir.files(), files, "nothing was written");
    let all = collection.plan_merge(MergeBudget::MOST).unwrap();
    assert_eq!(all.rows(), 8);
    drop(all);
    let five: u64 = inputs[..5].iter().sum();
    assert!(collection.merge_once(with(five + inputs[5] / 2)).unwrap());
    let snapshot = collection.snapshot();
    assert_eq!((visible(&collection), snapshot.segments.len()), (before, 4));
    assert!(snapshot.segments.iter().all(|live| live.entry.bytes <= five));
}

#[test]
fn a_merge_asks_for_no_room_for_what_is_dead() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
    commit(&collection, &removing("s", "a"));
    let worn = &collection.snapshot().segments[0];
    let half = worn.entry.bytes / 2 + worn.segment.merge_growth_bytes();
    let with = |worn_disk_bytes| MergeBudget { worn_disk_bytes, ..MergeBudget::MOST };
    assert!(!collection.merge_once(with(half - 1)).unwrap());
    assert!(collection.merge_once(with(half)).unwrap());
}

/// Goal: two concurrent merges of one collection take different segments.
#[test]
fn a_planned_merge_keeps_its_inputs_for_itself() {
    let dir = CollectionDir::new();
    let collection = filled(&dir);
    let before = visible(&collection);
    let first = collection.plan_merge(MergeBudget::MOST).unwrap();
    assert!(collection.plan_merge(MergeBudget::MOST).is_none(), "they are taken");
    drop(first);
    let again = collection.plan_merge(MergeBudget::MOST).unwrap();
    again.run().unwrap();
    assert_eq!((visible(&collection), collection.snapshot().segments.len()), (before, 1));
}
