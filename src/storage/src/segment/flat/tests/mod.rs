//! Exact means equal to brute force: the same rows with the same bits, on every path.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::*;
use lodestone_compute::{FullKind, FullRows, ScalarBackend, SimdBackend, VectorColumns};
use lodestone_types::{IdSource, SeededIds};

/// The scan of the CPU, for stand-ins that differ elsewhere.
macro_rules! scans_as_the_cpu {
    () => {
        fn scan(
            &self,
            rows: &VectorRows<'_>,
            query: &PreparedQuery,
            selection: Selection<'_>,
            estimates: &mut Vec<f32>,
        ) -> Result<(), ComputeError> {
            SimdBackend.scan(rows, query, selection, estimates)
        }
    };
}

/// The exact scores of the CPU, for stand-ins that differ elsewhere.
macro_rules! scores_as_the_cpu {
    () => {
        fn exact(
            &self,
            rows: &VectorRows<'_>,
            query: &PreparedQuery,
            listed: &[RowId],
            scores: &mut Vec<f32>,
        ) -> Result<(), ComputeError> {
            SimdBackend.exact(rows, query, listed, scores)
        }
    };
}

mod condensed;
mod lists;
mod metrics;

const BACKENDS: [&dyn ComputeBackend; 3] = [&ScalarBackend, &SimdBackend, &Worst];
const EXACT: Thoroughness = Thoroughness::Exact;
const PATHS: [SearchPath; 3] = [SearchPath::Gather, SearchPath::MaskedScan, SearchPath::Scan];

/// The expected result of an exact search.
fn exactly(hits: Vec<Hit>, path: SearchPath) -> FlatHits {
    FlatHits { hits, path, patience: None }
}

/// Rows without lists.
fn flat(rows: VectorRows<'_>) -> Tiers<'_> {
    Tiers::new(rows, None)
}

/// Distribution of the rows.
#[derive(Debug, Clone, Copy)]
enum Data {
    /// Independent directions.
    Random,
    /// Eight centres with a little noise: many rows are within the error bound of each other.
    Clustered,
    /// Five vectors, repeated, one of them zero: ties everywhere.
    Duplicates,
}

fn uniform(ids: &SeededIds) -> f32 {
    let mut bytes = [0; 8];
    ids.fill(&mut bytes);
    (u64::from_le_bytes(bytes) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn vector(ids: &SeededIds, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| uniform(ids)).collect()
}

fn columns(seed: u64, data: Data, rows: usize, dimension: usize, kind: FullKind) -> VectorColumns {
    let ids = SeededIds::new(seed);
    let centres: Vec<Vec<f32>> = (0..8).map(|_| vector(&ids, dimension)).collect();
    let mut columns = VectorColumns::new(dimension, kind).unwrap();
    for row in 0..rows {
        let row = match data {
            Data::Random => vector(&ids, dimension),
            Data::Clustered => {
                let centre = &centres[row * 5 % 8];
                centre.iter().map(|value| value + 0.01 * uniform(&ids)).collect()
            }
            Data::Duplicates if row % 5 == 4 => vec![0.0; dimension],
            Data::Duplicates => centres[row * 7 % 5].clone(),
        };
        columns.push(&row).unwrap();
    }
    columns
}

/// Estimates as wrong as the bound allows, too high for some rows and too low for others. Real
/// codes err far less than their worst case and would hide a search that trusts them too much.
#[derive(Debug)]
struct Worst;

impl ComputeBackend for Worst {
    fn name(&self) -> &'static str {
        "worst"
    }

    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        let bound = ErrorBound::new(query, rows);
        let mut listed = Vec::new();
        selection.for_each(rows.len(), |row| listed.push(RowId(row as u32)));
        *estimates = scores(&SimdBackend, rows, query, &listed)?;
        for (estimate, row) in estimates.iter_mut().zip(listed) {
            let is_high = row.0.wrapping_mul(0x9E37_79B9) & 1 << 31 == 0;
            let off = 0.9999 * bound.of(rows.residual(row.0 as usize));
            *estimate += if is_high { off } else { -off };
        }
        Ok(())
    }

    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        SimdBackend.exact(rows, query, listed, scores)
    }
}

/// Runs [`super::search`] under a bitmap.
fn search(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<FlatHits, ComputeError> {
    let filter = mask.map(|mask| RowFilter::new(mask, tiers.rows.len()));
    super::search(backend, tiers, query, filter.as_ref(), k, thoroughness)
}

/// Scores every passing row on T2 and sorts.
fn brute_force(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    mask: Option<&RoaringBitmap>,
    k: usize,
) -> Vec<Hit> {
    let mut hits = Vec::new();
    for row in 0..rows.len() as u32 {
        if mask.is_none_or(|mask| mask.contains(row)) {
            let score = scores(backend, rows, query, &[RowId(row)]).unwrap()[0];
            hits.push(Hit { row: RowId(row), score });
        }
    }
    hits.sort_by(by_rank);
    hits.truncate(k);
    hits
}

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![Just(Data::Random), Just(Data::Clustered), Just(Data::Duplicates)]
}

/// No mask, or one that may be empty, sparse, nearly full, or name rows that do not exist.
fn mask() -> impl Strategy<Value = Option<RoaringBitmap>> {
    let runs = prop::collection::vec((0_u32..400, 1_u32..60), 0..12);
    let runs = runs.prop_map(|runs| {
        let mut mask = RoaringBitmap::new();
        for (start, width) in runs {
            mask.insert_range(start..start + width);
        }
        mask
    });
    let scattered = prop::collection::vec(0_u32..400, 0..60);
    prop_oneof![
        Just(None),
        runs.prop_map(Some),
        scattered.prop_map(|rows| Some(rows.into_iter().collect())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_path_equals_brute_force(
        seed in any::<u64>(),
        data in data(),
        kind in prop_oneof![Just(FullKind::F16), Just(FullKind::F32)],
        row_count in 0_usize..350,
        dimension in 1_usize..80,
        mask in mask(),
        k in prop_oneof![Just(0_usize), Just(1), 2_usize..30, Just(1000)],
    ) {
        let columns = columns(seed, data, row_count, dimension, kind);
        let rows = columns.view();
        // The first query is the first centre or row itself, which makes all its copies tie at the
        // top.
        let ids = SeededIds::new(seed);
        for _ in 0..2 {
            let query = PreparedQuery::new(&vector(&ids, dimension)).unwrap();
            for backend in BACKENDS {
                let wanted = brute_force(backend, &rows, &query, mask.as_ref(), k);
                let found = search(backend, &flat(rows), &query, mask.as_ref(), k, EXACT).unwrap();
                prop_assert_eq!(&found.hits, &wanted, "search on {}", backend.name());
                for path in PATHS {
                    // A full scan ignores the mask: it is only ever chosen without one.
                    if path == SearchPath::Scan && mask.is_some() {
                        continue;
                    }
                    let filter = mask.as_ref().map(|mask| RowFilter::new(mask, rows.len()));
                    let (tiers, filter) = (flat(rows), filter.as_ref());
                    let found = search_on(path, backend, &tiers, &query, filter, k, EXACT).unwrap();
                    prop_assert_eq!(&found, &wanted, "{:?} on {}", path, backend.name());
                }
            }
        }
    }
}

/// Goal: segments large enough for `search` itself to choose a scan equal brute force, with more
/// possible winners than are rescored at once: a cluster of 250 rows is within the bound.
#[test]
fn large_segments_are_scanned_and_equal_brute_force() {
    const ROWS: u32 = 2000;
    let most: RoaringBitmap = (0..ROWS).filter(|row| row % 10 != 3).collect();
    let few: RoaringBitmap = (0..ROWS).filter(|row| row % 100 == 3).collect();
    let every: RoaringBitmap = (0..ROWS + 5).collect();
    for data in [Data::Random, Data::Clustered, Data::Duplicates] {
        for kind in [FullKind::F16, FullKind::F32] {
            let columns = columns(11, data, ROWS as usize, 96, kind);
            // The first centre, so that its cluster comes first.
            let query = PreparedQuery::new(&vector(&SeededIds::new(11), 96)).unwrap();
            let rows = columns.view();
            let cases = [
                (None, SearchPath::Scan),
                (Some(&every), SearchPath::Scan),
                (Some(&most), SearchPath::MaskedScan),
                (Some(&few), SearchPath::Gather),
            ];
            for (mask, path) in cases {
                for backend in BACKENDS {
                    let hits = brute_force(backend, &rows, &query, mask, 10);
                    let found = search(backend, &flat(rows), &query, mask, 10, EXACT).unwrap();
                    assert_eq!(found, exactly(hits, path), "{data:?} {kind:?} {backend:?}");
                }
            }
        }
    }
}

#[test]
fn k_beyond_the_rows_returns_them_all() {
    let row_count = 700;
    let columns = columns(3, Data::Random, row_count, 16, FullKind::F16);
    let query = PreparedQuery::new(&[1.0; 16]).unwrap();
    for k in [row_count / 2 - 1, row_count - 1, row_count, row_count + 1] {
        let found = search(&SimdBackend, &flat(columns.view()), &query, None, k, EXACT).unwrap();
        assert_eq!(found.hits.len(), k.min(row_count));
        assert!(found.hits.is_sorted_by(|a, b| by_rank(a, b).is_lt()));
    }
}

#[test]
fn a_zero_query_returns_the_first_rows_with_score_0() {
    let columns = columns(3, Data::Random, 700, 16, FullKind::F32);
    let zero = PreparedQuery::new(&[0.0; 16]).unwrap();
    let odd: RoaringBitmap = (0..800).filter(|row| row % 2 == 1).collect();
    let found = search(&SimdBackend, &flat(columns.view()), &zero, Some(&odd), 3, EXACT).unwrap();
    let wanted = brute_force(&SimdBackend, &columns.view(), &zero, Some(&odd), 3);
    assert_eq!(found.hits, wanted);
    assert_eq!(found.hits[2], Hit { row: RowId(5), score: 0.0 });
}

#[test]
fn another_width_is_refused_even_without_rows() {
    let columns = VectorColumns::new(3, FullKind::F32).unwrap();
    let query = PreparedQuery::new(&[1.0; 4]).unwrap();
    let expected = ComputeError::DimensionMismatch { expected: 3, received: 4 };
    let found = search(&SimdBackend, &flat(columns.view()), &query, None, 5, EXACT);
    assert_eq!(found, Err(expected.clone()));
    assert_eq!(scores(&SimdBackend, &columns.view(), &query, &[]), Err(expected));
}

/// Counts the rows read from T2.
#[derive(Debug, Default)]
struct Counting {
    exact_rows: AtomicUsize,
}

impl ComputeBackend for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    scans_as_the_cpu!();

    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        self.exact_rows.fetch_add(listed.len(), Ordering::Relaxed);
        SimdBackend.exact(rows, query, listed, scores)
    }
}

/// Goal: the bound spares T2, without which the scan would be worthless. Uniform noise is the
/// hardest data: all scores are close together.
#[test]
fn a_scan_reads_a_small_part_of_t2() {
    let columns = columns(5, Data::Random, 8000, 384, FullKind::F16);
    let query = PreparedQuery::new(&vector(&SeededIds::new(6), 384)).unwrap();
    let backend = Counting::default();
    let found = search(&backend, &flat(columns.view()), &query, None, 10, EXACT).unwrap();
    assert_eq!((found.path, found.hits.len()), (SearchPath::Scan, 10));
    let read = backend.exact_rows.into_inner();
    assert!(read <= 8000 / 20, "{read} of 8000 rows were read from T2");
}

#[test]
fn a_path_has_its_word_of_the_api() {
    use SearchPath::{CondensedOneBit, Gather, Lists, MaskedScan, OneBit, Scan};
    let paths = [Gather, MaskedScan, Scan, OneBit, CondensedOneBit, Lists];
    let words = ["gather", "masked_scan", "scan", "one_bit_scan", "one_bit_scan", "lists"];
    assert_eq!(paths.map(SearchPath::as_str), words);
}
