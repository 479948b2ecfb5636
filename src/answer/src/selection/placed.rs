//! Places: the sentence that names the place to which another one points by "there".

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::selection::choose::Choice;
use crate::text::places::points_there;

impl Choice<'_> {
    /// For a question for a place, if the first passage only points to one: the passage before it
    /// and the first.
    pub(crate) fn of_place(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        if !self.question.asks_where || one.units > 1 || !points_there(&one.shown()) {
            return None;
        }
        let is_before = |at: &usize| {
            let other = self.candidate(*at);
            other.shares_section(one)
                && other.unit + 1 == one.unit
                && other.units == 1
                && matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item))
        };
        let before = (0..self.reading.candidates.len()).find(is_before)?;
        Some(vec![before, first])
    }
}
