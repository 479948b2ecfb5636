//! Scored rows and the order of results.

use std::cmp::Ordering;

use crate::RowId;

/// A row of one segment and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The row.
    pub row: RowId,
    /// Its score; higher is better; never NaN.
    pub score: f32,
}

/// Orders hits best first. Equal scores are ordered by ascending row, so the result does not depend
/// on the compute backend.
pub fn by_rank(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.row.cmp(&b.row))
}
