//! Opening hours in cells: tells whether something is closed on a day of the week.
//!
//! ```text
//! closed                                     in a column named after the day
//! Mon-Sat 9-19, closed on Sunday             Sunday is closed, Monday is not
//! Tue-Fri 9-17                               Sunday is closed: it has no hours
//! Mo-Fr 9-17, Sa, So geschlossen             days before or after their statement
//! ```

use unicode_segmentation::UnicodeSegmentation;

use crate::rows::states::is_blank;
use crate::text::values::weekday;
use crate::text::words::is_entry;

/// Words for closed and for open.
pub(crate) const CLOSED: &str = "\
    closed|shut|geschlossen|fermé|fermés|fermée|fermées|cerrado|cerrada|cerrados|cerradas";
pub(crate) const OPEN: &str = "\
    open|geöffnet|offen|ouvert|ouverts|ouverte|ouvertes|abierto|abierta|abiertos|abiertas";
/// Words for all days of the week.
const DAILY: &str = "daily|everyday|täglich|quotidien|quotidiennement|diario|diariamente";
/// Words and marks between the first and last of a range of days, and between parts that refer to
/// different days.
const TO: &str = "-|\u{2013}|to|bis|à|au|a";
const PARTS: [char; 6] = [',', ';', '&', '(', ')', '/'];
const AND: &str = "and|und|et|y";
/// Abbreviations of days in German and French hours, case-sensitive to tell them from other words.
const SHORT: [&str; 7] = ["Mo|lun", "Di|mar", "Mi|mer", "Do|jeu", "Fr|ven", "Sa|sam", "So|dim"];
const DAYS: usize = 7;

/// State of each day of the week: closed, open or not stated.
#[derive(Debug, Default)]
struct Week {
    closed: [Option<bool>; DAYS],
    /// Days named so far without a statement.
    pending: Vec<usize>,
    /// The latest statement, if its days come after it: "closed Sat, Sun".
    said_before_days: Option<bool>,
}

/// One part of opening hours.
#[derive(Debug, Default)]
struct Part {
    days: Vec<usize>,
    is_closed: Option<bool>,
    /// Whether the statement comes before its days.
    begins_with_it: bool,
}

/// Whether a value, in a column named after a day, says that something is closed.
pub(crate) fn is_closed(value: &str) -> bool {
    let first = value.unicode_words().next().unwrap_or_default();
    is_entry(CLOSED, first) || is_entry("no|nein|non", first) || is_blank(value)
}

/// Whether a value states hours for days of the week, or days on which something is closed.
pub(crate) fn tells_hours(value: &str) -> bool {
    parts(value).iter().any(|part| !part.days.is_empty() && part.is_closed.is_some())
}

/// Whether hours say that something is closed on a day, counted from Monday; `None` if they state
/// nothing about days. A day that is not mentioned is closed if another day is open, and open if
/// only closed days are listed.
pub(crate) fn closed_on(value: &str, day: usize) -> Option<bool> {
    let parts = parts(value);
    if let [Part { days, is_closed: Some(true), .. }] = &parts[..]
        && days.is_empty()
    {
        return Some(true);
    }
    let mut week = Week::default();
    parts.into_iter().for_each(|part| week.add(part));
    let is_open_then = |said: &Option<bool>| *said == Some(false);
    let tells = week.closed.iter().any(Option::is_some);
    week.closed[day].or_else(|| tells.then(|| week.closed.iter().any(is_open_then)))
}

impl Week {
    fn add(&mut self, part: Part) {
        let Part { days, is_closed, begins_with_it } = part;
        match (is_closed, self.said_before_days) {
            (Some(said), _) => {
                self.said_before_days = begins_with_it.then_some(said);
                let pending = std::mem::take(&mut self.pending);
                pending.into_iter().chain(days).for_each(|day| self.closed[day] = Some(said));
            }
            (None, Some(said)) => days.into_iter().for_each(|day| self.closed[day] = Some(said)),
            (None, None) => self.pending.extend(days),
        }
    }
}

fn parts(value: &str) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    let mut is_range = false;
    for word in value.split_word_bounds().filter(|word| !word.trim().is_empty()) {
        let part = parts.last_mut().expect("there is one from the beginning");
        if word.contains(PARTS) || is_entry(AND, word) {
            parts.push(Part::default());
        } else if let Some(day) = day(word) {
            match part.days.last().copied().filter(|_| is_range) {
                Some(first) => {
                    part.days.extend((1..DAYS).map(|step| (first + step) % DAYS).take_while(
                        |other| (*other + DAYS - first) % DAYS <= (day + DAYS - first) % DAYS,
                    ));
                }
                None => part.days.push(day),
            }
        } else if is_entry(TO, word) {
            is_range = !part.days.is_empty() && part.is_closed.is_none();
            continue;
        } else {
            part.say(word);
        }
        is_range = false;
    }
    parts.retain(|part| !part.days.is_empty() || part.is_closed.is_some());
    parts
}

impl Part {
    /// Takes in a word that is not a day.
    fn say(&mut self, word: &str) {
        if is_entry(DAILY, word) {
            self.days.extend(0..DAYS);
        }
        let is_closed = is_entry(CLOSED, word);
        let is_open = is_entry(OPEN, word)
            || is_entry(DAILY, word)
            || word.starts_with(|c: char| c.is_ascii_digit());
        if (is_closed || is_open) && self.is_closed != Some(true) {
            self.begins_with_it |= self.days.is_empty();
            self.is_closed = Some(is_closed);
        }
    }
}

/// The day of the week that a word names, counted from Monday.
fn day(word: &str) -> Option<usize> {
    let short = || SHORT.iter().position(|names| names.split('|').any(|name| name == word));
    weekday(word).map(|day| day as usize).or_else(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_closed_as_people_write_it() {
        const SUNDAY: usize = 6;
        for (value, closed) in [
            ("Mon-Sat 9-19, closed on Sunday", Some(true)),
            ("Tue-Sun 10-18, Monday closed", Some(false)),
            ("Mon-Fri 15-20; Sat, Sun closed", Some(true)),
            ("closed Sat, Sun", Some(true)),
            ("closed on Saturdays and Sundays, Mon to Fri 9:00-17:30", Some(true)),
            ("Mo\u{2013}Fr 9\u{2013}17 Uhr, Sa und So geschlossen", Some(true)),
            ("Monday to Friday 8-12, 14-18", Some(true)),
            ("Fri-Mon 9-12", Some(false)),
            ("daily 8-20", Some(false)),
            ("closed on Mondays", Some(false)),
            ("closed for repairs", Some(true)),
            ("9-17", None),
            ("ring before you come", None),
        ] {
            assert_eq!(closed_on(value, SUNDAY), closed, "{value}");
        }
        assert!(is_closed("closed (holidays too)") && is_closed("\u{2013}") && !is_closed("9-17"));
        assert!(tells_hours("Sun closed") && !tells_hours("Sunday") && !tells_hours("closed"));
    }
}
