//! Top-k retrieval that skips rows which cannot be among the best.
//!
//! Rows are visited window by window, as in `score`. For each term the index knows an upper bound
//! of its score in the window (`blocks`). The threshold is the score that the requested number of
//! rows have reached so far. Terms whose bounds together stay below the threshold cannot lift a row
//! above it on their own: candidate rows come from the other terms, and these terms are only looked
//! up in rows that can still reach the threshold (MaxScore, Turtle and Flood 1995; block bounds:
//! Ding and Suel 2011). As adding a posting takes just two nanoseconds, this is only done where
//! those terms have most of the postings. If every term must occur, the common ones are only read
//! in rows that contain the rare ones.
//!
//! The remaining rows are scored as in `score`, term by term in query order, by a second reader of
//! the postings, so that each score is identical to the last bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use roaring::RoaringBitmap;
use tantivy::TERMINATED;

use crate::error::caught;
use crate::mask::{RowMask, WORDS, Window};
use crate::postings::Group;
use crate::query::Operator;
use crate::score::{Norms, SLACK, Sums, Worth};
use crate::stats::CorpusStats;
use crate::{RowScores, TextError, TextIndex, TextQuery};
use lodestone_types::Hit;

/// Number of rows of a window below which they are scored without looking up further terms.
const FEW_ROWS: u32 = 8;
/// Number of postings of a window up to which they are simply all added: some 2 microseconds.
const FEW_POSTINGS: u64 = 1024;
/// Terms are deferred if they have this many times the postings of the others, which are then read
/// twice.
const WORTH_IT: u64 = 3;

/// The score reached by the requested number of rows, over all segments that share it.
#[derive(Debug)]
pub struct ScoreThreshold {
    wanted: usize,
    /// Rows that are at most this much below the last requested one count as ties and are kept.
    tie_width: f32,
    /// Bit patterns of the best scores, which sort like the scores as these are positive.
    best: Mutex<BinaryHeap<Reverse<u32>>>,
    least: AtomicU32,
}

impl ScoreThreshold {
    /// Creates a threshold for the best `wanted` rows and those at most `tie_width` below the last.
    pub fn new(wanted: usize, tie_width: f32) -> Self {
        let (best, least) = (Mutex::default(), AtomicU32::new(0));
        Self { wanted: wanted.max(1), tie_width, best, least }
    }

    /// The lowest score that can still count; 0 until enough rows are known.
    pub fn least(&self) -> f32 {
        // Relaxed is enough: a stale value is lower and only costs time.
        f32::from_bits(self.least.load(Ordering::Relaxed))
    }

    fn offer(&self, hits: &[Hit]) {
        if hits.is_empty() {
            return;
        }
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        for hit in hits {
            let score = hit.score.max(0.0).to_bits();
            if best.len() < self.wanted {
                best.push(Reverse(score));
            } else if let Some(mut last) = best.peek_mut().filter(|last| last.0 < score) {
                *last = Reverse(score);
            }
        }
        if let Some(Reverse(last)) = best.peek().filter(|_| best.len() == self.wanted) {
            let least = f32::max(f32::from_bits(*last) - self.tie_width, 0.0);
            self.least.fetch_max(least.to_bits(), Ordering::Relaxed);
        }
    }
}

impl TextIndex {
    /// Returns the rows of `among` (`None`: all rows) that may be among the best over all segments
    /// that share the threshold, with the scores of [`Self::score`]. Contains every row at or above
    /// the common threshold, and few others.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn best<Q: TextQuery>(
        &self,
        query: &Q,
        stats: &CorpusStats,
        among: Option<&RoaringBitmap>,
        threshold: &ScoreThreshold,
    ) -> Result<RowScores, TextError> {
        caught(|| {
            let mask = RowMask::new(self.rows(), among);
            let clauses = query.clauses().len();
            if mask.count() == 0 || clauses == 0 {
                return Ok(RowScores::default());
            }
            let norms = Norms::new(stats);
            let scored = self.scored(query, stats, &norms, &mask)?;
            let needs_all = query.operator() == Operator::And && clauses > 1;
            if needs_all && scored.len() < clauses {
                return Ok(RowScores::default());
            }
            Ok(best_of(scored, &mask, threshold, if needs_all { clauses } else { 0 }))
        })
    }
}

/// Returns the rows of the mask that may be among the best. `needed` is the number of terms that
/// must occur: all of them, or 0 if any one is enough.
pub(super) fn best_of(
    mut scored: Vec<(Group, Worth<'_>)>,
    mask: &RowMask<'_>,
    threshold: &ScoreThreshold,
    needed: usize,
) -> RowScores {
    let mut scores = RowScores::default();
    let mut finder = Finder::new(&scored, needed > 0);
    let mut sums = Sums::new(needed);
    let (mut windows, mut next) = (mask.windows(), 0);
    while let Some(row) = finder.next_row(&scored).filter(|row| *row != TERMINATED) {
        let Some(window) = windows.next_from(row.max(next)) else { break };
        next = window.end();
        let least = threshold.least();
        let Some(window) = finder.narrowed(window, &scored, least) else { continue };
        scored.iter_mut().for_each(|(group, worth)| sums.add_group(&window, group, worth));
        let known = scores.hits.len();
        sums.take(&window, least, &mut scores.hits);
        threshold.offer(&scores.hits[known..]);
    }
    let least = threshold.least();
    scores.retain_from(least);
    scores
}

/// Finds the rows of a window that may reach the threshold, using its own posting readers.
struct Finder<'a> {
    terms: Vec<Term<'a>>,
    /// Indexes of terms, in the order in which they are read.
    order: Vec<usize>,
    needs_all: bool,
    /// Weight and mean postings per window of each term, lowest weight first; empty if all terms
    /// have few postings.
    weights: Vec<(f32, u64)>,
    sums: Sums,
}

struct Term<'a> {
    group: Group,
    worth: Worth<'a>,
    /// Upper bound of its score in the window.
    bound: f32,
}

impl<'a> Finder<'a> {
    fn new(scored: &[(Group, Worth<'a>)], needs_all: bool) -> Self {
        let term = |(group, worth): &(Group, Worth<'a>)| Term {
            group: group.clone(),
            worth: *worth,
            bound: 0.0,
        };
        let terms: Vec<Term<'a>> = scored.iter().map(term).collect();
        let mut order: Vec<usize> = (0..terms.len()).collect();
        order.sort_by_key(|at| terms[*at].group.rows_max());
        let weight =
            |term: &Term<'_>| (term.worth.weight * term.group.factor_max(), term.group.in_window());
        let mut weights: Vec<(f32, u64)> = terms.iter().map(weight).collect();
        if weights.iter().map(|(_, postings)| postings).sum::<u64>() <= FEW_POSTINGS {
            weights.clear();
        }
        weights.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self { terms, order, needs_all, weights, sums: Sums::new(0) }
    }

    /// Whether the terms that cannot reach `least` together have most of the postings. Otherwise,
    /// finding candidate rows costs more than scoring all.
    fn pays(&self, least: f32) -> bool {
        let (mut together, mut below, mut others) = (0.0, 0, 0);
        for (weight, postings) in &self.weights {
            together += weight;
            match together * SLACK < least {
                true => below += postings,
                false => others += postings,
            }
        }
        below > WORTH_IT * others
    }

    /// The next row that may match, taking for each term the reader that is further ahead.
    fn next_row(&self, scored: &[(Group, Worth<'_>)]) -> Option<u32> {
        let rows = self.terms.iter().zip(scored);
        let rows = rows.map(|(term, (group, _))| term.group.row().max(group.row()));
        if self.needs_all { rows.max() } else { rows.min() }
    }

    /// The rows of the window that may match and reach `least`; `None` if there are none.
    fn narrowed(
        &mut self,
        window: Window,
        scored: &[(Group, Worth<'_>)],
        least: f32,
    ) -> Option<Window> {
        if !self.needs_all && !self.pays(least) {
            return Some(window);
        }
        if least > 0.0 {
            for (term, (group, _)) in self.terms.iter_mut().zip(scored) {
                term.bound = if group.row() < window.end() { term.bound_in(&window) } else { 0.0 };
            }
            let most: f32 = self.terms.iter().map(|term| term.bound).sum();
            if most * SLACK < least {
                return None;
            }
        }
        match self.needs_all {
            true => self.with_all(window),
            false => self.reaching(window, least),
        }
    }

    /// The rows in which every term occurs.
    fn with_all(&mut self, window: Window) -> Option<Window> {
        let mut rows = window;
        for at in &self.order {
            let mut bits = [0_u64; WORDS];
            self.terms[*at].group.each_in(&rows, |place, _, _| {
                if let Some(word) = bits.get_mut(place as usize / 64) {
                    *word |= 1 << (place % 64);
                }
            });
            rows = rows.among(&bits)?;
        }
        Some(rows)
    }

    /// The rows whose terms may add up to `least`.
    fn reaching(&mut self, window: Window, least: f32) -> Option<Window> {
        let Self { terms, order, sums, .. } = self;
        order.sort_by(|a, b| terms[*a].bound.total_cmp(&terms[*b].bound));
        // Terms that together stay below the threshold, each with the summed bounds of the terms up
        // to it.
        let mut together = 0.0;
        let below: Vec<f32> = order
            .iter()
            .map_while(|at| {
                together += terms[*at].bound;
                (together * SLACK < least).then_some(together)
            })
            .collect();
        let (below_floor, others) = order.split_at(below.len());
        let postings =
            |part: &[usize]| part.iter().map(|at| terms[*at].group.in_window()).sum::<u64>();
        if postings(below_floor) <= WORTH_IT * postings(others) {
            return Some(window);
        }
        for at in others {
            let Term { group, worth, .. } = &mut terms[*at];
            sums.add_group(&window, group, worth);
        }
        let mut rows = sums.reaching(&window, below[below.len() - 1], least);
        for (at, before) in (0..below.len()).rev().map(|n| (below_floor[n], n.checked_sub(1))) {
            let Some(few) = rows.take_if(|rows| rows.count() > FEW_ROWS) else { break };
            let Term { group, worth, bound, .. } = &mut terms[at];
            if *bound > 0.0 {
                sums.add_group(&few, group, worth);
            }
            rows = sums.reaching(&few, before.map_or(0.0, |before| below[before]), least);
        }
        sums.clear();
        rows
    }
}

impl Term<'_> {
    /// Upper bound of its contribution to a row's score in the window.
    fn bound_in(&mut self, window: &Window) -> f32 {
        let (ratio, factor) = match (&mut self.group, self.worth.means) {
            (Group::Impacts(impacts), _) => (f32::INFINITY, impacts.bound(window)),
            (group, Some(means)) => group.ratio_max(window, means),
            (_, None) => (f32::INFINITY, 1.0),
        };
        let share = if ratio.is_finite() { ratio / (ratio + 1.0) } else { 1.0 };
        self.worth.weight * factor * share
    }
}
