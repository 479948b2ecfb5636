//! The row of a table with the largest or smallest value of a column.
//!
//! Only over values that tables and records hold, never over prose. Where it is not clear which
//! column is meant, nothing is said.

use crate::answer::blocks::Cell;
use crate::answer::question::{Extreme, Question};
use crate::answer::values::{days, has_money, measure};
use lodestone_text::HybridQuery;

/// Rows whose values must be numbers or days for a column to be one of them.
const MEASURED_SHARE_MIN: f32 = 0.6;

/// Positions of the rows with the extreme that the question asks for; `None` where it asks for
/// none, or it is not clear of what. Rows are given by their cells.
pub(super) fn extreme_rows(question: &Question, rows: &[&[Cell]]) -> Option<Vec<usize>> {
    let extreme = question.extreme?;
    let name = column(question, rows)?;
    let value = |row: &[Cell]| {
        let cell = row.iter().find(|cell| cell.name == name)?;
        measure(&cell.value)
    };
    let measured = rows.iter().enumerate().filter_map(|(at, row)| Some((at, value(row)?)));
    let measured: Vec<(usize, f64)> = measured.collect();
    let mut values: Vec<f64> = measured.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if extreme == Extreme::Most {
        values.reverse();
    }
    let best = *values.get(question.rank - 1)?;
    let is_best = |(at, value): &(usize, f64)| (value.total_cmp(&best).is_eq()).then_some(*at);
    let found: Vec<usize> = measured.iter().filter_map(is_best).collect();
    // A value that several rows have sets none of them apart.
    (rows.len() >= 2 && !found.is_empty() && found.len() < rows.len()).then_some(found)
}

/// The names of the columns of some rows.
pub(super) fn columns<'r>(rows: &[&'r [Cell]]) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in rows.iter().flat_map(|row| row.iter()) {
        if !names.contains(&cell.name.as_str()) && !cell.name.is_empty() {
            names.push(&cell.name);
        }
    }
    names
}

/// The values of a column.
pub(super) fn values<'r>(rows: &[&'r [Cell]], name: &str) -> Vec<&'r str> {
    let cells = rows.iter().filter_map(|row| row.iter().find(|cell| cell.name == name));
    cells.map(|cell| cell.value.as_str()).collect()
}

/// The name of the column that is meant: the one whose name stands first behind the word for the
/// extreme; else the only one that can be.
fn column<'r>(question: &Question, rows: &[&'r [Cell]]) -> Option<&'r str> {
    let mut names = columns(rows);
    let values = |name: &str| values(rows, name);
    let is_measured = |name: &&str| {
        let values = values(name);
        let measured = values.iter().filter(|value| measure(value).is_some()).count();
        measured >= 2 && measured as f32 >= MEASURED_SHARE_MIN * rows.len() as f32
    };
    names.retain(is_measured);
    let asked = question.behind_extreme();
    let words: Vec<String> = HybridQuery::analyse(asked).terms().to_vec();
    let place = |name: &str| {
        let terms = HybridQuery::analyse(&name.replace('_', " "));
        terms.terms().iter().filter_map(|term| words.iter().position(|word| word == term)).min()
    };
    let named = names.iter().filter_map(|name| Some((place(name)?, *name)));
    if let Some((_, name)) = named.min_by_key(|(place, _)| *place) {
        return Some(name);
    }
    let fits = |name: &&&str| {
        let values = values(name);
        if question.is_of_time {
            values.iter().any(|value| !days(value).is_empty() || is_year(value))
        } else if question.is_of_money {
            values.iter().any(|value| has_money(&format!("{name} {value}")))
        } else {
            true
        }
    };
    match names.iter().filter(fits).collect::<Vec<_>>()[..] {
        [name] => Some(name),
        _ => None,
    }
}

/// Whether a value is a year.
fn is_year(value: &str) -> bool {
    value.trim().len() == 4 && matches!(value.trim().parse(), Ok(1500..=2199_u32))
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
        assert_eq!(found("Which shop is in the north?"), None);
    }
}
