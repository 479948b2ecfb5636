//! Keys: values by which a question identifies a row, because it contains them whole.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::passages::candidates::Candidate;
use crate::question::wish::{Question, Wanted};
use crate::text::terms::terms;
use lodestone_text::HybridQuery;

/// Relevance bonus per cell that the question contains whole, and the maximum number of cells
/// counted.
const KEY_BONUS: f32 = 0.1;
const KEYS_MAX: usize = 2;
/// Maximum number of rows that may share a value for it to count as a key.
const KEY_ROWS_MAX: usize = 3;

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

    /// The bonus for cells that the question contains whole and that distinguish a row.
    pub(crate) fn bonus(
        &self,
        question: &Question,
        one: &Candidate,
        wanted: &BTreeSet<String>,
    ) -> f32 {
        if !one.has_values() || !question.wants_values() {
            return 0.0;
        }
        let is_key = |cell: &&Cell| {
            let said = || terms(&cell.value);
            self.rows(one, cell) <= KEY_ROWS_MAX
                && cell.value.chars().count() > 1
                && !said().is_empty()
                && said().is_subset(wanted)
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
        KEY_BONUS * one.cells.iter().filter(is_key).take(KEYS_MAX).count() as f32
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
