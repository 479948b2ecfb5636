//! The numbered list of a collection's live segments and tombstones.
//!
//! A sealed file ([`lodestone_io::sealed`]) of the words "lodestone manifest 1". Its body is JSON:
//! the fields of [`Manifest`]. A reader rejects a broken seal, a version other than the one in the
//! file's name, another collection, and a `min_reader` above its own. Version 2 has lists of sources
//! in entries of segments; an older reader would look for them in files that are not there.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::source_list::SmallList;
use crate::collection::{CollectionError, OtherVectors};
use crate::segment::SegmentMeta;
use lodestone_io::{DirectoryEntry, Disk, sealed};
use lodestone_types::{CollectionId, SegmentId};

/// The newest `min_reader` that this program understands.
const READER_VERSION: u32 = 2;
/// The `min_reader` of manifests that have no list of sources in them.
const FIRST_READER: u32 = 1;
/// Number of earlier nonces in a manifest: enough for a slow writer to see whether its commit is
/// among the latest.
const RECENT_MAX: usize = 64;
const FIRST_WORDS: &str = "lodestone manifest 1";

/// One live segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The segment.
    pub id: Uuid,
    /// Bytes of its file.
    pub bytes: u64,
    /// Rows, dead ones included.
    pub rows: u32,
    /// Sources, dead ones included.
    pub sources: u32,
    /// Hash of its footer.
    pub checksum: u64,
    /// Its dead rows, if any.
    pub tombstones: Option<TombstoneEntry>,
    /// Its sources, in place of a file beside it; see [`Collection::fresh_entry`].
    ///
    /// [`Collection::fresh_entry`]: crate::collection::Collection::fresh_entry
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<SmallList>,
}

/// The tombstone file of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneEntry {
    /// The file.
    pub id: Uuid,
    /// Hash of its bytes.
    pub checksum: u64,
    /// Dead rows.
    pub rows: u64,
}

impl SegmentEntry {
    /// A fresh segment without dead rows.
    pub(super) fn fresh(meta: &SegmentMeta, list: Option<SmallList>) -> Self {
        let SegmentMeta { id, bytes, rows, sources, checksum } = meta.clone();
        Self { id: id.0, bytes, rows, sources, checksum, tombstones: None, list }
    }

    /// The properties that the segment's file must have.
    pub fn meta(&self) -> SegmentMeta {
        let Self { id, bytes, rows, sources, checksum, tombstones: _, list: _ } = *self;
        SegmentMeta { id: SegmentId(id), bytes, rows, sources, checksum }
    }
}

/// One version of a collection. Creating it is the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its number, also its name.
    pub version: u64,
    /// The collection, checked against swapped files.
    pub collection: Uuid,
    /// A fresh number: two manifests are the same only if this is the same.
    pub nonce: Uuid,
    /// The nonce of the version it was built upon.
    pub parent: Uuid,
    /// Nonces of earlier versions, newest first.
    pub recent: Vec<Uuid>,
    /// The writer's epoch; a lower one is fenced.
    pub epoch: u64,
    /// The oldest reader that understands it.
    pub min_reader: u32,
    /// Live segments, oldest first.
    pub segments: Vec<SegmentEntry>,
    /// Jobs whose rows are in it and that the catalog may not have marked yet.
    pub applied: Vec<u64>,
    /// Fingerprint of the model that made the vectors; none for client vectors.
    pub embedding: Option<String>,
    /// The highest sequence of any source that it or an earlier version has listed; absent where
    /// the last writer was an older release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_sequence: Option<u64>,
    /// Segments of the same rows with vectors of another model; an older release drops them with
    /// its next commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherVectors>,
}

/// The one field whose name and type no later version may change.
#[derive(Deserialize)]
struct Needed {
    min_reader: u32,
}

impl Manifest {
    /// The version before the first commit: nothing, and no file.
    pub fn empty(collection: CollectionId) -> Self {
        Self {
            version: 0,
            collection: collection.0,
            nonce: Uuid::nil(),
            parent: Uuid::nil(),
            recent: Vec::new(),
            epoch: 0,
            min_reader: FIRST_READER,
            segments: Vec::new(),
            applied: Vec::new(),
            embedding: None,
            newest_sequence: None,
            other: None,
        }
    }

    /// The next version, with the same contents so far. Epochs never fall from one version to the
    /// next: a process that was succeeded and opens the collection only then commits under the
    /// epoch of its successor, so that nobody takes over from both.
    pub fn next(&self, nonce: Uuid, epoch: u64) -> Self {
        let epoch = epoch.max(self.epoch);
        let mut recent = vec![self.nonce];
        recent.extend(self.recent.iter().take(RECENT_MAX - 1));
        let version = self.version + 1;
        Self { version, nonce, parent: self.nonce, recent, epoch, ..self.clone() }
    }

    /// The oldest reader that understands its entries.
    pub(super) fn reader_needed(&self) -> u32 {
        match self.all_segments().any(|entry| entry.list.is_some()) {
            true => READER_VERSION,
            false => FIRST_READER,
        }
    }

    /// The model behind its vectors, where it is another than that of `fingerprint`. Vectors of two
    /// models cannot be compared, so such a version is searched by words only, and no vectors are
    /// added to it. Client vectors are of no model.
    pub fn foreign_model(&self, fingerprint: &str) -> Option<&str> {
        self.model().filter(|made_by| *made_by != fingerprint)
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("plain data always prints");
        sealed::seal(FIRST_WORDS, &body)
    }

    /// Reads the file of version `version` of `collection`.
    ///
    /// # Errors
    /// [`CollectionError::BadManifest`] names the broken rule; [`CollectionError::TooNew`] where a
    /// newer reader is needed.
    pub fn decode(
        bytes: &[u8],
        collection: CollectionId,
        version: u64,
    ) -> Result<Self, CollectionError> {
        let bad = |problem: &str| CollectionError::BadManifest {
            collection,
            version,
            problem: problem.to_owned(),
        };
        if let Some(needed) = sealed::later_format(FIRST_WORDS, bytes) {
            return Err(CollectionError::TooNew { collection, needed, ours: READER_VERSION });
        }
        let body = sealed::open(FIRST_WORDS, bytes).map_err(bad)?;
        let malformed = |error: serde_json::Error| bad(&error.to_string());
        // First and alone: the other fields of a newer version may have other shapes.
        let Needed { min_reader: needed } = serde_json::from_slice(body).map_err(malformed)?;
        if needed > READER_VERSION {
            return Err(CollectionError::TooNew { collection, needed, ours: READER_VERSION });
        }
        let manifest: Self = serde_json::from_slice(body).map_err(malformed)?;
        if manifest.collection != collection.0 || manifest.version != version {
            return Err(bad("it belongs to another collection or version"));
        }
        Ok(manifest)
    }
}

/// Number of collections below a data directory whose vectors are of another model than that of
/// `fingerprint`. A server may run on it meanwhile; what cannot be read is left out.
pub fn count_foreign_models(disk: &dyn Disk, data_dir: &Path, fingerprint: &str) -> usize {
    let collections = data_dir.join("v1/c");
    let is_foreign = |entry: &DirectoryEntry| -> Option<bool> {
        let collection = CollectionId(Uuid::try_parse(&entry.name).ok()?);
        let manifests = collections.join(&entry.name).join("m");
        let newest = disk.list(&manifests).ok()?.pop()?.name;
        let bytes = disk.read(&manifests.join(&newest)).ok()?;
        let manifest = Manifest::decode(&bytes, collection, newest.parse().ok()?).ok()?;
        Some(manifest.foreign_model(fingerprint).is_some())
    };
    let entries = disk.list(&collections).unwrap_or_default();
    entries.iter().filter(|entry| is_foreign(entry) == Some(true)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::layout;

    fn sample() -> (CollectionId, Manifest) {
        let collection = CollectionId(Uuid::from_u128(9));
        let mut manifest = Manifest::empty(collection).next(Uuid::from_u128(1), 3);
        manifest.applied = vec![5, 6];
        (collection, manifest)
    }

    #[test]
    fn a_manifest_survives_and_damage_does_not() {
        let (collection, manifest) = sample();
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes, collection, 1).unwrap(), manifest);
        assert!(Manifest::decode(&bytes, collection, 2).is_err());
        assert!(Manifest::decode(&bytes, CollectionId(Uuid::from_u128(8)), 1).is_err());
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert!(Manifest::decode(&bad, collection, 1).is_err(), "byte {position}");
            assert!(Manifest::decode(&bytes[..position], collection, 1).is_err());
        }
    }

    #[test]
    fn a_newer_manifest_is_refused_by_version() {
        let (collection, mut manifest) = sample();
        manifest.min_reader = 3;
        let error = Manifest::decode(&manifest.encode(), collection, 1).unwrap_err();
        assert!(matches!(error, CollectionError::TooNew { needed: 3, ours: 2, .. }));
        let later = sealed::seal("lodestone manifest 3", b"of another shape");
        let error = Manifest::decode(&later, collection, 1).unwrap_err();
        assert!(matches!(error, CollectionError::TooNew { needed: 3, ours: 2, .. }));
    }

    #[test]
    fn recent_nonces_are_bounded_and_newest_first() {
        let (_, mut manifest) = sample();
        for n in 2..200u128 {
            manifest = manifest.next(Uuid::from_u128(n), 3);
        }
        assert_eq!(manifest.recent.len(), RECENT_MAX);
        assert_eq!(manifest.recent[0], manifest.parent);
    }

    /// Goal: the number is of what would be searched by words only, whatever else lies there.
    #[test]
    fn collections_of_another_model_are_counted() {
        let root = tempfile::tempdir().unwrap();
        let count = || count_foreign_models(&lodestone_io::RealDisk, root.path(), "new");
        assert_eq!(count(), 0, "there is no data yet");
        let id = |number| CollectionId(Uuid::from_u128(number));
        let put = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let manifest = |number: u128, version: u64, embedding: Option<&str>| {
            let entry = SegmentEntry {
                id: Uuid::from_u128(number),
                bytes: 1,
                rows: 1,
                sources: 1,
                checksum: 1,
                tombstones: None,
                list: None,
            };
            let embedding = embedding.map(str::to_owned);
            let segments = vec![entry];
            let empty = Manifest::empty(id(number));
            let bytes = Manifest { version, embedding, segments, ..empty }.encode();
            put(layout::manifest(id(number), version).as_str(), &bytes);
            bytes
        };
        manifest(1, 1, Some("old"));
        manifest(2, 1, Some("new"));
        manifest(3, 1, Some("new"));
        manifest(4, 9, Some("new"));
        manifest(4, 10, Some("old"));
        manifest(5, 1, None);
        let damaged = manifest(6, 1, Some("old"));
        put(layout::manifest(id(6), 1).as_str(), &damaged[1..]);
        put(&format!("v1/c/{}/s/a.seg", id(7)), b"no manifest");
        put("v1/c/notes/m/00000000000000000001", &damaged);
        put(&format!("v1/c/{}/m/notes", id(8)), &damaged);
        assert_eq!(count(), 2, "the first and the fourth");
    }
}
