//! The largest difference between an estimate from T1 and the exact score of the same row.
//!
//! Let q and x be the normalised query and row, q^ and x^ what their codes decode to. Splitting
//! `q.x - q^.x^ = (q - q^).x + q^.(x - x^)` and Cauchy-Schwarz give
//!
//! ```text
//! |q.x - q^.x^| <= |q - q^| |x| + |q^| |x - x^|        |x| = 1
//! ```
//!
//! that is `query.residual + query.decoded_norm * row.residual`. To this comes what the exact
//! score itself loses against q.x, with u = 2^-24 the rounding unit of f32 and d the dimension:
//!
//! - the f32 dot product in any order of summation: d u (Higham, Accuracy and Stability of
//!   Numerical Algorithms, 2nd ed., 3.1; its second-order part is below u up to d = 4096)
//! - rounding of the unit query, the norm, the quotient, the estimate, the bound and their sums:
//!   each at most 2 u, together below 16 u
//! - for f16 rows the rounding of x itself: 2^-11 |x|, and 2^-25 a component below f16's normals

use crate::{FullRows, PreparedQuery, VectorRows};

/// Rounding unit of f32, to nearest.
const F32_UNIT: f32 = 1.0 / (1 << 24) as f32;
/// Rounding unit of f16, to nearest.
const F16_UNIT: f32 = 1.0 / (1 << 11) as f32;
/// Half the distance of f16's subnormal numbers.
const F16_SUBNORMAL_HALF_STEP: f32 = 1.0 / (1 << 25) as f32;

/// Deviations of [`ErrorBound::likely`].
const LIKELY_DEVIATIONS: f32 = 5.0;

/// Bound of |exact score - estimate| for the rows of one segment and one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorBound {
    constant: f32,
    per_residual: f32,
    /// Share of the certain bound that is used.
    share: f32,
}

impl ErrorBound {
    /// The bound for `query` over `rows`.
    pub fn new(query: &PreparedQuery, rows: &VectorRows<'_>) -> Self {
        let dimension = rows.dimension();
        let constant = query.residual() + Self::stored(rows) + Self::rounding(dimension);
        Self { constant, per_residual: query.decoded_norm(), share: 1.0 }
    }

    /// A bound that holds for all but one row in a few million. The codes' rounding errors do not
    /// know the other vector: their product with it adds up like a random walk over d components,
    /// so that its deviation is the certain bound over sqrt(d); five of them are allowed.
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

    /// A bound as certain as this one, of estimates by other codes than T1's: those of the query
    /// lose `lost` and have the length `decoded_norm`, and sums lose `rounding`.
    pub(super) fn of_codes(&self, lost: f32, decoded_norm: f32, rounding: f32) -> Self {
        let share = self.share;
        Self { constant: lost * share + rounding, per_residual: decoded_norm * share, share }
    }

    /// The bound for a row without residual.
    pub(super) fn constant(&self) -> f32 {
        self.constant
    }

    /// Growth of the bound per unit of residual.
    pub(super) fn per_residual(&self) -> f32 {
        self.per_residual
    }

    /// The bound for a row with this residual.
    pub fn of(&self, residual: f32) -> f32 {
        self.constant + self.per_residual * residual
    }

    /// Largest length of the difference of a normalised row from what T2 holds of it.
    pub fn stored(rows: &VectorRows<'_>) -> f32 {
        match rows.full() {
            FullRows::F32 { .. } => 0.0,
            FullRows::F16(_) => {
                F16_UNIT + F16_SUBNORMAL_HALF_STEP * (rows.dimension() as f32).sqrt()
            }
        }
    }

    /// Largest difference of an exact score from the cosine of the stored row in real arithmetic;
    /// two backends differ by twice as much at most.
    pub fn rounding(dimension: usize) -> f32 {
        (dimension + 16) as f32 * F32_UNIT
    }
}
