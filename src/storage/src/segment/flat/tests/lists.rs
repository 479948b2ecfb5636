//! Searches through lists and T0: exact ones equal brute force, probing ones find most of it.

use super::*;
use crate::segment::flat::search as flat_search;
use crate::segment::lists::{
    Effort, ListPolicy, ListSource, Older, Probed, Recall, build, probe, probe_side_by_side,
};
use lodestone_compute::kmeans::CodeRows;
use lodestone_types::Metric;

/// Rows around many centres, like texts: neighbours are near, most other rows are not.
pub(super) fn grouped(seed: u64, rows: usize, dimension: usize, kind: FullKind) -> VectorColumns {
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

/// Goal: the exact search over lists equals brute force, and the probing one finds what it was
/// calibrated for, each with no mask, a wide one and a narrow one.
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
        let tiers = Tiers::new(rows, Some((lists, &rotation)));
        let wide: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 3 != 0).collect();
        let narrow: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 6 == 0).collect();
        let (mut wanted, mut found) = (0, 0);
        let ids = SeededIds::new(13);
        for at in 0..40 {
            // Near a row, as questions are near the passages that answer them.
            let near = columns_row(&rows, at * 149 % ROWS);
            let near: Vec<f32> = near.iter().map(|value| value + 0.06 * uniform(&ids)).collect();
            let query = PreparedQuery::new(&near).unwrap();
            for mask in [None, Some(&wide), Some(&narrow)] {
                let truth = brute_force(&SimdBackend, &rows, &query, mask, 10);
                let exact = search(&SimdBackend, &tiers, &query, mask, 10, EXACT).unwrap();
                assert_eq!(exact, exactly(truth.clone(), SearchPath::OneBit));
                let filter = mask.map(|mask| RowFilter::new(mask, ROWS));
                let (path, probing) = (SearchPath::Lists, Thoroughness::default());
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

/// Goal: for queries as far from the rows as those of the trial searches, but different ones, no
/// fewer neighbours are found than the segment was measured for, in a part of the lists.
#[test]
fn the_recall_that_was_measured_holds_for_other_queries() {
    const ROWS: usize = 12_000;
    const DIMENSION: usize = 64;
    let rotation = Rotation::new(DIMENSION);
    let columns = grouped(41, ROWS, DIMENSION, FullKind::F16);
    let rows = columns.view();
    let policy = ListPolicy { list_rows: 40, ..SMALL_LISTS };
    let built = build(&rows, policy);
    let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
    let tiers = Tiers::new(rows, Some((lists, &rotation)));
    let far = |at: usize| {
        let mut query = columns_row(&rows, at * 71 % ROWS);
        let others = [at * 193, at * 389 + 7, at * 611 + 3, at * 977 + 11];
        let others = others.map(|row| columns_row(&rows, row % ROWS));
        let direction = |at: usize| others[0][at] + others[1][at] - others[2][at] - others[3][at];
        let length = (0..DIMENSION).map(|at| direction(at).powi(2)).sum::<f32>().sqrt();
        query.iter_mut().enumerate().for_each(|(at, value)| *value += 1.4 / length * direction(at));
        PreparedQuery::new(&query).unwrap()
    };
    let queries: Vec<PreparedQuery> = (1..=200).map(far).collect();
    let found = |recall| {
        let probing = Thoroughness::Probing(recall);
        let found = queries.iter().map(|query| {
            let truth = brute_force(&SimdBackend, &rows, query, None, 10);
            let path = SearchPath::Lists;
            let found = search_on(path, &SimdBackend, &tiers, query, None, 10, probing).unwrap();
            found.iter().filter(|hit| truth.contains(hit)).count()
        });
        found.sum::<usize>() as f64 / (10 * queries.len()) as f64
    };
    let (quick, usual) = (found(Recall::Quick), found(Recall::Usual));
    let patience = |recall| lists.patience(10, recall);
    let told = format!("{quick} {usual}: {} {}", patience(Recall::Quick), patience(Recall::Usual));
    assert!(quick >= 0.96 && usual >= 0.985, "{told}");
    let (less, more) = (patience(Recall::Quick), patience(Recall::Usual));
    assert!(less < more, "{told}");
    let visited = |query: &PreparedQuery| {
        let bound = ErrorBound::likely(query, &rows);
        let seen = SeenRows { rows: &rows, blocks: None, query, bound, filter: None };
        probe(&lists, &rotation, query, 10, Effort::probing(Some(more)), seen).lists
    };
    let visited = queries.iter().map(visited).sum::<usize>() / queries.len();
    assert!(visited < lists.len() / 2, "{told}: {visited} of {}", lists.len());
    // Segments without the quick patience use the usual one.
    let mut older = built.lists.clone();
    older[36..44].fill(0);
    let older = Lists::view(DIMENSION, &older, &built.one_bit).unwrap();
    assert_eq!(older.patience(10, Recall::Quick), patience(Recall::Usual));
}

/// Goal: with the same patience fewer lists are visited if unpromising ones count for more; in
/// older segments, whose head has no steepness, each counts for one.
#[test]
fn lists_that_promise_little_end_a_search_sooner() {
    const PATIENCE: usize = 20;
    let (columns, rotation) = (grouped(61, 6000, 64, FullKind::F16), Rotation::new(64));
    let rows = columns.view();
    let built = build(&rows, SMALL_LISTS);
    let mut older = built.lists.clone();
    older[44..48].fill(0);
    let [older, lists] =
        [&older, &built.lists].map(|lists| Lists::view(64, lists, &built.one_bit).unwrap());
    let effort = Effort::probing(Some(PATIENCE));
    let (mut fewer, mut found, mut wanted) = (0, 0, 0);
    for at in 0..40 {
        let query = PreparedQuery::new(&columns_row(&rows, at * 149)).unwrap();
        let ask = |lists: &Lists<'_>| {
            let bound = ErrorBound::likely(&query, &rows);
            let seen = SeenRows { rows: &rows, blocks: None, query: &query, bound, filter: None };
            probe(lists, &rotation, &query, 10, effort, seen)
        };
        let (patient, probed) = (ask(&older), ask(&lists));
        assert!(patient.lists > PATIENCE && probed.lists <= patient.lists);
        fewer += usize::from(probed.lists * 2 < patient.lists);
        let truth = brute_force(&SimdBackend, &rows, &query, None, 10);
        let is_found = |hit: &&Hit| probed.candidates.iter().any(|other| other.row == hit.row);
        found += truth.iter().filter(is_found).count();
        wanted += truth.len();
    }
    assert!(fewer > 20 && found * 100 >= wanted * 97, "{fewer} {found} of {wanted}");
}

/// A backend that holds all rows and reads them in no time.
#[derive(Debug)]
struct Fast(usize);

impl ComputeBackend for Fast {
    fn name(&self) -> &'static str {
        "fast"
    }

    scans_as_the_cpu!();
    scores_as_the_cpu!();

    fn prefers_scan(&self, _: &VectorRows<'_>, passing: usize, _: usize, _: usize) -> bool {
        passing <= self.0
    }
}

/// Goal: lists are not used if the backend says that it scans faster: all rows, or those of a
/// filter.
#[test]
fn a_fast_backend_scans_instead() {
    const ROWS: usize = 6000;
    let rotation = Rotation::new(64);
    let columns = grouped(17, ROWS, 64, FullKind::F16);
    let rows = columns.view();
    let built = build(&rows, SMALL_LISTS);
    let lists = Lists::view(64, &built.lists, &built.one_bit).unwrap();
    let tiers = Tiers::new(rows, Some((lists, &rotation)));
    let query = PreparedQuery::new(&columns_row(&rows, 7)).unwrap();
    let most: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 3 != 0).collect();
    for (rows_max, mask, path) in [
        (0, None, SearchPath::OneBit),
        (ROWS - 1, None, SearchPath::OneBit),
        (ROWS, None, SearchPath::Scan),
        (ROWS - 1, Some(&most), SearchPath::MaskedScan),
        (0, Some(&most), SearchPath::OneBit),
    ] {
        let found = search(&Fast(rows_max), &tiers, &query, mask, 10, EXACT).unwrap();
        let wanted = brute_force(&SimdBackend, &rows, &query, mask, 10);
        assert_eq!(found, exactly(wanted, path), "fast up to {rows_max} rows");
    }
}

fn columns_row(rows: &VectorRows<'_>, row: usize) -> Vec<f32> {
    let mut unit = vec![0.0; rows.dimension()];
    rows.unit(row, &mut unit);
    unit
}

/// Goal: queries searched together get what each gets alone, on every path, with and without a
/// filter, from a single one to more than share a pass, including a zero query.
#[test]
fn together_finds_what_each_finds_alone() {
    const ROWS: usize = 6000;
    let rotation = Rotation::new(64);
    for kind in [FullKind::F16, FullKind::F32] {
        let columns = grouped(17, ROWS, 64, kind);
        let rows = columns.view();
        let built = build(&rows, SMALL_LISTS);
        let lists = Lists::view(64, &built.lists, &built.one_bit).unwrap();
        let with_lists = Tiers::new(rows, Some((lists, &rotation)));
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
                [(flat(rows), EXACT), (with_lists, EXACT), (with_lists, Thoroughness::default())]
            {
                for queries in [&queries[..1], &queries[..5], &queries, &zero] {
                    let (filter, backend) = (filter.as_ref(), &SimdBackend);
                    let together =
                        search_together(backend, &tiers, queries, filter, 10, thoroughness);
                    let alone: Result<Vec<FlatHits>, _> = queries
                        .iter()
                        .map(|query| flat_search(backend, &tiers, query, filter, 10, thoroughness))
                        .collect();
                    assert_eq!(together, alone);
                }
            }
        }
    }
}

/// Goal: a search of p out of n lists finds at least about p / n of the neighbours, however little
/// the lists discriminate; unstructured rows are the worst case.
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
            let seen = SeenRows { rows: &rows, blocks: None, query: &query, bound, filter: None };
            let effort = Effort::probing(Some(patience));
            let probed = probe(&lists, &rotation, &query, 10, effort, seen);
            looked_at += probed.lists;
            wanted += truth.len();
            let rows: Vec<RowId> = probed.candidates.iter().map(|hit| hit.row).collect();
            found += truth.iter().filter(|hit| rows.contains(&hit.row)).count();
        }
        let share = looked_at as f64 / (40 * lists.len()) as f64;
        let recall = found as f64 / wanted as f64;
        assert!(recall >= share.min(0.98), "patience {patience}: {recall} below {share}");
    }
}

/// Goal: under a filter that lets whole groups of rows pass, the lists of the others are skipped
/// and end no search, also if the query is nearer to them.
#[test]
fn lists_that_a_filter_empties_do_not_count() {
    const ROWS: usize = 12_000;
    const DIMENSION: usize = 64;
    let (columns, rotation) =
        (grouped(43, ROWS, DIMENSION, FullKind::F16), Rotation::new(DIMENSION));
    let rows = columns.view();
    let built = build(&rows, ListPolicy { list_rows: 40, ..SMALL_LISTS });
    let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
    let group = |row: usize| row * 7 % (ROWS / 40);
    let is_passing = |row: &u32| group(*row as usize).is_multiple_of(5);
    let mask: RoaringBitmap = (0..ROWS as u32).filter(is_passing).collect();
    let filled = |list: &usize| lists.rows(*list).iter().any(|row| mask.contains(*row));
    let filled = (0..lists.len()).filter(filled).count();
    let filter = RowFilter::new(&mask, ROWS);
    let queries: Vec<PreparedQuery> = (0..ROWS)
        .filter(|row| !mask.contains(*row as u32))
        .step_by(97)
        .map(|row| PreparedQuery::new(&columns_row(&rows, row)).unwrap())
        .collect();
    let seen = |at: usize| {
        let (query, filter) = (&queries[at], Some(&filter));
        let bound = ErrorBound::likely(query, &rows);
        SeenRows { rows: &rows, blocks: None, query, bound, filter }
    };
    let patience = lists.patience(10, Recall::Usual);
    let effort = Effort::probing(Some(patience));
    let together = probe_side_by_side(&lists, &rotation, &queries, 10, (effort, patience), seen);
    let (mut wanted, mut found, mut found_together) = (0, 0, 0);
    for (at, query) in queries.iter().enumerate() {
        let truth = brute_force(&SimdBackend, &rows, query, Some(&mask), 10);
        let alone = probe(&lists, &rotation, query, 10, effort, seen(at));
        assert!(alone.lists <= filled, "{} of {filled} lists", alone.lists);
        let hits = |probed: &Probed| {
            let is_found = |hit: &&Hit| probed.candidates.iter().any(|it| it.row == hit.row);
            truth.iter().filter(is_found).count()
        };
        wanted += truth.len();
        found += hits(&alone);
        found_together += hits(&together[at]);
    }
    let told = format!("{found} and {found_together} of {wanted}");
    assert!(found * 100 >= wanted * 98 && found_together * 100 >= wanted * 98, "{told}");
}

/// Goal: a probe continues until it has k rows or has seen all of them, however far they are.
#[test]
fn a_probe_returns_k_rows_where_there_are_k() {
    let columns = grouped(14, 3000, 40, FullKind::F16);
    let (rows, rotation) = (columns.view(), Rotation::new(40));
    let built = build(&rows, SMALL_LISTS);
    let lists = Lists::view(40, &built.lists, &built.one_bit).unwrap();
    let query = PreparedQuery::new(&vector(&SeededIds::new(15), 40)).unwrap();
    let bound = ErrorBound::likely(&query, &rows);
    for (passing, k) in [(3, 10), (10, 10), (400, 50), (3000, 2999)] {
        let step = 3000 / passing;
        let mask: RoaringBitmap = (0..passing).map(|row| row * step).collect();
        let (filter, effort) = (RowFilter::new(&mask, 3000), Effort::probing(Some(1)));
        let seen =
            SeenRows { rows: &rows, blocks: None, query: &query, bound, filter: Some(&filter) };
        let found = probe(&lists, &rotation, &query, k, effort, seen).candidates;
        assert!(found.len() >= k.min(passing as usize), "{} of {k}", found.len());
        assert!(found.iter().all(|hit| mask.contains(hit.row.0)));
    }
}

/// Goal: lists that a merge takes over keep their rows; those of unsuitable size are split or
/// dissolved.
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
    // Old pairs with the same centre: rows 100 apart follow the same centres.
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
    // Fewer rows than lists are made for keep the lists that they have.
    let older =
        Older { points: lists.decoded_points(), list_of: after.into_iter().map(Some).collect() };
    let fewer = ListPolicy { listed_rows_min: 5000, ..SMALL_LISTS };
    let kept = build(&Grown(rows, older), fewer);
    assert_eq!(Lists::view(64, &kept.lists, &kept.one_bit).unwrap().len(), lists.len());
    let fresh = build(&rows, fewer);
    assert_eq!(Lists::view(64, &fresh.lists, &fresh.one_bit).unwrap().len(), 1);
}

/// Goal: searches side by side find as much as each alone, with and without a filter, and k rows if
/// there are k. Method: patience of a few lists, so that most are skipped.
#[test]
fn side_by_side_finds_as_much_as_alone() {
    const ROWS: usize = 6000;
    let (columns, rotation) = (grouped(23, ROWS, 64, FullKind::F16), Rotation::new(64));
    let rows = columns.view();
    let built = build(&rows, SMALL_LISTS);
    let lists = Lists::view(64, &built.lists, &built.one_bit).unwrap();
    let tiers = Tiers::new(rows, Some((lists, &rotation)));
    let ids = SeededIds::new(24);
    let near = |at: usize| {
        let near = columns_row(&rows, at * 149 % ROWS);
        near.iter().map(|value| value + 0.06 * uniform(&ids)).collect::<Vec<f32>>()
    };
    let queries: Vec<PreparedQuery> =
        (0..40).map(|at| PreparedQuery::new(&near(at)).unwrap()).collect();
    let half: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 2 == 0).collect();
    let few: RoaringBitmap = (0..7).map(|row| row * 800).collect();
    for (mask, patience) in [(None, 6), (Some(&half), 6), (None, 1), (Some(&few), 6)] {
        let filter = mask.map(|mask| RowFilter::new(mask, ROWS));
        let tuned = Thoroughness::Tuned { patience, deviations: 2.5 };
        let ask = |queries: &[PreparedQuery]| {
            through_lists(SearchPath::Lists, &tiers, queries, filter.as_ref(), 10, tuned)
        };
        let together = ask(&queries);
        let (mut wanted, mut found, mut found_alone) = (0, 0, 0);
        for (query, together) in queries.iter().zip(together) {
            let alone = ask(std::slice::from_ref(query)).remove(0);
            let truth = brute_force(&SimdBackend, &rows, query, mask, 10);
            assert!(together.len() >= truth.len());
            let hit = |candidates: &[Hit]| {
                let is_there = |hit: &&Hit| candidates.iter().any(|other| other.row == hit.row);
                truth.iter().filter(is_there).count()
            };
            wanted += truth.len();
            (found, found_alone) = (found + hit(&together), found_alone + hit(&alone));
        }
        assert!(found * 100 >= found_alone * 97, "{found}, alone {found_alone} of {wanted}");
    }
}

/// Goal: slots that fit their checksums but name rows that do not exist abort no search, and cost
/// it no other row. Method: every 50th row is missing from its list.
#[test]
fn slots_of_rows_that_are_not_there_are_passed_over() {
    const ROWS: usize = 3000;
    let rotation = Rotation::new(64);
    for (kind, metrics) in [
        (FullKind::F16, &[Metric::Cosine][..]),
        (FullKind::F32, &[Metric::Cosine, Metric::Dot, Metric::L2]),
    ] {
        let columns = grouped(51, ROWS, 64, kind);
        let rows = columns.view();
        let mut built = build(&rows, SMALL_LISTS);
        let slots = Lists::view(64, &built.lists, &built.one_bit).unwrap().slots().to_vec();
        let slots_at = built.lists.len() - slots.len() * 4;
        for (slot, row) in slots.iter().enumerate().filter(|(_, row)| *row % 50 == 0) {
            let beyond = if row % 100 == 0 { u32::MAX } else { row + ROWS as u32 };
            built.lists[slots_at + slot * 4..][..4].copy_from_slice(&beyond.to_le_bytes());
        }
        let lists = Lists::view(64, &built.lists, &built.one_bit).unwrap();
        assert_eq!(lists.check(ROWS), Err("a list names a row that is not there"));
        let tiers = Tiers::new(rows, Some((lists, &rotation)));
        let left: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 50 != 0).collect();
        let half: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 2 == 0).collect();
        for metric in metrics {
            let query = PreparedQuery::by(*metric, &columns_row(&rows, 100)).unwrap();
            for mask in [None, Some(&half)] {
                let filter = mask.map(|mask| RowFilter::new(mask, ROWS));
                let among = mask.map_or_else(|| left.clone(), |mask| mask & &left);
                let wanted = brute_force(&SimdBackend, &rows, &query, Some(&among), 10);
                let ask = |path, thoroughness| {
                    let filter = filter.as_ref();
                    search_on(path, &SimdBackend, &tiers, &query, filter, 10, thoroughness).unwrap()
                };
                assert_eq!(ask(SearchPath::OneBit, EXACT), wanted, "{metric:?}");
                let probed = ask(SearchPath::Lists, Thoroughness::default());
                assert!(probed.len() == 10 && probed.iter().all(|hit| among.contains(hit.row.0)));
            }
        }
    }
}
