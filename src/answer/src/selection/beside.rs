//! Sentences beside a passage that belong to it: the vote after a decision.

use crate::passages::candidates::context::is_vote;
use crate::selection::choose::Choice;

impl Choice<'_> {
    /// The passage together with the sentence after it if that only tells a vote.
    pub(crate) fn with_vote(&self, first: usize) -> usize {
        let one = self.candidate(first);
        let is_voted = |at: &usize| {
            let other = self.candidate(*at);
            let (shown, before) = (other.shown(), one.shown());
            other.is_beside(one)
                && (other.unit, other.units) == (one.unit + 1, one.units + 1)
                && shown.strip_prefix(&before).is_some_and(|vote| is_vote(vote.trim_start()))
        };
        (0..self.reading.candidates.len()).find(is_voted).unwrap_or(first)
    }
}
