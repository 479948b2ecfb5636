//! Rows of things of which none are left, by the number in their column of stock.

use crate::passages::blocks::Cell;
use crate::rows::evaluate::{Column, cell};
use crate::rows::states::is_blank;
use crate::text::values::{measure, words_of};
use crate::text::words::{contains, entries, is_entry};

/// Phrases of questions for things that have run out.
const RUN_OUT: &str = "\
    have none of|have none|got none of|have none left|are none left|is none left|none in stock|\
    none on stock|out of stock|not in stock|not on stock|no longer in stock|no stock|\
    have run out|has run out|run out of|ran out of|are we out of|we are out of|we're out of|\
    sold out|nicht auf lager|nicht vorrätig|nicht mehr vorrätig|ausverkauft|\
    en rupture|épuisé|épuisés|épuisée|épuisées|agotado|agotada|agotados|agotadas|sin existencias";
/// Words in the names of columns that hold the number of things there are.
const STOCKS: &str = "\
    stock|available|quantity|qty|remaining|left|bestand|lagerbestand|vorrat|vorrätig|menge|restant|\
    disponible|disponibles|quantité|existencias|cantidad";
/// Two words of such a name.
const ON_HAND: [&str; 2] = ["on", "hand"];

/// Positions of the rows of which none are left, if a question in `spaced` words asks for those and
/// exactly one column holds their numbers.
pub(crate) fn run_out(
    spaced: &str,
    rows: &[&[Cell]],
    columns: &[Column<'_>],
) -> Option<Vec<usize>> {
    if !entries(RUN_OUT).any(|phrase| contains(spaced, phrase)) {
        return None;
    }
    let is_stock = |(name, values): &&Column<'_>| {
        let words: Vec<String> = words_of(name).collect();
        let is_named = words.iter().any(|word| is_entry(STOCKS, word))
            || words.windows(2).any(|two| two == ON_HAND);
        is_named && values.iter().all(|value| is_blank(value) || measure(value).is_some())
    };
    let mut stocks = columns.iter().filter(is_stock);
    let (name, _) = stocks.next().filter(|_| rows.len() > 1)?;
    if stocks.next().is_some() {
        return None;
    }
    let is_none = |row: &[Cell]| {
        cell(row, name).is_some_and(|value| is_blank(value) || measure(value) == Some(0.0))
    };
    Some((0..rows.len()).filter(|at| is_none(rows[*at])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::evaluate::columns;
    use crate::text::words::spaced;

    /// Goal: the column of stock tells what has run out, whatever other columns hold a zero.
    #[test]
    fn things_with_a_stock_of_zero_have_run_out() {
        let row = |values: [&str; 3]| {
            let named = ["seed", "stock", "reserved"].into_iter().zip(values);
            let cell =
                |(name, value): (&str, &str)| Cell { name: name.into(), value: value.into() };
            named.map(cell).collect::<Vec<_>>()
        };
        let rows = [["rye", "0", "2"], ["oats", "12", "0"], ["peas", "0 kg", "0"]].map(row);
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let found = |question: &str| run_out(&spaced(question), &rows, &columns(&rows));
        assert_eq!(found("Which seeds are out of stock?"), Some(vec![0, 2]));
        assert_eq!(found("Which seeds do we have none of?"), Some(vec![0, 2]));
        assert_eq!(found("Which seeds are in stock?"), None);
    }
}
