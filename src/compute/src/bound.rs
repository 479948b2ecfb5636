//! The maximum difference between an estimate from T1 and the exact score of the same row.
//!
//! Let q and x be the normalised query and row, and q^ and x^ the vectors that their codes decode
//! to. Splitting `q.x - q^.x^ = (q - q^).x + q^.(x - x^)` and applying Cauchy-Schwarz gives
//!
//! ```text
//! |q.x - q^.x^| <= |q - q^| |x| + |q^| |x - x^|        |x| = 1
//! ```
//!
//! that is, `query.residual + query.decoded_norm * row.residual`. Added to it is the error of the
//! exact score itself relative to q.x, with u = 2^-24 the rounding unit of f32 and d the dimension:
//!
//! - the f32 dot product in any order of summation: d u (Higham, Accuracy and Stability of
//!   Numerical Algorithms, 2nd ed., 3.1; its second-order part is below u up to d = 4096)
//! - rounding of the unit query, the norm, the quotient, the estimate, the bound and their sums: at
//!   most 2 u each, together below 16 u
//! - for f16 rows the rounding of x itself: 2^-11 |x|, and 2^-25 per component below f16's normals

use crate::{FullRows, PreparedQuery, VectorRows};

/// Rounding unit of f32, round to nearest.
const F32_UNIT: f32 = 1.0 / (1 << 24) as f32;
/// Rounding unit of f16, round to nearest.
const F16_UNIT: f32 = 1.0 / (1 << 11) as f32;
/// Half the spacing of f16's subnormal numbers.
const F16_SUBNORMAL_HALF_STEP: f32 = 1.0 / (1 << 25) as f32;

/// Number of standard deviations that [`ErrorBound::likely`] allows.
const LIKELY_DEVIATIONS: f32 = 5.0;

/// Bound of |exact score - estimate| for the rows of one segment and one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorBound {
    constant: f32,
    per_residual: f32,
    /// Fraction of the guaranteed bound that is used.
    share: f32,
}

impl ErrorBound {
    /// Returns the guaranteed bound for `query` over `rows`.
    pub fn new(query: &PreparedQuery, rows: &VectorRows<'_>) -> Self {
        let dimension = rows.dimension();
        let constant = query.residual() + Self::stored(rows) + Self::rounding(dimension);
        Self { constant, per_residual: query.decoded_norm(), share: 1.0 }
    }

    /// Returns a bound that holds for all but one row in a few million. The rounding errors of the
    /// codes are independent of the other vector, so their product with it grows like a random walk
    /// over d components: its standard deviation is the guaranteed bound divided by sqrt(d), of
    /// which five are allowed.
    pub fn likely(query: &PreparedQuery, rows: &VectorRows<'_>) -> Self {
        let certain = Self::new(query, rows);
        let dimension = rows.dimension();
        let share = (LIKELY_DEVIATIONS / (dimension as f32).sqrt()).min(1.0);
        let rounding = Self::rounding(dimension);
        Self {
            constant: (certain.constant - rounding) * share + rounding,
            per_residual: certain.per_residual * share,
            share,
        }
    }

    /// Returns an equally certain bound for estimates by codes other than T1's: the query's codes
    /// have the rounding error `lost` and the length `decoded_norm`, and sums have the error
    /// `rounding`.
    pub(super) fn of_codes(&self, lost: f32, decoded_norm: f32, rounding: f32) -> Self {
        let share = self.share;
        Self { constant: lost * share + rounding, per_residual: decoded_norm * share, share }
    }

    /// Returns the bound for a row without residual.
    pub(super) fn constant(&self) -> f32 {
        self.constant
    }

    /// Returns the growth of the bound per unit of residual.
    pub(super) fn per_residual(&self) -> f32 {
        self.per_residual
    }

    /// Returns the bound for a row with this residual.
    pub fn of(&self, residual: f32) -> f32 {
        self.constant + self.per_residual * residual
    }

    /// Returns the maximum length of the difference between a normalised row and its form in T2.
    pub fn stored(rows: &VectorRows<'_>) -> f32 {
        match rows.full() {
            FullRows::F32 { .. } => 0.0,
            FullRows::F16(_) => {
                F16_UNIT + F16_SUBNORMAL_HALF_STEP * (rows.dimension() as f32).sqrt()
            }
        }
    }

    /// Returns the maximum difference between an exact score and the cosine of the stored row in
    /// real arithmetic. Two backends differ by at most twice as much.
    pub fn rounding(dimension: usize) -> f32 {
        (dimension + 16) as f32 * F32_UNIT
    }
}
