//! A query vector, validated, normalised and quantised once for all segments that it visits.

use crate::quantize::{checked_norm, encode_row, rounded_up};
use crate::scoring::Scoring;
use crate::{ComputeError, VectorRows};
use lodestone_types::Metric;

/// A query in the forms that the tiers need.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedQuery {
    given: Vec<f32>,
    metric: Metric,
    unit: Vec<f32>,
    codes: Vec<i8>,
    scale: f32,
    residual: f32,
    decoded_norm: f32,
    is_zero: bool,
    scoring: Option<Scoring>,
}

impl PreparedQuery {
    /// Prepares `vector` for scores by cosine. It need not be normalised; a zero vector scores 0
    /// with every row.
    ///
    /// # Errors
    /// [`ComputeError::DimensionOutOfRange`], or [`ComputeError::NotFinite`] for NaN and infinity.
    pub fn new(vector: &[f32]) -> Result<Self, ComputeError> {
        Self::by(Metric::Cosine, vector)
    }

    /// Prepares `vector` for scores by a metric.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn by(metric: Metric, vector: &[f32]) -> Result<Self, ComputeError> {
        let norm = checked_norm(vector)?;
        let is_zero = norm == 0.0;
        let divisor = if is_zero { 1.0 } else { norm };
        let unit = vector.iter().map(|&value| (f64::from(value) / divisor) as f32).collect();
        let mut codes = Vec::new();
        let factors = encode_row(vector, &mut codes)?;
        let squares: i64 = codes.iter().map(|&code| i64::from(code).pow(2)).sum();
        let decoded_norm = rounded_up((squares as f64).sqrt() * f64::from(factors.scale));
        let (scale, residual) = (factors.scale, factors.residual);
        let scoring = Scoring::new(metric, vector, norm);
        let given = vector.to_vec();
        Ok(Self { given, metric, unit, codes, scale, residual, decoded_norm, is_zero, scoring })
    }

    /// Returns the original vector and metric, from which another machine can prepare an equal
    /// query.
    pub fn given(&self) -> (Metric, &[f32]) {
        (self.metric, &self.given)
    }

    /// Returns the number of components of the query.
    pub fn dimension(&self) -> usize {
        self.unit.len()
    }

    /// Whether every component is zero.
    pub fn is_zero(&self) -> bool {
        self.is_zero
    }

    /// Returns the scoring, unless scores are cosines.
    pub fn scoring(&self) -> Option<&Scoring> {
        self.scoring.as_ref()
    }

    /// Returns the normalised query: `dimension` values.
    pub fn unit(&self) -> &[f32] {
        &self.unit
    }

    /// Returns the codes of the normalised query, padded like the rows.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// Returns the scale: code times scale is a component of the normalised query.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Returns an upper bound of the length of (normalised query minus decoded query).
    pub fn residual(&self) -> f32 {
        self.residual
    }

    /// Returns an upper bound of the length of the decoded query.
    pub fn decoded_norm(&self) -> f32 {
        self.decoded_norm
    }

    /// Refuses rows of another dimension.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`].
    pub fn check_rows(&self, rows: &VectorRows<'_>) -> Result<(), ComputeError> {
        let (expected, received) = (rows.dimension(), self.dimension());
        if expected != received {
            return Err(ComputeError::DimensionMismatch { expected, received });
        }
        Ok(())
    }
}
