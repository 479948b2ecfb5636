//! Extent to which a search is exact.

use serde::{Deserialize, Serialize};

use crate::segment::flat::{RowFilter, SearchPath, Tiers, passing_rows};
use crate::segment::lists::{Effort, Recall};
use lodestone_compute::{ErrorBound, PreparedQuery, VectorRows};

/// Power of the rows for each passing one by which patience grows: where fewer rows of a list pass,
/// fewer lists bring a better one. For the same recall 200,000 real passages took 1.2 times the
/// patience with half of them passing and 1.4 times with a fifth.
const RARER: f64 = 0.2;

/// Share of the neighbours that a search may miss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Thoroughness {
    /// Nothing.
    Exact,
    /// The share that the recall leaves, if most rows then need not be read.
    Probing(Recall),
    /// Parameters of the caller, for segments with lists. For measurements.
    Tuned {
        /// Lists in a row without a better row before the search ends.
        patience: usize,
        /// Deviations that the bound of T0 allows.
        deviations: f32,
    },
}

impl Default for Thoroughness {
    fn default() -> Self {
        Self::Probing(Recall::default())
    }
}

impl Thoroughness {
    /// Bound of the error of an estimate from T1.
    pub(super) fn bound(self, query: &PreparedQuery, rows: &VectorRows<'_>) -> ErrorBound {
        match self {
            Self::Exact => ErrorBound::new(query, rows),
            Self::Probing(_) | Self::Tuned { .. } => ErrorBound::likely(query, rows),
        }
    }

    /// The effort of a search through the lists.
    pub(super) fn effort(
        self,
        tiers: &Tiers<'_>,
        path: SearchPath,
        filter: Option<&RowFilter<'_>>,
        k: usize,
    ) -> Effort {
        let Some((lists, _)) = &tiers.listed else { return Effort::EXACT };
        let passing = passing_rows(&tiers.rows, filter).max(1) as f64;
        let rarer = (tiers.rows.len() as f64 / passing).powf(RARER);
        let is_probing = path == SearchPath::Lists;
        match self {
            Self::Exact => Effort::EXACT,
            Self::Probing(recall) => {
                let patience = || (lists.patience(k, recall) as f64 * rarer).ceil() as usize;
                Effort::probing(is_probing.then(patience))
            }
            Self::Tuned { patience, deviations } => {
                Effort { deviations, patience: is_probing.then_some(patience) }
            }
        }
    }
}
