//! Scores other than cosine, computed from a row's direction and length, which the tiers hold.
//!
//! T0 and T1 estimate the cosine c of query and row, whatever the metric. With n the length of the
//! row, which T2 stores for vectors of clients, and Q the length of the query,
//!
//! ```text
//! dot   q.x        =  n Q c
//! l2    -|q - x|^2 = -(n^2 + Q^2 - 2 n Q c)
//! ```
//!
//! so that for a given row both increase with c, and a bound of c is a bound of the score. Nothing
//! is stored per metric: segments are those of cosine, and merging copies them as usual.
//!
//! The bounds include all rounding on the way, u = 2^-24: the length is off by u n (2^-149 below
//! f32's normal numbers), and the score, its estimate and its sum with the bound are rounded once
//! each. Each error is at most u n Q for `dot` and 2 u (n + Q)^2 for `l2`; 2^-20 of these covers
//! them.
//!
//! Cost over 1,000,000 rows that all pass: one more read of a length (4 bytes) per row than an
//! exact search by cosine, and T1 of more rows, since a run of T0 is scanned with the threshold of
//! its longest row. Searches do not skip lists: how many have to be visited was measured for cosine
//! only.

use crate::{FullRows, PreparedQuery, VectorRows};
use lodestone_types::{Metric, RowId};

/// Independent sums; a single sum would wait for each of its additions.
const LANES: usize = 8;
/// Relative rounding error allowed, as a fraction of the largest possible score.
const ROUNDING: f64 = 1.0 / (1 << 20) as f64;
/// Exceeds rounding errors below the normal numbers of f32, for lengths and for scores.
const SUBNORMAL: f64 = f32::MIN_POSITIVE as f64;
/// Exceeds the rounding error of a minimum cosine.
const COSINE_SLACK: f64 = 1e-5;

/// The query's part of scores that are not cosines.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoring {
    is_distance: bool,
    query: Vec<f32>,
    norm: f64,
}

impl Scoring {
    /// Creates the scoring by `metric` for `query`, whose length is `norm`; `None` for cosine.
    pub(super) fn new(metric: Metric, query: &[f32], norm: f64) -> Option<Self> {
        let is_distance = match metric {
            Metric::Cosine => return None,
            Metric::Dot => false,
            Metric::L2 => true,
        };
        Some(Self { is_distance, query: query.to_vec(), norm })
    }

    /// Returns the score of a row of length `norm` whose cosine is within `error` of `cosine`, and
    /// the maximum error of the score.
    pub fn bounds(&self, norm: f32, cosine: f32, error: f32) -> (f32, f32) {
        if norm.is_infinite() {
            // Beyond the range of f32: only T2 has the length.
            return (0.0, f32::INFINITY);
        }
        let (n, q) = (f64::from(norm), self.norm);
        let (cosine, error) = (f64::from(cosine), f64::from(error));
        let (score, off) = match self.is_distance {
            false => (n * q * cosine, n * q * (error + ROUNDING) + q * SUBNORMAL),
            true => {
                let off = 2.0 * n * q * error + (n + q) * ((n + q) * ROUNDING + SUBNORMAL);
                (2.0 * n * q * cosine - n * n - q * q, off)
            }
        };
        (in_range(score), (off + SUBNORMAL) as f32)
    }

    /// Returns the minimum cosine at which a row whose length is within `norms` may reach `score`.
    pub fn least_cosine(&self, (shortest, longest): (f32, f32), score: f32) -> f32 {
        if longest.is_infinite() || shortest > longest || score == f32::NEG_INFINITY {
            return f32::NEG_INFINITY;
        }
        let (shortest, longest) = (f64::from(shortest), f64::from(longest));
        let off = self.bounds(longest as f32, 0.0, 0.0).1;
        let score = f64::from(score) - f64::from(off);
        let at = |n: f64| match self.is_distance {
            false => score / (n * self.norm),
            true => (n * n + self.norm * self.norm + score) / (2.0 * n * self.norm),
        };
        // For l2, the cosine as a function of n has its minimum at sqrt(q^2 + score).
        let best = (self.norm * self.norm + score).max(0.0).sqrt().clamp(shortest, longest);
        let least = match self.is_distance {
            false => at(shortest).min(at(longest)),
            true => at(best),
        };
        match least.is_nan() {
            true => f32::NEG_INFINITY,
            false => (least - COSINE_SLACK) as f32,
        }
    }

    /// Computes the score of a row in f64, rounded once and clamped to the range of f32.
    fn exact(&self, row: &[f32]) -> f32 {
        in_range(match self.is_distance {
            false => sum(&self.query, row, |q, x| q * x),
            true => -sum(&self.query, row, |q, x| (q - x) * (q - x)),
        })
    }
}

/// Computes the exact scores of listed rows, which must be in T2.
pub(super) fn exact(
    scoring: &Scoring,
    rows: &VectorRows<'_>,
    listed: &[RowId],
    scores: &mut Vec<f32>,
) {
    let dimension = rows.dimension();
    let mut unit = vec![0.0; dimension];
    for row in listed.iter().map(|row| row.0 as usize) {
        scores.push(match rows.full() {
            FullRows::F32 { values, .. } => scoring.exact(&values[row * dimension..][..dimension]),
            FullRows::F16(_) => {
                rows.unit(row, &mut unit);
                scoring.exact(&unit)
            }
        });
    }
}

impl PreparedQuery {
    /// Returns the score of a row whose cosine is within `error` of `cosine`, and its maximum
    /// error.
    pub fn bounds(&self, rows: &VectorRows<'_>, row: usize, cosine: f32, error: f32) -> (f32, f32) {
        match self.scoring() {
            None => (cosine, error),
            Some(scoring) => scoring.bounds(rows.norm(row), cosine, error),
        }
    }
}

/// Converts a score to its final form: never infinite, never minus zero.
fn in_range(score: f64) -> f32 {
    score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 + 0.0
}

/// Sums a term over the components, in f64.
#[inline(always)]
fn sum(query: &[f32], row: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    let (wide_q, rest_q) = query.as_chunks::<LANES>();
    let (wide_x, rest_x) = row.as_chunks::<LANES>();
    for (q, x) in wide_q.iter().zip(wide_x) {
        for lane in 0..LANES {
            sums[lane] += term(f64::from(q[lane]), f64::from(x[lane]));
        }
    }
    let rest = rest_q.iter().zip(rest_x).map(|(q, x)| term(f64::from(*q), f64::from(*x)));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the score of a row of this length and cosine.
    fn score(metric: Metric, query_norm: f64, norm: f32, cosine: f64) -> f64 {
        let (n, q) = (f64::from(norm), query_norm);
        match metric {
            Metric::L2 => 2.0 * n * q * cosine - n * n - q * q,
            _ => n * q * cosine,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// No row below the minimum cosine reaches the score, whatever its length within the range,
        /// and the bounds for a cosine contain the score.
        #[test]
        fn bounds_and_thresholds_hold(
            metric in prop_oneof![Just(Metric::Dot), Just(Metric::L2)],
            query_norm in prop_oneof![0.001_f64..1000.0, Just(1.0)],
            lengths in [0.0_f32..10.0, 0.0_f32..1000.0],
            share in 0.0_f32..=1.0,
            cosine in -1.0_f64..=1.0,
            wanted in -1e6_f64..1e6,
            error in 0.0_f32..0.2,
        ) {
            let scoring = Scoring::new(metric, &[], query_norm).unwrap();
            let (low, high) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
            let norm = low + share * (high - low);
            let reached = score(metric, query_norm, norm, cosine);
            for wanted in [wanted, reached, 0.0] {
                let least = scoring.least_cosine((low, high), wanted as f32);
                prop_assert!(reached < wanted || cosine >= f64::from(least), "{least}");
            }
            let off_by = f64::from(error) * (2.0 * f64::from(share) - 1.0);
            let (found, off) = scoring.bounds(norm, (cosine + off_by) as f32, error);
            prop_assert!((reached as f32 - found).abs() <= off, "{found} +- {off}");
        }
    }
}
