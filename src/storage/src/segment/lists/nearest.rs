//! The lists whose points are nearest to a query, by T0 of the points.

use crate::segment::lists::Lists;
use lodestone_compute::RankKey;
use lodestone_compute::one_bit::task::MayReach;
use lodestone_compute::one_bit::{BLOCK_ROWS, OneBitQuery, Reference};
use lodestone_types::RowId;

/// Lists beyond the patience that are sorted together. T0 gives the distance of a point only
/// roughly: with half as many a search ends before lists that promise more than those it knows, and
/// finds .984 instead of .990 of the neighbours (1,000,000 real passages).
const LISTS_AT_ONCE_MORE: usize = 24;
/// Blocks of points between two selections of the nearest.
const POINT_BLOCKS: usize = 4;
/// Reference of the points: the origin.
const NOWHERE: Reference = Reference { dot: 0.0, allowance: 0.0 };

/// Lists that are sorted together; more where a search ends by its patience alone.
pub(super) fn lists_at_once(lists: &Lists<'_>, patience: usize) -> usize {
    let times = if lists.steepness() > 0.0 { 1 } else { 2 };
    patience.saturating_mul(times).saturating_add(LISTS_AT_ONCE_MORE).min(lists.len())
}

/// Takes the `count` highest keys out of `order`.
pub(super) fn take_nearest(order: &mut Vec<RankKey>, count: usize) -> Vec<RankKey> {
    let rest = order.len().saturating_sub(count);
    if rest > 0 {
        order.select_nth_unstable(rest);
    }
    order.drain(rest..).collect()
}

/// For each query the `count` lists of highest upper bounds, in no order.
pub(super) fn nearest(
    lists: &Lists<'_>,
    queries: &[&OneBitQuery],
    count: usize,
) -> Vec<Vec<RankKey>> {
    let points = lists.points();
    let run = |first: usize| points.run(first, POINT_BLOCKS.min(points.len() - first));
    let mut nearest: Vec<Nearest> = queries.iter().map(|_| Nearest::new(count)).collect();
    let mut found = Vec::new();
    for first in (0..points.len()).step_by(POINT_BLOCKS) {
        let mut ahead = run(points.len().min(first + POINT_BLOCKS)).as_bytes();
        for (nearest, query) in nearest.iter_mut().zip(queries) {
            let ahead = std::mem::take(&mut ahead);
            run(first).scan(query, NOWHERE, nearest.threshold, ahead, &mut found);
            let at = |found: &MayReach| found.position + (first * BLOCK_ROWS) as u32;
            // Rows that only fill up the last block come last.
            let found = found.drain(..).take_while(|found| (at(found) as usize) < lists.len());
            nearest.extend(found.map(|found| RankKey::new(found.upper, RowId(at(&found)))));
        }
    }
    nearest.into_iter().map(Nearest::finish).collect()
}

/// The highest of the keys so far. Only candidates for them are compared twice: sorting thousands
/// of lists costs more than visiting ten.
struct Nearest {
    count: usize,
    keys: Vec<RankKey>,
    threshold: f32,
}

impl Nearest {
    fn new(count: usize) -> Self {
        let keys = Vec::with_capacity(2 * count + POINT_BLOCKS * BLOCK_ROWS);
        Self { count, keys, threshold: f32::NEG_INFINITY }
    }

    fn extend(&mut self, keys: impl Iterator<Item = RankKey>) {
        self.keys.extend(keys);
        if self.keys.len() >= 2 * self.count {
            self.cut();
        }
    }

    /// Leaves the highest keys.
    fn cut(&mut self) {
        let (_, lowest, _) = self.keys.select_nth_unstable_by(self.count - 1, |a, b| b.cmp(a));
        self.threshold = lowest.hit().score;
        self.keys.truncate(self.count);
    }

    fn finish(mut self) -> Vec<RankKey> {
        if self.keys.len() > self.count {
            self.cut();
        }
        self.keys
    }
}

/// All other lists with the upper bounds of their points.
pub(super) fn all_but(lists: &Lists<'_>, query: &OneBitQuery, known: Vec<RankKey>) -> Vec<RankKey> {
    let mut points = Vec::with_capacity(lists.points().len() * BLOCK_ROWS);
    let all = f32::NEG_INFINITY;
    lists.points().scan(query, NOWHERE, all, &[], &mut points);
    points.truncate(lists.len());
    let lowest = known.into_iter().min();
    let keys = points.iter().map(|point| RankKey::new(point.upper, RowId(point.position)));
    keys.filter(|key| lowest.is_none_or(|lowest| *key < lowest)).collect()
}
