//! Years that a question names relative to today, and by which it names editions: "under the 2023
//! edition", beside which the other years of the question tell when something happened.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::dates::{Dated, Day, Grain};
use crate::text::values::year;
use crate::text::words::{EDITIONS, contains_any, is_entry, spaced};

/// Words between an edition and its year.
const OF: &str = "of|from|von|vom|aus|de|del";
/// Words before the other side of a comparison.
const JOINTS: &str = "\
    and|or|to|vs|versus|than|with|against|since|und|oder|bis|als|mit|seit|et|ou|que|depuis|y|o|\
    desde";

/// Phrases for the previous year, and for the next.
const LAST_YEAR: &str = "\
    last year|last year's|letztes jahr|letzten jahr|letzten jahres|vorjahr|\
    l'année dernière|l'an dernier|l'an passé|el año pasado";
const NEXT_YEAR: &str = "\
    next year|next year's|nächstes jahr|nächsten jahr|nächsten jahres|l'année prochaine|\
    l'an prochain|el año que viene|el próximo año";

/// The years of the editions that a question names; none if it compares them with other years.
pub(super) fn years_of_editions(question: &str) -> Vec<u32> {
    let words: Vec<String> = question.unicode_words().map(str::to_lowercase).collect();
    let is = |list: &str, at: Option<usize>| {
        at.and_then(|at| words.get(at)).is_some_and(|word| is_entry(list, word))
    };
    let is_named = |at: usize| {
        is(EDITIONS, Some(at + 1))
            || is(EDITIONS, at.checked_sub(1))
            || (is(OF, at.checked_sub(1)) && is(EDITIONS, at.checked_sub(2)))
    };
    let all = (0..words.len()).filter(|at| year(&words[*at]).is_some());
    let (named, others): (Vec<usize>, Vec<usize>) = all.partition(|at| is_named(*at));
    let is_compared = |at: &usize| is(JOINTS, at.checked_sub(1)) || is(JOINTS, at.checked_sub(2));
    if others.iter().chain(&named).any(is_compared) {
        return Vec::new();
    }
    named.into_iter().filter_map(|at| year(&words[at])).collect()
}

/// The year that a question names relative to today: "last year".
pub(super) fn relative_year(question: &str, today: Day) -> Option<Dated> {
    let words = spaced(question);
    let year = match (contains_any(&words, LAST_YEAR), contains_any(&words, NEXT_YEAR)) {
        (true, false) => today.year - 1,
        (false, true) => today.year + 1,
        _ => return None,
    };
    Some(Dated { day: Day { year, month: 1, day: 1 }, grain: Grain::Year })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the year beside a word for an edition is told from other years.
    #[test]
    fn the_year_of_an_edition_is_told() {
        assert_eq!(years_of_editions("Berth booked in May 2025, by the 2023 edition?"), [2023]);
        assert_eq!(years_of_editions("Booked in 2025, in the edition of 2023?"), [2023]);
        assert!(years_of_editions("How did it change from the 2023 edition to 2025?").is_empty());
        assert!(years_of_editions("What did a berth cost in 2023?").is_empty());
    }
}
