//! Tests of the guarantees of a collection, one file per topic.

mod edits;
mod garbage;
mod kept;
mod listings;
mod merging;
mod quarantine;
mod reading;
mod recovery;
mod reembedding;
mod schedule;
mod scrub;
mod small_lists;
mod takeover;
mod verify;
mod writers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::segment::NewRow;
use lodestone_embed::HashEmbedder;
use lodestone_io::store::{Key, LocalBlobs};
use lodestone_io::{DataDir, Disk, RealDisk};
use lodestone_types::{
    ChunkPlace, ErrorKind, RowId, RowPayload, SeededIds, SourceId, SourceKind, SubTenantId,
    Timestamp,
};

const ID: CollectionId = CollectionId(Uuid::from_u128(0xC0));
const DIMENSION: usize = 64;

/// Visible sources by sub-tenant and id: sequence, then index and text of each chunk.
type Contents = BTreeMap<(String, String), (u64, Vec<(u32, String)>)>;

/// A data directory in which collections can be opened repeatedly.
struct CollectionDir {
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    _root: tempfile::TempDir,
}

impl CollectionDir {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_path_buf();
        Self::on(root, Arc::new(RealDisk), &path)
    }

    fn on(root: tempfile::TempDir, disk: Arc<dyn Disk>, path: &Path) -> Self {
        let data = DataDir::open(path, disk).unwrap();
        let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(Arc::new(data)));
        Self { store, ids: Arc::new(SeededIds::new(1)), _root: root }
    }

    fn try_open(
        &self,
        epoch: u64,
        expected: Option<CommitHead>,
    ) -> Result<Collection, CollectionError> {
        Collection::open(ID, Arc::clone(&self.store), Arc::clone(&self.ids), epoch, expected)
    }

    fn open(&self) -> Collection {
        self.try_open(1, None).unwrap()
    }

    /// Names of all files of the collection, without its prefix.
    fn files(&self) -> Vec<String> {
        let prefix = layout::collection_prefix(ID);
        let name = |key: &Key| key.as_str()[prefix.as_str().len() + 1..].to_owned();
        self.store.list(&prefix).unwrap().iter().map(name).collect()
    }

    fn count(&self, directory: &str) -> usize {
        self.files().iter().filter(|name| name.starts_with(directory)).count()
    }
}

fn sub(name: &str) -> SubTenantId {
    SubTenantId::parse(name).unwrap()
}

fn named(sub_tenant: &str, id: &str) -> (SubTenantId, SourceId) {
    (sub(sub_tenant), SourceId::parse(id).unwrap())
}

/// A source whose chunks have the given texts. Its upload is named after id and sequence.
fn source(sub_tenant: &str, id: &str, sequence: u64, texts: &[&str]) -> NewSource {
    let (sub_tenant, id) = named(sub_tenant, id);
    let raw_key = format!("v1/raw/{id}-{sequence}");
    let record = SourceRecord {
        content_type: "text/plain".into(),
        size_bytes: 1,
        raw_key,
        ..SourceRecord::new(
            sub_tenant,
            id,
            SourceKind::Text,
            Sequence(sequence),
            Timestamp(sequence),
        )
    };
    let row = |(index, text): (usize, &&str)| NewRow {
        index: index as u32,
        text: (*text).to_owned(),
        place: ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() },
        vector: HashEmbedder::vector(text),
        ..NewRow::default()
    };
    let rows = texts.iter().enumerate().map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

fn build(collection: &Collection, sources: &[NewSource]) -> AddedSegment {
    let segment = collection.build(DIMENSION, VectorKind::F16, sources).unwrap();
    AddedSegment { segment, withheld: Vec::new() }
}

fn adding(collection: &Collection, sources: &[NewSource]) -> Edit {
    let applied = sources.iter().map(|source| source.record.sequence).collect();
    Edit { add: vec![build(collection, sources)], applied, ..Edit::default() }
}

fn removing(sub_tenant: &str, id: &str) -> Edit {
    Edit { remove_sources: vec![named(sub_tenant, id)], ..Edit::default() }
}

fn commit(collection: &Collection, edit: &Edit) -> Outcome {
    collection.writer().unwrap().commit(edit).unwrap()
}

fn add(collection: &Collection, sources: &[NewSource]) -> Outcome {
    commit(collection, &adding(collection, sources))
}

fn contents(snapshot: &Snapshot) -> Contents {
    let mut contents = Contents::new();
    for found in snapshot.all_sources() {
        let (record, segment) = (found.record().unwrap(), &found.live.segment);
        let row = |row: &u32| (segment.index(RowId(*row)), segment.text(RowId(*row)).unwrap());
        let rows = found.rows().iter().map(row).collect();
        let key = (record.sub_tenant.to_string(), record.id.to_string());
        let at_once = contents.insert(key, (record.sequence.0, rows));
        assert!(at_once.is_none(), "{} is visible twice", record.id);
        let again = snapshot.find(&record.sub_tenant, &record.id).unwrap();
        assert_eq!(again.record().unwrap(), record);
    }
    let rows: usize = contents.values().map(|(_, rows)| rows.len()).sum();
    assert_eq!(snapshot.rows(), rows as u64);
    contents
}

fn visible(collection: &Collection) -> Contents {
    contents(&collection.snapshot())
}

fn key(sub_tenant: &str, id: &str) -> (String, String) {
    (sub_tenant.to_owned(), id.to_owned())
}

fn damaged(collection: &Collection) -> Vec<SegmentId> {
    collection.snapshot().damaged.iter().map(|segment| segment.id()).collect()
}

/// Ids with their sequences, for short comparisons.
fn sequences(collection: &Collection) -> Vec<(String, u64)> {
    visible(collection).into_iter().map(|((_, id), (sequence, _))| (id, sequence)).collect()
}

fn owned(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(id, sequence)| ((*id).to_owned(), *sequence)).collect()
}
