//! Days that a question names relative to the day it is asked on: "tomorrow", "next Monday".

use unicode_segmentation::UnicodeSegmentation;

use crate::text::dates::Day;
use crate::text::values::{days, weekday};
use crate::text::words::is_entry;

/// Words for a day, with its distance from today.
const WORDS: [(&str, i32); 3] = [
    ("today|tonight|heute|aujourd'hui|hoy", 0),
    ("tomorrow|demain|mañana|morgen", 1),
    ("yesterday|gestern|ayer", -1),
];
/// Words that move such a day by one more: "the day after tomorrow".
const FURTHER: &str = "day";
const FURTHER_BEHIND: &str = "after|before";
/// Words before such a day that make it a bound, another day or a part of each day.
const BOUNDS: &str = "\
    by|before|after|since|until|till|from|of|to|than|past|as|am|jeden|guten|bis|seit|ab|vor|nach|\
    depuis|avant|après|dès|jusqu'à|la|hasta|desde|antes|de";
/// Words with a weekday: before it, and in French and Spanish also after it.
const NEXT: &str = "next|coming|nächsten|nächster|kommenden|kommender|prochain|próximo";
const THIS: &str = "this|diesen|dieser|ce|este";
const LAST: &str = "last|letzten|letzter|dernier|pasado";
const DAYS_A_WEEK: i32 = 7;

/// The only day that a question names relative to `today`; `None` if it bounds something, or if
/// the question names another day too.
pub(crate) fn relative_day(question: &str, today: Day) -> Option<Day> {
    let words: Vec<&str> = question.unicode_words().collect();
    let bare = |at: usize| words[at].strip_suffix("'s").unwrap_or(words[at]);
    let is_before = |at: usize, list: &str| at > 0 && is_entry(list, words[at - 1]);
    let named = |at: usize| {
        // "Morgen" is the morning.
        let is_noun = bare(at) == "Morgen" && at > 0;
        let (_, distance) = WORDS.iter().find(|(list, _)| is_entry(list, bare(at)) && !is_noun)?;
        let is_further =
            at > 1 && is_before(at, FURTHER_BEHIND) && is_entry(FURTHER, words[at - 2]);
        match is_further {
            true => Some(Some(distance * 2)),
            false => Some(Some(*distance).filter(|_| !is_before(at, BOUNDS))),
        }
    };
    let of_week = |at: usize| {
        let ahead = (weekday(words[at])? as i32 - today.weekday() as i32).rem_euclid(DAYS_A_WEEK);
        let is_said = |list: &str| {
            is_before(at, list) || words.get(at + 1).is_some_and(|word| is_entry(list, word))
        };
        match () {
            () if is_said(NEXT) => Some(if ahead == 0 { DAYS_A_WEEK } else { ahead }),
            () if is_said(THIS) => Some(ahead),
            () if is_said(LAST) => Some(ahead - DAYS_A_WEEK),
            () => None,
        }
    };
    let mut found = (0..words.len()).filter_map(|at| named(at).or_else(|| of_week(at).map(Some)));
    let distance = found.next().filter(|_| days(question).is_empty())??;
    found.next().is_none().then(|| today.plus(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_today() {
        // A Friday.
        let today = Day { year: 2027, month: 12, day: 31 };
        let of =
            |question: &str| relative_day(question, today).map(|it| (it.year, it.month, it.day));
        for (question, expected) in [
            ("Who mans the ferry tomorrow?", (2028, 1, 1)),
            ("What's on today's menu?", (2027, 12, 31)),
            ("Who had the watch yesterday?", (2027, 12, 30)),
            ("Who sails the day after tomorrow?", (2028, 1, 2)),
            ("Who sails next Monday?", (2028, 1, 3)),
            ("Who sails next Friday?", (2028, 1, 7)),
            ("Who sails this Friday?", (2027, 12, 31)),
            ("Who sailed last Friday?", (2027, 12, 24)),
            ("Wer fährt morgen?", (2028, 1, 1)),
            ("Qui navigue lundi prochain ?", (2028, 1, 3)),
        ] {
            assert_eq!(of(question), Some(expected), "{question}");
        }
        for question in [
            "Who sails on Monday?", "Which bills are due by tomorrow?",
            "Is it dearer today than yesterday?", "Wer fährt am Morgen?",
            "Who sails on 3 May, not today?", "¿Quién navega por la mañana?",
        ] {
            assert_eq!(of(question), None, "{question}");
        }
    }
}
