//! Stocks: rows that tell how many there are of the thing they name, "item: mast; quantity: 4".

use std::collections::BTreeSet;

use crate::passages::blocks::Cell;
use crate::rows::stock::is_of_stock;
use crate::text::terms::terms;

/// Whether a value of a row names the thing counted whole, and another one, in a column of stock,
/// is a number.
pub(crate) fn tells_stock(row: &[Cell], things: &[String]) -> bool {
    let things: BTreeSet<String> = things.iter().cloned().collect();
    let is_number = |cell: &Cell| {
        let value = cell.value.trim();
        is_of_stock(&cell.name) && value.starts_with(|c: char| c.is_ascii_digit())
    };
    !things.is_empty()
        && row.iter().any(|cell| things.is_subset(&terms(&cell.value)))
        && row.iter().any(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a number in a column of stock counts the thing that the row names, and no other.
    #[test]
    fn the_stock_of_a_named_thing_is_its_number() {
        let cell = |name: &str, value: &str| Cell { name: name.into(), value: value.into() };
        let row = [cell("part", "Mast, long"), cell("Qty", "4"), cell("price", "300")];
        let things = |words: &[&str]| words.iter().flat_map(|word| terms(word)).collect::<Vec<_>>();
        assert!(tells_stock(&row, &things(&["long", "masts"])));
        assert!(!tells_stock(&row, &things(&["short", "masts"])));
        assert!(!tells_stock(&row[..1], &things(&["long", "masts"])));
        assert!(!tells_stock(&[cell("part", "Mast"), cell("Qty", "none")], &things(&["masts"])));
    }
}
