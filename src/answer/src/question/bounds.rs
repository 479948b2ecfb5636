//! Bounds that a question sets: the phrases before and after its numbers, days and times of day.
//!
//! Number words up to twelve count, "one" only where it is not likely an article: "less than one
//! hour", but not "under one roof".

use std::collections::BTreeSet;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::condition::{Bound, Condition, Relation};
use crate::text::clock::times;
use crate::text::numbers::{is_number, number_of};
use crate::text::values::{Day, Quantity, days, quantities, word_behind, year};
use crate::text::words::{entries, is_entry};

/// Phrases directly before a number or day, by the relation they require. A phrase that ends in
/// another one comes first.
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
         mehr als|über|länger als|größer als|älter als|plus de|plus d'|plus d\u{2019}|\
         plus grand que|más de|mayor que",
    ),
    (
        Relation::Under,
        "less than|fewer than|under|below|lower than|smaller than|shorter than|lighter than|\
         cheaper than|younger than|slower than|weniger als|unter|kleiner als|kürzer als|\
         jünger als|moins de|moins d'|moins d\u{2019}|menos de|menor que",
    ),
];
/// Phrases directly after a number, or after its unit.
const BEHIND: &[(Relation, &str)] = &[
    (Relation::From, "or more|or over|or above|and more|and over|oder mehr|ou plus|o más"),
    (Relation::UpTo, "or less|or fewer|or under|or below|oder weniger|ou moins|o menos"),
];
/// Words before the two numbers of a range, and the words that join them.
const BETWEEN: &str = "between|zwischen|entre";
const AND: &str = "and|und|et|y";
/// Phrases that bound a day, a month or a year.
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
/// Denials that invert a bound, and those that do so before its verb.
const NOT: &str = "not|no|nicht|pas";
const NOT_OF_VERBS: &str = "not|nicht|pas";
/// Words for one, which are articles too, and the single words after which one is a number.
const ONE: &str = "one|ein|eine|einen|einem|einer|un|une|una|uno";
const BEFORE_ONE: &str = "\
    mindestens|höchstens|maximal|exactly|precisely|genau|exactement|exactamente|between|zwischen|\
    entre";
/// Words after a number word that make it a larger number, besides number words.
const LARGE: &str = "hundert|tausend|cent|cents|mille|cientos|cien|mil";
/// Words before the Spanish "once" (eleven); in the English "at least once" it is not a number.
const BEFORE_ONCE: &str = "de|menos|mínimo|máximo|hasta|entre|y|exactamente";
/// Words for editions and rules, which a year before them names.
const EDITIONS: &str = "\
    edition|version|rules|rule|policy|terms|contract|agreement|plan|scheme|act|law|fassung|\
    ausgabe|regeln|regelung|vertrag|édition|règlement|contrat|edición|versión|reglamento|contrato";
/// Maximum number of conditions taken from a question.
const CONDITIONS_MAX: usize = 8;
/// Words allowed between the phrase and the number.
const ARTICLES: &[&str] = &["the", "end", "of", "las", "la", "£", "$", "€"];
/// The bounds that a question sets.
pub(crate) fn conditions(question: &str) -> Vec<Condition> {
    match between(question) {
        Some(two) => two.into(),
        None => single(question),
    }
}

/// The numbers of a question outside its `days`. A word that belongs to a bound is not taken as the
/// unit: "3 or more", "over 500 before May".
fn numbers(question: &str, days: &[(Range<usize>, Day)]) -> Vec<Quantity> {
    let mut found = quantities(question);
    found.extend(in_words(question));
    found.sort_by_key(|one| one.bytes.start);
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

/// The number words of a question, each with the following word as its unit.
fn in_words(question: &str) -> Vec<Quantity> {
    let mut before = String::new();
    let number = |(at, word): (usize, &str)| {
        // The "d'" of "d'une" belongs to the preposition.
        let start = at
            + word
                .rfind(['\'', '\u{2019}'])
                .map_or(0, |mark| mark + word[mark..].chars().next().map_or(0, char::len_utf8));
        let end = at + word.len();
        let lower = question[start..end].to_lowercase();
        let before = std::mem::replace(&mut before, lower.clone());
        let is_word = lower.starts_with(char::is_alphabetic)
            && (lower != "once" || is_entry(BEFORE_ONCE, &before));
        let one = is_entry(ONE, &lower).then_some(1.0);
        let value = one.or_else(|| number_of(&lower)).filter(|_| is_word)?;
        let (unit, last) = word_behind(question, end);
        // The "two" of "two hundred" is part of a larger number.
        let is_part = is_number(&unit) || is_entry(LARGE, &unit);
        (!is_part).then_some(Quantity { value, unit, bytes: start..last })
    };
    question.unicode_word_indices().filter_map(number).collect()
}

/// Whether the bound starting at a byte means a number rather than an article, as in "under one
/// roof".
fn is_likely(question: &str, start: usize, one: &Quantity) -> bool {
    // "Under the 2023 edition" names the edition; "more than 2 terms" counts.
    if is_entry(EDITIONS, &one.unit) && year(&one.value.to_string()).is_some() {
        return false;
    }
    let is_article = question[one.bytes.start..].starts_with(char::is_alphabetic);
    let phrase = question.get(start..one.bytes.start).unwrap_or_default().trim();
    !is_article || one.value != 1.0 || phrase.contains(' ') || is_entry(BEFORE_ONE, phrase)
}

/// The two conditions of a range such as "between 2 and 5".
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
    let in_time = |bytes: &Range<usize>, bound: Bound| {
        let (relation, start) = relation_before(question, bytes.start, TIMES)?;
        Some(Condition { relation, bound, bytes: start..bytes.end })
    };
    let of_days = found.iter().filter_map(|(bytes, day)| in_time(bytes, Bound::Day(*day)));
    let times = times(question);
    let of_times = times.iter().filter_map(|(bytes, time)| in_time(bytes, Bound::Time(*time)));
    let mut bounds: Vec<Condition> = of_days.chain(of_times).take(CONDITIONS_MAX).collect();
    let is_bound = |one: &Quantity| {
        let of_time = |other: &&Condition| matches!(other.bound, Bound::Time(_));
        let mut times = bounds.iter().filter(of_time);
        times.any(|time| time.bytes.start < one.bytes.end && one.bytes.start < time.bytes.end)
    };
    let numbers = numbers(question, &found).into_iter().filter(|one| !is_bound(one));
    let of_numbers = numbers.filter_map(|one| {
        let year = Some(one.value as u32).filter(|year| (1900..=2199).contains(year));
        let of_year =
            year.filter(|_| one.unit.is_empty() || !one.unit.contains(['€', '£', '$', '%']));
        let in_time = of_year.and_then(|year| {
            let (relation, start) = relation_before(question, one.bytes.start, TIMES)?;
            Some((relation, start, Bound::Year(year)))
        });
        let (relation, start, bound) = in_time.or_else(|| {
            let (relation, start) = relation_before(question, one.bytes.start, BOUNDS)
                .or_else(|| Some((bound_behind(question, one.bytes.end)?, one.bytes.start)))
                .filter(|(_, start)| is_likely(question, *start, &one))?;
            Some((relation, start, Bound::Number { value: one.value, unit: one.unit.clone() }))
        })?;
        Some(Condition { relation, bound, bytes: start..one.bytes.end })
    });
    let of_numbers: Vec<Condition> = of_numbers.take(CONDITIONS_MAX - bounds.len()).collect();
    bounds.extend(of_numbers);
    bounds
}

/// The phrase that ends just before a byte, as its relation and start.
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
    // Lower-casing may change the length of a text.
    found.filter(|(_, start)| question.is_char_boundary(*start))
}

/// The relation of the phrase just before a byte, and where it starts; for "not longer than" and
/// "do not cost more than", the inverted relation and the start of the denial.
fn relation_before(
    question: &str,
    at: usize,
    phrases: &[(Relation, &str)],
) -> Option<(Relation, usize)> {
    let (relation, start) = bound_before(question, at, phrases)?;
    let denied = denied_before(question, start).map(|start| (relation.denied(), start));
    Some(denied.unwrap_or((relation, start)))
}

/// The position of the denial of a phrase that starts at a byte: directly before it, or before the
/// verb in between. "No" only counts directly before, as in "with no guide over 20" it belongs to a
/// noun.
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

/// The relation of the phrase after a number, or after the word that follows the number.
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
