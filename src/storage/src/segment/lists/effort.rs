//! Extent of a search through lists.

use serde::{Deserialize, Serialize};

/// Share of the neighbours that a search which leaves lists out is to find, by the measure of the
/// segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Recall {
    /// 97 of 100.
    Quick,
    /// 99 of 100.
    #[default]
    Usual,
}

impl Recall {
    /// The share.
    pub fn share(self) -> f64 {
        match self {
            Self::Quick => 0.97,
            Self::Usual => 0.99,
        }
    }
}

/// Extent of a search through a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Deviations that the bound of T0 allows: the error of an estimate is about normal.
    pub deviations: f32,
    /// Lists in a row without a better row before the search ends; `None` reads every list.
    pub patience: Option<usize>,
}

impl Effort {
    /// Everything that can win, but for one row in 3.5 million.
    pub const EXACT: Self = Self { deviations: 5.0, patience: None };

    /// Everything that is likely to win. Of the neighbours that score just the threshold, one in
    /// 740 is lost to its estimate where all lists are read, one in 160 where most are not: over a
    /// million rows that is one of 3,000 neighbours, and spares a tenth of the time.
    pub fn probing(patience: Option<usize>) -> Self {
        let deviations = if patience.is_some() { 2.5 } else { 3.0 };
        Self { deviations, patience }
    }
}
