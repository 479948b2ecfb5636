//! The blob store as an injectable component.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};

use crate::store::{Created, Key, StoreError};
use crate::{FileSlice, MappedFile};

/// Writes the contents of a new blob; called once.
pub type WriteBlob<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Immutable, uniquely named blobs. All calls block. A change that returned `Ok` survives a power
/// cut; after an error the blob is in its old or its new state, never in between. Every call can
/// fail with [`StoreError::Io`]. Stated costs are those of [`crate::store::LocalBlobs`]; the first
/// blob in a new directory costs one more fsync per directory created.
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Whether processes on other machines may write to the same blobs, which the lock of the data
    /// directory does not prevent.
    fn is_shared(&self) -> bool {
        false
    }

    /// Fetches blobs that are about to be mapped into the local cache, concurrently if that is
    /// faster. They stay there at least until the returned mappings are dropped. A failure shows in
    /// the call that needs the blob.
    #[must_use = "the files may be evicted once their mappings are dropped"]
    fn prefetch(&self, _keys: &[Key]) -> Vec<MappedFile> {
        Vec::new()
    }

    /// Adapts the space that cached copies may take to the free space, unless a setting states it.
    fn fit_copies(&self) {}

    /// Drops the cached copy of a blob because it was found damaged; returns whether there was one,
    /// and so whether a second read is worthwhile.
    fn forget_copy(&self, _key: &Key) -> bool {
        false
    }

    /// Tries again to carry out deletions that were deferred and have failed since, as far as
    /// nothing protects the blobs.
    fn delete_deferred(&self) {}

    /// Prefixes of three components, like `v1/c/x`, below which blobs have cached copies.
    fn copied_prefixes(&self) -> BTreeSet<Key> {
        BTreeSet::new()
    }

    /// Blobs below a prefix that have cached copies, whether or not the blobs still exist.
    fn copies_below(&self, _prefix: &Key) -> Vec<Key> {
        Vec::new()
    }

    /// Stores a blob, atomically replacing any of the same name. Two fsyncs.
    fn put(&self, key: &Key, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_with(key, &mut |out| out.write_all(bytes)).map(|_length| ())
    }

    /// Like [`Self::put`], for contents written piece by piece; returns their length in bytes. If
    /// `write` fails, the store is unchanged. Two fsyncs.
    ///
    /// # Errors
    /// [`StoreError::Io`], also for an error returned by `write`.
    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError>;

    /// Creates an empty unnamed file, for contents that take too much memory before they become a
    /// blob. They disappear when it is closed. No fsync.
    fn scratch(&self) -> Result<File, StoreError>;

    /// Stores many blobs. Each appears atomically, but not all of them together. One fsync per blob
    /// and one per directory.
    ///
    /// # Errors
    /// [`StoreError::Io`]; some of the blobs may exist afterwards.
    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError>;

    /// Stores a blob only if the name is free; of concurrent callers exactly one wins. A result of
    /// `Exists` is durable too. Two fsyncs, or one if the name is already taken.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the name may then be free or taken, by these bytes or another caller's.
    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError>;

    /// Reads a whole blob. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError>;

    /// Opens a blob for reading piece by piece; it stays readable after a delete. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn open(&self, key: &Key) -> Result<FileSlice, StoreError>;

    /// Maps a whole blob; it stays readable after a delete. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn map(&self, key: &Key) -> Result<MappedFile, StoreError>;

    /// Length of a blob in bytes. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn len(&self, key: &Key) -> Result<u64, StoreError>;

    /// Lists, in sorted order, the keys that begin with all components of `prefix`; `v1/ab` is not
    /// below `v1/a`. Empty if nothing has the prefix. No fsync.
    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError>;

    /// Deletes a blob; a missing one counts as deleted. One fsync.
    fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.delete_many(std::slice::from_ref(key))
    }

    /// Deletes blobs in the given order. One fsync per directory.
    ///
    /// # Errors
    /// [`StoreError::Io`]; some of the blobs may be gone.
    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError>;

    /// Like [`Self::delete_many`], but in any order, concurrently if that is faster.
    ///
    /// # Errors
    /// Those of [`Self::delete_many`].
    fn delete_unordered(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.delete_many(keys)
    }

    /// Deletes every blob that [`Self::list`] finds below a prefix. No blob may be stored there
    /// concurrently. One fsync.
    ///
    /// # Errors
    /// [`StoreError::Io`]; a part may be gone.
    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError>;
}
