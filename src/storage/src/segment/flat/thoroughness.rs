//! Thoroughness: the exactness of a search and the effort that follows from it.

use serde::{Deserialize, Serialize};

use crate::segment::flat::{SearchPath, Tiers};
use crate::segment::lists::{Effort, Recall};
use lodestone_compute::{ErrorBound, PreparedQuery, VectorRows};

/// Share of the true neighbours that a search may miss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Thoroughness {
    /// Misses none.
    Exact,
    /// May miss the share that the recall allows, if this avoids reading most rows.
    Probing(Recall),
    /// Parameters set by the caller, for segments with lists. For measurements.
    Tuned {
        /// Consecutive lists without a better row at which the search stops.
        patience: usize,
        /// Standard deviations that the bound of T0 allows for.
        deviations: f32,
    },
}

impl Default for Thoroughness {
    fn default() -> Self {
        Self::Probing(Recall::default())
    }
}

impl Thoroughness {
    /// Error bound of an estimate from T1.
    pub(super) fn bound(self, query: &PreparedQuery, rows: &VectorRows<'_>) -> ErrorBound {
        match self {
            Self::Exact => ErrorBound::new(query, rows),
            Self::Probing(_) | Self::Tuned { .. } => ErrorBound::likely(query, rows),
        }
    }

    /// The effort of a search through the lists.
    pub(super) fn effort(self, tiers: &Tiers<'_>, path: SearchPath, k: usize) -> Effort {
        let Some((lists, _)) = &tiers.listed else { return Effort::EXACT };
        let is_probing = path == SearchPath::Lists;
        match self {
            Self::Exact => Effort::EXACT,
            Self::Probing(recall) => Effort::probing(is_probing.then(|| lists.patience(k, recall))),
            Self::Tuned { patience, deviations } => {
                Effort { deviations, patience: is_probing.then_some(patience) }
            }
        }
    }
}
