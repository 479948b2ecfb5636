//! The weight of a source's age (API 5.7).
//!
//! ```text
//! score = relevance (1 - b + b r)       r = 1 - 0.9 rank / (last rank)
//! ```
//!
//! The rank counts distinct times of the pool from the newest, 0. Ranks and not ages, so that one
//! very old source does not flatten the difference between all the others.

use lodestone_types::Timestamp;

/// The factor r of the oldest source of a pool of several.
const OLDEST: f64 = 0.1;

/// Weighs `relevance[i]` by the age of its source, last updated at `updated[i]`.
///
/// `bias` is 0 (no change at all) to 1 (cut to that; NaN counts as 0). Relevance must not be
/// negative; the factor is at most 1, so that age lifts nothing.
///
/// # Panics
/// If the two slices differ in length.
pub fn apply_recency(relevance: &mut [f32], updated: &[Timestamp], bias: f32) {
    assert_eq!(relevance.len(), updated.len(), "every score has the time of its source");
    let bias = if bias.is_nan() { 0.0 } else { f64::from(bias).clamp(0.0, 1.0) };
    let mut times = updated.to_vec();
    times.sort_unstable();
    times.dedup();
    // One time alone is the newest: nothing is weighed down.
    if bias == 0.0 || times.len() < 2 {
        return;
    }
    let last_rank = times.len() - 1;
    for (score, time) in relevance.iter_mut().zip(updated) {
        debug_assert!(*score >= 0.0, "relevance is not negative");
        let position = times.binary_search(time).expect("times holds every time of the pool");
        let age = (last_rank - position) as f64 / last_rank as f64;
        let recency = 1.0 - (1.0 - OLDEST) * age;
        *score = (f64::from(*score) * (1.0 - bias + bias * recency)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few distinct times, so that ties are common.
    fn pool() -> impl Strategy<Value = (Vec<f32>, Vec<Timestamp>)> {
        let one = (0.0_f32..=1.0, (0_u64..12).prop_map(Timestamp));
        prop::collection::vec(one, 0..40).prop_map(|pool| pool.into_iter().unzip())
    }

    #[test]
    fn the_factor_falls_linearly_from_1_to_a_tenth() {
        let times = [10, 40, 40, 20].map(Timestamp);
        let mut scores = [1.0; 4];
        apply_recency(&mut scores, &times, 1.0);
        assert_eq!(scores, [0.1, 1.0, 1.0, 0.55]);
        let mut scores = [1.0; 4];
        apply_recency(&mut scores, &times, 0.5);
        assert_eq!(scores, [0.55, 1.0, 1.0, 0.775]);
    }

    proptest! {
        #[test]
        fn without_bias_nothing_changes((relevance, updated) in pool()) {
            let mut scores = relevance.clone();
            apply_recency(&mut scores, &updated, 0.0);
            prop_assert_eq!(scores, relevance);
        }

        #[test]
        fn nothing_is_lifted_and_nothing_leaves_its_range(
            (relevance, updated) in pool(),
            bias in 0.0_f32..=1.0,
        ) {
            let mut scores = relevance.clone();
            apply_recency(&mut scores, &updated, bias);
            for (score, relevance) in scores.iter().zip(&relevance) {
                prop_assert!(score <= relevance && *score >= relevance * 0.0999);
            }
        }

        #[test]
        fn of_equal_relevance_the_newer_wins(
            (_, updated) in pool(),
            relevance in 0.01_f32..=1.0,
            bias in 0.01_f32..=1.0,
        ) {
            let mut scores = vec![relevance; updated.len()];
            apply_recency(&mut scores, &updated, bias);
            for (a, time_a) in scores.iter().zip(&updated) {
                for (b, time_b) in scores.iter().zip(&updated) {
                    prop_assert_eq!(a.total_cmp(b), time_a.cmp(time_b));
                }
            }
        }
    }
}
