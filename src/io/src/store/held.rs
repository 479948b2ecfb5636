//! A blob store whose deletions can be deferred, so that a backup finds every blob it has listed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::store::{BlobStore, Key, StoreError, WriteBlob};
use crate::{Created, FileSlice, MappedFile};

/// Blobs deleted per slice; a hold can begin between slices. About a second at a bucket.
const SLICE: usize = 128;

/// A blob store that deletes nothing protected by a live [`DeletionHold`]. Deferred deletions are
/// carried out in call order once no hold protects them. If one fails, or another hold protects it,
/// the rest waits for the end of the next hold or [`BlobStore::delete_deferred`], since it may
/// include the record of what could not be deleted. Deferred deletions are lost with the process:
/// the next start finds such files the way it finds leftovers of a crash.
#[derive(Debug)]
pub struct HeldBlobs {
    inner: Arc<dyn BlobStore>,
    /// Read-locked during a deletion, so that a hold can only begin between deletions.
    holds: RwLock<Holds>,
    waiting: Mutex<Waiting>,
}

/// The live holds, by number.
#[derive(Debug, Default)]
struct Holds {
    kept: BTreeMap<u64, Kept>,
    next: u64,
}

#[derive(Debug)]
enum Kept {
    All,
    /// Blobs whose keys begin with one of these prefixes.
    Below(Vec<Key>),
}

#[derive(Debug, Default)]
struct Waiting {
    order: Vec<Deletion>,
    known: HashSet<Deletion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Deletion {
    One(Key),
    Prefix(Key),
}

/// Protects blobs of a store from deletion until it is dropped.
#[derive(Debug)]
pub struct DeletionHold {
    store: Arc<HeldBlobs>,
    number: u64,
}

impl Holds {
    fn keep(&self, deletion: &Deletion) -> bool {
        self.kept.values().any(|kept| match kept {
            Kept::All => true,
            Kept::Below(prefixes) => prefixes.iter().any(|prefix| deletion.concerns(prefix)),
        })
    }
}

impl Deletion {
    /// Whether the deletion may affect something below the prefix.
    fn concerns(&self, kept: &Key) -> bool {
        match self {
            Self::One(key) => key.begins_with(kept),
            Self::Prefix(prefix) => prefix.begins_with(kept) || kept.begins_with(prefix),
        }
    }
}

impl Waiting {
    fn put_off(&mut self, deletion: Deletion) {
        if self.known.insert(deletion.clone()) {
            self.order.push(deletion);
        }
    }

    /// Removes and returns the deletions that no hold protects.
    fn due(&mut self, holds: &Holds) -> Vec<Deletion> {
        let all = std::mem::take(self).order.into_iter();
        let (kept, due) = all.partition(|deletion| holds.keep(deletion));
        self.return_all(kept);
        due
    }

    /// Puts deletions back at the front of the queue.
    fn return_all(&mut self, deletions: Vec<Deletion>) {
        let others = std::mem::take(self).order;
        deletions.into_iter().chain(others).for_each(|deletion| self.put_off(deletion));
    }
}

impl HeldBlobs {
    /// Wraps the blobs of `inner`.
    pub fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self { inner, holds: RwLock::default(), waiting: Mutex::default() }
    }

    /// Defers all deletions from now on. Waits for deletions in progress.
    pub fn hold(self: &Arc<Self>) -> DeletionHold {
        self.begin(Kept::All)
    }

    /// Defers deletions of blobs below some prefixes from now on. Waits for deletions in progress.
    pub fn hold_below(self: &Arc<Self>, prefixes: Vec<Key>) -> DeletionHold {
        self.begin(Kept::Below(prefixes))
    }

    fn begin(self: &Arc<Self>, kept: Kept) -> DeletionHold {
        let mut holds = self.holds.write();
        let number = holds.next;
        holds.next += 1;
        holds.kept.insert(number, kept);
        DeletionHold { store: Arc::clone(self), number }
    }

    /// Number of deferred deletions.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().order.len()
    }

    /// Performs a deletion, or a part of it; returns false if a hold deferred it instead.
    fn unless_kept(
        &self,
        deletion: &Deletion,
        put_off: impl FnOnce(&mut Waiting),
        carry_out: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let holds = self.holds.read();
        if holds.keep(deletion) {
            put_off(&mut self.waiting.lock());
            return Ok(false);
        }
        carry_out().map(|()| true)
    }

    /// Deletes everything below a prefix; returns false if a hold deferred the rest. At a bucket
    /// this goes in slices, because the whole may take long and a new hold should not wait for all
    /// of it.
    fn delete_below(
        &self,
        prefix: &Key,
        put_off: impl Fn(&mut Waiting),
    ) -> Result<bool, StoreError> {
        let whole = Deletion::Prefix(prefix.clone());
        if !self.inner.is_shared() {
            return self.unless_kept(&whole, put_off, || self.inner.delete_prefix(prefix));
        }
        for slice in self.inner.list(prefix)?.chunks(SLICE) {
            if !self.unless_kept(&whole, &put_off, || self.inner.delete_unordered(slice))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Carries out deletions that were deferred, in order. The first that fails, and those after
    /// it, are deferred again.
    fn carry_out(&self, due: &[Deletion]) {
        for (at, deletion) in due.iter().enumerate() {
            // Another hold may have begun: this deletion and those after it then wait for its end.
            let put_off = |waiting: &mut Waiting| waiting.return_all(due[at..].to_vec());
            let deleted = match deletion {
                Deletion::One(key) => {
                    self.unless_kept(deletion, put_off, || self.inner.delete(key))
                }
                Deletion::Prefix(prefix) => self.delete_below(prefix, put_off),
            };
            if let Err(error) = &deleted {
                tracing::warn!(%error, "deferred deletions failed");
                put_off(&mut self.waiting.lock());
            }
            if !matches!(deleted, Ok(true)) {
                break;
            }
        }
    }
}

impl Drop for DeletionHold {
    fn drop(&mut self) {
        let Self { store, number } = self;
        let mut holds = store.holds.write();
        holds.kept.remove(number);
        let due = store.waiting.lock().due(&holds);
        drop(holds);
        store.carry_out(&due);
    }
}

impl BlobStore for HeldBlobs {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn prefetch(&self, keys: &[Key]) -> Vec<MappedFile> {
        self.inner.prefetch(keys)
    }

    fn fit_copies(&self) {
        self.inner.fit_copies();
    }

    fn forget_copy(&self, key: &Key) -> bool {
        self.inner.forget_copy(key)
    }

    fn delete_deferred(&self) {
        let holds = self.holds.read();
        let due = self.waiting.lock().due(&holds);
        drop(holds);
        self.carry_out(&due);
    }

    fn copied_prefixes(&self) -> BTreeSet<Key> {
        self.inner.copied_prefixes()
    }

    fn copies_below(&self, prefix: &Key) -> Vec<Key> {
        self.inner.copies_below(prefix)
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

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        self.inner.put_create(key, bytes)
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
        let holds = self.holds.read();
        let (kept, free): (Vec<Key>, Vec<Key>) =
            keys.iter().cloned().partition(|key| holds.keep(&Deletion::One(key.clone())));
        let mut waiting = self.waiting.lock();
        kept.into_iter().for_each(|key| waiting.put_off(Deletion::One(key)));
        drop(waiting);
        match free.is_empty() {
            true => Ok(()),
            false => self.inner.delete_many(&free),
        }
    }

    fn delete_unordered(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.delete_many(keys)
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        let put_off = |waiting: &mut Waiting| waiting.put_off(Deletion::Prefix(prefix.clone()));
        self.delete_below(prefix, put_off).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{Call, Fault, FaultyBlobs, MemoryBlobs};
    use crate::store::{LocalBlobs, conformance};
    use crate::{DataDir, RealDisk};

    fn held(root: &std::path::Path) -> Arc<HeldBlobs> {
        let data = DataDir::open(root, Arc::new(RealDisk)).unwrap();
        Arc::new(HeldBlobs::new(Arc::new(LocalBlobs::new(Arc::new(data)))))
    }

    fn bucket() -> (Arc<FaultyBlobs>, Arc<HeldBlobs>) {
        let faulty = Arc::new(FaultyBlobs::new(Arc::new(MemoryBlobs::default())));
        let store = Arc::new(HeldBlobs::new(Arc::clone(&faulty) as Arc<dyn BlobStore>));
        (faulty, store)
    }

    #[test]
    fn without_a_hold_it_is_a_blob_store() {
        let root = tempfile::tempdir().unwrap();
        conformance::run(&*held(root.path()));
    }

    #[test]
    fn deletions_wait_for_the_last_hold() {
        let root = tempfile::tempdir().unwrap();
        let store = held(root.path());
        let keys = ["v1/a/b", "v1/c/d"].map(|name| Key::parse(name).unwrap());
        for key in &keys {
            store.put(key, b"x").unwrap();
        }
        let (first, second) = (store.hold(), store.hold());
        store.delete(&keys[0]).unwrap();
        store.delete(&keys[0]).unwrap();
        store.delete_prefix(&Key::parse("v1/c").unwrap()).unwrap();
        assert_eq!(store.waiting(), 2, "one that is repeated counts once");
        drop(first);
        assert_eq!(store.get(&keys[0]).unwrap(), b"x");
        drop(second);
        for key in &keys {
            assert!(store.get(key).is_err(), "{key} is deleted");
        }
        assert_eq!(store.waiting(), 0);
    }

    /// Goal: if a deferred deletion fails when its hold ends, the ones after it, which may include
    /// the record of what was to go, wait until it is tried again.
    #[test]
    fn after_a_deletion_that_fails_the_rest_waits_for_the_next_attempt() {
        let (faulty, store) = bucket();
        let keys = ["v1/a", "v1/b", "v1/c"].map(|name| Key::parse(name).unwrap());
        for key in &keys {
            store.put(key, b"x").unwrap();
        }
        let hold = store.hold();
        store.delete_many(&keys).unwrap();
        let failing = keys[1].clone();
        faulty.set(move |call, key| match call == Call::Delete && *key == failing {
            true => Fault::Before,
            false => Fault::None,
        });
        drop(hold);
        let left = || keys.each_ref().map(|key| store.get(key).is_ok());
        assert_eq!((left(), store.waiting()), ([false, true, true], 2));
        assert!(store.delete(&keys[1]).is_err(), "without a hold its caller is told");
        drop(store.hold());
        store.delete_deferred();
        assert_eq!((left(), store.waiting()), ([false, true, true], 2));
        faulty.set(|_, _| Fault::None);
        let hold = store.hold_below(vec![keys[2].clone()]);
        store.delete_deferred();
        assert_eq!((left(), store.waiting()), ([false, false, true], 1));
        drop(hold);
        assert_eq!((left(), store.waiting()), ([false; 3], 0));
    }

    /// Goal: a hold that begins while deferred deletions are carried out protects the rest and
    /// keeps their order. Method: it begins after the first deletion at the end of the previous
    /// hold.
    #[test]
    fn a_hold_keeps_what_was_put_off_by_the_one_before() {
        let (faulty, store) = bucket();
        let keys = ["v1/a", "v1/b/x", "v1/c"].map(|name| Key::parse(name).unwrap());
        keys.iter().for_each(|key| store.put(key, b"x").unwrap());
        let hold = store.hold();
        store.delete(&keys[0]).unwrap();
        store.delete_prefix(&Key::parse("v1/b").unwrap()).unwrap();
        store.delete(&keys[2]).unwrap();
        let (ask, asked) = std::sync::mpsc::channel();
        let holder = Arc::clone(&store);
        let held = std::thread::spawn(move || {
            asked.recv().unwrap();
            holder.hold()
        });
        let watched = Arc::downgrade(&store);
        faulty.set(move |call, _| {
            if call == Call::Delete && ask.send(()).is_ok() {
                // The new hold waits for this deletion to end.
                let waits = || watched.upgrade().is_some_and(|it| it.holds.try_read().is_none());
                while !waits() {
                    std::thread::yield_now();
                }
            }
            Fault::None
        });
        drop(hold);
        let second = held.join().unwrap();
        let left = || keys.each_ref().map(|key| store.get(key).is_ok());
        assert_eq!((left(), store.waiting()), ([false, true, true], 2));
        drop(second);
        assert_eq!((left(), store.waiting()), ([false; 3], 0));
    }

    /// Goal: a hold on some blobs does not prevent the deletion of others.
    #[test]
    fn a_hold_of_a_prefix_keeps_what_is_below_it() {
        let root = tempfile::tempdir().unwrap();
        let store = held(root.path());
        let key = |name: &str| Key::parse(name).unwrap();
        let names = ["v1/c/a/x", "v1/c/ab/x", "v1/raw/a/x", "v1/raw/b/x"];
        names.iter().for_each(|name| store.put(&key(name), b"x").unwrap());
        let hold = store.hold_below(vec![key("v1/c/a"), key("v1/raw/a")]);
        store.delete_many(&names.map(key)[..2]).unwrap();
        store.delete_prefix(&key("v1/raw")).unwrap();
        let left = || names.map(|name| store.get(&key(name)).is_ok());
        assert_eq!((left(), store.waiting()), ([true, false, true, true], 2));
        let all = store.hold();
        drop(hold);
        assert_eq!(store.waiting(), 2, "the other one keeps them");
        drop(all);
        assert_eq!((left(), store.waiting()), ([false; 4], 0));
    }

    /// Goal: a hold that begins during the deletion of many blobs of a bucket does not wait for all
    /// of them. Method: another thread begins it, and the deletion waits for that thread.
    #[test]
    fn a_hold_begins_during_a_large_deletion() {
        let (faulty, store) = bucket();
        let prefix = Key::parse("v1/raw/a").unwrap();
        for number in 0..3 * SLICE {
            store.put(&prefix.join(&number.to_string()).unwrap(), b"x").unwrap();
        }
        let (ask, asked) = std::sync::mpsc::channel();
        let holder = Arc::clone(&store);
        let held = std::thread::spawn(move || {
            asked.recv().unwrap();
            holder.hold()
        });
        let (watched, mut deletions) = (Arc::downgrade(&store), 0);
        faulty.set(move |call, _| {
            if call == Call::Delete {
                deletions += 1;
                let _ = ask.send(());
                // The first slice ends once the hold waits for it.
                let waits = || watched.upgrade().is_some_and(|it| it.holds.try_read().is_none());
                while deletions == 1 && !waits() {
                    std::thread::yield_now();
                }
            }
            Fault::None
        });
        store.delete_prefix(&prefix).unwrap();
        let hold = held.join().unwrap();
        let left = store.list(&prefix).unwrap().len();
        assert_eq!((left, store.waiting()), (2 * SLICE, 1));
        drop(hold);
        assert!(store.list(&prefix).unwrap().is_empty());
    }
}
