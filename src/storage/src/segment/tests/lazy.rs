//! Blocks are verified when they are first read, and only then; changes to a file after that are
//! noticed.

use roaring::RoaringBitmap;

use super::flat::{RowFilter, SearchPath, Thoroughness, search};
use super::*;
use crate::filter::ValueCounts;
use lodestone_compute::{PreparedQuery, RowsOwner, SimdBackend};
use lodestone_io::BLOCK_BYTES;
use lodestone_types::{
    Comparison, Condition, Filter, FilterMap, FilterValue, IdSource, Metric, SeededIds,
};

/// Enough rows for a search through lists.
const ROWS: u32 = 66_000;
/// Rows of a topic, adjacent like the passages of a source.
const TOPIC_ROWS: u32 = 220;

fn noise(ids: &SeededIds) -> f32 {
    let mut bytes = [0; 4];
    ids.fill(&mut bytes);
    u32::from_le_bytes(bytes) as f32 / u32::MAX as f32 - 0.5
}

pub(super) fn vectors() -> Vec<Vec<f32>> {
    let ids = SeededIds::new(5);
    let mut topic = Vec::new();
    let near = |row: u32| {
        if row.is_multiple_of(TOPIC_ROWS) {
            topic = (0..DIMENSION).map(|_| noise(&ids)).collect();
        }
        let vector: Vec<f32> = topic.iter().map(|value| value + 0.2 * noise(&ids)).collect();
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.into_iter().map(|value| value / norm).collect()
    };
    (0..ROWS).map(near).collect()
}

pub(super) fn large(vectors: &[Vec<f32>]) -> NewSource {
    let mut source = source(VectorKind::F16, record("default", "large", 1), &[]);
    source.rows.extend(vectors.iter().zip(0..).map(|(vector, index)| NewRow {
        index,
        place: ChunkPlace { document_start: index, page_start: 0, chars: 0, page: PageRef::Whole },
        vector: vector.clone(),
        ..NewRow::default()
    }));
    source
}

/// Goal: the first searches verify what they read rather than every tier, and find the same.
#[test]
fn a_first_search_verifies_what_it_reads() {
    let (files, vectors) = (Files::new(), vectors());
    let meta = files.write(1, VectorKind::F16, &[large(&vectors)]).meta().clone();
    let warm = files.open(&meta).unwrap();
    let opened = warm.verified_bytes();
    warm.prepare_vectors().unwrap();
    let all = warm.verified_bytes() - opened;
    assert!(all > 150 * BLOCK_BYTES as u64, "the file is large enough to tell: {all}");

    let few: RoaringBitmap = (1_000..1_020).collect();
    let half: RoaringBitmap = (0..ROWS / 2).collect();
    let passages: RoaringBitmap = (20_000..23_000).collect();
    let probing = Thoroughness::default();
    for (mask, path, share_max) in [
        (None, SearchPath::Lists, 0.35),
        (Some(&few), SearchPath::Gather, 0.05),
        (Some(&passages), SearchPath::MaskedScan, 0.1),
        (Some(&half), SearchPath::Lists, 0.35),
    ] {
        let cold = files.open(&meta).unwrap();
        let before = cold.verified_bytes();
        let filter = mask.map(|mask| RowFilter::new(mask, ROWS as usize));
        let query = PreparedQuery::new(&vectors[777]).unwrap();
        let ask = |segment: &Segment| {
            let tiers = segment.tiers().unwrap();
            search(&SimdBackend, &tiers, &query, filter.as_ref(), 10, probing).unwrap()
        };
        let found = ask(&cold);
        assert_eq!((&found, found.path), (&ask(&warm), path));
        cold.check().unwrap();
        if path == SearchPath::MaskedScan {
            let is_listed = filter.as_ref().is_some_and(RowFilter::is_listed);
            assert!(!is_listed, "what is verified takes no memory that is not counted");
        }
        let share = (cold.verified_bytes() - before) as f64 / all as f64;
        println!("{path:?}: {share:.3} of {all} bytes");
        assert!(share > 0.0 && share < share_max, "{path:?}: {share} of {all} bytes");
        let again = cold.verified_bytes();
        assert_eq!(ask(&cold), found);
        assert_eq!(cold.verified_bytes(), again, "nothing is verified twice");
    }
    let cold = files.open(&meta).unwrap();
    let before = cold.verified_bytes();
    cold.original_vector(RowId(40_000)).unwrap();
    let blocks = (cold.verified_bytes() - before) / BLOCK_BYTES as u64;
    assert!(blocks <= 6, "one row is in few blocks: {blocks}");
}

/// Goal: a search over damaged blocks is distinguished from one over an intact file, and so is
/// every later one.
#[test]
fn a_search_over_damage_is_noticed() {
    use format::Section::{Codes, Lists, OneBit, Originals};
    let (files, vectors) = (Files::new(), vectors());
    let meta = files.write(1, VectorKind::F16, &[large(&vectors)]).meta().clone();
    let good = files.store.get(&Files::key(meta.id)).unwrap();
    let read = |range: std::ops::Range<usize>| Ok(good[range].to_vec());
    let (footer, ..) = format::Footer::decode("x", good.len(), read).unwrap();
    let query = PreparedQuery::new(&vectors[777]).unwrap();
    let searched = |segment: &Segment| {
        let tiers = segment.tiers()?;
        Ok(search(&SimdBackend, &tiers, &query, None, 10, Thoroughness::default())?)
    };
    for section in [Codes, Originals, OneBit, Lists] {
        let entry = footer.entry(section).unwrap();
        let mut bad = good.clone();
        let (start, end) = (entry.offset as usize, (entry.offset + entry.bytes) as usize);
        // Only whole blocks of this section.
        bad[start.next_multiple_of(BLOCK_BYTES)..end / BLOCK_BYTES * BLOCK_BYTES].fill(0xA5);
        files.store.put(&Files::key(meta.id), &bad).unwrap();
        let segment = Arc::new(files.open(&meta).unwrap());
        assert!(shared(&segment).rows().is_none(), "nobody copies damaged rows");
        let segment = files.open(&meta).unwrap();
        let found: Result<_, SegmentError> = searched(&segment);
        assert!(found.and(segment.check()).is_err(), "{section:?}");
        assert_eq!(segment.check().unwrap_err().kind(), ErrorKind::Corrupt);
    }
    files.store.put(&Files::key(meta.id), &good).unwrap();
    let segment = Arc::new(files.open(&meta).unwrap());
    assert_eq!(searched(&segment).unwrap().path, SearchPath::Lists);
    segment.check().unwrap();
    let copied = shared(&segment);
    drop(segment);
    assert_eq!(copied.rows().unwrap().len(), ROWS as usize, "kept by who copies them");
}

/// Goal: client vectors are also verified as they are read, whatever metric a search uses; damage
/// of any of their sections is noticed by a search that reads it.
#[test]
fn vectors_of_clients_are_verified_before_they_are_read() {
    use format::Section::{Codes, Factors, Norms, Originals};
    const ROWS: u32 = 3_000;
    let files = Files::new();
    let mut batch = source(VectorKind::F32, record("default", "batch", 1), &[]);
    batch.rows.extend((0..ROWS).map(|index| NewRow {
        index,
        vector: HashEmbedder::vector(&index.to_string()),
        ..NewRow::default()
    }));
    let meta = files.write(1, VectorKind::F32, &[batch]).meta().clone();
    let warm = files.open(&meta).unwrap();
    warm.prepare_vectors().unwrap();
    let vector = HashEmbedder::vector(&(ROWS - 1).to_string());
    let searched = |segment: &Segment, metric, mask: Option<&RoaringBitmap>| {
        let filter = mask.map(|mask| RowFilter::new(mask, ROWS as usize));
        let (query, tiers) = (PreparedQuery::by(metric, &vector).unwrap(), segment.tiers()?);
        let exact = Thoroughness::Exact;
        let found = search(&SimdBackend, &tiers, &query, filter.as_ref(), 10, exact)?;
        segment.check()?;
        Ok::<_, SegmentError>(found)
    };
    let good = files.store.get(&Files::key(meta.id)).unwrap();
    let tail: RoaringBitmap = (ROWS / 2..ROWS).collect();
    for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
        for (mask, path) in [(None, SearchPath::Scan), (Some(&tail), SearchPath::MaskedScan)] {
            let cold = files.open(&meta).unwrap();
            let before = cold.verified_bytes();
            let found = searched(&cold, metric, mask).unwrap();
            assert_eq!(found, searched(&warm, metric, mask).unwrap(), "{metric:?}");
            assert_eq!((found.path, found.hits.len()), (path, 10));
            assert!(cold.verified_bytes() > before);
        }
        for section in [Codes, Factors, Originals, Norms] {
            let entry = warm.footer.entry(section).unwrap();
            let mut bad = good.clone();
            // In the last row, which is the nearest.
            bad[(entry.offset + entry.bytes) as usize - 1] ^= 1;
            files.store.put(&Files::key(meta.id), &bad).unwrap();
            let found = files.open(&meta).and_then(|segment| searched(&segment, metric, None));
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{section:?}: {error}");
        }
        files.store.put(&Files::key(meta.id), &good).unwrap();
    }
    let cold = files.open(&meta).unwrap();
    assert_eq!(cold.original_vector(RowId(ROWS - 1)).unwrap(), vector);
    assert!(cold.original_vector(RowId(ROWS)).is_err());
}

fn shared(segment: &Arc<Segment>) -> Arc<dyn RowsOwner> {
    let tiers = segment.shared_tiers().unwrap();
    assert_eq!(tiers.rows.identity(), Some(segment.id().0.as_u128()));
    tiers.rows.owner().unwrap()
}

/// Goal: texts are decompressed from their own blocks; a file cut after it was opened and read
/// yields errors, never a different text.
#[test]
fn a_cut_file_is_noticed_by_whoever_reads_it() {
    let files = Files::new();
    let texts: Vec<String> = (0..900).map(|n| passage(n, 900)).collect();
    let texts: Vec<(u32, &str)> = (0..).zip(texts.iter().map(String::as_str)).collect();
    let rows = source(VectorKind::F16, record("default", "texts", 1), &texts);
    let meta = files.write(1, VectorKind::F16, &[rows]).meta().clone();
    let segment = files.open(&meta).unwrap();
    let before = segment.verified_bytes();
    assert_eq!(segment.text(RowId(450)).unwrap(), texts[450].1);
    let blocks = (segment.verified_bytes() - before) / BLOCK_BYTES as u64;
    assert!(blocks <= 4, "one text is in few blocks: {blocks}");
    segment.original_vector(RowId(450)).unwrap();

    let path = segment.file.mapped().path().to_path_buf();
    std::fs::File::options().write(true).open(path).unwrap().set_len(10_000).unwrap();
    for row in [450, 0, 899] {
        assert_eq!(segment.text(RowId(row)).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(segment.original_vector(RowId(row)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!(segment.check().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(verify(&segment).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(files.open(&meta).unwrap_err().kind(), ErrorKind::Corrupt, "refused when opened");
}

/// Goal: filters over a file that lost its end after it was opened report damage and do not panic.
/// Method: so many values that some tables, or the bitmaps, become zeros.
#[test]
fn columns_of_a_cut_file_end_no_thread() {
    let files = Files::new();
    let sources = (0..6_000).map(|number| {
        let sub_tenant = ["default", "other"][number as usize % 2];
        let record = record(sub_tenant, &format!("source {number}"), number);
        source(VectorKind::F16, record, &[(0, "")])
    });
    let sources: Vec<NewSource> = sources.collect();
    let meta = files.write(1, VectorKind::F16, &sources).meta().clone();
    let good = files.store.get(&Files::key(meta.id)).unwrap();
    let all: RoaringBitmap = (0..6_000).collect();
    let comparison = Comparison::Greater(FilterValue::Number(7.into()));
    let filter = Condition { map: FilterMap::Tenant, path: "size".into(), comparison };
    let filter = Filter::Is(filter);
    let (default, other) = (SubTenantId::default_name(), SubTenantId::parse("other").unwrap());
    for sixteenth in 0..16 {
        files.store.put(&Files::key(meta.id), &good).unwrap();
        let segment = files.open(&meta).unwrap();
        let columns = segment.footer.entry(format::Section::Columns).unwrap();
        let cut = columns.offset + columns.bytes * sixteenth / 16;
        let path = segment.file.mapped().path().to_path_buf();
        std::fs::File::options().write(true).open(path).unwrap().set_len(cut).unwrap();
        let _any = segment.columns().count_values("size", &all, &mut ValueCounts::new(9_000, 100));
        let _any = segment.matching(&filter);
        let _any = (segment.rows_of_sub_tenant(&default), segment.rows_of_sub_tenant(&other));
        let _any = segment.sub_tenants();
        assert_eq!(segment.check().unwrap_err().kind(), ErrorKind::Corrupt, "{sixteenth}");
    }
}
