//! The search through lists and T0.

use crate::compute::one_bit::scan::MayReach;
use crate::compute::one_bit::{BLOCK_ROWS, OneBitQuery, Reference};
use crate::compute::rotation::Rotation;
use crate::compute::{PreparedQuery, TopK, dot_codes};
use crate::segment::lists::Lists;
use crate::types::{Hit, RowId};

/// Blocks between two looks at the k-th best row.
const RUN_BLOCKS: usize = 64;
/// Lists whose order is settled together.
const LISTS_AT_ONCE: usize = 64;

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

/// Looks for the `k` best rows. `estimate` gives a row's cosine from T1 and how far it may be
/// off, or `None` for a row that does not pass.
pub fn probe(
    lists: &Lists<'_>,
    rotation: &Rotation,
    query: &PreparedQuery,
    k: usize,
    effort: Effort,
    estimate: impl FnMut(RowId) -> Option<(f32, f32)>,
) -> Probed {
    let one_bit = OneBitQuery::new(rotation, query.unit());
    let best = TopK::new(k);
    let (found, candidates) = (Vec::new(), Vec::new());
    let mut probe = Probe { lists, query, one_bit, effort, estimate, best, found, candidates };
    let scanned = probe.run();
    let floor = probe.best.score_to_reach();
    let mut candidates = probe.candidates;
    candidates.retain(|hit| floor.is_none_or(|floor| hit.score >= floor));
    Probed { candidates, floor, lists: scanned }
}

struct Probe<'a, F> {
    lists: &'a Lists<'a>,
    query: &'a PreparedQuery,
    one_bit: OneBitQuery,
    effort: Effort,
    estimate: F,
    /// The best lower bounds.
    best: TopK,
    found: Vec<MayReach>,
    candidates: Vec<Hit>,
}

/// A list as the query sees it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    list: usize,
    dot: f32,
    distance: f32,
    /// What its best row may score.
    potential: f32,
}

impl<F: FnMut(RowId) -> Option<(f32, f32)>> Probe<'_, F> {
    /// Visits lists until none can win; returns how many were scanned.
    fn run(&mut self) -> usize {
        let mut points = Vec::with_capacity(self.lists.len());
        let nowhere = Reference { dot: 0.0, allowance: 0.0 };
        self.lists.points().scan(&self.one_bit, nowhere, f32::NEG_INFINITY, &mut points);
        points.truncate(self.lists.len());
        let mut rest = &mut points[..];
        let mut scanned = 0;
        while !rest.is_empty() {
            let count = LISTS_AT_ONCE.min(rest.len());
            if count < rest.len() {
                rest.select_nth_unstable_by(count - 1, |a, b| {
                    b.upper.total_cmp(&a.upper).then(a.position.cmp(&b.position))
                });
            }
            let (nearest, further) = rest.split_at_mut(count);
            rest = further;
            let mut seen: Vec<Seen> =
                nearest.iter().map(|point| self.see(point.position as usize)).collect();
            seen.sort_unstable_by(|a, b| {
                b.potential.total_cmp(&a.potential).then(a.list.cmp(&b.list))
            });
            let before = scanned;
            for seen in seen {
                if self.is_out_of_reach(seen.potential) {
                    break;
                }
                self.visit(seen);
                scanned += 1;
            }
            if scanned == before {
                break;
            }
        }
        scanned
    }

    fn is_out_of_reach(&self, potential: f32) -> bool {
        self.effort.reach.is_some()
            && self.best.score_to_reach().is_some_and(|floor| potential < floor)
    }

    fn see(&self, list: usize) -> Seen {
        let (lists, query) = (self.lists, self.query);
        let dot = dot_codes(query.codes(), lists.codes(list)) as f32;
        let dot = dot * query.scale() * lists.scale(list);
        let distance = (1.0 + lists.square(list) - 2.0 * dot).max(0.0).sqrt();
        let reach = self.effort.reach.unwrap_or(0.0);
        let potential = dot + reach * lists.spread(list) * distance;
        Seen { list, dot, distance, potential }
    }

    fn visit(&mut self, seen: Seen) {
        // What the codes of the query lose of its product with the point.
        let lost = self.query.residual() * self.lists.square(seen.list).sqrt();
        let reference =
            Reference { dot: seen.dot + lost, allowance: self.effort.deviations * seen.distance };
        let (rows, blocks) = (self.lists.rows(seen.list), self.lists.one_bit(seen.list));
        for first in (0..blocks.len()).step_by(RUN_BLOCKS) {
            let floor = self.best.score_to_reach().unwrap_or(f32::NEG_INFINITY);
            self.found.clear();
            let run = blocks.run(first, RUN_BLOCKS.min(blocks.len() - first));
            run.scan(&self.one_bit, reference, floor, &mut self.found);
            for found in &self.found {
                let slot = first * BLOCK_ROWS + found.position as usize;
                // Slots behind the last row only fill up its block.
                let Some(row) = rows.get(slot) else { continue };
                let floor = self.best.score_to_reach().unwrap_or(f32::NEG_INFINITY);
                if found.upper < floor {
                    continue;
                }
                let Some((estimate, bound)) = (self.estimate)(RowId(*row)) else { continue };
                if estimate + bound >= floor {
                    self.best.push(RowId(*row), estimate - bound);
                    self.candidates.push(Hit { row: RowId(*row), score: estimate + bound });
                }
            }
        }
    }
}
