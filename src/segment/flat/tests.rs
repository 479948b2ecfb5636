//! Exact means equal to brute force: the same rows with the same bits, on every path.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::*;
use crate::compute::kmeans::CodeRows;
use crate::compute::{FullKind, ScalarBackend, SimdBackend, VectorColumns};
use crate::segment::lists::{ListPolicy, ListSource, Older, build};
use crate::types::{IdSource, SeededIds};

const BACKENDS: [&dyn ComputeBackend; 3] = [&ScalarBackend, &SimdBackend, &Worst];
const EXACT: Thoroughness = Thoroughness::Exact;
const PATHS: [SearchPath; 3] = [SearchPath::Gather, SearchPath::MaskedScan, SearchPath::Scan];

/// Rows without lists.
fn flat(rows: VectorRows<'_>) -> Tiers<'_> {
    Tiers { rows, listed: None }
}

/// How rows relate to each other.
#[derive(Debug, Clone, Copy)]
enum Data {
    /// Independent directions.
    Random,
    /// Eight centres with a little noise: many rows within the bound of each other.
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

/// [`super::search`] under a bitmap.
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
        // The first query is the first centre or row itself: a tie of all its copies at the top.
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

/// Segments large enough that `search` itself chooses to scan, and that more rows than are
/// rescored at once may win: a cluster of 250 rows lies within the bound.
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
                    assert_eq!(found, FlatHits { hits, path }, "{data:?} {kind:?} {backend:?}");
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

    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        SimdBackend.scan(rows, query, selection, estimates)
    }

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

/// The bound must spare T2, or the scan is worth nothing. Uniform noise is the hardest data there
/// is: all scores lie close together.
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

/// Rows round many centres, as texts are: neighbours are near, most others are not.
fn grouped(seed: u64, rows: usize, dimension: usize, kind: FullKind) -> VectorColumns {
    let ids = SeededIds::new(seed);
    let centres: Vec<Vec<f32>> = (0..rows / 40).map(|_| vector(&ids, dimension)).collect();
    let mut columns = VectorColumns::new(dimension, kind).unwrap();
    for row in 0..rows {
        let centre = &centres[row * 7 % centres.len()];
        let row: Vec<f32> = centre.iter().map(|value| value + 0.7 * uniform(&ids)).collect();
        columns.push(&row).unwrap();
    }
    columns
}

const SMALL_LISTS: ListPolicy = ListPolicy { listed_rows_min: 1000, list_rows: 50 };

/// Both searches over lists: the exact one equals brute force, the probing one finds what it was
/// calibrated for; each with no mask, a wide one and a narrow one.
#[test]
fn lists_find_what_brute_force_finds() {
    const ROWS: usize = 6000;
    const DIMENSION: usize = 256;
    let rotation = Rotation::new(DIMENSION);
    for (kind, policy) in [
        (FullKind::F16, ListPolicy::default()),
        (FullKind::F16, SMALL_LISTS),
        (FullKind::F32, SMALL_LISTS),
    ] {
        let columns = grouped(12, ROWS, DIMENSION, kind);
        let rows = columns.view();
        let built = build(&rows, policy);
        let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
        lists.check(ROWS).unwrap();
        assert!(lists.are_telling(10));
        assert_eq!(lists.len() > 1, policy == SMALL_LISTS);
        let tiers = Tiers { rows, listed: Some((lists, &rotation)) };
        let wide: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 3 != 0).collect();
        let narrow: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 6 == 0).collect();
        let (mut wanted, mut found) = (0, 0);
        let ids = SeededIds::new(13);
        for at in 0..40 {
            // Near a row, as questions are near what answers them.
            let near = columns_row(&rows, at * 149 % ROWS);
            let near: Vec<f32> = near.iter().map(|value| value + 0.06 * uniform(&ids)).collect();
            let query = PreparedQuery::new(&near).unwrap();
            for mask in [None, Some(&wide), Some(&narrow)] {
                let truth = brute_force(&SimdBackend, &rows, &query, mask, 10);
                let exact = search(&SimdBackend, &tiers, &query, mask, 10, EXACT).unwrap();
                assert_eq!(exact, FlatHits { hits: truth.clone(), path: SearchPath::OneBit });
                let filter = mask.map(|mask| RowFilter::new(mask, ROWS));
                let (path, probing) = (SearchPath::Lists, Thoroughness::Probing);
                let (backend, filter) = (&SimdBackend, filter.as_ref());
                let probed = search_on(path, backend, &tiers, &query, filter, 10, probing).unwrap();
                assert_eq!(probed.len(), 10);
                wanted += truth.len();
                found += probed.iter().filter(|hit| truth.contains(hit)).count();
            }
        }
        assert!(found * 100 >= wanted * 95, "{found} of {wanted} neighbours");
    }
}

fn columns_row(rows: &VectorRows<'_>, row: usize) -> Vec<f32> {
    let mut unit = vec![0.0; rows.dimension()];
    rows.unit(row, &mut unit);
    unit
}

/// Queries that are asked together get what each gets alone: on every path, with and without a
/// filter, as few as one and more than share a pass; a zero query among them too.
#[test]
fn together_finds_what_each_finds_alone() {
    const ROWS: usize = 6000;
    let rotation = Rotation::new(64);
    for kind in [FullKind::F16, FullKind::F32] {
        let columns = grouped(17, ROWS, 64, kind);
        let rows = columns.view();
        let built = build(&rows, SMALL_LISTS);
        let lists = Lists::view(64, &built.lists, &built.one_bit).unwrap();
        let with_lists = Tiers { rows, listed: Some((lists, &rotation)) };
        let ids = SeededIds::new(18);
        let near = |at: usize| columns_row(&rows, at * 149 % ROWS);
        let mut vectors: Vec<Vec<f32>> = (0..20).map(near).collect();
        vectors.push(vector(&ids, 64));
        let queries: Vec<PreparedQuery> =
            vectors.iter().map(|vector| PreparedQuery::new(vector).unwrap()).collect();
        let zero = [queries[0].clone(), PreparedQuery::new(&[0.0; 64]).unwrap()];
        let some: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 3 != 0).collect();
        let few: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 100 == 0).collect();
        for mask in [None, Some(&some), Some(&few)] {
            let filter = mask.map(|mask| RowFilter::new(mask, ROWS));
            for (tiers, thoroughness) in
                [(flat(rows), EXACT), (with_lists, EXACT), (with_lists, Thoroughness::Probing)]
            {
                for queries in [&queries[..1], &queries[..5], &queries, &zero] {
                    let (filter, backend) = (filter.as_ref(), &SimdBackend);
                    let together =
                        search_together(backend, &tiers, queries, filter, 10, thoroughness);
                    let alone: Result<Vec<FlatHits>, _> = queries
                        .iter()
                        .map(|query| {
                            super::search(backend, &tiers, query, filter, 10, thoroughness)
                        })
                        .collect();
                    assert_eq!(together, alone);
                }
            }
        }
    }
}

/// A search that looks at p of n lists finds at least about p / n of the neighbours, however
/// little the lists tell: rows without structure are the worst case.
#[test]
fn recall_is_no_less_than_the_share_of_lists() {
    const ROWS: usize = 4000;
    let columns = columns(19, Data::Random, ROWS, 48, FullKind::F16);
    let (rows, rotation) = (columns.view(), Rotation::new(48));
    let built = build(&rows, SMALL_LISTS);
    let lists = Lists::view(48, &built.lists, &built.one_bit).unwrap();
    let ids = SeededIds::new(20);
    for patience in [5, 20, lists.len()] {
        let (mut wanted, mut found, mut looked_at) = (0, 0, 0);
        for _ in 0..40 {
            let query = PreparedQuery::new(&vector(&ids, 48)).unwrap();
            let truth = brute_force(&SimdBackend, &rows, &query, None, 10);
            let bound = ErrorBound::likely(&query, &rows);
            let seen = SeenRows { rows: &rows, query: &query, bound, filter: None };
            let effort = Effort::probing(Some(patience));
            let probed = probe(&lists, &rotation, &query, 10, effort, seen);
            looked_at += probed.lists;
            wanted += truth.len();
            let rows: Vec<RowId> = probed.candidates.iter().map(|hit| hit.row).collect();
            found += truth.iter().filter(|hit| rows.contains(&hit.row)).count();
        }
        let floor = looked_at as f64 / (40 * lists.len()) as f64;
        let recall = found as f64 / wanted as f64;
        assert!(recall >= floor.min(0.98), "patience {patience}: {recall} below {floor}");
    }
}

/// A probe goes on until it has k rows or has seen all of them, however far they are.
#[test]
fn a_probe_returns_k_rows_where_there_are_k() {
    let columns = grouped(14, 3000, 40, FullKind::F16);
    let (rows, rotation) = (columns.view(), Rotation::new(40));
    let built = build(&rows, SMALL_LISTS);
    let lists = Lists::view(40, &built.lists, &built.one_bit).unwrap();
    let query = PreparedQuery::new(&vector(&SeededIds::new(15), 40)).unwrap();
    let listed = (lists, &rotation);
    let bound = ErrorBound::likely(&query, &rows);
    for (passing, k) in [(3, 10), (10, 10), (400, 50), (3000, 2999)] {
        let step = 3000 / passing;
        let mask: RoaringBitmap = (0..passing).map(|row| row * step).collect();
        let (filter, effort) = (RowFilter::new(&mask, 3000), Effort::probing(Some(1)));
        let found = probed(bound, &rows, &listed, &query, Some(&filter), k, effort);
        assert!(found.len() >= k.min(passing as usize), "{} of {k}", found.len());
        assert!(found.iter().all(|hit| mask.contains(hit.row.0)));
    }
}

/// Lists that a merge takes over keep their rows; those out of size are split and dissolved.
#[test]
fn a_merge_keeps_the_lists_it_is_given() {
    struct Grown<'a>(VectorRows<'a>, Older);
    impl CodeRows for Grown<'_> {
        fn codes(&self, row: u32) -> &[i8] {
            CodeRows::codes(&self.0, row)
        }
        fn scale(&self, row: u32) -> f32 {
            CodeRows::scale(&self.0, row)
        }
    }
    impl ListSource for Grown<'_> {
        fn row_count(&self) -> usize {
            self.0.len()
        }
        fn dimension(&self) -> usize {
            ListSource::dimension(&self.0)
        }
        fn unit(&self, row: u32, unit: &mut [f32]) {
            ListSource::unit(&self.0, row, unit);
        }
        fn older(&self) -> Option<&Older> {
            Some(&self.1)
        }
    }
    let columns = grouped(16, 4000, 64, FullKind::F16);
    let rows = columns.view();
    let first = build(&rows, SMALL_LISTS);
    let lists = Lists::view(64, &first.lists, &first.one_bit).unwrap();
    let before = lists.list_of_rows();
    // Every fourth row is new.
    let known = before.iter().enumerate().map(|(row, list)| (row % 4 != 0).then_some(*list));
    let older = Older { points: lists.decoded_points(), list_of: known.collect() };
    let second = build(&Grown(rows, older), SMALL_LISTS);
    let lists = Lists::view(64, &second.lists, &second.one_bit).unwrap();
    lists.check(4000).unwrap();
    let after = lists.list_of_rows();
    // Neighbours of the same centre, both old: rows 100 apart follow the same centres.
    let (mut pairs, mut together) = (0, 0);
    for (row, other) in (1..3900).map(|row| (row, row + 100)).filter(|(row, _)| row % 4 != 0) {
        if before[row] == before[other] {
            pairs += 1;
            together += usize::from(after[row] == after[other]);
        }
    }
    assert!(pairs > 100 && together * 10 >= pairs * 9, "{together} of {pairs} stay together");
    let largest = (0..lists.len()).map(|list| lists.rows(list).len()).max().unwrap();
    assert!(largest <= 4 * SMALL_LISTS.list_rows, "{largest}");
}
