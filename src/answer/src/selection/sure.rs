//! The first passage of an answer if its confidence suffices, or a substitute for it.

use crate::passages::blocks::Cell;
use crate::passages::candidates::Shape;
use crate::question::named::{CODE_MALUS, Named, names};
use crate::question::phrases::BEFORE_NOUN;
use crate::question::wish::Wanted;
use crate::relevance::causes::is_labelled_cause;
use crate::relevance::weights::matter;
use crate::selection::choose::Choice;
use crate::selection::rows::COMPUTED_CONFIDENCE_MIN;
use crate::text::words::{contains, entries, spaced};

/// Maximum drop in relevance of a passage that has a code from the question which the first one
/// lacks.
const NAMED_DROP_MAX: f32 = 0.25;
/// Maximum drop in relevance of a passage that holds the requested measure where the first one does
/// not, and the number of words of the question's matter that it must hold.
const MEASURED_DROP_MAX: f32 = 0.3;
const MEASURED_WORDS_MIN: usize = 2;
/// Difference in judgement up to which one word suffices.
const SAME_DROP_MAX: f32 = 0.05;
/// Maximum drop in relevance of a row of the things whose extreme is asked for.
const EXTREME_DROP_MAX: f32 = 0.4;

impl Choice<'_> {
    /// Returns the first passage if its confidence suffices. Otherwise returns a confident passage
    /// that holds the extreme, measure or code of the question that the first one lacks, if there
    /// is one.
    pub(crate) fn of_what_is_named(&self, first: usize) -> Option<usize> {
        let is_sure = |at: usize| self.scores[at].confidence(&self.evidence) >= 1.0;
        if is_sure(first) {
            return Some(first);
        }
        if let Some(row) = self.of_extreme(first) {
            return Some(row);
        }
        if let Some(at) = self.of_measure(first) {
            return Some(at);
        }
        if let Some(row) = self.of_code(first) {
            return Some(row);
        }
        if let Some(cause) = self.of_labelled_cause(first) {
            return Some(cause);
        }
        let mut named = names(self.question.last());
        named.retain(|_, kind| *kind == Named::Code);
        self.best(|at| {
            let is_one = self.scores[first].missing >= CODE_MALUS
                && self.scores[at].missing == 0.0
                && named.keys().any(|code| self.matches.own[at].contains(code))
                && self.relevance(at) >= self.relevance(first) - NAMED_DROP_MAX
                && is_sure(at);
            is_one.then(|| self.relevance(at))
        })
    }

    /// For a question about a cause: the confident passage labelled as the cause right below the
    /// heading of the first one.
    fn of_labelled_cause(&self, first: usize) -> Option<usize> {
        let one = self.candidate(first);
        let is_asked = self.question.wanted == Wanted::Cause && !one.heading.is_empty();
        self.compared.iter().copied().filter(|_| is_asked).find(|at| {
            let other = self.candidate(*at);
            other.stretch == one.stretch
                && other.section == one.section
                && is_labelled_cause(&other.shown())
                && self.scores[*at].confidence(&self.evidence) >= 1.0
        })
    }

    /// A passage with the requested measure and words of its matter, if the first one has no value
    /// of that measure and no other measure can replace it.
    fn of_measure(&self, first: usize) -> Option<usize> {
        self.scores[first].lacks_measure.filter(|measure| measure.is_irreplaceable())?;
        let matter = matter(self.question);
        let judged = |at: usize| self.scores[at].judged(self.question);
        self.best(|at| {
            let score = &self.scores[at];
            let is_close = judged(first) - judged(at) <= SAME_DROP_MAX;
            let words_min = if is_close { 1 } else { MEASURED_WORDS_MIN };
            let is_one = matches!(self.candidate(at).shape, Shape::Unit(_))
                && score.lacks_measure.is_none()
                && score.missing == 0.0
                && score.confidence(&self.evidence) >= 1.0
                && self.relevance(at) >= self.relevance(first) - MEASURED_DROP_MAX
                && matter.intersection(&self.matches.own[at]).count() >= words_min;
            is_one.then(|| score.judged(self.question))
        })
    }

    /// For a question about an extreme: a row of a table that has the extreme and a column named
    /// after the things asked for, as `partner` for "which partner".
    fn of_extreme(&self, first: usize) -> Option<usize> {
        self.question.extreme?;
        let asked = spaced(self.question.last());
        let is_column = |cell: &Cell| {
            let name = spaced(&cell.name.replace('_', " "));
            let name = name.trim();
            !name.is_empty()
                && entries(BEFORE_NOUN).any(|which| contains(&asked, &format!("{which} {name}")))
        };
        self.best(|at| {
            let is_one = self.candidate(at).has_values()
                && self.relevance(at) >= self.relevance(first) - EXTREME_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= COMPUTED_CONFIDENCE_MIN
                && self.scores[at].missing == 0.0
                && self.candidate(at).cells.iter().any(is_column)
                && self.extreme(at).is_some();
            is_one.then(|| self.relevance(at))
        })
    }
}
