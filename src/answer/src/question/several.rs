//! Questions for several things, recognised by a plural.

use crate::question::phrases::{BEFORE_NOUN, LISTS, WHO_OR_WHERE};
use crate::text::words::is_entry;

/// Words after a noun at the start of keywords.
const BEHIND_NOUN: &str = "after|for|of|in|at|on|against|before|during|with|nach|für|gegen|bei|de";
/// Words after a noun in keywords that ask for all of its kind.
const BEHIND_ALL: &str = "that|which|still|not";
/// Verbs of a clause about a noun at the start of keywords: "dates the club wants".
const WANTING: &str = "\
    wants|wanted|needs|needed|asks|asked|expects|expected|demands|demanded|requires|required|\
    requests|requested|sets|gave|gives|offers|offered|proposes|proposed|promised|verlangt|fordert|\
    erwartet|exige|demande|pide";
/// Maximum number of words between the noun and such a verb.
const WANTING_WORDS_MAX: usize = 3;
/// Verbs after a noun of which several are asked for.
const BEHIND_SEVERAL: &str = "\
    are|were|have|do|can|may|must|need|should|will|aren't|weren't|haven't|don't|\
    can't|sind|haben|können|dürfen|müssen|sont|ont|peuvent|son|están|pueden";
/// Verbs that look like plurals: "what happens when".
const VERBS: &str =
    "happens|comes|needs|makes|means|goes|belongs|applies|gets|takes|gives|keeps|follows";
/// Words before a noun asked for within a question. "Who" is missing, as a verb follows it.
const WHICH: &str = "which|welche|welcher|quels|quelles|cuáles";
/// Maximum number of words in a compound noun.
const SEVERAL_WORDS_MAX: usize = 3;
/// Words after the opening among which the noun is sought: "what are the three main signs of".
const NOUN_WORDS_MAX: usize = 4;

/// Whether the words of a question ask for several things: a plural follows the question word
/// ("which clinics", "what measures"), or begins keywords ("measures after the fire").
pub(crate) fn wants_several(spaced: &str) -> bool {
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let is_noun = |at: usize| is_plural(word(at)) && is_entry(BEHIND_SEVERAL, word(at + 1));
    // "What was turned down, which wishes were refused".
    let is_asked = |at: usize| is_entry(WHICH, word(at)) && is_plural(word(at + 1));
    if is_entry(BEFORE_NOUN, word(0)) {
        return is_plural(word(1)) || (2..=SEVERAL_WORDS_MAX).any(is_noun);
    }
    let is_of_all = |at: usize| is_plural(word(at)) && is_entry(BEHIND_ALL, word(at + 1));
    let is_wanted = |at: usize| is_plural(word(0)) && is_entry(WANTING, word(at));
    (1..words.len()).any(is_asked)
        || (2..=1 + WANTING_WORDS_MAX).any(is_wanted)
        || (is_plural(word(0)) && is_entry(BEHIND_NOUN, word(1)))
        || (0..SEVERAL_WORDS_MAX).any(is_of_all)
}

/// Whether it asks for each of several things and its counterpart: "which colour goes where".
pub(crate) fn is_of_pairs(spaced: &str) -> bool {
    let mut words = spaced.split_whitespace();
    words.next().is_some_and(|first| is_entry(BEFORE_NOUN, first))
        && words.next_back().is_some_and(|last| is_entry(WHO_OR_WHERE, last))
}

/// Whether a word looks like a plural.
pub(crate) fn is_plural(noun: &str) -> bool {
    let is_no_noun = ["ss", "us", "is", "was", "does"].iter().any(|end| noun.ends_with(end));
    noun.len() > 3 && noun.ends_with('s') && !is_no_noun && !is_entry(VERBS, noun)
}

/// The first plural after the opening of a question for several things.
pub(crate) fn noun(spaced: &str) -> Option<String> {
    let mut openings: Vec<&str> = LISTS.split('|').chain(BEFORE_NOUN.split('|')).collect();
    openings.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
    let behind = |phrase: &str| spaced.strip_prefix(&format!(" {phrase} "));
    let keywords = || wants_several(spaced).then_some(spaced);
    let behind = openings.into_iter().find_map(behind).or_else(keywords)?;
    behind.split_whitespace().take(NOUN_WORDS_MAX).find(|word| is_plural(word)).map(str::to_owned)
}
