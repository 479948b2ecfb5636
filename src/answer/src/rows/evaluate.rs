//! Computation over table rows: the column that an extreme refers to, and the sum or mean of the
//! values of a column.
//!
//! Only values of tables and records count, never prose. If it is unclear which column is meant,
//! there is no result.

use std::collections::BTreeSet;

use crate::passages::blocks::Cell;
use crate::question::extremes;
use crate::question::phrases::{MEANS, SUMS};
use crate::question::qualities::Quality;
use crate::question::wish::{Question, Total};
use crate::rows::states::is_blank;
use crate::text::amounts::written_as;
use crate::text::terms::terms;
use crate::text::values::{days, has_money, measure, quantities, words_of};
use crate::text::words::{contains_any, entries, is_entry, spaced};
use lodestone_text::HybridQuery;
use unicode_segmentation::UnicodeSegmentation;

/// Minimum share of a column's values that must be numbers or days for it to count as measured.
const MEASURED_SHARE_MIN: f32 = 0.6;

/// Words that may precede the number in a measured value.
const BEFORE_MEASURE: &str = "\
    about|approx|around|ca|circa|some|up|to|from|over|under|at|least|most|max|min|gbp|eur|usd|chf|\
    ab|bis|von|über|unter|etwa|de|à|env|environ|desde|hasta";

/// Last words of the names of columns whose numbers are identifiers.
const NUMBER_NAMES: &str = "no|nr|number|id|code|ext|phone|nummer|numéro|número";

/// Words in the names of columns that hold amounts of money.
const AMOUNTS: &str = "\
    amount|total|price|value|sum|betrag|summe|preis|wert|montant|prix|valeur|somme|importe|precio|\
    valor|suma";
/// Words for a share, which columns call "%".
const SHARES: &str = "\
    rate|share|percentage|percent|proportion|ratio|quote|anteil|taux|pourcentage|tasa|porcentaje";
/// Words that ask for an age, if a column holds ages.
const AGES: [&str; 4] = ["oldest", "youngest", "älteste", "jüngste"];

/// A column of some rows: its name and its values that are present.
pub(crate) type Column<'r> = (&'r str, Vec<&'r str>);

/// The total or mean that a question asks for, over one column of `rows` and stated in words; the
/// column is determined by `all` rows of the table. With `have_amounts`, the rows are things that
/// the question may mean by their amounts of money.
pub(crate) fn total_of(
    question: &Question,
    (rows, all): (&[&[Cell]], &[&[Cell]]),
    have_amounts: bool,
) -> Option<String> {
    let total = question.total?;
    let mut columns = measured(all);
    // Dates and identifiers cannot be added up.
    columns.retain(|(name, values)| {
        !is_of_numbers(name) && values.iter().all(|value| days(value).is_empty())
    });
    without_key(&mut columns, all, have_amounts);
    let quality = Quality::named_in(&spaced(question.last()));
    let of_quality = quality.map_or(Vec::new(), |quality| quality.columns(&columns));
    let name = match of_quality[..] {
        [one] => one,
        _ => named_first(question, &columns).or_else(|| {
            // "How many" asks for a count, not for a sum.
            amount_column(&columns).filter(|_| have_amounts && !question.counts)
        })?,
    };
    let told = rows.iter().filter_map(|row| cell(row, name));
    let told: Vec<&str> = told.filter(|value| has_digit(value)).collect();
    // A total needs every value to be readable.
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
    let told = written_as(value, &told).unwrap_or_else(|| {
        let value = format!("{value:.2}");
        let value = value.trim_end_matches('0').trim_end_matches('.');
        match unit.as_str() {
            "" => value.to_owned(),
            "£" | "$" | "€" => format!("{unit}{value}"),
            unit => format!("{value} {unit}"),
        }
    });
    let count = match (values.len(), rows.len()) {
        (1, 1) => "1 row".to_owned(),
        (some, all) if some < all => format!("{some} of {all} rows"),
        (_, all) => format!("{all} rows"),
    };
    Some(format!("{word} of {name}: {told} ({count})."))
}

/// Whether the name of a column says that its values are identifiers.
pub(crate) fn is_of_numbers(name: &str) -> bool {
    let last = words_of(name).filter(|word| !word.is_empty()).last();
    last.is_some_and(|last| is_entry(NUMBER_NAMES, &last))
}

/// The column named first after the question's word for a total or mean, else named first anywhere;
/// `None` if two are named at that place.
fn named_first<'r>(question: &Question, columns: &[Column<'r>]) -> Option<&'r str> {
    let lower = question.last().to_lowercase();
    let ends = entries(SUMS).chain(entries(MEANS)).filter_map(|word| {
        let at = lower.find(word)? + word.len();
        lower[at..].starts_with(|c: char| !c.is_alphanumeric()).then_some(at)
    });
    let behind = ends.max().map_or("", |at| &lower[at..]);
    [behind, lower.as_str()].into_iter().find_map(|asked| {
        let asked = HybridQuery::analyse(asked);
        let place = |name: &str| {
            let named = HybridQuery::analyse(&name.replace('_', " "));
            asked.terms().iter().position(|term| named.terms().contains(term))
        };
        let places = columns.iter().filter_map(|(name, _)| Some((place(name)?, *name)));
        let places: Vec<(usize, &str)> = places.collect();
        let (first, name) = places.iter().min_by_key(|(place, _)| *place)?;
        let are_two = places.iter().filter(|(place, _)| place == first).count() > 1;
        Some((!are_two).then_some(*name))
    })?
}

/// The only column that holds amounts of money, if there is exactly one.
pub(crate) fn amount_column<'r>(columns: &[Column<'r>]) -> Option<&'r str> {
    let mut of_money = columns.iter().filter(|(name, values)| is_of_money(name, values));
    of_money.next().filter(|_| of_money.next().is_none()).map(|(name, _)| *name)
}

/// Whether a row contains an amount of money.
pub(crate) fn tells_amount(row: &[Cell]) -> bool {
    row.len() > 1 && row.iter().any(|cell| has_money(&format!("{} {}", cell.name, cell.value)))
}

/// Whether a column holds amounts of money, judged by its name or its values.
pub(crate) fn is_of_money(name: &str, values: &[&str]) -> bool {
    let name = name.replace('_', " ");
    let told = values.iter().filter(|value| has_money(&format!("{name} {value}"))).count();
    2 * told > values.len() || name.split(' ').any(|word| is_entry(AMOUNTS, word))
}

/// Drops the first column if things with amounts are meant: it holds their numbers.
fn without_key(columns: &mut Vec<Column<'_>>, rows: &[&[Cell]], have_amounts: bool) {
    let key = rows.first().and_then(|row| row.first()).map(|cell| cell.name.as_str());
    columns.retain(|(name, _)| !(have_amounts && Some(*name) == key));
}

/// Whether a row has a number in a column whose name contains one of the terms.
pub(crate) fn has_number_of(row: &[Cell], asked: &BTreeSet<String>) -> bool {
    let is_one = |cell: &Cell| {
        measure(&cell.value).is_some() && !terms(&cell.name.replace('_', " ")).is_disjoint(asked)
    };
    row.len() > 1 && row.iter().any(is_one)
}

/// The value of a row in a column.
pub(crate) fn cell<'r>(row: &'r [Cell], name: &str) -> Option<&'r str> {
    row.iter().find(|cell| cell.name == name).map(|cell| cell.value.as_str())
}

pub(crate) fn has_digit(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
}

/// The named columns of some rows, with their values.
pub(crate) fn columns<'r>(rows: &[&'r [Cell]]) -> Vec<Column<'r>> {
    let mut columns: Vec<Column<'r>> = Vec::new();
    for cell in rows.iter().flat_map(|row| row.iter()).filter(|cell| !cell.name.is_empty()) {
        match columns.iter_mut().find(|(name, _)| *name == cell.name) {
            Some((_, values)) => values.push(&cell.value),
            None => columns.push((&cell.name, vec![&cell.value])),
        }
    }
    columns
}

/// The columns in which most values are numbers or days.
pub(crate) fn measured<'r>(rows: &[&'r [Cell]]) -> Vec<Column<'r>> {
    let mut columns = columns(rows);
    columns.retain_mut(|(_, values)| {
        values.retain(|value| !is_blank(value));
        let measured = values.iter().filter(|value| is_measure(value)).count();
        measured >= 2 && measured as f32 >= MEASURED_SHARE_MIN * values.len() as f32
    });
    columns
}

/// Whether a value is a number or a day, and not a name that contains a number: "Balance 2".
fn is_measure(value: &str) -> bool {
    let before = value.find(|c: char| c.is_ascii_digit()).map_or("", |at| &value[..at]);
    let is_name = |word: &str| word.len() > 1 && !is_entry(BEFORE_MEASURE, word);
    measure(value).is_some()
        && (!days(value).is_empty() || !(is_code(value) || before.unicode_words().any(is_name)))
}

/// Whether the number of a value is part of a code: "O-1".
pub(crate) fn is_code(value: &str) -> bool {
    let before = value.find(|c: char| c.is_ascii_digit()).map_or("", |at| &value[..at]);
    before.strip_suffix('-').is_some_and(|rest| rest.ends_with(char::is_alphabetic))
}

/// The name of the column that the extreme refers to: the one of the quality in the superlative;
/// else the one named first after that word; else one of time or, for a word of no quality, the
/// only possible one or the one of money.
pub(crate) fn extreme_column<'r>(
    question: &Question,
    rows: &[&'r [Cell]],
    have_amounts: bool,
) -> Option<&'r str> {
    let mut columns = measured(rows);
    without_key(&mut columns, rows, have_amounts);
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
    if let Some(name) = named_behind(question, &columns) {
        return Some(name);
    }
    let left: Vec<&str> = match question.quality {
        Some(quality) if quality.is_time() => quality.columns(&columns),
        Some(_) => Vec::new(),
        None if have_amounts => amount_column(&columns).into_iter().collect(),
        None => columns.iter().map(|(name, _)| *name).collect(),
    };
    match left[..] {
        [name] => Some(name),
        _ => None,
    }
}

/// The column whose name comes first after the word for the extreme.
fn named_behind<'r>(question: &Question, columns: &[Column<'r>]) -> Option<&'r str> {
    let asked = extremes::behind(&question.lower, question.quality);
    let words: Vec<String> = HybridQuery::analyse(asked).terms().to_vec();
    let place = |name: &str| {
        let terms = HybridQuery::analyse(&name.replace('_', " "));
        terms.terms().iter().filter_map(|term| words.iter().position(|word| word == term)).min()
    };
    // "The highest error rate": of "errors" and "errors %", the latter.
    let asks_share = contains_any(&spaced(asked), SHARES);
    let is_share = |(name, values): &Column<'_>| {
        name.contains('%') || values.iter().any(|value| value.contains('%'))
    };
    let named = columns
        .iter()
        .filter_map(|one| Some(((place(one.0)?, asks_share && !is_share(one)), one.0)));
    named.min_by_key(|(place, _)| *place).map(|(_, name)| name)
}

/// Whether a question names a measured column of the rows after its word for an extreme: "the most
/// hours".
pub(crate) fn names_extreme(question: &Question, rows: &[&[Cell]]) -> bool {
    question.extreme.is_some() && named_behind(question, &measured(rows)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::extreme::extreme_rows;

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
        let found = |question: &str| extreme_rows(&Question::new(question), &table, false);
        assert_eq!(found("Which shop had the highest share of booked sales?"), Some(vec![1]));
        assert_eq!(found("Which shop had the most visits?"), Some(vec![0]));
        let lost = rows(
            &["Shop", "Losses", "Losses %"],
            &[&["North", "90", "2.1"], &["West", "40", "6.4"], &["South", "20", "3.0"]],
        );
        let lost: Vec<&[Cell]> = lost.iter().map(Vec::as_slice).collect();
        let of_losses = |question: &str| extreme_rows(&Question::new(question), &lost, false);
        assert_eq!(of_losses("Which shop had the worst loss rate?"), Some(vec![1]));
        assert_eq!(of_losses("Which shop had the worst losses?"), Some(vec![0]));
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
            extreme_rows(&Question::new(question), &table, false)
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
            total_of(&Question::new(question), (&table, &table), false)
        };
        let invoices: &[&[&str]] =
            &[&["7", "£40", "2025-01-01"], &["8", "£60", "2025-02-01"], &["9", "£5", "2025-02-03"]];
        let of_invoices =
            |question: &str| total(question, &["Invoice number", "Amount", "Due"], invoices);
        assert_eq!(
            of_invoices("What is the total amount?").as_deref(),
            Some("Total of Amount: £105 (3 rows).")
        );
        assert_eq!(of_invoices("What is the total due?"), None);
        assert_eq!(of_invoices("What is the total number of invoices?"), None);
        let orders: &[&[&str]] =
            &[&["O-1", "£1,480.50", "700"], &["O-2", "£3,040.00", "20"], &["O-3", "", "650"]];
        let of_orders = |question: &str| total(question, &["Order", "Amount", "Pieces"], orders);
        assert_eq!(
            of_orders("What is the total amount of the orders?").as_deref(),
            Some("Total of Amount: £4,520.50 (2 of 3 rows).")
        );
        assert_eq!(
            of_orders("What is the mean amount of the orders?").as_deref(),
            Some("Average of Amount: £2,260.25 (2 of 3 rows).")
        );
        assert_eq!(
            of_orders("How many pieces were ordered in total?").as_deref(),
            Some("Total of Pieces: 1370 (3 rows).")
        );
        let split: &[&[&str]] = &[&["A", "3"], &["B", "5"], &["C", "2 + 1"]];
        assert_eq!(total("How many beds in total?", &["Room", "Beds"], split), None);
    }
}
