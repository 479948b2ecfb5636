//! Follow-up questions, completed for retrieval by rule.
//!
//! "When was it built?" finds nothing on its own. Instead of having a generator rewrite it, a rule
//! applies: a question that refers to earlier turns is searched together with the questions it
//! refers to and the names in the last answer, with its own words last and whole. If it only names
//! another subject, that replaces the earlier subject (`subject`). A question that stands alone is
//! left as it is: carrying an old topic into a new question does more harm than a missed follow-up.
//!
//! A question refers to earlier turns if one of these holds:
//! - it begins with a connector ("and", "what about", "y", "und", "et", ...) that no whole question
//!   follows
//! - it is short and has a word that points back ("it", "they", "his", "this", ...) with nothing in
//!   it that the word may refer to
//! - it has at most one word of matter ("Why?", "In Berlin?", "How many?")

use unicode_segmentation::UnicodeSegmentation;

use crate::question::openers::{asks_nothing, without_openers};
use crate::question::pointers;
use crate::question::subject::substituted;
use crate::text::shown::ABSTENTION;
use crate::text::words;
use lodestone_text::HybridQuery;
use lodestone_types::script::is_east_asian;

/// Maximum number of past questions joined to a follow-up.
const QUESTIONS_MAX: usize = 3;
/// Maximum number of characters of context put before a follow-up. Together with the question this
/// fits in the window of the embedding model, a quarter of which is about 60 words.
const CONTEXT_CHARS_MAX: usize = 400;
/// Maximum number of words in a question that counts as a fragment if only one of them is of
/// matter.
const SHORT_WORDS_MAX: usize = 3;
/// Maximum number of characters of matter in a fragment, in scripts without spaces.
const SHORT_RUN_CHARS_MAX: usize = 2;
/// Maximum number of words of names taken from the last answer.
const NAMES_MAX: usize = 6;
/// Minimum number of terms in a question that stands alone after a connector and a question word.
const WHOLE_TERMS_MIN: usize = 2;
/// Minimum number of terms in a subject that needs no predicate from the previous question: "what
/// about refunds for damaged goods?".
const SUBJECT_TERMS_MIN: usize = 3;

/// Maximum number of words in the name of a row's value.
const LABEL_WORDS_MAX: usize = 4;

const CONNECTORS: &str = "\
    and|or|but|then|also|so|why not|und|oder|aber|y|o|pero|et|ou|mais|а|и|но|那|那么|那麼|では|じゃあ";
/// Connectors before a subject of which the previous question is asked again.
const SUBJECT_CONNECTORS: &str = "\
    what about|how about|what else|was ist mit|wie ist es mit|qué hay de|et pour";

/// Returns the question as it should be searched, without the polite words around it, given the
/// previous turns as pairs of question and answer, oldest first. A question that stands alone is
/// not extended. Pure function.
pub fn contextualise(question: &str, past: &[(String, String)]) -> String {
    let question = without_openers(question);
    if past.is_empty() || asks_nothing(question) || !leans_back(question) {
        return question.to_owned();
    }
    let last = past.last().map_or("", |(before, _)| before.trim());
    if let Some(asked) = substituted(question, last).filter(|_| is_short(last)) {
        return asked;
    }
    if let Some(predicate) = predicate_for(question, past) {
        return format!("{predicate} {question}");
    }
    let recent = recent_turns(question, past);
    let Some((_, last_answer)) = recent.last() else { return question.to_owned() };
    let mut context: Vec<&str> = Vec::new();
    let mut left = CONTEXT_CHARS_MAX;
    for (before, _) in recent.iter().rev().take(QUESTIONS_MAX) {
        let chars = before.chars().count() + 1;
        if chars > left {
            break;
        }
        left -= chars;
        context.insert(0, before.trim());
        // A question with a name of its own begins a topic.
        if !leans_back(before) || !own_names(before).is_empty() {
            break;
        }
    }
    let names = names(last_answer, question);
    if names.chars().count() < left && !names.is_empty() {
        context.push(&names);
    }
    context.push(question);
    context.join(" ")
}

/// Whether a previous question is short enough to precede a follow-up and stands alone.
fn is_short(before: &str) -> bool {
    before.chars().count() <= CONTEXT_CHARS_MAX && !leans_back(before)
}

/// The turns up to the one that the question refers to: for a personal pronoun, the last turn that
/// names a person.
fn recent_turns<'p>(question: &str, past: &'p [(String, String)]) -> &'p [(String, String)] {
    if !pointers::has_person(question) {
        return past;
    }
    let names_one = |(before, _): &(String, String)| {
        pointers::has_person(before) || !own_names(before).is_empty()
    };
    let from = past.len().saturating_sub(QUESTIONS_MAX);
    match past[from..].iter().rposition(names_one) {
        Some(at) => &past[..=from + at],
        None => past,
    }
}

/// The predicate of the previous question, for a question that only names another subject: "What
/// about Ada?" after "When did Tom join Acme?" asks when she did.
fn predicate_for(question: &str, past: &[(String, String)]) -> Option<String> {
    if !begins_with(question, SUBJECT_CONNECTORS) || own_names(question).is_empty() {
        return None;
    }
    let (before, _) = past.last()?;
    let subjects = own_names(before);
    let bare = |word: &str| subjects.contains(&word) || words::is_reference(word);
    let predicate: String =
        before.split_word_bounds().map(|word| if bare(word) { " " } else { word }).collect();
    let is_short = predicate.chars().count() <= CONTEXT_CHARS_MAX;
    let has_matter = words::bare_matter(&predicate).contains(char::is_alphanumeric);
    (is_short && has_matter).then(|| predicate.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn leans_back(question: &str) -> bool {
    let terms = || HybridQuery::analyse(&words::bare_matter(question)).terms().len();
    if begins_with(question, SUBJECT_CONNECTORS) {
        return !own_names(question).is_empty() || terms() < SUBJECT_TERMS_MIN;
    }
    if pointers::points_back(question) {
        return true;
    }
    if begins_with(question, CONNECTORS) {
        let asks = question.unicode_words().skip(1).take(2).any(words::is_interrogative);
        return question.chars().any(is_east_asian) || !asks || terms() < WHOLE_TERMS_MIN;
    }
    if question.chars().any(is_east_asian) {
        let matter = words::bare_matter(question);
        let left = matter.chars().filter(|c| c.is_alphanumeric()).count();
        return words::has_reference_run(question) || left <= SHORT_RUN_CHARS_MAX;
    }
    question.unicode_words().count() <= SHORT_WORDS_MAX && terms() <= 1
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
fn own_names(question: &str) -> Vec<&str> {
    let is_name = |word: &&str| {
        word.starts_with(char::is_uppercase) && !words::is_interrogative(word) && *word != "I"
    };
    question.unicode_words().skip(1).filter(is_name).collect()
}

/// Capitalised words within the sentences of an answer that the question lacks: candidates for "he"
/// or "there".
fn names(answer: &str, question: &str) -> String {
    if answer == ABSTENTION {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut is_first = true;
    let values = values(answer);
    for word in values.split_word_bounds() {
        let is_name = word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().nth(1).is_some_and(char::is_lowercase);
        if is_name && !is_first && !names.contains(&word) && !question.contains(word) {
            names.push(word);
        }
        if names.len() == NAMES_MAX {
            break;
        }
        is_first = match word {
            "." | "!" | "?" => true,
            // A citation may stand between two sentences.
            _ => is_first && !word.contains(char::is_alphabetic),
        };
    }
    names.join(" ")
}

/// An answer without the names of row values: "Pump: Ada; Litres: 3" keeps "Ada".
fn values(answer: &str) -> String {
    let parts = || answer.split("; ");
    if parts().filter(|part| named_value(part).is_some()).count() < 2 {
        return answer.to_owned();
    }
    parts().map(|part| named_value(part).unwrap_or(part)).collect::<Vec<_>>().join("; ")
}

/// The value of `name: value`.
fn named_value(part: &str) -> Option<&str> {
    let (name, value) = part.split_once(": ")?;
    (name.split_whitespace().count() <= LABEL_WORDS_MAX).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn past(turns: &[(&str, &str)]) -> Vec<(String, String)> {
        turns.iter().map(|(q, a)| ((*q).to_owned(), (*a).to_owned())).collect()
    }

    #[test]
    fn names_of_values_are_no_names() {
        let answer = "Situation: school; Main pool: 2; Remarks: ask Ada Tarn. [1]";
        let turns = past(&[("How many guards?", answer)]);
        assert_eq!(contextualise("And for her?", &turns), "How many guards? Ada Tarn And for her?");
    }

    #[test]
    fn beginnings_of_sentences_are_no_names() {
        let turns = past(&[("What is counted?", "Ask Ada Tarn. [1] Stock is counted. [2]")]);
        assert_eq!(contextualise("Who is told?", &turns), "What is counted? Ada Tarn Who is told?");
    }

    #[test]
    fn follow_ups_are_joined() {
        let turns = past(&[("Who designed the tower?", "The tower is by Gustave Eiffel. [1]")]);
        for question in [
            "When was he born?", "And in Paris?", "What about its height?", "Why?", "How many?",
            "Und wann?", "¿Y cuándo?", "А когда?", "它有多高？", "为什么？",
        ] {
            let joined = contextualise(question, &turns);
            assert!(joined.starts_with("Who designed the tower? "), "{joined}");
            assert!(joined.ends_with(question), "{joined}");
            assert!(joined.contains("Gustave Eiffel"), "{joined}");
        }
    }

    #[test]
    fn another_subject_is_asked_the_same() {
        let turns = past(&[("When did Tom Reed join Acme?", "Tom Reed joined in May. [1]")]);
        assert_eq!(
            contextualise("What about Ada Brown?", &turns),
            "When did join ? What about Ada Brown?"
        );
        assert_eq!(
            contextualise("What about refunds for damaged goods?", &turns),
            "What about refunds for damaged goods?"
        );
    }

    #[test]
    fn a_person_is_looked_for_where_one_is_named() {
        let turns = past(&[
            ("When was Ilsa Marr born?", "Ilsa Marr was born in 1931. [1]"),
            ("When should I change guitar strings?", "Every three months. [1]"),
        ]);
        let joined = contextualise("Did she direct a film?", &turns);
        assert_eq!(joined, "When was Ilsa Marr born? Marr Did she direct a film?");
        assert_eq!(
            contextualise("Does it hurt?", &turns),
            "When should I change guitar strings? Does it hurt?"
        );
    }

    #[test]
    fn questions_that_stand_alone_are_left() {
        let turns = past(&[("Who designed the tower?", "Gustave Eiffel. [1]")]);
        for question in [
            "How long does the battery last?",
            "refund policy",
            "Which team that won was blue?",
            "What does the IT department do?",
            "And how tall is the Eiffel Tower?",
            "So what is the refund policy?",
            "Which employees get their laptops replaced?",
            "When did Microsoft open its office in Berlin?",
            "How long does it take to fly from Oslo to Tokyo?",
            "这座塔的高度是多少米？".trim_start_matches("这座"),
        ] {
            assert_eq!(contextualise(question, &turns), question);
        }
        assert_eq!(contextualise("When was it built?", &[]), "When was it built?");
    }

    #[test]
    fn a_chain_reaches_the_question_with_the_topic() {
        let turns = past(&[("What is Lodestone?", "A server."), ("Who made it?", "Nobody.")]);
        let joined = contextualise("And when?", &turns);
        assert_eq!(joined, "What is Lodestone? Who made it? And when?");
    }

    proptest! {
        #[test]
        fn bounded_and_ends_with_the_question(
            question in "(it|and|why|[a-z]{1,5}|塔)[ ?a-z]{0,20}",
            turns in proptest::collection::vec(("\\PC{0,300}", "\\PC{0,300}"), 0..12),
        ) {
            let joined = contextualise(&question, &turns);
            let subject = question.split_whitespace().next_back().unwrap_or_default();
            prop_assert!(joined.contains(subject.trim_end_matches('?')));
            let bound = question.chars().count() + CONTEXT_CHARS_MAX + 4;
            prop_assert!(joined.chars().count() <= bound);
        }
    }
}
