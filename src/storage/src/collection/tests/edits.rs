//! Adding, replacing and removing sources.

use super::*;

#[test]
fn an_empty_collection_has_no_head_and_no_rows() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    assert_eq!((collection.head(), collection.snapshot().rows()), (None, 0));
    assert!(visible(&collection).is_empty());
    assert!(!collection.merge_once(MergeBudget::MOST).unwrap());
    assert_eq!(collection.collect_garbage().unwrap(), 0);
    assert!(dir.files().is_empty());
}

#[test]
fn a_source_is_replaced_in_one_step_and_its_old_upload_is_orphaned() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["one", "two"]), source("s", "b", 2, &["bee"])]);
    let before = collection.snapshot();
    let outcome = add(&collection, &[source("s", "a", 3, &["three"])]);
    assert_eq!(outcome.orphaned_uploads, ["v1/raw/a-1"]);
    assert!(outcome.removed.is_empty() && outcome.outdated.is_empty());
    assert_eq!(sequences(&collection), owned(&[("a", 3), ("b", 2)]));
    assert_eq!(contents(&before).len(), 2, "an older snapshot stays as it was");
    assert_eq!(contents(&before)[&key("s", "a")].0, 1);
    assert_eq!(collection.head().unwrap().version, 2);
}

/// Goal: of two operations on one source the later one wins, whatever the order of commits.
#[test]
fn a_late_commit_of_an_early_operation_loses() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 5, &["five"])]);
    let outcome = add(&collection, &[source("s", "a", 4, &["four"]), source("s", "b", 3, &["b"])]);
    assert_eq!(outcome.outdated, [Sequence(4)]);
    assert_eq!(outcome.orphaned_uploads, ["v1/raw/a-4"], "the loser's upload is of no use");
    assert_eq!(sequences(&collection), owned(&[("a", 5), ("b", 3)]));
    // The same operation again, as after a crash before its job was marked.
    let outcome = add(&collection, &[source("s", "a", 5, &["five"])]);
    assert_eq!(outcome, Outcome::default());
    assert_eq!(sequences(&collection), owned(&[("a", 5), ("b", 3)]));
}

/// Goal: an upload that the winner refers to, as after a change of its metadata, is kept.
#[test]
fn a_late_commit_takes_no_upload_from_the_winner() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let mut amended = source("s", "a", 5, &["x"]);
    amended.record.raw_key = source("s", "a", 4, &[]).record.raw_key;
    add(&collection, &[amended]);
    let outcome = add(&collection, &[source("s", "a", 4, &["x"])]);
    assert_eq!(outcome, Outcome { outdated: vec![Sequence(4)], ..Outcome::default() });
    assert_eq!(sequences(&collection), owned(&[("a", 5)]));
}

#[test]
fn several_segments_of_one_edit_are_ordered_by_sequence_too() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let late = build(&collection, &[source("s", "a", 2, &["late"])]);
    let early = build(&collection, &[source("s", "a", 1, &["early"])]);
    let outcome = commit(&collection, &Edit { add: vec![late, early], ..Edit::default() });
    assert_eq!(outcome.outdated, [Sequence(1)]);
    assert_eq!(sequences(&collection), owned(&[("a", 2)]));
}

#[test]
fn withheld_sources_stay_hidden_and_leave_what_they_would_have_replaced() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["old"])]);
    let sources = [source("s", "a", 2, &["new"]), source("s", "b", 3, &["bee"])];
    let mut edit = adding(&collection, &sources);
    edit.add[0].withheld = vec![named("s", "a")];
    let outcome = commit(&collection, &edit);
    assert_eq!(outcome, Outcome::default());
    assert_eq!(sequences(&collection), owned(&[("a", 1), ("b", 3)]));
}

#[test]
fn removal_takes_one_sub_tenants_source_only() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("t", "a", 2, &["y"])]);
    let outcome = commit(&collection, &removing("s", "a"));
    assert_eq!(outcome.removed, [named("s", "a")]);
    assert_eq!(outcome.orphaned_uploads, ["v1/raw/a-1"]);
    assert_eq!(visible(&collection).into_keys().collect::<Vec<_>>(), [key("t", "a")]);
    let again = commit(&collection, &removing("s", "a"));
    assert_eq!(again, Outcome::default(), "what is gone is not removed twice");
    add(&collection, &[source("s", "a", 3, &["back"])]);
    assert_eq!(visible(&collection)[&key("s", "a")].0, 3);
}

#[test]
fn chunks_go_one_by_one_and_the_last_takes_its_source_along() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x", "y", "z"])]);
    let (sub_tenant, id) = named("s", "a");
    let remove = |indices: &[u32]| {
        let remove_chunks = vec![(sub_tenant.clone(), id.clone(), indices.to_vec())];
        commit(&collection, &Edit { remove_chunks, ..Edit::default() })
    };
    let outcome = remove(&[1, 1, 7]);
    assert_eq!(outcome.removed_chunks, [(id.clone(), 1)]);
    assert!(outcome.removed.is_empty() && outcome.orphaned_uploads.is_empty());
    let left = visible(&collection)[&key("s", "a")].1.clone();
    assert_eq!(left, [(0, "x".to_owned()), (2, "z".to_owned())]);
    assert_eq!(remove(&[1]), Outcome::default());
    let outcome = remove(&[2, 0]);
    assert_eq!(outcome.removed_chunks, [(id.clone(), 2), (id.clone(), 0)]);
    assert_eq!(outcome.removed, [named("s", "a")]);
    assert_eq!(outcome.orphaned_uploads, ["v1/raw/a-1"]);
    assert!(visible(&collection).is_empty());
    assert!(collection.snapshot().segments.is_empty(), "nothing alive, nothing listed");
}

#[test]
fn emptying_a_sub_tenant_leaves_the_others() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x"]), source("t", "a", 2, &["y"])]);
    add(&collection, &[source("s", "b", 3, &["z"]), source("t", "c", 4, &["w"])]);
    commit(&collection, &removing("s", "b"));
    let edit = Edit { remove_sub_tenant: Some(sub("s")), ..Edit::default() };
    let outcome = commit(&collection, &edit);
    assert_eq!(outcome.removed, [named("s", "a")], "what was gone before is not reported");
    let of_t = visible(&collection).into_keys().map(|(sub_tenant, _)| sub_tenant);
    assert_eq!(of_t.collect::<Vec<_>>(), ["t", "t"]);
    assert_eq!(collection.snapshot().rows_in(&sub("s")), 0);
    assert_eq!(collection.snapshot().rows_in(&sub("t")), 2);
}

#[test]
fn a_source_without_chunks_is_visible_until_it_is_removed() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "none", 1, &[])]);
    assert_eq!(sequences(&collection), owned(&[("none", 1)]));
    assert_eq!(sequences(&dir.open()), owned(&[("none", 1)]));
    commit(&collection, &removing("s", "none"));
    assert!(visible(&collection).is_empty());
}

#[test]
fn an_amended_source_replaces_itself() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    add(&collection, &[source("s", "a", 1, &["x", "y"])]);
    let mut writer = collection.writer().unwrap();
    let base = writer.base();
    let (sub_tenant, id) = named("s", "a");
    let found = base.find(&sub_tenant, &id).unwrap();
    let mut record = found.record().unwrap();
    record.title = "Better".into();
    let segment = collection.build_amended(&found, record).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    let outcome = writer.commit(&Edit { add, ..Edit::default() }).unwrap();
    assert_eq!(outcome, Outcome::default(), "the upload is still referred to");
    let snapshot = collection.snapshot();
    assert_eq!(snapshot.find(&sub_tenant, &id).unwrap().record().unwrap().title, "Better");
    assert_eq!(contents(&snapshot), contents(&base));
}

#[test]
fn client_vectors_are_found_by_their_own_id_or_by_batch_and_index() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    let own = RowPayload { id: Some("own".into()), metadata: None }.to_text();
    let mut batch = source("s", "b", 1, &["", own.as_str(), "", ""]);
    batch.record.kind = SourceKind::Embeddings;
    let long = "é".repeat(256);
    add(&collection, &[batch, source("s", &long, 2, &[""])]);
    let (sub_tenant, id) = named("s", "b");
    let remove_chunks = vec![(sub_tenant, id, vec![2])];
    commit(&collection, &Edit { remove_chunks, ..Edit::default() });
    let snapshot = collection.snapshot();
    let place = |sub_tenant, chunk_id| {
        let found = snapshot.find_chunk(&sub(sub_tenant), chunk_id).unwrap()?;
        Some((found.place().0.to_owned(), found.place().1, found.row))
    };
    assert_eq!(place("s", "b_0"), Some(("b".to_owned(), 0, RowId(0))));
    assert_eq!(place("s", "own"), Some(("b".to_owned(), 1, RowId(1))));
    assert_eq!(place("s", "b_3"), Some(("b".to_owned(), 3, RowId(3))));
    let derived = format!("{long}_0");
    let found = place("s", &derived).map(|(batch, index, _)| (batch, index));
    assert_eq!(found, Some((long, 0)), "longer than any own id");
    let (too_long, no_id) = ("x".repeat(5000), "");
    for (sub_tenant, absent) in [
        ("s", no_id),
        ("s", &too_long),
        ("s", "b_1"),
        ("s", "b_2"),
        ("s", "b_4"),
        ("s", "c_0"),
        ("t", "own"),
        ("t", "b_0"),
    ] {
        assert_eq!(place(sub_tenant, absent), None, "{sub_tenant}, {absent}");
    }
}
