//! The search through lists and T0.
//!
//! ```text
//! points of the lists (T0) -> nearest 64 -> by potential -> T0 of each -> rows that may win
//!    -> those that pass the filter, best upper bound first, 16 at a time -> T1 -> floor rises
//! ```
//! A search that leaves nothing out goes through the other lists as they lie in memory: reading
//! from end to end is faster than in order of promise, and the floor hardly rises any more.
//! Several such searches share one pass.

use crate::compute::one_bit::scan::MayReach;
use crate::compute::one_bit::{BLOCK_ROWS, OneBitQuery, Reference};
use crate::compute::rotation::Rotation;
use crate::compute::{PreparedQuery, RankKey, TopK};
use crate::segment::lists::Lists;
use crate::types::{Hit, RowId};

/// Blocks that all searches of a shared pass look at before the next: 60 KiB at d = 384, which
/// stay in the processor's second cache meanwhile.
const RUN_BLOCKS: usize = 16;
/// Lists whose order is settled together.
const LISTS_AT_ONCE: usize = 64;
/// Rows of T1 asked for together.
const ROWS_AT_ONCE: usize = 16;

/// How much of a segment a search looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Deviations that the bound of T0 allows: the error of an estimate is about normal.
    pub deviations: f32,
    /// Lists whose best row would have to lie further than so many spreads towards the query are
    /// left out; `None` leaves none out.
    pub reach: Option<f32>,
}

impl Effort {
    /// Everything that can win, but for one row in 3.5 million.
    pub const EXACT: Self = Self { deviations: 5.0, reach: None };

    /// Leaves out one neighbour in 740 for its estimate, and those beyond the reach.
    pub fn probing(reach: Option<f32>) -> Self {
        Self { deviations: 3.0, reach }
    }
}

/// T1 as one search sees it.
pub trait NearRows {
    /// Whether the search wants the row.
    fn passes(&self, row: RowId) -> bool;
    /// Asks for what `estimate` will read.
    fn fetch(&self, row: RowId);
    /// The row's cosine, and how far it may be off.
    fn estimate(&self, row: RowId) -> (f32, f32);
}

/// What a probe found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probed {
    /// Rows that may be among the best k, with their upper bound, in no order.
    pub candidates: Vec<Hit>,
    /// The score that k rows reach at least; `None` where fewer were found.
    pub floor: Option<f32>,
    /// Lists that were scanned.
    pub lists: usize,
}

/// Looks for the `k` best of `rows`, which pass and are seen from `query`.
pub fn probe<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    query: &PreparedQuery,
    k: usize,
    effort: Effort,
    rows: R,
) -> Probed {
    let mut search = Search::new(lists, rotation, query, k, effort, rows);
    match effort.reach {
        Some(_) => search.probe_in_order(),
        None => search_all(lists, std::slice::from_mut(&mut search)),
    }
    search.finish()
}

/// As [`probe`] without reach for several queries at once, in one pass over T0. `rows` are those
/// of each query.
pub fn probe_together<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    queries: &[PreparedQuery],
    k: usize,
    deviations: f32,
    rows: impl Fn(usize) -> R,
) -> Vec<Probed> {
    let effort = Effort { deviations, reach: None };
    let begin = |(at, query)| Search::new(lists, rotation, query, k, effort, rows(at));
    let mut searches: Vec<Search<'_, R>> = queries.iter().enumerate().map(begin).collect();
    search_all(lists, &mut searches);
    searches.into_iter().map(Search::finish).collect()
}

/// Each search visits its nearest lists, so that it knows what can be reached; then they go
/// through all others side by side.
fn search_all<R: NearRows>(lists: &Lists<'_>, searches: &mut [Search<'_, R>]) {
    if lists.len() > 1 {
        searches.iter_mut().for_each(Search::probe_nearest);
    }
    for list in 0..lists.len() {
        let seen: Vec<Option<Seen>> =
            searches.iter().map(|s| (!s.visited[list]).then(|| s.see(list))).collect();
        for first in (0..lists.one_bit(list).len()).step_by(RUN_BLOCKS) {
            for (search, seen) in searches.iter_mut().zip(&seen) {
                if let Some(seen) = seen {
                    search.scan_run(seen, first);
                }
            }
        }
    }
    searches.iter_mut().for_each(|search| search.scanned = lists.len());
}

/// One query's way through the lists.
struct Search<'a, R> {
    lists: &'a Lists<'a>,
    query: &'a PreparedQuery,
    one_bit: OneBitQuery,
    effort: Effort,
    rows: R,
    /// The best lower bounds.
    best: TopK,
    found: Vec<MayReach>,
    candidates: Vec<Hit>,
    /// Lists that need no second look, where there will be one.
    visited: Vec<bool>,
    scanned: usize,
}

/// A list as the query sees it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    list: usize,
    /// What its best row may score.
    potential: f32,
    reference: Reference,
}

impl<'a, R: NearRows> Search<'a, R> {
    fn new(
        lists: &'a Lists<'a>,
        rotation: &Rotation,
        query: &'a PreparedQuery,
        k: usize,
        effort: Effort,
        rows: R,
    ) -> Self {
        Self {
            lists,
            query,
            one_bit: OneBitQuery::new(rotation, query.unit()),
            effort,
            rows,
            best: TopK::new(k),
            found: Vec::new(),
            candidates: Vec::new(),
            visited: vec![false; if effort.reach.is_none() { lists.len() } else { 0 }],
            scanned: 0,
        }
    }

    fn finish(mut self) -> Probed {
        let floor = self.best.score_to_reach();
        self.candidates.retain(|hit| floor.is_none_or(|floor| hit.score >= floor));
        Probed { candidates: self.candidates, floor, lists: self.scanned }
    }

    /// Visits lists, the most promising first, until none can win.
    fn probe_in_order(&mut self) {
        let mut order = self.order();
        while !order.is_empty() {
            let before = self.scanned;
            for seen in self.take_nearest(&mut order) {
                if self.best.score_to_reach().is_some_and(|floor| seen.potential < floor) {
                    break;
                }
                self.visit(&seen);
            }
            if self.scanned == before {
                break;
            }
        }
    }

    fn probe_nearest(&mut self) {
        let mut order = self.order();
        for seen in self.take_nearest(&mut order) {
            self.visit(&seen);
            self.visited[seen.list] = true;
        }
    }

    /// The lists with the upper bounds of their points.
    fn order(&self) -> Vec<RankKey> {
        let mut points = Vec::with_capacity(self.lists.points().len() * BLOCK_ROWS);
        let nowhere = Reference { dot: 0.0, allowance: 0.0 };
        self.lists.points().scan(&self.one_bit, nowhere, f32::NEG_INFINITY, &mut points);
        points.truncate(self.lists.len());
        points.iter().map(|point| RankKey::new(point.upper, RowId(point.position))).collect()
    }

    /// Takes the nearest of what is left out of `order`; the most promising first.
    fn take_nearest(&self, order: &mut Vec<RankKey>) -> Vec<Seen> {
        let rest = order.len().saturating_sub(LISTS_AT_ONCE);
        if rest > 0 {
            order.select_nth_unstable(rest);
        }
        let mut seen: Vec<Seen> =
            order.drain(rest..).map(|key| self.see(key.row().0 as usize)).collect();
        seen.sort_unstable_by(|a, b| b.potential.total_cmp(&a.potential).then(a.list.cmp(&b.list)));
        seen
    }

    fn see(&self, list: usize) -> Seen {
        let (lists, query) = (self.lists, self.query);
        let dot = lists.dot(list, query);
        let distance = lists.distance(list, dot);
        let reach = self.effort.reach.unwrap_or(0.0);
        // What the codes of the query lose of its product with the point.
        let lost = query.residual() * lists.square(list).sqrt();
        let reference = Reference { dot: dot + lost, allowance: self.effort.deviations * distance };
        Seen { list, potential: dot + reach * lists.spread(list) * distance, reference }
    }

    fn visit(&mut self, seen: &Seen) {
        for first in (0..self.lists.one_bit(seen.list).len()).step_by(RUN_BLOCKS) {
            self.scan_run(seen, first);
        }
        self.scanned += 1;
    }

    /// Looks at a run of a list's blocks, and at T1 of what may win there.
    fn scan_run(&mut self, seen: &Seen, first: usize) {
        let blocks = self.lists.one_bit(seen.list);
        let run = blocks.run(first, RUN_BLOCKS.min(blocks.len() - first));
        let mut found = std::mem::take(&mut self.found);
        run.scan(&self.one_bit, seen.reference, self.floor(), &mut found);
        // Slots behind the last row only fill up its block.
        let slots = &self.lists.rows(seen.list)[first * BLOCK_ROWS..];
        let row = |found: &MayReach| slots.get(found.position as usize).map(|row| RowId(*row));
        found.retain(|found| row(found).is_some_and(|row| self.rows.passes(row)));
        while !found.is_empty() {
            let rest = found.len().saturating_sub(ROWS_AT_ONCE);
            if rest > 0 {
                found.select_nth_unstable_by(rest, |a, b| a.upper.total_cmp(&b.upper));
            }
            let best = &found[rest..];
            best.iter().filter_map(row).for_each(|row| self.rows.fetch(row));
            best.iter().filter_map(row).for_each(|row| self.look_at(row));
            found.truncate(rest);
            let floor = self.floor();
            found.retain(|found| found.upper >= floor);
        }
        self.found = found;
    }

    fn look_at(&mut self, row: RowId) {
        let (estimate, bound) = self.rows.estimate(row);
        if estimate + bound >= self.floor() {
            self.best.push(row, estimate - bound);
            self.candidates.push(Hit { row, score: estimate + bound });
        }
    }

    fn floor(&self) -> f32 {
        self.best.score_to_reach().unwrap_or(f32::NEG_INFINITY)
    }
}
