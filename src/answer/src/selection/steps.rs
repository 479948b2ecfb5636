//! The row of a table by bounds that a number of the question means: "who approves 620 EUR" where
//! the first column is "up to EUR".

use crate::question::wish::Question;
use crate::rows::steps::step_of;
use crate::selection::choose::Choice;

impl Choice<'_> {
    /// The row for a number of the question if the first passage belongs to a table by bounds, and
    /// the question names no row of it otherwise.
    pub(crate) fn of_step(&self, first: usize) -> Option<Vec<usize>> {
        let mates = self.mates(first);
        if computes(self.question) || mates.len() < 2 {
            return None;
        }
        let rows = self.cells(&mates);
        let earlier = self.question.text.len() - self.question.last().len();
        let asked = self.question.quantities.iter().filter(|one| one.bytes.start >= earlier);
        let step = asked.filter_map(|one| step_of(one, &rows)).next()?;
        let bounds = &rows[step].first()?.name;
        let names_other = self.whole_values(&mates).iter().any(|(_, column, _)| column != bounds);
        (!names_other).then(|| vec![mates[step]])
    }
}

/// Whether a question asks for rows by a comparison or a computation.
fn computes(question: &Question) -> bool {
    question.extreme.is_some()
        || question.total.is_some()
        || question.counts
        || question.compares
        || !question.conditions.is_empty()
}
