//! Other machines that write, and commits without an answer.

use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering};

use super::*;
use lodestone_io::store::{Created, StoreError, WriteBlob};
use lodestone_io::{FileSlice, MappedFile};

/// A directory as a bucket is: others may write, and creations may get no answer.
#[derive(Debug)]
struct Shared {
    inner: Arc<dyn BlobStore>,
    creations: AtomicU8,
    late: Mutex<Option<(Key, Vec<u8>)>>,
}

/// The creation is done.
const DONE: u8 = 0;
/// It is not done, and nobody is told.
const LOST: u8 = 1;
/// It is done, and nobody is told.
const UNTOLD: u8 = 2;
/// It is not done yet, and nobody is told.
const LATE: u8 = 3;

impl Shared {
    fn over(dir: &CollectionDir) -> Arc<Self> {
        let inner = Arc::clone(&dir.store);
        Arc::new(Self { inner, creations: AtomicU8::new(DONE), late: Mutex::new(None) })
    }

    /// Has the next creation end so.
    fn next_ends(&self, end: u8) {
        self.creations.store(end, Ordering::SeqCst);
    }

    fn open(self: &Arc<Self>, epoch: u64) -> Collection {
        let store: Arc<dyn BlobStore> = self.clone();
        Collection::open(ID, store, Arc::new(SeededIds::new(epoch)), epoch, None).unwrap()
    }

    /// A creation that was late arrives.
    fn arrive(&self) -> Created {
        let (key, bytes) = self.late.lock().take().unwrap();
        self.inner.put_create(&key, &bytes).unwrap()
    }
}

impl BlobStore for Shared {
    fn is_shared(&self) -> bool {
        true
    }

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        let end = self.creations.swap(DONE, Ordering::SeqCst);
        match end {
            DONE => return self.inner.put_create(key, bytes),
            UNTOLD => drop(self.inner.put_create(key, bytes)?),
            LATE => *self.late.lock() = Some((key.clone(), bytes.to_vec())),
            _ => {}
        }
        Err(StoreError::Remote { problem: "no answer".to_owned() })
    }

    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        self.inner.put_with(key, write)
    }

    fn scratch(&self) -> Result<File, StoreError> {
        self.inner.scratch()
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        self.inner.put_many(blobs)
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        self.inner.get(key)
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        self.inner.open(key)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        self.inner.map(key)
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        self.inner.len(key)
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        self.inner.list(prefix)
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.inner.delete_many(keys)
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.inner.delete_prefix(prefix)
    }
}

/// Goal: a commit without an answer is told as one in doubt, poisons nothing, and the next writer
/// builds on what really happened; no file of it is deleted while it may happen.
#[test]
fn a_commit_without_an_answer_is_settled_by_the_next_writer() {
    for end in [LOST, UNTOLD, LATE] {
        let dir = CollectionDir::new();
        let shared = Shared::over(&dir);
        let collection = shared.open(1);
        add(&collection, &[source("s", "a", 1, &["x"]), source("s", "b", 2, &["y"])]);
        let edit = adding(&collection, &[source("s", "c", 3, &["z"])]);
        let edit = Edit { remove_sources: vec![named("s", "a")], ..edit };
        shared.next_ends(end);
        let error = collection.writer().unwrap().commit(&edit).unwrap_err();
        assert!(matches!(error, CollectionError::InDoubt { .. }), "{error}");
        assert!(error.to_string().contains("the next write finds out"), "{error}");
        assert!(!collection.is_poisoned());
        assert_eq!(sequences(&collection), owned(&[("a", 1), ("b", 2)]), "reads go on");
        let segments = dir.count("s/");
        drop(edit);
        assert_eq!(collection.collect_garbage().unwrap(), 0, "it may have happened");
        assert_eq!(dir.count("s/"), segments);

        // The store is still away: the next writer is refused, and the one after it is not.
        shared.next_ends(LOST);
        let error = collection.writer().err().expect("no answer");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        add(&collection, &[source("s", "d", 4, &["w"])]);
        let expected = match end {
            UNTOLD => owned(&[("b", 2), ("c", 3), ("d", 4)]),
            _ => owned(&[("a", 1), ("b", 2), ("d", 4)]),
        };
        assert_eq!(sequences(&collection), expected);
        let is_applied = collection.snapshot().manifest.applied.contains(&3);
        assert_eq!(is_applied, end == UNTOLD, "its job is done if it is");
        if end == LATE {
            assert_eq!(shared.arrive(), Created::Exists, "its number is taken");
        }
        collection.collect_garbage().unwrap();
        assert_eq!(sequences(&shared.open(1)), expected);
        assert_eq!(dir.count("s/"), 2 + usize::from(end == UNTOLD), "nothing is left over");
    }
}

/// Goal: a machine that was taken for lost finds its next number taken, even where its successor
/// has changed nothing; what it has built meanwhile is not listed anywhere.
#[test]
fn a_machine_that_was_taken_for_lost_is_fenced_by_the_opening() {
    let dir = CollectionDir::new();
    let shared = Shared::over(&dir);
    let lost = shared.open(1);
    add(&lost, &[source("s", "a", 1, &["x"])]);
    let edit = adding(&lost, &[source("s", "b", 2, &["y"])]);
    let next = shared.open(2);
    assert_eq!(next.head().unwrap().version, 3, "the same contents under the next number");
    let error = lost.writer().unwrap().commit(&edit).unwrap_err();
    assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
    assert!(lost.is_poisoned() && lost.collect_garbage().unwrap() == 0);
    add(&next, &[source("s", "c", 3, &["z"])]);
    assert_eq!(sequences(&shared.open(2)), owned(&[("a", 1), ("c", 3)]));
    // One that is opened to read, before anything is claimed, deletes nothing.
    drop(adding(&next, &[source("s", "d", 4, &["z"])]));
    let files = dir.files();
    shared.open(1);
    assert_eq!(dir.files(), files);
}

/// Goal: processes that were succeeded and open a collection only then delete nothing that their
/// successor builds, whether or not there was a manifest before it.
#[test]
fn late_openings_by_earlier_processes_delete_nothing() {
    for is_new in [true, false] {
        let dir = CollectionDir::new();
        let shared = Shared::over(&dir);
        let early = shared.open(1);
        if !is_new {
            add(&early, &[source("s", "a", 1, &["x"])]);
        }
        let newest = shared.open(3);
        let edit = adding(&newest, &[source("s", "a", 2, &["y"])]);
        let fenced = adding(&early, &[source("s", "b", 3, &["z"])]);
        let error = early.writer().unwrap().commit(&fenced).unwrap_err();
        assert!(matches!(error, CollectionError::Fenced { .. }), "{error}");
        add(&shared.open(1), &[source("s", "c", 4, &["w"])]);
        shared.open(2);
        commit(&newest, &edit);
        let last = shared.open(4);
        assert!(damaged(&last).is_empty());
        assert_eq!(sequences(&last), owned(&[("a", 2), ("c", 4)]));
        assert_eq!(dir.count("s/"), 2, "nothing is left over");
    }
}

/// Goal: jobs that may not be marked stay in the manifest that takes the number.
#[test]
fn jobs_that_are_not_marked_survive_a_takeover() {
    let dir = CollectionDir::new();
    let shared = Shared::over(&dir);
    let lost = shared.open(1);
    add(&lost, &[source("s", "a", 7, &["x"])]);
    let next = shared.open(2);
    assert!(next.snapshot().manifest.applied.contains(&7));
    drop(next);
    assert!(shared.open(3).snapshot().manifest.applied.contains(&7));
}
