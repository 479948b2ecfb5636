//! Days and numbers in questions, cells and sentences, recognised by form.
//!
//! ```text
//! 2025-04-21, 21 April 2025, 21. April, April 21, 21.04.2025   one day, "04-21" and "2025-04"
//! 3,870, 0,5 ml, EUR 5, -40, minus 40                          a number, its sign and its unit
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::currencies::is_currency;
use crate::text::words::is_entry;

const MONTHS: [&str; 12] = [
    "january|jan|januar|jänner|janvier|enero",
    "february|feb|februar|février|febrero",
    "march|mar|märz|mars|marzo",
    "april|apr|avril|abril",
    "may|mai|mayo",
    "june|jun|juni|juin|junio",
    "july|jul|juli|juillet|julio",
    "august|aug|août|agosto",
    "september|sep|sept|septembre|septiembre",
    "october|oct|oktober|okt|octobre|octubre",
    "november|nov|novembre|noviembre",
    "december|dec|dezember|dez|décembre|diciembre",
];
const WEEKDAYS: [&str; 7] = [
    "monday|mondays|mon|montag|montags|lundi|lundis|lunes",
    "tuesday|tuesdays|tue|dienstag|dienstags|mardi|mardis|martes",
    "wednesday|wednesdays|wed|mittwoch|mittwochs|mercredi|mercredis|miércoles",
    "thursday|thursdays|thu|donnerstag|donnerstags|jeudi|jeudis|jueves",
    "friday|fridays|fri|freitag|freitags|vendredi|vendredis|viernes",
    "saturday|saturdays|sat|samstag|samstags|samedi|samedis|sábado|sábados",
    "sunday|sundays|sun|sonntag|sonntags|dimanche|dimanches|domingo|domingos",
];
/// Positions in the lists by name; a map, as every word of a text is looked up.
static MONTH_BY_NAME: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| by_name(&MONTHS));
static WEEKDAY_BY_NAME: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| by_name(&WEEKDAYS));

fn by_name(lists: &'static [&'static str]) -> HashMap<&'static str, u32> {
    let named = |(at, names): (u32, &&'static str)| names.split('|').map(move |name| (name, at));
    (0..).zip(lists).flat_map(named).collect()
}
/// Words and signs for multiples after a number; the latter only after an amount of money.
const MULTIPLES: [(f64, &str); 3] = [
    (1e3, "thousand|tausend|tsd|mil|miles"),
    (1e6, "million|millions|millionen|mio|millón|millones"),
    (1e9, "billion|billions|milliarde|milliarden|mrd|milliard|milliards"),
];
const MULTIPLES_OF_MONEY: [(f64, &str); 3] = [(1e3, "k"), (1e6, "m|mn"), (1e9, "bn")];
const HOURS: &str = "h|hr|hrs|hour|hours|std|stunde|stunden|heure|heures|hora|horas";
const MINUTES: &str = "m|min|mins|minute|minutes|minuten|minutos";
/// Words before a negative number.
const MINUS: &[&str] = &["minus", "Minus", "moins", "menos"];
/// Words before a month, and the two-digit years that may follow it.
const MONTH_BEFORE: [&str; 3] = ["in", "im", "en"];
const SHORT_YEARS: std::ops::RangeInclusive<u32> = 10..=39;

/// A day, or a month if no day is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day {
    pub(crate) year: Option<u32>,
    pub(crate) month: u32,
    pub(crate) day: Option<u32>,
}

impl Day {
    /// A number that orders days; `None` without a year.
    pub(crate) fn ordinal(self) -> Option<f64> {
        let year = self.year?;
        Some(f64::from(year * 10_000 + self.month * 100 + self.day.unwrap_or(1)))
    }

    /// The terms for the day, which questions and texts share however they write it.
    pub(crate) fn terms(self) -> Vec<String> {
        let of_day = self.day.map(|day| format!("day {:02}-{day:02}", self.month));
        let of_month = self.year.map(|year| format!("month {year}-{:02}", self.month));
        of_day.into_iter().chain(of_month).collect()
    }
}

/// The days in a text, with their byte ranges.
pub(crate) fn days(text: &str) -> Vec<(Range<usize>, Day)> {
    let words: Vec<(usize, &str)> = text.unicode_word_indices().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let before = at.checked_sub(1).map_or("", |before| words[before].1);
        match month_in_short(before, &words[at..]).or_else(|| day_at(text, &words[at..])) {
            Some((count, day)) => {
                let (last, word) = words[at + count - 1];
                found.push((words[at].0..last + word.len(), day));
                at += count;
            }
            None => at += 1,
        }
    }
    found
}

/// A month with a two-digit year: "in February 25"; after "on" it would be a day.
fn month_in_short(before: &str, words: &[(usize, &str)]) -> Option<(usize, Day)> {
    let is_month = MONTH_BEFORE.contains(&before.to_lowercase().as_str());
    let (month, year) = (month(words[0].1)?, words.get(1)?.1);
    let year: u32 = year.parse().ok().filter(|_| is_month && year.len() == 2)?;
    // "In March 15, 2026" states its year later.
    let has_year =
        words.get(2).is_some_and(|(_, word)| word.len() == 4 && word.parse::<u32>().is_ok());
    let is_likely = SHORT_YEARS.contains(&year) && !has_year;
    is_likely.then_some((2, Day { year: Some(2000 + year), month, day: None }))
}

/// The day that begins at the first word, and the number of words it takes.
fn day_at(text: &str, words: &[(usize, &str)]) -> Option<(usize, Day)> {
    let (start, first) = words[0];
    let word = |at: usize| words.get(at).map(|(_, word)| *word);
    // "21T02" is one word.
    let number = |at: usize| word(at).and_then(|word| leading(word).parse().ok());
    let year_at = |at: usize| number(at).filter(|year| (1000..=2999).contains(year));
    if let Some(found) = numeric_day(first) {
        return Some((1, found));
    }
    // 2025-04-21: the words are its numbers.
    if let (Some(year), Some(month), Some(day)) = (year_at(0), number(1), number(2))
        && text.as_bytes().get(start + 4) == Some(&b'-')
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
    {
        return Some((3, Day { year: Some(year), month, day: Some(day) }));
    }
    if let Some(month) = month(first) {
        // "April 21, 2025", "April 2025"; a bare month is an ordinary word.
        if let Some(year) = year_at(1) {
            return Some((2, Day { year: Some(year), month, day: None }));
        }
        let day = ordinal_number(word(1)?)?;
        let year = year_at(2);
        return Some((2 + usize::from(year.is_some()), Day { year, month, day: Some(day) }));
    }
    let day = ordinal_number(first)?;
    let skipped = usize::from(matches!(word(1), Some("de" | "of")));
    let month = month(word(1 + skipped)?)?;
    let after = usize::from(word(2 + skipped) == Some("de"));
    let year = year_at(2 + skipped + after);
    let count = 2 + skipped + if year.is_some() { after + 1 } else { 0 };
    Some((count, Day { year, month, day: Some(day) }))
}

/// The digits of a word before the time of a timestamp.
fn leading(word: &str) -> &str {
    word.split_once('T').map_or(word, |(day, _)| day).trim_end_matches(['.', ','])
}

/// The day of the month in "21", "21st", "1er".
pub(crate) fn ordinal_number(word: &str) -> Option<u32> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_ending = matches!(&word[digits..], "" | "st" | "nd" | "rd" | "th" | "er" | "." | "º");
    let day = word[..digits].parse().ok().filter(|day| (1..=31).contains(day))?;
    is_ending.then_some(day)
}

/// The day in "21.04.2025", which is a single word.
fn numeric_day(word: &str) -> Option<Day> {
    let mut parts = word.split('.').map(|part| part.parse::<u32>().ok());
    let (day, month, year) = (parts.next()??, parts.next()??, parts.next()??);
    let is_day = (1..=31).contains(&day) && (1..=12).contains(&month) && year >= 1000;
    is_day.then_some(Day { year: Some(year), month, day: Some(day) })
}

/// The month that a word names, counted from 1.
pub(crate) fn month(word: &str) -> Option<u32> {
    let lower = word.to_lowercase();
    let lower = lower.trim_end_matches('.');
    // "may" is a verb unless it is capitalised.
    if lower == "may" && !word.starts_with('M') || lower == "mar" && word.starts_with('m') {
        return None;
    }
    MONTH_BY_NAME.get(lower).map(|at| at + 1)
}

/// Whether a word names a month or a day of the week.
pub(crate) fn is_calendar_word(word: &str) -> bool {
    let word = word.to_lowercase();
    [&MONTH_BY_NAME, &WEEKDAY_BY_NAME].iter().any(|names| names.contains_key(word.as_str()))
}

/// The days of the week in a text, as one normalised term each.
pub(crate) fn weekdays(text: &str) -> Vec<String> {
    text.unicode_words().filter_map(weekday).map(|day| format!("weekday {day}")).collect()
}

/// The day of the week that a word names, counted from Monday as 0.
pub(crate) fn weekday(word: &str) -> Option<u32> {
    WEEKDAY_BY_NAME.get(word.to_lowercase().as_str()).copied()
}

/// Whether a text names an amount of money.
pub(crate) fn has_money(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && (text.contains(['£', '$', '€']) || words_of(text).any(|word| is_currency(&word)))
}

/// A number with the unit after it or the currency around it, if any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// Its byte range, including the unit.
    pub(crate) bytes: Range<usize>,
}

/// The numbers in a text. Thousands separators are skipped, "0,5" is a half, "1.2 million" a
/// multiple.
pub(crate) fn quantities(text: &str) -> Vec<Quantity> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let is_inside = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if !bytes[at].is_ascii_digit() || is_inside {
            at += 1;
            continue;
        }
        let start = signed_start(text, at);
        let before = text[..start].trim_end().chars().next_back();
        let currency = before.filter(|c| matches!(c, '£' | '$' | '€'));
        let end = number_end(text, at, currency.is_some());
        let (mut unit, mut last) = word_behind(text, end);
        let (factor, last_of_number) = (multiple(&unit, currency.is_some()), last);
        if factor.is_some() {
            (unit, last) = word_behind(text, last);
        }
        let before = text[..start].unicode_words().next_back().unwrap_or_default();
        let is_money =
            currency.is_some() || is_currency(&unit) || is_currency(&before.to_lowercase());
        if let Some(value) = number(&text[at..end], is_money) {
            let sign = if start < at { -1.0 } else { 1.0 };
            let value = sign * value * factor.unwrap_or(1.0);
            // An amount with a currency sign has its unit in front.
            let behind = if factor.is_some() { last_of_number } else { end };
            let (unit, last) = currency.map_or((unit, last), |sign| (sign.into(), behind));
            found.push(Quantity { value, unit, bytes: start..last });
        }
        at = end.max(at + 1);
    }
    joined(text, found)
}

/// The end of the number that starts at a byte: digits with marks between them and, for money,
/// spaces before three digits.
fn number_end(text: &str, at: usize, is_money: bool) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = at;
    loop {
        let is_thousands = || is_money && (end + 1..end + 4).all(is_digit) && !is_digit(end + 4);
        match bytes.get(end) {
            Some(byte) if byte.is_ascii_digit() => end += 1,
            Some(b'.' | b',') if is_digit(end + 1) => end += 1,
            Some(b' ') if is_thousands() => end += 1,
            _ => return end,
        }
    }
}

/// Merges hours with the minutes that follow them: "2 h 30 min".
fn joined(text: &str, found: Vec<Quantity>) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = Vec::with_capacity(found.len());
    for one in found {
        match all.last_mut() {
            Some(hours)
                if is_entry(HOURS, &hours.unit)
                    && is_entry(MINUTES, &one.unit)
                    && text[hours.bytes.end..one.bytes.start].trim().is_empty() =>
            {
                hours.value = hours.value * 60.0 + one.value;
                (hours.unit, hours.bytes.end) = (one.unit, one.bytes.end);
            }
            _ => all.push(one),
        }
    }
    all
}

/// The word or sign after a byte, in lower case, and its end; empty if none follows directly.
pub(crate) fn word_behind(text: &str, at: usize) -> (String, usize) {
    let rest = text[at..].trim_start_matches([' ', '\u{A0}', '\u{202F}']);
    let stop = |c: char| !(c.is_alphabetic() || matches!(c, '%' | '°' | '€' | '£' | '$'));
    let word = &rest[..rest.find(stop).unwrap_or(rest.len())];
    let end = if word.is_empty() { at } else { text.len() - rest.len() + word.len() };
    (word.to_lowercase(), end)
}

/// The factor that a word after a number denotes.
fn multiple(word: &str, is_money: bool) -> Option<f64> {
    let of_money = MULTIPLES_OF_MONEY.iter().filter(|_| is_money);
    let mut all = MULTIPLES.iter().chain(of_money);
    all.find(|(_, words)| is_entry(words, word)).map(|(factor, _)| *factor)
}

/// The start of the sign of the number at a byte ("-40", "minus 40"), or that byte if it has none:
/// in "10-20" the mark is a dash.
fn signed_start(text: &str, at: usize) -> usize {
    let before = &text[..at];
    let sign = ["-", "\u{2212}"].into_iter().find_map(|sign| before.strip_suffix(sign));
    let word = || MINUS.iter().find_map(|word| before.trim_end().strip_suffix(word));
    match sign.or_else(word) {
        Some(rest) if !rest.ends_with(|c: char| c.is_alphanumeric() || c == '-') => rest.len(),
        _ => at,
    }
}

/// Parses a number as people write it: "2140000", "3,870", "3.870,50", "0,5", "49.50". For money
/// "1.500" is fifteen hundred, because amounts have no thousandths.
pub(crate) fn number(digits: &str, is_money: bool) -> Option<f64> {
    let (whole, fraction) = match decimal_mark(digits, is_money) {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, ""),
    };
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    format!("{whole}.{fraction}0").parse().ok()
}

/// The position of the decimal mark in a number, if it has one.
pub(crate) fn decimal_mark(digits: &str, is_money: bool) -> Option<usize> {
    digits.rfind(['.', ',']).filter(|at| {
        let mark = &digits[*at..=*at];
        let behind = digits.len() - at - 1;
        let is_lone = digits.matches(mark).count() == 1;
        is_lone && (behind != 3 || (mark == "." && !is_money) || digits.starts_with('0'))
    })
}

/// The ordinal of a month written as "2026-01".
pub(crate) fn month_of_year(value: &str) -> Option<f64> {
    let (year, month) = value.trim().split_once('-')?;
    let (year, month) = (year.parse().ok()?, month.parse().ok().filter(|_| month.len() == 2)?);
    let is_one = (1500..=2199).contains(&year) && (1..=12).contains(&month);
    is_one.then_some(Day { year: Some(year), month, day: None }).and_then(Day::ordinal)
}

/// The year that a value consists of.
pub(crate) fn year(value: &str) -> Option<u32> {
    let value = value.trim();
    value.parse().ok().filter(|year| value.len() == 4 && (1500..=2199).contains(year))
}

/// The minutes of a time of day: "09:30", "9 pm", "9.30 a.m.".
fn minutes(value: &str) -> Option<f64> {
    let lower = value.trim().to_lowercase().replace("a.m.", "am").replace("p.m.", "pm");
    let (time, half) = match lower.strip_suffix("pm") {
        Some(time) => (time, Some(12)),
        None => lower.strip_suffix("am").map_or((lower.as_str(), None), |time| (time, Some(0))),
    };
    let marks: &[char] = if half.is_some() { &[':', '.'] } else { &[':'] };
    let (hour, minute) = time.trim().split_once(marks).unwrap_or((time.trim(), ""));
    let is_time = half.is_some() || minute.len() == 2;
    let hour: u32 = hour.parse().ok().filter(|hour| is_time && *hour <= 24)?;
    let minute: u32 = if minute.is_empty() { 0 } else { minute.parse().ok()? };
    let hour = half.map_or(hour, |half| hour % 12 + half);
    (minute < 60).then(|| f64::from(hour * 60 + minute))
}

/// A cell's value as a number: a day, a month, a time of day, or the only number in it, except for
/// a remark in parentheses.
pub(crate) fn measure(value: &str) -> Option<f64> {
    if let [(_, day)] = days(value)[..] {
        return day.ordinal();
    }
    if let Some(month) = month_of_year(value) {
        return Some(month);
    }
    if let Some(minutes) = minutes(value) {
        return Some(minutes);
    }
    let bare = value.split_once(" (").map(|(bare, _)| bare);
    [Some(value), bare].into_iter().flatten().find_map(|value| match &quantities(value)[..] {
        [one] => Some(one.value),
        _ => None,
    })
}

/// The words of a name, in lower case.
pub(crate) fn words_of(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase)
}

/// Whether a text has a day with that number in its month: "2025-11-23" for "23rd".
pub(crate) fn has_day_of_month(text: &str, ordinal: &str) -> bool {
    let is_one = |number: u32| days(text).iter().any(|(_, day)| day.day == Some(number));
    ordinal_number(ordinal).is_some_and(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_day_in_many_forms() {
        for text in [
            "from 2025-04-21 on", "the week of 21 April 2025", "am 21. April 2025", "21.04.2025",
            "April 21, 2025", "el 21 de abril de 2025", "le 21 avril 2025",
            "2025-04-21T02:00:01Z start",
        ] {
            let found = days(text);
            let expected = Day { year: Some(2025), month: 4, day: Some(21) };
            assert_eq!(found.iter().map(|(_, day)| *day).collect::<Vec<_>>(), [expected], "{text}");
        }
        assert_eq!(days("the 19th of March")[0].1.terms(), ["day 03-19"]);
        assert_eq!(weekdays("sat: 9-12, samstags"), ["weekday 5", "weekday 5"]);
        assert!(has_money("£5") && has_money("price_gbp: 5") && !has_money("5 pieces"));
        assert_eq!(days("in March 2025")[0].1.terms(), ["month 2025-03"]);
        assert!(days("it may be 5 or 0555 010 733").is_empty());
        assert_eq!(days("since March 15, 2026")[0].1.ordinal(), Some(20_260_315.0));
        assert_eq!(days("in February 25")[0].1.ordinal(), Some(20_250_201.0));
    }

    #[test]
    fn numbers_as_people_write_them() {
        let values = |text| quantities(text).iter().map(|one| one.value).collect::<Vec<_>>();
        assert_eq!(values("£3,870 or 3.870,50 or 0,5 ml or 49.50"), [3870.0, 3870.5, 0.5, 49.5]);
        assert!(values("HV2207 A131 S_3").is_empty());
        let signed = "-40 to \u{2212}20, minus 3, 10-20, 5 - 6, A-7, 2025-04";
        assert_eq!(values(signed), [-40.0, -20.0, -3.0, 10.0, 20.0, 5.0, 6.0, 7.0, 2025.0, 4.0]);
        assert_eq!(values("£1.2 million, £3k, 2 Mio. Euro, 3 m"), [1.2e6, 3e3, 2e6, 3.0]);
        assert_eq!(values("1.500 €, EUR 1.250, 1.500 kg, 0.125 €"), [1500.0, 1250.0, 1.5, 0.125]);
        assert_eq!(
            values("2 h 30 min, 5 hours 15 minutes, 3 h, £1 900, 7 200"),
            [150.0, 315.0, 3.0, 1900.0, 7.0, 200.0]
        );
        let measured = ["10 am", "9:30 pm", "12 a.m.", "14:00", "£18 (£16 members)", "2 + 1"];
        let minutes = [Some(600.0), Some(1290.0), Some(0.0), Some(840.0), Some(18.0), None];
        assert_eq!(measured.map(measure), minutes);
        let units: Vec<String> =
            quantities("12 kg, £5, 40 %").into_iter().map(|one| one.unit).collect();
        assert_eq!(units, ["kg", "£", "%"]);
    }
}
