//! Search over the rows of one segment: what brute force over T2 would answer, for less.
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
//! The exact paths give the same hits with the same scores: a row is left out only if its upper
//! bound is *below* a score that k rows reach, so even ties are as in brute force. An exact search
//! takes the certain bound of T1 and five standard deviations of T0. A probing one takes what is
//! likely of both, and leaves lists out as far as its reach was calibrated: it finds 99 of 100
//! neighbours. What it returns has true scores, and is never fewer than min(k, m) rows.

use roaring::RoaringBitmap;

use crate::compute::rotation::Rotation;
use crate::compute::{
    ComputeBackend, ComputeError, ErrorBound, PreparedQuery, RowMask, Selection, TopK, VectorRows,
};
use crate::segment::lists::{Effort, Lists, probe};
use crate::types::{Hit, RowId, by_rank};

/// Passing rows up to which all of them are read from T2 at once.
///
/// Where the number comes from: `benches/flat_paths.rs` times both halves per row at d = 384. A
/// row of T2 costs about four of T1, but a scan then reads at least `RESCORE_ROWS` rows of T2
/// too, and goes over its estimates twice; the two meet between 100 and 200 rows. For large k the
/// same ratio puts the meeting point near 2 k, since a scan rescores k rows and some more.
pub const GATHER_ROWS_MAX: usize = 128;

/// Rows rescored between two looks at whether the next can still win.
const RESCORE_ROWS: usize = 64;

/// How the rows of one segment were searched. `Gather` is always exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchPath {
    /// Few rows pass: all of them were scored from T2.
    Gather,
    /// The T1 codes of the passing rows were scanned.
    MaskedScan,
    /// Every row passes: T1 was scanned from end to end.
    Scan,
    /// T0 was scanned from end to end, T1 of what its bound let through.
    OneBit,
    /// T0 of the lists near the query was scanned, T1 of what its bound let through.
    Lists,
}

impl SearchPath {
    /// The name in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::MaskedScan => "masked_scan",
            Self::Scan => "scan",
            Self::OneBit => "one_bit_scan",
            Self::Lists => "lists",
        }
    }
}

/// What a flat search found.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatHits {
    /// The best rows, best first, ties by row; `min(k, passing rows)` of them.
    pub hits: Vec<Hit>,
    /// How they were found.
    pub path: SearchPath,
}

/// The vectors of one segment, with the lists over them where it has many.
#[derive(Debug, Clone, Copy)]
pub struct Tiers<'a> {
    /// T1 and T2.
    pub rows: VectorRows<'a>,
    /// T0, and the rotation that its codes were made with.
    pub listed: Option<(Lists<'a>, &'a Rotation)>,
}

/// How much a search may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Thoroughness {
    /// Nothing.
    Exact,
    /// One neighbour in a hundred, where that spares reading most rows.
    #[default]
    Probing,
    /// Where a segment has lists: those whose best row would have to lie up to so many spreads
    /// towards the query. For measurements.
    Reach(f32),
}

impl Tiers<'_> {
    /// Bytes that most searches read: T0 and the lists, or T1 where there are none.
    pub fn hot_bytes(&self) -> usize {
        match &self.listed {
            Some((lists, _)) => lists.bytes(),
            None => self.rows.len() * self.rows.scan_bytes_per_row(),
        }
    }
}

/// The `k` rows of highest cosine with `query` among those in `mask` (absent: all rows). Rows in
/// the mask that the segment does not have are ignored. A zero query scores every row 0.
///
/// # Errors
/// [`ComputeError::DimensionMismatch`], or whatever the backend could not do.
pub fn search(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<FlatHits, ComputeError> {
    let rows = &tiers.rows;
    query.check_rows(rows)?;
    let telling = tiers.listed.filter(|(lists, _)| lists.are_telling(k));
    let lists = telling.map(|(lists, _)| lists.len());
    let path = choose(rows.len(), passing_rows(rows, mask), k, lists, thoroughness);
    let hits = if query.is_zero() {
        let first = listed_rows(rows, mask).into_iter().take(k);
        first.map(|row| Hit { row, score: 0.0 }).collect()
    } else {
        search_on(path, backend, tiers, query, mask, k, thoroughness)?
    };
    Ok(FlatHits { hits, path })
}

/// The cosine of `query` with each of `listed`, in that order: the scores that the union of both
/// legs needs. Rows may repeat.
///
/// # Errors
/// [`ComputeError::DimensionMismatch`], [`ComputeError::RowOutOfRange`], or whatever the backend
/// could not do.
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

/// Passing rows, out of so many, below which T1 of the passing rows costs less than T0 of all. 30
/// is the ratio where T1 comes from memory and T0 rules out nearly all rows; where either is not
/// so, `benches/flat_paths.rs` sees less, and a smaller number would be right.
const ROWS_A_PASSING_ROW: usize = 30;

/// The cheapest path for `passing` of `rows` rows. A masked scan costs no more per row than one
/// from end to end (same bench), so the mask is left out only where every row passes.
fn choose(
    rows: usize,
    passing: usize,
    k: usize,
    lists: Option<usize>,
    thoroughness: Thoroughness,
) -> SearchPath {
    if passing <= GATHER_ROWS_MAX.max(2 * k) {
        return SearchPath::Gather;
    }
    match lists {
        Some(lists) if passing * ROWS_A_PASSING_ROW > rows => {
            match lists > 1 && thoroughness != Thoroughness::Exact {
                true => SearchPath::Lists,
                false => SearchPath::OneBit,
            }
        }
        _ if passing < rows => SearchPath::MaskedScan,
        _ => SearchPath::Scan,
    }
}

fn search_on(
    path: SearchPath,
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    query: &PreparedQuery,
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Hit>, ComputeError> {
    let rows = &tiers.rows;
    let bound = thoroughness.bound(query, rows);
    match (path, mask, &tiers.listed) {
        (SearchPath::Gather, _, _) => gather(backend, rows, query, &listed_rows(rows, mask), k),
        (SearchPath::OneBit | SearchPath::Lists, _, Some(listed)) => {
            let effort = thoroughness.effort(&listed.0, path);
            let candidates = probed(&bound, rows, listed, query, mask, k, effort);
            rescore(backend, rows, query, candidates, k)
        }
        (SearchPath::MaskedScan, Some(mask), _) => {
            let mask = dense(rows, mask);
            scan(backend, &bound, rows, query, Selection::Masked(&mask), k)
        }
        _ => scan(backend, &bound, rows, query, Selection::All, k),
    }
}

impl Thoroughness {
    /// How far an estimate from T1 may be from the truth.
    fn bound(self, query: &PreparedQuery, rows: &VectorRows<'_>) -> ErrorBound {
        match self {
            Self::Exact => ErrorBound::new(query, rows),
            Self::Probing | Self::Reach(_) => ErrorBound::likely(query, rows),
        }
    }

    fn effort(self, lists: &Lists<'_>, path: SearchPath) -> Effort {
        let [_, _, of_99] = lists.reach();
        let reach = match self {
            Self::Exact => return Effort::EXACT,
            Self::Probing => of_99,
            Self::Reach(reach) => reach,
        };
        Effort::probing((path == SearchPath::Lists).then_some(reach))
    }
}

/// Rows that may be among the best k, found through lists and T0, with their upper bounds from
/// T1, highest first.
fn probed(
    bound: &ErrorBound,
    rows: &VectorRows<'_>,
    (lists, rotation): &(Lists<'_>, &Rotation),
    query: &PreparedQuery,
    mask: Option<&RoaringBitmap>,
    k: usize,
    effort: Effort,
) -> Vec<Hit> {
    let estimate = |row: RowId| {
        let passes = mask.is_none_or(|mask| mask.contains(row.0));
        let at = row.0 as usize;
        passes.then(|| (rows.estimate(at, query), bound.of(rows.residual(at))))
    };
    let mut candidates = probe(lists, rotation, query, k, effort, estimate).candidates;
    candidates.sort_unstable_by(by_rank);
    candidates
}

/// Scores all of `listed` from T2.
fn gather(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    listed: &[RowId],
    k: usize,
) -> Result<Vec<Hit>, ComputeError> {
    let mut best = TopK::new(k);
    for (&row, score) in listed.iter().zip(scores(backend, rows, query, listed)?) {
        best.push(row, score);
    }
    Ok(best.into_hits())
}

/// Scans T1 and rescores on T2 what may be among the best k.
fn scan(
    backend: &dyn ComputeBackend,
    bound: &ErrorBound,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    selection: Selection<'_>,
    k: usize,
) -> Result<Vec<Hit>, ComputeError> {
    let mut estimates = Vec::new();
    backend.scan(rows, query, selection, &mut estimates)?;
    let candidates = candidates(bound, rows, selection, &estimates, k);
    rescore(backend, rows, query, candidates, k)
}

/// The best k of candidates with falling upper bounds, scored from T2.
fn rescore(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    candidates: Vec<Hit>,
    k: usize,
) -> Result<Vec<Hit>, ComputeError> {
    let mut best = TopK::new(k);
    let mut listed = Vec::new();
    let mut exact = Vec::new();
    for part in candidates.chunks(RESCORE_ROWS.max(k)) {
        // Candidates come with falling upper bounds: if the first cannot win, none behind it can.
        if best.score_to_reach().is_some_and(|score| part[0].score < score) {
            break;
        }
        listed.clear();
        listed.extend(part.iter().map(|candidate| candidate.row));
        backend.exact(rows, query, &listed, &mut exact)?;
        for (&row, &score) in listed.iter().zip(&exact) {
            best.push(row, score);
        }
    }
    Ok(best.into_hits())
}

/// The selected rows whose upper bound reaches the k-th best lower bound, with their upper bound
/// as the score, highest first. Holds the true best k, ties included.
fn candidates(
    bound: &ErrorBound,
    rows: &VectorRows<'_>,
    selection: Selection<'_>,
    estimates: &[f32],
    k: usize,
) -> Vec<Hit> {
    let mut lower_bounds = TopK::new(k);
    for_each_estimate(rows, selection, estimates, |row, estimate, residual| {
        lower_bounds.push(row, estimate - bound.of(residual));
    });
    let floor = lower_bounds.score_to_reach().unwrap_or(f32::NEG_INFINITY);

    let mut candidates = Vec::new();
    for_each_estimate(rows, selection, estimates, |row, estimate, residual| {
        let upper_bound = estimate + bound.of(residual);
        if upper_bound >= floor {
            candidates.push(Hit { row, score: upper_bound });
        }
    });
    candidates.sort_unstable_by(by_rank);
    candidates
}

/// Calls `visit` with each selected row, its estimate and its residual.
fn for_each_estimate(
    rows: &VectorRows<'_>,
    selection: Selection<'_>,
    estimates: &[f32],
    mut visit: impl FnMut(RowId, f32, f32),
) {
    let mut estimates = estimates.iter();
    selection.for_each(rows.len(), |row| {
        let &estimate = estimates.next().expect("a scan writes one estimate a selected row");
        visit(RowId(row as u32), estimate, rows.residual(row));
    });
}

/// Number of rows of the segment that pass.
fn passing_rows(rows: &VectorRows<'_>, mask: Option<&RoaringBitmap>) -> usize {
    match mask {
        None => rows.len(),
        Some(mask) => mask.range_cardinality(..rows.len() as u32) as usize,
    }
}

/// The passing rows, ascending.
fn listed_rows(rows: &VectorRows<'_>, mask: Option<&RoaringBitmap>) -> Vec<RowId> {
    let rows = rows.len() as u32;
    match mask {
        None => (0..rows).map(RowId).collect(),
        Some(mask) => mask.iter().take_while(|&row| row < rows).map(RowId).collect(),
    }
}

/// The passing rows as dense words.
fn dense(rows: &VectorRows<'_>, mask: &RoaringBitmap) -> RowMask {
    let mut runs = mask.iter();
    RowMask::from_ranges(rows.len(), std::iter::from_fn(|| runs.next_range()))
}

#[cfg(test)]
mod tests;
