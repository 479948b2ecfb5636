//! Marks of rows and the questions about them: columns that say yes or no, days on which something
//! is closed, and columns without a value.
//!
//! ```text
//! accessible: yes, no, yes (ramp)     "are accessible", "not accessible", "without a projector"
//! Sunday: closed                      "closed on Sunday", "not open on Sunday"
//! hours: Mon-Sat 9-19                 the same
//! booked on: 3 May, -, n/a, (none)    "not booked yet", "have no date", "without a speaker"
//! ```
//!
//! A column is asked for if the question contains all words of its name. A denial before those
//! words asks for the rows without it.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Cell;
use crate::passages::candidates::Candidate;
use crate::question::condition::unbound;
use crate::question::qualities::Quality;
use crate::question::wish::Question;
use crate::rows::evaluate::{Column, columns};
use crate::rows::hours::{CLOSED, OPEN, closed_on, is_closed, tells_hours};
use crate::rows::states::is_blank;
use crate::rows::stock::run_out;
use crate::text::terms::is_common;
use crate::text::values::weekday;
use crate::text::words::{is_entry, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// First words of values that say yes, and of those that say no.
const YES: &str = "yes|y|true|x|ja|j|oui|si|sí|wahr|vrai|verdadero|\u{2713}|\u{2714}";
const NO: &str = "no|n|false|nein|non|falsch|faux|falso|\u{2717}|\u{2718}";
/// Denials that ask for the rows without a column, when they precede it.
const DENIALS: &str = "\
    not|no|without|never|nicht|kein|keine|keinen|keiner|keinem|ohne|nie|pas|sans|aucun|aucune|sin|\
    ningún|ninguna|nunca";
/// Denials that deny a verb, and words that may follow that verb without adding anything: "not
/// booked yet", but not "do not meet on Sunday".
const DENIALS_OF_VERBS: &str = "not|never|nicht|nie|pas|nunca";
const BEHIND_VERB: &str = "\
    yet|so|and|or|but|und|aber|oder|bisher|bislang|et|mais|encore|y|pero|todavía|aún";
const ARTICLES: &str =
    "the|a|an|these|those|der|die|das|den|dem|ein|eine|einen|le|la|les|un|une|el|los|las|una";
/// Words after "open" that ask for hours.
const HOW_LONG: &str = "until|till|from|between|bis|ab|jusqu'à|jusqu'au|hasta";
/// Words allowed between a denial and the column, besides common ones, and their maximum number.
const BETWEEN: &str = "be|longer|more|mehr|noch|schon|bereits|encore|todavía|aún";
const BETWEEN_MAX: usize = 4;

/// The marks that a question asks for in a table.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The terms of the question that express the marks.
    pub(crate) terms: BTreeSet<String>,
    /// Positions of the rows that have the marks, among the rows given or among all candidates.
    pub(crate) met: Vec<usize>,
}

/// A word of a question, with its terms.
struct Word {
    lower: String,
    terms: Vec<String>,
}

/// The marks that a question asks for in each table among the candidates, keyed by stretch and
/// group.
pub(crate) fn of_tables(
    question: &Question,
    candidates: &[Candidate],
) -> BTreeMap<(usize, usize), Marks> {
    let mut tables: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    if question.selects || question.extreme.is_some() || question.total.is_some() {
        let rows = candidates.iter().enumerate().filter(|(_, one)| one.has_values());
        for (at, one) in rows {
            tables.entry((one.stretch, one.group)).or_default().push(at);
        }
    }
    let asked = unbound(question.last(), &question.conditions);
    let of_table = |(table, rows): ((usize, usize), Vec<usize>)| {
        let cells: Vec<&[Cell]> = rows.iter().map(|at| candidates[*at].cells.as_slice()).collect();
        let mut marks = marks(&asked, &cells)?;
        marks.met.iter_mut().for_each(|at| *at = rows[*at]);
        Some((table, marks))
    };
    tables.into_iter().filter_map(of_table).collect()
}

/// The marks that a question, stripped of its bounds, asks for in some rows; `None` if it asks for
/// none.
fn marks(question: &str, rows: &[&[Cell]]) -> Option<Marks> {
    let word = |word: &str| Word {
        lower: word.to_lowercase().replace('\u{2019}', "'"),
        terms: HybridQuery::analyse(word).terms().to_vec(),
    };
    let words: Vec<Word> = question.unicode_words().map(word).collect();
    let columns = columns(rows);
    let mut marks = Marks { met: (0..rows.len()).collect(), ..Marks::default() };
    let is_of_days = closed_rows(&words, rows, &columns, &mut marks);
    for column in columns.iter().filter(|_| rows.len() > 1) {
        let Some(places) = places(&words, column.0) else { continue };
        let denial = denial(&words, places[0]);
        let is_denied = denial.is_some();
        let is_flag = tells_yes_or_no(&column.1);
        let is_told = column.1.iter().any(|value| !is_blank(value));
        let lacks_value = denial
            .zip(places.last())
            .is_some_and(|(denial, last)| lacks_value(&words, denial, last + 1));
        // "groomed: never" for "never groomed".
        let is_denial = |value: &str| {
            let first = value.unicode_words().next().map(str::to_lowercase);
            denial.is_some_and(|at| first.as_ref() == Some(&words[at].lower))
        };
        let tells_denial = !is_flag && column.1.iter().any(|value| is_denial(value));
        let is_asked = is_flag || tells_denial || (lacks_value && is_told && !is_of_days);
        if !is_asked {
            continue;
        }
        let holds = |row: &[Cell]| {
            let value = row.iter().find(|cell| cell.name == column.0).map(|cell| &*cell.value);
            let is_one = |value| if is_flag { says(YES, value) } else { !is_blank(value) };
            match tells_denial {
                true => value.is_some_and(is_denial),
                false => value.is_some_and(is_one) != is_denied,
            }
        };
        marks.met.retain(|at| holds(rows[*at]));
        marks.terms.extend(places.iter().flat_map(|at| words[*at].terms.iter().cloned()));
    }
    let run_out = run_out(&spaced(question), rows, &columns);
    let is_of_stock = run_out.is_some();
    if let Some(none) = run_out {
        marks.met.retain(|at| none.contains(at));
    }
    (is_of_stock || !marks.terms.is_empty()).then_some(marks)
}

/// Keeps the rows that are closed, or open, on the days of the week named in the question, if it
/// asks for that and some row states it. Returns whether it does.
fn closed_rows(
    words: &[Word],
    rows: &[&[Cell]],
    columns: &[Column<'_>],
    marks: &mut Marks,
) -> bool {
    let days = words.iter().filter_map(|word| weekday(&word.lower));
    let days: BTreeSet<usize> = days.map(|day| day as usize).collect();
    let place = |list: &str| words.iter().position(|word| is_entry(list, &word.lower));
    let (state, asks_closed) = match (place(CLOSED), place(OPEN)) {
        (Some(at), None) => (at, denial(words, at).is_none()),
        (None, Some(at)) => (at, denial(words, at).is_some()),
        _ => return false,
    };
    // "Open longer" and "open until nine" ask for more than this.
    let mut beside =
        state.checked_sub(1).into_iter().chain([state + 1]).filter_map(|at| words.get(at));
    let tells_more =
        |word: &Word| is_entry(HOW_LONG, &word.lower) || Quality::is_told_by(&word.lower);
    // A table with one row per day is read by its values.
    let is_day = |value: &&str| value.unicode_words().all(|word| weekday(word).is_some());
    let has_days = |(_, values): &Column<'_>| values.iter().all(is_day);
    if days.is_empty() || beside.any(tells_more) || columns.iter().any(has_days) {
        return false;
    }
    let is_of_hours = |(_, values): &&Column<'_>| values.iter().any(|value| tells_hours(value));
    let hours = columns.iter().find(is_of_hours).map(|(name, _)| *name);
    let told = |row: &[Cell], day: usize| {
        let is_day = |cell: &&Cell| {
            let mut named = cell.name.unicode_words().filter_map(weekday);
            named.any(|named| named as usize == day)
        };
        let of_day = row.iter().find(is_day).map(|cell| is_closed(&cell.value));
        let of_hours =
            || closed_on(&row.iter().find(|cell| Some(&*cell.name) == hours)?.value, day);
        of_day.or_else(of_hours)
    };
    if !rows.iter().any(|row| days.iter().any(|day| told(row, *day).is_some())) {
        return false;
    }
    let is_one = |row: &[Cell]| days.iter().all(|day| told(row, *day) == Some(asks_closed));
    marks.met.retain(|at| is_one(rows[*at]));
    let named = words.iter().filter(|word| weekday(&word.lower).is_some()).chain([&words[state]]);
    marks.terms.extend(named.flat_map(|word| word.terms.iter().cloned()));
    marks.terms.extend(days.into_iter().map(|day| format!("weekday {day}")));
    true
}

/// The positions in a question of all significant words of a column's name, ascending; `None` if
/// one is missing or the name has no such words.
fn places(words: &[Word], name: &str) -> Option<Vec<usize>> {
    let name = name.replace('_', " ");
    let tells = |word: &&str| {
        let word = word.to_lowercase();
        !is_common(&word) && !is_interrogative(&word)
    };
    let place = |word: &str| {
        let named = HybridQuery::analyse(word);
        words.iter().position(|word| {
            !word.terms.is_empty() && word.terms.iter().any(|term| named.terms().contains(term))
        })
    };
    let mut places = name.unicode_words().filter(tells).map(place).collect::<Option<Vec<_>>>()?;
    places.sort_unstable();
    (!places.is_empty()).then_some(places)
}

/// The position of a denial before a word, with only insignificant words in between.
fn denial(words: &[Word], at: usize) -> Option<usize> {
    for (place, word) in words[..at].iter().enumerate().rev().take(BETWEEN_MAX) {
        let lower = word.lower.as_str();
        if is_entry(DENIALS, lower) || lower.ends_with("n't") {
            return Some(place);
        }
        if !is_common(lower) && !is_interrogative(lower) && !is_entry(BETWEEN, lower) {
            return None;
        }
    }
    None
}

/// Whether a denial can only mean that a value is missing: "no date", "not booked yet", but not "do
/// not meet on Sunday" or "not the deputies". `behind` is the position after the value.
fn lacks_value(words: &[Word], denial: usize, behind: usize) -> bool {
    let word = |at: usize| words.get(at).map(|word| word.lower.as_str());
    let is_of_verb =
        word(denial).is_some_and(|it| is_entry(DENIALS_OF_VERBS, it) || it.ends_with("n't"));
    let is_end = word(behind).is_none_or(|word| is_entry(BEHIND_VERB, word));
    let is_of_noun = word(denial + 1).is_some_and(|word| is_entry(ARTICLES, word));
    !is_of_verb || (is_end && !is_of_noun)
}

/// Whether all present values of a column say yes or no, and at least one says yes.
fn tells_yes_or_no(values: &[&str]) -> bool {
    values.iter().any(|value| says(YES, value))
        && values.iter().all(|value| is_blank(value) || says(YES, value) || says(NO, value))
}

/// Whether a value is an entry of a list, or its first word is one and has at least two bytes.
fn says(list: &str, value: &str) -> bool {
    let first = value.unicode_words().next().unwrap_or_default();
    is_entry(list, value.trim()) || (first.len() > 1 && is_entry(list, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(question: &str, names: &[&str], table: &[&[&str]]) -> Option<Vec<usize>> {
        let row = |row: &&[&str]| -> Vec<Cell> {
            let cells = names.iter().zip(row.iter()).filter(|(_, value)| !value.is_empty());
            let cell = |(name, value): (&&str, &&str)| Cell {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            };
            cells.map(cell).collect()
        };
        let rows: Vec<Vec<Cell>> = table.iter().map(row).collect();
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        marks(question, &rows).map(|marks| marks.met)
    }

    #[test]
    fn columns_of_yes_and_no_are_read() {
        let names = ["room", "Accessible", "has_projector", "dogs"];
        let table: &[&[&str]] = &[
            &["Alder", "yes", "x", "no"],
            &["Birch", "no", "", "on a lead"],
            &["Cedar", "Yes (ramp)", "", "no"],
            &["Elm", "", "x", "yes"],
        ];
        let met = |question: &str| met(question, &names, table);
        assert_eq!(met("How many rooms are accessible?"), Some(vec![0, 2]));
        assert_eq!(met("How many rooms are not accessible?"), Some(vec![1, 3]));
        assert_eq!(met("Which rooms aren't accessible?"), Some(vec![1, 3]));
        assert_eq!(met("Which rooms have a projector?"), Some(vec![0, 3]));
        assert_eq!(met("Which rooms do not have a projector?"), Some(vec![1, 2]));
        assert_eq!(met("Which rooms without a projector are accessible?"), Some(vec![2]));
        assert_eq!(met("Which rooms are not large, and accessible?"), Some(vec![0, 2]));
        assert_eq!(met("Which rooms have dogs?"), None, "not all say yes or no");
        assert_eq!(met("Which rooms are quiet?"), None);
        let german: &[&[&str]] = &[&["A", "ja"], &["B", "nein"]];
        let met = |question: &str| self::met(question, &["Kurs", "Barrierefrei"], german);
        assert_eq!(met("Wie viele Kurse sind barrierefrei?"), Some(vec![0]));
        assert_eq!(met("Welche Kurse sind nicht barrierefrei?"), Some(vec![1]));
    }

    #[test]
    fn days_on_which_something_is_closed_are_read() {
        let of_days: &[&[&str]] =
            &[&["A", "7-18", "closed"], &["B", "closed", "10-12"], &["C", "9-18", "-"]];
        let of_days = |question: &str| met(question, &["shop", "Monday", "Sunday"], of_days);
        let of_hours: &[&[&str]] =
            &[&["A", "Mon-Sat 9-19"], &["B", "daily 8-20, Monday closed"], &["C", "by phone"]];
        let of_hours = |question: &str| met(question, &["shop", "hours"], of_hours);
        for (question, days, hours) in [
            ("Which shops are closed on Sunday?", vec![0, 2], vec![0]),
            ("Which shops are not open on Sundays?", vec![0, 2], vec![0]),
            ("Which shops are open on Sunday?", vec![1], vec![1]),
            ("Which shops are closed on Monday?", vec![1], vec![1]),
            ("Welche Läden sind am Montag nicht geöffnet?", vec![1], vec![1]),
            ("Which shops are open on Monday and Sunday?", vec![], vec![]),
        ] {
            assert_eq!(of_days(question), Some(days), "{question}");
            assert_eq!(of_hours(question), Some(hours), "{question}");
        }
        assert_eq!(of_days("Which shops are closed?"), None);
        assert_eq!(of_days("Which shop is open longer on Sunday, A or B?"), None);
        assert_eq!(of_days("Which shops are open until 18 on Sunday?"), None);
        assert_eq!(of_days("When do the shops open on Sunday?"), Some(vec![1]));
        let by_day: &[&[&str]] = &[&["A", "Sunday", "closed"], &["A", "Monday", "9-17"]];
        let by_day = met("Which shops are closed on Sunday?", &["shop", "day", "hours"], by_day);
        assert_eq!(by_day, None);
    }

    #[test]
    fn rows_without_a_value_are_found() {
        let names = ["event", "Date", "Speaker", "Booked on"];
        let table: &[&[&str]] = &[
            &["Jazz", "2026-02-11", "Ada", "2025-11-02"],
            &["Reading", "tbd", "Bo", ""],
            &["Market", "2026-03-20", "-", "n/a"],
        ];
        let met = |question: &str| met(question, &names, table);
        assert_eq!(met("Which events have no date yet?"), Some(vec![1]));
        assert_eq!(met("Which events are without a speaker?"), Some(vec![2]));
        assert_eq!(met("Which events are not booked yet?"), Some(vec![1, 2]));
        assert_eq!(met("Which events have not yet been booked?"), Some(vec![1, 2]));
        assert_eq!(met("Which events are booked?"), None, "a day may be meant");
        assert_eq!(met("Which events are not booked by Ada?"), None, "others may be");
        assert_eq!(met("Which events do not have a date?"), Some(vec![1]));
        assert_eq!(met("List the events please, not the speakers"), None);
        assert_eq!(met("Which events have no lift?"), None);
    }
}
