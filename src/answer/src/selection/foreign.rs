//! Passages in other languages, rendered in words of the question's language: they are judged by
//! this rendering and shown as written in the document.

use std::sync::Arc;

use crate::passages::candidates::{Candidate, Part, Reading};
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::translation::{Gloss, Language, Lexicon};
use lodestone_types::RetrievedChunk;

/// Confidence that a passage in another language needs; one in the question's language needs 1.
const CONFIDENCE_MIN: f32 = 1.1;
/// Confidence that such a passage needs if a name from the question occurs neither in its chunk nor
/// in the title.
const NAMELESS_CONFIDENCE_MIN: f32 = 1.4;
/// Words of the question's matter that such a passage must hold; all of them if there are fewer.
const WORDS_MIN: usize = 2;
/// An answer in the question's language that holds at least this share of the question stands.
const HELD_ENOUGH: f32 = 0.5;
/// Lead in confidence needed over an answer that holds less.
const LEAD_MIN: f32 = 0.2;
/// Leads in words and in the share of the question needed over an answer of about equal confidence.
const WORDS_LEAD_MIN: usize = 2;
const HELD_LEAD_MIN: f32 = 0.25;
const CONFIDENCE_DROP_MAX: f32 = 0.1;

/// Strength of the best passage of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Strength {
    /// Confidence that the passage answers.
    confidence: f32,
    /// Share of the question's terms that the passage holds.
    held: f32,
    /// Words of the question's matter that the passage and its headings hold, and their number in
    /// the question.
    words: usize,
    words_asked: usize,
}

impl Strength {
    /// Measures the strength of the candidate at position `at`.
    pub(crate) fn of(choice: &Choice<'_>, at: usize) -> Self {
        let matter = &wanted_terms(choice.question) - &light_terms(choice.question);
        let (own, above) = (&choice.matches.own[at], &choice.matches.above[at]);
        Self {
            confidence: choice.scores[at].confidence(&choice.evidence),
            held: choice.scores[at].overlap,
            words: matter.intersection(&(own | above)).count(),
            words_asked: matter.len(),
        }
    }

    /// Whether the strength suffices for a passage in another language than the question's.
    pub(crate) fn is_enough_of_foreign(&self, lacks_name: bool) -> bool {
        let needed = if lacks_name { NAMELESS_CONFIDENCE_MIN } else { CONFIDENCE_MIN };
        self.confidence >= needed && self.words >= WORDS_MIN.min(self.words_asked)
    }

    /// Whether an answer in the question's language covers so little that it may be wrong.
    pub fn is_weak(&self) -> bool {
        self.held < HELD_ENOUGH
    }

    /// Whether it clearly exceeds another strength: by confidence, or by covering far more of the
    /// question.
    pub fn leads(&self, other: &Self) -> bool {
        let is_surer = self.confidence >= other.confidence + LEAD_MIN && self.held > other.held;
        let says_more = self.words >= other.words + WORDS_LEAD_MIN
            && self.held >= other.held + HELD_LEAD_MIN
            && self.confidence >= other.confidence - CONFIDENCE_DROP_MAX;
        is_surer || says_more
    }
}

/// The language of each chunk, and the gloss that translates words into the question's language.
pub(crate) struct Glossary<'g> {
    gloss: &'g Gloss,
    languages: Vec<Language>,
}

impl<'g> Glossary<'g> {
    /// Detects the languages of `chunks`. A chunk whose language is not recognised gets that of its
    /// source's first chunk, else the question's.
    pub(crate) fn new(gloss: &'g Gloss, chunks: &[&RetrievedChunk]) -> Self {
        let told = |chunk: &RetrievedChunk| Lexicon::get().language_of(&chunk.text);
        let languages: Vec<Option<Language>> = chunks.iter().map(|chunk| told(chunk)).collect();
        let of_source = |chunk: &RetrievedChunk| {
            let is_same = |other: &&RetrievedChunk| other.source.id == chunk.source.id;
            let first = chunks.iter().position(is_same);
            first.and_then(|first| languages[first]).unwrap_or(gloss.language())
        };
        let languages = languages.iter().zip(chunks);
        let languages = languages.map(|(told, chunk)| told.unwrap_or_else(|| of_source(chunk)));
        Self { gloss, languages: languages.collect() }
    }

    /// The language of a chunk.
    pub(crate) fn language_of(&self, chunk: usize) -> Language {
        self.languages[chunk]
    }

    /// The chunks with text and title in words of the question's language.
    pub(crate) fn chunks(&self, chunks: &[&RetrievedChunk]) -> Vec<RetrievedChunk> {
        let glossed = |(chunk, language): (&&RetrievedChunk, &Language)| {
            let mut glossed = (*chunk).clone();
            let mut source = (*chunk.source).clone();
            source.title = self.gloss.text(&source.title, *language).into_owned();
            glossed.text = self.gloss.text(&glossed.text, *language).into_owned();
            glossed.source = Arc::new(source);
            glossed
        };
        chunks.iter().zip(&self.languages).map(glossed).collect()
    }

    /// Rewrites the passages in words of the question's language; the positions of their parts
    /// stay.
    pub(crate) fn reading(&self, mut reading: Reading) -> Reading {
        for candidate in &mut reading.candidates {
            self.change(candidate);
        }
        reading
    }

    fn change(&self, candidate: &mut Candidate) {
        let language = self.languages[candidate.hit];
        let change = |text: &mut String| *text = self.gloss.text(text, language).into_owned();
        candidate.parts.iter_mut().for_each(|part| change(&mut part.shown));
        for cell in &mut candidate.cells {
            change(&mut cell.name);
            change(&mut cell.value);
        }
        change(&mut candidate.compared);
        change(&mut candidate.lead);
        change(&mut candidate.heading);
        change(&mut candidate.context);
    }
}

/// Maps chosen parts back to their original wording; `written` holds all parts that were read.
pub(crate) fn as_written(chosen: &[Part], written: &[Part]) -> Vec<Part> {
    let original = |part: &Part| {
        let is_same = |other: &&Part| {
            (other.chunk, &other.chars, &other.head, &other.document_chars)
                == (part.chunk, &part.chars, &part.head, &part.document_chars)
        };
        written.iter().find(is_same).expect("a part that was read").clone()
    };
    chosen.iter().map(original).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_language_needs_more_than_one_word_and_more_confidence() {
        let strength =
            |confidence, held, words| Strength { confidence, held, words, words_asked: 3 };
        assert!(strength(1.2, 0.5, 2).is_enough_of_foreign(false));
        assert!(!strength(1.2, 0.5, 2).is_enough_of_foreign(true));
        assert!(strength(1.5, 0.5, 2).is_enough_of_foreign(true));
        assert!(!strength(1.2, 0.5, 1).is_enough_of_foreign(false));
        assert!(!strength(1.05, 0.9, 3).is_enough_of_foreign(false));
        assert!(Strength { words_asked: 1, ..strength(1.2, 0.5, 1) }.is_enough_of_foreign(false));
    }

    #[test]
    fn an_answer_in_the_own_language_yields_to_a_far_stronger_one() {
        let strength =
            |confidence, held, words| Strength { confidence, held, words, words_asked: 3 };
        let own = strength(1.2, 0.3, 1);
        assert!(own.is_weak() && !strength(1.0, 0.5, 1).is_weak());
        assert!(strength(1.5, 0.4, 1).leads(&own), "surer");
        assert!(strength(1.2, 0.7, 3).leads(&own), "says more");
        assert!(!strength(1.3, 0.4, 2).leads(&own));
        assert!(!strength(1.5, 0.2, 3).leads(&own));
    }
}
