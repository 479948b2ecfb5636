//! Header, section table and trailer of a segment file. `mod.rs` draws the layout.

use std::ops::Range;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::segment::SegmentError;
use lodestone_io::BLOCK_BYTES;
use lodestone_types::{CollectionId, SegmentId};

/// Format version written for segments without vectors of a sparse model.
pub const PLAIN_VERSION: u32 = 5;
/// Format version written for segments with vectors of a sparse model.
pub const SPARSE_VERSION: u32 = 6;
/// Newest `min_reader` that this program understands.
pub const READER_VERSION: u32 = 3;
/// The `min_reader` written by default. Versions 2 to 6 only add sections that an older reader can
/// skip; version 3 also adds memories, whose kind and scope a reader older than 2 would take for
/// damage.
const MIN_READER: u32 = 2;
/// The `min_reader` of segments with ids and metadata of client vectors: an older program would
/// drop them from the filter columns when it merges such a segment.
const PAYLOAD_READER: u32 = 3;
/// Alignment of the sections and of the footer.
pub const SECTION_ALIGN: u64 = 4096;
/// Bytes of the header that carry data; the rest of its page is zero.
pub const HEADER_BYTES: usize = 72;
/// Bytes of the trailer, which ends the file.
pub const TRAILER_BYTES: usize = 40;

const MAGIC: &[u8; 8] = b"LODESEG1";
const END_MAGIC: &[u8; 8] = b"LODEEND1";
const TABLE_ENTRY_BYTES: usize = 24;

const _: () = assert!(HEADER_BYTES <= SECTION_ALIGN as usize);
const _: () = assert!(cfg!(target_endian = "little"), "the format is read in place");

/// Number format of the original vectors (T2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorKind {
    /// Normalised model embeddings as IEEE half floats.
    F16,
    /// Client vectors as sent, bit for bit.
    F32,
}

impl VectorKind {
    fn code(self) -> u32 {
        match self {
            Self::F16 => 1,
            Self::F32 => 2,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::F16),
            2 => Some(Self::F32),
            _ => None,
        }
    }

    /// Bytes of one component.
    pub fn component_bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The parts of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Section {
    /// Row table: source, place and index of each row, and the rows of each source.
    Rows = 1,
    /// Chunk texts in zstd blocks.
    Texts = 2,
    /// Source records (rkyv).
    Sources = 3,
    /// Filter columns.
    Columns = 4,
    /// T1 codes, i8, row-major.
    Codes = 5,
    /// T1 scales, then residual norms, f32 each.
    Factors = 6,
    /// T2 vectors, f16 or f32, row-major.
    Originals = 7,
    /// Norms of f32 originals; empty for f16.
    Norms = 8,
    /// The tantivy bundle.
    TextIndex = 9,
    /// Inverted lists of rows; only in segments with many rows. `lists` draws the layout.
    Lists = 10,
    /// T0 codes in list order; present together with `Lists`.
    OneBit = 11,
    /// Details of application records (rkyv); only if there are any. Since version 2.
    Details = 12,
    /// Rectangles of chunks on pages; only if there are any. Since version 2.
    Boxes = 13,
    /// Entities and triplets of rows; only if there are any. `lodestone_graph` draws the layout.
    /// Since version 3.
    Graph = 14,
    /// Headings and header rows above chunks; only if there are any. Since version 4.
    Contexts = 15,
    /// Lines of chunks on pages; only if there are any. Since version 5.
    Lines = 16,
    /// Vectors of a sparse model; only if every row has one. `lodestone_text::impacts` draws the
    /// layout. Since version 6.
    Sparse = 17,
}

/// Header of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version that the file was written as; new files have [`PLAIN_VERSION`] or
    /// [`SPARSE_VERSION`].
    pub version: u32,
    /// The collection that the segment belongs to.
    pub collection: CollectionId,
    /// The segment's own id.
    pub segment: SegmentId,
    /// Number of rows.
    pub rows: u32,
    /// Number of sources.
    pub sources: u32,
    /// Components per vector.
    pub dimension: u32,
    /// Number format of the original vectors.
    pub vector_kind: VectorKind,
    /// Whether rows may have ids or metadata given by a client.
    pub has_payloads: bool,
}

impl Header {
    /// Encodes the header without the padding of its page.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        let min_reader = if self.has_payloads { PAYLOAD_READER } else { MIN_READER };
        bytes[12..16].copy_from_slice(&min_reader.to_le_bytes());
        bytes[16..32].copy_from_slice(self.collection.0.as_bytes());
        bytes[32..48].copy_from_slice(self.segment.0.as_bytes());
        bytes[48..52].copy_from_slice(&self.rows.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.sources.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.dimension.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.vector_kind.code().to_le_bytes());
        let hash = xxh3_64(&bytes[..64]);
        bytes[64..72].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// Decodes a header. `name` is used only in errors.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] for a wrong magic, hash or code; [`SegmentError::TooNew`] if the
    /// file needs a newer reader.
    pub fn decode(name: &str, file: &[u8]) -> Result<Self, SegmentError> {
        let damaged = |problem: &str| SegmentError::Damaged {
            segment: name.to_owned(),
            problem: problem.to_owned(),
        };
        let bytes = file.get(..HEADER_BYTES).ok_or_else(|| damaged("shorter than a header"))?;
        if &bytes[..8] != MAGIC {
            return Err(damaged("the header has another magic"));
        }
        if read_u64(bytes, 64) != xxh3_64(&bytes[..64]) {
            return Err(damaged("the header does not match its hash"));
        }
        let needed = read_u32(bytes, 12);
        if needed > READER_VERSION {
            let segment = name.to_owned();
            return Err(SegmentError::TooNew { segment, needed, ours: READER_VERSION });
        }
        Ok(Self {
            version: read_u32(bytes, 8),
            collection: CollectionId(read_uuid(bytes, 16)),
            segment: SegmentId(read_uuid(bytes, 32)),
            rows: read_u32(bytes, 48),
            sources: read_u32(bytes, 52),
            dimension: read_u32(bytes, 56),
            vector_kind: VectorKind::from_code(read_u32(bytes, 60))
                .ok_or_else(|| damaged("unknown vector kind"))?,
            has_payloads: needed >= PAYLOAD_READER,
        })
    }
}

/// Position of a section in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionEntry {
    /// Number of the [`Section`]; unknown numbers are allowed.
    pub section: u32,
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes, without padding.
    pub bytes: u64,
}

/// Section table and block checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Sections in file order.
    pub sections: Vec<SectionEntry>,
    /// One XXH3-64 per 64 KiB block of everything before the footer.
    pub checksums: Vec<u64>,
}

impl Footer {
    /// Encodes footer and trailer. Returns the bytes and the footer's hash, which binds the whole
    /// file and is stored in the manifest.
    pub fn encode(&self, offset: u64) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        bytes.extend((self.sections.len() as u32).to_le_bytes());
        bytes.extend((self.checksums.len() as u32).to_le_bytes());
        for entry in &self.sections {
            bytes.extend(entry.section.to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            bytes.extend(entry.offset.to_le_bytes());
            bytes.extend(entry.bytes.to_le_bytes());
        }
        for checksum in &self.checksums {
            bytes.extend(checksum.to_le_bytes());
        }
        let hash = xxh3_64(&bytes);
        let footer_bytes = bytes.len() as u64;
        let file_bytes = offset + footer_bytes + TRAILER_BYTES as u64;
        bytes.extend(offset.to_le_bytes());
        bytes.extend(footer_bytes.to_le_bytes());
        bytes.extend(hash.to_le_bytes());
        bytes.extend(file_bytes.to_le_bytes());
        bytes.extend(END_MAGIC);
        (bytes, hash)
    }

    /// Reads trailer and footer of a file of `file_bytes` bytes through `read`, and nothing else of
    /// it. Returns the footer, its offset and its hash.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] naming the broken rule; errors of `read`.
    pub fn decode(
        name: &str,
        file_bytes: usize,
        read: impl Fn(Range<usize>) -> Result<Vec<u8>, SegmentError>,
    ) -> Result<(Self, u64, u64), SegmentError> {
        let damaged = |problem: &str| SegmentError::Damaged {
            segment: name.to_owned(),
            problem: problem.to_owned(),
        };
        let trailer_at = file_bytes
            .checked_sub(TRAILER_BYTES)
            .ok_or_else(|| damaged("shorter than a trailer"))?;
        let trailer = read(trailer_at..file_bytes)?;
        if &trailer[32..] != END_MAGIC {
            return Err(damaged("the trailer has another magic: the file is cut or extended"));
        }
        let (offset, footer_bytes) = (read_u64(&trailer, 0), read_u64(&trailer, 8));
        if read_u64(&trailer, 24) != file_bytes as u64
            || offset.checked_add(footer_bytes) != Some(trailer_at as u64)
            || footer_bytes > footer_bytes_max(file_bytes)
        {
            return Err(damaged("the trailer does not fit the length of the file"));
        }
        let footer = read(offset as usize..trailer_at)?;
        let hash = read_u64(&trailer, 16);
        if xxh3_64(&footer) != hash {
            return Err(damaged("the footer does not match its hash"));
        }
        let parsed = Self::parse(&footer, offset).ok_or_else(|| damaged("bad section table"))?;
        Ok((parsed, offset, hash))
    }

    fn parse(footer: &[u8], offset: u64) -> Option<Self> {
        let counts = footer.get(..8)?;
        let (section_count, block_count) =
            (read_u32(counts, 0) as usize, read_u32(counts, 4) as usize);
        let table_bytes = section_count.checked_mul(TABLE_ENTRY_BYTES)?;
        let expected = table_bytes.checked_add(8)?.checked_add(block_count.checked_mul(8)?)?;
        if footer.len() != expected {
            return None;
        }
        let (table, checksums) = footer[8..].split_at(table_bytes);
        let mut end = SECTION_ALIGN;
        let mut sections = Vec::with_capacity(section_count);
        for entry in table.chunks_exact(TABLE_ENTRY_BYTES) {
            let entry = SectionEntry {
                section: read_u32(entry, 0),
                offset: read_u64(entry, 8),
                bytes: read_u64(entry, 16),
            };
            let is_placed = entry.offset.is_multiple_of(SECTION_ALIGN) && entry.offset >= end;
            end = entry.offset.checked_add(entry.bytes)?;
            if !is_placed || end > offset {
                return None;
            }
            sections.push(entry);
        }
        let checksums = checksums.chunks_exact(8).map(|bytes| read_u64(bytes, 0)).collect();
        Some(Self { sections, checksums })
    }

    /// The table entry of a section, if it is present.
    pub fn entry(&self, section: Section) -> Option<SectionEntry> {
        self.sections.iter().copied().find(|entry| entry.section == section as u32)
    }
}

/// Upper bound on the footer's size, so that a wrong number in the trailer cannot cause a large
/// read.
fn footer_bytes_max(file_bytes: usize) -> u64 {
    const SECTIONS_MAX: usize = 64;
    (8 + SECTIONS_MAX * TABLE_ENTRY_BYTES + file_bytes.div_ceil(BLOCK_BYTES) * 8) as u64
}

/// Byte range of a section in the file of the segment `name`.
///
/// # Errors
/// [`SegmentError::Damaged`] if the section is missing.
pub fn place_of(
    name: &str,
    footer: &Footer,
    section: Section,
) -> Result<Range<usize>, SegmentError> {
    let entry = footer.entry(section).ok_or_else(|| SegmentError::Damaged {
        segment: name.to_owned(),
        problem: format!("section {section:?} is missing"),
    })?;
    Ok(entry.offset as usize..(entry.offset + entry.bytes) as usize)
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn read_uuid(bytes: &[u8], at: usize) -> Uuid {
    Uuid::from_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::ErrorKind;

    fn header() -> Header {
        Header {
            version: PLAIN_VERSION,
            collection: CollectionId(Uuid::from_u128(1)),
            segment: SegmentId(Uuid::from_u128(2)),
            rows: 3,
            sources: 2,
            dimension: 384,
            vector_kind: VectorKind::F16,
            has_payloads: false,
        }
    }

    #[test]
    fn a_header_survives_and_a_flipped_bit_does_not() {
        let bytes = header().encode();
        assert_eq!(Header::decode("x", &bytes).unwrap(), header());
        assert_eq!(bytes[12], 2, "a release without payloads reads it");
        let with_payloads = Header { has_payloads: true, ..header() };
        let encoded = with_payloads.encode();
        assert_eq!((Header::decode("x", &encoded).unwrap(), encoded[12]), (with_payloads, 3));
        for position in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[position] ^= 1;
            assert!(Header::decode("x", &damaged).is_err(), "byte {position}");
        }
    }

    #[test]
    fn a_newer_file_is_refused_by_version() {
        let mut bytes = header().encode();
        bytes[12] = 9;
        let hash = xxh3_64(&bytes[..64]);
        bytes[64..].copy_from_slice(&hash.to_le_bytes());
        let error = Header::decode("x", &bytes).unwrap_err();
        assert!(matches!(error, SegmentError::TooNew { needed: 9, ours: READER_VERSION, .. }));
        assert_eq!(error.kind(), ErrorKind::Unavailable, "an update reads it");

        let mut bytes = header().encode();
        bytes[60] = 3;
        let hash = xxh3_64(&bytes[..64]);
        bytes[64..].copy_from_slice(&hash.to_le_bytes());
        let error = Header::decode("x", &bytes).unwrap_err();
        assert_eq!(error.to_string(), "segment x is damaged: unknown vector kind");
    }

    fn footer_of(file: &[u8]) -> Result<(Footer, u64, u64), SegmentError> {
        Footer::decode("x", file.len(), |range| Ok(file[range].to_vec()))
    }

    #[test]
    fn a_footer_survives_and_damage_does_not() {
        let footer = Footer {
            sections: vec![SectionEntry { section: 1, offset: 4096, bytes: 10 }],
            checksums: vec![7],
        };
        let mut file = vec![0; 8192];
        let (bytes, hash) = footer.encode(8192);
        file.extend(bytes);
        assert_eq!(footer_of(&file).unwrap(), (footer, 8192, hash));
        for cut in 1..=file.len() {
            assert!(footer_of(&file[..file.len() - cut]).is_err(), "cut {cut}");
        }
        for position in 8192..file.len() {
            let mut damaged = file.clone();
            damaged[position] ^= 0x40;
            assert!(footer_of(&damaged).is_err(), "byte {position}");
        }
    }

    /// Goal: rules of the table are checked even when the hash and the trailer fit.
    #[test]
    fn a_section_table_that_breaks_a_rule_is_refused() {
        let entry = |offset, bytes| SectionEntry { section: 1, offset, bytes };
        let problem = |sections: Vec<SectionEntry>, checksums: usize, change: fn(&mut [u8])| {
            let footer = Footer { sections, checksums: vec![7; checksums] };
            let (mut bytes, _) = footer.encode(16_384);
            let body_bytes = bytes.len() - TRAILER_BYTES;
            let (body, trailer) = bytes.split_at_mut(body_bytes);
            change(body);
            trailer[16..24].copy_from_slice(&xxh3_64(body).to_le_bytes());
            let file = [vec![0; 16_384], bytes].concat();
            footer_of(&file).err().map(|error| error.to_string())
        };
        let is_bad_table = |error: String| error.ends_with("bad section table");
        assert_eq!(problem(vec![entry(4096, 10), entry(8192, 8192)], 1, |_| {}), None);
        for (sections, rule) in [
            (vec![entry(4097, 10)], "not on a boundary"),
            (vec![entry(0, 10)], "in the header"),
            (vec![entry(8192, 1), entry(4096, 1)], "out of order"),
            (vec![entry(4096, 4097), entry(8192, 1)], "over each other"),
            (vec![entry(8192, 8193)], "over the footer"),
            (vec![entry(1 << 40, 0)], "behind the file"),
            (vec![entry(4096, u64::MAX)], "an end that is no number"),
        ] {
            assert!(problem(sections, 1, |_| {}).is_some_and(is_bad_table), "{rule}");
        }
        let counts: [fn(&mut [u8]); 2] = [|footer| footer[0] = 2, |footer| footer[4..8].fill(0xFF)];
        for count in counts {
            assert!(problem(vec![entry(4096, 10)], 1, count).is_some_and(is_bad_table));
        }
        let long = problem(Vec::new(), 1000, |_| {}).unwrap();
        assert!(long.ends_with("the trailer does not fit the length of the file"), "{long}");
    }
}
