//! Where a query's terms stand in a text: for snippets and extracted answers.

use std::collections::HashSet;
use std::ops::Range;

use crate::HybridQuery;
use crate::analysis::{Analyser, Kind};
use crate::normal::{nfkc, original_ranges};

/// Byte ranges of the text whose analysed form is a term of the query, ascending, overlapping
/// ones joined. Every range begins and ends on a character boundary.
pub fn matches(query: &HybridQuery, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for_each_match(query, text, |_, range| found.push(range));
    // Parts of an identifier come before it, and overlap it.
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

/// The share of the query's distinct terms that occur in the text, from 0 to 1; 0 for an empty
/// query.
pub fn overlap(query: &HybridQuery, text: &str) -> f32 {
    let mut seen = HashSet::new();
    for_each_match(query, text, |term, _| {
        seen.insert(term);
    });
    seen.len() as f32 / query.terms().len().max(1) as f32
}

fn for_each_match<'q>(
    query: &'q HybridQuery,
    text: &str,
    mut each: impl FnMut(&'q str, Range<usize>),
) {
    let terms: HashSet<&'q str> = query.terms().iter().map(String::as_str).collect();
    let text = nfkc(text);
    let mut analyser = Analyser::new();
    analyser.hybrid(&text, |term| {
        if let Some(&found) = terms.get(term.text) {
            each(found, term.range);
        }
    });
    // A lone character of the query matches inside runs too.
    let is_lone = |term: &&str| term.chars().count() == 1;
    if terms.iter().any(is_lone) {
        analyser.whole(&text, |term| {
            if term.kind != Kind::Word
                && let Some(&found) = terms.get(term.text)
            {
                each(found, term.range);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        assert_eq!(found("机器学", "x机器学习"), ["机器", "器学"].map(|_| "机器学")[..1]);
        assert_eq!(found("器", "机器学"), ["器"]);
        assert!(found("", "text").is_empty() && found("text", "").is_empty());
    }

    #[test]
    fn overlap_counts_distinct_terms() {
        let query = HybridQuery::analyse("lift drag lift wing");
        assert_eq!(overlap(&query, "Lifting lifts"), 1.0 / 3.0);
        assert_eq!(overlap(&query, "wings, drag and lift"), 1.0);
        assert_eq!(overlap(&HybridQuery::analyse(""), "wings"), 0.0);
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
