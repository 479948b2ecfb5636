//! Extent to which a search is exact.

use serde::{Deserialize, Serialize};

use crate::segment::flat::{SearchPath, Tiers};
use crate::segment::lists::{Effort, Recall};
use lodestone_compute::{ErrorBound, PreparedQuery, VectorRows};

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
