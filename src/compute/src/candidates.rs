//! Finds rows that may be among the best k by T1 and its error bound alone.

use crate::backend_steps::begin;
use crate::rows::estimate;
use crate::tiles::{PackedCodes, STRIP};
use crate::{ComputeError, ErrorBound, PreparedQuery, Selection, TopK, VectorRows};
use lodestone_types::{Hit, RowId, by_rank};

/// Number of queries from which on tiles are faster than one scan per query
/// (`benches/flat_batch.rs`).
pub(super) const TILED_QUERIES_MIN: usize = 8;
/// The quick test rounds differently from the estimate; this margin exceeds the difference.
const SLACK: f32 = 1e-5;

/// A query, and the error bound of its estimates.
#[derive(Debug, Clone, Copy)]
pub struct BoundedQuery<'a> {
    /// The query.
    pub query: &'a PreparedQuery,
    /// The bound over the rows being searched.
    pub bound: ErrorBound,
}

/// Rows that may be among the best k so far.
#[derive(Debug)]
pub(super) struct Candidates {
    lower_bounds: TopK,
    hits: Vec<Hit>,
}

impl Candidates {
    pub(super) fn new(k: usize) -> Self {
        Self { lower_bounds: TopK::new(k), hits: Vec::new() }
    }

    fn threshold(&self) -> f32 {
        self.lower_bounds.score_to_reach().unwrap_or(f32::NEG_INFINITY)
    }

    pub(super) fn push(&mut self, row: RowId, estimate: f32, bound: f32) {
        if estimate + bound >= self.threshold() {
            self.lower_bounds.push(row, estimate - bound);
            self.hits.push(Hit { row, score: estimate + bound });
        }
    }

    /// Returns the candidates, highest upper bound first.
    pub(super) fn finish(mut self) -> Vec<Hit> {
        let threshold = self.threshold();
        self.hits.retain(|hit| hit.score >= threshold);
        self.hits.sort_unstable_by(by_rank);
        self.hits
    }
}

/// Finds the candidates of many queries in one pass over the rows.
pub(super) fn by_tiles(
    rows: &VectorRows<'_>,
    queries: &[BoundedQuery<'_>],
    selection: Selection<'_>,
    k: usize,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    for bounded in queries {
        begin(rows, bounded.query, selection, &mut Vec::new())?;
    }
    let mut tiled = Tiled::new(rows, queries, k);
    let mut strip = Vec::with_capacity(STRIP);
    selection.for_each(rows.len(), |row| {
        strip.push(row);
        if strip.len() == STRIP {
            tiled.look_at(&strip);
            strip.clear();
        }
    });
    if !strip.is_empty() {
        tiled.look_at(&strip);
    }
    Ok(tiled.candidates.into_iter().map(Candidates::finish).collect())
}

/// State of one pass for many queries.
struct Tiled<'a> {
    rows: &'a VectorRows<'a>,
    queries: &'a [BoundedQuery<'a>],
    packed: PackedCodes,
    quick: Vec<Quick>,
    candidates: Vec<Candidates>,
}

/// Parameters of one query's quick test.
#[derive(Debug, Clone, Copy)]
struct Quick {
    scale: f32,
    constant: f32,
    per_residual: f32,
    threshold: f32,
}

impl Quick {
    fn passes(&self, dot: i32, scale: f32, residual: f32) -> bool {
        let estimate = dot as f32 * (self.scale * scale);
        estimate + (self.constant + self.per_residual * residual) >= self.threshold
    }
}

impl<'a> Tiled<'a> {
    fn new(rows: &'a VectorRows<'a>, queries: &'a [BoundedQuery<'a>], k: usize) -> Self {
        let codes = queries.iter().flat_map(|bounded| bounded.query.codes()).copied().collect();
        let quick = |bounded: &BoundedQuery<'_>| Quick {
            scale: bounded.query.scale(),
            constant: bounded.bound.of(0.0) + SLACK,
            per_residual: bounded.bound.of(1.0) - bounded.bound.of(0.0),
            threshold: f32::NEG_INFINITY,
        };
        Self {
            rows,
            queries,
            packed: PackedCodes::new(codes, queries[0].query.codes().len()),
            quick: queries.iter().map(quick).collect(),
            candidates: queries.iter().map(|_| Candidates::new(k)).collect(),
        }
    }

    fn look_at(&mut self, strip: &[usize]) {
        let Self { rows, queries, packed, quick, candidates } = self;
        let mut codes = [&[][..]; STRIP];
        codes.iter_mut().zip(strip).for_each(|(codes, row)| *codes = rows.codes(*row));
        packed.multiply(&codes[..strip.len()], |at, first, dots| {
            let row = strip[at];
            let (scale, residual) = (rows.scale(row), rows.residual(row));
            let tile = &mut quick[first..first + dots.len()];
            // Branch-free, so that the compiler tests several queries at a time.
            let any = tile
                .iter()
                .zip(dots)
                .fold(0, |any, (quick, dot)| any | u32::from(quick.passes(*dot, scale, residual)));
            if any == 0 {
                return;
            }
            for (position, (quick, dot)) in tile.iter_mut().zip(dots).enumerate() {
                if quick.passes(*dot, scale, residual) {
                    let BoundedQuery { query, bound } = &queries[first + position];
                    let candidates = &mut candidates[first + position];
                    let estimate = estimate(f64::from(*dot), rows, row, query);
                    candidates.push(RowId(row as u32), estimate, bound.of(residual));
                    quick.threshold = candidates.threshold();
                }
            }
        });
    }
}
