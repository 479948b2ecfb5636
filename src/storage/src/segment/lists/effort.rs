//! Limits on the work of a search through lists.

use serde::{Deserialize, Serialize};

/// Share of the true neighbours that a search which skips lists should find, according to the trial
/// searches made when the segment was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Recall {
    /// Finds about 97 of 100 neighbours.
    Quick,
    /// Finds about 99 of 100 neighbours.
    #[default]
    Usual,
}

impl Recall {
    /// The share as a number from 0 to 1.
    pub fn share(self) -> f64 {
        match self {
            Self::Quick => 0.97,
            Self::Usual => 0.99,
        }
    }
}

/// Limits on the work of a search through a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Standard deviations that the bound of T0 allows for; the error of an estimate is roughly
    /// normal.
    pub deviations: f32,
    /// Consecutive lists without a better row at which the search stops; `None` reads every list.
    pub patience: Option<usize>,
}

impl Effort {
    /// Keeps everything that can win, except one row in 3.5 million.
    pub const EXACT: Self = Self { deviations: 5.0, patience: None };

    /// Keeps everything that is likely to win. Of the neighbours whose score is exactly the
    /// threshold, one in 740 is lost to its estimate if all lists are read, one in 160 if most are
    /// not: over a million rows that is one of 3,000 neighbours, and it saves a tenth of the time.
    pub fn probing(patience: Option<usize>) -> Self {
        let deviations = if patience.is_some() { 2.5 } else { 3.0 };
        Self { deviations, patience }
    }
}
