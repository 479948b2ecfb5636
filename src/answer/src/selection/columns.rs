//! Columns of a table that hold a name or word of the question, and which of them it means.
//!
//! A name may occur in several columns: whoever has the early shift today is on call tomorrow. If
//! the question names one of these columns, only its cells count. A note that mentions a kind of
//! things does not make its row one of them.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::rows::evaluate::{columns, is_code, is_of_numbers};
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::words::{Asked, contains, spaced};
use lodestone_text::HybridQuery;

/// Minimum number of rows in which a column of names holds the words of the question.
const NAMED_MIN: usize = 2;
/// Minimum number of other words in a cell of prose.
const NOTE_WORDS_MIN: usize = 2;
/// The word that demands a value in several columns at once.
const BOTH: &str = "both";

/// Words between an attribute and its owner.
const OWNED: [&str; 2] = ["of", "for"];

/// The rows that hold some terms of the question in the columns that it means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The question names none of the columns with these terms, or they are the key of a row.
    Free,
    To(Vec<usize>),
    /// The question names a column with such values, but none of its cells holds these.
    Nowhere,
}

/// The columns that hold some terms, with the rows in which they do.
type Holding<'r> = Vec<(&'r str, Vec<usize>)>;

impl Choice<'_> {
    /// The columns in which a cell of `rows` holds the terms: nothing else if `is_whole`.
    fn holding(&self, rows: &[usize], said: &BTreeSet<String>, is_whole: bool) -> Holding<'_> {
        let mut found: Holding = Vec::new();
        for at in rows {
            for cell in &self.candidate(*at).cells {
                let own = terms(&cell.value);
                let is_held = if is_whole { own == *said } else { said.is_subset(&own) };
                match found.iter_mut().find(|(name, _)| *name == cell.name) {
                    _ if !is_held => {}
                    Some((_, rows)) => rows.push(*at),
                    None => found.push((&cell.name, vec![*at])),
                }
            }
        }
        found
    }

    /// The rows that hold the terms in the columns that the question names.
    pub(crate) fn bound(&self, rows: &[usize], said: &BTreeSet<String>, is_whole: bool) -> Bound {
        let held = self.holding(rows, said, is_whole);
        let keys = self.keys_of(rows);
        if held.is_empty() || held.iter().any(|(name, _)| keys.contains(name)) {
            return Bound::Free;
        }
        let asked = &terms(self.question.last()) - said;
        let named = |name: &str| {
            let name = terms(&name.replace('_', " "));
            let shared = name.intersection(&asked).count();
            (shared > 0 && shared == name.len(), shared)
        };
        let best = held.iter().map(|(name, _)| named(name)).max().unwrap_or_default();
        let cells = self.cells(rows);
        let all = columns(&cells);
        let values = |of: &str| -> BTreeSet<String> {
            let own = all.iter().filter(|(name, _)| *name == of).flat_map(|(_, values)| values);
            own.filter(|value| value.contains(char::is_alphabetic))
                .map(|value| value.to_lowercase())
                .collect()
        };
        // "The late shift" of someone who has only early ones.
        let is_of_same_kind = |name: &str| {
            let own = values(name);
            held.iter().any(|(other, _)| !values(other).is_disjoint(&own))
        };
        let is_asked = |name: &&str| named(name).0 && !keys.contains(name);
        let mut names = all.iter().map(|(name, _)| *name).filter(is_asked);
        match best {
            (false, _) if names.any(is_of_same_kind) => Bound::Nowhere,
            (_, 0) => Bound::Free,
            best => {
                let meant = held.into_iter().filter(|(name, _)| named(name) == best);
                Bound::To(self.joined(rows, meant.map(|(_, rows)| rows).collect()))
            }
        }
    }

    /// The rows in any of some sets; in all of them if the question says "both".
    fn joined(&self, rows: &[usize], sets: Vec<Vec<usize>>) -> Vec<usize> {
        let is_both = contains(&spaced(self.question.last()), BOTH);
        let is_in = |at: &usize| match is_both {
            true => sets.iter().all(|set| set.contains(at)),
            false => sets.iter().any(|set| set.contains(at)),
        };
        rows.iter().copied().filter(is_in).collect()
    }

    /// The rows that the question means by a value which occurs in one or more columns.
    pub(crate) fn rows_of_value(&self, rows: &[usize], value: &BTreeSet<String>) -> Vec<usize> {
        if let Bound::To(rows) = self.bound(rows, value, true) {
            return rows;
        }
        let (mut held, keys) = (self.holding(rows, value, true), self.keys_of(rows));
        if held.iter().any(|(name, _)| keys.contains(name)) {
            held.retain(|(name, _)| keys.contains(name));
        }
        self.joined(rows, held.into_iter().map(|(_, rows)| rows).collect())
    }

    /// The columns that tell what a row is about: the first one, and the next after one of
    /// numbers.
    pub(crate) fn keys_of(&self, rows: &[usize]) -> BTreeSet<&str> {
        let cells = rows.first().map_or(&[][..], |at| &self.candidate(*at).cells);
        let is_number = |cell: &Cell| is_code(&cell.value) || is_of_numbers(&cell.name);
        let has_codes = cells.first().is_some_and(is_number);
        cells.iter().take(if has_codes { 2 } else { 1 }).map(|cell| cell.name.as_str()).collect()
    }

    /// The terms that all of some rows hold in their values, other than the `known` ones.
    pub(crate) fn shared(&self, rows: &[usize], known: &BTreeSet<String>) -> BTreeSet<String> {
        let own = |at: &usize| -> BTreeSet<String> {
            let cells = &self.candidate(*at).cells;
            let said: BTreeSet<String> = cells.iter().flat_map(|cell| terms(&cell.value)).collect();
            let own = self.matches.own[*at].intersection(&said);
            own.filter(|term| !known.contains(*term)).cloned().collect()
        };
        let mut all = rows.iter().map(own);
        let first = all.next().unwrap_or_default();
        all.fold(first, |shared, own| &shared & &own)
    }

    /// The rows among `held`, which share some terms, that hold them where the question means: in
    /// the column that it names, else where most rows do rather than in a note.
    pub(crate) fn where_meant(&self, held: Vec<usize>, shared: &BTreeSet<String>) -> Vec<usize> {
        if shared.is_empty() {
            return held;
        }
        if let Bound::To(rows) = self.bound(&held, shared, false) {
            return rows;
        }
        let columns = self.holding(&held, shared, false);
        let most = columns.iter().map(|(_, rows)| rows.len()).max().unwrap_or_default();
        let mut leading = columns.iter().filter(|(_, rows)| rows.len() == most);
        let Some((column, _)) = leading.next().filter(|_| most >= NAMED_MIN) else { return held };
        if leading.next().is_some() {
            return held;
        }
        let is_noted_only = |at: &usize| {
            let cells = self.candidate(*at).cells.iter();
            let mut holding = cells.filter(|cell| shared.is_subset(&terms(&cell.value))).peekable();
            holding.peek().is_some()
                && holding.all(|cell| cell.name != *column && is_note(cell, shared))
        };
        held.iter().copied().filter(|at| !is_noted_only(at)).collect()
    }

    /// All rows of the table of `first` in which the column that the question names holds what it
    /// says, if other columns hold that too.
    pub(crate) fn rows_in_column(&self, first: usize) -> Option<Vec<usize>> {
        if self.asks_of_column(first) {
            return None;
        }
        let mates = self.mates(first);
        let values = self.values_in(&mates);
        let is_bound = |value: &BTreeSet<String>| {
            matches!(self.bound(&mates, value, true), Bound::To(_))
                && self.holding(&mates, value, true).len() > 1
        };
        values.iter().any(is_bound).then(|| self.of_values(&mates)).flatten()
    }

    /// Whether the question asks for the value of a column that it names, rather than for rows:
    /// "who is the reviewer of Ada's texts".
    fn asks_of_column(&self, first: usize) -> bool {
        let question = self.question;
        let asked = spaced(question.last());
        let is_owned = |cell: &Cell| {
            let name = spaced(&cell.name.replace('_', " "));
            let name = name.trim();
            OWNED.iter().any(|of| contains(&asked, &format!("the {name} {of}")))
        };
        let mut cells = self.candidate(first).cells.iter();
        !question.counts && (question.asked == Asked::Person || cells.any(is_owned))
    }

    /// Whether the question names a column for a value that only other columns of the candidate's
    /// table hold.
    pub(crate) fn lacks_in_column(&self, first: usize) -> bool {
        let mates = self.mates(first);
        if mates.len() < NAMED_MIN
            || self.asks_of_column(first)
            || self.candidate(first).cells.len() < 2
        {
            return false;
        }
        let is_nowhere = |value: &BTreeSet<String>, is_whole| {
            self.bound(&mates, value, is_whole) == Bound::Nowhere
        };
        let values = self.values_in(&mates);
        let held = || self.held(&mates, first).map(|(_, shared)| shared).unwrap_or_default();
        match values.is_empty() {
            false => values.iter().any(|value| is_nowhere(value, true)),
            true => self.question.counts && is_nowhere(&held(), false),
        }
    }
}

/// Whether a cell holds the terms within prose rather than in a name or an enumeration.
fn is_note(cell: &Cell, shared: &BTreeSet<String>) -> bool {
    let is_other = |word: &&str| {
        let analysed = HybridQuery::analyse(word);
        !analysed.terms().iter().any(|term| shared.contains(term))
    };
    let others: Vec<&str> = cell.value.unicode_words().filter(is_other).collect();
    others.len() >= NOTE_WORDS_MIN && others.iter().any(|word| is_common(&word.to_lowercase()))
}
