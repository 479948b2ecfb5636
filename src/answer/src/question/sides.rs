//! The two things that a question compares.

use std::collections::BTreeSet;

use crate::question::phrases::{COMPARATIVES, EITHER};
use crate::text::terms::terms;
use crate::text::words::{self, is_entry};

const BETWEEN: &str = "between|zwischen|entre";
const AND: &str = "and|und|et|y";
const VERSUS: &str = "versus|vs|than|als";

/// The terms that distinguish the two sides of a comparison: "between A and B", "A vs B", "B than
/// A", "A or B".
pub(crate) fn sides(spaced: &str) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let between = || {
        let (_, behind) = BETWEEN.split('|').find_map(|word| split_at(spaced, word))?;
        AND.split('|').find_map(|word| split_at(behind, word))
    };
    let (one, other) = between()
        .or_else(|| VERSUS.split('|').find_map(|word| split_at(spaced, word)))
        .or_else(|| EITHER.split('|').find_map(|word| split_at(spaced, word)))?;
    let (one, other) = (terms(&words::bare_matter(one)), terms(&words::bare_matter(other)));
    let sides = (&one - &other, &other - &one);
    (!sides.0.is_empty() && !sides.1.is_empty()).then_some(sides)
}

/// The terms that distinguish two names in one phrase: "Red Hall and Blue Hall".
pub(crate) fn named_sides(text: &str) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<String> = text.split_whitespace().map(bare).collect();
    let is_name = |word: &&String| {
        let is_other = words::is_interrogative(word) || is_entry(COMPARATIVES, word);
        word.starts_with(char::is_uppercase) && !is_other
    };
    let is_join = |at: &usize| is_entry(AND, &words[*at]) || is_entry(VERSUS, &words[*at]);
    (1..words.len()).filter(is_join).find_map(|at| {
        let before = words[..at].iter().rev().take_while(is_name);
        let behind = words[at + 1..].iter().take_while(is_name);
        let named = |names: Vec<&String>| -> BTreeSet<String> {
            names.into_iter().flat_map(|name| terms(name)).collect()
        };
        let (one, other) = (named(before.collect()), named(behind.collect()));
        let sides = (&one - &other, &other - &one);
        (!sides.0.is_empty() && !sides.1.is_empty()).then_some(sides)
    })
}

/// The text before and after a word, in text made by [`spaced`].
fn split_at<'t>(spaced: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    spaced.split_once(&format!(" {word} "))
}
