//! The search through lists and T0.
//!
//! ```text
//! points of the lists (T0) -> nearest 64 -> by promise -> T0 of each -> rows that may win
//!    -> those that pass the filter, best upper bound first, 16 at a time -> T1 -> threshold
//! ```
//! A probing search stops once its patience, a number of consecutive lists, brought no row among
//! the best k so far; unpromising lists count for more, and lists in which no row passes the filter
//! are skipped and do not count. The data thus decides how many lists are read: the neighbours of a
//! passage are in few lists, the answers to an unusual question in many, and under a filter a
//! search continues as long as it finds better rows.
//!
//! An exact search then reads all other lists (`exact`).

use crate::segment::lists::exact::search_all;
use crate::segment::lists::nearest::{all_but, lists_at_once, nearest, take_nearest};
use crate::segment::lists::{Effort, Lists, NearRows};
use lodestone_compute::one_bit::task::MayReach;
use lodestone_compute::one_bit::{BLOCK_ROWS, OneBitQuery, Reference};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, RankKey, TopK, prefetch};
use lodestone_io::major_faults;
use lodestone_types::{Hit, RowId};

/// Blocks that all searches of a shared pass scan before they move on: 60 KiB at d = 384, which
/// stay in the CPU's second-level cache.
pub(super) const RUN_BLOCKS: usize = 16;
/// Lists that an exact search visits before it scans all others.
const LISTS_OF_EXACT: usize = 64;
/// Rows of T1 prefetched together.
const ROWS_AT_ONCE: usize = 16;
/// Rows of T1 requested together if they come from disk, which serves many requests at once several
/// times as fast.
const ROWS_AT_ONCE_COLD: usize = 128;
/// Lists that a search scans before it examines more than the best rows of the first. They give it
/// a threshold, without which it would examine nearly every row of T1.
const LISTS_FIRST: usize = 4;
/// Distance, in visits, at which T0 of a list is requested in advance if it comes from disk.
const LISTS_AHEAD_COLD: usize = 4;
/// Share of the mean spread of the lists below which the rows of a list are nearly equal, such as
/// copies of one text.
const NARROW: f32 = 0.125;
/// Number of times that the best remaining rows of a run are selected. If rows remain after that,
/// T0 discriminates poorly, and selecting costs more than T1 of a row.
const CHOICES_MAX: usize = 8;

/// Result of a probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probed {
    /// Rows that may be among the best k, each with its upper bound, in no order.
    pub candidates: Vec<Hit>,
    /// Number of lists that were scanned.
    pub lists: usize,
}

/// Searches for the `k` best passing rows of `rows` for `query`.
pub fn probe<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    query: &PreparedQuery,
    k: usize,
    effort: Effort,
    rows: R,
) -> Probed {
    let mut search = Search::new(lists, rotation, query, k, effort, rows);
    match effort.patience {
        Some(patience) => search.probe_in_order(patience),
        None => search_all(lists, std::slice::from_mut(&mut search)),
    }
    search.finish()
}

/// A search for one query through the lists.
pub(super) struct Search<'a, R> {
    pub(super) lists: &'a Lists<'a>,
    query: &'a PreparedQuery,
    pub(super) one_bit: OneBitQuery,
    effort: Effort,
    /// Spread below which lists are narrow.
    narrow: f32,
    rows: R,
    /// The best lower bounds so far.
    best: TopK,
    scanned_rows: Vec<MayReach>,
    /// Rows found by T0, with their upper bounds, whose T1 has not been examined yet.
    found: Vec<Hit>,
    candidates: Vec<Hit>,
    /// Whether each list was visited; empty in probing searches, which need no such record.
    pub(super) visited: Vec<bool>,
    pub(super) scanned: usize,
    /// The thread's count of major page faults before the search.
    faults: i64,
    /// Whether the search has had to wait for the disk.
    is_cold: bool,
    /// The highest estimate, since this was last reset, of a row that entered the best k.
    pub(super) best_news: f32,
}

/// A list as seen by a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) list: usize,
    /// Score that its best rows are expected to reach.
    promise: f32,
    /// The list's spread times the query's distance: the scale by which its scores vary.
    spread: f32,
    /// Whether its rows are nearly equal.
    is_narrow: bool,
    reference: Reference,
}

impl<'a, R: NearRows> Search<'a, R> {
    pub(super) fn new(
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
            narrow: NARROW * lists.mean_spread(),
            rows,
            best: TopK::new(k),
            scanned_rows: Vec::new(),
            found: Vec::new(),
            candidates: Vec::new(),
            visited: vec![false; if effort.patience.is_none() { lists.len() } else { 0 }],
            scanned: 0,
            faults: major_faults(),
            is_cold: false,
            best_news: f32::NEG_INFINITY,
        }
    }

    pub(super) fn finish(mut self) -> Probed {
        let threshold = self.best.score_to_reach();
        self.candidates.retain(|hit| threshold.is_none_or(|threshold| hit.score >= threshold));
        Probed { candidates: self.candidates, lists: self.scanned }
    }

    /// Visits lists by expected score until `patience` lists in a row brought no better row.
    fn probe_in_order(&mut self, patience: usize) {
        let at_once = lists_at_once(self.lists, patience);
        let nearest = self.nearest_lists(at_once);
        let mut in_vain = 0;
        if self.visit_all(&nearest, patience, &mut in_vain) {
            return;
        }
        let mut rest = all_but(self.lists, &self.one_bit, &nearest);
        while !rest.is_empty() {
            let next = self.by_promise(&take_nearest(&mut rest, at_once));
            if self.visit_all(&next, patience, &mut in_vain) {
                return;
            }
        }
    }

    /// Visits lists in order; returns whether the search is finished.
    fn visit_all(&mut self, order: &[Seen], patience: usize, in_vain: &mut usize) -> bool {
        let first = if self.scanned == 0 { self.visit_first(order) } else { 0 };
        for (at, seen) in order.iter().enumerate().skip(first) {
            if self.ends_before(seen, *in_vain, patience) {
                return true;
            }
            if self.scan_in(order, at) {
                *in_vain = if self.look_at_found() { 0 } else { *in_vain + 1 };
            }
        }
        false
    }

    /// Visits the nearest lists and marks them as visited.
    pub(super) fn probe_nearest(&mut self) {
        for seen in self.nearest_lists(LISTS_OF_EXACT) {
            if self.has_passing(seen.list) {
                self.visit(&seen, None);
            }
            self.visited[seen.list] = true;
        }
    }

    /// The `count` lists whose points have the highest upper bounds, sorted by expected score.
    pub(super) fn nearest_lists(&self, count: usize) -> Vec<Seen> {
        self.by_promise(&nearest(self.lists, &self.one_bit, count))
    }

    /// Sorts lists by expected score, best first.
    pub(super) fn by_promise(&self, lists: &[RankKey]) -> Vec<Seen> {
        let list = |key: &RankKey| key.row().0 as usize;
        lists.iter().for_each(|key| prefetch(self.lists.codes(list(key))));
        // Most likely the first to be visited.
        lists.iter().max().into_iter().for_each(|key| self.lists.prefetch(list(key)));
        self.in_order(lists.iter().map(|key| self.see(list(key))))
    }

    /// Sorts lists whose products with the query are known, best first.
    pub(super) fn in_order(&self, seen: impl Iterator<Item = Seen>) -> Vec<Seen> {
        let mut seen: Vec<Seen> = seen.collect();
        seen.sort_unstable_by(|a, b| b.promise.total_cmp(&a.promise).then(a.list.cmp(&b.list)));
        seen
    }

    pub(super) fn see(&self, list: usize) -> Seen {
        self.see_at(list, self.lists.dot(list, self.query))
    }

    /// Evaluates a list whose point has the product `dot` with the query.
    pub(super) fn see_at(&self, list: usize, dot: f32) -> Seen {
        let (lists, query) = (self.lists, self.query);
        let distance = lists.distance(list, dot);
        // Bounds the rounding error of the codes in the product with the point.
        let lost = query.residual() * lists.square(list).sqrt();
        let allowance = self.effort.deviations * self.one_bit.allow_for_rounding(distance);
        let reference = Reference { dot: dot + lost, allowance };
        let (promise, spread) = lists.promise(list, dot);
        let is_narrow = lists.spread(list) < self.narrow;
        Seen { list, promise, spread, is_narrow, reference }
    }

    /// Whether a search that has passed `in_vain` consecutive lists without a better row stops
    /// before `next`. The further the promise of a list is below the score to reach, the more the
    /// list counts; a narrow one counts once, as it says nothing of the lists after it.
    pub(super) fn ends_before(&self, next: &Seen, in_vain: usize, patience: usize) -> bool {
        let Some(score) = self.best.score_to_reach() else { return false };
        let missing = match next.is_narrow {
            true => 0.0,
            false => (score - next.promise) / next.spread,
        };
        // `max` turns NaN, which arises if no list has any spread, into 0.
        let weight = (self.lists.steepness() * missing).max(0.0).exp();
        (in_vain + 1) as f32 * weight > patience as f32
    }

    /// Reads a list while prefetching the next one; returns whether one of its rows entered the
    /// best so far.
    pub(super) fn visit(&mut self, seen: &Seen, next: Option<usize>) -> bool {
        self.scan(seen, next);
        self.look_at_found()
    }

    /// Visits the first lists and returns the position after them. T1 of the best rows of the first
    /// list yields a threshold; the best rows of all of them come next.
    pub(super) fn visit_first(&mut self, order: &[Seen]) -> usize {
        let (mut at, mut visited) = (0, 0);
        while at < order.len() && visited < LISTS_FIRST {
            if self.scan_in(order, at) {
                visited += 1;
                if visited == 1 {
                    self.look_at_best(true);
                }
            }
            at += 1;
        }
        self.look_at_found();
        at
    }

    /// Scans the list at a position of the order, unless no row of it passes the filter; returns
    /// whether it did.
    fn scan_in(&mut self, order: &[Seen], at: usize) -> bool {
        if let Some(ahead) = order.get(at + LISTS_AHEAD_COLD).filter(|_| self.is_cold) {
            self.lists.read_soon(ahead.list);
        }
        let has_passing = self.has_passing(order[at].list);
        if has_passing {
            self.scan(&order[at], order.get(at + 1).map(|next| next.list));
        }
        has_passing
    }

    /// Whether a list holds a row that passes the filter. A damaged list counts as one, since its
    /// rows are not known; scanning it finds nothing.
    pub(super) fn has_passing(&self, list: usize) -> bool {
        let passes = |row: &u32| self.rows.passes(RowId(*row));
        !self.rows.is_filtered()
            || !self.lists.verify(list)
            || self.lists.rows(list).iter().any(passes)
    }

    /// Scans a list while prefetching the next one.
    fn scan(&mut self, seen: &Seen, next: Option<usize>) {
        // Checked at growing intervals, as it costs a system call.
        if self.scanned.is_power_of_two() && !self.is_cold {
            self.is_cold = major_faults() > self.faults;
        }
        self.scanned += 1;
        // The file remembers the damage, so nothing that this search finds is passed on.
        if !self.lists.verify(seen.list) {
            return;
        }
        let lists = self.lists;
        let ahead = next.map_or(&[][..], |next| {
            prefetch(lists.rows(next));
            lists.one_bit(next).as_bytes()
        });
        let blocks = lists.one_bit(seen.list).len();
        // A list may be empty in a file written by another program.
        let runs = blocks.div_ceil(RUN_BLOCKS).max(1);
        let mut shares = ahead.chunks(ahead.len().div_ceil(runs).max(1));
        for first in (0..blocks).step_by(RUN_BLOCKS) {
            self.scan_run(seen, first, shares.next().unwrap_or_default());
        }
    }

    /// Scans a run of a list's blocks for rows that may win, while prefetching `ahead`.
    pub(super) fn scan_run(&mut self, seen: &Seen, first: usize, ahead: &[u8]) {
        let blocks = self.lists.one_bit(seen.list);
        let run = blocks.run(first, RUN_BLOCKS.min(blocks.len() - first));
        // Positions past the last row are padding of its block.
        let slots = &self.lists.rows(seen.list)[first * BLOCK_ROWS..];
        let slots = &slots[..slots.len().min(RUN_BLOCKS * BLOCK_ROWS)];
        let threshold = self.threshold();
        let least = self.rows.least_cosine(slots, threshold);
        run.scan(&self.one_bit, seen.reference, least, ahead, &mut self.scanned_rows);
        for found in self.scanned_rows.drain(..) {
            let row = slots.get(found.position as usize).map(|row| RowId(*row));
            let Some(row) = row.filter(|row| self.rows.passes(*row)) else { continue };
            let score = self.rows.highest_score(row, found.upper);
            if score >= threshold {
                self.found.push(Hit { row, score });
            }
        }
    }

    /// Examines T1 of the rows found; returns whether one entered the best so far.
    pub(super) fn look_at_found(&mut self) -> bool {
        let (mut has_news, mut choices) = (false, 0);
        while !self.found.is_empty() {
            has_news |= self.look_at_best(choices < CHOICES_MAX);
            choices += 1;
        }
        has_news
    }

    /// Examines T1 of one batch of the rows found: the best of them if `chooses`, else any. Returns
    /// whether one entered the best so far.
    fn look_at_best(&mut self, chooses: bool) -> bool {
        let mut found = std::mem::take(&mut self.found);
        let at_once = if self.is_cold { ROWS_AT_ONCE_COLD } else { ROWS_AT_ONCE };
        let rest = found.len().saturating_sub(at_once);
        if rest > 0 && chooses {
            found.select_nth_unstable_by(rest, |a, b| a.score.total_cmp(&b.score));
        }
        let (mut has_news, best) = (false, &found[rest..]);
        if self.is_cold {
            best.iter().for_each(|found| self.rows.read_soon(found.row));
        }
        best.iter().for_each(|found| self.rows.fetch(found.row));
        for found in best {
            if found.score >= self.threshold() {
                has_news |= self.look_at(found.row);
            }
        }
        found.truncate(rest);
        if chooses {
            let threshold = self.threshold();
            found.retain(|found| found.score >= threshold);
        }
        self.found = found;
        has_news
    }

    /// Examines a row; returns whether its estimate puts it among the best k so far.
    fn look_at(&mut self, row: RowId) -> bool {
        let (estimate, bound) = self.rows.estimate(row);
        let threshold = self.threshold();
        if estimate + bound < threshold {
            return false;
        }
        self.best.push(row, estimate - bound);
        self.candidates.push(Hit { row, score: estimate + bound });
        let is_news = estimate > threshold;
        if is_news {
            self.best_news = self.best_news.max(estimate);
        }
        is_news
    }

    /// Prefetches the state that a visit reads besides the list.
    pub(super) fn prefetch(&self) {
        prefetch(std::slice::from_ref(self));
        self.one_bit.prefetch();
    }

    pub(super) fn threshold(&self) -> f32 {
        self.best.score_to_reach().unwrap_or(f32::NEG_INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::lists::{BuiltLists, ListPolicy, build};
    use lodestone_compute::{FullKind, VectorColumns};

    struct NoRows;

    impl NearRows for NoRows {
        fn passes(&self, _: RowId) -> bool {
            false
        }

        fn fetch(&self, _: RowId) {}

        fn estimate(&self, _: RowId) -> (f32, f32) {
            (0.0, 0.0)
        }
    }

    /// Goal: a list of copies of one text that just misses the score to reach does not end a
    /// search, as better rows may be in wider lists after it.
    #[test]
    fn a_list_of_equal_rows_ends_no_search() {
        let vector = |at: usize| -> Vec<f32> {
            (0..64).map(|component| ((at * 7919 + component * 104_729) % 1009) as f32).collect()
        };
        let mut columns = VectorColumns::new(64, FullKind::F16).unwrap();
        (0..1000).for_each(|at| columns.push(&vector(at)).unwrap());
        let BuiltLists { lists, one_bit } = build(&columns.view(), ListPolicy::default());
        let lists = Lists::view(64, &lists, &one_bit).unwrap();
        let (rotation, query) = (Rotation::new(64), PreparedQuery::new(&vector(1)).unwrap());
        let effort = Effort::probing(Some(20));
        let mut search = Search::new(&lists, &rotation, &query, 1, effort, NoRows);
        search.best.push(RowId(0), 0.61);
        let seen = search.see_at(0, 0.5);
        assert!(!seen.is_narrow, "the mean itself");
        let ends = |promise, spread, in_vain| {
            let is_narrow = spread < 0.01;
            search.ends_before(&Seen { promise, spread, is_narrow, ..seen }, in_vain, 20)
        };
        assert!(!ends(0.6, 0.5, 0) && ends(0.1, 0.5, 0), "by what it misses");
        assert!(!ends(0.6, 0.0, 0) && !ends(0.1, 0.0, 19), "not by what it misses");
        assert!(ends(0.6, 0.0, 20), "it counts once");
    }
}
