//! The probability that a result is about the subject of the query, comparable across queries and
//! collections.
//!
//! A logistic function of the cosine and the coverage: the fraction of the query's words, weighted
//! by rarity, that occur in the chunk or its title. Scores within one query only tell its results
//! apart; a query word that is absent from the collection counts against all of them.

/// Intercept and weights of both features: a maximum-likelihood fit over cranfield, cacm and xquad
/// (English) together, with equal weight. Positives are the relevant chunks among the first ten;
/// negatives are the first three results of queries taken from another of the three collections,
/// weighted ten times as much because nearly all of a collection is about something else; the slope
/// is a quarter steeper than the fit. For 904 queries run against another collection, including
/// scifact and workplace, which were not part of the fit, .96 of the best results were below .1
/// (.99 where the two collections share no subject), and .003 of the latter above .5; for queries
/// against their own collection, .79 (cacm), .91 and .99 (cranfield) of the first results were
/// above .5.
const BOTH: [f32; 3] = [-13.7, 23.3, 8.56];
/// Intercept and weight of the coverage alone, for scripts that the model cannot read and for
/// searches without vectors. Words alone are weaker evidence: .95 of the foreign results were below
/// .1, and .27 (cacm) to .78 (xquad) of the first results for own queries above .5.
const WORDS: [f32; 2] = [-10.0, 20.0];

/// The confidence in a result, 0 to 1; judged by coverage alone if there is no cosine.
pub fn confidence(cosine: Option<f32>, coverage: f32) -> f32 {
    let evidence = match cosine {
        Some(cosine) => BOTH[0] + BOTH[1] * cosine + BOTH[2] * coverage,
        None => WORDS[0] + WORDS[1] * coverage,
    };
    let chance = 1.0 / (1.0 + (-evidence).exp());
    if chance.is_finite() { chance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_either_gives_more_confidence() {
        let grid = [0.0, 0.25, 0.5, 0.75, 1.0];
        for pair in grid.windows(2) {
            for other in grid {
                assert!(confidence(Some(pair[0]), other) < confidence(Some(pair[1]), other));
                assert!(confidence(Some(other), pair[0]) < confidence(Some(other), pair[1]));
            }
            assert!(confidence(None, pair[0]) < confidence(None, pair[1]));
        }
    }

    #[test]
    fn what_is_about_something_else_is_near_zero() {
        assert!(confidence(Some(0.15), 0.1) < 0.1);
        assert!(confidence(None, 0.2) < 0.1);
        assert!(confidence(Some(0.7), 0.6) > 0.5);
        assert!(confidence(None, 0.95) > 0.5);
        assert_eq!(confidence(Some(f32::NAN), 0.5), 0.0);
    }
}
