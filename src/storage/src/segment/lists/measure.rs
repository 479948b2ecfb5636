//! Measures cost and recall of searches through these lists, by searching for some of the rows.
//!
//! The number of lists that hold a query's neighbours, and the share of rows that one bit a
//! component rules out, are properties of the data. So they are measured before a segment is
//! written.

use std::cell::Cell;

use crate::segment::lists::build::{FINITE, ListSource};
use crate::segment::lists::encode::Trials;
use crate::segment::lists::probe::{NearRows, Probed, probe, probe_together};
use crate::segment::lists::{Effort, Lists};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, dot_codes, prefetch};
use lodestone_types::RowId;

/// Rows that are searched for. With 128 the recall found for ten neighbours is off by .003 (one
/// standard deviation, if misses are independent).
const SEARCHES: usize = 128;
/// Numbers of neighbours that are tried.
const NEIGHBOURS: [usize; 2] = [10, 100];
/// Share of the neighbours that a probing search is to find.
const RECALL: f64 = 0.99;
/// The least patience, in roots of the number of lists: 256 of 4,096. Rows stand nearer to their
/// neighbours than questions do to what answers them, so that less would often do here: over a
/// million real passages 8 find .999 of the neighbours of rows and .94 of those of questions, 256
/// find .99 of the latter. It is doubled until the recall of the rows suffices, at most three
/// times.
const PATIENCE_OF_ROOT: f32 = 4.0;
const DOUBLINGS: i32 = 3;

/// Measurements for 10 and for 100 neighbours.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// Lists in a row without a better row before a search may end.
    pub(super) patience: [f32; 2],
    /// Share of all rows whose T1 an exact search reads.
    pub(super) all: [f32; 2],
    /// The same of a probing search.
    pub(super) near: [f32; 2],
}

/// Searches for some rows, exactly and then, where every search is tried, with growing patience.
pub(super) fn measure(
    source: &dyn ListSource,
    rotation: &Rotation,
    lists: &Lists<'_>,
    trials: Trials,
) -> Measured {
    let trial = Trial::new(source, rotation, lists);
    let exact = NEIGHBOURS.map(|k| trial.search_all(k));
    let all = [exact[0].share, exact[1].share];
    let mut measured = Measured { patience: [0.0; 2], all, near: all };
    if lists.len() == 1 || trials == Trials::OfAll {
        return measured;
    }
    for (at, (k, exact)) in NEIGHBOURS.into_iter().zip(&exact).enumerate() {
        for doubling in 0..=DOUBLINGS {
            let least = PATIENCE_OF_ROOT * (lists.len() as f32).sqrt();
            let patience = (least * 2_f32.powi(doubling)).ceil();
            let probed = trial.probe_all(k, patience as usize);
            (measured.patience[at], measured.near[at]) = (patience, probed.share);
            if probed.recall_of(exact) >= RECALL {
                break;
            }
        }
    }
    measured
}

/// Rows to search for.
struct Trial<'a> {
    source: &'a dyn ListSource,
    rotation: &'a Rotation,
    lists: &'a Lists<'a>,
    asked: Vec<u32>,
    queries: Vec<PreparedQuery>,
}

/// Results of the searches of a trial: the rows of each, ascending, and the share of rows read.
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
    fn new(source: &'a dyn ListSource, rotation: &'a Rotation, lists: &'a Lists<'a>) -> Self {
        let rows = source.row_count();
        let count = SEARCHES.min(rows);
        let asked: Vec<u32> = (0..count).map(|at| (at * rows / count) as u32).collect();
        let mut unit = vec![0.0; source.dimension()];
        let prepare = |row: &u32| {
            source.unit(*row, &mut unit);
            PreparedQuery::new(&unit).expect(FINITE)
        };
        let queries = asked.iter().map(prepare).collect();
        Self { source, rotation, lists, asked, queries }
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

/// All rows but the one that is searched for, as T1 holds them; counts the rows that are read.
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

    fn has_any(&self, rows: &[u32]) -> bool {
        rows != [self.asked]
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
