//! The originals of a collection: what was uploaded, byte for byte, with enough beside it to
//! process it again when everything derived from it is lost.
//!
//! ```text
//! v1/raw/<collection>/<time-sortable id>-<first 32 hex digits of the SHA-256 of the file>
//!
//! "lodestone upload 1 " | bytes of the label | "\n"
//! label: JSON, the fields of [`UploadLabel`]
//! the original's bytes to the end of the file
//! ```
//! DESIGN 3 draws a directory per source; one directory per collection costs two fsyncs less for
//! every acknowledged upload. The id tells when an upload began, so that an orphan can be told
//! from one whose job is about to be written.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::collection::CollectionError;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{CollectionId, IdSource, Metadata, Origin, Timestamp};

const FIRST_WORDS: &str = "lodestone upload 1 ";
const HASH_DIGITS: usize = 32;

/// What was said about an upload when it was accepted.
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
    /// The tenant's map, where the upload gave one.
    pub tenant_metadata: Option<Metadata>,
    /// The document's map, where the upload gave one.
    pub document_metadata: Option<Metadata>,
    /// Where it comes from; absent in labels of older versions.
    #[serde(default)]
    pub origin: Origin,
}

/// An original, read back and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// What was said about it.
    pub label: UploadLabel,
    /// The bytes.
    pub content: Vec<u8>,
}

/// Every original of a collection.
pub fn prefix(collection: CollectionId) -> Key {
    Key::parse(&format!("v1/raw/{collection}")).expect("opaque ids make valid keys")
}

/// Stores an original. Survives a power cut on return; nothing refers to it yet.
/// Costs two fsyncs.
///
/// # Errors
/// What the store says; no file is left behind.
pub fn put(
    store: &dyn BlobStore,
    ids: &dyn IdSource,
    collection: CollectionId,
    label: &UploadLabel,
    content: &[u8],
) -> Result<Key, CollectionError> {
    let label_json = serde_json::to_vec(label).expect("plain data always prints");
    let mut bytes = format!("{FIRST_WORDS}{}\n", label_json.len()).into_bytes();
    bytes.reserve_exact(label_json.len() + content.len());
    bytes.extend(label_json);
    bytes.extend(content);
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
/// [`CollectionError::BadUpload`] where the bytes do not match the hash in the name, or the
/// drawing above; what the store says otherwise.
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
    let line_end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| bad("no label"))?;
    let length = std::str::from_utf8(&bytes[..line_end])
        .ok()
        .and_then(|line| line.strip_prefix(FIRST_WORDS))
        .and_then(|digits| digits.parse::<usize>().ok())
        .ok_or_else(|| bad("another first line"))?;
    let label_start = line_end + 1;
    let label_end = label_start.checked_add(length).ok_or_else(|| bad("cut"))?;
    let label_bytes = bytes.get(label_start..label_end).ok_or_else(|| bad("cut"))?;
    let label = serde_json::from_slice(label_bytes).map_err(|error| bad(&error.to_string()))?;
    let content = bytes.split_off(label_end);
    Ok(Upload { label, content })
}

/// When the upload behind a key began.
pub fn uploaded_at(key: &Key) -> Option<Timestamp> {
    const BASE32: &str = "0123456789abcdefghjkmnpqrstvwxyz";
    let name = key.as_str().rsplit('/').next()?;
    let id = name.split('-').next().filter(|id| id.len() == 26)?;
    let mut value: u128 = 0;
    for digit in id.chars() {
        value = value << 5 | BASE32.find(digit)? as u128;
    }
    Some(Timestamp((value >> 80) as u64))
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
