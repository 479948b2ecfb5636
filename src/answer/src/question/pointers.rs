//! Words of a question that refer to earlier turns.
//!
//! Not every pronoun does: "Which employees get their laptops replaced?" names what it means, and
//! the "it" of "How long does it take to fly?" means nothing. The rules are for English; in other
//! languages a pronoun always points back.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::words;

/// A longer question names what its pronouns refer to.
const POINTING_WORDS_MAX: usize = 12;

const PERSONS: &[&str] = &["he", "she", "him", "his", "her", "hers", "er", "él", "ella", "elle"];
const THINGS: &[&str] = &["it", "its", "they", "them", "their", "theirs"];
/// Words before a noun that a later pronoun may refer to.
const DETERMINERS: &[&str] =
    &["the", "a", "an", "my", "our", "your", "each", "every", "all", "any", "some"];
/// Further words before such a noun, unless the pronoun is the subject: "which employees get their
/// laptops".
const QUESTION_DETERMINERS: &[&str] = &["which", "what", "whose", "many"];
const AUXILIARIES: &[&str] = &[
    "do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "can", "could", "will",
    "would", "should", "may", "must",
];
/// Words after a meaningful "it" even though "to" follows: "is it going to open".
const VERBS_OF_THINGS: &[&str] = &[
    "going", "able", "supposed", "used", "likely", "about", "due", "need", "needs", "have", "has",
    "want", "belong", "apply", "lead", "connect", "relate", "refer", "compare", "happen", "close",
    "next",
];

/// Nouns of time that a "that" before them refers to: "who is on call that week".
const TIMES: &[&str] = &[
    "day", "night", "week", "weekend", "month", "quarter", "season", "year", "morning", "evening",
    "afternoon", "date", "time", "period", "shift",
];

/// Whether a word of the question points to an earlier turn.
pub(crate) fn points_back(question: &str) -> bool {
    let words: Vec<&str> = question.unicode_words().collect();
    if words.len() > POINTING_WORDS_MAX {
        return false;
    }
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    // "Who is on duty then?"
    lower.last() == Some(&"then")
        || (0..words.len())
            .any(|at| words::is_reference(words[at]) && is_pointer(&words, &lower, at))
}

/// Whether a question contains a personal pronoun.
pub(crate) fn has_person(question: &str) -> bool {
    question.unicode_words().any(|word| PERSONS.contains(&word.to_lowercase().as_str()))
}

/// Whether the reference at `at` has no antecedent within the question.
fn is_pointer(words: &[&str], lower: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| lower[before]);
    let is_subject = AUXILIARIES.contains(&before);
    match lower[at] {
        // Inside a sentence, "that" mostly joins clauses: "the team that won".
        "that" | "such" => {
            let is_of_time = lower.get(at + 1).is_some_and(|next| TIMES.contains(next));
            at == 0 || at + 1 == words.len() || is_subject || is_of_time
        }
        word if PERSONS.contains(&word) => !has_name(&words[..at]),
        "it" if means_nothing(lower, at) => false,
        word if THINGS.contains(&word) => {
            before == "of" || !(has_name(&words[..at]) || has_noun(&lower[..at], is_subject))
        }
        _ => true,
    }
}

/// Whether a capitalised word occurs after the first one.
fn has_name(words: &[&str]) -> bool {
    let is_name = |word: &&str| word.starts_with(char::is_uppercase) && word.len() > 1;
    words.iter().skip(1).any(is_name)
}

/// Whether a noun occurs after a determiner.
fn has_noun(before: &[&str], is_subject: bool) -> bool {
    let opens = |word: &&str| {
        DETERMINERS.contains(word) || (!is_subject && QUESTION_DETERMINERS.contains(word))
    };
    let Some(at) = before.iter().position(opens) else { return false };
    before[at + 1..].iter().any(|word| !words::is_interrogative(word) && !opens(word))
}

/// Whether the "it" at `at` is an expletive: "is it possible to", "does it take to".
fn means_nothing(lower: &[&str], at: usize) -> bool {
    let (Some(verb), Some(joint)) = (lower.get(at + 1), lower.get(at + 2)) else { return false };
    matches!(*joint, "to" | "that") && !VERBS_OF_THINGS.contains(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pronouns_without_a_noun_of_their_own_point_back() {
        for question in [
            "When did he become CEO?", "How tall is it?", "How many litres does it lift?",
            "Which parts do they sell?", "What is the height of its tower?",
            "What did the critics say about her?", "Does that apply to contractors?",
            "When is it going to open?", "Wann wurde er geboren?",
            "Who is second on call that week?", "Who is the porter on duty then?",
        ] {
            assert!(points_back(question), "{question}");
        }
    }

    #[test]
    fn pronouns_with_a_noun_of_their_own_do_not() {
        for question in [
            "Which employees get their laptops replaced?",
            "What happens to the deposit if I cancel it?",
            "When did Microsoft open its Berlin office?",
            "Is it possible to cancel a subscription?",
            "How much does it cost to send a parcel?",
            "Which team that won was blue?",
            "When did Ada Brown sell her house?",
        ] {
            assert!(!points_back(question), "{question}");
        }
    }
}
