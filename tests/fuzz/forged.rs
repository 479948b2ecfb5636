//! Valid segment files with changes to their sections and corrected checksums, so that the readers
//! behind the checksums see the changes.
//!
//! An input is a list of changes, so that every mutation of it is one as well:
//!
//! ```text
//! 0  u8  segment       1  u8  section       2  u8  change      3  u8  wide offset
//! 4  u32 offset        8  u64 value
//! ```

use std::sync::Arc;

use lodestone_io::checksums;
use lodestone_io::store::testing::MemoryBlobs;
use lodestone_io::store::{BlobStore, Key};
use lodestone_storage::segment::format::{
    Footer, HEADER_BYTES, Header, SECTION_ALIGN, SectionEntry,
};
use lodestone_storage::segment::{
    NewRow, NewSource, Segment, SegmentError, SegmentMeta, SegmentShape, SparseRow, VectorKind,
    write,
};
use lodestone_types::{
    ChunkPlace, CollectionId, LineBox, PageArea, PageBox, RowPayload, SegmentId, Sequence,
    SourceId, SourceKind, SourceRecord, SubTenantId, Timestamp,
};
use uuid::Uuid;

/// Size of a change in bytes.
pub const CHANGE_BYTES: usize = 16;
pub const COLLECTION: CollectionId = CollectionId(Uuid::from_u128(1));
const DIMENSION: usize = 4;

/// The key of a segment.
pub fn key(id: SegmentId) -> Key {
    Key::parse(&format!("v1/c/{COLLECTION}/s/{id}.seg")).expect("ids make keys")
}

pub fn source(number: u32, kind: SourceKind, texts: &[&str]) -> NewSource {
    let name = format!("source-{number}");
    let mut record = SourceRecord {
        title: format!("Northern Light {number}"),
        url: "https://example.com/a".into(),
        raw_key: format!("v1/raw/{number}"),
        ..SourceRecord::new(
            SubTenantId::default_name(),
            SourceId::parse(&name).expect("an id"),
            kind,
            Sequence(u64::from(number) + 1),
            Timestamp(1_700_000_000_000),
        )
    };
    let mut map = lodestone_types::Metadata::new();
    map.insert("colour".into(), "red".into());
    map.insert("size".into(), number.into());
    record.document_metadata = map;
    let title = record.title.clone();
    let is_vectors = kind == SourceKind::Embeddings;
    let row = |(index, text): (usize, &&str)| {
        let (index, chars) = (index as u32, text.chars().count() as u32);
        let area = PageArea { x: 1.0, y: 2.0, width: 30.0, height: 4.5 };
        let place = PageBox { page: 1 + index, area };
        let text = match is_vectors {
            true => RowPayload { id: Some(format!("id-{index}")), metadata: None }.to_text(),
            false => (*text).to_owned(),
        };
        let graph =
            if is_vectors { Default::default() } else { lodestone_graph::extract(&title, &text) };
        let line = LineBox { start: 0, end: chars, place };
        NewRow {
            index,
            place: ChunkPlace {
                chars: if is_vectors { 0 } else { chars },
                ..ChunkPlace::default()
            },
            boxes: if is_vectors { Vec::new() } else { vec![place] },
            lines: if is_vectors { Vec::new() } else { vec![line] },
            context: if is_vectors { String::new() } else { "A heading".to_owned() },
            vector: if index % 2 == 0 {
                vec![0.6, 0.8, 0.0, 0.0]
            } else {
                vec![0.0, 0.0, 1.0, 0.0]
            },
            sparse: (!is_vectors)
                .then(|| SparseRow { model: [7; 32], weights: vec![(index, 1.5), (9, 0.5)] }),
            graph,
            text,
        }
    };
    let rows = texts.iter().enumerate().map(row).collect();
    let title_text = if is_vectors { String::new() } else { title.clone() };
    NewSource { record, title_text, searchable: String::new(), rows }
}

/// A segment split into its parts.
#[derive(Clone)]
struct Parts {
    header: Vec<u8>,
    sections: Vec<(u32, Vec<u8>)>,
}

/// Valid segments, of documents and of vectors.
pub struct Forge {
    store: Arc<MemoryBlobs>,
    sound: Vec<Parts>,
}

impl Forge {
    pub fn new() -> Self {
        let store = Arc::new(MemoryBlobs::default());
        let film = "Northern Light is a film directed by Marta Lindqvist.";
        let documents = [
            source(0, SourceKind::File, &[film, "Elsa Berg lives in Oslo. a \u{e9}t\u{e9}"]),
            source(1, SourceKind::File, &["red apples and pears"]),
        ];
        let vectors = [source(2, SourceKind::Embeddings, &["", "", ""])];
        let many: Vec<NewSource> =
            (3..40).map(|number| source(number, SourceKind::File, &[film, "pears"])).collect();
        let of = |(at, (sources, vector_kind)): (u128, (&[NewSource], VectorKind))| {
            let segment = SegmentId(Uuid::from_u128(10 + at));
            let shape =
                SegmentShape { collection: COLLECTION, segment, dimension: DIMENSION, vector_kind };
            let meta = write(&*store, &key(segment), shape, sources).expect("a segment");
            Parts::of(&store.get(&key(segment)).expect("its file"), &meta)
        };
        let all: [(&[NewSource], VectorKind); 3] =
            [(&documents, VectorKind::F16), (&vectors, VectorKind::F32), (&many, VectorKind::F16)];
        let sound = (0..).zip(all).map(of).collect();
        Self { store, sound }
    }

    /// Builds and opens the segment that an input describes; its file remains until the next call.
    pub fn open(&self, input: &[u8]) -> Result<Segment, SegmentError> {
        let first = input.first().copied().unwrap_or_default();
        let mut parts = self.sound[usize::from(first) % self.sound.len()].clone();
        for change in input.chunks_exact(CHANGE_BYTES).take(16) {
            parts.change(change);
        }
        let (file, meta) = parts.sealed();
        self.store.put(&key(meta.id), &file)?;
        Segment::open(&*self.store, &key(meta.id), COLLECTION, &meta)
    }
}

impl Parts {
    fn of(file: &[u8], meta: &SegmentMeta) -> Self {
        let read = |range: std::ops::Range<usize>| Ok(file[range].to_vec());
        let (footer, ..) =
            Footer::decode(&meta.id.to_string(), file.len(), read).expect("a footer");
        let section = |entry: &SectionEntry| {
            (entry.section, file[entry.offset as usize..][..entry.bytes as usize].to_vec())
        };
        let sections = footer.sections.iter().map(section).collect();
        Self { header: file[..HEADER_BYTES].to_vec(), sections }
    }

    fn change(&mut self, change: &[u8]) {
        let offset = u32::from_le_bytes(change[4..8].try_into().expect("four bytes")) as usize;
        let value: [u8; 8] = change[8..].try_into().expect("eight bytes");
        let number = u64::from_le_bytes(value);
        if change[2] % 16 == 15 {
            // Rows, sources, dimension and kind of vectors.
            let at = 48 + offset % 4 * 4;
            return self.header[at..at + 4].copy_from_slice(&value[..4]);
        }
        let count = self.sections.len();
        let (_, bytes) = &mut self.sections[usize::from(change[1]) % count];
        let at = if change[3] < 128 { offset } else { offset.wrapping_mul(4) };
        let at = at % (bytes.len() + 1);
        let mut set = |at: usize, width: usize| {
            bytes.iter_mut().skip(at).zip(&value[..width]).for_each(|(byte, new)| *byte = *new);
        };
        match change[2] % 16 {
            0 | 1 => set(at, 1),
            2 | 3 => set(at, 2),
            4..=7 => set(at / 4 * 4, 4),
            8 => set(at / 8 * 8, 8),
            9 => bytes.truncate(at),
            10 => drop(bytes.splice(at..at, vec![value[0]; (number % 4096) as usize])),
            11 => drop(bytes.drain(at..(at + (number % 64) as usize).min(bytes.len()))),
            12 => {
                let from = number as usize % (bytes.len() + 1);
                let copy = bytes[from..(from + 8).min(bytes.len())].to_vec();
                bytes.iter_mut().skip(at).zip(copy).for_each(|(byte, new)| *byte = new);
            }
            13 if count > 1 => drop(self.sections.remove(usize::from(change[1]) % count)),
            _ => {
                let delta = number as i64 % 5;
                if let Some(word) = bytes.get_mut(at / 4 * 4..at / 4 * 4 + 4) {
                    let old = u32::from_le_bytes(word.try_into().expect("four bytes"));
                    word.copy_from_slice(&old.wrapping_add_signed(delta as i32).to_le_bytes());
                }
            }
        }
    }

    /// The file with valid checksums throughout, and its manifest entry.
    fn sealed(mut self) -> (Vec<u8>, SegmentMeta) {
        let sum = lodestone_io::checksum(&self.header[..64]);
        self.header[64..].copy_from_slice(&sum.to_le_bytes());
        let header = Header::decode("forged", &self.header);
        let (id, rows, sources) = match header {
            Ok(header) => (header.segment, header.rows, header.sources),
            Err(_) => (SegmentId(Uuid::from_u128(10)), 1, 1),
        };
        let (mut file, mut entries) = (self.header, Vec::new());
        let align = |file: &mut Vec<u8>| {
            file.resize(file.len().next_multiple_of(SECTION_ALIGN as usize), 0);
            file.len() as u64
        };
        for (section, content) in &self.sections {
            let (offset, bytes) = (align(&mut file), content.len() as u64);
            entries.push(SectionEntry { section: *section, offset, bytes });
            file.extend(content);
        }
        let offset = align(&mut file);
        let (footer, checksum) =
            Footer { sections: entries, checksums: checksums(&file) }.encode(offset);
        file.extend(footer);
        let bytes = file.len() as u64;
        (file, SegmentMeta { id, bytes, rows, sources, checksum })
    }
}
