//! The final order: score descending, then the newer source, then the chunk id.
//!
//! Scores are first rounded to a grid coarser than float noise. Otherwise two chunks with the same
//! text whose vectors were computed in different batches, and so differ in their last bits, would
//! be ordered by that noise and not by the rule. Rounding to a grid, unlike comparing with a
//! tolerance, keeps the order transitive.

use std::cmp::{Ordering, Reverse};

use lodestone_types::Timestamp;

/// Grid steps between 0 and 1. A step is 16 units in the last place of f32 at 1: more than the
/// difference in practice between two summation orders of a 384-component dot product, and far less
/// than the differences between passages.
const STEPS: f64 = 1e6;

/// Rounds `score` to the grid. Responses must show this value, so that the scores shown never
/// increase down the list. NaN becomes 0.
pub fn settle(score: f32) -> f32 {
    if score.is_nan() {
        return 0.0;
    }
    // Adding zero turns minus zero into zero.
    ((f64::from(score) * STEPS).round() / STEPS) as f32 + 0.0
}

/// The sort key of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankKey<Id> {
    /// Final score; compared on the grid of [`settle`].
    pub score: f32,
    /// When the source was last updated.
    pub updated: Timestamp,
    /// The chunk's id; unique, so that the order is total.
    pub chunk: Id,
}

impl<Id: Ord> RankKey<Id> {
    /// Orders results best first.
    pub fn compare(&self, other: &Self) -> Ordering {
        let by_score = settle(other.score).total_cmp(&settle(self.score));
        let by_time = || Reverse(self.updated).cmp(&Reverse(other.updated));
        by_score.then_with(by_time).then_with(|| self.chunk.cmp(&other.chunk))
    }
}

/// Sorts results, best first.
pub fn sort_by_rank<T, Id: Ord>(results: &mut [T], key: impl Fn(&T) -> RankKey<Id>) {
    results.sort_by(|a, b| key(a).compare(&key(b)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<RankKey<u32>>> {
        // Scores that differ by whole steps, by rounding noise, or not at all.
        let score = (0_u32..4, 0_u32..3)
            .prop_map(|(step, noise)| f32::from_bits((0.5 + 0.1 * step as f32).to_bits() + noise));
        let one = (score, 0_u64..4);
        prop::collection::vec(one, 0..40).prop_map(|pool| {
            let mut keys = Vec::new();
            for (chunk, (score, updated)) in pool.into_iter().enumerate() {
                keys.push(RankKey { score, updated: Timestamp(updated), chunk: chunk as u32 });
            }
            keys
        })
    }

    #[test]
    fn each_rule_decides_in_turn() {
        let key = |score, updated, chunk| RankKey { score, updated: Timestamp(updated), chunk };
        let mut keys = [key(0.5, 1, 'a'), key(0.5, 9, 'c'), key(0.5, 9, 'b'), key(0.6, 0, 'z')];
        sort_by_rank(&mut keys, |key| *key);
        assert_eq!(keys.map(|key| key.chunk), ['z', 'b', 'c', 'a']);
    }

    #[test]
    fn settled_scores_are_plain() {
        assert_eq!(settle(f32::NAN), 0.0);
        assert_eq!(settle(-0.0).to_bits(), 0);
        assert_eq!(settle(1.0), 1.0);
        assert_eq!(settle(0.123_456_78), 0.123_457);
        assert_eq!(settle(settle(0.777_777_7)), settle(0.777_777_7));
    }

    proptest! {
        #[test]
        fn the_order_is_total_and_forgets_rounding_noise(
            keys in keys(),
            seed in any::<u64>(),
        ) {
            let mut sorted = keys.clone();
            sort_by_rank(&mut sorted, |key| *key);
            for pair in sorted.windows(2) {
                prop_assert!(settle(pair[0].score) >= settle(pair[1].score));
                prop_assert_eq!(pair[0].compare(&pair[1]), Ordering::Less);
            }
            // The same results with different noise, in a different order, must come out the same.
            let mut other = keys;
            for key in &mut other {
                key.score = settle(key.score);
            }
            if !other.is_empty() {
                let middle = seed as usize % other.len();
                other.rotate_left(middle);
            }
            sort_by_rank(&mut other, |key| *key);
            let chunks = |keys: &[RankKey<u32>]| keys.iter().map(|k| k.chunk).collect::<Vec<_>>();
            prop_assert_eq!(chunks(&sorted), chunks(&other));
        }
    }
}
