//! Things that a question counts, and passages that state their number.

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::question::phrases::COUNTS;
use crate::text::numbers::is_number;
use crate::text::values::year;
use crate::text::words::{is_entry, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// Prepositions that end a noun and the words before it.
pub(super) const PREPOSITIONS: &str =
    "of|for|in|at|on|from|with|between|to|per|during|after|before|by";
/// Maximum number of words in the things counted.
const COUNTED_WORDS_MAX: usize = 3;
/// Words skipped before the things counted.
const BEFORE_COUNTED: &str = "\
    of|the|our|your|my|these|those|them|all|this|der|die|von|unserer|des|de|los|las|nos|nuestros";
/// Verbs that end the things counted: "how many tickets are closed".
const BEHIND_COUNTED: &str = "\
    is|are|was|were|has|have|had|can|may|must|will|stand|stay|remain|ist|sind|hat|haben|est|sont|\
    ont|es|son|están|han";
/// Maximum number of words between a thing counted and its number.
const COUNT_WORDS_MAX: usize = 4;

/// The words of the things that a question counts: "how many lockers", "how many days of leave".
pub(crate) fn counted_words(question: &str) -> Vec<String> {
    let text = spaced(question);
    let behind = COUNTS.split('|').find_map(|words| text.split_once(&format!(" {words} ")));
    let words = behind.map_or("", |(_, behind)| behind).split_whitespace();
    let is_end = |word: &&str| {
        is_interrogative(word)
            || is_entry(BEHIND_COUNTED, word)
            || (*word != "of" && is_entry(PREPOSITIONS, word))
    };
    // "How many of the 2025 rounds", "how many of our lockers".
    let is_before = |word: &&str| is_entry(BEFORE_COUNTED, word) || year(word).is_some();
    let words = words.skip_while(is_before).take_while(|word| !is_end(word));
    words.take(COUNTED_WORDS_MAX).map(str::to_owned).collect()
}

/// The terms of these words.
pub(crate) fn counted_terms(words: &[String]) -> Vec<String> {
    words.iter().flat_map(|word| HybridQuery::analyse(word).terms().to_vec()).collect()
}

/// Whether a passage states a number of things: one of their terms close to a number, or a term in
/// the name of a numeric value.
pub(crate) fn counts(things: &[String], cells: &[Cell], shown: &str) -> bool {
    let is_thing = |word: &str| {
        let word = HybridQuery::analyse(word);
        word.terms().iter().any(|term| things.contains(term))
    };
    let is_number = |word: &str| {
        word.chars().all(|c| c.is_numeric() || matches!(c, '.' | ',')) || is_number(word)
    };
    let stand_near = |text: &str| {
        let all: Vec<&str> = text.unicode_words().collect();
        let near = |at: usize| {
            let from = at.saturating_sub(COUNT_WORDS_MAX);
            all[from..(at + COUNT_WORDS_MAX + 1).min(all.len())].iter().any(|word| is_number(word))
        };
        (0..all.len()).any(|at| is_thing(all[at]) && near(at))
    };
    match cells {
        [] => stand_near(shown),
        cells => cells.iter().any(|cell| {
            let is_named = cell.name.unicode_words().any(is_thing);
            stand_near(&cell.value)
                || (is_named && cell.value.starts_with(|c: char| c.is_ascii_digit()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(question: &str) -> Vec<String> {
        counted_terms(&counted_words(question))
    }

    #[test]
    fn what_is_counted_stands_beside_a_number() {
        let noun = counted("How many lockers does the hall have?");
        assert!(counts(&noun, &[], "The hall has 64 blue lockers."));
        assert!(counts(&noun, &[], "There are twelve lockers."));
        assert!(!counts(
            &noun,
            &[],
            "Lockers are opened with the key that reception gave you on level 2."
        ));
        let cell = |name: &str, value: &str| Cell { name: name.into(), value: value.into() };
        assert!(counts(&noun, &[cell("hall", "North"), cell("lockers", "64")], ""));
        assert!(!counts(&noun, &[cell("key", "K-07"), cell("opens", "Locker flaps")], ""));
        assert!(counted("How much is it?").is_empty());
        assert!(counts(&counted("How many vacation days do I have?"), &[], "You have 28 days."));
    }
}
