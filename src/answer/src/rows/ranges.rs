//! Ranges in cells, and whether they contain a number or a day.
//!
//! ```text
//! 10-20 kg, up to 8 cm, 25 kg and over, -20 to -60, from: 10 .. to: 20
//! ```

use std::collections::BTreeSet;

use time::{Date, Month};

use crate::passages::blocks::Cell;
use crate::question::scales::scaled;
use crate::question::wish::Question;
use crate::text::currencies::is_same_unit;
use crate::text::values::{Day, Quantity, days, measure, quantities, words_of};
use lodestone_text::HybridQuery;

/// Words before the upper end of a range. Lower case.
const UP_TO: &[&str] = &[
    "up to", "under", "below", "less than", "at most", "max", "maximum", "bis zu", "bis", "unter",
    "weniger als", "höchstens", "jusqu'à", "moins de", "au plus", "hasta", "menos de", "<", "≤",
];
/// Words before or after the lower end of a range.
const FROM: &[&str] = &[
    "over", "above", "more than", "at least", "from", "min", "minimum", "and over", "and more",
    "or more", "and above", "über", "mehr als", "mindestens", "ab", "und mehr", "plus de",
    "au moins", "à partir de", "et plus", "más de", "desde", "a partir de", "y más", ">", "≥",
];
/// Denied words of a lower end, which make it an upper end; then the opposite.
const NOT_OVER: &[&str] = &[
    "not more than", "no more than", "not over", "not above", "not exceeding", "nicht mehr als",
    "nicht über", "pas plus de", "no más de",
];
const NOT_UNDER: &[&str] = &[
    "not less than", "no less than", "not under", "not below", "nicht weniger als", "nicht unter",
    "pas moins de", "no menos de",
];
/// Marks and words between the two days of a span.
const SPAN_JOINTS: &[&str] =
    &["-", "\u{2013}", " to", " until", " till", " bis", " au", " al", " hasta"];
/// Pairs of column names that hold the ends of a range. Lower case.
const ENDS: &[(&str, &str)] = &[
    ("from", "to"),
    ("from", "until"),
    ("min", "max"),
    ("start", "end"),
    ("von", "bis"),
    ("ab", "bis"),
    ("beginn", "ende"),
    ("de", "à"),
    ("du", "au"),
    ("début", "fin"),
    ("desde", "hasta"),
    ("inicio", "fin"),
];

/// Numbers that are years if nothing else tells what they are.
const YEARS: std::ops::RangeInclusive<f64> = 1500.0..=2199.0;

/// Whether a row contains the number in one of its ranges; `None` if it has no range for it.
pub(crate) fn range_holds(cells: &[Cell], asked: &Quantity) -> Option<bool> {
    let is_of_unit = |cell: &Cell| asked.unit.is_empty() || has_unit(cell, &asked.unit);
    let mut verdict = None;
    let ends = pairs(cells).filter_map(|(low, high)| {
        let is_meant = is_of_unit(low) || is_of_unit(high);
        (is_meant && days(&low.value).is_empty())
            .then(|| Some(measure(&low.value)?..=measure(&high.value)?))
            .flatten()
    });
    let stated = cells.iter().filter(|cell| is_of_unit(cell)).filter_map(|cell| range(&cell.value));
    for range in ends.chain(stated) {
        verdict = Some(verdict.unwrap_or(false) || range.contains(&asked.value));
    }
    verdict
}

/// Whether a number lies outside the ranges of a row that does not state it anywhere: 2207 is no
/// number for "pins 1-16", unless they are those "for HV-2207". A year is outside ranges of years
/// only.
pub(crate) fn is_out_of_range(cells: &[Cell], asked: &Quantity) -> bool {
    let numbers = |cell: &Cell| quantities(&cell.value).into_iter().map(|one| one.value);
    let is_year = |value: f64| value.fract() == 0.0 && YEARS.contains(&value);
    let is_it = |part: &str| part.parse() == Ok(asked.value);
    let states = |cell: &Cell| cell.value.split(|c: char| !c.is_ascii_digit()).any(is_it);
    let is_of_years = || cells.iter().flat_map(numbers).any(is_year);
    range_holds(cells, asked) == Some(false)
        && !cells.iter().any(states)
        && (!asked.unit.is_empty() || !is_year(asked.value) || is_of_years())
}

/// Whether a row has a range with two ends that contains a number with a unit, and thus is the row
/// of that number.
pub(crate) fn is_within(cells: &[Cell], asked: &Quantity) -> bool {
    let is_one = |cell: &Cell| {
        let stated = range(&cell.value).filter(|_| has_unit(cell, &asked.unit));
        stated.is_some_and(|range| {
            range.start().is_finite() && range.end().is_finite() && range.contains(&asked.value)
        })
    };
    !asked.unit.is_empty() && cells.len() > 1 && cells.iter().any(is_one)
}

/// The terms of a question's numbers that choose among the columns of a row, because their names
/// are ranges of that unit: "up to 25 guests", "26 to 100 guests". Such numbers do not identify a
/// row.
pub(crate) fn terms_of_columns(question: &Question, row: &[Cell]) -> BTreeSet<String> {
    let is_of = |cell: &Cell, asked: &Quantity| {
        units_of(&cell.name).any(|word| as_unit(asked, &word).is_some())
            && range(&cell.name).is_some()
    };
    let chooses = |asked: &&Quantity| {
        !asked.unit.is_empty() && row.iter().filter(|cell| is_of(cell, asked)).count() > 1
    };
    let chosen = question.quantities.iter().filter(chooses);
    let terms = |one: &Quantity| HybridQuery::analyse(&question.text[one.bytes.clone()]);
    chosen.flat_map(|one| terms(one).terms().to_vec()).collect()
}

/// The words of a column's name that may be units; the "min" of "min kg" is no minute.
fn units_of(name: &str) -> impl Iterator<Item = String> {
    words_of(name).skip_while(|word| word == "min")
}

/// Whether the name or the value of a cell has a unit.
fn has_unit(cell: &Cell, unit: &str) -> bool {
    units_of(&cell.name).any(|word| is_unit(&word, unit))
        || quantities(&cell.value).iter().any(|one| is_unit(&one.unit, unit))
}

/// Whether two lower-case units are the same: "t" and "tons".
fn is_unit(one: &str, other: &str) -> bool {
    let scale = |unit: &str| scaled(1.0, unit);
    is_same_unit(one, other) || scale(one).is_some_and(|one| scale(other) == Some(one))
}

/// The number of a quantity in a unit; `None` if that is of another kind.
fn as_unit(asked: &Quantity, unit: &str) -> Option<f64> {
    if is_same_unit(unit, &asked.unit) {
        return Some(asked.value);
    }
    let ((kind, value), (of_unit, one)) = (scaled(asked.value, &asked.unit)?, scaled(1.0, unit)?);
    (kind == of_unit).then(|| value / one)
}

/// The number of a quantity in the unit that a cell names or states.
pub(crate) fn in_unit(asked: &Quantity, cell: &Cell) -> Option<f64> {
    let named = units_of(&cell.name).find_map(|word| as_unit(asked, &word));
    named.or_else(|| quantities(&cell.value).iter().find_map(|one| as_unit(asked, &one.unit)))
}

/// Whether a row has adjacent columns with the two ends of a range.
pub(crate) fn has_pairs(cells: &[Cell]) -> bool {
    pairs(cells).next().is_some()
}

/// Whether a row contains the day in a span between two of its columns or within one; `None` if it
/// has none.
///
/// A span of whole weeks between two columns, ending on the weekday it began, excludes its last
/// day, because the next span begins there. A span within one column always includes it.
pub(crate) fn span_holds(cells: &[Cell], asked: Day) -> Option<bool> {
    let day = |cell: &Cell| days(&cell.value).first().map(|(_, day)| *day);
    let columns = pairs(cells).find_map(|(low, high)| Some((day(low)?, day(high)?)));
    let stated = || cells.iter().find_map(|cell| spans(&cell.value).first().copied());
    match columns {
        Some((low, high)) => is_between(asked, (low, high), false),
        None => stated().and_then(|span| is_between(asked, span, true)),
    }
}

/// Whether a text states a span that contains the day: "from 13 to 19 April".
pub(crate) fn is_spanned(text: &str, asked: Day) -> bool {
    spans(text).into_iter().any(|span| is_between(asked, span, true) == Some(true))
}

/// The spans of days stated in a text: "13 - 19 Apr", "27 April to 3 May".
fn spans(text: &str) -> Vec<(Day, Day)> {
    let found = days(text);
    let mut spans = Vec::new();
    for (at, (bytes, high)) in found.iter().enumerate() {
        let before = text[..bytes.start].trim_end();
        let Some(before) = SPAN_JOINTS.iter().find_map(|joint| before.strip_suffix(joint)) else {
            continue;
        };
        let before = before.trim_end();
        let number = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        match at.checked_sub(1).map(|at| &found[at]) {
            Some((one, low)) if one.end == before.len() => spans.push((*low, *high)),
            _ => spans.extend(
                number
                    .parse()
                    .ok()
                    .filter(|day| (1..=31).contains(day))
                    .map(|day| (Day { day: Some(day), ..*high }, *high)),
            ),
        }
    }
    spans
}

/// Whether a day lies between two others; the last day counts if `is_last_in`, or if the span is
/// not a number of whole weeks.
fn is_between(asked: Day, (low, high): (Day, Day), is_last_in: bool) -> Option<bool> {
    let has_years = [asked, low, high].iter().all(|day| day.year.is_some());
    let number = |day: Day| day_number(day.year.filter(|_| has_years).unwrap_or(YEAR), day);
    let (asked, low, high) = (number(asked)?, number(low)?, number(high)?);
    let ends_before = !is_last_in && high > low && (high - low) % 7 == 0;
    let is_before_end = asked < high || (asked == high && !ends_before);
    // Without years, a span may end in the following year.
    if high < low && !has_years {
        return Some(low <= asked || is_before_end);
    }
    Some(low <= asked && is_before_end)
}

/// The year assumed for days without one; not a leap year.
const YEAR: u32 = 2001;

/// Julian day number of a day; `None` if only a month is named or the day does not exist.
fn day_number(year: u32, day: Day) -> Option<i32> {
    let month = u8::try_from(day.month).ok().and_then(|month| Month::try_from(month).ok())?;
    let date = Date::from_calendar_date(year as i32, month, u8::try_from(day.day?).ok()?).ok()?;
    Some(date.to_julian_day())
}

/// Adjacent columns that hold the two ends of a range.
fn pairs(cells: &[Cell]) -> impl Iterator<Item = (&Cell, &Cell)> {
    cells.windows(2).filter_map(|pair| {
        let has = |cell: &Cell, end: &str| words_of(&cell.name).any(|word| word == end);
        let are_ends = ENDS.iter().any(|(low, high)| has(&pair[0], low) && has(&pair[1], high));
        are_ends.then(|| (&pair[0], &pair[1]))
    })
}

/// The range stated in a text: "10-20 kg", "up to 8 cm", "25 kg and over".
pub(crate) fn range(text: &str) -> Option<std::ops::RangeInclusive<f64>> {
    let lower = text.to_lowercase();
    let numbers = quantities(&lower);
    let has = |words: &[&str]| words.iter().any(|word| is_said(&lower, word));
    match &numbers[..] {
        [low, high] => {
            let between = lower[low.bytes.clone().end..high.bytes.start].trim();
            // The word between the numbers may have been read as a unit.
            let between = if between.is_empty() { low.unit.as_str() } else { between };
            let is_dash = matches!(between, "-" | "\u{2013}" | "to" | "bis" | "à" | "a" | "and");
            let (low, high) = (low.value.min(high.value), low.value.max(high.value));
            (is_dash && low < high && days(text).is_empty()).then_some(low..=high)
        }
        [one] if has(NOT_UNDER) => Some(one.value..=f64::INFINITY),
        [one] if has(NOT_OVER) || has(UP_TO) => Some(f64::NEG_INFINITY..=one.value),
        [one] if has(FROM) || lower.ends_with('+') => Some(one.value..=f64::INFINITY),
        _ => None,
    }
}

fn is_said(lower: &str, words: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    lower.match_indices(words).any(|(at, _)| {
        !is_word(lower[..at].chars().next_back())
            && !is_word(lower[at + words.len()..].chars().next())
            || !words.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(pairs: &[(&str, &str)]) -> Vec<Cell> {
        let cell = |(name, value): &(&str, &str)| Cell {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(cell).collect()
    }

    #[test]
    fn ranges_hold_numbers() {
        let twelve = &quantities("a dog of 12 kg")[0];
        let of = |pairs: &[(&str, &str)]| range_holds(&cells(pairs), twelve);
        assert_eq!(of(&[("weight_from_kg", "10.0"), ("weight_to_kg", "24.9")]), Some(true));
        assert_eq!(of(&[("weight_from_kg", "5.0"), ("weight_to_kg", "9.9")]), Some(false));
        assert_eq!(of(&[("Weight", "10\u{2013}20 kg")]), Some(true));
        assert_eq!(of(&[("Weight", "up to 10 kg")]), Some(false));
        assert_eq!(of(&[("Weight", "10 kg and over")]), Some(true));
        assert_eq!(of(&[("Weight", "not more than 10 kg")]), Some(false));
        assert_eq!(of(&[("Weight", "not less than 10 kg")]), Some(true));
        assert_eq!(of(&[("Thickness", "10-14 cm")]), None);
        let pins = |size: &str| cells(&[("part", "pins 1-16"), ("for", size)]);
        let asked = &quantities("pins for the 2207")[0];
        assert!(is_out_of_range(&pins("HV-1900"), asked));
        assert!(!is_out_of_range(&pins("HV-2207 HV-2214"), asked), "it is stated");
        let party = cells(&[("Guests", "15\u{2013}24"), ("Discount", "9 %")]);
        let asked = quantities("a party of 18 guests in 2027");
        assert!(!is_out_of_range(&party, &asked[1]), "a year");
        assert!(is_within(&party, &asked[0]) && !is_within(&party, &asked[1]));
        let vat = cells(&[("vat", "copper"), ("min kg", "40"), ("max kg", "90")]);
        let asked = quantities("a vat for 60 kg and 30 minutes");
        assert_eq!(
            asked.iter().map(|one| range_holds(&vat, one)).collect::<Vec<_>>(),
            [Some(true), None]
        );
        let sum = &quantities("a loan of 700 euros")[0];
        let of = |value: &str| range_holds(&cells(&[("Loan", value)]), sum);
        assert_eq!((of("up to 500 EUR"), of("500 to 900 \u{20AC}")), (Some(false), Some(true)));
        assert_eq!(of("up to 900 CHF"), None);
        let week = cells(&[("from", "2025-04-21"), ("to", "2025-04-27")]);
        let day = |text| span_holds(&week, days(text)[0].1);
        assert_eq!((day("22 April 2025"), day("1 May 2025")), (Some(true), Some(false)));
        assert_eq!((day("27 April 2025"), day("21 April")), (Some(true), Some(true)));
        let rota = cells(&[("from", "9 June"), ("to", "16 June")]);
        let day = |text| span_holds(&rota, days(text)[0].1);
        assert_eq!((day("9 June 2025"), day("16 June")), (Some(true), Some(false)));
        let year = cells(&[("from", "2025-12-20"), ("to", "2026-01-03")]);
        let day = |text| span_holds(&year, days(text)[0].1);
        assert_eq!((day("24 December"), day("2 January")), (Some(true), Some(true)));
        assert_eq!((day("24 November"), day("24 December 2026")), (Some(false), Some(false)));
        let stated = |text: &str, day| span_holds(&cells(&[("dates", text)]), days(day)[0].1);
        assert_eq!(stated("13 - 19 Apr", "15 April"), Some(true));
        assert_eq!(stated("27 Apr - 3 May", "30 April 2026"), Some(true));
        assert_eq!(stated("6\u{2013}12 Apr 2026", "15 April 2026"), Some(false));
        assert_eq!(stated("on 12 April", "12 April"), None);
        assert!(is_spanned("Duty from 13 to 20 April is Ada's.", days("20 April")[0].1));
        assert!(!is_spanned("Gate 13, open on 19 April.", days("15 April")[0].1));
        let cold = &quantities("in the bath at minus 70")[0];
        let of = |value: &str| range_holds(&cells(&[("range", value)]), cold);
        assert_eq!(of("below \u{2212}60 to \u{2212}80 \u{B0}C"), Some(true));
        assert_eq!((of("0 to -60 \u{B0}C"), of("23 to 180 \u{B0}C")), (Some(false), Some(false)));
    }
}
