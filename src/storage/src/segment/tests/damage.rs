//! Damaged copies: refused at opening or at first use, never a panic, never wrong data.

use super::format::{Footer, SECTION_ALIGN, Section, SectionEntry};
use super::*;
use lodestone_io::checksums;

/// Everything that a segment returns, as one comparable text.
fn everything(segment: &Segment) -> Result<String, SegmentError> {
    let mut said = String::new();
    for source in 0..segment.source_count() {
        said.push_str(&format!("{:?} {:?}\n", segment.record(source)?, segment.rows_of(source)));
    }
    for row in 0..segment.row_count() {
        let id = RowId(row);
        let vectors = segment.vectors()?;
        said.push_str(&format!(
            "{:?} {} {:?} {:?} {:?}\n",
            segment.place(id),
            segment.index(id),
            segment.text(id)?,
            segment.original_vector(id)?,
            vectors.codes(row as usize)
        ));
    }
    said.push_str(&format!("{:?}", segment.text_index().scope_stats(None)));
    Ok(said)
}

struct Victim {
    files: Files,
    meta: SegmentMeta,
    good: Vec<u8>,
    baseline: String,
}

impl Victim {
    fn new(kind: VectorKind) -> Self {
        let files = Files::new();
        let segment = files.write(1, kind, &sample(kind));
        let (meta, baseline) = (segment.meta().clone(), everything(&segment).unwrap());
        let good = files.store.get(&Files::key(meta.id)).unwrap();
        Self { files, meta, good, baseline }
    }

    /// Whether a copy with these bytes is noticed by opening it or by a walk over its blocks. What
    /// it returns without the walk must be the truth or an error.
    fn is_noticed(&self, bytes: &[u8]) -> bool {
        self.files.store.put(&Files::key(self.meta.id), bytes).unwrap();
        let segment = match self.files.open(&self.meta) {
            Ok(segment) => segment,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                return true;
            }
        };
        match everything(&segment) {
            Ok(said) => assert!(said == self.baseline, "a damaged copy gave another answer"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
        verify(&segment).is_err()
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    for kind in KINDS {
        let victim = Victim::new(kind);
        let read = |range: std::ops::Range<usize>| Ok(victim.good[range].to_vec());
        let (footer, data_bytes, _) = Footer::decode("x", victim.good.len(), read).unwrap();
        let length = victim.good.len();
        let page = SECTION_ALIGN as usize;
        let mut places: Vec<usize> = (0..length).step_by(page).collect();
        places.extend((page - 1..length).step_by(page));
        places.extend((0..length / page).map(|at| at * page + (at * 1_237) % page));
        for entry in &footer.sections {
            let (start, end) = (entry.offset as usize, (entry.offset + entry.bytes) as usize);
            places.extend([start, start + 1, end.saturating_sub(1), end.min(length - 1)]);
        }
        places.extend(data_bytes as usize..length);
        assert!(footer.checksums.len() > 1, "several blocks");
        for (turn, place) in places.into_iter().enumerate() {
            let mut bad = victim.good.clone();
            bad[place] ^= 1 << (turn % 8);
            assert!(victim.is_noticed(&bad), "byte {place} of {length}");
        }
        assert!(!victim.is_noticed(&victim.good), "the good copy is good");
    }
}

#[test]
fn cut_grown_and_zeroed_copies_are_noticed() {
    let victim = Victim::new(VectorKind::F16);
    let length = victim.good.len();
    let cuts = (0..length).step_by(4096).chain([1, 39, 40, 71, 72, length - 1, length - 40]);
    for cut in cuts {
        assert!(victim.is_noticed(&victim.good[..cut]), "cut to {cut} of {length}");
    }
    for more in [1, 40, 4096] {
        let mut grown = victim.good.clone();
        grown.resize(length + more, 0);
        assert!(victim.is_noticed(&grown), "{more} more bytes");
        let mut doubled = victim.good.clone();
        doubled.extend_from_slice(&victim.good[length - more..]);
        assert!(victim.is_noticed(&doubled), "the last {more} bytes twice");
    }
    for start in (0..length).step_by(4096) {
        let mut zeroed = victim.good.clone();
        let end = (start + 4096).min(length);
        if zeroed[start..end].iter().any(|byte| *byte != 0) {
            zeroed[start..end].fill(0);
            assert!(victim.is_noticed(&zeroed), "zeroes from {start}");
        }
    }
}

/// Goal: an error of the writer, under checksums that fit, is found by the full walk.
#[test]
fn a_code_that_is_not_of_its_vector_is_noticed() {
    let Victim { files, mut meta, mut good, .. } = Victim::new(VectorKind::F16);
    let read = |range: std::ops::Range<usize>| Ok(good[range].to_vec());
    let (mut footer, data_bytes, _) = Footer::decode("x", good.len(), read).unwrap();
    let is_codes = |entry: &&SectionEntry| entry.section == Section::Codes as u32;
    let codes = footer.sections.iter().find(is_codes).unwrap().offset as usize;
    good.truncate(data_bytes as usize);
    good[codes] ^= 0x80;
    footer.checksums = checksums(&good);
    let (end, hash) = footer.encode(data_bytes);
    good.extend(end);
    meta.checksum = hash;
    files.store.put(&Files::key(meta.id), &good).unwrap();
    let error = verify(&files.open(&meta).unwrap()).unwrap_err();
    assert!(error.to_string().contains("the code of row 0 is"), "{error}");
}

/// Goal: an intact file in the wrong place is refused, whichever of the three bindings is wrong.
#[test]
fn another_files_bytes_are_refused() {
    let victim = Victim::new(VectorKind::F16);
    let kind = VectorKind::F16;
    let files = &victim.files;
    let foreign = SegmentShape { collection: CollectionId(Uuid::from_u128(7)), ..shape(1, kind) };
    let elsewhere = Key::parse("v1/c/elsewhere/s/x").unwrap();
    write(&files.store, &elsewhere, foreign, &sample(kind)).unwrap();
    let foreign = files.store.get(&elsewhere).unwrap();
    assert!(victim.is_noticed(&foreign), "another collection's");

    files.write(2, kind, &sample(kind));
    let neighbour = files.store.get(&Files::key(SegmentId(Uuid::from_u128(2)))).unwrap();
    assert!(victim.is_noticed(&neighbour), "another segment's");

    let mut changed = sample(kind);
    changed[0].record.title.push('!');
    files.write(1, kind, &changed);
    let other_version = files.store.get(&Files::key(victim.meta.id)).unwrap();
    assert!(victim.is_noticed(&other_version), "another file of the same name");

    files.store.delete(&Files::key(victim.meta.id)).unwrap();
    assert_eq!(files.open(&victim.meta).unwrap_err().kind(), ErrorKind::NotFound);
}
