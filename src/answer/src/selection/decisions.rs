//! Decisions: all decisions recorded in minutes, for questions that ask for them.

use crate::passages::candidates::Shape;
use crate::question::phrases::DECISIONS;
use crate::selection::choose::{Choice, ROWS_MAX};
use crate::text::words::{contains, entries, spaced};

impl Choice<'_> {
    /// A decision from the document whose title or headings name the day asked for, if those of the
    /// first passage do not.
    pub(crate) fn of_day(&self, first: usize) -> Option<usize> {
        let days: Vec<String> =
            self.question.days.iter().filter_map(|day| day.terms().into_iter().next()).collect();
        let is_of_day = |at: &usize| days.iter().any(|day| self.matches.above[*at].contains(day));
        if !self.question.is_of_decisions || is_of_day(&first) {
            return None;
        }
        (0..self.reading.candidates.len()).filter(|at| self.decides(*at)).find(|at| is_of_day(at))
    }

    /// Whether a passage states a decision.
    fn decides(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let text = spaced(&one.shown());
        matches!(one.shape, Shape::Unit(_))
            && !one.is_lead
            && entries(DECISIONS).any(|word| contains(&text, word))
            && !contains(&text, "not decided")
    }

    /// All decisions in the document of the first passage, if the question asks for them.
    pub(crate) fn of_decisions(&self, first: usize) -> Option<Vec<usize>> {
        if !self.question.is_of_decisions {
            return None;
        }
        let is_one = |at: &usize| {
            self.candidate(*at).stretch == self.candidate(first).stretch && self.decides(*at)
        };
        let found: Vec<usize> = (0..self.reading.candidates.len()).filter(is_one).collect();
        let mut found = self.without_widened(found);
        found.truncate(ROWS_MAX);
        (found.len() > 1).then_some(found)
    }
}
