//! Reasons: a sentence labelled as the reason, in another section or source than what it explains.

use crate::relevance::causes::{is_labelled_cause, tells_cause};
use crate::selection::causes::CAUSE_DROP_MAX;
use crate::selection::choose::{Choice, FURTHER_CONFIDENCE_MIN};

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
}
