//! Tests of the guarantees of a segment, on small files that use every section.

mod damage;
mod forged;
mod lazy;
mod merging;
mod sparse;

use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::*;
use lodestone_embed::HashEmbedder;
use lodestone_graph::RowGraph;
use lodestone_io::store::{BlobStore, Key, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{
    ChunkPlace, CollectionId, ErrorKind, Metadata, PageRef, RowId, SegmentId, Sequence,
    SourceDetail, SourceId, SourceKind, SourceRecord, SubTenantId, Timestamp,
};

const COLLECTION: CollectionId = CollectionId(Uuid::from_u128(0xC0));
const DIMENSION: usize = 64;
const KINDS: [VectorKind; 2] = [VectorKind::F16, VectorKind::F32];

/// Segment files in a directory of their own.
struct Files {
    store: LocalBlobs,
    _root: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = DataDir::open(root.path(), Arc::new(RealDisk)).unwrap();
        Self { store: LocalBlobs::new(Arc::new(data)), _root: root }
    }

    fn key(id: SegmentId) -> Key {
        Key::parse(&format!("v1/c/{COLLECTION}/s/{id}.seg")).unwrap()
    }

    fn write(&self, id: u128, kind: VectorKind, sources: &[NewSource]) -> Segment {
        let shape = shape(id, kind);
        let meta = write(&self.store, &Self::key(shape.segment), shape, sources).unwrap();
        self.open(&meta).unwrap()
    }

    fn open(&self, meta: &SegmentMeta) -> Result<Segment, SegmentError> {
        Segment::open(&self.store, &Self::key(meta.id), COLLECTION, meta)
    }

    /// Names of all files.
    fn list(&self) -> Vec<Key> {
        self.store.list(&Key::parse("v1/c").unwrap()).unwrap()
    }
}

fn shape(id: u128, vector_kind: VectorKind) -> SegmentShape {
    let segment = SegmentId(Uuid::from_u128(id));
    SegmentShape { collection: COLLECTION, segment, dimension: DIMENSION, vector_kind }
}

fn record(sub_tenant: &str, id: &str, sequence: u64) -> SourceRecord {
    let map = |value: serde_json::Value| -> Metadata { value.as_object().unwrap().clone() };
    SourceRecord {
        sub_tenant: SubTenantId::parse(sub_tenant).unwrap(),
        id: SourceId::parse(id).unwrap(),
        kind: SourceKind::File,
        title: format!("Title of {id}"),
        description: "what it says".into(),
        filename: format!("{id}.txt"),
        url: String::new(),
        content_type: "text/plain".into(),
        size_bytes: 7 * sequence,
        tenant_metadata: map(json!({"team": "red", "size": sequence})),
        document_metadata: map(json!({"nested": {"deep": [1, null, "x"]}})),
        uploaded_at: Timestamp(1_000 + sequence),
        last_updated_at: Timestamp(2_000 + sequence),
        version: 3,
        sequence: Sequence(sequence),
        raw_key: format!("v1/raw/{COLLECTION}/{id}"),
        detail: SourceDetail::default(),
    }
}

fn source(kind: VectorKind, record: SourceRecord, texts: &[(u32, &str)]) -> NewSource {
    let row = |(index, text): &(u32, &str)| {
        let chars = text.chars().count() as u32;
        let page = PageRef::Page(index + 1);
        let place = ChunkPlace { document_start: index * 10, page_start: *index, chars, page };
        NewRow {
            context: if index % 2 == 1 { format!("Part {index}") } else { String::new() },
            index: *index,
            text: (*text).to_owned(),
            place,
            vector: vector(kind, text, *index),
            ..NewRow::default()
        }
    };
    let rows = texts.iter().map(row).collect();
    let title_text = record.title.clone();
    NewSource { record, title_text, searchable: "crimson".into(), rows }
}

/// A test vector: of length one for models, of any length for clients, including zero.
fn vector(kind: VectorKind, text: &str, index: u32) -> Vec<f32> {
    let unit = HashEmbedder::vector(text);
    match kind {
        VectorKind::F16 => unit,
        VectorKind::F32 => unit.iter().map(|value| value * 1.7 * index as f32).collect(),
    }
}

/// Several sources in two sub-tenants, with enough text and rows for several blocks.
fn sample(kind: VectorKind) -> Vec<NewSource> {
    let long: Vec<String> = (0..60).map(|n| passage(n, 700)).collect();
    let long: Vec<(u32, &str)> =
        long.iter().enumerate().map(|(at, text)| (at as u32, text.as_str())).collect();
    let mut sources = vec![
        source(kind, record("default", "guide", 1), &[(0, "red apples"), (2, "a été")]),
        source(kind, record("default", "long", 2), &long),
        source(kind, record("other", "guide", 3), &[(0, "quiet winter night")]),
        source(kind, record("default", "empty text", 4), &[(0, "")]),
    ];
    for (at, note) in [(1, "a note"), (3, "another")] {
        sources[at].record.detail.note = note.to_owned();
    }
    sources
}

/// Text that does not compress to almost nothing.
fn passage(seed: u64, chars: usize) -> String {
    let mut text = format!("passage {seed} apples");
    let mut state = seed;
    while text.len() < chars {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(seed | 1);
        text.push_str(&format!(" {:x}", state >> 40));
    }
    text
}

/// Everything stored for one row, for bitwise comparison.
fn row_of(segment: &Segment, row: u32) -> (u32, ChunkPlace, String, Vec<u32>, Vec<i8>, [u32; 2]) {
    let (id, at) = (RowId(row), row as usize);
    let vectors = segment.vectors().unwrap();
    let original = segment.original_vector(id).unwrap();
    (
        segment.index(id),
        segment.place(id),
        segment.text(id).unwrap(),
        original.iter().map(|value| value.to_bits()).collect(),
        vectors.codes(at).to_vec(),
        [vectors.scale(at).to_bits(), vectors.residual(at).to_bits()],
    )
}

#[test]
fn what_is_written_is_read() {
    for kind in KINDS {
        let files = Files::new();
        let written = sample(kind);
        let segment = files.write(1, kind, &written);
        let census = verify(&segment).unwrap();
        let text_bytes = written.iter().flat_map(|one| &one.rows).map(|row| row.text.len() as u64);
        let text_bytes = text_bytes.sum();
        assert_eq!(census, SegmentCensus { rows: 64, sources: 4, text_bytes });
        assert_eq!((segment.row_count(), segment.source_count()), (64, 4));
        let mut row = 0;
        for (at, source) in written.iter().enumerate() {
            let (at, record) = (at as u32, &source.record);
            assert_eq!(&segment.record(at).unwrap(), record);
            assert_eq!(segment.find_source(&record.sub_tenant, &record.id), Some(at));
            assert_eq!(segment.sequence(at), record.sequence);
            assert_eq!(segment.last_updated_at(at), record.last_updated_at);
            let rows: Vec<u32> = (row..row + source.rows.len() as u32).collect();
            assert_eq!(segment.rows_of(at), rows);
            for new in &source.rows {
                let (index, place, text, original, ..) = row_of(&segment, row);
                assert_eq!((index, place, &text), (new.index, new.place, &new.text));
                assert_eq!(segment.source_of(RowId(row)), at);
                let expected = new.vector.iter().map(|value| match kind {
                    VectorKind::F16 => half::f16::from_f32(*value).to_f32().to_bits(),
                    VectorKind::F32 => value.to_bits(),
                });
                assert_eq!(original, expected.collect::<Vec<u32>>());
                row += 1;
            }
        }
        let other = SubTenantId::parse("other").unwrap();
        assert_eq!(segment.rows_of_sub_tenant(&other).iter().collect::<Vec<_>>(), [62]);
        assert_eq!(segment.find_source(&other, &SourceId::parse("long").unwrap()), None);
        let guides = crate::filter::sources(&[SourceId::parse("guide").unwrap()]);
        let guides = segment.matching(&guides).unwrap();
        assert_eq!(guides.iter().collect::<Vec<_>>(), [0, 1, 62]);
    }
}

#[test]
fn a_source_without_rows_and_a_segment_without_any() {
    for kind in KINDS {
        let files = Files::new();
        let none = source(kind, record("default", "none", 1), &[]);
        let some = source(kind, record("default", "some", 2), &[(4, "apples")]);
        let mixed = files.write(1, kind, &[none.clone(), some]);
        assert_eq!(verify(&mixed).unwrap().rows, 1);
        assert!(mixed.rows_of(0).is_empty());
        let bare = files.write(2, kind, &[none]);
        assert_eq!(verify(&bare).unwrap(), SegmentCensus { rows: 0, sources: 1, text_bytes: 0 });
        assert!(bare.vectors().unwrap().is_empty());
    }
}

#[test]
fn input_that_breaks_a_rule_is_refused_and_leaves_no_file() {
    let files = Files::new();
    let kind = VectorKind::F16;
    let good = || source(kind, record("default", "a", 1), &[(0, "x"), (1, "y")]);
    let mut disordered = good();
    disordered.rows.swap(0, 1);
    let mut narrow = good();
    narrow.rows[1].vector.pop();
    for bad in [vec![disordered], vec![narrow], vec![good(), good()]] {
        let shape = shape(1, kind);
        assert!(write(&files.store, &Files::key(shape.segment), shape, &bad).is_err());
        assert!(files.list().is_empty());
    }
}
