//! The rows of a table that a question means.

use std::collections::BTreeSet;

use crate::answer::blocks::Cell;
use crate::answer::blocks::Form;
use crate::answer::candidates::Shape;
use crate::answer::choose::{Choice, GAIN_MIN, PASSAGES_MAX, ROWS_MAX, SAME};
use crate::answer::evaluate::extreme_rows;
use crate::answer::question::{OPEN, Wanted, last_of};
use crate::answer::terms::terms;
use crate::answer::words::is_entry;
use unicode_segmentation::UnicodeSegmentation;

/// Names of columns with the state of a row, and first words of the state of one that is finished.
const STATES: &str = "\
    status|state|done|result|stand|zustand|stato|état|statut|estado|situación|erledigt|progress";
const DONE: &str = "\
    closed|done|finished|completed|complete|fixed|solved|resolved|cancelled|canceled|rejected|yes|\
    paid|settled|ended|erledigt|geschlossen|abgeschlossen|behoben|bezahlt|ja|fermé|clos|terminé|\
    résolu|payé|oui|cerrado|terminado|resuelto|pagado|hecho|sí";
/// A row of those that are selected is this much less relevant than a sentence at most.
const SELECTED_DROP_MAX: f32 = 0.2;
/// Rows of things that are counted.
const COUNTED_MAX: usize = 20;
/// A further row that holds as much of the question is this much less relevant at most.
const ROW_DROP_MAX: f32 = 0.1;
/// Gain for each word of the question that a row has beside those of one side of a comparison, and
/// loss for each word of its key that the question does not have.
const SHARED_WEIGHT: f32 = 0.3;
const FOREIGN_WEIGHT: f32 = 0.25;

impl Choice<'_> {
    /// Of a whole table the rows that hold what the question says and nothing above the table does;
    /// all of it where none or all do.
    pub(super) fn filtered(&self, whole: usize) -> Vec<usize> {
        if self.candidate(whole).shape != Shape::Whole(Form::Table) {
            return vec![whole];
        }
        let selection = (!self.question.conditions.is_empty()).then(|| self.selection(whole));
        selection
            .flatten()
            .or_else(|| self.held_by_some(&self.mates(whole), whole))
            .unwrap_or_else(|| vec![whole])
    }

    /// The rows that hold most of what the question says and nothing above the table does; `None`
    /// where none or all do.
    fn held_by_some(&self, rows: &[usize], of: usize) -> Option<Vec<usize>> {
        let question = self.question;
        let mut known = self.matches.above[of].clone();
        // A bound is no value that a row has.
        let bounds = question.conditions.iter().map(|one| one.bytes.clone());
        let asked = last_of(&question.text);
        known.extend(bounds.flat_map(|bytes| terms(&asked[bytes])));
        let new = |at: usize| {
            let terms = self.matches.own[at].iter().filter(|term| !known.contains(*term));
            self.matches.weights.share(terms)
        };
        // Of things that are counted any word sets some apart.
        let least = if question.counts { SAME } else { GAIN_MIN };
        let most = rows.iter().map(|at| new(*at)).fold(0.0_f32, f32::max);
        let held: Vec<usize> = rows.iter().copied().filter(|at| new(*at) >= most - SAME).collect();
        (most >= least && held.len() < rows.len()).then_some(held)
    }

    /// Whether the candidate is of a table of which no row meets the bounds of the question.
    pub(super) fn is_out_of_bounds(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let is_of_table = one.has_values() || one.shape == Shape::Whole(Form::Table);
        is_of_table
            && !self.question.conditions.is_empty()
            && self.rows_that_meet(at).is_some_and(|rows| rows.is_empty())
    }

    /// The rows of the table of a candidate.
    fn mates(&self, of: usize) -> Vec<usize> {
        let is_mate = |at: &usize| {
            let other = self.candidate(*at);
            other.is_beside(self.candidate(of)) && other.has_values()
        };
        (0..self.reading.candidates.len()).filter(is_mate).collect()
    }

    /// Rows of the table of the first one that hold as much of what was asked.
    pub(super) fn rows(&self, first: usize) -> Vec<usize> {
        if let Some(extreme) = self.extreme(first) {
            return extreme;
        }
        if let Some(sides) = self.sides(first) {
            return sides;
        }
        if let Some(selection) = self.selection(first) {
            return selection;
        }
        let own = |at: usize| self.scores[at].own;
        let is_listed = self.question.wanted == Wanted::List
            || self.question.compares
            || self.question.extreme.is_some();
        let (most, drop) = match is_listed {
            true => (ROWS_MAX, f32::INFINITY),
            false => (PASSAGES_MAX, ROW_DROP_MAX),
        };
        let is_equal = |at: &usize| {
            *at != first
                && own(*at) >= own(first) - SAME
                && self.scores[*at].form >= self.scores[first].form - SAME
                && self.relevance(*at) >= self.relevance(first) - drop
        };
        let mut chosen = vec![first];
        chosen.extend(self.mates(first).into_iter().filter(is_equal));
        if chosen.len() > most {
            chosen.truncate(1);
        }
        while let Some(next) = self.needed(&chosen) {
            chosen.push(next);
        }
        chosen
    }

    /// The rows that meet the conditions of the question, or are not finished where those are asked
    /// for; of things that are counted those that hold what it says.
    fn selection(&self, first: usize) -> Option<Vec<usize>> {
        let most = if self.question.counts { COUNTED_MAX } else { ROWS_MAX };
        let rows = match self.question.conditions.is_empty() {
            true => self.open_rows(first).or_else(|| {
                let counts = self.question.counts && self.scores[first].is_counted;
                counts.then(|| self.held_by_some(&self.mates(first), first)).flatten()
            }),
            false => self.rows_that_meet(first),
        };
        rows.filter(|rows| (1..=most).contains(&rows.len()))
    }

    /// A row of which some are selected, where the question does so and a sentence is only a little
    /// more relevant.
    pub(super) fn of_selection(&self, first: usize) -> Option<usize> {
        let question = self.question;
        let selects = question.is_of_open || !question.conditions.is_empty() || question.counts;
        let noun = terms(question.noun.as_deref().unwrap_or_default());
        if !selects || self.candidate(first).has_values() || noun.is_empty() {
            return None;
        }
        self.best(|at| {
            let (own, above) = (&self.matches.own[at], &self.matches.above[at]);
            let is_of_noun = noun.iter().any(|term| own.contains(term) || above.contains(term));
            let is_one = is_of_noun
                && self.candidate(at).has_values()
                && self.relevance(at) >= self.relevance(first) - SELECTED_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= 1.0
                && self.selection(at).is_some();
            is_one.then(|| self.relevance(at))
        })
    }

    /// The number of rows that were selected and of those they were selected from, where the
    /// question counts and all of these were read.
    pub(super) fn counted(&self, chosen: &[usize]) -> Option<(usize, usize)> {
        let first = *chosen.first().filter(|_| self.question.counts)?;
        let is_whole = self.reading.are_whole[self.candidate(first).stretch];
        let is_selected = || self.selection(first).is_some_and(|rows| rows == chosen);
        (is_whole && self.candidate(first).has_values() && is_selected())
            .then(|| (chosen.len(), self.mates(first).len()))
    }

    /// The rows that meet the conditions of the question and hold what else it says.
    fn rows_that_meet(&self, first: usize) -> Option<Vec<usize>> {
        if !self.question.selects || self.question.extreme.is_some() {
            return None;
        }
        let mates = self.mates(first);
        let mut rows = self.held_by_some(&mates, first).unwrap_or_else(|| mates.clone());
        for condition in &self.question.conditions {
            // Which column is meant, all rows tell.
            let cells: Vec<&[Cell]> =
                mates.iter().map(|at| self.candidate(*at).cells.as_slice()).collect();
            let met = condition.met(last_of(&self.question.text), &cells)?;
            rows.retain(|row| met.iter().any(|at| mates[*at] == *row));
        }
        Some(rows)
    }

    /// The rows whose state says that they are not finished, where those are asked for.
    fn open_rows(&self, first: usize) -> Option<Vec<usize>> {
        let is_wanted = self.question.wanted == Wanted::List || self.question.counts;
        if !self.question.is_of_open || !is_wanted {
            return None;
        }
        let state = |at: usize| {
            let mut cells = self.candidate(at).cells.iter();
            let state = cells.find(|cell| is_entry(STATES, &cell.name))?;
            Some(state.value.unicode_words().next().unwrap_or_default())
        };
        let is_open = |at: &usize| state(*at).is_some_and(|word| !is_entry(DONE, word));
        let mates = self.mates(first);
        // Rows that the question sets apart, but not by the very word for their state.
        let is_said = |at: &usize| state(*at).is_some_and(|word| is_entry(OPEN, word));
        let held = self.held_by_some(&mates, first);
        let held = held.filter(|held| held.iter().any(is_open) && !held.iter().all(is_said));
        Some(held.unwrap_or(mates).into_iter().filter(is_open).collect())
    }

    /// The row of each side of a comparison, where the question names them and both are in the
    /// table of the first one.
    fn sides(&self, first: usize) -> Option<Vec<usize>> {
        let (one, other) = self.question.sides.as_ref()?;
        let mates = self.mates(first);
        let asked = terms(&self.question.text);
        let row = |side: &BTreeSet<String>| {
            let fit = |at: usize| {
                let cells = &self.candidate(at).cells;
                let values = cells.iter().map(|cell| cell.value.as_str()).collect::<Vec<_>>();
                let said = terms(&values.join("\n"));
                let key = terms(values.first().copied().unwrap_or_default());
                let held = said.intersection(side).count();
                let shared = said.intersection(&asked).count() - held;
                let foreign = key.difference(&asked).count();
                let fit = held as f32 + SHARED_WEIGHT * shared as f32;
                (held > 0).then_some(fit - FOREIGN_WEIGHT * foreign as f32)
            };
            let fits = mates.iter().filter_map(|at| fit(*at).map(|fit| (*at, fit)));
            fits.max_by(|(at, a), (other, b)| a.total_cmp(b).then(other.cmp(at))).map(|(at, _)| at)
        };
        let (one, other) = (row(one)?, row(other)?);
        (one != other).then(|| vec![one, other])
    }

    /// The rows with the largest or smallest value, where one is asked for, among those that hold
    /// what else the question says.
    fn extreme(&self, first: usize) -> Option<Vec<usize>> {
        self.question.extreme?;
        let mates = self.mates(first);
        let rows = match self.held_by_some(&mates, first) {
            Some(held) if held.len() > 1 => held,
            _ => mates,
        };
        let cells: Vec<&[Cell]> =
            rows.iter().map(|at| self.candidate(*at).cells.as_slice()).collect();
        let found = extreme_rows(self.question, &cells)?;
        (found.len() <= PASSAGES_MAX).then(|| found.into_iter().map(|at| rows[at]).collect())
    }
}
