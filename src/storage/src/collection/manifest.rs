//! Manifests: the numbered lists of a collection's live segments and tombstones.
//!
//! A manifest is a sealed file ([`lodestone_io::sealed`]) with the first words "lodestone manifest
//! 1". Its body is JSON with the fields of [`Manifest`]. A reader rejects a broken seal, a version
//! that differs from the file's name, a wrong collection, and a `min_reader` above its own. Reader
//! version 2 understands source lists in segment entries; an older reader would look for them in
//! files that do not exist.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::source_list::SmallList;
use crate::collection::{CollectionError, OtherVectors};
use crate::segment::SegmentMeta;
use lodestone_io::{DirectoryEntry, Disk, sealed};
use lodestone_types::{CollectionId, SegmentId};

/// Newest `min_reader` that this program understands.
const READER_VERSION: u32 = 2;
/// The `min_reader` of manifests without source lists.
const FIRST_READER: u32 = 1;
/// Number of earlier nonces in a manifest: enough for a slow writer to see whether its commit is
/// among the latest.
const RECENT_MAX: usize = 64;
const FIRST_WORDS: &str = "lodestone manifest 1";

/// Entry of a live segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The segment's id.
    pub id: Uuid,
    /// Length of the segment file in bytes.
    pub bytes: u64,
    /// Number of rows, including dead ones.
    pub rows: u32,
    /// Number of sources, including dead ones.
    pub sources: u32,
    /// Hash of the segment's footer.
    pub checksum: u64,
    /// The segment's tombstones, if it has any.
    pub tombstones: Option<TombstoneEntry>,
    /// The segment's source list, in place of a file beside the segment; see
    /// [`Collection::fresh_entry`].
    ///
    /// [`Collection::fresh_entry`]: crate::collection::Collection::fresh_entry
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<SmallList>,
}

/// Entry of a segment's tombstone file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneEntry {
    /// Id of the file.
    pub id: Uuid,
    /// Hash of the file.
    pub checksum: u64,
    /// Number of dead rows.
    pub rows: u64,
}

impl SegmentEntry {
    /// Entry of a fresh segment without dead rows.
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

/// One version of a collection. Creating its manifest is the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Number of the version, which is also the file's name.
    pub version: u64,
    /// The collection; guards against swapped files.
    pub collection: Uuid,
    /// A fresh random id: two manifests are the same if and only if their nonces are equal.
    pub nonce: Uuid,
    /// Nonce of the version it was built on.
    pub parent: Uuid,
    /// Nonces of earlier versions, newest first.
    pub recent: Vec<Uuid>,
    /// The writer's epoch; writers with a lower one are fenced.
    pub epoch: u64,
    /// The oldest reader version that understands the manifest.
    pub min_reader: u32,
    /// Live segments, oldest first.
    pub segments: Vec<SegmentEntry>,
    /// Jobs whose rows it contains and that the catalog may not have marked yet.
    pub applied: Vec<u64>,
    /// Fingerprint of the model that made the vectors; `None` for client vectors.
    pub embedding: Option<String>,
    /// The highest sequence of any source that this or an earlier version has listed; absent if the
    /// last writer was an older release.
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
    /// The version before the first commit: empty, and without a file.
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

    /// Starts the next version, with the same contents. Epochs never decrease from one version to
    /// the next: a process that was superseded but opens the collection only later commits under
    /// the epoch of its successor, so that nobody takes over from both.
    pub fn next(&self, nonce: Uuid, epoch: u64) -> Self {
        let epoch = epoch.max(self.epoch);
        let mut recent = vec![self.nonce];
        recent.extend(self.recent.iter().take(RECENT_MAX - 1));
        let version = self.version + 1;
        Self { version, nonce, parent: self.nonce, recent, epoch, ..self.clone() }
    }

    /// The oldest reader version that understands the entries.
    pub(super) fn reader_needed(&self) -> u32 {
        match self.all_segments().any(|entry| entry.list.is_some()) {
            true => READER_VERSION,
            false => FIRST_READER,
        }
    }

    /// The model behind the vectors, if it differs from `fingerprint`. Vectors of two models cannot
    /// be compared, so such a version is searched by keywords only, and no vectors are added to it.
    /// Client vectors have no model.
    pub fn foreign_model(&self, fingerprint: &str) -> Option<&str> {
        self.model().filter(|made_by| *made_by != fingerprint)
    }

    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("plain data always prints");
        sealed::seal(FIRST_WORDS, &body)
    }

    /// Decodes the file of version `version` of `collection`.
    ///
    /// # Errors
    /// [`CollectionError::BadManifest`] naming the broken rule; [`CollectionError::TooNew`] if a
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
        // Parsed first and alone, because the other fields of a newer version may have other
        // shapes.
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

/// Counts the collections in a data directory whose vectors come from a model other than
/// `fingerprint`. A server may be running on the directory; unreadable collections are skipped.
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

    /// Goal: counts the collections that would be searched by keywords only, whatever else is
    /// stored.
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
