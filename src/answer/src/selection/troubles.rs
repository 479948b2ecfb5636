//! Troubles: what to do, from the list below a heading that states the trouble a question states,
//! or from the numbered steps for a situation that it states.

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::troubles::{states_situation, states_trouble, tells_trouble};
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::words::{is_interrogative, spaced};

/// Maximum number of steps, and of characters in one: clauses and minutes are numbered too.
const STEPS_MAX: usize = 10;
const STEP_CHARS_MAX: usize = 160;

impl Choice<'_> {
    /// For a question that only states a trouble or a situation: the whole list that the first
    /// passage is an item of, if the heading right above it states that trouble in words of the
    /// question, or if it consists of numbered steps and its headings share a word with the
    /// question.
    pub(crate) fn of_trouble(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        if one.shape != Shape::Unit(Kind::Item) || self.question.is_computed() {
            return None;
        }
        let question = self.question.last();
        let list = self.lists().find(|at| self.candidate(*at).is_beside(one))?;
        let is_told = states_trouble(question) && self.is_headed_by_trouble(first)
            || states_situation(question) && self.is_of_steps(list);
        (is_told && self.candidate(list).opens_section).then(|| vec![list])
    }

    /// Whether the heading of a passage states the trouble of the question.
    fn is_headed_by_trouble(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let is_matter =
            |word: &&str| !is_common(word) && !is_interrogative(word) && !tells_trouble(word);
        let heading = spaced(&one.heading);
        let heading: Vec<&str> = heading.split_whitespace().filter(is_matter).collect();
        let heading = terms(&heading.join(" "));
        !heading.is_empty()
            && tells_trouble(&one.heading)
            && heading.is_subset(&terms(self.question.last()))
    }

    /// Whether a list consists of numbered steps below a heading of the question's matter.
    fn is_of_steps(&self, list: usize) -> bool {
        let one = self.candidate(list);
        let blocks = &self.reading.blocks[one.stretch];
        blocks.groups[one.group].is_numbered
            && (2..=STEPS_MAX).contains(&one.parts.len())
            && one.parts.iter().all(|part| part.shown.chars().count() <= STEP_CHARS_MAX)
            && !terms(&one.heading).is_disjoint(&terms(self.question.last()))
    }
}
