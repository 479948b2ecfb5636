//! Conditions on the values of rows: "over 25 kg", "before May 2024", "3 or more", "between 2 and
//! 5".

use std::collections::BTreeSet;
use std::ops::Range;

use crate::answer::blocks::Cell;
use crate::answer::evaluate::columns;
use crate::answer::qualities::{Quality, scaled, size, unit};
use crate::answer::terms::terms;
use crate::answer::values::{
    Day, Quantity, days, has_money, is_currency, measure, quantities, year,
};
use crate::answer::words::{entries, is_entry, spaced};
use unicode_segmentation::UnicodeSegmentation;

/// Phrases directly before a number or day, by what they want of a value. Longest first where one
/// ends another.
const BOUNDS: &[(Relation, &str)] = &[
    (
        Relation::UpTo,
        "at most|up to|maximum|höchstens|bis zu|maximal|au plus|jusqu'à|como máximo|hasta",
    ),
    (Relation::From, "at least|minimum|mindestens|au moins|al menos|como mínimo"),
    (Relation::Exactly, "exactly|precisely|genau|exactement|exactamente"),
    (
        Relation::Over,
        "more than|over|above|exceeding|greater than|higher than|larger than|bigger than|\
         heavier than|longer than|older than|taller than|wider than|deeper than|faster than|\
         mehr als|über|länger als|größer als|älter als|plus de|plus grand que|más de|mayor que",
    ),
    (
        Relation::Under,
        "less than|fewer than|under|below|lower than|smaller than|shorter than|lighter than|\
         cheaper than|younger than|slower than|weniger als|unter|kleiner als|kürzer als|\
         jünger als|moins de|menos de|menor que",
    ),
];
/// Phrases directly behind a number, or behind its unit.
const BEHIND: &[(Relation, &str)] = &[
    (Relation::From, "or more|or over|or above|and more|and over|oder mehr|ou plus|o más"),
    (Relation::UpTo, "or less|or fewer|or under|or below|oder weniger|ou moins|o menos"),
];
/// Words before two numbers with a word between them that are both bounds.
const BETWEEN: &str = "between|zwischen|entre";
const AND: &str = "and|und|et|y";
/// The same before a day, a month or a year.
const TIMES: &[(Relation, &str)] = &[
    (
        Relation::Under,
        "before|earlier than|older than|vor dem|vor|avant le|avant|antes del|antes de",
    ),
    (
        Relation::Over,
        "after|later than|newer than|nach dem|nach|après le|après|después del|después de",
    ),
    (Relation::From, "since|seit dem|seit|depuis le|depuis|desde el|desde"),
];
/// Words before a phrase that turn it, and those of them that do before its verb.
const NOT: &str = "not|no|nicht|pas";
const NOT_OF_VERBS: &str = "not|nicht|pas";
/// Conditions of a question at most.
const CONDITIONS_MAX: usize = 8;
/// Words between the phrase and the number.
const ARTICLES: &[&str] = &["the", "end", "of", "£", "$", "€"];
/// Last day of a month, whichever it is.
const MONTH_END: u32 = 31;

/// Relation of a value to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Over,
    From,
    Under,
    UpTo,
    Exactly,
}

impl Relation {
    /// The relation that holds where this one does not.
    fn denied(self) -> Self {
        match self {
            Self::Over => Self::UpTo,
            Self::From => Self::Under,
            Self::Under => Self::From,
            Self::UpTo => Self::Over,
            Self::Exactly => Self::Exactly,
        }
    }
}

/// A bound that a question sets to a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    relation: Relation,
    bound: Bound,
    /// Its bytes in the question, with the phrase before it.
    pub(super) bytes: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Number { value: f64, unit: String },
    Day(Day),
    Year(u32),
}

/// The conditions of a question.
pub(super) fn conditions(question: &str) -> Vec<Condition> {
    match between(question) {
        Some(two) => two.into(),
        None => single(question),
    }
}

/// The numbers of a question that are no part of its `days`. A word of a bound behind one is not
/// its unit: "3 or more", "over 500 before May".
fn numbers(question: &str, days: &[(Range<usize>, Day)]) -> Vec<Quantity> {
    let mut found = quantities(question);
    let is_in_day = |bytes: &Range<usize>| {
        days.iter().any(|(day, _)| day.start < bytes.end && bytes.start < day.end)
    };
    found.retain(|one| !is_in_day(&one.bytes));
    let phrases = [BOUNDS, BEHIND, TIMES].concat();
    let first_words = phrases.iter().flat_map(|(_, list)| entries(list));
    let mut joining: BTreeSet<&str> =
        first_words.filter_map(|phrase| phrase.split(' ').next()).collect();
    joining.extend(entries(AND));
    for one in found.iter_mut().filter(|one| joining.contains(one.unit.as_str())) {
        let number = question[one.bytes.clone()].trim_end_matches(char::is_alphabetic);
        one.bytes.end = one.bytes.start + number.trim_end().len();
        one.unit.clear();
    }
    found
}

/// The two conditions of "between 2 and 5".
fn between(question: &str) -> Option<[Condition; 2]> {
    let found = days(question);
    let of_days = found.iter().map(|(bytes, day)| (bytes.clone(), Bound::Day(*day)));
    let of_numbers = numbers(question, &found).into_iter().map(|one| {
        let year = Some(one.value as u32).filter(|year| (1900..=2199).contains(year));
        let bound = match year.filter(|_| one.unit.is_empty()) {
            Some(year) => Bound::Year(year),
            None => Bound::Number { value: one.value, unit: one.unit },
        };
        (one.bytes, bound)
    });
    let mut bounds: Vec<(Range<usize>, Bound)> = of_days.chain(of_numbers).collect();
    bounds.sort_by_key(|(bytes, _)| bytes.start);
    bounds.windows(2).find_map(|two| {
        let [(low_bytes, low), (high_bytes, high)] = two else { return None };
        let (_, start) = bound_before(question, low_bytes.start, &[(Relation::From, BETWEEN)])?;
        if denied_before(question, start).is_some() {
            return None;
        }
        let (_, and) = bound_before(question, high_bytes.start, &[(Relation::UpTo, AND)])?;
        let is_all = question.get(low_bytes.end..and)?.trim().is_empty();
        let low = match (low, high) {
            (Bound::Number { value, unit }, Bound::Number { unit: of_both, .. })
                if unit.is_empty() =>
            {
                Bound::Number { value: *value, unit: of_both.clone() }
            }
            (low, _) => low.clone(),
        };
        is_all.then(|| {
            let from = Condition { relation: Relation::From, bound: low, bytes: start..and };
            let bytes = and..high_bytes.end;
            [from, Condition { relation: Relation::UpTo, bound: high.clone(), bytes }]
        })
    })
}

fn single(question: &str) -> Vec<Condition> {
    let found = days(question);
    let of_days = found.iter().filter_map(|(bytes, day)| {
        let (relation, start) = relation_before(question, bytes.start, TIMES)?;
        Some(Condition { relation, bound: Bound::Day(*day), bytes: start..bytes.end })
    });
    let of_numbers = numbers(question, &found).into_iter().filter_map(|one| {
        let year = Some(one.value as u32).filter(|year| (1900..=2199).contains(year));
        let of_year =
            year.filter(|_| one.unit.is_empty() || !one.unit.contains(['€', '£', '$', '%']));
        let in_time = of_year.and_then(|year| {
            let (relation, start) = relation_before(question, one.bytes.start, TIMES)?;
            Some((relation, start, Bound::Year(year)))
        });
        let (relation, start, bound) = in_time.or_else(|| {
            let (relation, start) = relation_before(question, one.bytes.start, BOUNDS)
                .or_else(|| Some((bound_behind(question, one.bytes.end)?, one.bytes.start)))?;
            Some((relation, start, Bound::Number { value: one.value, unit: one.unit.clone() }))
        })?;
        Some(Condition { relation, bound, bytes: start..one.bytes.end })
    });
    of_days.chain(of_numbers).take(CONDITIONS_MAX).collect()
}

/// A question without its conditions.
pub(super) fn unbound(question: &str, conditions: &[Condition]) -> String {
    let mut places: Vec<&Range<usize>> = conditions.iter().map(|one| &one.bytes).collect();
    places.sort_by_key(|bytes| bytes.start);
    let (mut rest, mut at) = (String::with_capacity(question.len()), 0);
    for bytes in places {
        rest.push_str(question.get(at..bytes.start).unwrap_or_default());
        rest.push(' ');
        at = at.max(bytes.end);
    }
    rest + &question[at..]
}

/// The phrase that ends before a byte, and the byte where it begins.
fn bound_before(
    question: &str,
    at: usize,
    phrases: &[(Relation, &str)],
) -> Option<(Relation, usize)> {
    let lower = question.get(..at)?.to_lowercase();
    if lower.len() != at {
        return None;
    }
    let mut before = lower.trim_end();
    while let Some(rest) = ARTICLES.iter().find_map(|word| before.strip_suffix(word)) {
        if rest.ends_with(char::is_alphanumeric) {
            break;
        }
        before = rest.trim_end();
    }
    let ends = |phrase: &str| {
        let rest = before.strip_suffix(phrase)?;
        (!rest.ends_with(char::is_alphanumeric)).then_some(rest.len())
    };
    let found = phrases
        .iter()
        .find_map(|(relation, list)| entries(list).find_map(ends).map(|start| (*relation, start)));
    // Lower case may change the length of a text.
    found.filter(|(_, start)| question.is_char_boundary(*start))
}

/// The relation that a phrase before a byte tells, and the byte where it begins; of "not longer
/// than" and "do not cost more than" with what turns it.
fn relation_before(
    question: &str,
    at: usize,
    phrases: &[(Relation, &str)],
) -> Option<(Relation, usize)> {
    let (relation, start) = bound_before(question, at, phrases)?;
    let denied = denied_before(question, start).map(|start| (relation.denied(), start));
    Some(denied.unwrap_or((relation, start)))
}

/// The byte of the word that turns the phrase which begins at a byte: directly before it, or before
/// the verb before it. "No" stands before nouns too, as in "with no guide over 20".
fn denied_before(question: &str, at: usize) -> Option<usize> {
    let mut words = question[..at].unicode_word_indices().rev();
    let is_denial = |word: &str, list: &str| {
        let word = word.to_lowercase().replace('\u{2019}', "'");
        is_entry(list, &word) || word.ends_with("n't")
    };
    let last = words.next().filter(|(_, word)| is_denial(word, NOT));
    let denial = last.or_else(|| words.next().filter(|(_, word)| is_denial(word, NOT_OF_VERBS)));
    denial.map(|(start, _)| start)
}

/// The relation that the phrase behind a number, or behind the word that follows it, tells.
fn bound_behind(question: &str, at: usize) -> Option<Relation> {
    let behind = question.get(at..)?.to_lowercase();
    let behind = behind.trim_start();
    let after_unit = behind.split_once(' ').map_or("", |(_, rest)| rest);
    let begins = |phrase: &str| {
        let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric);
        [behind, after_unit].iter().any(|text| text.strip_prefix(phrase).is_some_and(is_end))
    };
    BEHIND.iter().find(|(_, list)| entries(list).any(begins)).map(|(relation, _)| *relation)
}

impl Condition {
    /// Positions of the rows that meet it; `None` where it is not clear of which column it is.
    pub(super) fn met(&self, question: &str, rows: &[&[Cell]]) -> Option<Vec<usize>> {
        let column = self.column(question, rows)?;
        let is_met = |row: &&[Cell]| {
            let cell = row.iter().find(|cell| cell.name == column);
            cell.is_some_and(|cell| self.holds(&cell.name, &cell.value))
        };
        let met = rows.iter().enumerate().filter(|(_, row)| is_met(row));
        Some(met.map(|(at, _)| at).collect())
    }

    /// The column that is meant: of those that hold such values the one that has the unit, or is of
    /// the quality that the question names, or that it names itself; else the only one.
    fn column<'r>(&self, question: &str, rows: &[&'r [Cell]]) -> Option<&'r str> {
        let mut columns = columns(rows);
        columns.retain(|(name, values)| {
            let fit = values.iter().filter(|value| self.fits(name, value)).count();
            fit >= 2 && 2 * fit > rows.len()
        });
        // What is measured otherwise is not meant.
        if columns.iter().any(|(name, values)| self.has_unit(name, values, true)) {
            columns.retain(|(name, values)| self.has_unit(name, values, true));
        }
        let quality = Quality::named_in(&spaced(question));
        let of_quality = quality.map_or(Vec::new(), |quality| quality.columns(&columns));
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let rest = format!("{} {}", &question[..self.bytes.start], &question[self.bytes.end..]);
        let asked = terms(&rest);
        let named: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !terms(&name.replace('_', " ")).is_disjoint(&asked))
            .collect();
        let with_unit = columns.iter().filter(|(name, values)| self.has_unit(name, values, false));
        let with_unit: Vec<&str> = with_unit.map(|(name, _)| *name).collect();
        [with_unit, of_quality, named, names].into_iter().find_map(|found| match found[..] {
            [one] => Some(one),
            _ => None,
        })
    }

    /// Whether a row has a value of the kind of the bound.
    pub(super) fn is_of(&self, row: &[Cell]) -> bool {
        row.iter().any(|cell| self.fits(&cell.name, &cell.value))
    }

    /// Whether a value is one of the kind of the bound.
    fn fits(&self, name: &str, value: &str) -> bool {
        match &self.bound {
            Bound::Number { unit, .. } => {
                let is_of_money = is_currency(unit);
                days(value).is_empty()
                    && quantities(value).len() == 1
                    && (!is_of_money || has_money(&format!("{name} {value}")))
            }
            Bound::Day(_) => days(value).len() == 1,
            Bound::Year(_) => days(value).len() == 1 || year(value).is_some(),
        }
    }

    /// Whether a column has the unit of the bound, or, where `scales`, one of the same kind.
    fn has_unit(&self, name: &str, values: &[&str], scales: bool) -> bool {
        let Bound::Number { unit: of_bound, .. } = &self.bound else { return false };
        let words = terms(&name.replace('_', " "));
        let kind = |unit: &str| scaled(1.0, unit).map(|(kind, _)| kind);
        let is_one = |own: String| {
            own == *of_bound
                || (scales && kind(&own).is_some_and(|own| kind(of_bound) == Some(own)))
        };
        !of_bound.is_empty()
            && (!terms(of_bound).is_disjoint(&words)
                || values.iter().filter_map(|value| unit(name, value)).any(is_one))
    }

    fn holds(&self, name: &str, value: &str) -> bool {
        let relation = |value: f64, low: f64, high: f64| match self.relation {
            Relation::Over => value > high,
            Relation::From => value >= low,
            Relation::Under => value < low,
            Relation::UpTo => value <= high,
            Relation::Exactly => low <= value && value <= high,
        };
        match &self.bound {
            Bound::Number { value: bound, unit: of_bound } => {
                let scaled_bound = scaled(*bound, of_bound);
                let is_scaled = unit(name, value)
                    .and_then(|unit| scaled(1.0, &unit))
                    .is_some_and(|(kind, _)| scaled_bound.is_some_and(|(own, _)| own == kind));
                let (value, bound) = match scaled_bound.filter(|_| is_scaled) {
                    Some((_, bound)) => (size(name, value), bound),
                    None => (measure(value), *bound),
                };
                value.is_some_and(|value| relation(value, bound, bound))
            }
            Bound::Day(bound) => {
                let [(_, day)] = days(value)[..] else { return false };
                let has_years = bound.year.is_some() && day.year.is_some();
                let number = |one: Day, day: u32| {
                    let year = one.year.filter(|_| has_years).unwrap_or_default();
                    f64::from(year * 10_000 + one.month * 100 + one.day.unwrap_or(day))
                };
                relation(number(day, 1), number(*bound, 1), number(*bound, MONTH_END))
            }
            Bound::Year(bound) => {
                let year =
                    days(value).first().and_then(|(_, day)| day.year).or_else(|| year(value));
                let bound = f64::from(*bound);
                year.is_some_and(|year| relation(f64::from(year), bound, bound))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(question: &str, names: &[&str], table: &[&[&str]]) -> Option<Vec<usize>> {
        let cell = |(name, value): (&&str, &&str)| Cell {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let rows: Vec<Vec<Cell>> =
            table.iter().map(|row| names.iter().zip(row.iter()).map(cell).collect()).collect();
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let conditions = conditions(question);
        let mut all = conditions.iter().map(|one| one.met(question, &rows));
        let first = all.next()??;
        all.try_fold(first, |met, other| {
            let other = other?;
            Some(met.into_iter().filter(|at| other.contains(at)).collect())
        })
    }

    #[test]
    fn bounds_of_numbers_and_days_are_met() {
        let names = ["pump", "bought", "lift (m)", "price"];
        let table: &[&[&str]] = &[
            &["A", "2019-03-01", "12", "£300"],
            &["B", "2021-06-30", "25", "£410"],
            &["C", "2024-01-15", "40", "£90"],
        ];
        let met = |question: &str| met(question, &names, table);
        assert_eq!(met("Which pumps lift more than 12 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps lift at least 25 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps were bought before 2021?"), Some(vec![0]));
        assert_eq!(met("Which pumps were bought after June 2021?"), Some(vec![2]));
        assert_eq!(met("Which pumps were bought since 30 June 2021?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps cost under £300?"), Some(vec![2]));
        assert_eq!(met("Which pumps lift 25 m or more?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps cost exactly £410?"), Some(vec![1]));
        assert_eq!(met("Which pumps cost under £50?"), Some(vec![]));
        assert_eq!(met("Which pumps lift between 12 and 30 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps were bought between 2021 and 2024?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps have more than 12?"), None, "of what is not said");
        assert_eq!(
            met("Which pumps that cost over 300 were bought before May 2024?"),
            Some(vec![1])
        );
        assert_eq!(met("Which pumps cost £300 or more?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps do not lift more than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps are not higher than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps were not bought before 2021?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps don't lift more than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps lift no less than 25 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps with no lid lift over 25 m?"), Some(vec![2]));
        assert!(conditions("Which pumps do not lift between 12 and 30 m?").is_empty());
        assert_eq!(met("Which pumps were bought on 30 June 2021?"), None);
    }
}
