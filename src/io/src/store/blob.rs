//! The blob store as a component.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};

use crate::store::{Created, Key, StoreError};
use crate::{FileSlice, MappedFile};

/// Fills a new blob; called once.
pub type WriteBlob<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Immutable, uniquely named bytes. Blocking. What returned `Ok` survives a power cut; what
/// returned an error is as before or as after, never in between. Every call can fail with
/// [`StoreError::Io`]. The costs are those of
/// [`crate::store::LocalBlobs`]; the first blob of a new directory costs one fsync more for each
/// directory made.
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Whether a process on another machine may write to the same blobs: the lock of the data
    /// directory keeps none away then.
    fn is_shared(&self) -> bool {
        false
    }

    /// Brings blobs near that are to be mapped soon, several at once where that is quicker. One
    /// that cannot be brought is an error of the call that needs it.
    fn prefetch(&self, _keys: &[Key]) {}

    /// Forgets a copy of a blob that is kept nearer than the blob itself, because it was found
    /// damaged; returns whether there was one, so that it is worth reading again.
    fn forget_copy(&self, _key: &Key) -> bool {
        false
    }

    /// The prefixes of three components below which blobs have such copies, as `v1/c/x`.
    fn copied_prefixes(&self) -> BTreeSet<Key> {
        BTreeSet::new()
    }

    /// The blobs below a prefix that have such copies, whether they are still there or not.
    fn copies_below(&self, _prefix: &Key) -> Vec<Key> {
        Vec::new()
    }

    /// Stores a blob, replacing one of that name in a single step. Two fsyncs.
    fn put(&self, key: &Key, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_with(key, &mut |out| out.write_all(bytes)).map(|_length| ())
    }

    /// As [`Self::put`], for contents that are written piece by piece; returns their length in
    /// bytes. If `write` fails, the store is as before. Two fsyncs.
    ///
    /// # Errors
    /// [`StoreError::Io`], also with what `write` returned.
    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError>;

    /// An empty file without a name, for what takes too much memory before it is in a blob. Its
    /// contents are gone when it is closed. No fsync.
    fn scratch(&self) -> Result<File, StoreError>;

    /// Stores many blobs; each appears whole, all of them not in one step. One fsync a blob and
    /// one for each directory concerned.
    ///
    /// # Errors
    /// [`StoreError::Io`]; some of the blobs may then be there.
    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError>;

    /// Stores a blob only if none has this name; of many callers exactly one wins. An answer of
    /// `Exists` is durable too. Two fsyncs, one where the name was taken before.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the name may then be taken or not, with these bytes or another's.
    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError>;

    /// A whole blob. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError>;

    /// A whole blob, opened to be read piece by piece; it stays readable after a delete. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn open(&self, key: &Key) -> Result<FileSlice, StoreError>;

    /// A whole blob, mapped; it stays readable after a delete. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn map(&self, key: &Key) -> Result<MappedFile, StoreError>;

    /// Length of a blob in bytes. No fsync.
    ///
    /// # Errors
    /// `NotFound` or another [`StoreError::Io`].
    fn len(&self, key: &Key) -> Result<u64, StoreError>;

    /// The keys that begin with all components of `prefix`, sorted; `v1/ab` is not below `v1/a`.
    /// None where nothing has the prefix. No fsync.
    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError>;

    /// Removes a blob; one that is not there counts as removed. One fsync.
    fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.delete_many(std::slice::from_ref(key))
    }

    /// Removes blobs in the order given. One fsync for each directory concerned.
    ///
    /// # Errors
    /// [`StoreError::Io`]; some of the blobs may then be gone.
    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError>;

    /// As [`Self::delete_many`], in any order, several at once where that is quicker.
    ///
    /// # Errors
    /// As [`Self::delete_many`].
    fn delete_unordered(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.delete_many(keys)
    }

    /// Removes every blob that [`Self::list`] finds. No blob may be put there meanwhile.
    /// One fsync.
    ///
    /// # Errors
    /// [`StoreError::Io`]; a part may then be gone.
    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError>;
}
