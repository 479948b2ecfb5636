//! Troubles: what to do, from the list below a heading that states the trouble a question states.

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::troubles::{states_trouble, tells_trouble};
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::words::{is_interrogative, spaced};

impl Choice<'_> {
    /// For a question that only states a trouble: the whole list that the first passage is an item
    /// of, if the heading right above it states that trouble in words of the question.
    pub(crate) fn of_trouble(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let is_fit = one.shape == Shape::Unit(Kind::Item)
            && !self.question.is_computed()
            && states_trouble(self.question.last());
        let is_matter =
            |word: &&str| !is_common(word) && !is_interrogative(word) && !tells_trouble(word);
        let heading = spaced(&one.heading);
        let heading: Vec<&str> = heading.split_whitespace().filter(is_matter).collect();
        let heading = terms(&heading.join(" "));
        let is_named = !heading.is_empty()
            && tells_trouble(&one.heading)
            && heading.is_subset(&terms(self.question.last()));
        if !is_fit || !is_named {
            return None;
        }
        let list = self.lists().find(|at| self.candidate(*at).is_beside(one))?;
        self.candidate(list).opens_section.then(|| vec![list])
    }
}
