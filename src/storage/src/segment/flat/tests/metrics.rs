//! Searches by dot product and by distance: equal to brute force on every path.

use super::lists::grouped;
use super::*;
use crate::segment::lists::{ListPolicy, build};
use lodestone_types::Metric;

/// The rows with their lengths multiplied by factors from a thousandth to a thousand.
fn of_many_lengths(seed: u64, directions: &VectorColumns) -> VectorColumns {
    let (ids, dimension) = (SeededIds::new(seed ^ 5), directions.view().dimension());
    let mut columns = VectorColumns::new(dimension, FullKind::F32).unwrap();
    let FullRows::F32 { values, .. } = directions.view().full() else { unreachable!() };
    for row in values.chunks_exact(dimension) {
        let length = 10_f32.powf(3.0 * uniform(&ids));
        let row: Vec<f32> = row.iter().map(|value| value * length).collect();
        columns.push(&row).unwrap();
    }
    columns
}

/// The score in f64, by the definition of the metric.
fn defined(metric: Metric, query: &[f32], row: &[f32]) -> f64 {
    let pairs = || query.iter().zip(row).map(|(q, x)| (f64::from(*q), f64::from(*x)));
    match metric {
        Metric::Dot => pairs().map(|(q, x)| q * x).sum(),
        Metric::L2 => -pairs().map(|(q, x)| (q - x).powi(2)).sum::<f64>(),
        Metric::Cosine => unreachable!("not of these tests"),
    }
}

/// Compares a search on one path with brute force.
fn check(
    tiers: &Tiers<'_>,
    metric: Metric,
    query: &[f32],
    mask: Option<&RoaringBitmap>,
    k: usize,
    path: Option<SearchPath>,
) {
    let prepared = PreparedQuery::by(metric, query).unwrap();
    let wanted = brute_force(&SimdBackend, &tiers.rows, &prepared, mask, k);
    let FullRows::F32 { values, .. } = tiers.rows.full() else { unreachable!() };
    for hit in &wanted {
        let row = &values[hit.row.0 as usize * query.len()..][..query.len()];
        let (score, wanted) = (f64::from(hit.score), defined(metric, query, row));
        let norms = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        assert!((score - wanted).abs() <= 1e-7 * wanted.abs() + 1e-14 * norms(query) * norms(row));
    }
    for thoroughness in [EXACT, Thoroughness::default()] {
        let found = search(&Worst, tiers, &prepared, mask, k, thoroughness).unwrap();
        assert_eq!(found.hits, wanted, "{metric:?}, {:?}", found.path);
        assert!(path.is_none_or(|path| path == found.path), "{:?}", found.path);
    }
    let twice = [prepared.clone(), prepared];
    let filter = mask.map(|mask| RowFilter::new(mask, tiers.rows.len()));
    let both = search_together(&SimdBackend, tiers, &twice, filter.as_ref(), k, EXACT).unwrap();
    assert!(both.iter().all(|found| found.hits == wanted));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn few_rows_are_ranked_as_by_brute_force(
        seed in any::<u64>(),
        data in data(),
        row_count in 0_usize..350,
        dimension in 1_usize..80,
        mask in mask(),
        k in prop_oneof![Just(0_usize), Just(1), 2_usize..30, Just(1000)],
        metric in prop_oneof![Just(Metric::Dot), Just(Metric::L2)],
    ) {
        let directions = columns(seed, data, row_count, dimension, FullKind::F32);
        let columns = of_many_lengths(seed, &directions);
        let ids = SeededIds::new(seed);
        for length in [1.0, 300.0, 0.0] {
            let query: Vec<f32> = vector(&ids, dimension).iter().map(|v| v * length).collect();
            check(&flat(columns.view()), metric, &query, mask.as_ref(), k, None);
        }
    }
}

/// Goal: with T0, results equal brute force: without a mask, with a wide and a narrow one, for
/// queries of other lengths and one equal to a row.
#[test]
fn many_rows_are_ranked_as_by_brute_force() {
    const ROWS: usize = 6000;
    const DIMENSION: usize = 256;
    let rotation = Rotation::new(DIMENSION);
    for list_rows in [50, ROWS] {
        let columns = of_many_lengths(8, &grouped(12, ROWS, DIMENSION, FullKind::F32));
        let rows = columns.view();
        let policy = ListPolicy { listed_rows_min: 1000, list_rows };
        let built = build(&rows, policy);
        let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
        let tiers = Tiers::new(rows, Some((lists, &rotation)));
        let narrow: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 6 == 0).collect();
        let FullRows::F32 { values, .. } = rows.full() else { unreachable!() };
        let ids = SeededIds::new(13);
        for metric in [Metric::Dot, Metric::L2] {
            for length in [0.01, 1.0, 30.0] {
                let near = &values[4 * DIMENSION..][..DIMENSION];
                let query: Vec<f32> =
                    near.iter().map(|value| (value + 0.06 * uniform(&ids)) * length).collect();
                for mask in [None, Some(&narrow)] {
                    check(&tiers, metric, &query, mask, 10, Some(SearchPath::OneBit));
                }
            }
            check(&tiers, metric, &values[..DIMENSION], None, 10, Some(SearchPath::OneBit));
            check(&tiers, metric, &[0.0; DIMENSION], None, 10, Some(SearchPath::Scan));
        }
        let same = PreparedQuery::by(Metric::L2, &values[..DIMENSION]).unwrap();
        let found = search(&SimdBackend, &tiers, &same, None, 1, EXACT).unwrap();
        assert_eq!(found.hits, [Hit { row: RowId(0), score: 0.0 }]);
    }
}

/// Goal: at the extremes of f32 scores saturate, and are never infinite or NaN.
#[test]
fn the_longest_and_shortest_rows_have_finite_scores() {
    let lengths = [f32::MAX, f32::MIN, 1e30, -1e19, 1.0, 1e-30, -f32::MIN_POSITIVE, 1e-45, 0.0];
    let mut columns = VectorColumns::new(5, FullKind::F32).unwrap();
    for length in lengths {
        columns.push(&[length, length / 2.0, 0.0, length, -length]).unwrap();
    }
    let tiers = flat(columns.view());
    for metric in [Metric::Dot, Metric::L2] {
        for length in lengths {
            let query = PreparedQuery::by(metric, &[length; 5]).unwrap();
            let wanted = brute_force(&SimdBackend, &tiers.rows, &query, None, 9);
            assert!(wanted.iter().all(|hit| hit.score.is_finite()));
            for k in 1..9 {
                let scan = SearchPath::Scan;
                let found = search_on(scan, &SimdBackend, &tiers, &query, None, k, EXACT).unwrap();
                assert_eq!(found, wanted[..k], "{metric:?} {length}");
            }
        }
    }
}
