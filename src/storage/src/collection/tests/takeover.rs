//! Writers on other machines, and commits that got no answer.

use super::*;
use lodestone_io::store::Created;
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs};

/// A directory that behaves like a bucket: others may write, and creations may get no answer.
fn shared(dir: &CollectionDir) -> Arc<FaultyBlobs> {
    Arc::new(FaultyBlobs::new(Arc::clone(&dir.store)))
}

fn open(store: &Arc<FaultyBlobs>, epoch: u64) -> Collection {
    let ids = Arc::new(SeededIds::new(epoch));
    Collection::open(ID, Arc::clone(store) as _, ids, epoch, None).unwrap()
}

/// Makes the next creation end with this fault.
fn next_ends(store: &FaultyBlobs, fault: Fault) {
    let mut next = Some(fault);
    store.set(move |call, _| match call {
        Call::Create => next.take().unwrap_or(Fault::None),
        _ => Fault::None,
    });
}

/// Goal: a commit that got no answer is reported as in doubt and does not poison the collection;
/// the next writer builds on what really happened; none of its files is deleted while it may still
/// happen.
#[test]
fn a_commit_without_an_answer_is_settled_by_the_next_writer() {
    for end in [Fault::Before, Fault::After, Fault::Late] {
        let dir = CollectionDir::new();
        let shared = shared(&dir);
        let collection = open(&shared, 1);
        add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
        let edit = adding(&collection, &[source("s", "c", 3, &["z"])]);
        let edit = Edit { remove_sources: vec![named("s", "a")], ..edit };
        next_ends(&shared, end);
        let error = collection.writer().unwrap().commit(&edit).unwrap_err();
        assert!(matches!(error, CollectionError::InDoubt { .. }), "{error}");
        assert!(error.to_string().contains("the next write will show"), "{error}");
        assert!(!collection.is_poisoned());
        assert_eq!(sequences(&collection), owned(&[("a", 1), ("b", 2)]), "reads go on");
        let segments = dir.count("s/");
        drop(edit);
        assert_eq!(collection.collect_garbage().unwrap(), 0, "it may have happened");
        assert_eq!(dir.count("s/"), segments);

        // The store is still away: the next writer is refused, the one after it is not.
        next_ends(&shared, Fault::Before);
        let error = collection.writer().err().expect("no answer");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        add(&collection, &[source("s", "d", 4, &["w"])]);
        let expected = match end {
            Fault::After => owned(&[("b", 2), ("c", 3), ("d", 4)]),
            _ => owned(&[("a", 1), ("b", 2), ("d", 4)]),
        };
        assert_eq!(sequences(&collection), expected);
        let is_applied = collection.snapshot().manifest.applied.contains(&3);
        assert_eq!(is_applied, end == Fault::After, "its job is done if it is");
        if end == Fault::Late {
            assert_eq!(shared.arrive().unwrap(), [Created::Exists], "its number is taken");
        }
        collection.collect_garbage().unwrap();
        assert_eq!(sequences(&open(&shared, 1)), expected);
        assert_eq!(dir.count("s/"), 2 + usize::from(end == Fault::After), "nothing is left over");
    }
}

/// Goal: a machine that was presumed lost finds its next number taken, even if its successor has
/// changed nothing; what it built meanwhile is not listed anywhere.
#[test]
fn a_machine_that_was_taken_for_lost_is_fenced_by_the_opening() {
    let dir = CollectionDir::new();
    let shared = shared(&dir);
    let lost = open(&shared, 1);
    add(&lost, &[source("s", "a", 1, &["x"])]);
    let edit = adding(&lost, &[source("s", "b", 2, &["y"])]);
    let next = open(&shared, 2);
    assert_eq!(next.head().unwrap().version, 3, "the same contents under the next number");
    let error = lost.writer().unwrap().commit(&edit).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    assert!(lost.is_poisoned() && lost.collect_garbage().unwrap() == 0);
    add(&next, &[source("s", "c", 3, &["z"])]);
    assert_eq!(sequences(&open(&shared, 2)), owned(&[("a", 1), ("c", 3)]));
    // One opened for reading, before any number is taken, deletes nothing.
    drop(adding(&next, &[source("s", "d", 4, &["z"])]));
    let files = dir.files();
    open(&shared, 1);
    assert_eq!(dir.files(), files);
}

/// Goal: processes that were superseded and open a collection only afterwards delete nothing that
/// their successor builds, whether or not there was a manifest before it.
#[test]
fn late_openings_by_earlier_processes_delete_nothing() {
    for is_new in [true, false] {
        let dir = CollectionDir::new();
        let shared = shared(&dir);
        let early = open(&shared, 1);
        if !is_new {
            add(&early, &[source("s", "a", 1, &["x"])]);
        }
        let newest = open(&shared, 3);
        let edit = adding(&newest, &[source("s", "a", 2, &["y"])]);
        let fenced = adding(&early, &[source("s", "b", 3, &["z"])]);
        let error = early.writer().unwrap().commit(&fenced).unwrap_err();
        assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
        add(&open(&shared, 1), &[source("s", "c", 4, &["w"])]);
        open(&shared, 2);
        commit(&newest, &edit);
        let last = open(&shared, 4);
        assert!(damaged(&last).is_empty());
        assert_eq!(sequences(&last), owned(&[("a", 2), ("c", 4)]));
        assert_eq!(dir.count("s/"), 2, "nothing is left over");
    }
}

/// Goal: jobs that may not be marked stay in the manifest that takes the number.
#[test]
fn jobs_that_are_not_marked_survive_a_takeover() {
    let dir = CollectionDir::new();
    let shared = shared(&dir);
    let lost = open(&shared, 1);
    add(&lost, &[source("s", "a", 7, &["x"])]);
    let next = open(&shared, 2);
    assert!(next.snapshot().manifest.applied.contains(&7));
    drop(next);
    assert!(open(&shared, 3).snapshot().manifest.applied.contains(&7));
}
