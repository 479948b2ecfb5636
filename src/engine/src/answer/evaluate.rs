//! Rows of a table computed with: the one with the largest or smallest value of a column, the sum
//! or the mean of its values.
//!
//! Only over values that tables and records hold, never over prose. Where it is not clear which
//! column is meant, nothing is said.

use crate::answer::blocks::Cell;
use crate::answer::extremes::{self, Extreme};
use crate::answer::qualities::{Quality, size};
use crate::answer::question::{Question, Total};
use crate::answer::values::{days, measure, quantities};
use crate::answer::words::{is_entry, spaced};
use lodestone_text::HybridQuery;
use unicode_segmentation::UnicodeSegmentation;

/// Share of the values of a column that are numbers or days for it to be one of them.
const MEASURED_SHARE_MIN: f32 = 0.6;

/// Words before the number of a value.
const BEFORE_MEASURE: &str = "\
    about|approx|around|ca|circa|some|up|to|from|over|under|at|least|most|max|min|gbp|eur|usd|chf|\
    ab|bis|von|über|unter|etwa|de|à|env|environ|desde|hasta";

/// Words that ask for an age where a column tells it.
const AGES: [&str; 4] = ["oldest", "youngest", "älteste", "jüngste"];

/// A column of some rows: its name and the values that are there.
pub(super) type Column<'r> = (&'r str, Vec<&'r str>);

/// Positions of the rows with the extreme that the question asks for; `None` where it asks for
/// none, or it is not clear of what. Rows are given by their cells.
pub(super) fn extreme_rows(question: &Question, rows: &[&[Cell]]) -> Option<Vec<usize>> {
    let name = extreme_column(question, rows)?;
    // The oldest have most years, and the first day.
    let is_turned = question.quality.is_some_and(Quality::is_time) && Quality::is_age(name);
    let most = (question.extreme? == Extreme::Most) != is_turned;
    let value = |row: &[Cell]| size(name, cell(row, name)?);
    let measured = rows.iter().enumerate().filter_map(|(at, row)| Some((at, value(row)?)));
    let measured: Vec<(usize, f64)> = measured.collect();
    // A number that is not understood may be the one.
    let numbers = rows.iter().filter(|row| cell(row, name).is_some_and(has_digit));
    if numbers.count() > measured.len() {
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
    // A value that several rows have sets none of them apart.
    (rows.len() >= 2 && !found.is_empty() && found.len() < rows.len()).then_some(found)
}

/// The total or the mean that a question asks for of one column of some rows, in words.
pub(super) fn total_of(question: &Question, rows: &[&[Cell]], all: &[&[Cell]]) -> Option<String> {
    let total = question.total?;
    let mut columns = measured(all);
    // Days are ordered, and not added up.
    columns.retain(|(_, values)| values.iter().all(|value| days(value).is_empty()));
    let asked = HybridQuery::analyse(question.last());
    let named = columns.iter().map(|(name, _)| *name).filter(|name| {
        let terms = HybridQuery::analyse(&name.replace('_', " "));
        terms.terms().iter().any(|term| asked.terms().contains(term))
    });
    let quality = Quality::named_in(&spaced(question.last()));
    let of_quality = quality.map_or(Vec::new(), |quality| quality.columns(&columns));
    let name = [of_quality, named.collect()].into_iter().find_map(|found| match found[..] {
        [one] => Some(one),
        _ => None,
    })?;
    let told = rows.iter().filter_map(|row| cell(row, name));
    let told: Vec<&str> = told.filter(|value| has_digit(value)).collect();
    // Without one of them it is no total.
    let values = told.iter().map(|value| measure(value)).collect::<Option<Vec<f64>>>()?;
    let units = told.iter().filter_map(|value| quantities(value).into_iter().next());
    let mut units: Vec<String> = units.map(|one| one.unit).collect();
    units.dedup();
    let ([unit], false) = (&units[..], values.is_empty()) else { return None };
    let sum: f64 = values.iter().sum();
    let (word, value) = match total {
        Total::Sum => ("Total", sum),
        Total::Mean => ("Average", sum / values.len() as f64),
    };
    let value = format!("{value:.2}");
    let value = value.trim_end_matches('0').trim_end_matches('.');
    let value = match unit.as_str() {
        "" => value.to_owned(),
        "£" | "$" | "€" => format!("{unit}{value}"),
        unit => format!("{value} {unit}"),
    };
    Some(format!("{word} of {name}: {value}."))
}

/// The value of a row in a column.
fn cell<'r>(row: &'r [Cell], name: &str) -> Option<&'r str> {
    row.iter().find(|cell| cell.name == name).map(|cell| cell.value.as_str())
}

fn has_digit(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
}

/// The columns of some rows.
pub(super) fn columns<'r>(rows: &[&'r [Cell]]) -> Vec<Column<'r>> {
    let mut columns: Vec<Column<'r>> = Vec::new();
    for cell in rows.iter().flat_map(|row| row.iter()).filter(|cell| !cell.name.is_empty()) {
        match columns.iter_mut().find(|(name, _)| *name == cell.name) {
            Some((_, values)) => values.push(&cell.value),
            None => columns.push((&cell.name, vec![&cell.value])),
        }
    }
    columns
}

/// The columns most of whose values are numbers or days.
fn measured<'r>(rows: &[&'r [Cell]]) -> Vec<Column<'r>> {
    let mut columns = columns(rows);
    columns.retain_mut(|(_, values)| {
        values.retain(|value| !is_blank(value));
        let measured = values.iter().filter(|value| is_measure(value)).count();
        measured >= 2 && measured as f32 >= MEASURED_SHARE_MIN * values.len() as f32
    });
    columns
}

/// Whether a value is a number or a day, and no name with a number in it: "Balance 2".
fn is_measure(value: &str) -> bool {
    let before = value.find(|c: char| c.is_ascii_digit()).map_or("", |at| &value[..at]);
    let is_name = |word: &str| word.len() > 1 && !is_entry(BEFORE_MEASURE, word);
    measure(value).is_some() && (!days(value).is_empty() || !before.unicode_words().any(is_name))
}

/// The name of the column that is meant: that of the quality in the word for the extreme; else the
/// one whose name stands first behind that word; else that of a time, or, where the word is of no
/// quality, the only one that can be.
fn extreme_column<'r>(question: &Question, rows: &[&'r [Cell]]) -> Option<&'r str> {
    let mut columns = measured(rows);
    let is_of_age = question.quality.is_some_and(Quality::is_time)
        && AGES.iter().any(|word| question.lower.contains(word));
    if let Some((age, _)) = columns.iter().find(|(name, _)| is_of_age && Quality::is_age(name)) {
        return Some(age);
    }
    if let Some(quality) = question.quality {
        let fit = quality.columns(&columns);
        if let [one] = fit[..] {
            return Some(one);
        }
        let is_fit = |name: &str| fit.is_empty() || fit.contains(&name) || quality.is_time();
        columns.retain(|(name, _)| is_fit(name));
    }
    let asked = extremes::behind(&question.lower, question.quality);
    let words: Vec<String> = HybridQuery::analyse(asked).terms().to_vec();
    let place = |name: &str| {
        let terms = HybridQuery::analyse(&name.replace('_', " "));
        terms.terms().iter().filter_map(|term| words.iter().position(|word| word == term)).min()
    };
    let named = columns.iter().filter_map(|(name, _)| Some((place(name)?, *name)));
    if let Some((_, name)) = named.min_by_key(|(place, _)| *place) {
        return Some(name);
    }
    let left: Vec<&str> = match question.quality {
        Some(quality) if quality.is_time() => quality.columns(&columns),
        Some(_) => Vec::new(),
        None => columns.iter().map(|(name, _)| *name).collect(),
    };
    match left[..] {
        [name] => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(names: &[&str], values: &[&[&str]]) -> Vec<Vec<Cell>> {
        let cell = |(name, value): (&&str, &&str)| Cell {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        values.iter().map(|row| names.iter().zip(row.iter()).map(cell).collect()).collect()
    }

    #[test]
    fn the_column_that_is_named_decides() {
        let table = rows(
            &["Shop", "Visits", "Sales booked", "Share", "Opened"],
            &[
                &["North", "214", "71", "33 %", "2001-03-01"],
                &["West", "88", "41", "47 %", "1999-05-02"],
                &["South", "40", "6", "15 %", "2015-06-30"],
            ],
        );
        let table: Vec<&[Cell]> = table.iter().map(Vec::as_slice).collect();
        let found = |question: &str| extreme_rows(&Question::new(question), &table);
        assert_eq!(found("Which shop had the highest share of booked sales?"), Some(vec![1]));
        assert_eq!(found("Which shop had the most visits?"), Some(vec![0]));
        assert_eq!(found("Which shop has the lowest share?"), Some(vec![2]));
        assert_eq!(found("Which shop had the second highest share?"), Some(vec![0]));
        assert_eq!(found("Which is the oldest shop?"), Some(vec![1]));
        assert_eq!(found("Which shop is the best?"), None, "of what is not said");
        assert_eq!(found("Which shop is the heaviest?"), None, "no column is of it");
        assert_eq!(found("Which shop is in the north?"), None);
    }

    #[test]
    fn values_are_compared_as_people_mean_them() {
        let found = |question: &str, names: &[&str], values: &[&[&str]]| {
            let table = rows(names, values);
            let table: Vec<&[Cell]> = table.iter().map(Vec::as_slice).collect();
            extreme_rows(&Question::new(question), &table)
        };
        let course = |values: &[&[&str]]| {
            found("Which course is the longest?", &["Course", "Duration"], values)
        };
        assert_eq!(course(&[&["A", "90 min"], &["B", "2 h"], &["C", "45 min"]]), Some(vec![1]));
        let budget = |values: &[&[&str]]| {
            found("Which site has the highest budget?", &["Site", "Budget"], values)
        };
        assert_eq!(budget(&[&["A", "£1.2 million"], &["B", "£900,000"]]), Some(vec![0]));
        assert_eq!(
            budget(&[&["A", "£12"], &["B", "£15"], &["C", "£18 (£16 members)"]]),
            Some(vec![2])
        );
        assert_eq!(budget(&[&["A", "£12"], &["B", "£15"], &["C", "£9 + £8"]]), None);
        let start = |values: &[&[&str]]| {
            found("Which class has the latest start?", &["Class", "Start"], values)
        };
        assert_eq!(start(&[&["A", "10 am"], &["B", "9 pm"]]), Some(vec![1]));
        let price = |values: &[&[&str]]| {
            found("Welches Gerät ist das teuerste?", &["Gerät", "Preis"], values)
        };
        assert_eq!(price(&[&["A", "1.500 €"], &["B", "900 €"], &["C", "1.250 €"]]), Some(vec![0]));
        let member = |question: &str| {
            let values: &[&[&str]] = &[&["Ada", "61", "2019-01-01"], &["Bo", "34", "2001-05-01"]];
            found(question, &["Name", "Age", "Joined"], values)
        };
        assert_eq!(member("Who is the oldest member?"), Some(vec![0]));
        assert_eq!(member("Who is the youngest member?"), Some(vec![1]));
        assert_eq!(member("Who is the newest member?"), Some(vec![0]));
    }

    #[test]
    fn a_total_is_of_amounts_that_are_all_understood() {
        let total = |question: &str, names: &[&str], values: &[&[&str]]| {
            let table = rows(names, values);
            let table: Vec<&[Cell]> = table.iter().map(Vec::as_slice).collect();
            total_of(&Question::new(question), &table, &table)
        };
        let invoices: &[&[&str]] =
            &[&["7", "£40", "2025-01-01"], &["8", "£60", "2025-02-01"], &["9", "£5", "2025-02-03"]];
        let of_invoices =
            |question: &str| total(question, &["Invoice number", "Amount", "Due"], invoices);
        assert_eq!(
            of_invoices("What is the total amount?").as_deref(),
            Some("Total of Amount: £105.")
        );
        assert_eq!(of_invoices("What is the total due?"), None);
        assert_eq!(of_invoices("What is the total number of invoices?"), None);
        let split: &[&[&str]] = &[&["A", "3"], &["B", "5"], &["C", "2 + 1"]];
        assert_eq!(total("How many beds in total?", &["Room", "Beds"], split), None);
    }
}
