//! Blobs as files below the data directory.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::store::{BlobStore, Key, StoreError, WriteBlob};
use crate::{Created, DataDir, FileSlice, IoError, MappedFile};

/// The blob store of a single machine: key `v1/x/y` is the file `<data>/v1/x/y`.
#[derive(Debug, Clone)]
pub struct LocalBlobs {
    data: Arc<DataDir>,
}

impl LocalBlobs {
    /// Wraps an open data directory.
    pub fn new(data: Arc<DataDir>) -> Self {
        Self { data }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.data.root().join(key.as_str())
    }

    /// Adds the files below `directory` to `found`; a missing directory is empty.
    fn collect(&self, directory: &Key, found: &mut Vec<Key>) -> Result<(), StoreError> {
        let entries = match self.data.disk().list(&self.path(directory)) {
            Ok(entries) => entries,
            Err(IoError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            // A name outside the grammar was not created by this store, so it is not a blob.
            let Ok(key) = directory.join(&entry.name) else { continue };
            if entry.is_directory {
                self.collect(&key, found)?;
            } else {
                found.push(key);
            }
        }
        Ok(())
    }
}

impl BlobStore for LocalBlobs {
    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        Ok(self.data.publish(&self.path(key), write)?)
    }

    fn scratch(&self) -> Result<File, StoreError> {
        Ok(self.data.scratch()?)
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        let files: Vec<_> = blobs.iter().map(|(key, bytes)| (self.path(key), *bytes)).collect();
        Ok(self.data.publish_many(&files)?)
    }

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        let path = self.path(key);
        Ok(self.data.create_exclusive(&path, &mut |out| out.write_all(bytes))?)
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        Ok(self.data.disk().read(&self.path(key))?)
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        Ok(self.data.disk().open(&self.path(key))?)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        Ok(self.data.disk().map(&self.path(key))?)
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        Ok(self.data.disk().len(&self.path(key))?)
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        let mut found = Vec::new();
        self.collect(prefix, &mut found)?;
        // The walk orders by component, but '-' and '.' sort before the separating '/'.
        found.sort_unstable();
        Ok(found)
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        let paths: Vec<_> = keys.iter().map(|key| self.path(key)).collect();
        Ok(self.data.remove_many(&paths)?)
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        Ok(self.data.remove_tree(&self.path(prefix))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;
    use crate::{CrashDisk, CrashMode, RealDisk};

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap()
    }

    fn open(disk: &Arc<CrashDisk>) -> LocalBlobs {
        let root = disk.root().join("data");
        LocalBlobs::new(Arc::new(DataDir::open(&root, disk.clone()).unwrap()))
    }

    #[test]
    fn local_blobs_conform() {
        let root = tempfile::tempdir().unwrap();
        let data = DataDir::open(root.path(), Arc::new(RealDisk)).unwrap();
        conformance::run(&LocalBlobs::new(Arc::new(data)));
        let left = std::fs::read_dir(root.path().join("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary files are removed");
    }

    #[test]
    fn local_blobs_conform_on_the_crash_disk() {
        let base = tempfile::tempdir().unwrap();
        conformance::run(&open(&Arc::new(CrashDisk::new(base.path()))));
    }

    #[test]
    fn names_that_are_no_keys_are_not_listed() {
        let root = tempfile::tempdir().unwrap();
        let data = DataDir::open(root.path(), Arc::new(RealDisk)).unwrap();
        let blobs = LocalBlobs::new(Arc::new(data));
        blobs.put(&key("v1/a/b"), b"1").unwrap();
        std::fs::write(root.path().join("v1/a/b c"), "foreign").unwrap();
        assert_eq!(blobs.list(&key("v1/a")).unwrap(), [key("v1/a/b")]);
    }

    /// Goal: of racing creators exactly one wins, and a power cut right after it was told so keeps
    /// its bytes, whatever the seed.
    #[test]
    fn the_winner_of_a_race_stays_the_winner_after_a_cut() {
        for seed in 0..10 {
            let base = tempfile::tempdir().unwrap();
            let disk = Arc::new(CrashDisk::new(base.path()));
            let blobs = open(&disk);
            let winner = conformance::race(&blobs, &key("v1/c/x/m/00000000000000000001"), 8);
            drop(blobs);
            disk.crash(seed, CrashMode::Hostile);
            let stored = open(&disk).get(&key("v1/c/x/m/00000000000000000001")).unwrap();
            assert_eq!(stored, winner);
        }
    }
}
