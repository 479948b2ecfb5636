//! The chance that a result is about what was asked for, comparable between queries and
//! collections.
//!
//! A logistic function of the cosine and of the coverage: the share of the query's words, weighed
//! by how rare they are, that the chunk and its title hold. A score within one query only tells
//! results apart; a word of the query that the collection does not hold at all counts against all
//! of them.

/// Constants of both features: a fit by maximum likelihood over cranfield, cacm and xquad (English)
/// together, each with the same weight. Good are the relevant chunks among the first ten, bad the
/// first three results of queries that were asked to another of the three, which weigh ten times
/// as much, because nearly all of a collection is about something else; a quarter steeper than the
/// fit. Of the best results of 904 queries to another collection, the sets scifact and workplace,
/// which the fit had not seen, among them, .96 were below .1 (.99 where the two have no subject in
/// common) and .003 of the latter above .5; of first results of own queries .79 (cacm), .91 and .99
/// (cranfield) were above .5.
const BOTH: [f32; 3] = [-13.7, 23.3, 8.56];
/// Constants of the coverage alone, for a script that the model cannot read and for searches
/// without vectors. Words alone tell less: .95 of the foreign results were below .1, and .27 (cacm)
/// to .78 (xquad) of the first results of own questions above .5.
const WORDS: [f32; 2] = [-10.0, 20.0];

/// The confidence in a result, 0 to 1; without a cosine by words alone.
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
