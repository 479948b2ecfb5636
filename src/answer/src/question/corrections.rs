//! Misspelt words of a question, by rule: which may be misspelt, and what each may mean.
//!
//! A word is read as another one only if it occurs nowhere in what is searched and neither the
//! model nor the lexicon of the question's language knows it: a rare word that is right stays, and
//! so does a question in another language than what is searched. Numbers, codes and short names
//! stay too.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::qualities::Quality;
use crate::text::words::{entries, is_entry, is_interrogative};

/// Words of a question that are looked at.
const WORDS_MAX: usize = 32;
/// Letters of a word that may be misspelt.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=40;
/// Letters from which a word may differ by two edits; a shorter one by one. As Lucene's
/// `fuzziness: AUTO` has it, but for words of three letters, most of which have a neighbour.
const TWO_EDITS_FROM: usize = 8;
/// Letters from which a capitalised word inside a question may be misspelt: short names have
/// neighbours that are other names.
const NAME_LETTERS_MIN: usize = 8;
/// Letters of each part of two words that were joined.
const PART_LETTERS_MIN: usize = 3;
/// The first letter of an alphabet that is not looked at; Latin, Greek and Cyrillic are before it.
const LETTERS_END: u32 = 0x530;

/// Question words that are often misspelt; they need not occur in documents.
const ASKING: &[&str] = &[
    "which", "what", "where", "when", "whose", "much", "many", "does", "should", "would", "could",
    "have", "welche", "wieviel", "warum", "combien", "pourquoi", "quand", "cuánto", "cuándo",
    "dónde",
];

/// Words of three letters of which two may be turned: "teh".
const SHORT: &str = "the|and|for|are|you|how|who|not|can|has|was|our|any|all|out|may";
const SHORT_LETTERS: usize = 3;
/// Verbs behind the first word of a question.
const BEHIND_ASKING: &str = "is|are|was|were|do|does|dose|did|can|may|must|will|has|have|should";
/// A word, and the one that it is meant as behind a question word.
const DOES: (&str, &str) = ("dose", "does");

/// A word of a question that was read as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// As it was written.
    pub from: String,
    /// As it was read.
    pub to: String,
}

/// Knowledge of the words in reach.
pub trait Vocabulary {
    /// Why it cannot be asked.
    type Error;

    /// Rows that hold a word in some inflection.
    fn rows(&self, word: &str) -> Result<u64, Self::Error>;

    /// Words that may be meant by another: those that begin with its first letter.
    fn neighbours(&self, word: &str) -> Result<Vec<String>, Self::Error>;
}

/// The corrections of a question, in its order. `is_word` says whether a word is known as one, and
/// `is_listed` whether the lexicon knows it: the model knows rare ones too.
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
        if is_known || !may_be || vocabulary.rows(&lower)? > 0 {
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

/// The question as it is read.
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

/// The word that a short one is meant as: a first one before a verb of a question, "wen is the
/// fair", and one with two letters turned, "teh".
fn short(word: &str, before: &str, next: &str) -> Option<&'static str> {
    if word.len() != SHORT_LETTERS || is_entry(SHORT, word) {
        return None;
    }
    let slips = slips(word);
    let asks = || asking(word).filter(|_| before.is_empty() && is_entry(BEHIND_ASKING, next));
    asks().or_else(|| entries(SHORT).find(|short| slips.contains(*short)))
}

/// Whether a word asks, or is one that does, misspelt.
fn asks(word: &str) -> bool {
    is_interrogative(word) || asking(&word.to_lowercase()).is_some()
}

fn asking(word: &str) -> Option<&'static str> {
    ASKING.iter().copied().find(|asking| strsim::osa_distance(word, asking) == 1)
}

/// The nearest word that occurs; of equally near ones the one in most rows.
fn nearest<V: Vocabulary>(word: &str, vocabulary: &V) -> Result<Option<String>, V::Error> {
    let most = if word.chars().count() < TWO_EDITS_FROM { 1 } else { 2 };
    let mut near: Vec<(usize, String)> = Vec::new();
    for other in vocabulary.neighbours(word)? {
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
            let rows = vocabulary.rows(other)?;
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

/// The only word that occurs and has a letter twice, or two letters the other way round: "sumer",
/// a rare word that is meant as "summer" where nothing says the rare one.
fn slip<V: Vocabulary>(word: &str, vocabulary: &V) -> Result<Option<String>, V::Error> {
    let edits = slips(word);
    let mut found = vocabulary.neighbours(word)?;
    found.retain(|other| edits.contains(other));
    found.dedup();
    Ok(found.pop().filter(|_| found.is_empty()))
}

/// The only known word that has a letter twice, or two letters the other way round: "eror",
/// "recieve". It need not occur in what is searched, whose words may mean the same.
fn known(word: &str, is_word: impl Fn(&str) -> bool) -> Option<String> {
    let mut known = slips(word).into_iter().filter(|edit| is_word(edit));
    known.next().filter(|_| known.next().is_none())
}

/// A word with each letter twice, and with each two letters the other way round.
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

/// Two words that occur and were written as one.
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
            && vocabulary.rows(first)? > 0
            && vocabulary.rows(second)? > 0
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
    ];

    struct Few;

    impl Vocabulary for Few {
        type Error = std::convert::Infallible;

        fn rows(&self, word: &str) -> Result<u64, Self::Error> {
            Ok(WORDS.iter().find(|(known, _)| *known == word).map_or(0, |(_, rows)| *rows))
        }

        fn neighbours(&self, word: &str) -> Result<Vec<String>, Self::Error> {
            let alike = WORDS.iter().filter(|(known, _)| known.as_bytes()[0] == word.as_bytes()[0]);
            Ok(alike.map(|(known, _)| (*known).to_owned()).collect())
        }
    }

    fn read(question: &str) -> String {
        let is_word = |word: &str| {
            matches!(word, "feather" | "cash" | "limit" | "test" | "tets" | "how" | "there")
        };
        let is_listed = |word: &str| is_word(word) && word != "tets";
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
            "Is there a frm E3?", "the ALRAM of x2vacine", "zzzzzz qqqqqqqqqq",
        ] {
            assert_eq!(read(question), question);
        }
        assert_eq!(read("Where is Dr solhiem?"), "Where is Dr solheim?");
    }
}
