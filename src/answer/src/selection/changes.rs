//! Changes: the section of a document that tells what is new in this edition of it.

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::selection::choose::Choice;
use crate::text::terms::is_common;
use crate::text::values::is_calendar_word;
use crate::text::words::{EDITIONS, contains_any, entries, is_entry, is_interrogative, spaced};
use crate::versions::notices::OF_DOCUMENT;

/// Phrases that ask for the changes of an edition.
const ASKED: &str = "\
    what is new|what's new|whats new|what is different|what's different|what changed|\
    what has changed|what's changed|what was changed|what are the changes|which changes|\
    was ist neu|was hat sich geändert|was wurde geändert|quoi de neuf|qu'est ce qui a changé|\
    qué hay de nuevo|qué ha cambiado|qué cambió";
/// Openings of headings of such a section, and words that may follow besides those for an edition.
const HEADINGS: &str = "\
    what changed|what has changed|what's changed|what was changed|what is new|what's new|changes|\
    change log|changelog|change history|revision history|history of changes|new in|\
    was sich geändert hat|was ist neu|was neu ist|änderungen|neuerungen|ce qui a changé|\
    changements|modifications|nouveautés|qué ha cambiado|qué cambió|cambios|novedades";
const BESIDE: &str = "\
    new|old|last|previous|former|earlier|against|compared|since|history|log|why|how|changes|\
    changed|different|latest|current|is|are|was|were|has|have|been|what's|whats|this|our|\
    alte|alten|letzten|vorigen|gegenüber|seit|warum|précédente|pourquoi|anterior|neu|nouveau|nuevo";
/// Maximum number of passages in such a section.
const CHANGES_MAX: usize = 12;

impl Choice<'_> {
    /// For a question what is new in an edition, and in nothing else: all passages below a heading
    /// for the changes in the source of the first passage.
    pub(crate) fn of_changes(&self, first: usize) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        let one = self.candidate(first);
        let sections = &self.reading.blocks[one.stretch].sections;
        let headline = sections.iter().find_map(|path| path.first()).map_or("", String::as_str);
        let [file, title] = self.editions.names(one.hit);
        let title = spaced(&format!("{file} {title} {headline}"));
        let is_about = |word: &str| is_of_form(word) || contains_any(&title, word);
        let names_edition = contains_any(&asked, EDITIONS) || contains_any(&asked, OF_DOCUMENT);
        let is_asked = contains_any(&asked, ASKED) && names_edition;
        if !is_asked || !asked.split_whitespace().all(is_about) {
            return None;
        }
        let is_told = |at: &usize| {
            let other = self.candidate(*at);
            other.stretch == one.stretch
                && sections[other.section].iter().any(|heading| is_of_changes(heading))
                && matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item | Kind::Row))
                && !other.is_lead
        };
        let found: Vec<usize> = (0..self.reading.candidates.len()).filter(is_told).collect();
        let found = self.without_widened(found);
        (1..=CHANGES_MAX).contains(&found.len()).then_some(found)
    }
}

/// Whether a word only gives a question or a heading its form.
fn is_of_form(word: &str) -> bool {
    is_common(word)
        || is_interrogative(word)
        || is_entry(EDITIONS, word)
        || is_entry(OF_DOCUMENT, word)
        || is_entry(BESIDE, word)
        || word.contains(|c: char| c.is_ascii_digit())
        || is_calendar_word(word)
}

/// Whether a heading announces the changes of an edition: "5 What changed against ed. 4", but not
/// "Changes of address".
fn is_of_changes(heading: &str) -> bool {
    let words = spaced(heading);
    let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == '.');
    let behind = entries(HEADINGS)
        .filter_map(|opening| words.strip_prefix(opening))
        .find(|rest| rest.is_empty() || rest.starts_with(' '));
    behind.is_some_and(|rest| rest.split_whitespace().all(is_of_form))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: headings of changes are told from headings on changes of something.
    #[test]
    fn headings_of_changes_are_told() {
        for heading in ["5 What changed against ed. 4", "Changes", "2. Revision history"] {
            assert!(is_of_changes(heading), "{heading}");
        }
        for heading in ["Changes of address", "Change control", "News"] {
            assert!(!is_of_changes(heading), "{heading}");
        }
    }
}
