//! Reasons against an answer: the question names what the passage and its text do not hold, or asks
//! for a kind of thing that is not there.
//!
//! Question and passage are read together. A name, a code or a year of the question is met where
//! the passage, its headings, its chunk or the title of its source holds it; one that stands
//! nowhere there makes the passage one about something else. In questions in English alone, for
//! other languages capitalise more than names.

use std::collections::BTreeMap;

use unicode_segmentation::UnicodeSegmentation;

use crate::answer::words::{Asked, contains, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// Words that make a question one in English.
const ENGLISH: &str =
    "the|of|is|are|was|were|does|did|do|in|to|for|how|what|who|when|which|where|why";
/// Capitalised words that are no names.
const NO_NAMES: &str = "\
    i|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|\
    june|july|august|september|october|november|december|mr|mrs|ms|dr|prof";
/// Share of a question's words that may be capitalised; where more are, it is a heading.
const NAMES_SHARE_MAX: f32 = 0.6;

/// Confidence that a name of the question takes away that is not there: on XQuAD in English and
/// judged questions to office documents 7 of 100 right passages lack one, 46 of 100 near misses do.
const NAME_MALUS: f32 = 0.15;
/// The same for a year, of which another one is another thing.
const YEAR_MALUS: f32 = 0.25;
/// The same for a code, which nothing else can stand for.
const CODE_MALUS: f32 = 0.4;

/// The terms of a question that name something, each with the confidence that is lost without it:
/// capitalised words inside the question, codes, years.
pub(super) fn names(question: &str) -> BTreeMap<String, f32> {
    let text = spaced(question);
    let words: Vec<&str> = question.unicode_words().collect();
    let is_capital = |word: &&str| word.starts_with(char::is_uppercase);
    let capitals = words.iter().skip(1).filter(|word| is_capital(word)).count();
    let is_heading = capitals as f32 > NAMES_SHARE_MAX * words.len() as f32;
    if is_heading || !ENGLISH.split('|').any(|word| contains(&text, word)) {
        return BTreeMap::new();
    }
    let is_name = |word: &str| {
        let bare = word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word);
        let is_listed = NO_NAMES.split('|').any(|other| other == bare.to_lowercase());
        // A letter alone is part of a name: "P-card".
        let is_word = bare.chars().count() > 1;
        is_word && bare.starts_with(char::is_uppercase) && !is_listed && !is_interrogative(bare)
    };
    let is_code = |word: &str| {
        word.contains(|c: char| c.is_ascii_digit()) && word.contains(char::is_alphabetic)
    };
    let is_year = |word: &str| word.len() == 4 && matches!(word.parse(), Ok(1500..=2199_u32));
    let mut names = BTreeMap::new();
    for word in words.iter().skip(1) {
        let malus = match () {
            () if is_code(word) => CODE_MALUS,
            () if is_year(word) => YEAR_MALUS,
            () if is_name(word) => NAME_MALUS,
            () => continue,
        };
        names.extend(HybridQuery::analyse(word).terms().iter().map(|term| (term.clone(), malus)));
    }
    names
}

/// Whether a number is asked for and none is there. `holds_kind` says whether the passage holds the
/// kind of thing that is asked for.
pub(super) fn lacks_number(asked: Asked, holds_kind: bool) -> bool {
    asked == Asked::Number && !holds_kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(question: &str) -> Vec<String> {
        names(question).into_keys().collect()
    }

    #[test]
    fn names_codes_and_years_are_required() {
        assert_eq!(named("What is the capital of Portugal?"), ["portug"]);
        assert_eq!(named("How much does an MRI scan cost in 2026?"), ["2026", "mri"]);
        assert_eq!(named("What is Dr Solheim's salary on Monday?"), ["solheim"]);
        assert!(named("What was the fix of HV-2214 and of A131?").contains(&"a131".to_owned()));
        assert_eq!(named("Which bin for cytotoxic drugs?"), [""; 0]);
    }

    #[test]
    fn other_languages_and_headings_name_nothing() {
        assert_eq!(named("Wie viel kostet ein Röntgenbild?"), [""; 0]);
        assert_eq!(named("What Is The Capital Of Portugal"), [""; 0]);
    }

    #[test]
    fn a_number_that_is_asked_for_must_be_there() {
        assert!(lacks_number(Asked::Number, false));
        assert!(!lacks_number(Asked::Number, true));
        assert!(!lacks_number(Asked::Other, false));
    }
}
