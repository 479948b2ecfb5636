//! Steps that all backends share, so that their results agree to the last bit.

use crate::{ComputeError, PreparedQuery, Selection, VectorRows};

/// Validates the arguments of a kernel and clears the output. Every backend starts with it.
pub(super) fn begin(
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    selection: Selection<'_>,
    output: &mut Vec<f32>,
) -> Result<(), ComputeError> {
    query.check_rows(rows)?;
    selection.check(rows.len())?;
    output.clear();
    output.reserve(selection.count(rows.len()));
    Ok(())
}

/// Converts a cosine to its final form: clamps rounding errors beyond 1, and makes minus zero zero.
pub(super) fn settled(cosine: f64) -> f32 {
    cosine.clamp(-1.0, 1.0) as f32 + 0.0
}

/// Computes the cosine of a unit vector and any finite row. In f64 the square of an f32 neither
/// overflows nor underflows, so neither do very large and very small rows.
pub(super) fn cosine(unit: &[f32], row: &[f32]) -> f64 {
    let mut dot = 0.0;
    let mut norm_squared = 0.0;
    for (&q, &x) in unit.iter().zip(row) {
        dot += f64::from(q) * f64::from(x);
        norm_squared += f64::from(x) * f64::from(x);
    }
    if norm_squared == 0.0 { 0.0 } else { dot / norm_squared.sqrt() }
}
