//! The table of phrases that state a relation, read once from the list next to this file.
//!
//! A line is `PREDICATE > SOURCE TARGET: phrase | phrase`. With `<` the triplet runs against the
//! sentence: the name before the phrase is the target. The kinds are assumed for the ends if
//! nothing else determines them; a DATE is required.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::row::{EntityKind, Predicate};

/// Maximum words of a phrase.
pub(super) const PHRASE_WORDS_MAX: usize = 6;

/// The relation that a phrase states between the names before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    pub predicate: Predicate,
    /// Whether the triplet's source comes after the phrase.
    pub is_reversed: bool,
    /// Kinds of source and target.
    pub kinds: [Option<EntityKind>; 2],
}

impl Pattern {
    /// Whether the phrase requires a date.
    pub(super) fn wants_date(&self) -> bool {
        self.kinds[1] == Some(EntityKind::Date)
    }
}

static PHRASES: LazyLock<HashMap<&'static str, Vec<Pattern>>> = LazyLock::new(|| {
    let mut phrases: HashMap<&'static str, Vec<Pattern>> = HashMap::new();
    for line in include_str!("words/phrases.txt").lines() {
        let (head, list) = line.split_once(": ").expect("a predicate before its phrases");
        let [predicate, turn, source, target] =
            head.split(' ').collect::<Vec<_>>()[..].try_into().expect("four words");
        let pattern = Pattern {
            predicate: Predicate::of_name(predicate).expect("a known predicate"),
            is_reversed: turn == "<",
            kinds: [source, target].map(EntityKind::of_name),
        };
        for phrase in list.split(" | ") {
            phrases.entry(phrase).or_default().push(pattern);
        }
    }
    phrases
});

/// First words of all phrases with the length of the longest one, so that most words cost one
/// look-up.
static FIRST_WORDS: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let mut longest = HashMap::new();
    for phrase in PHRASES.keys() {
        let first = phrase.split(' ').next().unwrap_or(phrase);
        let length = phrase.split(' ').count();
        let kept = longest.entry(first).or_insert(length);
        *kept = (*kept).max(length);
    }
    longest
});

/// Returns the patterns of a phrase.
pub(super) fn patterns(phrase: &str) -> &'static [Pattern] {
    PHRASES.get(phrase).map_or(&[], Vec::as_slice)
}

/// Word count of the longest phrase that starts with the word; 0 if there is none.
pub(super) fn words_from(first: &str) -> usize {
    FIRST_WORDS.get(first).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sound() {
        assert!(PHRASES.len() > 300);
        for (phrase, patterns) in PHRASES.iter() {
            let words = phrase.split(' ').count();
            assert!(words <= PHRASE_WORDS_MAX && *phrase == phrase.to_lowercase(), "{phrase}");
            let dates = patterns.iter().filter(|pattern| pattern.wants_date()).count();
            assert!(dates <= 1 && patterns.len() - dates <= 1, "{phrase} says one thing");
        }
    }
}
