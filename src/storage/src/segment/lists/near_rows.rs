//! Access to the rows that a search through lists examines after T0.

use lodestone_types::RowId;

/// T1 as seen by one search.
pub trait NearRows {
    /// Whether the row passes the filter.
    fn passes(&self, row: RowId) -> bool;
    /// Whether rows may not pass.
    fn is_filtered(&self) -> bool {
        false
    }
    /// Prefetches the data that `estimate` will read.
    fn fetch(&self, row: RowId);
    /// Asks the operating system to read that data ahead, as it may be on disk.
    fn read_soon(&self, row: RowId) {
        let _ = row;
    }
    /// The row's estimated score, and the error bound of that estimate.
    fn estimate(&self, row: RowId) -> (f32, f32);
    /// The least cosine at which one of these rows may reach `score`; equals `score` if scores are
    /// cosines.
    fn least_cosine(&self, rows: &[u32], score: f32) -> f32 {
        let _ = rows;
        score
    }
    /// The highest score possible for a row whose cosine is at most `cosine`.
    fn highest_score(&self, row: RowId, cosine: f32) -> f32 {
        let _ = row;
        cosine
    }
}
