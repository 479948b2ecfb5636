//! Follow-up questions, made whole for retrieval by rule.
//!
//! "When was it built?" finds nothing by itself. With a generator one would ask it to rewrite the
//! question; the rule here does without: a question that leans on what came before is searched
//! together with the questions it leans on, and with the names of the last answer. The words of
//! the new question stand last and whole. A question that stands by itself is left as it is: to
//! carry an old topic into a new question does more harm than a missed follow-up.
//!
//! A question leans on what came before when one of these holds:
//! - it begins with a connector ("and", "what about", "how about", "y", "und", "et", ...)
//! - it is not long and has a word that points backwards ("it", "they", "his", "this", ...)
//! - it has no matter, or a single word of it ("Why?", "In Berlin?", "How many?")

use unicode_segmentation::UnicodeSegmentation;

use crate::answer::words;
use crate::text::HybridQuery;

/// Past questions that are joined to a follow-up at most.
const QUESTIONS_MAX: usize = 3;
/// Characters of what is put before a follow-up. With the question it fits in the window of the
/// model, a quarter of which is some 60 words.
const CONTEXT_CHARS_MAX: usize = 400;
/// A longer question names what its pronouns mean.
const POINTING_WORDS_MAX: usize = 12;
/// A question of this many words with one word of matter is a fragment.
const SHORT_WORDS_MAX: usize = 3;
/// The same in characters of matter, in scripts without spaces.
const SHORT_RUN_CHARS_MAX: usize = 2;
/// Names taken from the last answer, in words.
const NAMES_MAX: usize = 6;

const CONNECTORS: &[&str] = &[
    "and",
    "or",
    "but",
    "then",
    "also",
    "so",
    "what about",
    "how about",
    "what else",
    "why not",
    "und",
    "oder",
    "aber",
    "was ist mit",
    "wie ist es mit",
    "y",
    "o",
    "pero",
    "qu\u{E9} hay de",
    "et",
    "ou",
    "mais",
    "et pour",
    "\u{430}",
    "\u{438}",
    "\u{43D}\u{43E}",
    "\u{90A3}",
    "\u{90A3}\u{4E48}",
    "\u{90A3}\u{9EBC}",
    "\u{3067}\u{306F}",
    "\u{3058}\u{3083}\u{3042}",
];

/// The question as it should be searched, given the turns before it, oldest first, each a
/// question and its answer. Pure; the question itself when it stands by itself.
pub fn contextualise(question: &str, past: &[(String, String)]) -> String {
    let Some((_, last_answer)) = past.last() else { return question.to_owned() };
    if !leans_back(question) {
        return question.to_owned();
    }
    let mut context: Vec<&str> = Vec::new();
    let mut room = CONTEXT_CHARS_MAX;
    for (before, _) in past.iter().rev().take(QUESTIONS_MAX) {
        let chars = before.chars().count() + 1;
        if chars > room {
            break;
        }
        room -= chars;
        context.insert(0, before.trim());
        if !leans_back(before) {
            break;
        }
    }
    let names = names(last_answer, question);
    if names.chars().count() < room && !names.is_empty() {
        context.push(&names);
    }
    context.push(question);
    context.join(" ")
}

fn leans_back(question: &str) -> bool {
    let spaced = words::spaced(question);
    let compact = spaced.replace(' ', "");
    let begins = |phrase: &&str| {
        spaced.starts_with(&format!(" {phrase} "))
            || (!phrase.is_ascii() && phrase.chars().all(is_wide) && compact.starts_with(*phrase))
    };
    if CONNECTORS.iter().any(begins) {
        return true;
    }
    let words: Vec<&str> = question.unicode_words().collect();
    let points = |(at, word): (usize, &&str)| {
        // Inside a sentence "that" mostly joins clauses: "the team that won".
        let is_joint = matches!(word.to_lowercase().as_str(), "that" | "such")
            && at > 0
            && at + 1 < words.len();
        words::is_reference(word) && !is_joint
    };
    if words.len() <= POINTING_WORDS_MAX && words.iter().enumerate().any(points) {
        return true;
    }
    let matter = words::bare_matter(question);
    if question.chars().any(is_wide) {
        let left = matter.chars().filter(|c| c.is_alphanumeric()).count();
        return words::has_reference_run(question) || left <= SHORT_RUN_CHARS_MAX;
    }
    words.len() <= SHORT_WORDS_MAX && HybridQuery::analyse(&matter).terms().len() <= 1
}

fn is_wide(c: char) -> bool {
    c as u32 >= 0x3000
}

/// Capitalised words inside the sentences of an answer that the question does not hold already:
/// what "he" or "there" may mean.
fn names(answer: &str, question: &str) -> String {
    if answer == crate::answer::ABSTENTION {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut is_first = true;
    for word in answer.split_word_bounds() {
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
            _ => is_first && !word.contains(char::is_alphanumeric),
        };
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn past(turns: &[(&str, &str)]) -> Vec<(String, String)> {
        turns.iter().map(|(q, a)| ((*q).to_owned(), (*a).to_owned())).collect()
    }

    #[test]
    fn follow_ups_are_joined() {
        let turns = past(&[("Who designed the tower?", "The tower is by Gustave Eiffel. [1]")]);
        for question in [
            "When was he born?",
            "And in Paris?",
            "What about its height?",
            "Why?",
            "How many?",
            "Und wann?",
            "¿Y cuándo?",
            "А когда?",
            "它有多高？",
            "为什么？",
        ] {
            let joined = contextualise(question, &turns);
            assert!(joined.starts_with("Who designed the tower? "), "{joined}");
            assert!(joined.ends_with(question), "{joined}");
            assert!(joined.contains("Gustave Eiffel"), "{joined}");
        }
    }

    #[test]
    fn questions_that_stand_alone_are_left() {
        let turns = past(&[("Who designed the tower?", "Gustave Eiffel. [1]")]);
        for question in [
            "How long does the battery last?",
            "refund policy",
            "Which team that won was blue?",
            "What does the IT department do?",
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
            prop_assert!(joined.ends_with(&question));
            let bound = question.chars().count() + CONTEXT_CHARS_MAX + 4;
            prop_assert!(joined.chars().count() <= bound);
        }
    }
}
