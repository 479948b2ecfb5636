//! The unfinished rows that a question asks for: "which orders of Orrin are still open".

use std::collections::{BTreeMap, BTreeSet};

use crate::question::named::{Named, names};
use crate::question::phrases::OPEN;
use crate::rows::states;
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::spaced;

impl Choice<'_> {
    /// The rows whose state shows that they are unfinished, if the question asks for those; of
    /// rows that hold the names and values in the question only, if there are any.
    pub(crate) fn unfinished(&self, first: usize) -> Option<Vec<usize>> {
        let mates = self.mates(first);
        let open = self.all_unfinished(&mates)?;
        let meant = self.meant_by_values(&mates);
        let is_meant = |row: &usize| meant.as_ref().is_none_or(|meant| meant.contains(row));
        Some(open.into_iter().filter(is_meant).collect())
    }

    /// Whether the question asks for unfinished rows, and only rows of something else are.
    pub(crate) fn lacks_unfinished(&self, first: usize) -> bool {
        let mates = self.mates(first);
        self.candidate(first).has_values()
            && self.all_unfinished(&mates).is_some_and(|rows| !rows.is_empty())
            && self.unfinished(first).is_some_and(|rows| rows.is_empty())
    }

    /// For a question for unfinished rows: a row with a state from the text of the first passage,
    /// if that has values without one, such as the head of a register.
    pub(crate) fn of_state(&self, first: usize) -> Option<usize> {
        let one = self.candidate(first);
        if !self.question.selects_open() || !one.has_values() || states::tells_state(&one.cells) {
            return None;
        }
        self.best(|at| {
            let other = self.candidate(at);
            let is_of_text = other.stretch == one.stretch && states::tells_state(&other.cells);
            is_of_text.then(|| self.relevance(at))
        })
    }

    fn all_unfinished(&self, rows: &[usize]) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        let open =
            self.question.selects_open().then(|| states::open(&asked, &self.cells(rows)))??;
        Some(open.into_iter().map(|at| rows[at]).collect())
    }

    /// The rows that hold the values and names in the question, alone or among other words, apart
    /// from its words for unfinished; `None` if no row does, or all do.
    fn meant_by_values(&self, rows: &[usize]) -> Option<Vec<usize>> {
        let asked = self.question.last();
        let open = terms(&OPEN.replace('|', " "));
        let mut values: BTreeSet<(&str, BTreeSet<String>)> = BTreeSet::new();
        for (at, column, said) in self.whole_values(rows) {
            let mut cells = self.candidate(at).cells.iter();
            let value = cells.find(|cell| cell.name == column).map_or("", |cell| &cell.value);
            // The plan "Team" is not meant by "our team".
            let is_said = said.len() > 1 || asked.contains(value);
            if is_said && !said.is_subset(&open) {
                values.insert((column, said));
            }
        }
        // Analysed once, as there may be as many values as rows.
        let cells = |row: &usize| {
            let row = *row;
            let cells = self.candidate(row).cells.iter();
            cells.map(move |cell| (row, cell.name.as_str(), terms(&cell.value)))
        };
        let held: Vec<_> = rows.iter().filter(|_| !values.is_empty()).flat_map(cells).collect();
        let mut columns: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (column, said) in &values {
            // A "printer in the hall" is meant by "printer" too.
            let holding =
                held.iter().filter(|(_, name, held)| name == column && said.is_subset(held));
            columns.entry(*column).or_default().extend(holding.map(|(row, ..)| *row));
        }
        let named = names(asked).into_iter();
        let named = named.filter(|(_, named)| matches!(named, Named::Name | Named::Code));
        let named = named.map(|(term, _)| self.rows_with(rows, &term));
        let mut left = rows.to_vec();
        for held in columns.into_values().chain(named) {
            let held: BTreeSet<usize> = held.into_iter().collect();
            if left.iter().any(|row| held.contains(row)) {
                left.retain(|row| held.contains(row));
            }
        }
        (left.len() < rows.len()).then_some(left)
    }

    fn rows_with(&self, rows: &[usize], term: &str) -> Vec<usize> {
        rows.iter().copied().filter(|row| self.matches.own[*row].contains(term)).collect()
    }
}
