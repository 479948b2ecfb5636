//! The collections of version 1: their contents, the code that wrote them, and tests that read
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_embed::HashEmbedder;
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit};
use lodestone_storage::segment::{self, NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, Metadata, Origin, PageRef, RowId, SeededIds, Sequence, SourceDetail,
    SourceId, SourceKind, SourceRecord, SubTenantId, Timestamp,
};
use serde_json::json;
use uuid::Uuid;

use crate::are_written_now;

/// Texts with model embeddings (f16), and tombstones.
pub const TEXTS: CollectionId = CollectionId(Uuid::from_u128(0x7E87));
/// Client vectors (f32).
pub const VECTORS: CollectionId = CollectionId(Uuid::from_u128(0x7EC7));
const KEPT: &str = "Apples fall from trees.";
const SCALE: f32 = 2.5;

/// The directory of the fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/v1")
}

/// The directory of fixtures that are not complete data directories.
pub fn parts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/v1-parts")
}

/// All files below a directory, sorted.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let below = walkdir::WalkDir::new(directory).sort_by_file_name().into_iter();
    let entries = below.map(|entry| entry.unwrap_or_else(|error| panic!("{error}")));
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Copies the files of one data directory to another.
pub fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
}

/// An opened copy of the fixtures.
pub struct Copy {
    pub store: Arc<dyn BlobStore>,
    pub root: tempfile::TempDir,
}

impl Copy {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        copy(&fixtures(), root.path());
        Self { store: store(root.path()), root }
    }

    pub fn open(&self, id: CollectionId) -> Result<Collection, CollectionError> {
        open(&self.store, id)
    }
}

pub fn store(root: &Path) -> Arc<dyn BlobStore> {
    Arc::new(LocalBlobs::new(Arc::new(DataDir::open(root, Arc::new(RealDisk)).unwrap())))
}

fn open(store: &Arc<dyn BlobStore>, id: CollectionId) -> Result<Collection, CollectionError> {
    Collection::open(id, Arc::clone(store), Arc::new(SeededIds::new(1)), 7, None)
}

fn record(kind: SourceKind, id: &str, sequence: u64) -> SourceRecord {
    let map = |value: serde_json::Value| -> Metadata { value.as_object().unwrap().clone() };
    SourceRecord {
        sub_tenant: SubTenantId::parse("orchard").unwrap(),
        id: SourceId::parse(id).unwrap(),
        kind,
        title: format!("Title of {id}"),
        description: "About trees.".into(),
        filename: "trees.txt".into(),
        url: "https://example.org/trees".into(),
        content_type: "text/plain".into(),
        size_bytes: 42,
        tenant_metadata: map(json!({"team": "red", "size": 3.5, "tags": ["a", "b"]})),
        document_metadata: map(json!({"nested": {"deep": null}, "flag": true})),
        uploaded_at: Timestamp(1_700_000_000_000),
        last_updated_at: Timestamp(1_700_000_000_001),
        version: 2,
        sequence: Sequence(sequence),
        raw_key: String::new(),
        detail: SourceDetail::default(),
    }
}

fn place(text: &str, index: u32) -> ChunkPlace {
    let chars = text.chars().count() as u32;
    let page = [PageRef::Whole, PageRef::Page(7), PageRef::Slide(8), PageRef::Sheet(9)];
    ChunkPlace { document_start: index * 100, page_start: index, chars, page: page[index as usize] }
}

fn source(record: SourceRecord, texts: &[&str], vector: fn(&str) -> Vec<f32>) -> NewSource {
    let row = |(index, text): (usize, &&str)| {
        let (index, vector) = (index as u32, vector(text));
        let stored = match record.kind {
            SourceKind::Embeddings => "",
            _ => *text,
        };
        NewRow {
            index,
            text: stored.to_owned(),
            place: place(stored, index),
            vector,
            ..NewRow::default()
        }
    };
    let rows = texts.iter().enumerate().map(row).collect();
    let title_text = record.title.clone();
    NewSource { record, title_text, searchable: "red".into(), rows }
}

fn scaled(text: &str) -> Vec<f32> {
    HashEmbedder::vector(text).iter().map(|value| value * SCALE).collect()
}

fn kept() -> SourceRecord {
    record(SourceKind::Text, "kept", 1)
}

fn label() -> UploadLabel {
    UploadLabel {
        sub_tenant: "orchard".into(),
        source: "kept".into(),
        kind: "text".into(),
        filename: "trees.txt".into(),
        content_type: "text/plain".into(),
        uploaded_at: 1_700_000_000_000,
        tenant_metadata: None,
        document_metadata: Some(kept().document_metadata),
        origin: Origin::default(),
        after: None,
    }
}

/// Writes two commits of texts (two sources; the removal of a chunk and a source) and one of
/// vectors.
fn write(root: &Path) {
    let store = store(root);
    let texts = open(&store, TEXTS).unwrap();
    let kept = source(kept(), &[KEPT, "dropped chunk", "Pears too.", ""], HashEmbedder::vector);
    let gone = record(SourceKind::File, "gone", 2);
    let gone = source(gone, &["deleted"], HashEmbedder::vector);
    let segment = texts.build(64, VectorKind::F16, &[kept, gone]).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    let (applied, embedding) = (vec![Sequence(1), Sequence(2)], Some("a-model-1".to_owned()));
    let mut writer = texts.writer().unwrap();
    writer.commit(&Edit { add, applied, embedding, ..Edit::default() }).unwrap();
    let name = |id| (SubTenantId::parse("orchard").unwrap(), SourceId::parse(id).unwrap());
    let (sub_tenant, id) = name("kept");
    let remove_chunks = vec![(sub_tenant, id, vec![1])];
    let remove_sources = vec![name("gone")];
    writer.commit(&Edit { remove_chunks, remove_sources, ..Edit::default() }).unwrap();
    drop(writer);
    texts.collect_garbage().unwrap();

    let vectors = open(&store, VECTORS).unwrap();
    let batch = record(SourceKind::Embeddings, "batch", 3);
    let batch = source(batch, &["first", "second"], scaled);
    let segment = vectors.build(64, VectorKind::F32, &[batch]).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    vectors.writer().unwrap().commit(&Edit { add, ..Edit::default() }).unwrap();

    uploads::put(&*store, &SeededIds::new(2), TEXTS, &label(), b"the original\n").unwrap();
}

/// Writes the fixtures on request; see `main.rs`.
#[test]
fn write_fixtures() {
    if !are_written_now(&fixtures()) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    copy(&root.path().join("v1"), &fixtures().join("v1"));
    crate::catalog::write(&fixtures());
}

#[test]
fn fixtures_are_small() {
    let files = files(&fixtures());
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let bytes = fs::metadata(&file).unwrap().len();
        assert!(bytes < 64 << 10 || file.ends_with("catalog.sqlite"), "{file:?}: {bytes} bytes");
    }
}

#[test]
fn texts_are_read_as_they_were_written() {
    let copy = Copy::new();
    let texts = copy.open(TEXTS).unwrap();
    let snapshot = texts.snapshot();
    let manifest = &snapshot.manifest;
    assert_eq!((manifest.version, manifest.min_reader, manifest.epoch), (2, 1, 7));
    assert_eq!(manifest.embedding.as_deref(), Some("a-model-1"));
    assert_eq!(manifest.applied, [1, 2]);
    let [live] = &snapshot.segments[..] else { panic!("one segment") };
    segment::verify(&live.segment).unwrap();
    assert_eq!((live.segment.row_count(), live.live_rows()), (5, 3));
    assert_eq!(live.dead.rows.iter().collect::<Vec<_>>(), [1, 4]);
    assert_eq!(live.dead.sources.iter().collect::<Vec<_>>(), [1]);

    let found: Vec<_> = snapshot.all_sources().collect();
    let [found] = &found[..] else { panic!("one source") };
    assert_eq!(found.record().unwrap(), kept());
    assert_eq!(found.rows(), [0, 2, 3]);
    for (row, text) in [(0, KEPT), (2, "Pears too."), (3, "")] {
        assert_eq!(live.segment.text(RowId(row)).unwrap(), text);
        assert_eq!(live.segment.place(RowId(row)), place(text, row));
        let expected: Vec<f32> = HashEmbedder::vector(text)
            .iter()
            .map(|value| half::f16::from_f32(*value).to_f32())
            .collect();
        assert_eq!(live.segment.original_vector(RowId(row)).unwrap(), expected);
    }
    assert_eq!(live.segment.text_index().rows(), 5);
}

#[test]
fn client_vectors_are_read_bit_for_bit() {
    let copy = Copy::new();
    let vectors = copy.open(VECTORS).unwrap();
    let snapshot = vectors.snapshot();
    let [live] = &snapshot.segments[..] else { panic!("one segment") };
    segment::verify(&live.segment).unwrap();
    for (row, text) in [(0, "first"), (1, "second")] {
        assert_eq!(live.segment.original_vector(RowId(row)).unwrap(), scaled(text));
        assert_eq!(live.segment.text(RowId(row)).unwrap(), "");
    }
    let record = snapshot.all_sources().next().unwrap().record().unwrap();
    assert_eq!(record, self::record(SourceKind::Embeddings, "batch", 3));
}

#[test]
fn originals_are_read_as_they_were_uploaded() {
    let copy = Copy::new();
    let keys = copy.store.list(&uploads::prefix(TEXTS)).unwrap();
    let [key] = &keys[..] else { panic!("one original: {keys:?}") };
    let upload = uploads::get(&*copy.store, key.as_str()).unwrap();
    assert_eq!((upload.label, &upload.content[..]), (label(), &b"the original\n"[..]));
    assert_eq!(uploads::uploaded_at(key), Some(Timestamp(1_700_000_000_000)));
}

#[test]
fn version_1_takes_new_writes() {
    let copy = Copy::new();
    let texts = copy.open(TEXTS).unwrap();
    let fresh = source(record(SourceKind::Text, "kept", 9), &["newer"], HashEmbedder::vector);
    let segment = texts.build(64, VectorKind::F16, &[fresh]).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    texts.writer().unwrap().commit(&Edit { add, ..Edit::default() }).unwrap();
    drop(texts);
    let snapshot = copy.open(TEXTS).unwrap().snapshot();
    assert_eq!(snapshot.manifest.version, 3);
    assert_eq!(snapshot.rows(), 1);
}
