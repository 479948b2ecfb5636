//! Vector search over the rows of one segment: the result of brute force over T2, at a lower cost.
//!
//! ```text
//! m passing rows -+- few:  Gather -----------------------------> T2 of all m --+
//!                 +- some: scan T1 of them -> estimate +- bound                +-> best k
//!                 +- many: probe lists and T0, then T1 -> the same             |
//!                          +- upper bound reaches the k-th best lower bound ---+
//!                             rescored on T2, best upper bound first,
//!                             until none can still win
//! ```
//!
//! The exact paths give the same hits with the same scores: a row is dropped only if its upper
//! bound is *below* a score that k rows reach, so even ties come out as in brute force. An exact
//! search uses the certain error bound of T1, and five standard deviations for T0. A probing search
//! uses likely bounds for both and stops when further lists bring no better rows; it finds about 99
//! of 100 neighbours. Returned rows have true scores, and there are never fewer than min(k, m).
//!
//! Blocks of the file are verified before they are read. Damage does not abort a search, since
//! every inner loop would pay for the check: the file remembers it, and the caller calls
//! [`Segment::check`] before it passes the result on.
//!
//! [`Segment::check`]: crate::segment::Segment::check
//!
//! - `path`: choice of the cheapest path; `filter`: the passing rows in the forms that paths need
//! - `condensed`: a compact copy of the rows that pass a repeated filter
//! - `listed`: search through lists
//! - `thoroughness`: how exact a search is; `together`: several queries in one pass

use std::borrow::Cow;

use crate::segment::lists::{Lists, NearRows, Probed};
use crate::segment::tier_blocks::TierBlocks;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ComputeError, ErrorBound, PreparedQuery, Selection, SimdBackend,
    TopK, VectorRows,
};
use lodestone_io::{major_faults, read_soon};
use lodestone_types::{Hit, RowId, by_rank};

mod condensed;
mod filter;
mod listed;
mod path;
mod thoroughness;
mod together;

pub use filter::RowFilter;
pub use path::{GATHER_ROWS_MAX, SearchPath};
pub use thoroughness::Thoroughness;
pub use together::search_together;

use listed::through_lists;
use path::choose;

/// Minimum number of rows rescored between two checks whether the next one can still win.
const RESCORE_ROWS: usize = 16;

/// Result of a flat search.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatHits {
    /// The best rows, best first, ties by row; `min(k, passing rows)` of them.
    pub hits: Vec<Hit>,
    /// The path that found them.
    pub path: SearchPath,
    /// On [`SearchPath::Lists`]: the number of consecutive lists without a better row at which the
    /// search stops.
    pub patience: Option<usize>,
}

/// The vectors of one segment, with the lists over them if it has many rows.
#[derive(Debug, Clone, Copy)]
pub struct Tiers<'a> {
    /// T1 and T2.
    pub rows: VectorRows<'a>,
    /// T0, and the rotation used to compute its codes.
    pub listed: Option<(Lists<'a>, &'a Rotation)>,
    /// `None` if everything is verified or needs no verification.
    blocks: Option<TierBlocks<'a>>,
}

impl<'a> Tiers<'a> {
    /// Wraps tiers that need no verification.
    pub fn new(rows: VectorRows<'a>, listed: Option<(Lists<'a>, &'a Rotation)>) -> Self {
        Self { rows, listed, blocks: None }
    }

    /// Makes searches verify each part of the tiers before they read it.
    #[must_use]
    pub(super) fn behind(self, blocks: Option<TierBlocks<'a>>) -> Self {
        let listed = self.listed.map(|(lists, rotation)| (lists.behind(blocks), rotation));
        Self { listed, blocks, ..self }
    }

    /// Verifies T1 of the rows that a scan will read.
    fn prepare_scan(&self, filter: Option<&RowFilter<'_>>) {
        match (self.blocks, filter) {
            (None, _) => {}
            (Some(blocks), None) => {
                blocks.all_codes();
            }
            (Some(blocks), Some(filter)) => {
                // Iterates in the form that the scan reads too, so that no second form is built and
                // kept.
                let mut is_sound = true;
                filter.selection().for_each(self.rows.len(), |row| {
                    is_sound = is_sound && blocks.codes_of(RowId(row as u32));
                });
            }
        }
    }

    /// Verifies T2 of rows. If the thread has had to wait for the disk since its count of major
    /// faults was `faults`, all rows are first requested from the disk at once.
    fn prepare_exact(&self, rows: &[RowId], faults: i64) {
        if major_faults() > faults {
            rows.iter().for_each(|row| read_soon(self.rows.full_bytes(row.0 as usize)));
        }
        if let Some(blocks) = self.blocks {
            let _first_damaged = rows.iter().find(|row| !blocks.original_of(**row));
        }
    }

    /// Bytes that most searches read: T0 and the lists, or T1 if there are none.
    pub fn hot_bytes(&self) -> usize {
        match &self.listed {
            Some((lists, _)) => lists.bytes(),
            None => self.rows.len() * self.rows.scan_bytes_per_row(),
        }
    }
}

/// Finds the `k` rows of highest score for `query` among those that pass `filter` (all rows if
/// absent). A zero query scores every row 0, except for distances. Searches by a metric other than
/// cosine are exact and always run on the CPU.
///
/// # Errors
/// [`ComputeError::DimensionMismatch`], and errors of the backend.
pub fn search(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    filter: Option<&RowFilter<'_>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<FlatHits, ComputeError> {
    let rows = &tiers.rows;
    query.check_rows(rows)?;
    if query.scoring().is_some() {
        return by_other_metric(tiers, query, filter, k);
    }
    let path = choose(backend, tiers, filter, 1, k, thoroughness);
    let hits = if query.is_zero() {
        let first = listed_rows(rows, filter);
        first.iter().take(k).map(|row| Hit { row: *row, score: 0.0 }).collect()
    } else {
        search_on(path, backend, tiers, query, filter, k, thoroughness)?
    };
    Ok(FlatHits { hits, path, patience: thoroughness.effort(tiers, path, k).patience })
}

/// Searches by a metric other than cosine, exactly and on the CPU.
fn by_other_metric(
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    filter: Option<&RowFilter<'_>>,
    k: usize,
) -> Result<FlatHits, ComputeError> {
    if let Some(blocks) = tiers.blocks {
        blocks.all_norms();
    }
    // T0 carries no information about a query without a direction.
    let tiers = &Tiers { listed: tiers.listed.filter(|_| !query.is_zero()), ..*tiers };
    let (backend, thoroughness) = (&SimdBackend, Thoroughness::Exact);
    let path = choose(backend, tiers, filter, 1, k, thoroughness);
    let hits = search_on(path, backend, tiers, query, filter, k, thoroughness)?;
    Ok(FlatHits { hits, path, patience: thoroughness.effort(tiers, path, k).patience })
}

/// Scores each of `listed` for `query`, in that order; needed when the hits of both legs are
/// merged. Rows may repeat.
///
/// # Errors
/// [`ComputeError::DimensionMismatch`], [`ComputeError::RowOutOfRange`], and errors of the backend.
pub fn scores(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    listed: &[RowId],
) -> Result<Vec<f32>, ComputeError> {
    let mut scores = Vec::new();
    backend.exact(rows, query, listed, &mut scores)?;
    Ok(scores)
}

fn search_on(
    path: SearchPath,
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    filter: Option<&RowFilter<'_>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Hit>, ComputeError> {
    let (rows, faults) = (&tiers.rows, major_faults());
    let bound = thoroughness.bound(query, rows);
    let candidates = match (path, filter, &tiers.listed) {
        (SearchPath::Gather, _, _) => {
            return gather(backend, tiers, query, &listed_rows(rows, filter), k);
        }
        (SearchPath::OneBit | SearchPath::Lists, _, Some(_)) => {
            let queries = std::slice::from_ref(query);
            through_lists(path, tiers, queries, filter, k, thoroughness)
        }
        (SearchPath::CondensedOneBit, Some(filter), Some(_)) => {
            let queries = std::slice::from_ref(query);
            condensed::candidates(backend, tiers, queries, filter, k, thoroughness)?
        }
        (SearchPath::MaskedScan, Some(filter), _) => {
            tiers.prepare_scan(Some(filter));
            backend.candidates(rows, &[BoundedQuery { query, bound }], filter.selection(), k)?
        }
        _ => {
            tiers.prepare_scan(None);
            backend.candidates(rows, &[BoundedQuery { query, bound }], Selection::All, k)?
        }
    };
    let candidates = candidates.into_iter().next().expect("one answer for one query");
    rescore(backend, tiers, query, candidates, k, faults)
}

/// Sorts the candidates by upper bound, highest first.
fn ranked(probed: Probed) -> Vec<Hit> {
    let mut candidates = probed.candidates;
    candidates.sort_unstable_by(by_rank);
    candidates
}

/// T1 under a filter, as seen by one query.
struct SeenRows<'a> {
    rows: &'a VectorRows<'a>,
    blocks: Option<TierBlocks<'a>>,
    query: &'a PreparedQuery,
    bound: ErrorBound,
    filter: Option<&'a RowFilter<'a>>,
}

impl NearRows for SeenRows<'_> {
    /// Only [`crate::segment::verify`] checks the slots, so they may name rows that do not exist.
    fn passes(&self, row: RowId) -> bool {
        let row = row.0 as usize;
        row < self.rows.len() && self.filter.is_none_or(|filter| filter.dense().contains(row))
    }

    fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    fn fetch(&self, row: RowId) {
        if let Some(blocks) = self.blocks {
            blocks.codes_of(row);
        }
        self.rows.prefetch(row.0 as usize);
    }

    fn read_soon(&self, row: RowId) {
        self.rows.estimated_bytes(row.0 as usize).into_iter().for_each(read_soon);
    }

    fn estimate(&self, row: RowId) -> (f32, f32) {
        let row = row.0 as usize;
        let error = self.bound.of(self.rows.residual(row));
        self.query.bounds(self.rows, row, self.rows.estimate(row, self.query), error)
    }

    fn least_cosine(&self, rows: &[u32], score: f32) -> f32 {
        let Some(scoring) = self.query.scoring() else { return score };
        let rows = rows.iter().map(|row| *row as usize).filter(|row| *row < self.rows.len());
        let norms = rows.map(|row| self.rows.norm(row));
        let widen = |(low, high): (f32, f32), norm: f32| (low.min(norm), high.max(norm));
        scoring.least_cosine(norms.fold((f32::INFINITY, 0.0), widen), score)
    }

    fn highest_score(&self, row: RowId, cosine: f32) -> f32 {
        let (score, off) = self.query.bounds(self.rows, row.0 as usize, cosine, 0.0);
        score + off
    }
}

/// Scores all of `listed` from T2.
fn gather(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    listed: &[RowId],
    k: usize,
) -> Result<Vec<Hit>, ComputeError> {
    let (mut best, faults) = (TopK::new(k), major_faults());
    // The first part shows whether reads have to wait for the disk.
    let (first, rest) = listed.split_at(listed.len().min(RESCORE_ROWS));
    for part in [first, rest] {
        tiers.prepare_exact(part, faults);
        for (&row, score) in part.iter().zip(scores(backend, &tiers.rows, query, part)?) {
            best.push(row, score);
        }
    }
    Ok(best.into_hits())
}

/// Scores candidates, ordered by falling upper bound, from T2 and returns the best k.
fn rescore(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    candidates: Vec<Hit>,
    k: usize,
    faults: i64,
) -> Result<Vec<Hit>, ComputeError> {
    let mut best = TopK::new(k);
    let mut listed = Vec::new();
    let mut exact = Vec::new();
    for part in candidates.chunks(RESCORE_ROWS.max(k)) {
        // Upper bounds fall: if the first candidate of a part cannot win, no later one can.
        if best.score_to_reach().is_some_and(|score| part[0].score < score) {
            break;
        }
        listed.clear();
        listed.extend(part.iter().map(|candidate| candidate.row));
        tiers.prepare_exact(&listed, faults);
        backend.exact(&tiers.rows, query, &listed, &mut exact)?;
        for (&row, &score) in listed.iter().zip(&exact) {
            best.push(row, score);
        }
    }
    Ok(best.into_hits())
}

/// Number of rows of the segment that pass the filter.
fn passing_rows(rows: &VectorRows<'_>, filter: Option<&RowFilter<'_>>) -> usize {
    filter.map_or(rows.len(), RowFilter::passing)
}

/// The passing rows, ascending.
fn listed_rows<'a>(rows: &VectorRows<'_>, filter: Option<&'a RowFilter<'_>>) -> Cow<'a, [RowId]> {
    match filter {
        None => (0..rows.len() as u32).map(RowId).collect(),
        Some(filter) => Cow::Borrowed(filter.listed()),
    }
}

#[cfg(test)]
mod tests;
