//! Rows of things of which none are left, or too few, by the number in their column of stock.

use crate::passages::blocks::Cell;
use crate::rows::evaluate::{Column, cell};
use crate::rows::states::is_blank;
use crate::text::values::{measure, words_of};
use crate::text::words::{contains_any, is_entry};

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
/// Further names of columns that hold such numbers.
const NUMBERS: &str = "count|pieces|pcs|units|anzahl|stück|stückzahl|pièces|unidades|piezas";
/// Two words of such a name.
const ON_HAND: [&str; 2] = ["on", "hand"];

/// Values for a number of zero; "?" and "n/a" are not known.
const NONE: &str = "|-|--|\u{2013}|\u{2014}|none|nil|keine|kein|aucun|aucune|ninguno|ninguna";

/// Phrases of questions for things of which there are too few.
const TOO_FEW: &str = "\
    below minimum|below the minimum|below their minimum|below min|under minimum|\
    under the minimum|under their minimum|less than the minimum|fewer than the minimum|\
    below the reorder level|below reorder level|need reordering|be reordered|\
    unter mindestbestand|unter dem mindestbestand|sous le minimum|sous le stock minimum|\
    bajo el mínimo|por debajo del mínimo";
/// Words in the names of columns that hold the least number there should be.
const LEASTS: &str =
    "min|minimum|mindestbestand|mindestmenge|reorder|meldebestand|seuil|mínimo|minimo";

/// Positions of the rows of which none are left, or fewer than their minimum, if a question in
/// `spaced` words asks for those and exactly one column holds each number.
pub(crate) fn run_out(
    spaced: &str,
    rows: &[&[Cell]],
    columns: &[Column<'_>],
) -> Option<Vec<usize>> {
    let (asks_none, asks_few) = (contains_any(spaced, RUN_OUT), contains_any(spaced, TOO_FEW));
    if !(asks_none || asks_few) || rows.len() < 2 {
        return None;
    }
    let stock = only_column(columns, &|words| {
        words.iter().any(|word| is_entry(STOCKS, word) && !is_least(words))
            || words.windows(2).any(|two| two == ON_HAND)
    })?;
    let left = |row: &[Cell], name: &str| {
        let value = cell(row, name)?;
        if is_entry(NONE, value.trim()) { Some(0.0) } else { measure(value) }
    };
    let least = only_column(columns, &is_least).filter(|_| !asks_none);
    let is_one = |row: &[Cell]| match least {
        Some(least) => left(row, stock).zip(left(row, least)).is_some_and(|(is, least)| is < least),
        None => left(row, stock) == Some(0.0),
    };
    (asks_none || least.is_some()).then(|| (0..rows.len()).filter(|at| is_one(rows[*at])).collect())
}

/// Whether a column holds the number of things there are, by its name.
pub(crate) fn is_of_stock(name: &str) -> bool {
    let words: Vec<String> = words_of(name).collect();
    let is_one = |word: &String| is_entry(STOCKS, word) || is_entry(NUMBERS, word);
    (words.iter().any(is_one) || words.windows(2).any(|two| two == ON_HAND)) && !is_least(&words)
}

/// Whether the words of a column's name say that it holds minima.
fn is_least(words: &[String]) -> bool {
    words.iter().any(|word| is_entry(LEASTS, word))
}

/// The only column of numbers whose name has words that `is_one` accepts.
fn only_column<'r>(columns: &[Column<'r>], is_one: &dyn Fn(&[String]) -> bool) -> Option<&'r str> {
    let is_of = |(name, values): &&Column<'_>| {
        let words: Vec<String> = words_of(name).collect();
        is_one(&words) && values.iter().all(|value| is_blank(value) || measure(value).is_some())
    };
    let mut found = columns.iter().filter(is_of);
    let (name, _) = found.next()?;
    found.next().is_none().then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::evaluate::columns;
    use crate::text::words::spaced;

    /// Goal: the column of stock tells what has run out, whatever other columns hold a zero; beside
    /// the column of minima it tells what is scarce.
    #[test]
    fn things_with_a_stock_of_zero_have_run_out() {
        let row = |values: [&str; 4]| {
            let named = ["seed", "stock", "reserved", "min stock"].into_iter().zip(values);
            let cell =
                |(name, value): (&str, &str)| Cell { name: name.into(), value: value.into() };
            named.map(cell).collect::<Vec<_>>()
        };
        let rows = [
            ["rye", "0", "2", "0"],
            ["oats", "12", "0", "20"],
            ["peas", "0 kg", "0", "5"],
            ["flax", "unknown", "0", "5"],
        ];
        let rows = rows.map(row);
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let found = |question: &str| run_out(&spaced(question), &rows, &columns(&rows));
        assert_eq!(found("Which seeds are out of stock?"), Some(vec![0, 2]));
        assert_eq!(found("Which seeds do we have none of?"), Some(vec![0, 2]));
        assert_eq!(found("Which seeds are below the minimum?"), Some(vec![1, 2]));
        assert_eq!(found("Which seeds are in stock?"), None);
    }
}
