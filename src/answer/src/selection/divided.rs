//! The part of a table that a question names: the rows below the line "Baths", for "the cheapest of
//! the baths".

use std::collections::BTreeSet;

use crate::selection::choose::Choice;
use crate::text::terms::terms;

impl Choice<'_> {
    /// The members of `rows` below the dividing lines that the question names; all of them if it
    /// names none.
    pub(crate) fn of_named_part(&self, rows: Vec<usize>) -> Vec<usize> {
        let line = |at: usize| self.candidate(at).lead.as_str();
        let mut lines: BTreeSet<&str> = rows.iter().map(|at| line(*at)).collect();
        if lines.len() < 2 {
            return rows;
        }
        let asked = terms(self.question.last());
        lines.retain(|line| {
            let said = terms(line);
            !said.is_empty() && said.is_subset(&asked)
        });
        if lines.is_empty() {
            return rows;
        }
        rows.iter().copied().filter(|at| lines.contains(line(*at))).collect()
    }
}
