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
/// The words among these that judge rather than measure, and things of which the most is the worst.
const BEST: &str = "best|beste";
const WORST: &str = "worst";
const BAD_THINGS: &str = "\
    scrap|waste|reject|rejects|rejection|defect|defects|error|errors|fault|faults|failure|failures|\
    bug|bugs|complaint|complaints|accident|accidents|incident|incidents|injury|injuries|loss|\
    losses|deficit|delay|delays|waiting|wait|downtime|damage|breakage|breakages|leakage|absence|\
    absences|absenteeism|sickness|theft|thefts|debt|debts|arrears|overdue|pollution|vacancy|\
    dropout|churn|ausschuss|fehler|reklamationen|unfälle|verluste|ausfälle|verspätung|verspätungen";
/// Words behind such a thing that make it another one: "the best waiting room".
const AGAINST_BAD: &str = "\
    management|handling|prevention|protection|control|reduction|recovery|disposal|treatment|\
    sorting|separation|collection|cover|insurance|policy|service|services|room|rooms|area|areas|\
    list|lists|bin|bins";
/// Maximum number of words from such a judgment to the thing it is about.
const JUDGED_WORDS_MAX: usize = 3;
/// Phrases that contain such a word but set a bound or degree: "how many at most".
const NO_EXTREMES: &str = "\
    at most|at the most|at least|at the least|at the latest|at best|at worst|below minimum|\
    below the minimum|below their minimum|under minimum|under the minimum|under their minimum|\
    less than the minimum|fewer than the minimum";
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
    let (most, least) = if judges_bad(&words) { (least, most) } else { (most, least) };
    match (most, least) {
        (true, false) => Some(Extreme::Most),
        (false, true) => Some(Extreme::Least),
        _ => None,
    }
}

/// Whether words call something bad the best or the worst: the worst losses are the largest ones.
fn judges_bad(words: &str) -> bool {
    let is_bad = |judgment: &str| {
        let behind = words.split_once(&format!(" {judgment} ")).map_or("", |(_, behind)| behind);
        let near: Vec<&str> = behind.split(' ').take(JUDGED_WORDS_MAX + 1).collect();
        near.windows(2).any(|two| is_entry(BAD_THINGS, two[0]) && !is_entry(AGAINST_BAD, two[1]))
    };
    entries(BEST).chain(entries(WORST)).any(is_bad)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words::spaced;

    /// Goal: the worst of something bad is the most of it.
    #[test]
    fn the_worst_losses_are_the_largest() {
        let of = |question: &str| extreme(&spaced(question), None);
        assert_eq!(of("Which shop had the worst losses?"), Some(Extreme::Most));
        assert_eq!(of("Which route has the best delay record?"), Some(Extreme::Least));
        assert_eq!(of("Which shop had the worst sales?"), Some(Extreme::Least));
        assert_eq!(of("Which shop had the highest losses?"), Some(Extreme::Most));
        assert_eq!(of("Which dairy has the best waste management?"), Some(Extreme::Most));
        assert_eq!(of("Which dairy has the worst waiting room?"), Some(Extreme::Least));
    }
}
