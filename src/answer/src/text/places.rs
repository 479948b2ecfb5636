//! Places that a sentence takes from the one before it: "Helmets are compulsory there."

use unicode_segmentation::UnicodeSegmentation;

use crate::text::words::is_entry;

/// Adverbs that point to a place named before.
const THERE: &str = "there|dort|allí";
/// Words beside the English one where it only introduces its subject: "is there", "there are".
const INTRODUCED: &str = "\
    is|are|was|were|be|been|will|would|can|could|may|might|must|should|shall|has|have|had|isn't|\
    aren't|wasn't|seems|exists|s|it's|that's";
/// Prepositions by which the sentence itself names the place.
const AT: &str = "\
    in|at|on|near|inside|into|to|from|through|behind|beside|where|over|out|up|down|im|am|an|bei|\
    auf|zum|zur|wo|en|donde";

/// Whether a sentence points to a place that it does not name.
pub(crate) fn points_there(text: &str) -> bool {
    let words: Vec<&str> = text.unicode_words().collect();
    let is_beside = |word: Option<&&str>| word.is_some_and(|word| is_entry(INTRODUCED, word));
    let points = |at: usize| {
        at > 0
            && is_entry(THERE, words[at])
            && !is_beside(words.get(at + 1))
            && !is_beside(words.get(at - 1))
            && !words[..at].iter().any(|word| is_entry(AT, word))
    };
    (0..words.len()).any(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: "there" points to a place only as an adverb.
    #[test]
    fn a_place_named_before_is_pointed_to() {
        assert!(points_there("Helmets are compulsory there, new sign."));
        assert!(points_there("Helme sind dort Pflicht."));
        assert!(!points_there("There are helmets."));
        assert!(!points_there("Ask whether there is a helmet."));
        assert!(!points_there("Whoever works in the kiln wears a helmet there."));
    }
}
