//! Upload blobs: the originals of a collection, byte for byte, each with a label from which it can
//! be processed again when everything derived from it is lost.
//!
//! ```text
//! v1/raw/<collection>/<time-sortable id>-<first 32 hex digits of the SHA-256 of the file>
//! ```
//! A labelled file ([`lodestone_io::sealed`]) of the words "lodestone upload 1": the label is JSON,
//! the fields of [`UploadLabel`]; the content is the original. One directory per collection costs
//! two fsyncs less for every acknowledged upload than one per source. The id holds the time at
//! which an upload began, so that an orphan can be distinguished from an upload whose job is about
//! to be written.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::collection::CollectionError;
use lodestone_io::sealed;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::random::wire_id_time;
use lodestone_types::{CollectionId, IdSource, Metadata, Origin, Timestamp};

const FIRST_WORDS: &str = "lodestone upload 1";
const HASH_DIGITS: usize = 32;

/// Label of an upload: the fields given when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadLabel {
    /// The sub-tenant.
    pub sub_tenant: String,
    /// The source.
    pub source: String,
    /// `file`, `text`, `webpage` or `app`.
    pub kind: String,
    /// Name of the file; empty when none.
    pub filename: String,
    /// Media type.
    pub content_type: String,
    /// When it was accepted, milliseconds since the epoch.
    pub uploaded_at: u64,
    /// The tenant's map, if the upload has one.
    pub tenant_metadata: Option<Metadata>,
    /// The document's map, if the upload has one.
    pub document_metadata: Option<Metadata>,
    /// Its origin; absent in labels of older versions.
    #[serde(default)]
    pub origin: Origin,
}

/// An original, read back and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// Its label.
    pub label: UploadLabel,
    /// The bytes.
    pub content: Vec<u8>,
}

/// Key prefix of the originals of a collection.
pub fn prefix(collection: CollectionId) -> Key {
    Key::parse(&format!("v1/raw/{collection}")).expect("opaque ids make valid keys")
}

/// Stores an original. Survives a power cut on return; nothing refers to it yet.
/// Costs two fsyncs.
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
    let bytes = sealed::label(FIRST_WORDS, &label_json, content);
    let hash = hex::encode(Sha256::digest(&bytes));
    let id = ids.wire_id("", Timestamp(label.uploaded_at));
    let name = format!("v1/raw/{collection}/{id}-{}", &hash[..HASH_DIGITS]);
    let key = Key::parse(&name).expect("ids and digits make valid keys");
    store.put(&key, &bytes)?;
    Ok(key)
}

/// Reads an original back.
///
/// # Errors
/// [`CollectionError::BadUpload`] if the bytes do not match the hash in the name or the format;
/// errors of the store.
pub fn get(store: &dyn BlobStore, raw_key: &str) -> Result<Upload, CollectionError> {
    let bad = |problem: &str| CollectionError::BadUpload {
        key: raw_key.to_owned(),
        problem: problem.to_owned(),
    };
    let key = Key::parse(raw_key).map_err(|_| bad("the name is not a key"))?;
    let mut bytes = store.get(&key)?;
    let expected = raw_key.rsplit('-').next().unwrap_or_default();
    if hex::encode(Sha256::digest(&bytes))[..HASH_DIGITS] != *expected {
        return Err(bad("the bytes do not match the hash in the name"));
    }
    let (label, content_at) = sealed::read_label(FIRST_WORDS, &bytes).map_err(bad)?;
    let label = serde_json::from_slice(label).map_err(|error| bad(&error.to_string()))?;
    let content = bytes.split_off(content_at);
    Ok(Upload { label, content })
}

/// Time at which the upload of a key began.
pub fn uploaded_at(key: &Key) -> Option<Timestamp> {
    wire_id_time(key.last().split('-').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::RandomIds;
    use uuid::Uuid;

    #[test]
    fn the_time_can_be_read_from_the_name() {
        let at = Timestamp(1_757_402_409_727);
        let id = RandomIds.wire_id("", at);
        let collection = CollectionId(Uuid::from_u128(7));
        let key = Key::parse(&format!("v1/raw/{collection}/{id}-{}", "0".repeat(32))).unwrap();
        assert_eq!(uploaded_at(&key), Some(at));
        assert_eq!(uploaded_at(&prefix(collection)), None);
    }
}
