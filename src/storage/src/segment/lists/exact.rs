//! Exact searches: all lists that a probe left are read in memory order, which is faster than in
//! order of promise because the threshold hardly rises any more. Several searches share one pass.

use crate::segment::lists::probe::{Probed, RUN_BLOCKS, Search, Seen};
use crate::segment::lists::{Effort, Lists, NearRows};
use lodestone_compute::PreparedQuery;
use lodestone_compute::rotation::Rotation;

/// Like [`super::probe()`] without patience, for several queries in one pass over T0. `rows`
/// returns the rows as seen by the query of that number.
pub fn probe_together<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    queries: &[PreparedQuery],
    k: usize,
    deviations: f32,
    rows: impl Fn(usize) -> R,
) -> Vec<Probed> {
    let effort = Effort { deviations, patience: None };
    let begin = |(at, query)| Search::new(lists, rotation, query, k, effort, rows(at));
    let mut searches: Vec<Search<'_, R>> = queries.iter().enumerate().map(begin).collect();
    search_all(lists, &mut searches);
    searches.into_iter().map(Search::finish).collect()
}

/// Runs exact searches. Each first visits its nearest lists, which gives it a score threshold; then
/// all of them read the other lists together.
pub(super) fn search_all<R: NearRows>(lists: &Lists<'_>, searches: &mut [Search<'_, R>]) {
    if lists.len() > 1 {
        searches.iter_mut().for_each(Search::probe_nearest);
    }
    for list in (0..lists.len()).filter(|list| lists.verify(*list)) {
        let is_due = |s: &Search<'_, R>| !s.visited[list] && s.has_passing(list);
        let seen: Vec<Option<Seen>> =
            searches.iter().map(|s| is_due(s).then(|| s.see(list))).collect();
        for first in (0..lists.one_bit(list).len()).step_by(RUN_BLOCKS) {
            let mut ahead = lists.blocks_from(list, first + RUN_BLOCKS, RUN_BLOCKS);
            for (search, seen) in searches.iter_mut().zip(&seen) {
                if let Some(seen) = seen {
                    search.scan_run(seen, first, std::mem::take(&mut ahead));
                    search.look_at_found();
                }
            }
        }
    }
    searches.iter_mut().for_each(|search| search.scanned = lists.len());
}
