//! Second opinions: the passage that the reader judges no less likely than the one that words and
//! vectors put first. Both are told, because neither judge is right often enough alone.

use crate::passages::candidates::Shape;
use crate::selection::choose::{Choice, PASSAGES_MAX};

/// Maximum drop in relevance, with the reader's opinion, of a second passage against the first, and
/// the minimum verdict of the reader on it.
///
/// On 3,964 questions of 34 collections, 126 answers gain a passage: 25 that were wrong become
/// right, two misleading, and none that was right becomes wrong. Without a minimum verdict 265 gain
/// one for 35; whatever the verdict, from another section, 271 for 27
/// (`benches/runs/2026-11-30-2core-xeon/answers.md`).
const DROP_MAX: f32 = 0.3;
const VERDICT_MIN: f32 = 0.5;
/// Maximum number of characters in either passage.
const CHARS_MAX: usize = 300;

impl Choice<'_> {
    /// The chosen passages and, if they are few and short, a second opinion on the question.
    pub(super) fn with_second_opinion(&self, mut chosen: Vec<usize>) -> Vec<usize> {
        let said: usize = chosen.iter().map(|at| self.candidate(*at).units).sum();
        let Some(first) = self.first() else { return chosen };
        let Some(verdict) = self.scores[first].verdict else { return chosen };
        let are_fit = chosen
            .iter()
            .all(|at| matches!(self.candidate(*at).shape, Shape::Unit(_)) && self.is_short(*at));
        let are_enough = chosen.is_empty() || said >= PASSAGES_MAX;
        if are_enough || !are_fit || self.question.is_computed() {
            return chosen;
        }
        let judged = |at: usize| self.scores[at].judged(self.question);
        let is_no_less_likely =
            |at: usize| self.scores[at].verdict.is_some_and(|it| it >= verdict.max(VERDICT_MIN));
        let is_second = |at: usize| {
            let is_told = |other: &usize| {
                self.candidate(*other).repeats(self.candidate(at)) || self.overtakes(*other, at)
            };
            is_no_less_likely(at)
                && judged(at) >= judged(first) - DROP_MAX
                && self.is_fit_to_be_second(at, first)
                && !chosen.iter().any(is_told)
        };
        let second = self.best(|at| is_second(at).then(|| judged(at)));
        chosen.extend(second);
        chosen
    }

    fn is_short(&self, at: usize) -> bool {
        self.candidate(at).shown().chars().count() <= CHARS_MAX
    }

    /// Whether a passage may be told after others: one that would answer alone and still holds.
    fn is_fit_to_be_second(&self, at: usize, first: usize) -> bool {
        let (one, score) = (self.candidate(at), &self.scores[at]);
        matches!(one.shape, Shape::Unit(_))
            && !one.is_lead
            && !one.is_taken_back()
            && self.is_short(at)
            && (!score.lacks_kind || self.scores[first].lacks_kind)
            && score.confidence(&self.evidence) >= 1.0
            && self.put_right(at).is_none()
    }
}
