//! Questions that lack a predicate or a subject, so that the previous question has to supply it.
//!
//! A question is elliptic if one of these holds:
//! - it begins with a connector ("and", "what about", "y", "und", "et", ...) that no whole question
//!   follows
//! - it has at most one word of matter ("Why?", "In Berlin?", "How many?") and no subject, as in
//!   "Where is parking?"

use unicode_segmentation::UnicodeSegmentation;

use crate::question::openers::QUESTION_WORDS;
use crate::question::phrase::{self, is_be, is_name, is_predicate};
use crate::question::pointers::{Pointer, language_of};
use crate::text::words::{self, is_entry};
use crate::translation::Language;
use lodestone_text::HybridQuery;
use lodestone_types::script::is_east_asian;

/// Maximum number of words in a question that counts as a fragment if only one of them is of
/// matter.
const SHORT_WORDS_MAX: usize = 3;
/// Maximum number of characters of matter in a fragment, in scripts without spaces.
const SHORT_RUN_CHARS_MAX: usize = 2;
/// Minimum number of terms in a question that stands alone after a connector and a question word.
const WHOLE_TERMS_MIN: usize = 2;
/// Minimum number of terms in a subject that needs no predicate from the previous question: "what
/// about refunds for damaged goods?".
const SUBJECT_TERMS_MIN: usize = 3;
const CONNECTORS: &str = "\
    and|or|but|then|also|so|why not|und|oder|aber|y|o|pero|et|ou|mais|а|и|но|那|那么|那麼|では|じゃあ";
/// Connectors before a subject of which the previous question is asked again.
const SUBJECT_CONNECTORS: &str = "\
    what about|how about|what else|was ist mit|wie ist es mit|qué hay de|et pour";
/// Words for the beginning and end of what somebody does.
const OPEN_DEEDS: &str = "done|finished|ready|through|finish|start|begin|started|begun";
/// Words between a connector and a pronoun: "and for her?".
const PARTICLES: &str = "\
    in|at|for|on|to|of|with|from|by|about|since|until|für|bei|mit|von|seit|pour|avec|de|en|con";
/// Question words before a form of "be" and its subject: "where is parking". What follows a "who"
/// there may be no subject ("who is responsible").
const BEFORE_SUBJECT: &str = "where|when|how|what|much|wo|wann|was|où|dónde|cuándo";

/// Whether a question without pointers lacks a predicate or subject.
pub(crate) fn is_elliptic(question: &str) -> bool {
    let terms = || HybridQuery::analyse(&words::bare_matter(question)).terms().len();
    if begins_with_subject(question) {
        return !own_names(question).is_empty() || terms() < SUBJECT_TERMS_MIN;
    }
    if begins_with(question, CONNECTORS) {
        let asks = question.unicode_words().skip(1).take(2).any(words::is_interrogative);
        let is_whole = asks && (terms() >= WHOLE_TERMS_MIN || names_subject(question));
        return question.chars().any(is_east_asian) || !is_whole;
    }
    if question.chars().any(is_east_asian) {
        let matter = words::bare_matter(question);
        let left = matter.chars().filter(|c| c.is_alphanumeric()).count();
        return words::has_reference_run(question) || left <= SHORT_RUN_CHARS_MAX;
    }
    question.unicode_words().count() <= SHORT_WORDS_MAX
        && terms() <= 1
        && !names_subject(question)
        && !has_subject(question)
}

/// Whether nothing but connectors, particles and question words is beside the pointers.
pub(crate) fn is_verbless(question: &str, pointers: &[Pointer]) -> bool {
    let is_pointer = |at: usize| pointers.iter().any(|pointer| pointer.bytes.start == at);
    question.unicode_word_indices().all(|(at, word)| {
        is_pointer(at)
            || [CONNECTORS, PARTICLES, QUESTION_WORDS].iter().any(|list| is_entry(list, word))
    })
}

/// Whether a question has no words of matter: "When?".
pub(crate) fn is_bare(question: &str) -> bool {
    let matter = words::bare_matter(question);
    !matter.unicode_words().any(|word| !is_entry(CONNECTORS, word) && !is_entry(PARTICLES, word))
}

/// Whether a question asks about what somebody does without saying what that is: "when will she be
/// done?".
pub(crate) fn lacks_deed(question: &str, pointers: &[Pointer]) -> bool {
    let is_pointer = |at: usize| pointers.iter().any(|pointer| pointer.bytes.start == at);
    let is_form = |word: &str| {
        is_be(word)
            || [CONNECTORS, QUESTION_WORDS, phrase::AUXILIARIES]
                .iter()
                .any(|list| is_entry(list, word))
    };
    let is_open = |word: &str| is_entry(OPEN_DEEDS, word);
    question.unicode_words().any(is_open)
        && question
            .unicode_word_indices()
            .all(|(at, word)| is_pointer(at) || is_form(word) || is_open(word))
}

/// Whether a question begins with a connector before a subject.
pub(crate) fn begins_with_subject(question: &str) -> bool {
    begins_with(question, SUBJECT_CONNECTORS)
}

/// Whether a name or code is the subject of a form of "be" or an auxiliary: "how much is the BX-1".
fn names_subject(question: &str) -> bool {
    let words = phrase::words(question);
    let is_german = language_of(question) == Some(Language::German);
    let names =
        |at: usize| at < words.len() && is_name(&words, at) && (!is_german || words[at].is_code());
    let is_verb =
        |at: usize| is_be(words[at].text) || is_entry(phrase::AUXILIARIES, words[at].text);
    let has_article =
        |at: usize| words.get(at).is_some_and(|word| is_entry(phrase::DETERMINERS, word.text));
    (0..words.len())
        .any(|at| is_verb(at) && (names(at + 1) || (has_article(at + 1) && names(at + 2))))
}

/// Whether a form of "be" and its subject follow the question word.
fn has_subject(question: &str) -> bool {
    let words: Vec<&str> = question.unicode_words().collect();
    words.windows(3).any(|three| {
        is_entry(BEFORE_SUBJECT, three[0]) && is_be(three[1]) && !is_predicate(three[2])
    })
}

fn begins_with(question: &str, phrases: &str) -> bool {
    let spaced = words::spaced(question);
    let compact = spaced.replace(' ', "");
    phrases.split('|').any(|phrase| {
        spaced.starts_with(&format!(" {phrase} "))
            || (phrase.chars().all(is_east_asian) && compact.starts_with(phrase))
    })
}

/// The capitalised words of a question after its first word.
pub(crate) fn own_names(question: &str) -> Vec<&str> {
    let is_name = |word: &&str| {
        word.starts_with(char::is_uppercase) && !words::is_interrogative(word) && *word != "I"
    };
    question.unicode_words().skip(1).filter(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_without_a_deed_are_told_from_those_with_one() {
        let lacks =
            |question: &str| lacks_deed(question, &crate::question::pointers::pointers(question));
        for question in ["When will she be done?", "and when does he start?", "Is she ready?"] {
            assert!(lacks(question), "{question}");
        }
        for question in ["When will she be done glazing?", "Where was she born?", "Who is she?"] {
            assert!(!lacks(question), "{question}");
        }
    }

    #[test]
    fn questions_without_a_predicate_are_told_from_whole_ones() {
        for question in [
            "And the LK-40?", "When?", "In Berlin?", "Why?", "And how much in winter?",
            "And what is allowed?", "Who is responsible?", "Und wann?", "Who is told?",
        ] {
            assert!(is_elliptic(question), "{question}");
        }
        for question in [
            "And how much is the LK-40?", "And who is Marta?", "Where is parking?",
            "Who is Marta?", "What is glazing?", "And how tall is the Eiffel Tower?",
            "Which kilns are there?",
        ] {
            assert!(!is_elliptic(question), "{question}");
        }
    }
}
