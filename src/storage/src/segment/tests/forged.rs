//! Structure that breaks a rule of the format under checksums that fit, as from a hostile archive
//! or a bug of another release: the broken rule is named, by opening or by the full walk.

use super::format::{Footer, Header, SECTION_ALIGN, Section, SectionEntry};
use super::*;
use crate::filter::ColumnsBuilder;
use lodestone_io::checksums;
use lodestone_types::{LineBox, PageArea, PageBox, RowPayload};

/// The parts of a segment file, which can be changed and sealed again.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) header: Header,
    sections: Vec<(u32, Vec<u8>)>,
    /// Bytes that the manifest claims beyond the length of the file.
    more_bytes: u64,
}

impl Parts {
    pub(super) fn of(files: &Files, segment: &Segment) -> Self {
        let file = files.store.get(&Files::key(segment.id())).unwrap();
        let of = |entry: &SectionEntry| {
            (entry.section, file[entry.offset as usize..][..entry.bytes as usize].to_vec())
        };
        let sections = segment.footer.sections.iter().map(of).collect();
        Self { header: segment.header, sections, more_bytes: 0 }
    }

    pub(super) fn section(&mut self, wanted: Section) -> &mut Vec<u8> {
        let found = self.sections.iter_mut().find(|(section, _)| *section == wanted as u32);
        &mut found.expect("the segment has the section").1
    }

    pub(super) fn remove(&mut self, unwanted: Section) {
        self.sections.retain(|(section, _)| *section != unwanted as u32);
    }

    /// Overwrites the four-byte word number `word` of a section.
    pub(super) fn set(&mut self, section: Section, word: usize, value: u32) {
        self.section(section)[word * 4..][..4].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes the file with fitting checksums and opens it.
    pub(super) fn open(&self, files: &Files) -> Result<Segment, SegmentError> {
        let mut file = self.header.encode().to_vec();
        let mut sections = Vec::new();
        let align = |file: &mut Vec<u8>| {
            file.resize(file.len().next_multiple_of(SECTION_ALIGN as usize), 0);
            file.len() as u64
        };
        for (section, content) in &self.sections {
            let (section, offset, bytes) = (*section, align(&mut file), content.len() as u64);
            sections.push(SectionEntry { section, offset, bytes });
            file.extend(content);
        }
        let offset = align(&mut file);
        let (footer, checksum) = Footer { sections, checksums: checksums(&file) }.encode(offset);
        file.extend(footer);
        let Header { segment: id, rows, sources, .. } = self.header;
        files.store.put(&Files::key(id), &file).unwrap();
        let bytes = file.len() as u64 + self.more_bytes;
        files.open(&SegmentMeta { id, bytes, rows, sources, checksum })
    }
}

type Change = fn(&mut Parts);

/// Checks that each change is found and reported by the rule that it breaks, and that without a
/// change there is no error.
fn assert_found(sources: &[NewSource], kind: VectorKind, changes: &[(Change, &str)]) {
    let files = Files::new();
    let good = Parts::of(&files, &files.write(1, kind, sources));
    let walked = |parts: &Parts| parts.open(&files).and_then(|segment| verify(&segment));
    walked(&good).unwrap();
    for (change, rule) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        let error = walked(&bad).expect_err(rule);
        assert!(error.to_string().contains(rule), "{rule}: {error}");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

/// Documents with pages: two rows, two rows that name entities, one row in another sub-tenant.
pub(super) fn documents() -> Vec<NewSource> {
    let kind = VectorKind::F16;
    let film = "Northern Light is a film directed by Marta Lindqvist.";
    let mut sources = vec![
        source(kind, record("default", "a", 1), &[(0, "red apples"), (1, "a été")]),
        source(kind, record("default", "bbbb", 2), &[(0, film), (1, "pears")]),
        source(kind, record("other", "c", 3), &[(0, "quiet winter night")]),
    ];
    sources[0].record.detail.note = "a note".into();
    sources[1].record.title = "Northern Light".into();
    sources[1].rows[0].graph = lodestone_graph::extract("Northern Light", film);
    for row in sources.iter_mut().flat_map(|source| &mut source.rows).take(3) {
        let place = |y| {
            let area = PageArea { x: 72.0, y, width: 100.0, height: 12.5 };
            PageBox { page: row.index + 1, area }
        };
        row.boxes = vec![place(10.0)];
        let line = |start, end, y| LineBox { start, end, place: place(y) };
        row.lines = vec![line(0, 3, 10.0), line(3, row.place.chars, 24.0)];
    }
    sources
}

/// Client vectors: one of length zero, one with an id, and one with a length beyond the range of
/// f32.
pub(super) fn vectors() -> Vec<NewSource> {
    let kind = VectorKind::F32;
    let id = RowPayload { id: Some("mine".into()), metadata: None }.to_text();
    let mut batch = source(kind, record("default", "batch", 1), &[(0, &id), (1, "")]);
    batch.record.kind = SourceKind::Embeddings;
    batch.rows[0].vector = vec![0.0; DIMENSION];
    batch.rows[1].vector = vec![f32::MAX; DIMENSION];
    vec![batch]
}

fn texts(texts: [&'static str; 2]) -> Vec<u8> {
    let mut frames = Vec::new();
    let texts = texts.into_iter().map(std::borrow::Cow::Borrowed);
    let head = super::text_store::encode(texts, &mut frames).unwrap();
    [head, frames].concat()
}

/// Overwrites every occurrence of a text with another of equal length.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    for at in 0..=bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
}

/// Filter columns of [`documents`], except for the sub-tenant `other`.
fn columns(others: &[(&str, std::ops::Range<u32>)]) -> Vec<u8> {
    let mut builder = ColumnsBuilder::new();
    builder.add_source(&record("default", "ab", 1), 0..4);
    for (sub_tenant, rows) in others {
        builder.add_source(&record(sub_tenant, "c", 3), rows.clone());
    }
    builder.finish()
}

#[test]
fn rows_and_sources_that_do_not_fit_each_other_are_found() {
    // Seven columns of five rows; before the last one are four starts, for three sources.
    const CHARS: usize = 3 * 5;
    const INDEX: usize = 5 * 5;
    const STARTS: usize = 6 * 5;
    const ROWS_OF: usize = STARTS + 4;
    let changes: [(Change, &str); 16] = [
        (|parts| parts.set(Section::Rows, 0, 3), "a row names a source that is not there"),
        (|parts| parts.set(Section::Rows, STARTS + 1, 5), "rows of the sources do not add up"),
        (|parts| parts.set(Section::Rows, ROWS_OF, 5), "a source names a row that is not there"),
        (|parts| parts.set(Section::Rows, 0, 1), "row 0 does not belong to source 0"),
        (|parts| parts.set(Section::Rows, ROWS_OF, 2), "row 2 does not belong to source 0"),
        (|parts| parts.set(Section::Rows, INDEX, 2), "rows of source 0 are not in order"),
        // Row 1 twice, row 0 never.
        (|parts| parts.set(Section::Rows, ROWS_OF, 1), "rows of source 0 are not in order"),
        (|parts| parts.set(Section::Rows, CHARS, 9), "row 0 has another length than its place"),
        (|parts| parts.section(Section::Rows).truncate(8), "the row table has another length"),
        (
            |parts| *parts.section(Section::Columns) = columns(&[("third", 4..5)]),
            "row 4 does not belong to source 2",
        ),
        (
            |parts| *parts.section(Section::Columns) = columns(&[("other", 4..5), ("x", 4..5)]),
            "the columns count other rows",
        ),
        (
            |parts| *parts.section(Section::Columns) = columns(&[("other", 4..6)]),
            "the text index or the filter columns have other rows",
        ),
        // A name that is not in Unicode NFC, unlike every stored name.
        (
            |parts| replace(parts.section(Section::Sources), "bbbb", "be\u{301}"),
            "source 1 is not found under its own name",
        ),
        (|parts| parts.header.rows = 4, "the text index or the filter columns have other rows"),
        (|parts| parts.header.sources = 2, "the row table has another length"),
        (|parts| parts.more_bytes = 1, "the file is not the one that the manifest lists"),
    ];
    assert_found(&documents(), VectorKind::F16, &changes);
}

#[test]
fn texts_and_what_stands_on_them_are_checked() {
    let changes: [(Change, &str); 5] = [
        (|parts| parts.section(Section::Texts).truncate(4), "the text section is cut"),
        // The first line of the first row: six starts before it, then its start and end.
        (|parts| parts.set(Section::Lines, 7, 0), "the lines of row 0 break the rules"),
        (|parts| parts.section(Section::Lines).truncate(28), "the lines have another length"),
        (|parts| parts.set(Section::Boxes, 5, 9), "the rectangles have another length"),
        (|parts| parts.set(Section::Contexts, 1, 9), "a row has an unknown context"),
    ];
    assert_found(&documents(), VectorKind::F16, &changes);

    let mut beyond = documents();
    beyond[1].rows[0].graph.triplets[0].context = 7..9_999;
    let files = Files::new();
    let error = verify(&files.write(1, VectorKind::F16, &beyond)).unwrap_err();
    assert!(error.to_string().contains("a triplet of row 2 has no text"), "{error}");
}

#[test]
fn vectors_that_do_not_fit_each_other_are_found() {
    const NAN: u32 = 0x7FC0_0000;
    let halves: [(Change, &str); 7] = [
        (|parts| parts.set(Section::Factors, 1, NAN), "the code of row 1 is NaN"),
        (|parts| parts.set(Section::Factors, 5, NAN), "the code of row 0 is"),
        // Two half floats.
        (|parts| parts.set(Section::Originals, 0, 0x7E00_7E00), "the code of row 0 is NaN"),
        (|parts| parts.section(Section::Factors).truncate(16), "the factors have another length"),
        (|parts| parts.section(Section::Factors).truncate(36), "column residuals holds 4 elements"),
        (|parts| parts.section(Section::Originals).truncate(9), "a vector section is malformed"),
        (|parts| parts.header.dimension = 0, "a vector of 0 components"),
    ];
    assert_found(&documents(), VectorKind::F16, &halves);
    let norms: [(Change, &str); 4] = [
        (|parts| parts.set(Section::Norms, 0, 1.0_f32.to_bits()), "the norm of row 0 is not its"),
        (|parts| parts.set(Section::Norms, 1, 1.0_f32.to_bits()), "the norm of row 1 is not its"),
        (|parts| parts.set(Section::Norms, 1, NAN), "the norm of row 1 is not its length"),
        (|parts| parts.section(Section::Norms).truncate(4), "column norms holds 1 elements"),
    ];
    assert_found(&vectors(), VectorKind::F32, &norms);
}

#[test]
fn payloads_of_vectors_are_checked() {
    let changes: [(Change, &str); 2] = [
        (
            |parts| *parts.section(Section::Texts) = texts([r#"{"id":"another"}"#, ""]),
            "the id of row 0 leads elsewhere",
        ),
        (
            |parts| *parts.section(Section::Texts) = texts(["no payload", ""]),
            "a payload cannot be read",
        ),
    ];
    assert_found(&vectors(), VectorKind::F32, &changes);
}

#[test]
fn a_section_that_is_missing_is_named() {
    use Section::{Codes, Columns, Factors, Norms, Originals, Rows, Sources, TextIndex, Texts};
    let files = Files::new();
    let good = Parts::of(&files, &files.write(1, VectorKind::F16, &documents()));
    for section in [Rows, Texts, Sources, Columns, Codes, Factors, Originals, Norms, TextIndex] {
        let mut bad = good.clone();
        bad.remove(section);
        let error = bad.open(&files).and_then(|segment| verify(&segment)).unwrap_err();
        assert!(error.to_string().contains(&format!("section {section:?} is missing")), "{error}");
    }
}
