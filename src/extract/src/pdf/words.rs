//! The words of a document, which say whether a hyphen at the end of a line belongs to one.

use std::collections::HashSet;

use crate::pdf::pieces::Piece;

/// Letters of a part of a compound: shorter ones are syllables as often as words.
const PART_LETTERS_MIN: usize = 4;

/// Words that stand inside of lines, in lower case.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// With a hyphen between two letters.
    compounds: HashSet<String>,
    /// Without.
    plain: HashSet<String>,
}

impl Words {
    /// The words of all pieces. The first and the last of a piece may be parts of one.
    pub(super) fn of_pieces<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Self {
        let mut words = Self::default();
        for piece in pieces {
            words.add(&piece.text);
        }
        words
    }

    fn add(&mut self, text: &str) {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
        for word in words.skip(usize::from(text.starts_with(char::is_lowercase))) {
            let word = word.trim_start_matches('-');
            if word.is_empty() || word.ends_with('-') {
                continue;
            }
            let word = word.to_lowercase();
            if word.contains('-') {
                self.plain.extend(word.split('-').map(str::to_owned));
                self.compounds.insert(word);
            } else {
                self.plain.insert(word);
            }
        }
    }

    /// Whether a word with a hyphen, in lower case, is written with it: the document does so
    /// elsewhere, or it knows both parts and not what they make together.
    pub(super) fn has_compound(&self, word: &str) -> bool {
        if self.compounds.contains(word) {
            return true;
        }
        let is_word =
            |part: &str| part.chars().count() >= PART_LETTERS_MIN && self.plain.contains(part);
        !self.plain.contains(&word.replace('-', "")) && word.split('-').all(is_word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_stay_where_the_document_writes_them() {
        let mut words = Words::default();
        words.add("A well-known cross section, one dimensional; the informa-");
        words.add("For high or low, under the standing understanding, in formation");
        words.add("ally of a fragment, exception");
        let kept = ["well-known", "cross-section", "high-dimensional"];
        assert!(kept.iter().all(|word| words.has_compound(word)));
        let joined =
            ["informa-tion", "in-formation", "under-standing", "low-dimen", "exception-ally"];
        assert!(!joined.iter().any(|word| words.has_compound(word)));
    }
}
