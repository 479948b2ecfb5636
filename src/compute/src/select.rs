//! Selects the best k of many scores. Ties go to the lower row; NaN ranks below every number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lodestone_types::{Hit, RowId};

/// A score and its row in one integer that orders by rank: the score's bits, mapped to order like
/// `f32::total_cmp` with all NaNs lowest, above the complement of the row id. Never 0, because
/// there are fewer than 2^32 rows, so the highest id is unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankKey(u64);

impl RankKey {
    /// Creates the key of a scored row.
    #[inline]
    pub fn new(score: f32, row: RowId) -> Self {
        let bits = score.to_bits();
        let ordered = match bits >> 31 {
            _ if score.is_nan() => 0,
            0 => bits | 1 << 31,
            _ => !bits,
        };
        Self(u64::from(ordered) << 32 | u64::from(!row.0))
    }

    /// Creates a key from bits that a device computed by the same rule.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the row.
    #[inline]
    pub fn row(self) -> RowId {
        RowId(!(self.0 as u32))
    }

    /// Returns row and score. NaN becomes minus infinity, so that hits are never NaN.
    pub fn hit(self) -> Hit {
        let ordered = (self.0 >> 32) as u32;
        let score = match ordered >> 31 {
            _ if ordered == 0 => f32::NEG_INFINITY,
            1 => f32::from_bits(ordered & !(1 << 31)),
            _ => f32::from_bits(!ordered),
        };
        Hit { row: self.row(), score }
    }
}

/// Collects the best `k` of a stream of scored rows, in memory for `k` keys.
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    /// Keys of the best rows so far, the worst on top.
    worst_first: BinaryHeap<Reverse<RankKey>>,
    /// A key must exceed this to be kept: the key of the k-th best row or, before k rows were
    /// offered, 0, which is below every key. One comparison rejects most rows.
    key_to_beat: RankKey,
}

impl TopK {
    /// Creates an empty selection of at most `k` rows.
    pub fn new(k: usize) -> Self {
        let key_to_beat = RankKey(if k == 0 { u64::MAX } else { 0 });
        Self { k, worst_first: BinaryHeap::new(), key_to_beat }
    }

    /// Offers a row.
    #[inline]
    pub fn push(&mut self, row: RowId, score: f32) {
        let key = RankKey::new(score, row);
        if key > self.key_to_beat {
            self.keep(key);
        }
    }

    fn keep(&mut self, key: RankKey) {
        if self.worst_first.len() == self.k {
            self.worst_first.pop();
        }
        self.worst_first.push(Reverse(key));
        if self.worst_first.len() == self.k {
            let worst = self.worst_first.peek().expect("k is not 0 where a key was kept");
            self.key_to_beat = worst.0;
        }
    }

    /// Returns the score that a row must reach to be selected, that of the k-th best so far; `None`
    /// if fewer than k rows were offered, so that any score is enough.
    pub fn score_to_reach(&self) -> Option<f32> {
        if self.worst_first.len() < self.k {
            return None;
        }
        self.worst_first.peek().map(|worst| worst.0.hit().score)
    }

    /// Returns the selected rows, best first.
    pub fn into_hits(self) -> Vec<Hit> {
        let ascending_reversed = self.worst_first.into_sorted_vec();
        ascending_reversed.into_iter().map(|key| key.0.hit()).collect()
    }
}

/// Selects the best `k` of `scores`, where row r has score `scores[r]`; best first.
pub fn select_k(scores: &[f32], k: usize) -> Vec<Hit> {
    let mut best = TopK::new(k);
    for (row, &score) in scores.iter().enumerate() {
        best.push(RowId(row as u32), score);
    }
    best.into_hits()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lodestone_types::by_rank;

    /// Few distinct values, so that ties are common.
    fn score() -> impl Strategy<Value = f32> {
        prop_oneof![
            (-3..=3).prop_map(|v| v as f32),
            proptest::num::f32::ANY,
            Just(f32::NAN),
            Just(-f32::NAN),
            Just(f32::NEG_INFINITY),
            Just(-0.0),
        ]
    }

    proptest! {
        #[test]
        fn selection_is_the_head_of_a_sort(
            scores in prop::collection::vec(score(), 0..200),
            k in 0_usize..220,
        ) {
            let mut all: Vec<Hit> = Vec::new();
            for (row, &score) in scores.iter().enumerate() {
                all.push(Hit { row: RowId(row as u32), score });
            }
            all.sort_by(|a, b| {
                a.score.is_nan().cmp(&b.score.is_nan()).then_with(|| {
                    if a.score.is_nan() { a.row.cmp(&b.row) } else { by_rank(a, b) }
                })
            });
            let selected = select_k(&scores, k);
            prop_assert_eq!(selected.len(), k.min(scores.len()));
            for (got, want) in selected.iter().zip(&all) {
                prop_assert_eq!(got.row, want.row);
                let wanted = if want.score.is_nan() { f32::NEG_INFINITY } else { want.score };
                prop_assert_eq!(got.score.to_bits(), wanted.to_bits());
            }
        }
    }

    #[test]
    fn the_score_to_reach_is_known_once_k_rows_are() {
        let mut best = TopK::new(2);
        best.push(RowId(5), 1.0);
        assert_eq!(best.score_to_reach(), None);
        best.push(RowId(3), 2.0);
        assert_eq!(best.score_to_reach(), Some(1.0));
        best.push(RowId(4), 1.0);
        assert_eq!(best.into_hits().iter().map(|hit| hit.row.0).collect::<Vec<_>>(), [3, 4]);
        assert!(TopK::new(0).into_hits().is_empty());
    }
}
