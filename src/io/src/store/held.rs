//! A blob store whose deletions can be put off, so that a backup finds what it has listed.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::store::{BlobStore, Key, StoreError, WriteBlob};
use crate::{Created, FileSlice, MappedFile};

/// A blob store that deletes nothing while a [`DeletionHold`] of it lives. What was to be deleted
/// meanwhile goes in the order of the calls when the last hold is dropped. Deletions that were put
/// off are lost with the process: the next start finds such files as it finds those of a crash.
#[derive(Debug)]
pub struct HeldBlobs {
    inner: Arc<dyn BlobStore>,
    /// Read while something is deleted, so that a hold begins between two deletions.
    holds: RwLock<usize>,
    waiting: Mutex<Waiting>,
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

/// Keeps every blob of a store in place until it is dropped.
#[derive(Debug)]
pub struct DeletionHold {
    store: Arc<HeldBlobs>,
}

impl HeldBlobs {
    /// The blobs of `inner`.
    pub fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self { inner, holds: RwLock::new(0), waiting: Mutex::default() }
    }

    /// Puts deletions off from now on. Waits for those that are under way.
    pub fn hold(self: &Arc<Self>) -> DeletionHold {
        *self.holds.write() += 1;
        DeletionHold { store: Arc::clone(self) }
    }

    /// Number of deletions that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().order.len()
    }

    fn delete_or_wait(
        &self,
        deletions: impl Iterator<Item = Deletion>,
        now: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let holds = self.holds.read();
        if *holds == 0 {
            return now();
        }
        let mut waiting = self.waiting.lock();
        for deletion in deletions {
            if waiting.known.insert(deletion.clone()) {
                waiting.order.push(deletion);
            }
        }
        Ok(())
    }
}

impl Drop for DeletionHold {
    fn drop(&mut self) {
        let mut holds = self.store.holds.write();
        *holds -= 1;
        if *holds > 0 {
            return;
        }
        let Waiting { order, .. } = std::mem::take(&mut *self.store.waiting.lock());
        drop(holds);
        for deletion in order {
            let deleted = match &deletion {
                Deletion::One(key) => self.store.inner.delete(key),
                Deletion::Prefix(prefix) => self.store.inner.delete_prefix(prefix),
            };
            if let Err(error) = deleted {
                tracing::warn!(%error, "a file that is not needed stays until the next start");
            }
        }
    }
}

impl BlobStore for HeldBlobs {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn prefetch(&self, keys: &[Key]) {
        self.inner.prefetch(keys);
    }

    fn forget_copy(&self, key: &Key) -> bool {
        self.inner.forget_copy(key)
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
        let deletions = keys.iter().cloned().map(Deletion::One);
        self.delete_or_wait(deletions, || self.inner.delete_many(keys))
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        let deletion = std::iter::once(Deletion::Prefix(prefix.clone()));
        self.delete_or_wait(deletion, || self.inner.delete_prefix(prefix))
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

    /// Goal: a deletion that fails when the hold ends keeps nobody from the rest, and is not tried
    /// again by itself.
    #[test]
    fn a_deletion_that_fails_after_a_hold_leaves_the_blob() {
        let faulty = Arc::new(FaultyBlobs::new(Arc::new(MemoryBlobs::default())));
        let store = Arc::new(HeldBlobs::new(Arc::clone(&faulty) as Arc<dyn BlobStore>));
        let keys = ["v1/a", "v1/b"].map(|name| Key::parse(name).unwrap());
        for key in &keys {
            store.put(key, b"x").unwrap();
        }
        let hold = store.hold();
        store.delete_many(&keys).unwrap();
        let failing = keys[0].clone();
        faulty.set(move |call, key| match call == Call::Delete && *key == failing {
            true => Fault::Before,
            false => Fault::None,
        });
        drop(hold);
        assert_eq!(store.get(&keys[0]).unwrap(), b"x");
        assert!(store.get(&keys[1]).is_err());
        assert_eq!(store.waiting(), 0);
        assert!(store.delete(&keys[0]).is_err(), "without a hold its caller is told");
    }
}
