//! The row of a table by bounds that a number of the question means: "who approves 620 EUR" where
//! the first column is "up to EUR".

use crate::passages::blocks::Cell;
use crate::question::condition::{Bound, Condition, Relation};
use crate::rows::steps::step_of;
use crate::selection::choose::{Choice, ROWS_MAX};
use crate::text::values::Quantity;

/// Share of a bound, or of 1 if it is smaller, by which a number is put just above it.
const ABOVE: f64 = 1e-9;

impl Choice<'_> {
    /// The row for a number of the question if the first passage belongs to a table by bounds, and
    /// the question names no row of it otherwise; from that row on for "over" a number.
    pub(crate) fn of_step(&self, first: usize) -> Option<Vec<usize>> {
        let mates = self.mates(first);
        if self.question.computes() || mates.len() < 2 {
            return None;
        }
        let rows = self.cells(&mates);
        let (step, is_open) = match self.question.conditions[..] {
            [] => (self.step(&rows)?, false),
            [ref one] => (step_of(&over(one)?, &rows)?, true),
            _ => return None,
        };
        let bounds = &rows[step].first()?.name;
        let names_other = self.whole_values(&mates).iter().any(|(_, column, _)| column != bounds);
        let end = if is_open { rows.len() } else { step + 1 };
        let found = &mates[step..end];
        (!names_other && found.len() <= ROWS_MAX).then(|| found.to_vec())
    }

    /// The position of the row for the first number of the last question that has one.
    fn step(&self, rows: &[&[Cell]]) -> Option<usize> {
        let earlier = self.question.text.len() - self.question.last().len();
        let asked = self.question.quantities.iter().filter(|one| one.bytes.start >= earlier);
        asked.filter_map(|one| step_of(one, rows)).next()
    }
}

/// The number from which on a condition holds; `None` if it has none.
fn over(condition: &Condition) -> Option<Quantity> {
    let Bound::Number { value, unit } = &condition.bound else { return None };
    let value = match condition.relation {
        Relation::Over => value + ABOVE * value.abs().max(1.0),
        Relation::From => *value,
        Relation::Under | Relation::UpTo | Relation::Exactly => return None,
    };
    Some(Quantity { value, unit: unit.clone(), bytes: condition.bytes.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a number over a bound is above it, whatever its sign.
    #[test]
    fn over_is_above() {
        for value in [-18.0, 0.0, 0.5, 500.0] {
            let bound = Bound::Number { value, unit: "degrees".to_owned() };
            let one = Condition { relation: Relation::Over, bound, bytes: 0..0 };
            assert!(over(&one).is_some_and(|over| over.value > value), "{value}");
        }
    }
}
