//! Text to terms: the same code for rows and for queries.

use std::collections::HashMap;
use std::ops::Range;

use frostem::{Algorithm, Stemmer};

use crate::identifier;
use crate::letters::Letters;
use crate::normal::fold_into;
use crate::split::{Piece, split};
use lodestone_types::script::{is_hangul, is_unspaced, is_unspaced_letter};

/// Maximum bytes of a term; longer words are truncated, in rows and queries alike.
const TERM_BYTES_MAX: usize = 255;

/// Maximum characters of an n-gram in a run without spaces.
const GRAM_CHARS_MAX: usize = 4;

/// Number of words whose stems an [`Analyser`] caches; at the limit it clears the cache.
const STEMS_REMEMBERED: usize = 1 << 16;

/// Common English words (Lucene's list), dropped from a query as long as other terms remain. They
/// stay in the index: idf gives them hardly any weight, and a query of nothing else ("to be or not
/// to be") still finds its text.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// Whether a term of the hybrid analysis is a common English word.
pub(super) fn is_stop_word(term: &str) -> bool {
    STOP_WORDS.binary_search(&term).is_ok()
}

/// The origin of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, or a part of one.
    Word,
    /// A piece of the previous word between punctuation inside it, at the same position (whole
    /// words).
    Piece,
    /// An n-gram of two to four characters in a run without spaces (hybrid).
    Gram,
    /// A run of one character (hybrid).
    Lone,
    /// The first character of a run (whole words).
    First,
    /// A later character of a run, directly after the previous term (whole words).
    Next,
}

/// One term of a text.
pub(super) struct Term<'a> {
    /// The analysed form.
    pub text: &'a str,
    /// Byte range in the normalised text.
    pub range: Range<usize>,
    /// Its origin.
    pub kind: Kind,
}

/// Produces terms; keeps its stem cache and buffers between texts.
pub(super) struct Analyser {
    stems: HashMap<Box<str>, Box<str>>,
    folded: String,
}

impl Clone for Analyser {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Analyser {
    pub(super) fn new() -> Self {
        Self { stems: HashMap::new(), folded: String::new() }
    }

    /// Produces the terms of the analysed fields from a text in NFKC: folded words, stemmed where
    /// their alphabet has a stemmer, plus the parts of identifiers and the n-grams of runs without
    /// spaces.
    pub(super) fn hybrid(&mut self, text: &str, mut each: impl FnMut(Term<'_>)) {
        split(
            text,
            |c| is_unspaced(c) || is_hangul(c),
            |piece| match piece {
                Piece::Word(word, range) => {
                    let word = cut(word);
                    identifier::parts(word, |part| {
                        let range = range.start + part.start..range.start + part.end;
                        self.word(&word[part], range, &mut each);
                    });
                    self.word(word, range, &mut each);
                }
                Piece::Run(run, range) => grams(run, range, &mut each),
            },
        );
    }

    /// Produces the terms of the whole-words field from a text in NFKC: folded words, each followed
    /// by its pieces if it has punctuation inside (`main.rs`); every character of a run without
    /// spaces, attached to the previous one.
    pub(super) fn whole(&mut self, text: &str, mut each: impl FnMut(Term<'_>)) {
        split(text, is_unspaced, |piece| match piece {
            Piece::Word(word, range) => {
                let word = cut(word);
                self.fold_to(word, range.clone(), Kind::Word, &mut each);
                identifier::pieces(word, |piece| {
                    let place = range.start + piece.start..range.start + piece.end;
                    self.fold_to(&word[piece], place, Kind::Piece, &mut each);
                });
            }
            Piece::Run(run, range) => {
                for (at, c) in run.char_indices() {
                    let start = range.start + at;
                    let range = start..start + c.len_utf8();
                    let kind = if at == 0 { Kind::First } else { Kind::Next };
                    each(Term { text: &run[at..at + c.len_utf8()], range, kind });
                }
            }
        });
    }

    fn fold_to(
        &mut self,
        word: &str,
        range: Range<usize>,
        kind: Kind,
        each: &mut impl FnMut(Term<'_>),
    ) {
        self.folded.clear();
        fold_into(word, &mut self.folded);
        if !self.folded.is_empty() {
            each(Term { text: &self.folded, range, kind });
        }
    }

    fn word(&mut self, word: &str, range: Range<usize>, each: &mut impl FnMut(Term<'_>)) {
        self.folded.clear();
        fold_into(word, &mut self.folded);
        let folded = self.folded.as_str();
        if folded.is_empty() {
            return;
        }
        let Some(letters) = Letters::of(folded) else {
            each(Term { text: folded, range, kind: Kind::Word });
            return;
        };
        if let Some(stem) = self.stems.get(folded) {
            each(Term { text: stem, range, kind: Kind::Word });
            return;
        }
        let stem = stemmer(letters).stem(folded);
        each(Term { text: &stem, range, kind: Kind::Word });
        if self.stems.len() >= STEMS_REMEMBERED {
            self.stems.clear();
        }
        self.stems.insert(folded.into(), stem.into());
    }
}

/// Returns the stemmer of an alphabet. Latin script is treated as English: other languages in it
/// lose a few endings, in rows and queries alike, while a stemmer chosen by a wrong guess of the
/// language would lose more.
fn stemmer(letters: Letters) -> Stemmer {
    Stemmer::new(match letters {
        Letters::Latin => Algorithm::English,
        Letters::Russian => Algorithm::Russian,
        Letters::Greek => Algorithm::Greek,
        Letters::Arabic => Algorithm::Arabic,
    })
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(TERM_BYTES_MAX)]
}

/// Produces the n-grams of a run without spaces: bigrams everywhere, and for alphabetic scripts
/// also three and four letters, because two letters are too unspecific. On paragraphs in an
/// alphabetic script with spaces removed, bigrams ranked the right one first for .52 of the
/// questions, two to four letters for .92; Chinese characters are words in themselves, and bigrams
/// do best there (.94 against .90).
fn grams(run: &str, range: Range<usize>, each: &mut impl FnMut(Term<'_>)) {
    let ends = |from: usize| run[from..].char_indices().map(move |(at, c)| (from + at, c));
    if run.chars().nth(1).is_none() {
        each(Term { text: run, range, kind: Kind::Lone });
        return;
    }
    for (start, _) in ends(0) {
        let mut is_of_letters = true;
        for (n, (at, c)) in ends(start).take(GRAM_CHARS_MAX).enumerate() {
            is_of_letters &= is_unspaced_letter(c);
            if n == 1 || (n > 1 && is_of_letters) {
                let end = at + c.len_utf8();
                let place = range.start + start..range.start + end;
                each(Term { text: &run[start..end], range: place, kind: Kind::Gram });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::nfkc;

    fn hybrid(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        Analyser::new().hybrid(&nfkc(text), |term| terms.push(term.text.to_owned()));
        terms
    }

    fn whole(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        Analyser::new().whole(&nfkc(text), |term| terms.push(term.text.to_owned()));
        terms
    }

    #[test]
    fn english_words_are_stemmed() {
        assert_eq!(hybrid("Running DOGS, connected!"), ["run", "dog", "connect"]);
        assert_eq!(hybrid("the company's plans"), ["the", "compani", "plan"]);
        assert_eq!(whole("Running DOGS, connected!"), ["running", "dogs", "connected"]);
    }

    #[test]
    fn stop_words_are_sorted_and_their_own_stems() {
        assert!(STOP_WORDS.is_sorted());
        for word in STOP_WORDS {
            assert_eq!(hybrid(word), [word]);
            assert!(is_stop_word(word));
        }
        assert!(!is_stop_word("compani"));
    }

    #[test]
    fn identifiers_are_kept_whole_and_in_parts() {
        assert_eq!(hybrid("getUserName()"), ["get", "user", "name", "getusernam"]);
        assert_eq!(hybrid("max_chunks"), ["max", "chunk", "max_chunks"]);
        assert_eq!(hybrid("kebab-case"), ["kebab", "case"]);
        assert_eq!(whole("getUserName max_chunks"), ["getusername", "max_chunks"]);
    }

    #[test]
    fn whole_words_have_their_pieces_beside_them() {
        assert_eq!(whole("src/Main.rs:12"), ["src", "main.rs", "main", "rs", "12"]);
        assert_eq!(whole("Status:urgent"), ["status:urgent", "status", "urgent"]);
        assert_eq!(whole("don't e.g. 3.14 it"), ["don't", "e.g", "3.14", "it"]);
    }

    #[test]
    fn runs_without_spaces_become_bigrams() {
        let text = "机器学习";
        assert_eq!(hybrid(text), ["机器", "器学", "学习"]);
        assert_eq!(hybrid("a机b"), ["a", "机", "b"]);
        assert_eq!(whole(text).len(), 4);
        assert_eq!(hybrid("학교에").len(), 2);
        assert_eq!(whole("학교에 가").len(), 2);
        assert_eq!(whole("การ").len(), 3);
        assert_eq!(hybrid("แมวดี"), ["แม", "แมว", "แมวด", "มว", "มวด", "มวดี", "วด", "วดี", "ดี"]);
    }

    #[test]
    fn marks_stay_with_their_letters() {
        let hindi = "हिन्दी भाषा";
        let words: Vec<_> = hindi.split(' ').collect();
        assert_eq!(hybrid(hindi), words);
        assert_eq!(whole(hindi), words);
    }

    #[test]
    fn letters_choose_the_stemmer() {
        let moscow = ["МОСКВА", "москве"];
        assert_eq!(hybrid(moscow[0]), hybrid(moscow[1]));
        assert_eq!(whole(moscow[0]), ["москва"]);
        // Ukrainian has a letter that Russian lacks: folded only.
        let kyiv = "київа";
        assert_eq!(hybrid(kyiv), [kyiv]);
        assert_eq!(whole("Straße MÜLLER"), ["strasse", "müller"]);
        assert_eq!(hybrid("gpt4"), ["gpt", "4", "gpt4"]);
    }

    #[test]
    fn a_blob_is_cut_and_nothing_yields_nothing() {
        let blob = "x".repeat(100_000);
        assert_eq!(whole(&blob), ["x".repeat(TERM_BYTES_MAX)]);
        assert_eq!(hybrid(" ?! -- \n"), Vec::<String>::new());
        assert_eq!(whole(""), Vec::<String>::new());
    }
}
