//! Measures cost and recall of searches through new lists, by trial searches that resemble later
//! ones.
//!
//! The number of lists that hold a query's neighbours, and the share of rows that one bit per
//! component rules out, are properties of the data. They are therefore measured before a segment is
//! written.
//!
//! Real questions are not available at that point, and a row is no substitute: it is nearer to its
//! neighbours than a question is to the passages that answer it. Over a million real passages, a
//! patience of 8 lists finds .997 of the neighbours of rows but only .88 of those of questions.
//! Recall is therefore measured with rows that were moved, in directions in which rows differ, as
//! far away as questions are.

use std::cell::Cell;

use crate::segment::lists::exact::probe_together;
use crate::segment::lists::probe::{Probed, probe};
use crate::segment::lists::source::{FINITE, ListSource, Trials};
use crate::segment::lists::{Effort, Lists, NearRows, Recall};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, dot_codes, prefetch};
use lodestone_types::RowId;

/// Rows that are searched for to measure cost.
const COSTED: usize = 128;
/// Moved rows that are searched for to measure recall. With 512, the recall of ten neighbours has a
/// standard deviation of .0014, if misses are independent.
const SEARCHES: usize = 512;
/// Numbers of neighbours to search for.
const NEIGHBOURS: [usize; 2] = [10, 100];
/// Distance by which a row, itself of length 1, is moved. Its cosine with the original is then .58,
/// the average cosine of a question with the nearest of a million real passages (1,000 questions).
const MOVED_BY: f32 = 1.4;
/// Rows that are combined into a direction; half of them are subtracted.
const ROWS_OF_DIRECTION: usize = 8;
/// Ratio of the patience that questions need to the patience that moved rows need. With the
/// steepness of new segments, moved rows need less than without it and questions more: over 200,000
/// real passages, ratios of 1.2 and 1.6 find for questions what patience alone did, .979 and .9945,
/// where .97 and .99 are required.
const MORE_OF_QUESTIONS: f32 = 1.6;
/// Least and greatest patience tried, in units of the square root of the number of lists; each
/// trial multiplies it by a factor. In clustered data less than one root would suffice, but not
/// under a filter that leaves a cluster fewer rows than requested.
const PATIENCE_OF_ROOT: (f64, f64) = (1.0, 32.0);
const PATIENCE_FACTOR: f64 = std::f64::consts::SQRT_2;

/// Measurements for 10 and for 100 neighbours, in that order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// Consecutive lists without a better row at which a search may stop, for [`Recall::Usual`].
    pub(super) patience: [f32; 2],
    /// Share of all rows whose T1 an exact search reads.
    pub(super) all: [f32; 2],
    /// Share of all rows whose T1 a probing search reads.
    pub(super) near: [f32; 2],
    /// Patience for [`Recall::Quick`].
    pub(super) quick_patience: [f32; 2],
}

/// Runs exact trial searches and, for [`Trials::Every`], probing ones with growing patience.
pub(super) fn measure(
    source: &dyn ListSource,
    rotation: &Rotation,
    lists: &Lists<'_>,
    trials: Trials,
) -> Measured {
    let costed = Trial::new(source, rotation, lists, COSTED, itself);
    let all = NEIGHBOURS.map(|k| costed.search_all(k).share);
    let mut measured = Measured { all, near: all, ..Measured::default() };
    if lists.len() == 1 || trials == Trials::OfAll {
        return measured;
    }
    let trial = Trial::new(source, rotation, lists, SEARCHES, moved);
    // Questions need as much patience for a hundred neighbours as for ten; moved rows need less or
    // more.
    let [ten, hundred] = NEIGHBOURS.map(|k| trial.least_patience(k));
    let of = |at: usize| (ten[at].max(hundred[at]) * MORE_OF_QUESTIONS).ceil();
    let [quick, usual] = [of(0), of(1)];
    (measured.quick_patience, measured.patience) = ([quick; 2], [usual; 2]);
    measured.near = NEIGHBOURS.map(|k| costed.probe_all(k, usual as usize).share);
    measured
}

/// Trial searches for some rows, either unchanged or moved.
struct Trial<'a> {
    source: &'a dyn ListSource,
    rotation: &'a Rotation,
    lists: &'a Lists<'a>,
    asked: Vec<u32>,
    queries: Vec<PreparedQuery>,
}

/// Results of the searches of a trial: the rows found by each, ascending, and the share of rows
/// read.
struct TrialResult {
    rows: Vec<Vec<RowId>>,
    share: f32,
}

impl TrialResult {
    fn recall_of(&self, exact: &Self) -> f64 {
        let wanted: usize = exact.rows.iter().map(Vec::len).sum();
        let pairs = self.rows.iter().zip(&exact.rows);
        let is_found = |(found, row): (&Vec<RowId>, &RowId)| found.binary_search(row).is_ok();
        let hit: usize = pairs
            .map(|(found, exact)| exact.iter().filter(|row| is_found((found, row))).count())
            .sum();
        if wanted == 0 { 1.0 } else { hit as f64 / wanted as f64 }
    }
}

impl<'a> Trial<'a> {
    fn new(
        source: &'a dyn ListSource,
        rotation: &'a Rotation,
        lists: &'a Lists<'a>,
        count: usize,
        query: impl Fn(&dyn ListSource, u32) -> Vec<f32>,
    ) -> Self {
        let rows = source.row_count();
        let count = count.min(rows);
        let asked: Vec<u32> = (0..count).map(|at| (at * rows / count) as u32).collect();
        let query = |row: &u32| PreparedQuery::new(&query(source, *row)).expect(FINITE);
        let queries = asked.iter().map(query).collect();
        Self { source, rotation, lists, asked, queries }
    }

    /// The least patience that finds enough of `k` neighbours, for [`Recall::Quick`] and
    /// [`Recall::Usual`]. Between two tried values, patience is assumed to grow exponentially with
    /// recall.
    fn least_patience(&self, k: usize) -> [f32; 2] {
        let exact = self.search_all(k);
        let root = (self.lists.len() as f64).sqrt();
        let [least, most] = [PATIENCE_OF_ROOT.0, PATIENCE_OF_ROOT.1].map(|roots| roots * root);
        let wanted = [Recall::Quick, Recall::Usual].map(Recall::share);
        let mut found: [Option<f32>; 2] = [None; 2];
        let (mut before, mut patience) = (None, least.max(1.0));
        loop {
            let recall = self.probe_all(k, patience.ceil() as usize).recall_of(&exact);
            for (found, wanted) in found.iter_mut().zip(wanted) {
                if found.is_none() && (recall >= wanted || patience >= most) {
                    let enough = between(before, (patience, recall), wanted);
                    *found = Some(enough.ceil() as f32);
                }
            }
            if let [Some(quick), Some(usual)] = found {
                return [quick, usual];
            }
            before = Some((patience, recall));
            patience *= PATIENCE_FACTOR;
        }
    }

    fn others(&self, at: usize, read: &'a Cell<usize>) -> Others<'_> {
        Others { source: self.source, query: &self.queries[at], asked: self.asked[at], read }
    }

    fn search_all(&self, k: usize) -> TrialResult {
        let read = Cell::new(0);
        let deviations = Effort::EXACT.deviations;
        let others = |at| self.others(at, &read);
        let found = probe_together(self.lists, self.rotation, &self.queries, k, deviations, others);
        self.result(found, &read)
    }

    fn probe_all(&self, k: usize, patience: usize) -> TrialResult {
        let read = Cell::new(0);
        let effort = Effort::probing(Some(patience));
        let search = |(at, query)| {
            let others = self.others(at, &read);
            probe(self.lists, self.rotation, query, k, effort, others)
        };
        let found = self.queries.iter().enumerate().map(search).collect();
        self.result(found, &read)
    }

    fn result(&self, probed: Vec<Probed>, read: &Cell<usize>) -> TrialResult {
        let rows = |probed: Probed| {
            let mut rows: Vec<RowId> = probed.candidates.iter().map(|hit| hit.row).collect();
            rows.sort_unstable();
            rows
        };
        let possible = (self.queries.len() * self.source.row_count()).max(1);
        TrialResult {
            rows: probed.into_iter().map(rows).collect(),
            share: read.get() as f32 / possible as f32,
        }
    }
}

/// Interpolates the patience at which recall is `wanted` between two that were tried.
fn between(before: Option<(f64, f64)>, (patience, recall): (f64, f64), wanted: f64) -> f64 {
    match before {
        Some((less, known)) if recall > wanted => {
            less * (patience / less).powf((wanted - known) / (recall - known))
        }
        _ => patience,
    }
}

/// A row, unchanged.
fn itself(source: &dyn ListSource, row: u32) -> Vec<f32> {
    let mut unit = vec![0.0; source.dimension()];
    source.unit(row, &mut unit);
    unit
}

/// A row moved as far away as questions are from the passages that answer them.
fn moved(source: &dyn ListSource, row: u32) -> Vec<f32> {
    let mut query = itself(source, row);
    let (mut other, mut direction) = (vec![0.0; query.len()], vec![0.0; query.len()]);
    for at in 0..ROWS_OF_DIRECTION {
        source.unit(some_row(row, at, source.row_count()), &mut other);
        let sign = if at % 2 == 0 { 1.0 } else { -1.0 };
        direction.iter_mut().zip(&other).for_each(|(sum, value)| *sum += sign * value);
    }
    let length = direction.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        let by = MOVED_BY / length;
        query.iter_mut().zip(&direction).for_each(|(value, step)| *value += by * step);
    }
    query
}

/// A pseudo-random row below `rows`, determined by `row` and `at` (SplitMix64).
fn some_row(row: u32, at: usize, rows: usize) -> u32 {
    let mut bits =
        (u64::from(row) << 8 | at as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ bits >> 31) % rows as u64) as u32
}

/// All rows but the one searched for, as decoded from T1. Counts the rows that are read.
struct Others<'a> {
    source: &'a dyn ListSource,
    query: &'a PreparedQuery,
    asked: u32,
    read: &'a Cell<usize>,
}

impl NearRows for Others<'_> {
    fn passes(&self, row: RowId) -> bool {
        row.0 != self.asked
    }

    fn fetch(&self, row: RowId) {
        prefetch(self.source.codes(row.0));
    }

    fn estimate(&self, row: RowId) -> (f32, f32) {
        self.read.set(self.read.get() + 1);
        let dot = dot_codes(self.query.codes(), self.source.codes(row.0)) as f32;
        (dot * self.query.scale() * self.source.scale(row.0), 0.0)
    }
}
