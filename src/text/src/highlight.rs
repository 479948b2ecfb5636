//! Occurrences of a query's terms in a text, for snippets and extracted answers.

use std::collections::HashSet;
use std::ops::Range;

use crate::analysis::{Analyser, Kind, Term};
use crate::normal::{nfkc, original_ranges};
use crate::{HybridQuery, WordQuery};
use lodestone_types::script::is_unspaced;

/// Returns the byte ranges of the text whose analysed form is a term of the query, in ascending
/// order, with overlapping ones merged. All ranges are on character boundaries.
pub fn matches(query: &HybridQuery, text: &str) -> Vec<Range<usize>> {
    let terms: HashSet<&str> = query.terms().iter().map(String::as_str).collect();
    let normal = nfkc(text);
    let mut found = Vec::new();
    let mut analyser = Analyser::new();
    let is_found = |term: &Term<'_>| terms.contains(term.text);
    analyser.hybrid(&normal, |term| found.extend(is_found(&term).then_some(term.range)));
    // A single character of the query also matches inside runs.
    if terms.iter().any(|term| term.chars().count() == 1) {
        let is_in_run = |kind| matches!(kind, Kind::First | Kind::Next);
        let is_found = |term: &Term<'_>| is_in_run(term.kind) && is_found(term);
        analyser.whole(&normal, |term| found.extend(is_found(&term).then_some(term.range)));
    }
    joined(text, found)
}

/// Returns the byte ranges of the text where a form of one of the query's words occurs, in the same
/// format as [`matches()`].
pub fn word_matches(query: &WordQuery, text: &str) -> Vec<Range<usize>> {
    let normal = nfkc(text);
    let mut words = HashSet::new();
    let mut found = Vec::new();
    for form in query.forms() {
        match form.terms.as_slice() {
            [word] if !word.chars().all(is_unspaced) => {
                words.insert(word.as_str());
            }
            run => {
                let run = run.concat();
                found.extend(normal.match_indices(&run).map(|(at, _)| at..at + run.len()));
            }
        }
    }
    Analyser::new().whole(&normal, |term| {
        found.extend(words.contains(term.text).then_some(term.range));
    });
    joined(text, found)
}

/// Maps ranges of the normalised text to ascending ranges of the text, merging overlapping ones.
fn joined(text: &str, mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    // Parts of an identifier precede it and overlap with it.
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in original_ranges(text, &found) {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Operator;

    fn found<'t>(query: &str, text: &'t str) -> Vec<&'t str> {
        let ranges = matches(&HybridQuery::analyse(query), text);
        ranges.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn analysed_forms_are_found() {
        assert_eq!(found("connection", "It connects, CONNECTED."), ["connects", "CONNECTED"]);
        assert_eq!(found("user", "call getUserName now"), ["User"]);
        assert_eq!(found("getUserName", "call getUserName now"), ["getUserName"]);
        assert_eq!(found("café", "un cafe\u{301} noir"), ["cafe\u{301}"]);
        assert_eq!(found("fine", "a \u{FB01}ne day"), ["\u{FB01}ne"]);
        // Single Hangul letters compose with their neighbours in the normal form.
        assert_eq!(found("fine", "ㅋㅠㅋㅠ a fine day"), ["fine"]);
        assert_eq!(found("机器学", "x机器学习"), ["机器", "器学"].map(|_| "机器学")[..1]);
        assert_eq!(found("器", "机器学"), ["器"]);
        assert!(found("", "text").is_empty() && found("text", "").is_empty());
    }

    #[test]
    fn words_of_full_text_are_found() {
        let found = |query: &str, text| -> Vec<&str> {
            let query = WordQuery::analyse(query, Operator::Or);
            word_matches(&query, text).into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(found("wings", "wing WINGS"), ["WINGS"]);
        assert_eq!(found("main", "see main.rs"), ["main"]);
        assert_eq!(found("最高的山", "世界最高峰的山"), ["最高", "的山"]);
    }

    proptest! {
        #[test]
        fn ranges_are_ascending_and_valid(query in "\\PC{0,12}", text in "\\PC{0,40}") {
            let text = format!("{text} {query} {text}");
            let mut end = 0;
            for range in matches(&HybridQuery::analyse(&query), &text) {
                prop_assert!(range.start >= end && range.start < range.end);
                prop_assert!(text.get(range.clone()).is_some());
                end = range.end;
            }
        }
    }
}
