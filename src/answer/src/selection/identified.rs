//! The row that a question identifies by a code, a name or a value, as opposed to its neighbours in
//! the table.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::named::{CODE_MALUS, Named, names};
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::Asked;

/// Maximum number of rows that may share a value for it to identify them.
const SHARED_MAX: usize = 3;
/// Share of the question that the chunk of a row must hold for a code to suffice.
const CODED_COVERAGE_MIN: f32 = 0.5;
/// Maximum drop in relevance of a row with the code of the question.
const CODED_DROP_MAX: f32 = 0.25;
/// Ends of a word in the possessive.
const POSSESSIVES: [&str; 2] = ["'s", "\u{2019}s"];

impl Choice<'_> {
    /// The terms by which the question identifies rows among `rows`: its names and codes, and their
    /// values that occur whole in it.
    pub(crate) fn identifying(&self, rows: &[usize]) -> BTreeSet<String> {
        let asked = self.question.last();
        let named = names(asked).into_iter();
        let named = named.filter(|(_, named)| matches!(named, Named::Name | Named::Code));
        let mut found: BTreeSet<String> = named.map(|(term, _)| term).collect();
        // "Ada's number": a first word is no name by its capital alone.
        let owner = asked.unicode_words().next().and_then(|word| {
            let bare = POSSESSIVES.iter().find_map(|end| word.strip_suffix(end))?;
            bare.starts_with(char::is_uppercase).then_some(bare)
        });
        found.extend(owner.into_iter().flat_map(terms));
        let values = self.whole_values(rows);
        let is_rare = |(_, column, said): &&(usize, &str, BTreeSet<String>)| {
            let same = values.iter().filter(|(_, other, one)| other == column && one == said);
            same.count() <= SHARED_MAX
        };
        found.extend(values.iter().filter(is_rare).flat_map(|(.., said)| said.iter().cloned()));
        found
    }

    /// Whether a row holds less of the `identifying` terms than the first one, and nothing of them
    /// that the first one lacks.
    pub(crate) fn is_identified_less(
        &self,
        at: usize,
        first: usize,
        identifying: &BTreeSet<String>,
    ) -> bool {
        let held = |at: usize| &self.matches.own[at] & identifying;
        let (own, of_first) = (held(at), held(first));
        own.len() < of_first.len() && own.is_subset(&of_first)
    }

    /// The only row that has a code of the question as a value, if the question asks for nothing of
    /// a kind that it lacks: a code leaves no doubt which row is meant.
    pub(crate) fn of_code(&self, first: usize) -> Option<usize> {
        let question = self.question;
        if question.asked != Asked::Other || question.counts || question.extreme.is_some() {
            return None;
        }
        let lower = question.last().to_lowercase();
        let trimmed = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let asked: BTreeSet<String> = lower.split_whitespace().map(trimmed).collect();
        let is_code = |value: &str| {
            value.contains(|c: char| c.is_ascii_digit())
                && value.contains(char::is_alphabetic)
                && !value.contains(char::is_whitespace)
                && asked.contains(&value.to_lowercase())
        };
        let all = self.reading.candidates.iter().enumerate();
        let mut rows = all.filter(|(_, one)| {
            let has_code = one.cells.iter().any(|cell| is_code(&cell.value));
            one.has_values() && one.cells.len() > 1 && has_code
        });
        let (row, _) = rows.next()?;
        let score = &self.scores[row];
        let is_one = rows.next().is_none()
            && score.missing < CODE_MALUS
            && score.lacks_measure.is_none()
            && score.coverage >= CODED_COVERAGE_MIN
            && self.relevance(row) >= self.relevance(first) - CODED_DROP_MAX;
        is_one.then_some(row)
    }
}
