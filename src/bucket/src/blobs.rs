//! The blob store in a bucket.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::cache::{Cache, CacheCounts};
use crate::error::{TransferError, remote};
use crate::transfer;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put};
use lodestone_io::store::{BlobStore, Created, Key, StoreError, WriteBlob};
use lodestone_io::{DataDir, FileSlice, Fullness, IoError, MappedFile, Operation, Space};

/// Folder of the local copies, within the data directory.
pub const CACHE_FOLDER: &str = "cache/blobs";
/// Default budget for local copies, in percent of the space that they take or may take before the
/// disk counts as [`Fullness::Tight`].
const COPIES_PERCENT: u64 = 80;
/// Maximum number of concurrent requests for different blobs, per caller.
const PARALLEL: usize = 8;

/// Blobs in a bucket. Segments and originals also have copies in the data directory.
#[derive(Debug)]
pub struct BucketBlobs {
    bucket: Arc<Bucket>,
    data: Arc<DataDir>,
    cache: Cache,
    copies_bytes_max: Option<u64>,
    has_copies: fn(&Key) -> bool,
    only_reads: bool,
}

/// Default budget for local copies that take `copies_bytes` now. Smaller than `before` only if the
/// disk is no longer ample, so that files that exist for a while evict nothing.
fn default_budget(space: Space, copies_bytes: u64, before: u64) -> u64 {
    let kept_bytes = Fullness::Tight.free_to_fall_below(space.total_bytes);
    let usable = space.free_bytes.saturating_add(copies_bytes).saturating_sub(kept_bytes);
    let budget = usable / 100 * COPIES_PERCENT;
    match space.free_bytes < kept_bytes {
        true => budget,
        false => budget.max(before),
    }
}

/// Whether the contents of a blob under this name never change: true of segments, originals and
/// copies of the catalog. Not of manifests, because a number may be reused after its manifest was
/// deleted.
fn is_constant(key: &Key) -> bool {
    let mut parts = key.as_str().split('/').skip(1);
    match (parts.next(), parts.nth(1)) {
        (Some("c"), Some("s")) | (Some("raw"), Some(_)) => true,
        (first, _) => first == Some("catalog.base"),
    }
}

impl BucketBlobs {
    /// Opens the blobs of a bucket. Local copies take at most `copies_bytes_max` bytes, or more if
    /// open collections need it; `None` means as much as leaves the disk ample.
    ///
    /// # Errors
    /// Those of the folder of the local copies.
    pub fn open(
        bucket: Arc<Bucket>,
        data: Arc<DataDir>,
        copies_bytes_max: Option<u64>,
    ) -> Result<Self, IoError> {
        let budget = |copies_bytes: u64| match copies_bytes_max {
            Some(bytes) => Ok(bytes),
            None => Ok(default_budget(data.disk().space(data.root())?, copies_bytes, 0)),
        };
        let cache = Cache::open(data.root().join(CACHE_FOLDER), budget)?;
        let (has_copies, only_reads) = (is_constant, false);
        Ok(Self { bucket, data, cache, copies_bytes_max, has_copies, only_reads })
    }

    /// Selects the blobs that get local copies. The contents of such a blob must never change.
    #[must_use]
    pub fn with_copies_of(self, has_copies: fn(&Key) -> bool) -> Self {
        Self { has_copies, ..self }
    }

    /// Makes the store refuse writes and deletions, for a process that only reads.
    #[must_use]
    pub fn only_reading(self) -> Self {
        Self { only_reads: true, ..self }
    }

    fn require_writer(&self, key: &Key) -> Result<(), StoreError> {
        match self.only_reads {
            false => Ok(()),
            true => {
                let problem = format!("this process is read-only and cannot change {key}");
                Err(StoreError::Remote { problem })
            }
        }
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// State of the local copies.
    pub fn copies(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// Discards the parts of interrupted uploads. No other process may be uploading meanwhile.
    ///
    /// # Errors
    /// Those of the bucket.
    pub fn abandon_parts(&self) -> Result<u64, BucketError> {
        self.bucket.abandon_parts("v1/")
    }

    /// Downloads a blob to a temporary file; returns its path and length.
    fn fetch(&self, key: &Key) -> Result<(PathBuf, u64), TransferError> {
        let path = self.data.temporary_path();
        let fetched = transfer::fetch(&self.bucket, key, &path);
        if fetched.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        Ok((path, fetched?))
    }

    /// Opens a blob without keeping a copy. The temporary file is unlinked at once, so its space is
    /// freed when it is closed.
    fn fetch_to_open<T>(
        &self,
        key: &Key,
        open: impl Fn(&Path) -> Result<T, IoError>,
    ) -> Result<T, StoreError> {
        let (path, _) = self.fetch(key)?;
        let opened = open(&path);
        let _ = std::fs::remove_file(&path);
        Ok(opened?)
    }

    /// Uploads a temporary file, and moves it into the cache as the local copy.
    fn send_file(&self, key: &Key, path: &Path, bytes: u64) -> Result<(), StoreError> {
        self.require_writer(key)?;
        let file = FileSlice::open(path)?;
        // The local copy would be stale once the blob in the bucket is replaced.
        self.cache.forget(key);
        transfer::send(&self.bucket, key, &file, &mut |_| {})?;
        Ok(self.cache.adopt(key, path, bytes)?)
    }

    fn send(&self, key: &Key, bytes: &[u8]) -> Result<(), StoreError> {
        self.require_writer(key)?;
        let put = self.bucket.put(key.as_str(), bytes, Condition::None);
        put.map(|_| ()).map_err(|error| remote(&error))
    }

    fn read(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        let read = self.bucket.get(key.as_str()).map_err(|error| remote(&error))?;
        read.ok_or_else(|| StoreError::Missing { key: key.clone() })
    }

    fn remove(&self, key: &Key) -> Result<(), StoreError> {
        self.require_writer(key)?;
        self.cache.forget(key);
        self.bucket.remove(key.as_str()).map_err(|error| remote(&error))
    }
}

/// Applies `work` to each item on up to [`PARALLEL`] threads. Stops at the first error.
fn in_parallel<T: Sync, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                next.store(items.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..PARALLEL.min(items.len())).map(|_| scope.spawn(run)).collect();
        let own = run();
        let joined = others.into_iter().map(|thread| thread.join().expect("it does not panic"));
        joined.fold(own, Result::and)
    })
}

impl BlobStore for BucketBlobs {
    fn is_shared(&self) -> bool {
        true
    }

    fn prefetch(&self, keys: &[Key]) -> Vec<MappedFile> {
        let keys: Vec<&Key> = keys.iter().filter(|key| (self.has_copies)(key)).collect();
        let mapped = Mutex::new(Vec::with_capacity(keys.len()));
        let _: Result<(), ()> = in_parallel(&keys, |key| {
            match self.cache.map(key, || self.fetch(key)) {
                Ok(file) => mapped.lock().push(file),
                Err(error) => tracing::debug!(%key, %error, "not fetched ahead"),
            }
            Ok(())
        });
        mapped.into_inner()
    }

    fn fit_copies(&self) {
        if self.copies_bytes_max.is_some() {
            return;
        }
        match self.data.disk().space(self.data.root()) {
            Ok(space) => self.cache.fit(|bytes, before| default_budget(space, bytes, before)),
            Err(error) => tracing::debug!(%error, "the cache keeps its size"),
        }
    }

    fn forget_copy(&self, key: &Key) -> bool {
        self.cache.forget(key)
    }

    fn copied_prefixes(&self) -> BTreeSet<Key> {
        self.cache.prefixes()
    }

    fn copies_below(&self, prefix: &Key) -> Vec<Key> {
        self.cache.below(prefix)
    }

    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        if !(self.has_copies)(key) {
            let mut bytes = Vec::new();
            let file = Path::new(key.as_str());
            write(&mut bytes).map_err(|error| IoError::new(Operation::Write, file, error))?;
            self.send(key, &bytes)?;
            return Ok(bytes.len() as u64);
        }
        let path = self.data.temporary_path();
        let put = self.data.disk().write_new(&path, write).map_err(StoreError::from);
        let put = put.and_then(|bytes| self.send_file(key, &path, bytes).map(|()| bytes));
        if put.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        put
    }

    fn scratch(&self) -> Result<File, StoreError> {
        Ok(self.data.scratch()?)
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        in_parallel(blobs, |(key, bytes)| self.put(key, bytes))
    }

    /// Takes one request, or two if the name is taken or the response was lost. Comparing the bytes
    /// tells whether this caller created the blob, because they include a unique number.
    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        self.require_writer(key)?;
        let put = self.bucket.put(key.as_str(), bytes, Condition::Absent);
        if let Ok(Put::Done(_)) = put {
            return Ok(Created::Won);
        }
        // An earlier attempt of this request may have succeeded without its response arriving.
        match (self.bucket.get(key.as_str()), put) {
            (Ok(Some(found)), _) if found == bytes => Ok(Created::Won),
            (Ok(Some(_)), _) | (Ok(None), Ok(_)) => Ok(Created::Exists),
            (Ok(None), Err(error)) | (Err(error), _) => Err(remote(&error)),
        }
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        if !(self.has_copies)(key) {
            return self.read(key);
        }
        let file = self.cache.file(key, || self.fetch(key))?;
        let mut bytes = vec![0; file.len() as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        if (self.has_copies)(key) {
            return Ok(self.cache.file(key, || self.fetch(key))?);
        }
        self.fetch_to_open(key, FileSlice::open)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        if (self.has_copies)(key) {
            return Ok(self.cache.map(key, || self.fetch(key))?);
        }
        self.fetch_to_open(key, MappedFile::open)
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        if let Some(bytes) = self.cache.len(key) {
            return Ok(bytes);
        }
        let found = self.bucket.len(key.as_str()).map_err(|error| remote(&error))?;
        found.ok_or_else(|| StoreError::Missing { key: key.clone() })
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        let listed = self.bucket.list(&format!("{prefix}/")).map_err(|error| remote(&error))?;
        // A name that is not a valid key was not created by this store, so it is no blob.
        let mut keys: Vec<Key> =
            listed.into_iter().filter_map(|(name, _)| Key::parse(&name).ok()).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        keys.iter().try_for_each(|key| self.remove(key))
    }

    fn delete_unordered(&self, keys: &[Key]) -> Result<(), StoreError> {
        in_parallel(keys, |key| self.remove(key))
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.delete_unordered(&self.list(prefix)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn disk(total_gib: u64, free_gib: u64) -> Space {
        let (total_bytes, free_bytes) = (total_gib * GIB, free_gib * GIB);
        Space { total_bytes, free_bytes, free_files: u64::MAX }
    }

    /// Goal: a full cache leaves the disk so empty that merges and uploads go on.
    #[test]
    fn the_default_budget_leaves_the_disk_ample() {
        for (total, free) in [(30, 15), (30, 6), (100, 90), (4000, 3000), (4000, 40)] {
            let budget = default_budget(disk(total, free), 0, 0);
            let left = free * GIB - budget;
            assert!(budget > 0, "{free} of {total} GiB");
            assert!(left >= Fullness::Tight.free_to_fall_below(total * GIB), "{free} of {total}");
        }
        assert_eq!(default_budget(disk(30, 4), 0, 0), 0);
    }

    /// Goal: copies make room for what others store, but not as long as the disk is ample.
    #[test]
    fn the_default_budget_follows_the_free_space() {
        let first = default_budget(disk(30, 15), 0, 0);
        assert_eq!(default_budget(disk(30, 6), 5 * GIB, first), first, "ample");
        let smaller = default_budget(disk(30, 5), 5 * GIB, first);
        assert!((GIB..5 * GIB).contains(&smaller), "{smaller}");
        assert!(default_budget(disk(30, 29), 0, smaller) > first, "it grows again");
    }
}
