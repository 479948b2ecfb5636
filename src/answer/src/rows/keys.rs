//! Keys: values by which a question identifies a row, because it contains them whole.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::passages::candidates::Candidate;
use crate::question::several::is_plural;
use crate::question::wish::{Question, Wanted};
use crate::rows::ranges::{is_within, terms_of_columns};
use crate::text::terms::terms;
use crate::text::values::{Quantity, year};
use crate::text::words::is_entry;
use lodestone_text::HybridQuery;

/// Relevance bonus per cell that the question contains whole, and the maximum number of cells
/// counted.
const KEY_BONUS: f32 = 0.1;
const KEYS_MAX: usize = 2;
/// Maximum number of rows that may share a value for it to count as a key.
const KEY_ROWS_MAX: usize = 3;

/// Words before the name of a column that make the number behind it a bound or an amount, and words
/// behind a number that counts anew.
const BEFORE_BOUND: &str = "\
    before|after|until|till|since|from|past|by|over|under|above|below|than|i|we|you|they|to|can|\
    must|should|may|vor|nach|bis|seit|ab|avant|après|jusqu'à|depuis|antes|después|hasta|desde";
const BEHIND_NUMBER: &str = "of|to|or|and|bis|oder|und|à|ou|et|a|o|y";

/// Whether a question names a letter or digit together with its column, as in "class A".
fn is_named_letter(question: &Question, cell: &Cell) -> bool {
    if cell.value.chars().count() != 1 || cell.name.is_empty() {
        return false;
    }
    let words: Vec<&str> = question.text.unicode_words().collect();
    words.windows(2).any(|pair| {
        let is_column =
            || HybridQuery::analyse(pair[0]).terms() == HybridQuery::analyse(&cell.name).terms();
        pair[1] == cell.value && is_column()
    })
}

/// Whether a question numbers something by a column of this row, "week 30", and the row has
/// another number. Numbers that bound or count things do not identify them, and years only years.
pub(crate) fn has_other_number(question: &Question, row: &Candidate) -> bool {
    if row.cells.len() < 2 || !question.conditions.is_empty() || question.compares {
        return false;
    }
    let words: Vec<&str> = question.last().unicode_words().collect();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    let asked: Vec<u32> = (0..words.len()).filter_map(number).collect();
    if asked.is_empty() {
        return false;
    }
    let named = |cell: &Cell| {
        let name = HybridQuery::analyse(&cell.name);
        let is_name = |at: usize| HybridQuery::analyse(words[at]).terms() == name.terms();
        let is_next = |at: usize, list: &str| {
            words.get(at).is_some_and(|word| is_entry(list, &word.to_lowercase()))
        };
        (0..words.len()).any(|at| {
            number(at + 1).is_some()
                && is_name(at)
                // "The budget 2026" is that of the year.
                && (year(words[at + 1]).is_none() || year(&cell.value).is_some())
                && !at.checked_sub(1).is_some_and(|before| is_next(before, BEFORE_BOUND))
                && !is_next(at + 2, BEHIND_NUMBER)
                && !words.get(at + 2).is_some_and(|word| word.len() > 2 && word.ends_with('s'))
        })
    };
    let is_other = |cell: &&Cell| {
        let value = cell.value.parse::<u32>();
        let name = cell.name.to_lowercase();
        // A column "Seats" counts things: "which halls seat 40 people".
        let counts = name.unicode_words().next_back().is_some_and(is_plural);
        !name.is_empty() && !counts && value.is_ok_and(|value| !asked.contains(&value))
    };
    row.cells.iter().filter(is_other).any(named)
}

/// The number of rows with each value in each table, and the terms of the things a question lists.
pub(crate) struct Keys {
    rows: BTreeMap<(usize, usize, String), usize>,
    listed: BTreeSet<String>,
}

impl Keys {
    /// Counts the values of all rows.
    pub(crate) fn of(question: &Question, candidates: &[Candidate]) -> Self {
        let mut counts = BTreeMap::new();
        for candidate in candidates.iter().filter(|candidate| candidate.has_values()) {
            for cell in &candidate.cells {
                *counts.entry(Self::key(candidate, cell)).or_default() += 1;
            }
        }
        let noun = question.noun.as_deref().filter(|_| question.wanted == Wanted::List);
        Self { rows: counts, listed: noun.map(terms).unwrap_or_default() }
    }

    /// Number of rows in the cell's table with the same value.
    pub(crate) fn rows(&self, one: &Candidate, cell: &Cell) -> usize {
        self.rows.get(&Self::key(one, cell)).copied().unwrap_or_default()
    }

    fn key(candidate: &Candidate, cell: &Cell) -> (usize, usize, String) {
        (candidate.stretch, candidate.group, cell.value.to_lowercase())
    }

    /// The bonus for cells that the question contains whole and that distinguish a row, and for
    /// ranges that contain its numbers.
    pub(crate) fn bonus(
        &self,
        question: &Question,
        one: &Candidate,
        wanted: &BTreeSet<String>,
    ) -> f32 {
        if !one.has_values() || !question.wants_values() {
            return 0.0;
        }
        let of_columns = terms_of_columns(question, &one.cells);
        let is_key = |cell: &&Cell| {
            let said = || terms(&cell.value);
            self.rows(one, cell) <= KEY_ROWS_MAX
                && cell.value.chars().count() > 1
                && !said().is_empty()
                && said().is_subset(wanted)
                && !said().is_subset(&of_columns)
        };
        // "remark: first aider" for "list the first aiders".
        let is_listed = |cell: &Cell| {
            let said = terms(&cell.value);
            !said.is_disjoint(&self.listed) && said.is_subset(wanted)
        };
        let is_of_kind = !self.listed.is_empty() && one.cells.iter().any(is_listed);
        if is_of_kind || one.cells.iter().any(|cell| is_named_letter(question, cell)) {
            return KEY_BONUS * KEYS_MAX as f32;
        }
        let is_within = |asked: &&Quantity| is_within(&one.cells, asked);
        let ranges = question.quantities.iter().filter(is_within).count();
        let keys = one.cells.iter().filter(is_key).count() + ranges;
        KEY_BONUS * keys.min(KEYS_MAX) as f32
    }
}

/// Whether a question asks for several of the things that a column is named after: "which dishes"
/// for `dish`.
pub(crate) fn names_column(question: &Question, row: &[Cell]) -> bool {
    let noun = terms(question.noun.as_deref().unwrap_or_default());
    let is_one = |cell: &Cell| {
        let name = terms(&cell.name.replace('_', " "));
        !name.is_empty() && name.is_subset(&noun)
    };
    row.len() > 1 && row.iter().any(is_one)
}
