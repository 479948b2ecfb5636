//! Terms: those of a question and those of a text, and how much each of the question's tells.
//!
//! Terms are analysed words, days and days of the week.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::candidates::Candidate;
use crate::answer::question::Question;
use crate::answer::sentences::sentences;
use crate::answer::sources::question_terms;
use crate::answer::values::{days, range_holds, span_holds, weekdays};
use lodestone_text::HybridQuery;

/// The terms of a question without its question words; a day as one term.
pub(super) fn wanted_terms(question: &Question) -> BTreeSet<String> {
    let mut rest = String::new();
    let mut at = 0;
    for (bytes, day) in days(&question.text) {
        rest.push_str(&question.text[at..bytes.start]);
        // The year counts by itself, for not every text repeats it.
        rest.extend(day.year.map(|year| format!(" {year} ")));
        at = bytes.end;
    }
    rest.push_str(&question.text[at..]);
    let mut terms: BTreeSet<String> = question_terms(&rest).terms().iter().cloned().collect();
    terms.extend(question.days.iter().filter_map(|day| day.terms().into_iter().next()));
    terms.extend(weekdays(&question.text));
    terms
}

/// The terms of the question that a row holds by a range: the number inside, the day inside.
pub(super) fn terms_of_ranges(question: &Question, candidate: &Candidate) -> Vec<String> {
    let mut held = Vec::new();
    if candidate.cells.is_empty() {
        return held;
    }
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

/// The analysed terms of a text, and the days in it. A query keeps at most 256 terms, so long texts
/// go in pieces.
pub(super) fn terms(text: &str) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for line in sentences(text) {
        set.extend(HybridQuery::analyse(&text[line.bytes]).terms().iter().cloned());
    }
    set.extend(days(text).into_iter().flat_map(|(_, day)| day.terms()));
    set.extend(weekdays(text));
    set
}

/// The question's terms with their weights: a term that stands in every passage tells little.
pub(super) struct Weights {
    terms: BTreeMap<String, f32>,
    sum: f32,
}

impl Weights {
    /// Of `wanted`, weighed over the candidates' `sets`.
    pub(super) fn new<'s>(
        wanted: &BTreeSet<String>,
        sets: impl Iterator<Item = &'s BTreeSet<String>> + Clone,
    ) -> Self {
        let total = sets.clone().count() as f32;
        let weighted = wanted.iter().map(|term| {
            let holding = sets.clone().filter(|set| set.contains(term)).count() as f32;
            // The inverse document frequency of BM25, over the candidates.
            let weight = (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln();
            (term.clone(), weight)
        });
        let terms: BTreeMap<_, _> = weighted.collect();
        let sum = terms.values().sum();
        Self { terms, sum }
    }

    /// Share of the weight that these terms of the question have.
    pub(super) fn share<'t>(&self, held: impl Iterator<Item = &'t String>) -> f32 {
        if self.sum <= 0.0 {
            return 0.0;
        }
        held.filter_map(|term| self.terms.get(term)).sum::<f32>() / self.sum
    }
}
