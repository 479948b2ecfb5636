//! Stores for tests: one in memory, and one that fails as it is told.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use lodestone_io::store::{BlobStore, Key, StoreError, WriteBlob};
use lodestone_io::{Created, FileSlice, IoError, MappedFile, Operation};
use parking_lot::Mutex;

fn refused(operation: Operation, key: &Key, kind: io::ErrorKind) -> StoreError {
    IoError::new(operation, Path::new(key.as_str()), io::Error::new(kind, "as told")).into()
}

/// Blobs in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    blobs: Mutex<BTreeMap<Key, Arc<Vec<u8>>>>,
}

impl Memory {
    fn blob(&self, key: &Key) -> Result<Arc<Vec<u8>>, StoreError> {
        let found = self.blobs.lock().get(key).cloned();
        found.ok_or_else(|| refused(Operation::Open, key, io::ErrorKind::NotFound))
    }
}

impl BlobStore for Memory {
    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        let mut bytes = Vec::new();
        write(&mut bytes)
            .map_err(|e| IoError::new(Operation::Write, Path::new(key.as_str()), e))?;
        let length = bytes.len() as u64;
        self.blobs.lock().insert(key.clone(), Arc::new(bytes));
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
        blobs.insert(key.clone(), Arc::new(bytes.to_vec()));
        Ok(Created::Won)
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        Ok(self.blob(key)?.to_vec())
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.blob(key)?).unwrap();
        Ok(FileSlice::of(file, Path::new(key.as_str()))?)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        Err(refused(Operation::Map, key, io::ErrorKind::Unsupported))
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Put,
    Create,
    Get,
    List,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The call fails and does nothing.
    Before,
    /// The call does what it should, and fails.
    After,
    /// A blob is read to its half.
    Half,
}

type Decide = dyn FnMut(Call, &Key) -> Fault + Send;

/// A store whose calls fail as a function of the test says.
pub(super) struct Faulty {
    inner: Arc<dyn BlobStore>,
    decide: Mutex<Box<Decide>>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

impl Faulty {
    pub(super) fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self { inner, decide: Mutex::new(Box::new(|_, _| Fault::None)) }
    }

    pub(super) fn set(&self, decide: impl FnMut(Call, &Key) -> Fault + Send + 'static) {
        *self.decide.lock() = Box::new(decide);
    }

    fn call<T>(
        &self,
        call: Call,
        key: &Key,
        run: impl FnOnce(bool) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failed = || refused(Operation::Write, key, io::ErrorKind::TimedOut);
        let fault = (self.decide.lock())(call, key);
        match fault {
            Fault::None => run(false),
            Fault::Half => run(true),
            Fault::Before => Err(failed()),
            Fault::After => run(false).and_then(|_| Err(failed())),
        }
    }
}

impl BlobStore for Faulty {
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
        self.call(Call::Create, key, |_| self.inner.put_create(key, bytes))
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        self.call(Call::Get, key, |is_half| {
            let mut bytes = self.inner.get(key)?;
            if is_half {
                bytes.truncate(bytes.len() / 2);
            }
            Ok(bytes)
        })
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        self.call(Call::Get, key, |_| self.inner.open(key))
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        self.inner.map(key)
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        self.inner.len(key)
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
