//! The rows with the largest or smallest value of a column.

use std::collections::BTreeSet;

use crate::passages::blocks::Cell;
use crate::question::extremes::Extreme;
use crate::question::qualities::{Quality, size};
use crate::question::scales::scaled;
use crate::question::wish::Question;
use crate::rows::evaluate::{cell, extreme_column, has_digit, measured};
use crate::text::currencies::is_currency;
use crate::text::values::quantities;
use crate::text::words::{contains_any, is_entry, spaced};

/// Words for a row that adds up the others, in its first value, and further words there besides
/// currencies and numbers.
const TOTALS: &str = "\
    total|totals|subtotal|sum|balance|gesamt|gesamtsumme|summe|zwischensumme|insgesamt|somme|suma";
const BESIDE_TOTAL: &str = "grand|overall|sub|net|gross|netto|brutto|général|générale|sous|general";

/// Positions of the rows with the extreme that the question asks for; `None` if it asks for none or
/// it is unclear of which column. If a superlative may refer to several columns, such as prices by
/// the month and by the year, all must have the same rows. Rows are given by their cells; with
/// `have_amounts`, the rows are things that the question may mean by their amounts of money.
pub(crate) fn extreme_rows(
    question: &Question,
    rows: &[&[Cell]],
    have_amounts: bool,
) -> Option<Vec<usize>> {
    let names = match extreme_column(question, rows, have_amounts) {
        Some(name) => vec![name],
        None => disputed(question, rows),
    };
    let mut found = names.into_iter().map(|name| extreme_of(question, rows, name));
    let first = found.next()??;
    found.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// The columns of the quality in a superlative.
fn disputed<'r>(question: &Question, rows: &[&'r [Cell]]) -> Vec<&'r str> {
    let quality = question.quality.filter(|quality| !quality.is_time());
    quality.map_or_else(Vec::new, |quality| quality.columns(&measured(rows)))
}

/// Positions of the rows with the extreme of one column. Rows that add up others are left out.
fn extreme_of(question: &Question, rows: &[&[Cell]], name: &str) -> Option<Vec<usize>> {
    // The oldest have the largest age but the earliest date.
    let is_turned = question.quality.is_some_and(Quality::is_time) && Quality::is_age(name);
    let most = (question.extreme? == Extreme::Most) != is_turned;
    let value = |row: &[Cell]| size(name, cell(row, name)?);
    let measured = rows.iter().enumerate().filter_map(|(at, row)| Some((at, value(row)?)));
    let mut measured: Vec<(usize, f64)> = measured.collect();
    // A number that cannot be read might be the extreme.
    let numbers = rows.iter().filter(|row| cell(row, name).is_some_and(has_digit));
    if numbers.count() > measured.len() {
        return None;
    }
    measured.retain(|(at, _)| !is_total(rows[*at]));
    // A weight and a speed have no order.
    let own_unit = |(at, _): &(usize, f64)| {
        let unit = quantities(cell(rows[*at], name)?).into_iter().next()?.unit;
        let kind = scaled(1.0, &unit).map(|(kind, _)| kind);
        (!unit.is_empty()).then_some((kind, if kind.is_some() { String::new() } else { unit }))
    };
    let kinds: BTreeSet<(Option<usize>, String)> = measured.iter().filter_map(own_unit).collect();
    if kinds.len() > 1 && kinds.iter().any(|(kind, _)| kind.is_some()) {
        return None;
    }
    let mut values: Vec<f64> = measured.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if most {
        values.reverse();
    }
    let best = *values.get(question.rank - 1)?;
    let is_best = |(at, value): &(usize, f64)| (value.total_cmp(&best).is_eq()).then_some(*at);
    let found: Vec<usize> = measured.iter().filter_map(is_best).collect();
    // A value shared by all rows distinguishes none of them.
    (rows.len() >= 2 && !found.is_empty() && found.len() < rows.len()).then_some(found)
}

/// Whether a row adds up others: its first value is a word for that, such as "Total EUR 2026", not
/// a name that has it, such as "Total Tea".
fn is_total(row: &[Cell]) -> bool {
    let said = row.first().map_or(String::new(), |cell| spaced(&cell.value));
    let is_form = |word: &str| {
        is_entry(TOTALS, word)
            || is_entry(BESIDE_TOTAL, word)
            || is_currency(word)
            || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    contains_any(&said, TOTALS) && said.split_whitespace().all(is_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(question: &str, names: &[&str], values: &[&[&str]]) -> Option<Vec<usize>> {
        let cell = |(name, value): (&&str, &&str)| Cell {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let row = |row: &&[&str]| names.iter().zip(row.iter()).map(cell).collect();
        let rows: Vec<Vec<Cell>> = values.iter().map(row).collect();
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        extreme_rows(&Question::new(question), &rows, false)
    }

    #[test]
    fn prices_that_agree_have_an_extreme() {
        let names = ["Ticket", "Price, day", "Price, season"];
        let told = |values| found("Which ticket is the cheapest?", &names, values);
        assert_eq!(told(&[&["A", "9", "80"], &["B", "7", "70"], &["C", "12", "-"]]), Some(vec![1]));
        assert_eq!(told(&[&["A", "9", "60"], &["B", "7", "70"], &["C", "12", "-"]]), None);
    }

    #[test]
    fn different_quantities_have_no_extreme() {
        let names = ["", "Crane"];
        let told = |values| found("Which crane has the most?", &names, values);
        assert_eq!(told(&[&["load", "900 kg"], &["boom", "18 m"]]), None);
        assert_eq!(told(&[&["load", "900 kg"], &["speed", "20 km/h"]]), None);
        assert_eq!(told(&[&["hook", "900 kg"], &["sling", "2 t"]]), Some(vec![1]));
    }

    #[test]
    fn a_row_that_adds_up_others_is_no_extreme() {
        let names = ["Stall", "Takings"];
        let told = |question, values| found(question, &names, values);
        let values: &[&[&str]] = &[&["Fish", "310"], &["Bread", "520"], &["Total", "830"]];
        assert_eq!(told("Which stall has the highest takings?", values), Some(vec![1]));
        assert_eq!(told("Which stall has the second highest takings?", values), Some(vec![0]));
        for total in ["Grand total:", "Total GBP", "Sum 2026", "Gesamtsumme (EUR)"] {
            let values: [&[&str]; 3] = [&["Fish", "310"], &["Bread", "520"], &[total, "830"]];
            let most = found("Which stall has the highest takings?", &names, &values);
            assert_eq!(most, Some(vec![1]), "{total}");
        }
        let values: &[&[&str]] = &[&["Fish", "310"], &["Bread", "520"], &["Total Tea", "830"]];
        assert_eq!(told("Which stall has the highest takings?", values), Some(vec![2]), "a name");
    }

    #[test]
    fn whatever_has_waited_the_longest_has_the_earliest_day() {
        let names = ["Boiler", "Length (cm)", "Last service"];
        let values: &[&[&str]] =
            &[&["A", "90", "3 May 2025"], &["B", "60", "9 June 2023"], &["C", "80", "1 July 2024"]];
        let told = |question| found(question, &names, values);
        assert_eq!(told("Which boiler has gone the longest without a service?"), Some(vec![1]));
        assert_eq!(told("Which boiler was serviced the longest ago?"), Some(vec![1]));
        assert_eq!(told("Which boiler is the longest?"), Some(vec![0]));
    }
}
