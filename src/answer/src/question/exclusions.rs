//! Exclusions in a question: "not from Ada", "besides Ada".

use std::collections::BTreeSet;

use crate::question::phrases::EITHER;
use crate::text::terms::{is_common, terms};
use crate::text::words::{entries, is_entry, spaced};

/// Denials and phrases before an exclusion, and words that end it.
const EXCLUSIONS: &str = "not|nicht|no";
const OTHERS_THAN: &str = "\
    except|except for|excluding|other than|apart from|besides|aside from|außer|sauf|hormis|\
    excepto|además de";
const EXCLUSION_ENDS: &str = "\
    and|but|that|which|who|is|are|was|were|has|have|had|can|may|must|will|does|do|did|should|und|\
    aber|ist|sind|hat|haben|et|mais|est|sont|y|pero|es|son";
/// Modal verbs before "not"; such a "not" forbids rather than excludes.
const MODALS: &str = "should|must|may|can|could|shall|need|dare|ought";
const EXCLUDED_WORDS_MAX: usize = 6;

/// The terms that a question excludes.
pub(crate) fn left_out(question: &str) -> BTreeSet<String> {
    behind(question, entries(EXCLUSIONS).chain(entries(OTHERS_THAN)))
}

/// The terms that a question asks for others than: "who besides Ada".
pub(crate) fn others_than(question: &str) -> BTreeSet<String> {
    behind(question, entries(OTHERS_THAN))
}

/// The terms after the last of some phrases, up to the next part of the question.
fn behind<'p>(question: &str, phrases: impl Iterator<Item = &'p str>) -> BTreeSet<String> {
    let words = spaced(question);
    let behind = phrases.filter_map(|word| {
        let (before, behind) = words.split_once(&format!(" {word} "))?;
        // "No. 12" is a number.
        let next = behind.split(' ').next().unwrap_or_default();
        let is_number = word == "no" && next.contains(|c: char| c.is_ascii_digit());
        (!is_number).then_some((before, behind))
    });
    // "Who should not swim" excludes nothing.
    let is_modal =
        |before: &str| before.rsplit(' ').next().is_some_and(|last| is_entry(MODALS, last));
    let behind = behind.filter(|(before, _)| !is_modal(before));
    let behind = behind.map(|(_, behind)| behind).min_by_key(|behind| behind.len());
    let words = behind.unwrap_or_default().split_whitespace();
    let words = words.take_while(|word| !is_entry(EXCLUSION_ENDS, word));
    let words =
        words.take(EXCLUDED_WORDS_MAX).filter(|word| !is_common(word) && !is_entry(EITHER, word));
    words.flat_map(terms).collect()
}
