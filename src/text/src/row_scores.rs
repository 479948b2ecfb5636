//! Rows and their scores.

use roaring::RoaringBitmap;

use lodestone_types::{Hit, RowId, by_rank};

/// Scores of the matching rows of one segment.
#[derive(Debug, Clone, Default)]
pub struct RowScores {
    /// In ascending order of rows.
    pub(super) hits: Vec<Hit>,
}

impl RowScores {
    /// Number of matching rows.
    pub fn count(&self) -> u64 {
        self.hits.len() as u64
    }

    /// Drops the rows for which `keep`, called in ascending order, returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(RowId) -> bool) {
        self.hits.retain(|hit| keep(hit.row));
    }

    /// Returns the matching rows with their scores, in ascending order of rows.
    pub fn into_hits(self) -> Vec<Hit> {
        self.hits
    }

    /// The rows with scores of at least `least`, in ascending order of rows.
    pub fn from(&self, least: f32) -> Vec<Hit> {
        self.hits.iter().filter(|hit| hit.score >= least).copied().collect()
    }

    /// Drops the rows with scores below `least`.
    pub fn retain_from(&mut self, least: f32) {
        self.hits.retain(|hit| hit.score >= least);
    }

    /// The matching rows.
    pub fn rows(&self) -> RoaringBitmap {
        let rows = self.hits.iter().map(|hit| hit.row.0);
        RoaringBitmap::from_sorted_iter(rows).expect("hits ascend by row")
    }

    /// Returns the best `k` rows, best first; ties are broken by ascending row.
    pub fn top(&self, k: usize) -> Vec<Hit> {
        if k == 0 {
            return Vec::new();
        }
        let capacity = (2 * k).max(64);
        let mut hits: Vec<Hit> = Vec::with_capacity(capacity.min(self.hits.len()));
        // A row that merely equals the last of the best ranks after it.
        let mut bound = 0.0;
        for hit in &self.hits {
            if hit.score <= bound {
                continue;
            }
            hits.push(*hit);
            if hits.len() == capacity {
                hits.select_nth_unstable_by(k - 1, by_rank);
                hits.truncate(k);
                bound = hits[k - 1].score;
            }
        }
        hits.sort_unstable_by(by_rank);
        hits.truncate(k);
        hits
    }

    /// The score of a row; 0 if it does not match.
    pub fn get(&self, row: RowId) -> f32 {
        let found = self.hits.binary_search_by_key(&row, |hit| hit.row);
        found.map_or(0.0, |at| self.hits[at].score)
    }
}
