//! The first sentences of a text, in which documents state what they are and from when they apply.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::dates::{self, Dated};
use crate::text::sentences::pieces;
use crate::text::words::{EDITIONS, begins_with, contains_any, entries, is_entry, spaced};
use crate::versions::notices::{OF_DOCUMENT, numbers};
use crate::versions::withdrawals::{Ended, is_ending};

/// Characters at the beginning of a text that may state what is in force.
const HEAD_CHARS: usize = 400;
/// Maximum number of sentences taken from them.
const HEAD_SENTENCES: usize = 6;
/// Maximum number of words in a remark on the edition.
const REMARK_WORDS_MAX: usize = 8;

/// Words of sentences about earlier editions, and words by which a document refers to itself.
const OLDER: &str = "\
    earlier|previous|prior|older|former|preceding|all other|frühere|früheren|bisherige|bisherigen|\
    ältere|älteren|antérieure|antérieures|précédente|précédentes|anterior|anteriores";
/// Phrases of a document that is in force until that happens.
const UNTIL_THEN: &str = "\
    until withdrawn|till withdrawn|unless withdrawn|until revoked|unless revoked|until superseded|\
    unless superseded|until it is withdrawn|until they are withdrawn|until withdrawal|\
    bis auf widerruf|bis zum widerruf|jusqu'à révocation";
const ITSELF: &str = "this|dieses|diese|cette|esta";
/// Phrases before the day from which a document is in force.
pub(super) const FROM: &str = "\
    valid from|effective from|effective|in force from|in force since|applies from|applies since|\
    rules as of|as of|with effect from|gültig ab|gilt ab|in kraft seit|en vigueur|à partir du|\
    à compter du|válido desde|vigente desde|a partir del|stand";
/// Phrases before the day until which it is in force.
pub(super) const UNTIL: &str = "\
    valid until|valid to|valid till|expires|expired on|gültig bis|valable jusqu'au|válido hasta";
/// Phrases that name a replaced document.
const REPLACES: &str = "replaces|supersedes|ersetzt|remplace|sustituye a|reemplaza a";

/// The first sentences of a text.
pub(super) struct Head {
    pub(super) sentences: Vec<String>,
}

impl Head {
    pub(super) fn of(text: &str) -> Self {
        let end = text.char_indices().nth(HEAD_CHARS).map_or(text.len(), |(at, _)| at);
        let lines = text[..end].split(['\n', ';']);
        let pieces = lines.flat_map(|line| pieces(line).into_iter().map(|piece| &line[piece]));
        let pieces = pieces.filter(|piece| piece.contains(char::is_alphanumeric));
        Self { sentences: pieces.take(HEAD_SENTENCES).map(str::to_owned).collect() }
    }

    /// Whether a sentence uses a phrase of `list` about the document itself. Sentences about
    /// earlier editions do not count, nor do those that are of others or have a day before `begun`,
    /// the document's own.
    pub(super) fn says_of_itself(
        &self,
        list: &str,
        begun: Option<Dated>,
        is_of_other: impl Fn(&str) -> bool,
    ) -> bool {
        let is_of_older = |sentence: &&String| {
            let dated = dates::first(sentence);
            let words = spaced(sentence);
            (contains_any(&words, OLDER) && !contains_any(&words, ITSELF))
                || dated.zip(begun).is_some_and(|(dated, begun)| dated.day < begun.day)
        };
        let own = self.sentences.iter().filter(|one| !is_of_older(one) && !is_of_other(one));
        let without_end =
            |said: String| entries(UNTIL_THEN).fold(said, |said, then| said.replace(then, ""));
        own.map(|sentence| without_end(spaced(sentence))).any(|sentence| {
            let begins = begins_with(&sentence, list);
            begins
                || (contains_any(&sentence, list)
                    && contains_any(&sentence, OF_DOCUMENT)
                    && !contains_any(&sentence, REPLACES))
        })
    }

    pub(super) fn version(&self) -> Vec<u32> {
        let of = |sentence: &String| {
            let before = REPLACES.split('|').filter_map(|word| sentence.find(word)).min();
            numbers(&format!("{} ", &sentence[..before.unwrap_or(sentence.len())]))
        };
        self.sentences.iter().map(of).find(|version| !version.is_empty()).unwrap_or_default()
    }

    /// The day after one of the phrases.
    pub(super) fn behind(&self, phrases: &str) -> Option<Dated> {
        self.sentences.iter().find_map(|sentence| {
            let lower = sentence.to_lowercase();
            let places = entries(phrases)
                .filter_map(|phrase| lower.find(phrase).map(|at| at + phrase.len()));
            // The capital of "May" is needed to read it as a month; the original text serves only
            // if lower-casing kept its length.
            let written = if lower.len() == sentence.len() { sentence } else { &lower };
            let rest = written.get(places.min()?..)?;
            dates::first(&rest.chars().take(40).collect::<String>())
        })
    }

    /// The first day mentioned in these sentences.
    pub(super) fn any(&self) -> Option<Dated> {
        self.sentences.iter().find_map(|sentence| dates::first(sentence))
    }

    /// The first sentence, which often is the title.
    pub(super) fn first(&self) -> &str {
        self.sentences.first().map_or("", String::as_str)
    }

    /// The documents that sentences about something no longer in force name by their codes.
    pub(super) fn ends(&self) -> Vec<Ended> {
        let is_one =
            |sentence: &&String| is_ending(sentence) || contains_any(&spaced(sentence), REPLACES);
        self.sentences.iter().filter(is_one).flat_map(|one| Ended::in_sentence(one)).collect()
    }

    pub(super) fn replaces(&self) -> String {
        let sentences = self.sentences.iter().map(|sentence| spaced(sentence));
        let behind = sentences.filter_map(|sentence| {
            let places = entries(REPLACES).filter_map(|word| sentence.find(&format!(" {word} ")));
            places.min().map(|at| sentence[at..].to_owned())
        });
        behind.collect()
    }
}

/// Whether a text only says which edition it belongs to: "Edition 2025, valid until withdrawn."
pub(crate) fn is_remark_on_edition(text: &str) -> bool {
    let is_short = text.unicode_words().nth(REMARK_WORDS_MAX).is_none();
    let mut words = text.unicode_words().map(str::to_lowercase);
    let is_named = words.next().is_some_and(|word| is_entry(EDITIONS, &word));
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    is_short && is_named && words.next().as_ref().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_on_editions_are_seen() {
        for text in ["Edition 2025, valid until withdrawn.", "Version 2.1, for all staff"] {
            assert!(is_remark_on_edition(text), "{text}");
        }
        for text in ["Edition of 4 May", "Version 2 of the pump is louder than 3 others of it"] {
            assert!(!is_remark_on_edition(text), "{text}");
        }
    }
}
