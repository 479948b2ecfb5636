//! Rows that state their progress, and the unfinished ones among them.

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::question::phrases::OPEN;
use crate::text::values::days;
use crate::text::words::{begins_with, contains, is_entry, spaced};

/// Names of columns that hold the state of a row, and first words of the states of finished rows.
const STATES: &str = "\
    status|state|done|result|stand|zustand|stato|état|statut|estado|situación|erledigt|progress";
const DONE: &str = "\
    closed|done|finished|completed|complete|fixed|solved|resolved|cancelled|canceled|rejected|yes|\
    paid|settled|ended|shipped|delivered|dispatched|collected|returned|refunded|archived|erledigt|\
    geschlossen|abgeschlossen|behoben|bezahlt|geliefert|versandt|storniert|ja|fermé|clos|terminé|\
    résolu|payé|livré|expédié|annulé|oui|cerrado|terminado|resuelto|pagado|hecho|entregado|enviado|\
    cancelado|anulado|sí";
/// Beginnings of states of rows in progress.
const GOING_ON: &str = "\
    waiting|awaiting|pending|ongoing|assigned|started|reopened|blocked|paused|on hold|in progress|\
    in work|in repair|under way|under review|wartet|laufend|angefangen|in arbeit|in bearbeitung|\
    en cours|en attente|en curso|en proceso";
/// Values, in a column about completion, of rows that are not complete.
const UNDONE: &str = "no|not|open|pending|none|never|nein|offen|non|ouvert|abierto";

/// Values that mean that something is missing or not yet there.
const BLANK: &str = "\
    -|--|\u{2013}|\u{2014}|?|n/a|n.a.|na|none|nil|null|tbd|tba|tbc|t.b.d.|unknown|open|pending|\
    not yet|offen|keine|keiner|kein|k. a.|k.a.|unbekannt|aucun|aucune|ouvert|en attente|ninguno|\
    ninguna|pendiente|abierto";

/// Whether a row has a column with its state, or with the time it was finished.
pub(crate) fn tells_state(row: &[Cell]) -> bool {
    row.len() > 1 && row.iter().any(|cell| is_state(cell) || is_end(cell))
}

/// Whether a cell holds a state. A date in a column `done` is the time of completion instead.
fn is_state(cell: &Cell) -> bool {
    is_entry(STATES, &cell.name) && days(&cell.value).is_empty()
}

/// Whether a cell tells whether or when its row was finished: "closed: 2025-03-01", "paid: no".
fn is_end(cell: &Cell) -> bool {
    let first = first_word(cell);
    cell.name.split(['_', ' ']).any(|word| is_entry(DONE, word))
        && (is_entry(DONE, first) || is_entry(UNDONE, first) || !days(&cell.value).is_empty())
}

fn first_word(cell: &Cell) -> &str {
    cell.value.unicode_words().next().unwrap_or_default()
}

/// Positions of the unfinished rows; `None` if no row tells. If the question names an open state
/// literally ("open" beside "waiting" and "sent off"), the rows in that state count and, unless it
/// names the state's column too, those in progress. Otherwise rows count by their state or, where
/// no row has one, by the lack of a completion. `asked` holds the words of the question.
pub(crate) fn open(asked: &str, rows: &[&[Cell]]) -> Option<Vec<usize>> {
    let first = |row: &[Cell], is_one: fn(&Cell) -> bool| {
        row.iter().find(|cell| is_one(cell)).map(|cell| first_word(cell).to_owned())
    };
    let has = |is_one| rows.iter().any(|row| first(row, is_one).is_some());
    let (has_state, has_ends) = (has(is_state), has(is_end));
    let is_said = |row: &[Cell]| {
        let state = first(row, is_state).map(|word| word.to_lowercase());
        state.is_some_and(|word| is_entry(OPEN, &word) && contains(asked, &word))
    };
    if rows.iter().any(|row| is_said(row)) {
        let is_exact = rows.iter().any(|row| names_state(asked, row));
        let is_one = |at: &usize| is_said(rows[*at]) || (!is_exact && goes_on(rows[*at]));
        return Some((0..rows.len()).filter(is_one).collect());
    }
    let is_open = |row: &[Cell]| match has_state {
        true => first(row, is_state).is_some_and(|word| !is_entry(DONE, &word)),
        false => first(row, is_end).is_none_or(|word| is_entry(UNDONE, &word)),
    };
    let open = (0..rows.len()).filter(|at| is_open(rows[*at]));
    (has_state || has_ends).then(|| open.collect())
}

/// Whether the question names the state column of a row together with its state: "have the status
/// open".
fn names_state(asked: &str, row: &[Cell]) -> bool {
    row.iter().filter(|cell| is_state(cell)).any(|cell| {
        let (name, state) = (cell.name.to_lowercase(), first_word(cell).to_lowercase());
        ["", "is "].iter().any(|verb| contains(asked, &format!("{name} {verb}{state}")))
    })
}

/// Whether the state of a row means that it is in progress.
fn goes_on(row: &[Cell]) -> bool {
    let state = row.iter().find(|cell| is_state(cell)).map(|cell| spaced(&cell.value));
    state.is_some_and(|state| begins_with(&state, GOING_ON))
}

/// Whether a value means that there is none, or none yet.
pub(crate) fn is_blank(value: &str) -> bool {
    let value = value.trim();
    value.is_empty() || is_entry(BLANK, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_days_tells_what_is_done() {
        let row = |done: Option<&str>| {
            let cell =
                |(name, value): (&str, &str)| Cell { name: name.into(), value: value.into() };
            let known = done.map(|day| ("done", day));
            [("boat", "Heron")].into_iter().chain(known).map(cell).collect::<Vec<_>>()
        };
        let rows = [row(Some("2026-03-02")), row(None), row(Some("2026-03-09"))];
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        assert_eq!(open("which repairs are open", &rows), Some(vec![1]));
        let rows = [row(Some("yes")), row(Some("no"))];
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        assert_eq!(open("which repairs are open", &rows), Some(vec![1]));
    }
}
