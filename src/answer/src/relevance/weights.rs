//! Weights of a question's terms: how much each says about a passage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::candidates::Candidate;
use crate::question::wish::{Question, last_of};
use crate::rows::ranges::{is_spanned, range_holds, span_holds, terms_of_columns};
use crate::text::terms::{COMMON, is_common, question_terms, terms};
use crate::text::values::{days, weekdays};
use crate::text::words::{entries, is_entry, is_interrogative};
use crate::translation::{Concept, Language, Lexicon};
use lodestone_text::HybridQuery;

/// Words that state with a question word what kind of value is asked for, as in "at what time"; the
/// answer has the value in their place.
const MEASURES: &str = "\
    time|year|day|month|date|lange|uhr|zeit|jahr|tag|temps|heure|jour|année|tiempo|hora|día|año";
/// Maximum number of words from a question word to such a word.
const MEASURE_WORDS_MAX: usize = 2;
/// Marks between a word and one joined to it.
const APOSTROPHES: [char; 2] = ['\'', '\u{2019}'];
/// Share of the full weight for such a word, and for a part of a word such as `AdBlue` or `N2`.
const LIGHT_SHARE: f32 = 0.3;

/// The terms of a question that say what it is about.
pub(crate) fn matter(question: &Question) -> BTreeSet<String> {
    &wanted_terms(question) - &light_terms(question)
}

/// The terms of a question that weigh less: common words, and the parts of compound words and
/// codes.
pub(crate) fn light_terms(question: &Question) -> BTreeSet<String> {
    static COMMON_TERMS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let terms = entries(COMMON).flat_map(|word| HybridQuery::analyse(word).terms().to_vec());
        terms.collect()
    });
    let mut light = COMMON_TERMS.clone();
    light.extend(terms_of_form(&question.text));
    for word in question.text.unicode_words().filter(|word| !word.contains(APOSTROPHES)) {
        // The last term is the whole word.
        if let [parts @ .., _] = HybridQuery::analyse(word).terms() {
            light.extend(parts.iter().cloned());
        }
    }
    // Earlier questions only give the context; the last one tells what is asked.
    let last = last_of(&question.text);
    if last.len() < question.text.len() {
        light.extend(&terms(&question.text) - &terms(last));
    }
    light
}

/// The terms of words that give a question its form in its language: function words, kinds of
/// values, and words at least half of whose English translations are common, like "tener" for
/// "have".
fn terms_of_form(question: &str) -> BTreeSet<String> {
    let lexicon = Lexicon::get();
    let language = lexicon.language_of(question);
    let is_light = |concept: &Concept| lexicon.words(*concept, Language::English).any(is_common);
    let foreign = language.filter(|language| *language != Language::English);
    let units = foreign.map_or_else(Vec::new, |language| lexicon.units(question, language));
    let are_light = |concepts: &[Concept]| {
        concepts.iter().filter(|concept| is_light(concept)).count() * 2 >= concepts.len()
    };
    let common = units.into_iter().filter(|unit| are_light(&unit.concepts));
    let common = common.map(|unit| question[unit.bytes].to_owned());
    let words: Vec<String> = question.unicode_words().map(str::to_lowercase).collect();
    let is_form = |at: &usize| {
        let word = &words[*at];
        let before = &words[at.saturating_sub(MEASURE_WORDS_MAX)..*at];
        language.is_some_and(|language| language.is_function_word(word))
            || (is_entry(MEASURES, word) && before.iter().any(|one| is_interrogative(one)))
    };
    let form = (0..words.len()).filter(is_form).map(|at| words[at].clone());
    common.chain(form).flat_map(|word| HybridQuery::analyse(&word).terms().to_vec()).collect()
}

/// The terms of a question without its question words; a day counts as one term.
pub(crate) fn wanted_terms(question: &Question) -> BTreeSet<String> {
    let mut rest = String::new();
    let mut at = 0;
    for (bytes, day) in days(&question.text) {
        rest.push_str(&question.text[at..bytes.start]);
        // The year counts separately, because not every text repeats it.
        rest.extend(day.year.map(|year| format!(" {year} ")));
        at = bytes.end;
    }
    rest.push_str(&question.text[at..]);
    let mut terms: BTreeSet<String> = question_terms(&rest).terms().iter().cloned().collect();
    terms.extend(question.days.iter().filter_map(|day| day.terms().into_iter().next()));
    // "D'appel" is represented by its parts.
    for word in question.text.unicode_words().filter(|word| word.contains(APOSTROPHES)) {
        if let [_, .., whole] = HybridQuery::analyse(word).terms() {
            terms.remove(whole);
        }
    }
    // A weekday counts once, however it is written.
    for word in question.text.unicode_words().filter(|word| !weekdays(word).is_empty()) {
        HybridQuery::analyse(word).terms().iter().for_each(|term| {
            terms.remove(term);
        });
    }
    terms.extend(weekdays(&question.text));
    terms
}

/// The terms of the question that a candidate holds through a range: numbers and days within the
/// ranges of a row, or days within the spans of a sentence.
pub(crate) fn terms_of_ranges(question: &Question, candidate: &Candidate) -> Vec<String> {
    let mut held = Vec::new();
    if candidate.cells.is_empty() {
        let shown = candidate.shown();
        let spanned = question.days.iter().filter(|day| is_spanned(&shown, **day));
        return spanned.filter_map(|day| day.terms().into_iter().next()).collect();
    }
    held.extend(terms_of_columns(question, &candidate.cells));
    for one in &question.quantities {
        if range_holds(&candidate.cells, one) == Some(true) {
            held.extend(
                HybridQuery::analyse(&question.text[one.bytes.clone()]).terms().iter().cloned(),
            );
        }
    }
    for day in &question.days {
        if span_holds(&candidate.cells, *day) == Some(true) {
            held.extend(day.terms().into_iter().next());
        }
    }
    held
}

/// The question's terms with weights: a term that occurs in every passage says little.
pub(crate) struct Weights {
    terms: BTreeMap<String, f32>,
    sum: f32,
}

impl Weights {
    /// Weighs the `wanted` terms over the `sets` of terms of the candidates, `light` ones less.
    pub(crate) fn new<'s>(
        wanted: &BTreeSet<String>,
        light: &BTreeSet<String>,
        sets: impl Iterator<Item = &'s BTreeSet<String>> + Clone,
    ) -> Self {
        let total = sets.clone().count() as f32;
        let weighted = wanted.iter().map(|term| {
            let holding = sets.clone().filter(|set| set.contains(term)).count() as f32;
            // The inverse document frequency of BM25, over the candidates.
            let weight = (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln();
            let share = if light.contains(term) { LIGHT_SHARE } else { 1.0 };
            (term.clone(), weight * share)
        });
        let terms: BTreeMap<_, _> = weighted.collect();
        let sum = terms.values().sum();
        Self { terms, sum }
    }

    /// Share of the total weight held by these terms of the question.
    pub(crate) fn share<'t>(&self, held: impl Iterator<Item = &'t String>) -> f32 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        held.filter_map(|term| self.terms.get(term)).sum::<f32>() / self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_form_weigh_less() {
        let matter = |question: &str| -> Vec<String> {
            let question = Question::new(question);
            (&wanted_terms(&question) - &light_terms(&question)).into_iter().collect()
        };
        assert_eq!(matter("¿Cuántos gatos puedo tener?"), ["gato"]);
        assert_eq!(matter("À quelle heure ouvre le centre d'appels ?"), ["appel", "centr", "ouvr"]);
        assert_eq!(matter("Wie lange ist die Frist?"), ["frist"]);
        assert_eq!(matter("At what time does the market open?"), ["market", "open"]);
        assert_eq!(matter("How much time is left?"), ["left"]);
    }

    #[test]
    fn a_day_of_the_week_counts_once() {
        let wanted = wanted_terms(&Question::new("Who opens on Wednesday?"));
        assert_eq!(wanted.into_iter().collect::<Vec<_>>(), ["open", "weekday 2"]);
    }
}
