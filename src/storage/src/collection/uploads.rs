//! Upload blobs: the originals of a collection, byte for byte. The label of each suffices to
//! process it again when everything derived from it is lost.
//!
//! ```text
//! v1/raw/<collection>/<time-sortable id>-<first 32 hex digits of the SHA-256 of the file>
//! ```
//! A labelled file ([`lodestone_io::sealed`]) with the first words "lodestone upload 1": the label
//! is JSON with the fields of [`UploadLabel`], the content is the original. One directory per
//! collection saves two fsyncs per acknowledged upload compared with one per source. The id
//! contains the time at which the upload began, which distinguishes an orphan from an upload whose
//! job is about to be written.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::collection::CollectionError;
use crate::collection::open::is_damage;
use lodestone_io::store::{BlobStore, Key, StoreError};
use lodestone_io::{FileSlice, IoError, sealed};
use lodestone_types::random::wire_id_time;
use lodestone_types::{CollectionId, IdSource, Metadata, Origin, Timestamp};

const FIRST_WORDS: &str = "lodestone upload 1";
/// The number that ends [`FIRST_WORDS`].
const FORMAT: u32 = 1;
const HASH_DIGITS: usize = 32;
/// Bytes of the first read: the first line and, in most cases, the label.
const HEAD_BYTES: usize = 4096;
/// Originals verified in parallel on a shared store.
const PARALLEL: usize = 8;
/// Upper bound on the bytes of a label; two metadata maps and the origin are far smaller.
const LABEL_BYTES_MAX: usize = 16 << 20;

/// Label of an upload: the fields given when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadLabel {
    /// Name of the sub-tenant.
    pub sub_tenant: String,
    /// Id of the source.
    pub source: String,
    /// Kind of source: `file`, `text`, `webpage` or `app`.
    pub kind: String,
    /// File name; empty if there is none.
    pub filename: String,
    /// Media type of the content.
    pub content_type: String,
    /// Time of acceptance, in milliseconds since the epoch.
    pub uploaded_at: u64,
    /// The tenant metadata, if the upload has any.
    pub tenant_metadata: Option<Metadata>,
    /// The document metadata, if the upload has any.
    pub document_metadata: Option<Metadata>,
    /// Origin of the upload; absent in labels of older versions.
    #[serde(default)]
    pub origin: Origin,
    /// A sequence number taken before the upload was accepted; its own is higher. Orders the
    /// uploads of a source independently of the clock; absent in labels of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// An original, read back and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// The label.
    pub label: UploadLabel,
    /// The original bytes.
    pub content: Vec<u8>,
}

/// An original whose label has been read, while its content is still in the file.
#[derive(Debug)]
pub struct StoredUpload {
    /// The upload's label.
    pub label: UploadLabel,
    raw_key: String,
    file: FileSlice,
    content: FileSlice,
}

impl StoredUpload {
    /// The content, unverified; [`Self::read`] verifies it.
    pub fn content(&self) -> &FileSlice {
        &self.content
    }

    /// Reads the file once, piece by piece, compares it with the hash in its name, and passes the
    /// content to `see` along the way. If a local copy is damaged, it is fetched again and read
    /// from the start with a fresh `T`.
    ///
    /// # Errors
    /// [`CollectionError::BadUpload`] if the bytes do not match the hash; errors of the store.
    pub fn read<T: Default>(
        &mut self,
        store: &dyn BlobStore,
        see: impl Fn(&mut T, &[u8]),
    ) -> Result<T, CollectionError> {
        let read = |stored: &Self| {
            let mut seen = T::default();
            stored.verify(|piece| see(&mut seen, piece)).map(|()| seen)
        };
        match read(self) {
            Err(error) if is_damage(&error) && store.forget_copy(&key_of(&self.raw_key)?) => {
                tracing::warn!(%error, "a damaged cached copy is downloaded again");
                *self = open(store, &self.raw_key)?;
                read(self)
            }
            read => read,
        }
    }

    fn verify(&self, mut see: impl FnMut(&[u8])) -> Result<(), CollectionError> {
        let mut hash = Sha256::new();
        let mut label_left = self.file.len() - self.content.len();
        let read = self.file.pieces(|piece| {
            hash.update(piece);
            let of_label = label_left.min(piece.len() as u64) as usize;
            label_left -= of_label as u64;
            see(&piece[of_label..]);
        });
        read.map_err(StoreError::from)?;
        check_hash(&self.raw_key, hash)
    }
}

/// Key prefix of the originals of a collection.
pub fn prefix(collection: CollectionId) -> Key {
    Key::parse(&format!("v1/raw/{collection}")).expect("opaque ids make valid keys")
}

/// Stores an original. On return it survives a power cut; nothing refers to it yet. Costs two
/// fsyncs.
///
/// # Errors
/// Errors of the store; no file is left behind.
pub fn put(
    store: &dyn BlobStore,
    ids: &dyn IdSource,
    collection: CollectionId,
    label: &UploadLabel,
    content: &[u8],
) -> Result<Key, CollectionError> {
    let label_json = serde_json::to_vec(label).expect("plain data always prints");
    let head = sealed::label(FIRST_WORDS, &label_json, b"");
    let hash = hex::encode(Sha256::new_with_prefix(&head).chain_update(content).finalize());
    let id = ids.wire_id("", Timestamp(label.uploaded_at));
    let name = format!("v1/raw/{collection}/{id}-{}", &hash[..HASH_DIGITS]);
    let key = Key::parse(&name).expect("ids and digits make valid keys");
    // Two writes, so that content of up to 100 MiB need not be copied.
    store.put_with(&key, &mut |out| {
        out.write_all(&head)?;
        out.write_all(content)
    })?;
    Ok(key)
}

/// Reads an original; if a local copy is damaged, fetches it again.
fn read<T>(
    store: &dyn BlobStore,
    raw_key: &str,
    read: impl Fn(&Key) -> Result<T, CollectionError>,
) -> Result<T, CollectionError> {
    let key = key_of(raw_key)?;
    match read(&key) {
        Err(error) if is_damage(&error) && store.forget_copy(&key) => {
            tracing::warn!(%error, "a damaged cached copy is downloaded again");
            read(&key)
        }
        read => read,
    }
}

/// Reads an original with its label and verifies it.
///
/// # Errors
/// [`CollectionError::BadUpload`] if the bytes do not match the format or the hash in the name;
/// errors of the store.
pub fn get(store: &dyn BlobStore, raw_key: &str) -> Result<Upload, CollectionError> {
    read(store, raw_key, |key| decode(raw_key, store.get(key)?))
}

fn decode(raw_key: &str, mut bytes: Vec<u8>) -> Result<Upload, CollectionError> {
    check_hash(raw_key, Sha256::new_with_prefix(&bytes))?;
    let bad = |problem: &str| bad_upload(raw_key, problem);
    require_own_format(raw_key, &bytes)?;
    let (label, content_at) = sealed::read_label(FIRST_WORDS, &bytes).map_err(bad)?;
    let label = serde_json::from_slice(label).map_err(|error| bad(&error.to_string()))?;
    let content = bytes.split_off(content_at);
    Ok(Upload { label, content })
}

/// Opens an original and reads its label, but not its content.
///
/// # Errors
/// [`CollectionError::BadUpload`] if the label is malformed; errors of the store.
pub fn open(store: &dyn BlobStore, raw_key: &str) -> Result<StoredUpload, CollectionError> {
    read(store, raw_key, |key| open_file(raw_key, store.open(key)?))
}

/// Like [`open`], but also reads the content once and verifies it.
///
/// # Errors
/// As [`open`] and [`StoredUpload::read`].
pub fn open_verified(
    store: &dyn BlobStore,
    raw_key: &str,
) -> Result<StoredUpload, CollectionError> {
    let mut stored = open(store, raw_key)?;
    stored.read(store, |(): &mut (), _| {})?;
    Ok(stored)
}

fn open_file(raw_key: &str, file: FileSlice) -> Result<StoredUpload, CollectionError> {
    let bad = |problem: &str| bad_upload(raw_key, problem);
    let io = |error: IoError| CollectionError::from(StoreError::from(error));
    let mut head = vec![0; HEAD_BYTES];
    let read = file.read_at(0, &mut head).map_err(io)?;
    head.truncate(read);
    require_own_format(raw_key, &head)?;
    let range = sealed::label_range(FIRST_WORDS, &head).map_err(bad)?;
    if range.len() > LABEL_BYTES_MAX || range.end as u64 > file.len() {
        return Err(bad("the label is cut"));
    }
    let mut label = vec![0; range.len()];
    file.read_at(range.start as u64, &mut label).map_err(io)?;
    let label = serde_json::from_slice(&label).map_err(|error| bad(&error.to_string()))?;
    let content = file.after(range.end as u64);
    Ok(StoredUpload { label, raw_key: raw_key.to_owned(), file, content })
}

/// Verifies originals piece by piece, several in parallel on a shared store. Returns the positions
/// of those that are damaged or missing.
///
/// # Errors
/// The first error that is not about one original, for instance of a store that does not answer.
pub fn verify_all(
    store: &dyn BlobStore,
    raw_keys: &[&str],
) -> Result<Vec<(usize, CollectionError)>, CollectionError> {
    let threads = if store.is_shared() { PARALLEL } else { 1 };
    let verify = |of: usize| -> Result<Vec<(usize, CollectionError)>, CollectionError> {
        let mut failed = Vec::new();
        for (at, key) in raw_keys.iter().enumerate().skip(of).step_by(threads) {
            match open_verified(store, key) {
                Err(error) if is_damage(&error) => failed.push((at, error)),
                verified => drop(verified?),
            }
        }
        Ok(failed)
    };
    let verify = &verify;
    let parts: Vec<_> = std::thread::scope(|scope| {
        let own = threads.min(raw_keys.len());
        let others: Vec<_> = (1..own).map(|of| scope.spawn(move || verify(of))).collect();
        let joined = others.into_iter().map(|thread| thread.join().expect("it does not panic"));
        std::iter::once(verify(0)).chain(joined).collect()
    });
    let parts: Result<Vec<_>, _> = parts.into_iter().collect();
    Ok(parts?.into_iter().flatten().collect())
}

fn key_of(raw_key: &str) -> Result<Key, CollectionError> {
    Key::parse(raw_key).map_err(|_| bad_upload(raw_key, "the name is not a key"))
}

/// Refuses an original that a later release has stored, as it is not damaged.
fn require_own_format(raw_key: &str, head: &[u8]) -> Result<(), CollectionError> {
    let Some(needed) = sealed::later_format(FIRST_WORDS, head) else { return Ok(()) };
    let collection = raw_key.split('/').nth(2).and_then(|name| Uuid::try_parse(name).ok());
    let collection = CollectionId(collection.unwrap_or_default());
    Err(CollectionError::TooNew { collection, needed, ours: FORMAT })
}

fn bad_upload(raw_key: &str, problem: &str) -> CollectionError {
    CollectionError::BadUpload { key: raw_key.to_owned(), problem: problem.to_owned() }
}

fn check_hash(raw_key: &str, hash: Sha256) -> Result<(), CollectionError> {
    let expected = raw_key.rsplit('-').next().unwrap_or_default();
    match hex::encode(hash.finalize())[..HASH_DIGITS] == *expected {
        true => Ok(()),
        false => Err(bad_upload(raw_key, "the bytes do not match the hash in the name")),
    }
}

/// The time at which the upload with this key began.
pub fn uploaded_at(key: &Key) -> Option<Timestamp> {
    wire_id_time(key.last().split('-').next()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use lodestone_io::store::testing::{FaultyBlobs, MemoryBlobs};
    use lodestone_types::RandomIds;

    #[test]
    fn the_time_can_be_read_from_the_name() {
        let at = Timestamp(1_757_402_409_727);
        let id = RandomIds.wire_id("", at);
        let collection = CollectionId(Uuid::from_u128(7));
        let key = Key::parse(&format!("v1/raw/{collection}/{id}-{}", "0".repeat(32))).unwrap();
        assert_eq!(uploaded_at(&key), Some(at));
        assert_eq!(uploaded_at(&prefix(collection)), None);
    }

    /// Goal: an original stored by a later release is not taken for damage, which would end its
    /// job.
    #[test]
    fn an_original_of_a_later_release_is_told_from_a_damaged_one() {
        let store = MemoryBlobs::default();
        for (words, is_later) in [("lodestone upload 9", true), ("lodestone upload x", false)] {
            let bytes = sealed::label(words, b"{}", b"content");
            let hash = hex::encode(Sha256::digest(&bytes));
            let collection = CollectionId(Uuid::from_u128(7));
            let name = format!("v1/raw/{collection}/a-{}", &hash[..HASH_DIGITS]);
            store.put(&Key::parse(&name).unwrap(), &bytes).unwrap();
            assert_eq!(get(&store, &name).unwrap_err().is_too_new(), is_later, "{words}");
            assert_eq!(open(&store, &name).unwrap_err().is_too_new(), is_later, "{words}");
        }
    }

    /// Goal: if the local copy of an original is damaged, the one in the bucket is read.
    #[test]
    fn a_damaged_copy_of_an_original_is_fetched_again() {
        let label = UploadLabel {
            sub_tenant: String::new(),
            source: "a".into(),
            kind: "text".into(),
            filename: String::new(),
            content_type: String::new(),
            uploaded_at: 1_757_402_409_727,
            tenant_metadata: None,
            document_metadata: None,
            origin: Origin::default(),
            after: None,
        };
        let memory = Arc::new(MemoryBlobs::default());
        let id = CollectionId(Uuid::from_u128(7));
        let key = put(&*memory, &RandomIds, id, &label, b"content").unwrap();
        let sound = memory.get(&key).unwrap();
        let copies = FaultyBlobs::new(Arc::clone(&memory) as Arc<dyn BlobStore>);
        let (bucket, bytes) = (Arc::clone(&memory), sound.clone());
        copies.set_copies(move |key| bucket.put(key, &bytes).is_ok());
        let mut flipped = sound;
        *flipped.last_mut().unwrap() ^= 1;
        let damage = || memory.put(&key, &flipped).unwrap();
        damage();
        assert!(get(&*memory, key.as_str()).is_err(), "without copies it is damage");
        assert_eq!(get(&copies, key.as_str()).unwrap().content, b"content");
        damage();
        assert_eq!(open_verified(&copies, key.as_str()).unwrap().content().len(), 7);
        damage();
        assert!(verify_all(&copies, &[key.as_str()]).unwrap().is_empty());
        // Pieces read from the damaged copy do not count.
        damage();
        let mut stored = open(&copies, key.as_str()).unwrap();
        let gather = |content: &mut Vec<u8>, piece: &[u8]| content.extend_from_slice(piece);
        assert!(stored.read(&*memory, gather).is_err());
        assert_eq!(stored.read(&copies, gather).unwrap(), b"content");
        memory.put(&key, b"cut").unwrap();
        assert_eq!(open(&copies, key.as_str()).unwrap().label, label);
    }

    /// Goal: an upload that is cut, or whose label claims an impossible length, is damage; no
    /// memory is allocated for the claim.
    #[test]
    fn labels_that_are_cut_are_damage() {
        let store = MemoryBlobs::default();
        let key = Key::parse("v1/raw/c/x-0").unwrap();
        for length in [3, 4096, LABEL_BYTES_MAX + 1, usize::MAX - 100, usize::MAX] {
            store.put(&key, format!("{FIRST_WORDS} {length}\n{{}}").as_bytes()).unwrap();
            let error = open(&store, key.as_str()).unwrap_err();
            assert!(matches!(error, CollectionError::BadUpload { .. }), "{error}");
            assert!(error.to_string().ends_with("the label is cut"), "{length}: {error}");
        }
        store.put(&key, format!("{FIRST_WORDS} 2\n{{}}").as_bytes()).unwrap();
        let error = open(&store, key.as_str()).unwrap_err();
        assert!(error.to_string().contains("missing field"), "{error}");
    }
}
