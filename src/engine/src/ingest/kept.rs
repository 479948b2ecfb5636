//! Keeps vectors of documents that are not published yet, so that a server killed in the middle of
//! a long document does not embed its finished chunks again.
//!
//! ```text
//! v1/c/<collection>/w/<first>-<last>-<slice>     first and last sequence of the claim
//!
//! "lodestone vectors 1 " | 16 hex digits, XXH3-64 of the body | " " | fingerprint of the model
//!     | " " | components | "\n"
//! body: n x { SHA-256 of the passage, 32 bytes; components x f32 }
//! ```
//! Little-endian. A reader skips files with a different first line, model or length: they hold a
//! few seconds of work and nothing else. Writing a file costs two fsyncs, about a thousandth of the
//! embedding time that it saves. Claims of a single slice write none.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use crate::ingest::IngestError;
use lodestone_catalog::Catalog;
use lodestone_embed::Embedder;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{CollectionId, Sequence};

const FIRST_WORDS: &str = "lodestone vectors 1";
const HASH_BYTES: usize = 32;
/// Maximum bytes of kept vectors read per collection; the rest is embedded again.
const READ_BYTES_MAX: u64 = 256 << 20;

type PassageHash = [u8; HASH_BYTES];

/// The collections known to have no kept vectors left from earlier claims.
#[derive(Debug, Default)]
pub(super) struct KeptVectors(Mutex<Emptied>);

#[derive(Debug, Default)]
struct Emptied {
    collections: HashSet<CollectionId>,
    /// Number of claims, of any collection, that have ended with files left.
    left: u64,
}

impl Emptied {
    /// Notes that a claim has ended with files left.
    fn leave(&mut self, collection: CollectionId) {
        self.collections.remove(&collection);
        self.left += 1;
    }

    /// Notes that a claim has left no file of those that it knows of. It does not know of files
    /// that others have left since `left` was read.
    fn note(&mut self, collection: CollectionId, left: u64) {
        if self.left == left {
            self.collections.insert(collection);
        }
    }
}

/// The kept vectors of one claim.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    all: &'a KeptVectors,
    store: &'a dyn BlobStore,
    embedder: &'a dyn Embedder,
    collection: CollectionId,
    claim: (Sequence, Sequence),
    /// Vectors of an earlier run, by passage.
    older: HashMap<PassageHash, Vec<f32>>,
    older_keys: Vec<Key>,
    written: Vec<Key>,
    /// [`Emptied::left`] when the claim began.
    left: u64,
}

impl KeptVectors {
    /// Opens the kept vectors for a claim, whose first and last job are `jobs`. Files are searched
    /// once after a start, and again after a claim that ended with work left.
    pub(super) fn open<'a>(
        &'a self,
        store: &'a dyn BlobStore,
        embedder: &'a dyn Embedder,
        collection: CollectionId,
        jobs: (Sequence, Sequence),
    ) -> Kept<'a> {
        let (is_empty, left) = {
            let emptied = self.0.lock();
            (emptied.collections.contains(&collection), emptied.left)
        };
        let mut kept = Kept {
            all: self,
            store,
            embedder,
            collection,
            claim: jobs,
            older: HashMap::new(),
            older_keys: Vec::new(),
            written: Vec::new(),
            left,
        };
        if !is_empty {
            kept.read_older();
            if kept.older_keys.is_empty() {
                self.0.lock().note(collection, left);
            }
        }
        kept
    }
}

impl Kept<'_> {
    /// Ends a claim. Files of claims without unfinished jobs are deleted; where deletion fails, it
    /// is retried when the collection is next searched for files.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub(super) fn close(self, catalog: &Catalog) -> Result<(), IngestError> {
        if !self.older_keys.is_empty() || !self.written.is_empty() {
            let oldest = catalog.oldest_unsettled(self.collection)?;
            self.delete_over(oldest);
        }
        Ok(())
    }

    /// Deletes the files of claims whose jobs are all older than `oldest`, the oldest unfinished
    /// job.
    fn delete_over(mut self, oldest: Option<Sequence>) {
        let mut is_empty = true;
        let written = std::mem::take(&mut self.written);
        for key in std::mem::take(&mut self.older_keys).into_iter().chain(written) {
            let is_over = last_of(&key).is_none_or(|last| oldest.is_none_or(|job| last < job));
            let is_deleted = is_over && self.store.delete(&key).is_ok();
            is_empty &= is_deleted;
        }
        let mut emptied = self.all.0.lock();
        match is_empty {
            true => emptied.note(self.collection, self.left),
            false => emptied.leave(self.collection),
        }
    }

    /// The vector of a passage that was embedded in an earlier run.
    pub(super) fn vector(&self, passage: &str) -> Option<Vec<f32>> {
        match self.older.is_empty() {
            true => None,
            false => self.older.get(&hash_of(passage)).cloned(),
        }
    }

    /// Keeps embedded vectors. Errors are only logged, since they merely lose the chance to save
    /// work.
    pub(super) fn keep<'p>(&mut self, embedded: impl Iterator<Item = (&'p str, &'p [f32])>) {
        let mut body = Vec::new();
        for (passage, vector) in embedded {
            body.extend(hash_of(passage));
            body.extend_from_slice(bytemuck::cast_slice(vector));
        }
        let mut bytes = first_line(self.embedder, &body).into_bytes();
        bytes.extend(body);
        let (first, last) = self.claim;
        let slice = self.written.len();
        let name =
            format!("{}/{:020}-{:020}-{slice:06}", directory(self.collection), first.0, last.0);
        let key = Key::parse(&name).expect("ids and digits make valid keys");
        match self.store.put(&key, &bytes) {
            Ok(_) => self.written.push(key),
            Err(error) => tracing::warn!(%error, "saving embedded vectors failed"),
        }
    }

    fn read_older(&mut self) {
        let prefix = Key::parse(&directory(self.collection)).expect("ids make valid keys");
        let keys = match self.store.list(&prefix) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(%error, "listing saved vectors failed");
                return;
            }
        };
        let mut left = READ_BYTES_MAX;
        for key in keys {
            let bytes = self.store.len(&key).unwrap_or(u64::MAX);
            if bytes <= left {
                left -= bytes;
                match self.store.get(&key) {
                    Ok(bytes) => self.read_file(&bytes),
                    Err(error) => tracing::warn!(%error, %key, "reading saved vectors failed"),
                }
            }
            self.older_keys.push(key);
        }
    }

    fn read_file(&mut self, bytes: &[u8]) {
        let dimension = self.embedder.dimension();
        let Some(line_end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
        let (line, body) = (&bytes[..=line_end], &bytes[line_end + 1..]);
        if line != first_line(self.embedder, body).as_bytes() {
            return;
        }
        for entry in body.chunks_exact(HASH_BYTES + dimension * 4) {
            let (hash, values) = entry.split_at(HASH_BYTES);
            let hash = hash.try_into().expect("the hash has its width");
            let values = values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            self.older.insert(hash, values.collect());
        }
    }
}

impl Drop for Kept<'_> {
    /// After a claim that was not closed, for example because publication failed, makes the next
    /// claim of the collection search for files again.
    fn drop(&mut self) {
        if !self.written.is_empty() {
            self.all.0.lock().leave(self.collection);
        }
    }
}

fn directory(collection: CollectionId) -> String {
    format!("v1/c/{collection}/w")
}

fn first_line(embedder: &dyn Embedder, body: &[u8]) -> String {
    let (fingerprint, dimension) = (embedder.fingerprint(), embedder.dimension());
    format!("{FIRST_WORDS} {:016x} {fingerprint} {dimension}\n", xxh3_64(body))
}

fn hash_of(passage: &str) -> PassageHash {
    Sha256::digest(passage).into()
}

/// The last job of the claim that a file belongs to.
fn last_of(key: &Key) -> Option<Sequence> {
    key.as_str().rsplit('/').next()?.split('-').nth(1)?.parse().ok().map(Sequence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_embed::HashEmbedder;
    use lodestone_io::store::testing::MemoryBlobs;
    use uuid::Uuid;

    /// Goal: a claim that fails after its vectors were made, for example because it cannot be
    /// published, does not make the next one embed them again.
    #[test]
    fn vectors_of_a_claim_that_failed_are_found() {
        let (all, store) = (KeptVectors::default(), MemoryBlobs::default());
        let (id, claim) = (CollectionId(Uuid::from_u128(7)), (Sequence(1), Sequence(1)));
        let mut failed = all.open(&store, &HashEmbedder, id, claim);
        assert_eq!(failed.vector("a passage"), None);
        let vector = HashEmbedder::vector("a passage");
        failed.keep([("a passage", &vector[..])].into_iter());
        drop(failed);
        assert_eq!(all.open(&store, &HashEmbedder, id, claim).vector("a passage"), Some(vector));
    }

    /// Goal: files of a claim that ended before an older job are deleted by a later claim, although
    /// the claim of that job left none.
    #[test]
    fn files_left_beside_another_claim_are_found() {
        let (all, store) = (KeptVectors::default(), MemoryBlobs::default());
        let id = CollectionId(Uuid::from_u128(7));
        let open = |job| all.open(&store, &HashEmbedder, id, (Sequence(job), Sequence(job)));
        let (mut first, mut second) = (open(1), open(2));
        let vector = HashEmbedder::vector("a passage");
        for kept in [&mut first, &mut second] {
            kept.keep([("a passage", &vector[..])].into_iter());
        }
        second.delete_over(Some(Sequence(1)));
        first.delete_over(None);
        let files = || store.list(&Key::parse(&directory(id)).unwrap()).unwrap().len();
        assert_eq!(files(), 1);
        open(3).delete_over(None);
        assert_eq!(files(), 0);
    }
}
