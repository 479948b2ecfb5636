//! Reasons: a sentence that tells the cause of what another one says, behind it in its paragraph,
//! or labelled in another section or source.

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::relevance::causes::{is_labelled_cause, tells_cause};
use crate::selection::causes::{CAUSE_DROP_MAX, TOLD_SHARE_MIN};
use crate::selection::choose::{Choice, FURTHER_CONFIDENCE_MIN};
use crate::text::words::{contains_any, spaced};

/// Maximum distance, in sentences, of the cause behind what happened.
const NEXT_MAX: usize = 4;
/// Phrases that name a cause.
const NAMED_CAUSE: &str = "\
    the cause was|the cause is|the reason was|the reason is|ursache war|grund war|la cause était|\
    la raison était|la causa fue|la razón fue";

impl Choice<'_> {
    /// The best passage labelled as the cause that is about as relevant as the first one, if that
    /// tells none.
    pub(crate) fn labelled_near(&self, first: usize) -> Option<Vec<usize>> {
        if tells_cause(&self.candidate(first).shown()) {
            return None;
        }
        let labelled = self.best(|at| {
            let is_one = self.candidate(at).units == 1
                && is_labelled_cause(&self.candidate(at).shown())
                && self.relevance(at) >= self.relevance(first) - CAUSE_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= FURTHER_CONFIDENCE_MIN;
            is_one.then(|| self.scores[at].judged(self.question))
        });
        labelled.map(|at| vec![at])
    }

    /// The first passage, if it is a sentence that says what happened without a cause, and the next
    /// one of its paragraph that tells it: "Four boats leaked. The cause was a worn seal."
    pub(crate) fn caused_beside(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let says_event = one.shape == Shape::Unit(Kind::Sentence)
            && self.scores[first].own >= TOLD_SHARE_MIN
            && !tells_cause(&one.shown());
        let is_cause = |at: &usize| {
            let other = self.candidate(*at);
            let shown = other.shown();
            other.shape == one.shape
                && other.units == 1
                && other.is_beside(one)
                && (one.unit + 1..=one.unit + NEXT_MAX).contains(&other.unit)
                && (is_labelled_cause(&shown) || contains_any(&spaced(&shown), NAMED_CAUSE))
        };
        let cause = (0..self.reading.candidates.len()).filter(|_| says_event).find(is_cause)?;
        Some(vec![first, cause])
    }
}
