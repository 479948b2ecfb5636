//! Backups in a bucket.
//!
//! The keys equal the file names in a folder of backups, so that one can be copied to the other:
//! ```text
//! lodestone-backups     marks the prefix
//! lock                  held by the process that adds or removes backups
//! objects/ab/<sha256>   contents, each stored once
//! started/<id>          a backup that was begun; removed when it is finished
//! backups/<id>          its manifest, written last
//! ```
//! An object is complete or absent: one of [`PART_BYTES`] or more is uploaded in parts, which the
//! store assembles at the end. Nothing but the lock is ever overwritten.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::BackupError;
use super::format::BACKUPS;
use super::lease::Lease;
use super::store::{
    BUFFER_BYTES, BackupStore, Compared, MARKER, OBJECTS, Object, ReadAt, TakeNext,
};
use lodestone_fetch::bucket::{Bucket, Condition};
use lodestone_types::IdSource;

/// Bytes of a part, which is held in memory as a whole.
const PART_BYTES: usize = 16 << 20;
/// Maximum number of parts of an object; stores accept 10,000.
const PARTS_MAX: u64 = 9_000;

/// Backups in a bucket.
#[derive(Debug)]
pub(super) struct InBucket {
    bucket: Arc<Bucket>,
    /// Objects and their lengths, listed on the first query, since asking one by one would cost a
    /// request each. While the lock is held, nobody else changes them.
    known: Mutex<Option<HashMap<String, u64>>>,
    lease: Option<Lease>,
}

impl InBucket {
    /// Opens a prefix for adding or removing backups, and marks it if it is empty.
    pub(super) fn create(bucket: Bucket, ids: &dyn IdSource) -> Result<Self, BackupError> {
        let bucket = Arc::new(bucket);
        // The marker is read with a GET, because a refused HEAD has no body with the store's
        // reason.
        if bucket.get(MARKER)?.is_none() {
            if !bucket.is_empty()? {
                let url = bucket.url();
                let problem =
                    format!("{url} is not empty and contains no backups: choose another location");
                return Err(BackupError::Refused { problem });
            }
            bucket.put(MARKER, b"", Condition::None)?;
        }
        let lease = Lease::take(&bucket, ids)?;
        // Nobody else is writing, so these parts were left by a process that was killed.
        let count = bucket.abandon_parts(&format!("{OBJECTS}/"))?;
        if count > 0 {
            tracing::info!(count, "removed parts of interrupted uploads from the bucket");
        }
        Ok(Self { bucket, known: Mutex::default(), lease })
    }

    /// Opens a prefix with backups for reading.
    pub(super) fn open(bucket: Bucket) -> Result<Self, BackupError> {
        if bucket.get(MARKER)?.is_none() {
            let url = bucket.url();
            let problem = format!("{url} contains no backups: there is no object {MARKER}");
            return Err(BackupError::Refused { problem });
        }
        Ok(Self { bucket: Arc::new(bucket), known: Mutex::default(), lease: None })
    }

    fn key(sha256: &str) -> String {
        format!("{OBJECTS}/{}/{sha256}", sha256.get(..2).unwrap_or(""))
    }

    fn with_known<T>(
        &self,
        look: impl FnOnce(&mut HashMap<String, u64>) -> T,
    ) -> Result<T, BackupError> {
        let mut known = self.known.lock();
        if known.is_none() {
            let listed = self.bucket.list(&format!("{OBJECTS}/"))?;
            let object = |(key, bytes): (String, u64)| {
                let (_, sha256) = key.rsplit_once('/')?;
                Some((sha256.to_owned(), bytes))
            };
            *known = Some(listed.into_iter().filter_map(object).collect());
        }
        Ok(look(known.get_or_insert_default()))
    }

    /// Uploads content longer than one part. Reads it twice: once for its hash, and again for the
    /// upload.
    fn put_large(&self, mut buffer: Vec<u8>, read: &mut ReadAt<'_>) -> Result<Object, BackupError> {
        let (mut hash, mut bytes) = (Sha256::new_with_prefix(&buffer), buffer.len() as u64);
        buffer.truncate(BUFFER_BYTES);
        buffer.shrink_to_fit();
        loop {
            let length = read(bytes, &mut buffer)?;
            if length == 0 {
                break;
            }
            hash.update(&buffer[..length]);
            bytes += length as u64;
        }
        let object = Object { sha256: hex::encode(hash.finalize()), bytes };
        let key = Self::key(&object.sha256);
        let mut again = Compared::new(&object, key.clone());
        let part_bytes = PART_BYTES.max(bytes.div_ceil(PARTS_MAX) as usize);
        let mut at = 0;
        self.bucket.put_parts(&key, (part_bytes, 1), &mut |part| {
            let length = fill(at, part, read)?;
            again.see(&part[..length])?;
            at += length as u64;
            Ok::<_, BackupError>(length)
        })?;
        if let Err(error) = again.finish() {
            self.bucket.remove(&key)?;
            return Err(error);
        }
        Ok(object)
    }
}

/// Fills a buffer from an offset; returns less than its length only at the end.
fn fill(from: u64, buffer: &mut [u8], read: &mut ReadAt<'_>) -> Result<usize, BackupError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(from + filled as u64, &mut buffer[filled..])? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

impl BackupStore for InBucket {
    fn name(&self) -> String {
        self.bucket.url().to_string()
    }

    fn put_object(&self, read: &mut ReadAt<'_>) -> Result<Object, BackupError> {
        if let Some(lease) = &self.lease {
            lease.check()?;
        }
        let mut buffer = vec![0; PART_BYTES];
        let length = fill(0, &mut buffer, read)?;
        let object = match length < PART_BYTES {
            true => {
                let sha256 = hex::encode(Sha256::digest(&buffer[..length]));
                self.bucket.put(&Self::key(&sha256), &buffer[..length], Condition::None)?;
                Object { sha256, bytes: length as u64 }
            }
            false => self.put_large(buffer, read)?,
        };
        if let Some(known) = &mut *self.known.lock() {
            known.insert(object.sha256.clone(), object.bytes);
        }
        Ok(object)
    }

    fn object_len(&self, sha256: &str) -> Result<Option<u64>, BackupError> {
        self.with_known(|known| known.get(sha256).copied())
    }

    fn read_object(&self, object: &Object, take: &mut TakeNext<'_>) -> Result<(), BackupError> {
        let key = Self::key(&object.sha256);
        let mut compared = Compared::new(object, format!("{}/{key}", self.name()));
        let read = self.bucket.read(&key, &mut |piece| {
            compared.see(piece)?;
            take(piece)
        })?;
        match read {
            Some(_) => compared.finish(),
            None => Err(compared.missing()),
        }
    }

    fn objects(&self) -> Result<Vec<String>, BackupError> {
        self.with_known(|known| known.keys().cloned().collect())
    }

    fn remove_object(&self, sha256: &str) -> Result<(), BackupError> {
        if let Some(lease) = &self.lease {
            lease.check()?;
        }
        self.bucket.remove(&Self::key(sha256))?;
        self.with_known(|known| known.remove(sha256)).map(|_| ())
    }

    /// Nothing to do: whatever a store has acknowledged is durable.
    fn sync(&self) -> Result<(), BackupError> {
        Ok(())
    }

    fn put(&self, group: &str, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        // A manifest promises that its objects exist, so nobody else may have removed any since.
        if let Some(lease) = self.lease.as_ref().filter(|_| group == BACKUPS) {
            lease.renew()?;
        }
        self.bucket.put(&format!("{group}/{name}"), bytes, Condition::None)?;
        Ok(())
    }

    fn get(&self, group: &str, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        Ok(self.bucket.get(&format!("{group}/{name}"))?)
    }

    fn names(&self, group: &str) -> Result<Vec<String>, BackupError> {
        let start = format!("{group}/");
        let keys = self.bucket.list(&start)?.into_iter();
        let mut names: Vec<String> =
            keys.filter_map(|(key, _)| Some(key.strip_prefix(&start)?.to_owned())).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, group: &str, name: &str) -> Result<(), BackupError> {
        Ok(self.bucket.remove(&format!("{group}/{name}"))?)
    }
}
