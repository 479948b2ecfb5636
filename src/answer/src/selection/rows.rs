//! The rows of a table that a question means.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::passages::blocks::{Cell, Form};
use crate::passages::candidates::Shape;
use crate::question::condition::unbound;
use crate::question::wish::Wanted;
use crate::relevance::weights::matter;
use crate::rows::evaluate::{columns, names_extreme};
use crate::rows::keys::names_column;
use crate::rows::marks::Marks;
use crate::rows::ranges::terms_of_columns;
use crate::selection::choose::{Choice, GAIN_MIN, PASSAGES_MAX, ROWS_MAX, SAME};
use crate::text::terms::{is_common, terms};
use crate::text::values::{has_money, quantities};
use crate::text::words::Asked;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum drop in relevance of a selected row against a sentence.
const SELECTED_DROP_MAX: f32 = 0.2;
/// Confidence that a row needs if it is used in a computation.
pub(crate) const COMPUTED_CONFIDENCE_MIN: f32 = 0.85;
/// Weight of a word of a comparison's side in a row, as against other words of the question.
const SIDE_WEIGHT: usize = 4;
/// Maximum number of rows of a table that are selected or computed with.
pub(crate) const SELECTED_MAX: usize = 20;
/// Words that do not distinguish rows.
const OF_EACH: &str = "all|any|each|every|both";
/// Maximum drop in relevance of a further row that holds as much of the question.
const ROW_DROP_MAX: f32 = 0.1;

impl Choice<'_> {
    /// Reduces a whole table to the rows that match the question's conditions or hold what the
    /// question says beyond the text above the table; the whole table if none or all do.
    pub(crate) fn filtered(&self, whole: usize) -> Vec<usize> {
        if self.candidate(whole).shape != Shape::Whole(Form::Table) {
            return vec![whole];
        }
        self.computed(whole)
            .or_else(|| self.selection(whole).filter(|_| self.sets_bounds(whole)))
            .or_else(|| self.held_by_some(&self.mates(whole), whole))
            .unwrap_or_else(|| vec![whole])
    }

    /// The rows that hold most of what the question says beyond the text above the table; `None` if
    /// none or all do. Words in a column that the question does not mean do not count.
    fn held_by_some(&self, rows: &[usize], of: usize) -> Option<Vec<usize>> {
        let (held, shared) = self.held(rows, of)?;
        let held = self.where_meant(held, &shared);
        (held.len() < rows.len()).then_some(held)
    }

    /// The rows that hold most of what the question says beyond the text above the table, in any
    /// column, and the terms that the values of all of them hold; `None` if no row holds enough.
    pub(crate) fn held(&self, rows: &[usize], of: usize) -> Option<(Vec<usize>, BTreeSet<String>)> {
        let question = self.question;
        let mut known = self.matches.above[of].clone();
        // A bound is not a value that a row holds.
        let bounds = question.conditions.iter().map(|one| one.bytes.clone());
        let asked = question.last();
        known.extend(bounds.flat_map(|bytes| terms(&asked[bytes])));
        known.extend(question.excluded.iter().cloned());
        known.extend(self.marks(of).into_iter().flat_map(|marks| marks.terms.iter().cloned()));
        known.extend(OF_EACH.split('|').map(str::to_owned));
        let new = |at: usize| {
            let terms = self.matches.own[at].iter().filter(|term| !known.contains(*term));
            self.matches.weights.share(terms)
        };
        // If things are counted, bounded or computed with, any word may distinguish rows.
        let computes = question.counts
            || self.sets_bounds(of)
            || question.total.is_some()
            || question.quality.is_some();
        let least = if computes { SAME } else { GAIN_MIN };
        let most = rows.iter().map(|at| new(*at)).fold(0.0_f32, f32::max);
        let held: Vec<usize> = rows.iter().copied().filter(|at| new(*at) >= most - SAME).collect();
        let shared = self.shared(&held, &known);
        (most >= least).then_some((held, shared))
    }

    /// Whether the candidate belongs to a table in which no row meets the bounds of the question.
    fn is_out_of_bounds(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let is_of_table = one.has_values() || one.shape == Shape::Whole(Form::Table);
        let has_none =
            || self.question.selects && self.rows_that_meet(at).is_some_and(|rows| rows.is_empty());
        is_of_table && self.sets_bounds(at) && has_none()
    }

    /// The first passage, unless no row of its table meets the bounds of the question; then a row
    /// of another table with rows that do.
    pub(crate) fn within_bounds(&self, first: usize) -> Option<usize> {
        if !self.is_out_of_bounds(first) {
            return Some(first);
        }
        self.best(|at| {
            let is_one = self.candidate(at).has_values()
                && !self.candidate(at).is_beside(self.candidate(first))
                && self.relevance(at) >= self.relevance(first) - SELECTED_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= 1.0
                && self.rows_that_meet(at).is_some_and(|rows| !rows.is_empty());
            is_one.then(|| self.relevance(at))
        })
    }

    /// Whether the question bounds the rows of a table, excludes some, or asks for marks of them.
    pub(crate) fn sets_bounds(&self, of: usize) -> bool {
        let excludes = || self.question.selects && !self.question.excluded.is_empty();
        !self.question.conditions.is_empty() || excludes() || self.marks(of).is_some()
    }

    /// The marks that the question asks for in the table of a candidate.
    pub(crate) fn marks(&self, of: usize) -> Option<&Marks> {
        let one = self.candidate(of);
        self.matches.marks.get(&(one.stretch, one.group))
    }

    /// All rows of the table of a candidate.
    pub(crate) fn mates(&self, of: usize) -> Vec<usize> {
        let is_mate = |at: &usize| {
            let other = self.candidate(*at);
            other.is_beside(self.candidate(of)) && other.has_values()
        };
        self.of_named_part((0..self.reading.candidates.len()).filter(is_mate).collect())
    }

    /// The rows of the first one's table that answer as well as the first one.
    pub(crate) fn rows(&self, first: usize) -> Vec<usize> {
        let bounded = || self.selection(first).filter(|_| self.sets_bounds(first));
        let selected = self.computed(first).or_else(bounded);
        let selected = selected.or_else(|| self.sides_by_key(first));
        let selected = selected.or_else(|| self.sides(first)).or_else(|| self.selection(first));
        if let Some(selected) = selected {
            return selected;
        }
        let own = |at: usize| self.scores[at].own;
        let is_listed = self.question.wanted == Wanted::List
            || self.question.compares
            || self.question.extreme.is_some();
        let (most, drop) = match () {
            () if is_listed => (ROWS_MAX, f32::INFINITY),
            () if self.question.asks_which
                || (self.question.selects && self.question.asked == Asked::Other) =>
            {
                (ROWS_MAX, ROW_DROP_MAX)
            }
            () => (PASSAGES_MAX, ROW_DROP_MAX),
        };
        let mates = self.mates(first);
        let identifying = if is_listed { BTreeSet::new() } else { self.identifying(&mates) };
        let is_less = |at: usize| self.is_identified_less(at, first, &identifying);
        let is_equal = |at: &usize| {
            *at != first
                && !is_less(*at)
                && own(*at) >= own(first) - SAME
                && self.scores[*at].form >= self.scores[first].form - SAME
                && self.relevance(*at) >= self.relevance(first) - drop
        };
        let mut chosen = vec![first];
        chosen.extend(mates.iter().copied().filter(is_equal));
        if chosen.len() > most {
            chosen.truncate(1);
        }
        while let Some(next) = self.needed(&chosen) {
            // A neighbour of the row that is identified adds nothing that was asked for.
            if mates.contains(&next) && is_less(next) {
                break;
            }
            chosen.push(next);
        }
        chosen
    }

    /// The rows that meet the conditions of the question, or are unfinished if it asks for those;
    /// for a counting question, the rows that hold what it says.
    pub(crate) fn selection(&self, first: usize) -> Option<Vec<usize>> {
        let counts = self.question.counts && self.scores[first].is_counted;
        let rows = match self.sets_bounds(first) {
            true if self.question.selects && self.question.extreme.is_none() => {
                self.rows_that_meet(first)
            }
            _ => None,
        };
        let rows = rows.or_else(|| self.unfinished(first)).or_else(|| {
            let mates = self.mates(first);
            let is_of_all = || self.question.is_of_list || self.are_all_meant(&mates);
            let all = || is_of_all().then(|| mates.clone());
            let held = || self.of_values(&mates).or_else(|| self.held_by_some(&mates, first));
            // "Which dishes are vegan" for the column `dish`.
            let named = || {
                self.held_by_some(&mates, first)
                    .filter(|_| names_column(self.question, &self.candidate(first).cells))
            };
            let counted = || counts.then(|| held().or_else(all)).flatten();
            counted().or_else(named).or_else(|| self.rows_in_column(first))
        });
        rows.filter(|rows| (1..=SELECTED_MAX).contains(&rows.len()))
    }

    /// Whether every row holds all that the question says, in itself or in the text above it.
    fn are_all_meant(&self, rows: &[usize]) -> bool {
        let matter = matter(self.question);
        let (own, above) = (&self.matches.own, &self.matches.above);
        let holds = |at: &usize| {
            matter.iter().all(|term| own[*at].contains(term) || above[*at].contains(term))
        };
        !matter.is_empty() && rows.iter().all(holds)
    }

    /// Whether a row is excluded by the bounds of the question.
    pub(crate) fn is_left_by_bounds(&self, at: usize) -> bool {
        let has_bounds = !self.question.conditions.is_empty() && self.candidate(at).has_values();
        has_bounds && self.rows_that_meet(at).is_some_and(|rows| !rows.contains(&at))
    }

    /// A row from which rows are selected, if the question selects rows and the first passage is a
    /// sentence that is only slightly more relevant.
    pub(crate) fn of_selection(&self, first: usize) -> Option<usize> {
        let question = self.question;
        let computes = question.quality.is_some() || question.total.is_some();
        let noun = terms(question.noun.as_deref().unwrap_or_default());
        // "Two offers: Ada 900 EUR, Bo 800 EUR" states the values itself.
        let shown = self.candidate(first).shown();
        let is_told = computes && has_money(&shown) && quantities(&shown).len() > 1;
        if self.candidate(first).has_values() || is_told {
            return None;
        }
        self.best(|at| {
            let (own, above) = (&self.matches.own[at], &self.matches.above[at]);
            let selects = question.is_of_open
                || self.sets_bounds(at)
                || question.counts
                || names_column(question, &self.candidate(at).cells);
            let is_of_noun = (question.counts && self.scores[at].is_counted)
                || !question.others_than.is_empty()
                || noun.iter().any(|term| own.contains(term) || above.contains(term));
            // Values to compute with are evidence by themselves.
            let computes = computes || names_extreme(question, &self.cells(&self.mates(at)));
            let least = if computes { COMPUTED_CONFIDENCE_MIN } else { 1.0 };
            let is_one = self.candidate(at).has_values()
                && ((selects && is_of_noun) || (computes && self.computed(at).is_some()))
                && self.relevance(at) >= self.relevance(first) - SELECTED_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= least
                && (computes || self.selection(at).is_some());
            is_one.then(|| self.relevance(at))
        })
    }

    pub(crate) fn cells(&self, rows: &[usize]) -> Vec<&[Cell]> {
        rows.iter().map(|at| self.candidate(*at).cells.as_slice()).collect()
    }

    /// The members of `rows` that the question excludes: one of their values is excluded, or their
    /// first value holds a name that others are asked for than, "Ada Solheim" for "besides Ada".
    fn left_out(&self, rows: &[usize], excluded: &BTreeSet<&String>) -> Vec<usize> {
        let others_than = &self.question.others_than;
        let is_one = |cell: &Cell| {
            let said = terms(&cell.value);
            !said.is_empty() && said.iter().all(|term| excluded.contains(term))
        };
        let is_key = |cell: &Cell| others_than.is_subset(&terms(&cell.value));
        let is_left_out = |at: &usize| {
            let cells = &self.candidate(*at).cells;
            let is_named = || !others_than.is_empty() && cells.first().is_some_and(is_key);
            cells.iter().any(is_one) || is_named()
        };
        rows.iter().copied().filter(is_left_out).collect()
    }

    /// The rows that meet the conditions of the question, have the marks it asks for, are not
    /// excluded by it, and hold whatever else it says. `None` if an exclusion is the only condition
    /// and matches no row, or if it is unclear which column a bound applies to.
    pub(crate) fn rows_that_meet(&self, first: usize) -> Option<Vec<usize>> {
        let (mates, marks) = (self.mates(first), self.marks(first));
        // "Not accessible" excludes no value if it asks for a mark.
        let is_mark = |term: &&String| marks.is_some_and(|marks| marks.terms.contains(*term));
        let excluded = self.question.excluded.iter().filter(|term| !is_mark(term)).collect();
        let left_out = self.left_out(&mates, &excluded);
        if self.question.conditions.is_empty() && marks.is_none() && !excluded.is_empty() {
            left_out.first()?;
        }
        let mut rows = self.of_values(&mates).or_else(|| self.held_by_some(&mates, first));
        let rows = rows.get_or_insert_with(|| mates.clone());
        let is_marked = |row: &usize| marks.is_none_or(|marks| marks.met.contains(row));
        rows.retain(|row| !left_out.contains(row) && is_marked(row));
        for condition in &self.question.conditions {
            // All rows are needed to tell which column is meant.
            let met = condition.met(self.question.last(), &self.cells(&mates))?;
            rows.retain(|row| met.iter().any(|at| mates[*at] == *row));
        }
        Some(rows.clone())
    }

    /// The values of rows that occur whole in the question, such as "tent" or "Lumo", with the row
    /// and the column of each.
    pub(crate) fn whole_values(&self, rows: &[usize]) -> Vec<(usize, &str, BTreeSet<String>)> {
        let question = self.question;
        let mut asked = terms(&unbound(question.last(), &question.conditions));
        let marks = rows.first().and_then(|row| self.marks(*row));
        let is_mark = |term: &String| marks.is_some_and(|marks| marks.terms.contains(term));
        let of_columns = rows.first().map(|row| {
            let cells = &self.candidate(*row).cells;
            terms_of_columns(question, cells)
        });
        let of_columns = of_columns.unwrap_or_default();
        asked.retain(|term| {
            let is_known = of_columns.contains(term) || question.excluded.contains(term);
            !is_common(term) && !is_known && !is_mark(term)
        });
        let whole = |cell: &Cell| {
            let said = terms(&cell.value);
            // The "A" of "harness A" is a label, not a term.
            let mut labels = cell.value.unicode_words().filter(|word| word.len() == 1);
            let is_whole = !said.is_empty()
                && said.is_subset(&asked)
                && labels.all(|label| question.last().unicode_words().any(|it| it == label));
            is_whole.then_some(said)
        };
        let cells = |at: &usize| {
            let cells = self.candidate(*at).cells.iter().map(move |cell| (*at, cell));
            cells.collect::<Vec<_>>()
        };
        let told = rows.iter().flat_map(cells);
        told.filter_map(|(at, cell)| Some((at, cell.name.as_str(), whole(cell)?))).collect()
    }

    /// The values that occur whole in the question, apart from those that share a column with
    /// another one.
    pub(crate) fn values_in(&self, rows: &[usize]) -> BTreeSet<BTreeSet<String>> {
        let held = self.whole_values(rows);
        let is_alone = |value: &BTreeSet<String>| {
            let columns: BTreeSet<&str> = held
                .iter()
                .filter(|(.., one)| one == value)
                .map(|(_, column, _)| *column)
                .collect();
            held.iter().all(|(_, column, one)| one == value || !columns.contains(column))
        };
        held.iter().map(|(.., value)| value).filter(|value| is_alone(value)).cloned().collect()
    }

    /// The rows whose values occur whole in the question; a row must match in every column with
    /// such values, but a single value only in the column that the question names, or in any.
    /// `None` if no column has any, or all rows match.
    pub(crate) fn of_values(&self, rows: &[usize]) -> Option<Vec<usize>> {
        let (held, alone) = (self.whole_values(rows), self.values_in(rows));
        let mut left = rows.to_vec();
        let mut done: BTreeSet<&BTreeSet<String>> = BTreeSet::new();
        for (column, _) in columns(&self.cells(rows)) {
            let of_column = held.iter().filter(|(_, name, _)| *name == column);
            let value = of_column.clone().map(|(.., value)| value).find(|it| alone.contains(*it));
            let meant: Vec<usize> = match value {
                Some(value) if !done.insert(value) => continue,
                Some(value) => self.rows_of_value(rows, value),
                None => of_column.map(|(at, ..)| *at).collect(),
            };
            if left.iter().any(|at| meant.contains(at)) {
                left.retain(|at| meant.contains(at));
            }
        }
        (left.len() < rows.len()).then_some(left)
    }

    /// The row for each side of a comparison, if the question names the sides and both are in the
    /// first one's table.
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
                let foreign = key.difference(&asked).count();
                // A word of the side counts more than one that the question says of both.
                let fit = SIDE_WEIGHT * held + said.intersection(&asked).count();
                (held > 0).then_some((fit.saturating_sub(foreign), Reverse(at)))
            };
            mates.iter().filter_map(|at| fit(*at)).max().map(|(_, Reverse(at))| at)
        };
        let (one, other) = (row(one)?, row(other)?);
        (one != other).then(|| vec![one, other])
    }
}
