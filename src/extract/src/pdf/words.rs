//! The words of a document, used to decide whether a hyphen at a line end belongs to a word.

use std::collections::HashSet;

use crate::pdf::pieces::Piece;

/// Minimum letters of each part of a compound: shorter parts may be syllables.
const PART_LETTERS_MIN: usize = 4;

/// Lowercase words from within lines.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Words with a hyphen.
    compounds: HashSet<String>,
    /// Words without a hyphen.
    plain: HashSet<String>,
}

impl Words {
    /// The words of all pieces. The first and last word of a piece may be incomplete.
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

    /// Whether a lowercase word is written with its hyphen: it occurs so elsewhere in the document,
    /// or both parts occur but not the joined word.
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
