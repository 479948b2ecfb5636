//! Words of a question and those of its language that mean the same, by the lexicon.

use std::collections::BTreeSet;

use crate::translation::Lexicon;
use lodestone_text::HybridQuery;

/// The terms of a question that other words stand for.
pub(super) struct Synonyms(Vec<Synonym>);

/// A word or phrase of the question, and another one, in terms.
struct Synonym {
    asked: BTreeSet<String>,
    other: BTreeSet<String>,
}

impl Synonyms {
    /// Those of the `wanted` terms of a question.
    pub(super) fn of(question: &str, wanted: &BTreeSet<String>) -> Self {
        let lexicon = Lexicon::get();
        let Some(language) = lexicon.language_of(question) else { return Self(Vec::new()) };
        let analysed = |text: &str| -> BTreeSet<String> {
            HybridQuery::analyse(text).terms().iter().cloned().collect()
        };
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
                found.extend(others.map(|other| Synonym { asked: asked.clone(), other }));
            }
        }
        Self(found)
    }

    /// Leaves out those of other terms than these.
    pub(super) fn keep_for(&mut self, terms: &BTreeSet<String>) {
        self.0.retain(|one| one.asked.is_subset(terms));
    }

    /// Whether one of them has the term.
    pub(super) fn have(&self, term: &String) -> bool {
        self.0.iter().any(|one| one.other.contains(term))
    }

    /// The terms of the question for which a text has others that mean the same.
    pub(super) fn held_by(&self, terms: &BTreeSet<String>) -> BTreeSet<String> {
        let held = self.0.iter().filter(|one| one.other.is_subset(terms));
        held.flat_map(|one| one.asked.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::terms::terms;

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
}
