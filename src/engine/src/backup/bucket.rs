//! Backups in a bucket.
//!
//! The keys are the names of files in a folder of backups, so that one can be copied to the other:
//! ```text
//! lodestone-backups     marks the prefix
//! lock                  of the process that adds or removes backups
//! objects/ab/<sha256>   contents, each once
//! started/<id>          a backup that was begun; goes when it is finished
//! backups/<id>          its manifest, written last
//! ```
//! Objects are whole or not there: one of [`PART_BYTES`] and more is sent in parts that the store
//! puts together at the end. Nothing is written over but the lock.

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

/// Bytes of a part, all of which are in memory.
const PART_BYTES: usize = 16 << 20;
/// Parts of one object; stores take 10,000.
const PARTS_MAX: u64 = 9_000;

/// Backups in a bucket.
#[derive(Debug)]
pub(super) struct InBucket {
    bucket: Arc<Bucket>,
    /// Objects and their lengths, listed at the first question: one by one they would be a request
    /// each. Nobody else writes meanwhile.
    known: Mutex<Option<HashMap<String, u64>>>,
    lease: Option<Lease>,
}

impl InBucket {
    /// Opens a prefix to add or remove backups, and marks it if it is empty.
    pub(super) fn create(bucket: Bucket, ids: &dyn IdSource) -> Result<Self, BackupError> {
        let bucket = Arc::new(bucket);
        // Read and not looked for: an answer to that has no room for the store's reason.
        if bucket.get(MARKER)?.is_none() {
            if !bucket.is_empty()? {
                let url = bucket.url();
                let problem =
                    format!("{url} is not empty and holds no backups: name another place");
                return Err(BackupError::Refused { problem });
            }
            bucket.put(MARKER, b"", Condition::None)?;
        }
        let lease = Lease::take(&bucket, ids)?;
        // Nobody else writes: these parts were left by a process that was killed.
        let count = bucket.abandon_parts(&format!("{OBJECTS}/"))?;
        if count > 0 {
            tracing::info!(count, "parts of files that were cut off are removed from the bucket");
        }
        Ok(Self { bucket, known: Mutex::default(), lease })
    }

    /// Opens a prefix that holds backups, to read.
    pub(super) fn open(bucket: Bucket) -> Result<Self, BackupError> {
        if bucket.get(MARKER)?.is_none() {
            let url = bucket.url();
            let problem = format!("{url} holds no backups: there is no object {MARKER}");
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

    /// Sends what is longer than a part: read once for its name, and again for the store.
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

/// Fills a buffer from an offset; less than all of it at the end alone.
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

    /// Nothing is left to do: what a store has acknowledged is durable.
    fn sync(&self) -> Result<(), BackupError> {
        Ok(())
    }

    fn put(&self, group: &str, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        // A manifest promises that its objects are there: nobody may have removed any meanwhile.
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
