//! The pro-form "one" of a follow-up: in "when was the last one?" it stands for the noun of the
//! thing that the previous question is about.
//!
//! The words before it take the place of those before the noun: "the blue one" after "the red kiln"
//! is the blue kiln. Words of order ("last", "new") only replace each other, so that "the last one"
//! after "the load test" is the last load test.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::phrase::{
    AUXILIARIES, DETERMINERS, PREPOSITIONS, Word, is_be, is_name, words,
};
use crate::question::pointers::language_of;
use crate::question::several::is_plural;
use crate::text::numbers::is_number;
use crate::text::words::{is_entry, is_interrogative};
use crate::translation::Language;

/// Maximum number of words in a question, and of those between the determiner and "one".
const WORDS_MAX: usize = 12;
const MODIFIERS_MAX: usize = 3;
/// Words of order before a noun.
const ORDER: &str = "\
    next|last|first|second|third|previous|current|latest|earliest|old|older|oldest|new|newer|\
    newest|other|earlier|later|former|following|upcoming|same|final";
/// Words before a phrase that is all a question consists of: "and for an outdoor one?".
const LEADS: &str = "\
    and|or|but|so|then|also|what|how|about|if|it|it's|is|in|at|for|on|to|of|with|from|by";
/// Words that end the words before "one", and words after a "one" that is a number or a part.
const CLOSED: &str = "and|or|but|not|no|than|as|that|this";
const BEHIND_NUMBERS: &str = "\
    of|minute|minutes|hour|hours|day|days|week|weeks|month|months|year|years|euro|euros|pound|\
    pounds|dollar|dollars|percent|way|time|bedroom|person|metre|meter|mile|litre|kilo";

/// Words between "the" and a "one" that is their number: "the phase one report".
const NUMBERED: &str = "\
    phase|level|part|grade|stage|step|tier|category|class|band|section|chapter|volume|appendix|\
    annex|terminal|gate|platform|line|zone|unit|number|plus|square";

/// A phrase with the pro-form, without a noun that the question itself names before it.
pub(crate) struct ProForm<'q> {
    question: &'q str,
    /// The bytes of "one", and the start of the determiner.
    one: Range<usize>,
    start: usize,
    modifiers: Vec<&'q str>,
    is_alone: bool,
}

/// The pro-form of an English question.
pub(crate) fn pro_form(question: &str) -> Option<ProForm<'_>> {
    let words = words(question);
    // A capital is that of a name: "Runway One".
    let is_one = |word: &Word<'_>| matches!(word.text, "one" | "ones");
    let at = words.iter().take(WORDS_MAX).position(is_one)?;
    if words.len() > WORDS_MAX || language_of(question) != Some(Language::English) {
        return None;
    }
    let is_modifier = |at: &usize| words[*at].after.is_empty() && !is_closed(words[*at].text);
    let count = (0..at).rev().take_while(is_modifier).count();
    let opening = at.checked_sub(count + 1)?;
    let is_determined = (1..=MODIFIERS_MAX).contains(&count)
        && is_entry(DETERMINERS, words[opening].text)
        && !names_noun(&words[..opening]);
    let is_counted = words
        .get(at + 1)
        .is_some_and(|next| is_entry(BEHIND_NUMBERS, next.text) || is_number(next.text));
    let is_number_of = count == 1 && is_entry(NUMBERED, words[at - 1].text);
    // "Exchange tickets for a cheaper one", but not "tickets for the last one".
    let is_of_plural = is_entry("a|an", words[opening].text) && names_plural(&words[..opening]);
    if !is_determined || is_counted || is_number_of || is_of_plural {
        return None;
    }
    let is_alone =
        at + 1 == words.len() && words[..opening].iter().all(|word| is_entry(LEADS, word.text));
    let start = words[at].start;
    Some(ProForm {
        question,
        one: start..start + words[at].text.len(),
        start: words[opening].start,
        modifiers: words[opening + 1..at].iter().map(|word| word.text).collect(),
        is_alone,
    })
}

fn is_closed(word: &str) -> bool {
    [DETERMINERS, PREPOSITIONS, AUXILIARIES, CLOSED].iter().any(|list| is_entry(list, word))
        || is_be(word)
        || is_interrogative(word)
}

/// Whether words hold a noun that a later "one" may stand for.
fn names_noun(words: &[Word<'_>]) -> bool {
    (0..words.len()).any(|at| {
        let is_which = || {
            let next = words.get(at + 1);
            is_entry("which|whose", words[at].text) && next.is_some_and(|next| !is_be(next.text))
        };
        is_entry(DETERMINERS, words[at].text) || is_name(words, at) || is_which()
    })
}

/// Whether words hold a plural that is neither their subject nor their verb, which follow a
/// question word or an auxiliary: "do guests need", "who owns".
fn names_plural(words: &[Word<'_>]) -> bool {
    words.windows(2).any(|two| is_plural(two[1].text) && !is_interrogative(two[0].text))
}

impl ProForm<'_> {
    /// Whether the question consists of this phrase.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// The question with the noun of a thing in the place of the pro-form.
    pub(crate) fn filled(&self, thing: &str) -> Option<String> {
        let noun = self.noun(without_determiner(thing))?;
        let (before, behind) = (&self.question[..self.one.start], &self.question[self.one.end..]);
        Some(format!("{before}{noun}{behind}"))
    }

    /// The previous question, which names the thing once, with this phrase in its place.
    pub(crate) fn asked_of(&self, thing: &str, previous: &str) -> Option<String> {
        let thing = without_determiner(thing);
        let noun = self.noun(thing)?;
        let mut places = previous.match_indices(thing);
        let (start, end) = places.next().map(|(at, found)| (at, at + found.len()))?;
        if !self.is_alone || places.next().is_some() {
            return None;
        }
        let before = previous[..start].trim_end();
        let determiner = before.unicode_words().next_back();
        let determiner =
            determiner.filter(|word| is_entry(DETERMINERS, word) && before.ends_with(word));
        let before = &previous[..determiner.map_or(start, |word| before.len() - word.len())];
        let phrase = &self.question[self.start..self.one.start];
        Some(format!("{before}{phrase}{noun}{}", &previous[end..]))
    }

    /// The noun of a thing, without what the words before the pro-form replace.
    fn noun(&self, thing: &str) -> Option<String> {
        let words: Vec<&str> = thing.split_whitespace().collect();
        let is_preposition = |word: &&str| is_entry(PREPOSITIONS, word);
        let end = words.iter().position(is_preposition).unwrap_or(words.len());
        let last = end.checked_sub(1)?;
        let is_order = |word: &&str| is_entry(ORDER, word);
        let ordered = words[..last].iter().take_while(|word| is_order(word)).count();
        // "The new one" is still a load test, but "the blue one" is no red kiln. A gerund or owner
        // belongs to its noun.
        let is_quality = |word: &str| !word.ends_with("ing") && !word.ends_with(['\'', '\u{2019}']);
        let is_replaced =
            !self.modifiers.iter().all(is_order) && ordered < last && is_quality(words[ordered]);
        Some(words[ordered + usize::from(is_replaced)..].join(" "))
    }
}

/// A thing without its determiner.
fn without_determiner(thing: &str) -> &str {
    thing
        .split_once(' ')
        .filter(|(first, _)| is_entry(DETERMINERS, first))
        .map_or(thing, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_of_the_thing_takes_its_place() {
        for (question, thing, expected) in [
            (
                "and when was the last one?", "the next keepers' outing",
                "and when was the last keepers' outing?",
            ),
            ("Who ran the second one?", "the load test", "Who ran the second load test?"),
            ("How hot is the blue one?", "the red kiln", "How hot is the blue kiln?"),
            ("How hot is the blue one?", "the kiln", "How hot is the blue kiln?"),
            ("Is there a small one?", "the new riding school", "Is there a small riding school?"),
            ("Do guests need a new one?", "the key", "Do guests need a new key?"),
            (
                "Who has photos of the last one?", "the next outing",
                "Who has photos of the last outing?",
            ),
            ("And the top level one?", "the parking space", "And the top level parking space?"),
            (
                "Who has the old ones?", "the new keys of the barn",
                "Who has the old keys of the barn?",
            ),
        ] {
            let one = pro_form(question).and_then(|one| one.filled(thing));
            assert_eq!(one.as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_phrase_takes_the_place_of_the_thing() {
        for (question, thing, previous, expected) in [
            (
                "and a heated one?", "the outdoor riding arena",
                "How much is an outdoor riding arena?", "How much is a heated riding arena?",
            ),
            (
                "what about the last one", "the next outing", "When is the next outing?",
                "When is the last outing?",
            ),
        ] {
            let one = pro_form(question).and_then(|one| one.asked_of(thing, previous));
            assert_eq!(one.as_deref(), Some(expected));
        }
        let one = pro_form("When was the last one?")
            .and_then(|one| one.asked_of("the next outing", "When is the next outing?"));
        assert_eq!(one, None, "a question of its own");
    }

    #[test]
    fn other_ones_are_left() {
        for question in [
            "How does one apply?",
            "Which one is it?",
            "Who is the one?",
            "In the last one hour?",
            "How much is a cheap one way ticket?",
            "Which kiln is hotter, the red or the blue one?",
            "Is the kiln older than the new one?",
            "Who has the first one hundred?",
            "And one?",
            "Does Ada have the new one?",
            "Who won the last one of the races?",
            "What does the Runway One lounge offer?",
            "When is the phase one report due?",
            "How do I exchange tickets for a cheaper one?",
        ] {
            assert!(pro_form(question).is_none(), "{question}");
        }
    }
}
