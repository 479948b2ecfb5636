//! Definitions: questions for the meaning of a word, and passages that define it.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::words::{contains, entries, is_entry};

/// Phrases before and after the thing whose meaning is asked for.
const BEFORE: &str = "\
    what's meant by|what is meant by|what do you mean by|what do we mean by|definition of|\
    meaning of|the definition of|the meaning of|what's the meaning of|what is the meaning of|\
    what is the definition of|define|what does|what do|what is|what's|what are|explain|was ist|\
    was sind|was bedeutet|was heißt|que signifie|que veut dire|qu'est ce que|qu'est ce qu'|\
    c'est quoi|qué es|qué son|qué significa";
const BEHIND: &str = "mean|means|meaning|definition|stand for|stands for|exactly|bedeutung";
/// Phrases that can only ask for a meaning.
const MEANING: &str = "\
    meant by|mean by|definition|definition of|meaning|meaning of|define|mean|stand for|bedeutet|\
    heißt|signifie|veut dire|significa";
const ARTICLES: &str = "a|an|the|ein|eine|der|die|das|un|une|le|la|les|una|el|los|las";
/// Maximum number of words in a thing to be defined, and in the phrases around it.
const WORDS_MAX: usize = 3;
const PHRASE_WORDS_MAX: usize = 6;
/// Marks and words between a thing and its definition.
const JOINTS: &[&str] = &[
    ":", " is ", " are ", " means ", " stands for ", ", a ", ", an ", ", the ", " (", " - ",
    " \u{2013} ", " \u{2014} ", " = ", " ist ", " sind ", " bedeutet ", " est ", " sont ", " es ",
    " son ",
];

/// The thing whose meaning may be asked for, in lower case: "what is the glass room?".
pub(crate) fn thing(question: &str) -> Option<String> {
    let lower = question.to_lowercase().replace('\u{2019}', "'");
    let words: Vec<&str> = lower.unicode_words().collect();
    let count = words.len();
    let mut starts = (1..count.min(PHRASE_WORDS_MAX + 1)).rev();
    let mut ends = count.saturating_sub(PHRASE_WORDS_MAX).max(1)..count;
    let start = starts.find(|at| is_entry(BEFORE, &words[..*at].join(" ")));
    let end = ends.find(|at| is_entry(BEHIND, &words[*at..].join(" ")));
    if start.is_none() && !end.is_some_and(|at| asks_meaning(&words[at..].join(" "))) {
        return None;
    }
    let mut thing = &words[start.unwrap_or(0)..end.unwrap_or(words.len()).max(start.unwrap_or(0))];
    while let [first, rest @ ..] = thing
        && is_entry(ARTICLES, first)
    {
        thing = rest;
    }
    (1..=WORDS_MAX).contains(&thing.len()).then(|| thing.join(" "))
}

/// Whether words made by `spaced` ask for a meaning explicitly.
pub(crate) fn asks_meaning(spaced: &str) -> bool {
    let spaced = format!(" {} ", spaced.trim());
    entries(MEANING).any(|phrase| contains(&spaced, phrase))
}

/// Whether a text defines the thing.
pub(crate) fn defines(text: &str, thing: &str) -> bool {
    let lower = text.to_lowercase();
    let mut behind = lower.match_indices(thing).filter_map(|(at, _)| {
        let is_begun = !lower[..at].ends_with(char::is_alphanumeric);
        let rest = lower[at + thing.len()..].trim_start_matches(['*', '"', '`', '\u{201D}', '\'']);
        is_begun.then_some(rest)
    });
    behind.any(|rest| JOINTS.iter().any(|joint| rest.starts_with(joint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thing_that_is_asked_for_is_told() {
        for (question, expected) in [
            ("What's meant by the glass room?", Some("glass room")),
            ("cost tag definition", Some("cost tag")),
            ("What does FIFO mean?", Some("fifo")),
            ("What is a cost tag?", Some("cost tag")),
            ("Was bedeutet Umschlag?", Some("umschlag")),
            ("What is the alarm limit of the vaccine fridge?", None),
            ("Who is Ada?", None),
            ("cost tag", None),
        ] {
            assert_eq!(thing(question).as_deref(), expected, "{question}");
        }
    }

    #[test]
    fn texts_that_define_are_told() {
        assert!(defines("There is the glass room, a remote desktop without paste.", "glass room"));
        assert!(defines("**Cost tag**: a short code on a booking.", "cost tag"));
        assert!(!defines("Recordings of the glass room", "glass room"));
        assert!(!defines("E400: the cost tag does not exist", "cost tag"));
    }
}
