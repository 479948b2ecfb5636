//! Entries of the log: their keys and their encoding.
//!
//! ```text
//! v1/catalog/<number, 20 digits>
//!   sealed (XXH3-64 of all that follows)
//!     labelled: a `Label` as JSON, then the content, compressed with zstd
//! ```

use lodestone_io::sealed;
use lodestone_io::store::Key;
use lodestone_types::IdSource;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limits::PIECE_BYTES_MAX;
use crate::error::{CatalogError, Result};

/// Prefix of all entries.
const ENTRIES: &str = "v1/catalog";
/// Prefix of copies of the file. Not below [`ENTRIES`], which keeps listing entries cheap.
const BASES: &str = "v1/catalog.base";
/// First words of an entry, up to its format number.
const FORMATS: &str = "lodestone catalog log ";
const WORDS: &str = "lodestone catalog log 1";
/// Format number of entries, at the end of their first words.
const LOG_FORMAT: i64 = 1;
const LABEL_WORDS: &str = "entry";
/// Compresses pages to about a quarter, faster than a network can send them.
pub(super) const COMPRESSION_LEVEL: i32 = 1;

/// Metadata of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Label {
    /// Unique id that distinguishes this entry from another one written for the same number.
    pub(super) nonce: Uuid,
    /// Nonce of the previous entry; `None` for the first.
    pub(super) parent: Option<Uuid>,
    /// Number of the claim under which it was written; for a claim, its own number.
    pub(super) claim: u64,
    /// Number of the newest base before it; 0 if there is none.
    pub(super) base: u64,
    pub(super) kind: Kind,
}

/// The effect of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A process takes over the log.
    Claim {
        /// The format to which it migrates the catalog.
        format: usize,
        /// Whether it waits for followers before acknowledging a change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// Consecutive bytes of SQLite's write-ahead log.
    Frames(Frames),
    /// A copy of the database file.
    Base(Base),
}

/// Position of bytes in the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frames {
    /// Number of times the write-ahead log has been restarted from its beginning, over all
    /// processes.
    pub(super) lap: u64,
    /// Offset of the first byte in the write-ahead log; offset 0 includes the header.
    pub(super) offset: u64,
    /// Number of bytes.
    pub(super) bytes: u64,
}

/// A copy of the database file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    /// Key of the copy, which is compressed with zstd.
    pub(super) blob: String,
    /// Length of the file in bytes.
    pub(super) bytes: u64,
    /// SHA-256 of the file, in hex.
    pub(super) sha256: String,
    /// Number of the first entry to apply to it, which may precede this entry.
    pub(super) first: u64,
    /// No frames and no bases remain below this number.
    pub(super) collected: u64,
}

/// A decoded entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) label: Label,
    packed: Vec<u8>,
}

impl Entry {
    /// Encodes an entry.
    pub(super) fn encode(label: &Label, content: &[u8]) -> Vec<u8> {
        let json = serde_json::to_vec(label).expect("a label is valid JSON");
        let packed = zstd::bulk::compress(content, COMPRESSION_LEVEL);
        let packed = packed.expect("compression into memory does not fail");
        sealed::seal(WORDS, &sealed::label(LABEL_WORDS, &json, &packed))
    }

    /// Decodes an entry; its content stays compressed.
    ///
    /// # Errors
    /// The violated rule, as a phrase.
    pub(super) fn decode(bytes: &[u8]) -> std::result::Result<Self, String> {
        let body = sealed::open(WORDS, bytes)?;
        let (json, at) = sealed::read_label(LABEL_WORDS, body)?;
        let label = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        Ok(Self { label, packed: body[at..].to_vec() })
    }

    /// Decompresses the content.
    ///
    /// # Errors
    /// The violated rule, as a phrase.
    pub(super) fn content(&self) -> std::result::Result<Vec<u8>, String> {
        let content = zstd::bulk::decompress(&self.packed, PIECE_BYTES_MAX);
        content.map_err(|error| format!("its content cannot be decompressed: {error}"))
    }
}

/// Whether these bytes are an entry in a format other than this release's.
pub(super) fn is_of_other_format(bytes: &[u8]) -> bool {
    bytes.starts_with(FORMATS.as_bytes()) && !bytes.starts_with(format!("{WORDS} ").as_bytes())
}

/// Key of an entry.
pub(super) fn key(number: u64) -> Key {
    Key::parse(&format!("{ENTRIES}/{number:020}")).expect("a number makes a key")
}

/// Prefix of all entries.
pub(super) fn entries() -> Key {
    Key::parse(ENTRIES).expect("a fixed name is a key")
}

/// Prefix of all copies of the file.
pub(super) fn bases() -> Key {
    Key::parse(BASES).expect("a fixed name is a key")
}

/// Parses the number of an entry from its key.
///
/// # Errors
/// [`CatalogError::Corrupt`] if the key is not that of an entry.
pub(super) fn number_of(key: &Key) -> Result<u64> {
    let digits = key.last();
    let number = digits.parse().ok().filter(|number| self::key(*number) == *key);
    number.ok_or_else(|| CatalogError::corrupt(format!("{key} is not an entry of a catalog log")))
}

/// Makes a fresh key for a copy of the file made under `claim`.
pub(super) fn base_key(claim: u64, ids: &dyn IdSource) -> Key {
    let name = format!("{claim:020}-{}", ids.uuid().simple());
    bases().join(&name).expect("digits and letters make a key")
}

/// The claim under which a copy of the file was made, from its key.
pub(super) fn claim_of_base(key: &Key) -> Option<u64> {
    key.last().split_once('-')?.0.parse().ok()
}

/// The error for undecodable bytes at `key`. A later format counts as too new, not as damage.
pub(super) fn refused(key: &Key, bytes: &[u8], rule: impl std::fmt::Display) -> CatalogError {
    match sealed::later_format(WORDS, bytes) {
        Some(found) => CatalogError::TooNew {
            path: key.as_str().into(),
            found: found.into(),
            supported: LOG_FORMAT,
        },
        None => damaged(key, rule),
    }
}

/// The error for an entry or a copy of the file that violates a rule.
pub(super) fn damaged(key: &Key, problem: impl std::fmt::Display) -> CatalogError {
    CatalogError::corrupt(format!("{key} in the store: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back_and_damage_is_noticed() {
        let kind = Kind::Frames(Frames { lap: 3, offset: 32, bytes: 9000 });
        let nonce = Uuid::from_u128(7);
        let label = Label { nonce, parent: Some(Uuid::from_u128(6)), claim: 1, base: 2, kind };
        let bytes = Entry::encode(&label, &[5; 9000]);
        let entry = Entry::decode(&bytes).unwrap();
        assert_eq!((entry.label.clone(), entry.content().unwrap()), (label, vec![5; 9000]));
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert!(Entry::decode(&bad).is_err(), "byte {position}");
            assert!(Entry::decode(&bytes[..position]).is_err());
        }
        assert!(!is_of_other_format(&bytes));
        assert!(is_of_other_format(b"lodestone catalog log 12 0 0\n"));
    }

    #[test]
    fn keys_sort_as_numbers_and_foreign_ones_are_refused() {
        assert!(key(9) < key(10) && key(u64::MAX) > key(10));
        assert_eq!(number_of(&key(17)).unwrap(), 17);
        for name in ["v1/catalog/17", "v1/catalog/x", "v1/catalog/1/00000000000000000017"] {
            assert!(number_of(&Key::parse(name).unwrap()).is_err(), "{name}");
        }
        let ids = lodestone_types::SeededIds::new(1);
        assert_eq!(claim_of_base(&base_key(12, &ids)), Some(12));
    }
}
