//! The lists whose points are nearest to a query: found by T0 of the points for a few queries, by
//! the products of all points with all queries for many.

use crate::segment::lists::Lists;
use crate::segment::lists::probe::Seen;
use lodestone_compute::one_bit::task::MayReach;
use lodestone_compute::one_bit::{BLOCK_ROWS, OneBitQuery, Reference};
use lodestone_compute::tiles::{PackedCodes, STRIP, TILE};
use lodestone_compute::{PreparedQuery, RankKey};
use lodestone_types::RowId;

/// Lists sorted together beyond the patience. T0 gives the distance of a point only roughly: with
/// half as many, a search stops before it reaches more promising lists than those it knows, and
/// finds .984 instead of .990 of the neighbours (1,000,000 real passages).
const LISTS_AT_ONCE_MORE: usize = 24;
/// Blocks of points scanned between two selections of the nearest.
const POINT_BLOCKS: usize = 4;
/// One list in this many is in the sample, which roughly predicts what the most promising of all
/// lists promise.
const SAMPLE: usize = 8;
/// Lists of the sample that are kept: a factor on its share of the requested number, plus a
/// constant.
const SAMPLE_KEPT: (f32, f32) = (1.25, 3.0);
/// Number of queries from which their products with all points cost less than a T0 scan for each: a
/// tile takes 250 us over 4,316 lists, however many of its columns are used.
const PRODUCTS_MIN: usize = 24;
/// Divisor of the patience when lists are ordered by their promise itself. T0 yields only a rough
/// order; with the true one few searches need more.
const LESS_OF_KNOWN: usize = 2;
/// Reference of the points: the origin.
const NOWHERE: Reference = Reference { dot: 0.0, allowance: 0.0 };

/// Number of lists sorted together; larger if a search stops by its patience alone.
pub(super) fn lists_at_once(lists: &Lists<'_>, patience: usize) -> usize {
    let times = if lists.steepness() > 0.0 { 1 } else { 2 };
    patience.saturating_mul(times).saturating_add(LISTS_AT_ONCE_MORE).min(lists.len())
}

/// Removes the `count` highest keys from `order` and returns them.
pub(super) fn take_nearest(order: &mut Vec<RankKey>, count: usize) -> Vec<RankKey> {
    let rest = order.len().saturating_sub(count);
    if rest > 0 {
        order.select_nth_unstable(rest);
    }
    order.drain(rest..).collect()
}

/// Numbers below `count` in strides, so that the first of them, one in [`SAMPLE`], are spread over
/// the whole range: lists with adjacent numbers are near each other.
fn spread_out(count: usize) -> impl Iterator<Item = usize> {
    (0..SAMPLE).flat_map(move |first| (first..count).step_by(SAMPLE))
}

/// The `count` lists whose points have the highest upper bounds by T0, in no order.
pub(super) fn nearest(lists: &Lists<'_>, query: &OneBitQuery, count: usize) -> Vec<RankKey> {
    let points = lists.points();
    let run = |first: usize| points.run(first, POINT_BLOCKS.min(points.len() - first));
    let mut nearest = Nearest::new(count);
    let mut found = Vec::new();
    for first in (0..points.len()).step_by(POINT_BLOCKS) {
        let ahead = run(points.len().min(first + POINT_BLOCKS)).as_bytes();
        run(first).scan(query, NOWHERE, nearest.threshold, ahead, &mut found);
        let at = |found: &MayReach| found.position + (first * BLOCK_ROWS) as u32;
        // Positions that merely pad the last block come last.
        for found in found.drain(..).take_while(|found| (at(found) as usize) < lists.len()) {
            nearest.push(RankKey::new(found.upper, RowId(at(&found))), ());
        }
    }
    nearest.finish().into_iter().map(|(key, ())| key).collect()
}

/// For each query, about as many of the most promising lists as its patience requires, in no order,
/// each with the bits of the product of point and query. `None` for few queries, and if the CPU has
/// no fast matrix products.
pub(super) fn most_promising(
    lists: &Lists<'_>,
    queries: &[PreparedQuery],
    patience: usize,
) -> Option<Vec<Vec<(RankKey, u32)>>> {
    if queries.len() < PRODUCTS_MIN {
        return None;
    }
    let codes = queries.iter().flat_map(PreparedQuery::codes).copied().collect();
    let packed = PackedCodes::new(codes, queries[0].codes().len());
    if !packed.is_quick() {
        return None;
    }
    let count = lists_at_once(lists, patience / LESS_OF_KNOWN);
    let mut nearest: Vec<Nearest<u32>> = queries.iter().map(|_| Nearest::new(count)).collect();
    // Whole tiles; the padding of the last one reaches nothing.
    let tiles = queries.len().div_ceil(TILE);
    let mut scales = vec![[0.0; TILE]; tiles];
    let mut thresholds = vec![[f32::INFINITY; TILE]; tiles];
    for (at, query) in queries.iter().enumerate() {
        scales.as_flattened_mut()[at] = query.scale();
        thresholds.as_flattened_mut()[at] = f32::NEG_INFINITY;
    }
    let strips = lists.len().div_ceil(STRIP);
    for (number, first) in spread_out(strips).map(|strip| strip * STRIP).enumerate() {
        let mut codes = [&[][..]; STRIP];
        let strip = first..lists.len().min(first + STRIP);
        codes.iter_mut().zip(strip.clone()).for_each(|(codes, list)| *codes = lists.codes(list));
        packed.multiply(&codes[..strip.len()], |at, first_query, dots| {
            let list = first + at;
            let tile = first_query / TILE;
            let (scales, thresholds) = (&scales[tile], &mut thresholds[tile]);
            let mut whole = [0; TILE];
            whole[..dots.len()].copy_from_slice(dots);
            let at_most = lists.promise_at_most(list);
            let mut reaching = packed.reaching(&whole, scales, thresholds, at_most);
            while reaching != 0 {
                let at = reaching.trailing_zeros() as usize;
                reaching &= reaching - 1;
                let dot = dots[at] as f32 * scales[at] * lists.scale(list);
                let key = RankKey::new(lists.promise(list, dot).0, RowId(list as u32));
                let nearest = &mut nearest[first_query + at];
                nearest.push(key, dot.to_bits());
                thresholds[at] = nearest.threshold;
            }
        });
        if number == strips / SAMPLE {
            for (nearest, threshold) in nearest.iter_mut().zip(thresholds.as_flattened_mut()) {
                nearest.cut_sample();
                *threshold = nearest.threshold;
            }
        }
    }
    Some(nearest.into_iter().map(Nearest::finish).collect())
}

/// The highest keys so far, each with a value attached. Only candidates are compared twice, because
/// sorting thousands of lists costs more than visiting ten.
struct Nearest<T> {
    count: usize,
    keys: Vec<(RankKey, T)>,
    threshold: f32,
}

impl<T: Copy + Ord> Nearest<T> {
    fn new(count: usize) -> Self {
        let keys = Vec::with_capacity(2 * count);
        Self { count, keys, threshold: f32::NEG_INFINITY }
    }

    fn push(&mut self, key: RankKey, beside: T) {
        self.keys.push((key, beside));
        if self.keys.len() >= 2 * self.count {
            self.cut(self.count);
        }
    }

    /// Keeps only the `count` highest keys.
    fn cut(&mut self, count: usize) {
        if count < self.keys.len() {
            let (_, lowest, _) = self.keys.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
            self.threshold = lowest.0.hit().score;
            self.keys.truncate(count);
        }
    }

    fn cut_sample(&mut self) {
        let count = self.count as f32 / SAMPLE as f32 * SAMPLE_KEPT.0 + SAMPLE_KEPT.1;
        self.cut((count as usize).min(self.count));
    }

    fn finish(mut self) -> Vec<(RankKey, T)> {
        self.cut(self.count);
        self.keys
    }
}

/// All lists except the known ones, with the upper bounds of their points.
pub(super) fn all_but(lists: &Lists<'_>, query: &OneBitQuery, known: &[Seen]) -> Vec<RankKey> {
    let mut is_known = vec![false; lists.len()];
    known.iter().for_each(|known| is_known[known.list] = true);
    let mut points = Vec::with_capacity(lists.points().len() * BLOCK_ROWS);
    let all = f32::NEG_INFINITY;
    lists.points().scan(query, NOWHERE, all, &[], &mut points);
    points.truncate(lists.len());
    points.retain(|point| !is_known[point.position as usize]);
    points.iter().map(|point| RankKey::new(point.upper, RowId(point.position))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::lists::{BuiltLists, ListPolicy, build};
    use lodestone_compute::{FullKind, VectorColumns};

    const DIMENSION: usize = 64;

    fn vector(at: usize) -> Vec<f32> {
        let value = |component| (at * 7919 + component * 104_729 + at * component) % 1009;
        (0..DIMENSION).map(|component| value(component) as f32 / 1009.0 - 0.5).collect()
    }

    /// Goal: the lists chosen by products are the most promising of all, for one query more than a
    /// tile holds and for a patience that exceeds the number of lists.
    #[test]
    fn the_most_promising_lists_are_chosen() {
        let mut columns = VectorColumns::new(DIMENSION, FullKind::F16).unwrap();
        (0..4000).for_each(|at| columns.push(&vector(at)).unwrap());
        let policy = ListPolicy { listed_rows_min: 1000, list_rows: 16 };
        let BuiltLists { lists, one_bit } = build(&columns.view(), policy);
        let lists = Lists::view(DIMENSION, &lists, &one_bit).unwrap();
        let query = |at: usize| PreparedQuery::new(&vector(at * 61)).unwrap();
        let queries: Vec<PreparedQuery> = (1..=65).map(query).collect();
        for patience in [8, 4 * lists.len()] {
            let count = lists_at_once(&lists, patience / LESS_OF_KNOWN);
            // Without AVX-512 VNNI each search chooses its lists alone.
            let Some(found) = most_promising(&lists, &queries, patience) else { return };
            for (query, mut found) in queries.iter().zip(found) {
                let key = |list| {
                    let dot = lists.dot(list, query);
                    (RankKey::new(lists.promise(list, dot).0, RowId(list as u32)), dot.to_bits())
                };
                let mut all: Vec<(RankKey, u32)> = (0..lists.len()).map(key).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                found.sort_unstable_by(|a, b| b.cmp(a));
                assert!(found.len() * 2 >= count, "{} of {count}", found.len());
                assert_eq!(found, all[..found.len()]);
            }
        }
    }
}
