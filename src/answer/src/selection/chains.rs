//! Chains: whom to turn to if the one before could not help, "Ask the warden. If that does not
//! help, write to the board".

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::wish::Wanted;
use crate::selection::choose::Choice;
use crate::text::words::{Asked, begins_with, spaced};

/// Openings of a sentence for the case that what the sentence before it says has failed.
const FAILED: &str = "\
    if that does not help|if that doesn't help|if this does not help|if this doesn't help|\
    if it does not help|if it doesn't help|if that fails|if this fails|if that did not help|\
    failing that|failing this|if you are still not|if you're still not|if you still|\
    if you are not satisfied|if that is not enough|if nobody answers|if nothing happens|\
    if there is no answer|wenn das nicht hilft|falls das nicht hilft|hilft das nicht|\
    hilft auch das nicht|wenn sie weiterhin|si cela ne suffit pas|si cela n'aide pas|\
    si eso no basta|si eso no ayuda";
/// Maximum number of sentences in a chain.
const LINKS_MAX: usize = 4;

impl Choice<'_> {
    /// For a question for a person or for steps: all sentences of the chain that the first passage
    /// is a link of.
    pub(crate) fn of_chain(&self, first: usize) -> Option<Vec<usize>> {
        let is_asked =
            self.question.asked == Asked::Person || self.question.wanted == Wanted::Steps;
        let one = self.candidate(first);
        if !is_asked || one.shape != Shape::Unit(Kind::Sentence) {
            return None;
        }
        let at = |unit: usize| {
            let is_it = |at: &usize| {
                let other = self.candidate(*at);
                other.shape == one.shape && other.is_beside(one) && other.unit == unit
            };
            (0..self.reading.candidates.len()).find(is_it)
        };
        let is_link = |unit: usize| at(unit).is_some_and(|at| self.follows_failure(at));
        let (mut from, mut end) = (one.unit, one.unit + 1);
        while from > 0 && end - from <= LINKS_MAX && is_link(from) && at(from - 1).is_some() {
            from -= 1;
        }
        while end - from <= LINKS_MAX && is_link(end) {
            end += 1;
        }
        let chain: Vec<usize> = (from..end).filter_map(at).collect();
        let chain = self.without_widened(chain);
        ((2..=LINKS_MAX).contains(&(end - from)) && !chain.is_empty()).then_some(chain)
    }

    /// Whether the last sentence of a passage opens with the failure of what is before it.
    fn follows_failure(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let shown = one.shown();
        let last = match one.units {
            1 => shown.as_str(),
            _ => shown.rsplit_once(". ").map_or(shown.as_str(), |(_, last)| last),
        };
        let said = spaced(last);
        begins_with(&said, FAILED)
    }
}
