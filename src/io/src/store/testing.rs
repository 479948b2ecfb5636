//! Blob stores for tests: one in memory, and one that injects faults.

#![allow(clippy::unwrap_used)] // For tests.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::{BlobStore, Created, Key, StoreError, WriteBlob};
use crate::{FileSlice, IoError, MappedFile, Operation};

/// Blobs in memory. Mapping a blob goes through a temporary file.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<Key, Arc<[u8]>>>,
}

impl MemoryBlobs {
    fn blob(&self, key: &Key) -> Result<Arc<[u8]>, StoreError> {
        let found = self.blobs.lock().get(key).cloned();
        found.ok_or_else(|| StoreError::Missing { key: key.clone() })
    }
}

impl BlobStore for MemoryBlobs {
    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        let mut bytes = Vec::new();
        write(&mut bytes)
            .map_err(|error| IoError::new(Operation::Write, Path::new(key.as_str()), error))?;
        let length = bytes.len() as u64;
        self.blobs.lock().insert(key.clone(), bytes.into());
        Ok(length)
    }

    fn scratch(&self) -> Result<File, StoreError> {
        Ok(tempfile::tempfile().unwrap())
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        blobs.iter().try_for_each(|(key, bytes)| self.put(key, bytes))
    }

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        let mut blobs = self.blobs.lock();
        if blobs.contains_key(key) {
            return Ok(Created::Exists);
        }
        blobs.insert(key.clone(), bytes.into());
        Ok(Created::Won)
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        Ok(self.blob(key)?.to_vec())
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        let mut file = self.scratch()?;
        file.write_all(&self.blob(key)?).unwrap();
        Ok(FileSlice::of(file, Path::new(key.as_str()))?)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&self.blob(key)?).unwrap();
        Ok(MappedFile::open(file.path())?)
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        Ok(self.blob(key)?.len() as u64)
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        let start = format!("{prefix}/");
        let blobs = self.blobs.lock();
        Ok(blobs.keys().filter(|key| key.as_str().starts_with(&start)).cloned().collect())
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        let mut blobs = self.blobs.lock();
        keys.iter().for_each(|key| drop(blobs.remove(key)));
        Ok(())
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.delete_many(&self.list(prefix)?)
    }
}

/// A call to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Storing a blob.
    Put,
    /// Creating a blob.
    Create,
    /// Reading a blob.
    Get,
    /// Listing blobs.
    List,
    /// Deleting blobs.
    Delete,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call succeeds.
    None,
    /// The call fails without effect.
    Before,
    /// The call takes effect, and reports failure.
    After,
    /// A creation reports failure, and takes effect in [`FaultyBlobs::arrive`].
    Late,
    /// Only the first half of the blob is read.
    Half,
}

type Decide = dyn FnMut(Call, &Key) -> Fault + Send;
type Forget = dyn FnMut(&Key) -> bool + Send;

/// Wraps another store so that it behaves like a bucket: other writers may exist, and calls fail as
/// a function of the test decides.
pub struct FaultyBlobs {
    inner: Arc<dyn BlobStore>,
    decide: Mutex<Box<Decide>>,
    forget: Mutex<Box<Forget>>,
    late: Mutex<Vec<(Key, Vec<u8>)>>,
}

impl fmt::Debug for FaultyBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyBlobs").finish_non_exhaustive()
    }
}

impl FaultyBlobs {
    /// Wraps `inner`; nothing fails yet.
    pub fn new(inner: Arc<dyn BlobStore>) -> Self {
        let (decide, forget) =
            (Box::new(|_: Call, _: &Key| Fault::None), Box::new(|_: &Key| false));
        let (decide, forget) = (Mutex::new(decide as _), Mutex::new(forget as _));
        Self { inner, decide, forget, late: Mutex::default() }
    }

    /// Sets the function that decides the outcome of each call.
    pub fn set(&self, decide: impl FnMut(Call, &Key) -> Fault + Send + 'static) {
        *self.decide.lock() = Box::new(decide);
    }

    /// Treats the blobs as cached copies from now on: `forget` is called with the key of one found
    /// damaged, and returns whether it can be read again.
    pub fn set_copies(&self, forget: impl FnMut(&Key) -> bool + Send + 'static) {
        *self.forget.lock() = Box::new(forget);
    }

    /// Performs the late creations, in order.
    ///
    /// # Errors
    /// Those of the wrapped store.
    pub fn arrive(&self) -> Result<Vec<Created>, StoreError> {
        let late = std::mem::take(&mut *self.late.lock());
        late.iter().map(|(key, bytes)| self.inner.put_create(key, bytes)).collect()
    }

    fn call<T>(
        &self,
        call: Call,
        key: &Key,
        run: impl FnOnce(Fault) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let fault = (self.decide.lock())(call, key);
        match fault {
            Fault::None | Fault::Half => run(fault),
            Fault::Before => Err(no_answer(key)),
            Fault::After | Fault::Late => run(fault).and_then(|_| Err(no_answer(key))),
        }
    }
}

fn no_answer(key: &Key) -> StoreError {
    StoreError::Remote { problem: format!("no answer about {key}, as told") }
}

impl BlobStore for FaultyBlobs {
    fn is_shared(&self) -> bool {
        true
    }

    fn forget_copy(&self, key: &Key) -> bool {
        (self.forget.lock())(key)
    }

    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        self.call(Call::Put, key, |_| self.inner.put_with(key, write))
    }

    fn scratch(&self) -> Result<File, StoreError> {
        self.inner.scratch()
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        self.inner.put_many(blobs)
    }

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        self.call(Call::Create, key, |fault| match fault {
            Fault::Late => {
                self.late.lock().push((key.clone(), bytes.to_vec()));
                Err(no_answer(key))
            }
            _ => self.inner.put_create(key, bytes),
        })
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        self.call(Call::Get, key, |fault| {
            let mut bytes = self.inner.get(key)?;
            if fault == Fault::Half {
                bytes.truncate(bytes.len() / 2);
            }
            Ok(bytes)
        })
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        self.call(Call::Get, key, |_| self.inner.open(key))
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        self.call(Call::Get, key, |_| self.inner.map(key))
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        self.call(Call::Get, key, |_| self.inner.len(key))
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        self.call(Call::List, prefix, |_| self.inner.list(prefix))
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        let Some(first) = keys.first() else { return Ok(()) };
        self.call(Call::Delete, first, |_| self.inner.delete_many(keys))
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.inner.delete_prefix(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[test]
    fn blobs_in_memory_conform_also_behind_faults_that_do_not_come() {
        conformance::run(&MemoryBlobs::default());
        conformance::run(&FaultyBlobs::new(Arc::new(MemoryBlobs::default())));
    }
}
