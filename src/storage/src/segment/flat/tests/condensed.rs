//! Searches under a repeated filter equal brute force, like those under a new one.

use super::lists::grouped;
use super::*;
use crate::segment::lists::{ListPolicy, build};
use lodestone_types::Metric;

/// Goal: condensed filters equal brute force, whether spread over all rows or limited to a topic,
/// in segments with one list and with many, by each metric, for one query and for several together.
#[test]
fn condensed_filters_find_what_brute_force_finds() {
    const ROWS: usize = 40_000;
    const DIMENSION: usize = 64;
    let rotation = Rotation::new(DIMENSION);
    let one_list = ListPolicy { listed_rows_min: usize::MAX, ..ListPolicy::default() };
    for (kind, policy) in [
        (FullKind::F16, one_list),
        (FullKind::F16, ListPolicy::default()),
        (FullKind::F32, ListPolicy::default()),
    ] {
        let columns = grouped(31, ROWS, DIMENSION, kind);
        let rows = columns.view();
        let built = build(&rows, policy);
        let lists = Lists::view(DIMENSION, &built.lists, &built.one_bit).unwrap();
        let tiers = Tiers::new(rows, Some((lists, &rotation)));
        let spread: RoaringBitmap = (0..ROWS as u32).filter(|row| row % 9 == 4).collect();
        // Rows follow the centres, so these are all rows of an eighth of them.
        let topical: RoaringBitmap = (0..ROWS as u32).filter(|row| row * 7 % 1000 < 120).collect();
        for mask in [&spread, &topical] {
            let filter = RowFilter::new(mask, ROWS);
            filter.allow_condensing();
            filter.condense(&tiers);
            let ids = SeededIds::new(32);
            let near = |at: usize| {
                let mut unit = vec![0.0; DIMENSION];
                rows.unit(at * 149 % ROWS, &mut unit);
                unit.iter().map(|value| value + 0.05 * uniform(&ids)).collect::<Vec<f32>>()
            };
            let vectors: Vec<Vec<f32>> = (0..8).map(near).collect();
            let metrics: &[Metric] = match kind {
                FullKind::F16 => &[Metric::Cosine],
                FullKind::F32 => &[Metric::Cosine, Metric::Dot, Metric::L2],
            };
            for metric in metrics {
                let prepared = vectors.iter().map(|vector| PreparedQuery::by(*metric, vector));
                let queries: Vec<PreparedQuery> = prepared.collect::<Result<_, _>>().unwrap();
                for thoroughness in [EXACT, Thoroughness::default()] {
                    let (backend, k) = (&SimdBackend, 10);
                    let together =
                        search_together(backend, &tiers, &queries, Some(&filter), k, thoroughness);
                    for (query, together) in queries.iter().zip(together.unwrap()) {
                        let (tiers, filter) = (&tiers, Some(&filter));
                        let alone =
                            super::super::search(backend, tiers, query, filter, k, thoroughness);
                        assert_eq!(alone.unwrap(), together);
                        assert_eq!(together.path, SearchPath::CondensedOneBit);
                        let wanted = brute_force(backend, &rows, query, Some(mask), k);
                        let is_found = |hit: &&Hit| together.hits.contains(hit);
                        let found = wanted.iter().filter(is_found).count();
                        let missed = wanted.len() - found;
                        assert!(
                            missed <= usize::from(thoroughness != EXACT),
                            "{kind:?} {metric:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Goal: only filters between the other paths are condensed: those with few rows are read from T1,
/// and those with many use the lists.
#[test]
fn only_filters_between_the_other_paths_are_condensed() {
    let bitmap: RoaringBitmap = (0..1_000_000).collect();
    for (passing, pays) in [(4095, false), (4096, true), (32_767, true), (32_768, false)] {
        let some: RoaringBitmap = (0..passing).collect();
        let filter = RowFilter::new(&some, bitmap.len() as usize);
        assert_eq!(filter.condensed_bytes(384).is_some(), pays, "{passing}");
    }
    let most: RoaringBitmap = (0..20_000).collect();
    assert_eq!(RowFilter::new(&most, 30_000).condensed_bytes(384), None);
    // Nor is a filter for which this was not requested, or would not pay off.
    let columns = grouped(33, 5_000, 16, FullKind::F16);
    let (tiers, few) = (flat(columns.view()), (0..500).collect());
    let filter = RowFilter::new(&few, 5_000);
    for is_asked in [false, true] {
        if is_asked {
            filter.allow_condensing();
        }
        assert_eq!(filter.may_condense(), is_asked);
        filter.condense(&tiers);
        assert!(filter.condensed().is_none() && !filter.may_condense());
    }
}
