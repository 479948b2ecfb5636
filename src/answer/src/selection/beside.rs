//! Sentences beside a passage that belong to it: the vote after a decision, and what else an
//! edition says on a matter.

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::passages::candidates::context::is_vote;
use crate::relevance::weights::light_terms;
use crate::selection::choose::{Choice, SAME};
use crate::text::terms::terms;

/// Part of the matter that a passage of an edition holds which a sentence beside it must hold too.
const MATTER_SHARE_MIN: f32 = 0.3;

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

    /// A passage of a single word, such as "No.", with the sentence after it, which says more.
    pub(crate) fn with_more(&self, chosen: Vec<usize>) -> Vec<usize> {
        let [first] = chosen[..] else { return chosen };
        let one = self.candidate(first);
        if one.shown().unicode_words().count() != 1 {
            return chosen;
        }
        let is_next = |at: &usize| {
            let other = self.candidate(*at);
            let is_sentence = other.shape == Shape::Unit(Kind::Sentence) && !other.is_lead;
            is_sentence && other.is_beside(one) && other.unit == one.unit + 1
        };
        match (0..self.reading.candidates.len()).find(is_next) {
            Some(next) if self.candidate(next).repeats(one) => vec![next],
            next => [first].into_iter().chain(next).collect(),
        }
    }

    /// A passage of one edition, with the sentences right before and after it on the matter that
    /// the passage `of` another edition shares with the question.
    pub(crate) fn on_same(&self, one: usize, of: usize) -> Vec<usize> {
        let passage = self.candidate(one);
        if passage.shape != Shape::Unit(Kind::Sentence) {
            return vec![one];
        }
        let light = light_terms(self.question);
        let title = terms(&self.editions.names(passage.hit).join("\n"));
        let matter = &(&self.matches.own[of] - &light) - &title;
        let share =
            |at: usize| self.matches.weights.share(self.matches.own[at].intersection(&matter));
        let least = (share(one) * MATTER_SHARE_MIN).max(SAME);
        let is_one = |at: &usize| {
            let other = self.candidate(*at);
            other.shape == passage.shape
                && other.is_beside(passage)
                && other.unit.abs_diff(passage.unit) == 1
                && !other.is_lead
                && !other.is_taken_back()
                && !other.repeats(passage)
                && share(*at) >= least
        };
        let mut found: Vec<usize> = (0..self.reading.candidates.len()).filter(is_one).collect();
        found.push(one);
        found.sort_by_key(|at| self.candidate(*at).unit);
        found
    }
}
