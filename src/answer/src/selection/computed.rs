//! Rows of a table picked by computation, as an extreme or a total, and the text that introduces
//! them.

use crate::question::phrases::{MEANS, SUMS};
use crate::rows::evaluate::total_of;
use crate::rows::extreme::extreme_rows;
use crate::selection::choose::{Choice, PASSAGES_MAX};
use crate::selection::rows::SELECTED_MAX;
use crate::text::terms::terms;
use crate::text::words::{contains, entries, spaced};

impl Choice<'_> {
    /// Whether the question asks for the extreme of a quality that no column of the candidate's
    /// table holds and no row expresses in words.
    pub(crate) fn lacks_quality(&self, at: usize) -> bool {
        let is_row = self.candidate(at).cells.len() > 1 && self.mates(at).len() > 1;
        let quality = self.question.quality.filter(|quality| is_row && !quality.is_time());
        // "The heaviest single piece" is the row of that name, a limit.
        let named = self.candidate(at).cells.first().map(|cell| terms(&cell.value));
        let is_limit = named.is_some_and(|named| {
            !named.is_empty() && named.is_subset(&terms(self.question.last()))
        });
        quality.filter(|_| !is_limit).is_some_and(|quality| {
            let said = self.mates(at).into_iter().chain([at]).map(|at| self.candidate(at).shown());
            let said = spaced(&said.collect::<Vec<_>>().join(" "));
            let is_said = quality.superlatives().any(|word| contains(&said, word));
            !is_said && self.extreme(at).is_none()
        })
    }

    /// The text about the chosen rows together: their total or mean, or "m of n" for counted rows
    /// if the whole table was read. For an extreme of a table that was not read whole, the number
    /// of rows that were.
    pub(crate) fn told_together(&self, chosen: &[usize]) -> Option<String> {
        let first = *chosen.first().filter(|first| self.candidate(**first).has_values())?;
        if let Some((rows, told)) = self.total(first) {
            return (rows == chosen).then_some(told);
        }
        let is_extreme = || self.extreme(first).is_some_and(|rows| rows == chosen);
        if self.goes_on(first) && is_extreme() {
            return Some(format!("Of {} rows that were read:", self.mates(first).len()));
        }
        let is_selected = || self.selection(first).is_some_and(|rows| rows == chosen);
        (self.question.counts && self.is_whole(first) && is_selected())
            .then(|| format!("{} of {}:", chosen.len(), self.mates(first).len()))
    }

    /// Whether the table of a row may have rows that were not read: it touches an end of a
    /// partially read text.
    fn goes_on(&self, row: usize) -> bool {
        let one = self.candidate(row);
        let blocks = &self.reading.blocks[one.stretch];
        let units = &blocks.groups[one.group].units;
        !self.is_whole(row) && (units.start == 0 || units.end == blocks.units.len())
    }

    /// Whether the whole text of a candidate's source was read.
    fn is_whole(&self, at: usize) -> bool {
        self.reading.are_whole[self.candidate(at).stretch]
    }

    /// The rows picked by computation: those of the extreme or the total asked for.
    pub(crate) fn computed(&self, first: usize) -> Option<Vec<usize>> {
        self.extreme(first).or_else(|| self.total(first).map(|(rows, _)| rows))
    }

    /// The rows whose total or mean is asked for, at most [`SELECTED_MAX`] of them, and the text
    /// that states it. A table that states a total itself is not added up.
    fn total(&self, first: usize) -> Option<(Vec<usize>, String)> {
        self.question.total.filter(|_| self.is_whole(first))?;
        let mates = self.mates(first);
        let is_told = |at: &usize| {
            let told = spaced(&self.candidate(*at).shown());
            entries(SUMS).chain(entries(MEANS)).any(|word| contains(&told, word))
        };
        if mates.iter().any(is_told) {
            return None;
        }
        let mut rows = self.rows_that_meet(first)?;
        let (some, all) = (self.cells(&rows), self.cells(&mates));
        let told = total_of(self.question, (&some, &all), self.have_amounts(first))?;
        rows.truncate(SELECTED_MAX);
        Some((rows, told))
    }

    /// Whether the rows of the candidate's table are things that the question names and that have
    /// an amount of money: "the biggest order" for a list of orders.
    fn have_amounts(&self, at: usize) -> bool {
        let (own, above) = (&self.matches.own[at], &self.matches.above[at]);
        self.question.of_amounts().iter().any(|thing| own.contains(thing) || above.contains(thing))
    }

    /// The rows with the largest or smallest value, if one is asked for, among those that match the
    /// rest of the question.
    pub(crate) fn extreme(&self, first: usize) -> Option<Vec<usize>> {
        self.question.extreme?;
        let mates = self.mates(first);
        // A single matching row leaves nothing to compare.
        let is_narrowed =
            || !self.question.conditions.is_empty() || self.of_values(&mates).is_some();
        let rows = match self.rows_that_meet(first) {
            Some(met) if met.len() > 1 => met,
            Some(met) if met.len() == 1 && is_narrowed() => return Some(met),
            _ => mates,
        };
        let found = extreme_rows(self.question, &self.cells(&rows), self.have_amounts(first))?;
        (found.len() <= PASSAGES_MAX).then(|| found.into_iter().map(|at| rows[at]).collect())
    }
}
