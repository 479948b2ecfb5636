//! Synonyms for words of a question: words of the same language from the lexicon, and abbreviations
//! that the texts themselves define.

use std::collections::BTreeSet;

use crate::relevance::inflections::forms;
use crate::text::abbreviations::abbreviations;
use crate::text::terms::terms;
use crate::text::words::{contains, spaced};
use crate::translation::Lexicon;
use lodestone_text::HybridQuery;
use lodestone_types::RetrievedChunk;
use unicode_segmentation::UnicodeSegmentation;

/// Number of letters in an abbreviation made of a title's initials.
const INITIALS: std::ops::RangeInclusive<usize> = 3..=6;

/// The terms that count for a question in a text: its own, and those of synonyms.
pub(crate) struct Lens<'q> {
    pub(crate) wanted: &'q BTreeSet<String>,
    synonyms: Synonyms,
}

impl<'q> Lens<'q> {
    /// Collects the synonyms for the `wanted` terms of a question; abbreviations are defined by the
    /// chunks.
    pub(crate) fn of(
        question: &str,
        wanted: &'q BTreeSet<String>,
        chunks: &[&RetrievedChunk],
    ) -> Self {
        let mut synonyms = Synonyms::of(question, wanted);
        synonyms.inflect(question, wanted);
        for chunk in chunks {
            synonyms.define(&chunk.text, wanted);
            synonyms.define_initials(&chunk.source.title, question, wanted);
        }
        Self { wanted, synonyms }
    }

    /// Drops synonyms for other terms than these, unless a text defines them.
    pub(crate) fn keep_for(&mut self, terms: &BTreeSet<String>) {
        self.synonyms.keep_for(terms);
    }

    /// The terms of a text that count for the question.
    pub(crate) fn in_text(&self, text: &str) -> BTreeSet<String> {
        let mut told = terms(text);
        told.retain(|term| self.wanted.contains(term) || self.synonyms.have(term));
        told
    }

    /// Maps terms found in a text to terms of the question: its own, and those that synonyms
    /// replace.
    pub(crate) fn known(&self, told: &BTreeSet<String>) -> BTreeSet<String> {
        let mut known = self.synonyms.held_by(told);
        known.extend(told.intersection(self.wanted).cloned());
        known
    }
}

/// The synonyms for terms of a question.
struct Synonyms(Vec<Synonym>);

/// A word or phrase of the question and a synonym for it, as terms.
struct Synonym {
    asked: BTreeSet<String>,
    other: BTreeSet<String>,
    /// Whether one of the retrieved texts defines it.
    is_defined: bool,
}

impl Synonyms {
    /// Looks up synonyms for the `wanted` terms of a question.
    fn of(question: &str, wanted: &BTreeSet<String>) -> Self {
        let lexicon = Lexicon::get();
        let Some(language) = lexicon.language_of(question) else { return Self(Vec::new()) };
        let mut found = Vec::new();
        for lexicon in [lexicon, Lexicon::synonyms()] {
            for unit in lexicon.units(question, language) {
                let mut asked = analysed(&question[unit.bytes]);
                asked.retain(|term| wanted.contains(term));
                if asked.is_empty() {
                    continue;
                }
                let concepts = unit.concepts.iter();
                let words = concepts.flat_map(|concept| lexicon.words(*concept, language));
                let others = words.map(analysed).filter(|other| other.is_disjoint(&asked));
                let synonym = |other| Synonym { asked: asked.clone(), other, is_defined: false };
                found.extend(others.map(synonym));
            }
        }
        Self(found)
    }

    /// Adds the other forms of irregular verbs, which serve like definitions.
    fn inflect(&mut self, question: &str, wanted: &BTreeSet<String>) {
        for (word, form) in forms(question) {
            let (asked, other) = (analysed(word), analysed(form));
            if asked.is_subset(wanted) && !other.is_subset(wanted) {
                self.0.push(Synonym { asked, other, is_defined: true });
            }
        }
    }

    /// Adds the abbreviations defined in a text, in both directions, and "version 2" for "v2".
    fn define(&mut self, text: &str, wanted: &BTreeSet<String>) {
        for version in wanted.iter().filter(|term| is_version(term)) {
            let long = format!("version {}", &version[1..]);
            if contains(&spaced(text), &long) {
                let asked = analysed(version).intersection(wanted).cloned().collect();
                self.0.push(Synonym { asked, other: analysed(&long), is_defined: true });
            }
        }
        for (short, long) in abbreviations(text) {
            let (short, long) = (analysed(short), analysed(long));
            for (asked, other) in [(&short, &long), (&long, &short)] {
                if asked.is_subset(wanted) && !other.is_subset(wanted) {
                    let (asked, other) = (asked.clone(), other.clone());
                    self.0.push(Synonym { asked, other, is_defined: true });
                }
            }
        }
    }

    /// Adds words of a title whose initials occur in the question: "Data-processing agreement" for
    /// "DPA".
    fn define_initials(&mut self, title: &str, question: &str, wanted: &BTreeSet<String>) {
        let words: Vec<&str> = title.unicode_words().collect();
        let is_short = |word: &&str| {
            INITIALS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
        };
        for short in question.unicode_words().filter(is_short) {
            let initials = |words: &[&str]| {
                words.iter().filter_map(|word| word.chars().next()).collect::<String>()
            };
            let is_meant = |words: &&[&str]| initials(words).eq_ignore_ascii_case(short);
            let Some(long) = words.windows(short.len()).find(is_meant) else { continue };
            let (asked, other) = (analysed(short), analysed(&long.join(" ")));
            if asked.is_subset(wanted) && !other.is_subset(wanted) {
                self.0.push(Synonym { asked, other, is_defined: true });
            }
        }
    }

    /// Drops synonyms for other terms than these, unless a text defines them.
    fn keep_for(&mut self, terms: &BTreeSet<String>) {
        self.0.retain(|one| one.is_defined || one.asked.is_subset(terms));
    }

    /// Whether a synonym contains the term.
    fn have(&self, term: &String) -> bool {
        self.0.iter().any(|one| one.other.contains(term))
    }

    /// The terms of the question for which a text has synonyms.
    fn held_by(&self, terms: &BTreeSet<String>) -> BTreeSet<String> {
        let held = self.0.iter().filter(|one| one.other.is_subset(terms));
        held.flat_map(|one| one.asked.iter().cloned()).collect()
    }
}

/// Whether a term is a version with its letter: "v2", "v1.4".
pub(crate) fn is_version(term: &str) -> bool {
    term.strip_prefix('v').is_some_and(|number| {
        number.starts_with(|c: char| c.is_ascii_digit())
            && number.ends_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

fn analysed(text: &str) -> BTreeSet<String> {
    HybridQuery::analyse(text).terms().iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_for_one_thing_are_known() {
        let question = "Is the turnstile broken on a holiday?";
        let synonyms = Synonyms::of(question, &terms(question));
        let held =
            |text: &str| -> Vec<String> { synonyms.held_by(&terms(text)).into_iter().collect() };
        assert_eq!(held("The gate is out of order."), ["broken"]);
        assert_eq!(held("Vacations are in May."), ["holiday"]);
        assert_eq!(held("Orders are taken."), [""; 0]);
    }

    #[test]
    fn the_initials_of_a_title_stand_for_it() {
        let question = "How much is a further day under the DPA?";
        let wanted = terms(question);
        let mut synonyms = Synonyms::of(question, &wanted);
        synonyms.define_initials("Data-processing agreement 2026", question, &wanted);
        synonyms.keep_for(&BTreeSet::new());
        let held = synonyms.held_by(&terms("The data-processing agreement"));
        assert_eq!(held.into_iter().collect::<Vec<_>>(), ["dpa"]);
    }

    #[test]
    fn an_abbreviation_stands_for_what_a_text_says_it_means() {
        let of = |question: &str, text: &str| -> Vec<String> {
            let wanted = terms(question);
            let mut synonyms = Synonyms::of(question, &wanted);
            synonyms.define("The standing committee on roads (SCR) meets in May.", &wanted);
            synonyms.keep_for(&BTreeSet::new());
            synonyms.held_by(&terms(text)).into_iter().collect()
        };
        assert_eq!(of("Who heads the SCR?", "Ada heads the standing committee on roads."), ["scr"]);
        assert_eq!(of("Who heads the SCR?", "Ada heads the committee."), [""; 0]);
        let held = of("Who heads the standing committee on roads?", "Ada heads the SCR.");
        assert!(held.contains(&"committe".to_owned()), "{held:?}");
    }
}
