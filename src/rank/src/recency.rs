//! Weighting of results by the age of their source.
//!
//! ```text
//! score = relevance (1 - .4 b a) (1 - .1 max(0, b - .5))       a = days / (days + 180)
//! ```
//!
//! Days are counted back from the newest source that is about as relevant as the best one, so
//! neither the clock nor a newer source about something else has an influence; sources at least
//! that new have age 0. With the first factor, years matter and minutes do not. The second factor
//! is the same for everything older: it puts the newest source ahead of others whose relevance is
//! higher by up to a few hundredths, such as a copy stored a second earlier. The consequences,
//! tested below:
//!
//! - Nothing loses more than .4 b to the first factor: at a bias of .5 no age outweighs a fifth of
//!   the relevance.
//! - A year costs .27 b, a month .06 b, an hour .0001 b.

use lodestone_types::Timestamp;

/// Maximum loss by age at a bias of 1. At .5 the loss is a fifth, the distance at which a result
/// counts as clearly less relevant: a passage about something else has half the relevance of the
/// best (cosine 0 against about .7, see `fusion`), another passage on the subject some nine tenths.
const MOST: f64 = 0.4;
/// Fraction of the best relevance from which on a source counts as about as relevant; the same
/// distance.
const CONTENDS: f64 = 0.8;
/// Age in days at which half of [`MOST`] is lost: half a year, so that a year has a clear effect
/// and the weeks between two uploads hardly any.
const HALF_DAYS: f64 = 180.0;
/// Advantage of the newest, as a factor of the bias in excess of [`LEADS_FROM`].
const LEAD: f64 = 0.1;
const LEADS_FROM: f64 = 0.5;
const DAY_MILLIS: f64 = 86_400_000.0;

/// Weights `relevance[i]` by the age of its source, dated `updated[i]`.
///
/// `bias` ranges from 0 (no change at all) to 1; it is clamped, and NaN counts as 0. Relevance must
/// not be negative. The factor is at most 1, so nothing is raised.
///
/// # Panics
/// If the slices differ in length.
pub fn apply_recency(relevance: &mut [f32], updated: &[Timestamp], bias: f32) {
    assert_eq!(relevance.len(), updated.len(), "every score has the time of its source");
    let bias = if bias.is_nan() { 0.0 } else { f64::from(bias).clamp(0.0, 1.0) };
    if bias == 0.0 {
        return;
    }
    let best = relevance.iter().copied().fold(0.0, f32::max);
    let contends = |score: f32| f64::from(score) >= CONTENDS * f64::from(best);
    let contenders = relevance.iter().zip(updated).filter(|(score, _)| contends(**score));
    let Some(newest) = contenders.map(|(_, time)| *time).max() else { return };
    let lead = LEAD * (bias - LEADS_FROM).max(0.0);
    for (score, time) in relevance.iter_mut().zip(updated) {
        debug_assert!(*score >= 0.0, "relevance is not negative");
        if *time >= newest {
            continue;
        }
        let days = (newest.0 - time.0) as f64 / DAY_MILLIS;
        let age = days / (days + HALF_DAYS);
        *score = (f64::from(*score) * (1.0 - MOST * bias * age) * (1.0 - lead)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86_400_000;
    const NOW: Timestamp = Timestamp(20_000 * DAY);

    /// A few distinct ages from milliseconds to decades, so that ties are common.
    fn pool() -> impl Strategy<Value = (Vec<f32>, Vec<Timestamp>)> {
        let age = prop_oneof![0_u64..3, 0..3 * DAY, (0_u64..20).prop_map(|n| n * 365 * DAY)];
        let one = (0.0_f32..=1.0, age.prop_map(|age| Timestamp(NOW.0 - age)));
        prop::collection::vec(one, 0..40).prop_map(|pool| pool.into_iter().unzip())
    }

    fn weighed(relevance: &[f32], updated: &[Timestamp], bias: f32) -> Vec<f32> {
        let mut scores = relevance.to_vec();
        apply_recency(&mut scores, updated, bias);
        scores
    }

    #[test]
    fn the_formula_on_paper() {
        let times = [0, 180, 360, 0].map(|days| Timestamp(NOW.0 - days * DAY));
        let scores = weighed(&[0.9, 1.0, 0.9, 0.1], &times, 0.5);
        let expected = [0.9, 1.0 - 0.2 / 2.0, 0.9 * (1.0 - 0.2 * 2.0 / 3.0), 0.1];
        assert_eq!(scores, expected.map(|score: f64| score as f32));
        let scores = weighed(&[1.0, 1.0], &times[..2], 1.0);
        assert_eq!(scores, [1.0, (0.8 * 0.95) as f32]);
    }

    #[test]
    fn a_year_matters_at_three_tenths() {
        for newest in [0, 10] {
            // Results off the subject do not set the reference date: the copies from ten years ago
            // differ too.
            let years = |years: u64| Timestamp(NOW.0 - years * 365 * DAY);
            let times = [years(newest), years(newest + 1), years(0)];
            let scores = weighed(&[0.95, 1.0, 0.5], &times, 0.3);
            assert!(scores[0] > scores[1] + 0.02 && scores[2] == 0.5, "{scores:?}");
        }
    }

    proptest! {
        #[test]
        fn without_bias_nothing_changes((relevance, updated) in pool()) {
            prop_assert_eq!(weighed(&relevance, &updated, 0.0), relevance);
        }

        #[test]
        fn nothing_is_lifted_and_nothing_leaves_its_range(
            (relevance, updated) in pool(),
            bias in 0.0_f32..=1.0,
        ) {
            let scores = weighed(&relevance, &updated, bias);
            for (score, relevance) in scores.iter().zip(&relevance) {
                prop_assert!(score <= relevance && *score >= relevance * 0.569);
            }
        }

        #[test]
        fn up_to_one_half_nothing_overtakes_what_is_clearly_more_relevant(
            (relevance, updated) in pool(),
            bias in 0.0_f32..=0.5,
        ) {
            let scores = weighed(&relevance, &updated, bias);
            for (one, score) in relevance.iter().zip(&scores) {
                for (other, other_score) in relevance.iter().zip(&scores) {
                    prop_assert!(*other > 0.799 * one || other_score <= score);
                }
            }
        }

        #[test]
        fn minutes_do_not_matter(
            relevance in prop::collection::vec(0.0_f32..=1.0, 1..40),
            minutes in prop::collection::vec(0_u64..60, 40),
            bias in 0.0_f32..=1.0,
        ) {
            let time = |minutes: &u64| Timestamp(NOW.0 - minutes * 60_000);
            let updated: Vec<Timestamp> = minutes.iter().take(relevance.len()).map(time).collect();
            let scores = weighed(&relevance, &updated, bias);
            let lead = 0.1 * (bias - 0.5).max(0.0);
            for (one, score) in relevance.iter().zip(&scores) {
                prop_assert!(*score >= one * (1.0 - lead - 0.0002), "{} of {}", score, one);
            }
        }

        #[test]
        fn copies_a_second_apart_come_newest_first(
            relevance in 0.01_f32..=1.0,
            difference in 0.0_f32..0.009,
            bias in 0.6_f32..=1.0,
        ) {
            // The older one is a little more relevant: its title says more.
            let scores = [relevance * (1.0 - difference), relevance];
            let times = [NOW, Timestamp(NOW.0 - 1_000)];
            let scores = weighed(&scores, &times, bias);
            prop_assert!(scores[0] > scores[1], "{:?}", scores);
        }

        #[test]
        fn of_equal_relevance_the_newer_is_never_behind(
            (_, updated) in pool(),
            relevance in 0.01_f32..=1.0,
            bias in 0.1_f32..=1.0,
        ) {
            let scores = weighed(&vec![relevance; updated.len()], &updated, bias);
            for (a, time_a) in scores.iter().zip(&updated) {
                for (b, time_b) in scores.iter().zip(&updated) {
                    prop_assert!(time_a < time_b || a >= b);
                    // Even the twentieth year makes a difference on the grid of final scores.
                    prop_assert!(time_a.0 < time_b.0 + 300 * DAY || *a > b * 1.00001);
                }
            }
        }

        #[test]
        fn at_one_the_newest_leads_whatever_is_about_as_relevant(
            others in prop::collection::vec((0.0_f32..=1.0, 1_u64..20), 0..40),
        ) {
            let years = |years: u64| Timestamp(NOW.0 - years * 365 * DAY);
            let relevance: Vec<f32> =
                std::iter::once(0.8).chain(others.iter().map(|(score, _)| *score)).collect();
            let updated: Vec<Timestamp> =
                std::iter::once(NOW).chain(others.iter().map(|(_, age)| years(*age))).collect();
            let scores = weighed(&relevance, &updated, 1.0);
            prop_assert!(scores[1..].iter().all(|score| *score < scores[0]), "{:?}", scores);
        }
    }
}
