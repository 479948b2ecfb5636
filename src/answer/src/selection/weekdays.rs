//! Weekdays: of the passages of a list that each tell of another weekday, the one asked for.

use std::collections::BTreeSet;

use crate::passages::candidates::Shape;
use crate::selection::choose::Choice;
use crate::text::values::weekdays;

impl Choice<'_> {
    /// The passage beside the first one that names the weekday asked for, if the first one only
    /// names others.
    pub(crate) fn of_weekday(&self, first: usize) -> Option<usize> {
        let asked: BTreeSet<String> = weekdays(self.question.last()).into_iter().collect();
        let told = |at: usize| -> BTreeSet<String> {
            weekdays(&self.candidate(at).shown()).into_iter().collect()
        };
        let (one, of_first) = (self.candidate(first), told(first));
        let is_other = !of_first.is_empty() && of_first.is_disjoint(&asked);
        if asked.len() != 1 || !is_other || self.question.is_computed() || one.has_values() {
            return None;
        }
        self.best(|at| {
            let other = self.candidate(at);
            let is_one = matches!(other.shape, Shape::Unit(_))
                && other.is_beside(one)
                && !other.is_lead
                && !told(at).is_disjoint(&asked);
            is_one.then(|| self.scores[at].judged(self.question))
        })
    }
}
