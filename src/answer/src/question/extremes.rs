//! Questions for the largest or smallest of several values, or for the second or third of them.

use crate::question::qualities::Quality;
use crate::text::words::{contains, entries, is_entry};

/// Words that ask for the largest value of any quality.
const MOST: &str = "\
    highest|most|largest|biggest|best|maximum|greatest|höchste|höchsten|größte|größten|meisten|\
    beste|plus haut|plus élevé|plus grand|el mayor|la mayor|con mayor|de mayor|qué mayor|\
    más alto|más grande";
/// Words that ask for the smallest value of any quality.
const LEAST: &str = "\
    lowest|least|smallest|fewest|minimum|worst|niedrigste|niedrigsten|kleinste|kleinsten|\
    wenigsten|plus bas|plus petit|menor|más bajo|más pequeño";
/// Phrases that contain such a word but set a bound or degree: "how many at most".
const NO_EXTREMES: &str =
    "at most|at the most|at least|at the least|at the latest|at best|at worst";
/// Words directly before a superlative that ask for the second or the third.
const RANKS: [&str; 2] =
    ["second|2nd|zweit|zweite|segundo|segunda", "third|3rd|dritt|dritte|tercer|tercera"];
/// Words that begin a Spanish or French superlative, which may follow its noun.
const BEHIND_RANKED: &str = "más|menos|plus|moins";

/// The end of the range of values that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extreme {
    Most,
    Least,
}

/// The extreme that a question asks for. `unbound` holds its words without those of bounds;
/// `is_most` is the direction of its superlative of a quality, if any.
pub(crate) fn extreme(unbound: &str, is_most: Option<bool>) -> Option<Extreme> {
    let words = entries(NO_EXTREMES)
        .fold(unbound.to_owned(), |words, phrase| words.replace(&format!(" {phrase} "), " "));
    let wants = |list: &str| entries(list).any(|phrase| contains(&words, phrase));
    let (most, least) = is_most.map_or_else(|| (wants(MOST), wants(LEAST)), |most| (most, !most));
    match (most, least) {
        (true, false) => Some(Extreme::Most),
        (false, true) => Some(Extreme::Least),
        _ => None,
    }
}

/// All words that ask for the largest or smallest value of any quality.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    entries(MOST).chain(entries(LEAST))
}

/// The rank counted from the extreme in a question given as `spaced` words: 2 for "the second
/// highest", 1 for "litres per second".
pub(crate) fn rank(spaced: &str, quality: Option<&'static Quality>) -> usize {
    let of_quality = quality.into_iter().flat_map(Quality::superlatives);
    let extremes = entries(MOST).chain(entries(LEAST)).chain(of_quality);
    let before = extremes.filter_map(|extreme| {
        let before = &spaced[..spaced.find(&format!(" {extreme} "))?];
        let is_behind = extreme.split(' ').next().is_some_and(|word| is_entry(BEHIND_RANKED, word));
        Some(before.rsplit(' ').take(if is_behind { 2 } else { 1 }))
    });
    let ranks =
        before.flatten().filter_map(|word| RANKS.iter().position(|list| is_entry(list, word)));
    ranks.max().map_or(1, |at| at + 2)
}

/// The part of a lower-case question after its superlative.
pub(crate) fn behind<'q>(lower: &'q str, quality: Option<&'static Quality>) -> &'q str {
    let of_quality = quality.into_iter().flat_map(Quality::superlatives);
    let words = entries(MOST).chain(entries(LEAST)).chain(of_quality);
    let ends = words.filter_map(|word| {
        let at = lower.find(word)? + word.len();
        lower.is_char_boundary(at).then_some(at)
    });
    ends.max().map_or(lower, |at| &lower[at..])
}
