//! Correction of misspelt words in a question, by rule: which words may be misspelt, and what each
//! may mean.
//!
//! A word is corrected only if it occurs nowhere in the searched content and is unknown to both the
//! model and the lexicon of the question's language. This keeps rare but correct words, and
//! questions in another language than the content. Numbers, codes and short names are kept too. A
//! word that only the model knows is corrected only as a slip: a doubled letter or two swapped
//! ones.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::qualities::Quality;
use crate::text::words::{entries, is_entry, is_interrogative};

/// Maximum number of words of a question that are examined.
const WORDS_MAX: usize = 32;
/// Letters of a word that may be misspelt.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=40;
/// Letters from which two edits are allowed; shorter words allow one. As in Lucene's
/// `fuzziness: AUTO`, except for words of three letters, most of which have a neighbour.
const TWO_EDITS_FROM: usize = 8;
/// Letters from which a capitalised word within a question may be misspelt: the neighbours of short
/// names are other names.
const NAME_LETTERS_MIN: usize = 8;
/// Minimum number of letters in each of two joined words.
const PART_LETTERS_MIN: usize = 3;
/// First code point of the scripts that are not examined; Latin, Greek and Cyrillic come before it.
const LETTERS_END: u32 = 0x530;

/// Question words that are often misspelt; they need not occur in documents.
const ASKING: &[&str] = &[
    "which", "what", "where", "when", "whose", "much", "many", "does", "should", "would", "could",
    "have", "welche", "wieviel", "warum", "combien", "pourquoi", "quand", "cuánto", "cuándo",
    "dónde",
];

/// Words of three letters in which two letters may be swapped: "teh".
const SHORT: &str = "the|and|for|are|you|how|who|not|can|has|was|our|any|all|out|may";
const SHORT_LETTERS: usize = 3;
/// Verbs after the first word of a question.
const BEHIND_ASKING: &str = "is|are|was|were|do|does|dose|did|can|may|must|will|has|have|should";
/// A word, and its meaning as the second word after a question word.
const DOES: (&str, &str) = ("dose", "does");

/// A correction of a misspelt word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The word as written.
    pub from: String,
    /// The word as read.
    pub to: String,
}

/// Access to the words of the searched content.
pub trait Vocabulary {
    /// The error of a failed look-up.
    type Error;

    /// Returns the number of rows that contain a word in some inflection; `None` if it is unknown,
    /// because too many words have been looked up.
    fn rows(&self, word: &str) -> Result<Option<u64>, Self::Error>;

    /// Returns words that another may be a misspelling of: those with the same first letter, at
    /// most `edits` edits away. They may include words that are farther or occur in no row.
    fn neighbours(&self, word: &str, edits: u8) -> Result<Vec<String>, Self::Error>;
}

/// Returns the corrections of a question, in order. `is_word` tells whether a word is known at all,
/// `is_listed` whether the lexicon knows it: the model knows rare words too.
///
/// # Errors
/// Those of the vocabulary.
pub fn corrections<V: Vocabulary>(
    question: &str,
    (is_word, is_listed): (impl Fn(&str) -> bool, impl Fn(&str) -> bool),
    vocabulary: &V,
) -> Result<Vec<Correction>, V::Error> {
    let words: Vec<&str> = question.unicode_words().take(WORDS_MAX).collect();
    let mut found: Vec<Correction> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let lower = word.to_lowercase();
        let next = words.get(at + 1).copied().unwrap_or_default();
        let before = words[..at].last().copied().unwrap_or_default();
        let short = short(&lower, before, next).filter(|_| before.is_empty() || !is_listed(&lower));
        let short = short.or((at == 1 && lower == DOES.0 && asks(before)).then_some(DOES.1));
        let is_rare = !is_listed(&lower) && may_be_misspelt(word, at);
        let may_be = short.is_some() || is_rare || (!is_word(&lower) && may_be_misspelt(word, at));
        let is_known = found.iter().any(|known| known.from == *word);
        if is_known || !may_be || vocabulary.rows(&lower)?.is_none_or(|rows| rows > 0) {
            continue;
        }
        let meant = match short.or_else(|| asking(&lower).filter(|_| !is_word(&lower))) {
            Some(meant) => Some(meant.to_owned()),
            None if is_word(&lower) => slip(&lower, vocabulary)?,
            None => match nearest(&lower, vocabulary)? {
                Some(near) => Some(near),
                None => match parted(&lower, &is_word, vocabulary)? {
                    Some(parts) => Some(parts),
                    None => known(&lower, &is_word),
                },
            },
        };
        found.extend(meant.map(|to| Correction { from: (*word).to_owned(), to }));
    }
    Ok(found)
}

/// Applies corrections to a question.
pub fn corrected(question: &str, corrections: &[Correction]) -> String {
    let meant = |word: &str| corrections.iter().find(|one| one.from == word);
    let words = question.split_word_bounds();
    words.map(|word| meant(word).map_or(word, |one| one.to.as_str())).collect()
}

fn may_be_misspelt(word: &str, at: usize) -> bool {
    let letters = word.chars().count();
    let is_plain = word.chars().all(|c| c.is_alphabetic() && (c as u32) < LETTERS_END);
    let is_name = at > 0 && word.starts_with(char::is_uppercase);
    let has_capital_inside = word.chars().skip(1).any(char::is_uppercase);
    let is_told = is_interrogative(word) || Quality::is_told_by(&word.to_lowercase());
    LETTERS.contains(&letters)
        && is_plain
        && !has_capital_inside
        && !(is_name && letters < NAME_LETTERS_MIN)
        && !is_told
}

/// The intended word for a misspelt word of three letters: a question word at the beginning ("wen
/// is the fair"), or a word with two letters swapped ("teh").
fn short(word: &str, before: &str, next: &str) -> Option<&'static str> {
    if word.len() != SHORT_LETTERS || is_entry(SHORT, word) {
        return None;
    }
    let slips = slips(word);
    let asks = || asking(word).filter(|_| before.is_empty() && is_entry(BEHIND_ASKING, next));
    asks().or_else(|| entries(SHORT).find(|short| slips.contains(*short)))
}

/// Whether a word is a question word or a misspelt one.
fn asks(word: &str) -> bool {
    is_interrogative(word) || asking(&word.to_lowercase()).is_some()
}

fn asking(word: &str) -> Option<&'static str> {
    ASKING.iter().copied().find(|asking| strsim::osa_distance(word, asking) == 1)
}

/// The nearest word that occurs in the content; among equally near words, the one in most rows.
fn nearest<V: Vocabulary>(word: &str, vocabulary: &V) -> Result<Option<String>, V::Error> {
    let most = if word.chars().count() < TWO_EDITS_FROM { 1 } else { 2 };
    let mut near: Vec<(usize, String)> = Vec::new();
    for other in vocabulary.neighbours(word, most as u8)? {
        let letters = other.chars().count().abs_diff(word.chars().count());
        if letters > most || !other.chars().all(char::is_alphabetic) {
            continue;
        }
        let distance = strsim::osa_distance(word, &other);
        if (1..=most).contains(&distance) {
            near.push((distance, other));
        }
    }
    near.sort();
    near.dedup();
    for distance in 1..=most {
        let mut best: Option<(u64, String)> = None;
        for (_, other) in near.iter().filter(|(far, _)| *far == distance) {
            let rows = vocabulary.rows(other)?.unwrap_or(0);
            if rows > best.as_ref().map_or(0, |(most, _)| *most) {
                best = Some((rows, other.clone()));
            }
        }
        if let Some((_, word)) = best {
            return Ok(Some(word));
        }
    }
    Ok(None)
}

/// For a rare but known word: the only word of the content with one letter doubled or two letters
/// swapped. "sumer" is read as "summer" if only that occurs.
fn slip<V: Vocabulary>(word: &str, vocabulary: &V) -> Result<Option<String>, V::Error> {
    let edits = slips(word);
    let near: BTreeSet<_> = vocabulary.neighbours(word, 1)?.into_iter().collect();
    let mut found = Vec::new();
    for other in near.intersection(&edits) {
        if occurs(other, vocabulary)? {
            found.push(other.clone());
        }
    }
    Ok(found.pop().filter(|_| found.is_empty()))
}

/// Whether a word is known to occur in the content.
fn occurs<V: Vocabulary>(word: &str, vocabulary: &V) -> Result<bool, V::Error> {
    Ok(vocabulary.rows(word)?.is_some_and(|rows| rows > 0))
}

/// The only known word with one letter doubled or two letters swapped: "eror", "recieve". It need
/// not occur in the content, whose words may mean the same.
fn known(word: &str, is_word: impl Fn(&str) -> bool) -> Option<String> {
    let mut known = slips(word).into_iter().filter(|edit| is_word(edit));
    known.next().filter(|_| known.next().is_none())
}

/// Variants of a word with one letter doubled or two adjacent letters swapped; the first letter
/// stays in place. Empty for words that are not plain lower-case ASCII.
fn slips(word: &str) -> BTreeSet<String> {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return BTreeSet::new();
    }
    let doubled = (0..word.len()).map(|at| format!("{}{}", &word[..=at], &word[at..]));
    let turned = (1..word.len().saturating_sub(1)).map(|at| {
        format!("{}{}{}{}", &word[..at], &word[at + 1..at + 2], &word[at..=at], &word[at + 2..])
    });
    doubled.chain(turned).filter(|edit| edit != word).collect()
}

/// Splits a word into two words that occur in the content and were written as one.
fn parted<V: Vocabulary>(
    word: &str,
    is_word: impl Fn(&str) -> bool,
    vocabulary: &V,
) -> Result<Option<String>, V::Error> {
    let letters = word.chars().count();
    for (place, (at, _)) in word.char_indices().enumerate() {
        let (first, second) = word.split_at(at);
        let is_long = place >= PART_LETTERS_MIN && letters - place >= PART_LETTERS_MIN;
        if is_long
            && is_word(first)
            && is_word(second)
            && occurs(first, vocabulary)?
            && occurs(second, vocabulary)?
        {
            return Ok(Some(format!("{first} {second}")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_occurs_nowhere_may_be_known() {
        let is_word = |word: &str| ["error", "receive", "munchen", "lose", "loose"].contains(&word);
        assert_eq!(known("eror", is_word).as_deref(), Some("error"));
        assert_eq!(known("recieve", is_word).as_deref(), Some("receive"));
        assert_eq!(known("munched", is_word), None, "another letter");
        assert_eq!(known("\u{E9}ror", is_word), None);
    }

    const WORDS: &[(&str, u64)] = &[
        ("vaccine", 3),
        ("fridge", 2),
        ("alarm", 2),
        ("test", 4),
        ("responsible", 2),
        ("radiation", 1),
        ("protection", 1),
        ("consultation", 2),
        ("cash", 1),
        ("limit", 1),
        ("weather", 1),
        ("father", 1),
        ("solheim", 1),
        ("martin", 1),
        ("form", 2),
        ("farm", 9),
        // In the dictionary, but only in rows of other scopes.
        ("summer", 0),
    ];

    struct Few;

    impl Vocabulary for Few {
        type Error = std::convert::Infallible;

        fn rows(&self, word: &str) -> Result<Option<u64>, Self::Error> {
            Ok(Some(WORDS.iter().find(|(known, _)| *known == word).map_or(0, |(_, rows)| *rows)))
        }

        fn neighbours(&self, word: &str, _edits: u8) -> Result<Vec<String>, Self::Error> {
            let alike = WORDS.iter().filter(|(known, _)| known.as_bytes()[0] == word.as_bytes()[0]);
            Ok(alike.map(|(known, _)| (*known).to_owned()).collect())
        }
    }

    fn read(question: &str) -> String {
        let is_word = |word: &str| {
            matches!(
                word,
                "feather" | "cash" | "limit" | "test" | "tets" | "sumer" | "how" | "there"
            )
        };
        let is_listed = |word: &str| is_word(word) && !matches!(word, "tets" | "sumer");
        let found = corrections(question, (is_word, is_listed), &Few).unwrap();
        corrected(question, &found)
    }

    #[test]
    fn misspelt_words_are_read_as_the_nearest() {
        assert_eq!(read("vacine frige alram test when"), "vaccine fridge alarm test when");
        assert_eq!(
            read("Who is resposible for radation protction?"),
            "Who is responsible for radiation protection?"
        );
        assert_eq!(read("how mutch is a consultaton"), "how much is a consultation");
        assert_eq!(read("What is the cashlimit?"), "What is the cash limit?");
        assert_eq!(read("limt and teh tets"), "limit and the test", "a rare word, and a short one");
        assert_eq!(read("wen is teh test"), "when is the test");
        assert_eq!(read("wat dose a test limit"), "what does a test limit");
        assert_eq!(read("wich furm"), "which farm", "of equally near words the more frequent one");
    }

    #[test]
    fn what_is_right_or_not_a_word_stays() {
        for question in [
            "Whose feather is it?", "What does HV-2214 mean?", "Where is Marten?",
            "Is there a frm E3?", "the ALRAM of x2vacine", "zzzzzz qqqqqqqqqq", "a test in sumer",
            "a test in sumner",
        ] {
            assert_eq!(read(question), question);
        }
        assert_eq!(read("Where is Dr solhiem?"), "Where is Dr solheim?");
    }
}
