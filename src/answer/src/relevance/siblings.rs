//! Siblings: things that share the noun of a question's subject after a different qualifier,
//! "parental leave" for "annual leave".
//!
//! Only headings distinguish them reliably: in a sentence, the "house meters" of a question may be
//! the "water meters" of the documents.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::candidates::Candidate;
use crate::text::terms::is_common;
use crate::text::words::{EDITIONS, is_entry, is_interrogative};
use lodestone_text::HybridQuery;

/// Confidence and relevance lost by a passage below the heading of a sibling.
pub(crate) const SIBLING_MALUS: f32 = 0.35;
/// Qualifiers that denote no kind: "the new leave".
const OF_ALL_KINDS: &str = "new|old|current|present|latest|last|next|former|previous|full";
/// Minimum number of letters in a qualifier, and in a noun.
const LETTERS_MIN: usize = 3;

/// Maximum number of digits in each part of a version number.
const VERSION_DIGITS_MAX: usize = 3;

/// The terms of adjacent word pairs in a question, and of all its words.
pub(crate) struct Siblings {
    pairs: Vec<(String, String)>,
    asked: Vec<String>,
    versions: Versions,
}

impl Siblings {
    /// Prepares the detection of siblings for a question.
    pub(crate) fn of(question: &str, candidates: &[Candidate]) -> Self {
        let versions = Versions::of(question, candidates);
        let words = words(question);
        let pairs = words.windows(2).filter_map(|two| Some((two[0].clone()?, two[1].clone()?)));
        Self { pairs: pairs.collect(), asked: words.iter().flatten().cloned().collect(), versions }
    }

    /// Whether a passage is about a sibling or another version of the thing asked for; `own` holds
    /// the question's terms in the passage.
    pub(crate) fn have(&self, passage: &Candidate, own: &BTreeSet<String>) -> bool {
        self.versions.are_others(passage) || self.is_one(&passage.heading, own)
    }

    /// Whether a heading names a sibling, and the text below it does not name the thing asked for;
    /// `own` holds the question's terms in that text.
    fn is_one(&self, heading: &str, own: &BTreeSet<String>) -> bool {
        let named: Vec<String> = match self.pairs.is_empty() {
            true => return false,
            false => words(heading).into_iter().flatten().collect(),
        };
        let [qualifier, noun] = &named[..] else { return false };
        let is_missed = |(asked, of): &(String, String)| of == noun && !own.contains(asked);
        // "Storing images" is about all images.
        let is_deed = heading.unicode_words().any(|word| word.to_lowercase().ends_with("ing"));
        !is_deed && !self.asked.contains(qualifier) && self.pairs.iter().any(is_missed)
    }
}

/// The versions that a question names, and the texts that have a heading for one of them.
struct Versions {
    asked: BTreeSet<String>,
    stretches: BTreeSet<usize>,
}

impl Versions {
    /// Finds the versions that a question names.
    fn of(question: &str, candidates: &[Candidate]) -> Self {
        let words: Vec<&str> = question.unicode_words().collect();
        let is_named = |two: &&[&str]| is_entry(EDITIONS, two[0]);
        let asked = words.windows(2).filter(is_named).filter_map(|two| version(two[1]));
        let asked: BTreeSet<String> = asked.collect();
        let has_one = |one: &&Candidate| versions(&one.heading).any(|told| asked.contains(&told));
        let stretches = match asked.is_empty() {
            true => BTreeSet::new(),
            false => candidates.iter().filter(has_one).map(|one| one.stretch).collect(),
        };
        Self { asked, stretches }
    }

    /// Whether a passage is below a heading for another version only, in a text that has a heading
    /// for a version asked for.
    fn are_others(&self, one: &Candidate) -> bool {
        self.stretches.contains(&one.stretch)
            && versions(&one.heading).next().is_some()
            && !versions(&format!("{} {}", one.heading, one.shown()))
                .any(|told| self.asked.contains(&told))
    }
}

/// The versions that a text names: "8.2", "v1.0.3".
fn versions(text: &str) -> impl Iterator<Item = String> {
    text.unicode_words().filter_map(version)
}

fn version(word: &str) -> Option<String> {
    let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let is_number = |part: &str| {
        (1..=VERSION_DIGITS_MAX).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit())
    };
    (number.contains('.') && number.split('.').all(is_number)).then(|| number.to_owned())
}

/// For each word of a text, its term if the word says something about the subject.
fn words(text: &str) -> Vec<Option<String>> {
    let term = |word: &str| {
        let lower = word.to_lowercase();
        let is_matter = lower.chars().count() >= LETTERS_MIN
            && lower.chars().all(char::is_alphabetic)
            && !is_common(&lower)
            && !is_entry(OF_ALL_KINDS, &lower)
            && !is_interrogative(&lower);
        is_matter.then(|| HybridQuery::analyse(&lower).terms().first().cloned()).flatten()
    };
    text.unicode_words().map(term).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_tells_siblings_apart() {
        let siblings = Siblings::of("How long is annual leave?", &[]);
        let own = |terms: &[&str]| terms.iter().map(|term| (*term).to_owned()).collect();
        assert!(siblings.is_one("6. Parental leave", &own(&["leav"])));
        assert!(!siblings.is_one("6. Parental leave", &own(&["leav", "annual"])));
        assert!(!siblings.is_one("1. Annual leave", &own(&["leav"])));
        assert!(!siblings.is_one("Leave", &own(&["leav"])));
        assert!(!siblings.is_one("Booking leave", &own(&["leav"])));
        assert!(!Siblings::of("When is leave paid?", &[]).is_one("Parental leave", &own(&[])));
    }
}
