//! The rows that a search through lists looks at, beyond what T0 tells of them.

use lodestone_types::RowId;

/// T1 for one search.
pub trait NearRows {
    /// Whether the row passes the filter.
    fn passes(&self, row: RowId) -> bool;
    /// Makes ready the data that `estimate` will read.
    fn fetch(&self, row: RowId);
    /// Has the system read that data, where they may be on the disk.
    fn read_soon(&self, row: RowId) {
        let _ = row;
    }
    /// The row's score, and how far it may be off.
    fn estimate(&self, row: RowId) -> (f32, f32);
    /// The least cosine at which one of these rows may reach a score: itself, where scores are
    /// cosines.
    fn least_cosine(&self, rows: &[u32], score: f32) -> f32 {
        let _ = rows;
        score
    }
    /// The highest score of a row whose cosine is at most `cosine`.
    fn highest_score(&self, row: RowId, cosine: f32) -> f32 {
        let _ = row;
        cosine
    }
}
