//! Steps that all backends share, so that they agree to the last bit.

use crate::{ComputeError, PreparedQuery, Selection, VectorRows};

/// Refuses what no kernel may see, and empties the output. Every backend begins with it.
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

/// A cosine as it leaves the core: rounding past 1 is cut off, minus zero becomes zero.
pub(super) fn settled(cosine: f64) -> f32 {
    cosine.clamp(-1.0, 1.0) as f32 + 0.0
}

/// Cosine of a unit vector and any finite row. f64 holds the square of every f32, so neither the
/// largest nor the smallest rows overflow or vanish.
pub(super) fn cosine(unit: &[f32], row: &[f32]) -> f64 {
    let mut dot = 0.0;
    let mut norm_squared = 0.0;
    for (&q, &x) in unit.iter().zip(row) {
        dot += f64::from(q) * f64::from(x);
        norm_squared += f64::from(x) * f64::from(x);
    }
    if norm_squared == 0.0 { 0.0 } else { dot / norm_squared.sqrt() }
}
