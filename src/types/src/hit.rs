//! Scored rows and the order of results.

use std::cmp::Ordering;

use crate::RowId;

/// A row of one segment with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The row.
    pub row: RowId,
    /// Its score; higher is better; never NaN.
    pub score: f32,
}

/// Best first; equal scores by ascending row, so that the order never depends on the backend.
pub fn by_rank(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.row.cmp(&b.row))
}
