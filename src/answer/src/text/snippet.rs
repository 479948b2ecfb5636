//! Snippets: the part of a text that best shows why it was found.

use std::ops::Range;

use lodestone_text::{HybridQuery, matches};

const ELLIPSIS: char = '\u{2026}';

/// Maximum number of characters given up at an edge so that it falls between words; longer words
/// are cut.
const RAGGED_CHARS_MAX: usize = 30;

/// Returns at most `chars_max` characters of the text around the densest matches of the query's
/// terms, or its beginning if there are none. White space is collapsed. The snippet begins and ends
/// between words, with an ellipsis, which counts, where text is omitted.
pub fn snippet(query: &HybridQuery, text: &str, chars_max: usize) -> String {
    let text = &folded(text);
    let total = text.chars().count();
    if total <= chars_max {
        return text.to_owned();
    }
    let Some(width) = chars_max.checked_sub(2).filter(|width| *width > 0) else {
        return String::new();
    };
    let places = highlight(query, text);
    let window = best_window(&places, total, width);
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let is_space = |at: usize| text[starts[at]..].starts_with(' ');
    let (mut start, mut end) = (window.start, window.end);
    let slack = RAGGED_CHARS_MAX.min(width / 2);
    // A match is never given up for a clean edge.
    let first = places.iter().find(|place| place.start >= start).map_or(end, |place| place.start);
    let last = places.iter().rfind(|place| place.end <= end).map_or(start, |place| place.end);
    if start > 0 && !is_space(start - 1) {
        let edge = (start..=first.min(start + slack)).find(|at| *at < end && is_space(*at));
        start = edge.map_or(start, |at| at + 1);
    }
    if end < total && !is_space(end) {
        let edge = (last.max(end.saturating_sub(slack)).max(start)..end).rfind(|at| is_space(*at));
        end = edge.unwrap_or(end);
    }
    let mut shown = String::new();
    if start > 0 {
        shown.push(ELLIPSIS);
    }
    shown.push_str(text[starts[start]..starts[end]].trim());
    if end < total {
        shown.push(ELLIPSIS);
    }
    shown
}

/// Ranges of the query's terms in a text, in Unicode characters, ascending.
pub fn highlight(query: &HybridQuery, text: &str) -> Vec<Range<usize>> {
    let (mut bytes_done, mut chars_done) = (0, 0);
    let mut count_to = |at: usize| {
        chars_done += text[bytes_done..at].chars().count();
        bytes_done = at;
        chars_done
    };
    matches(query, text)
        .into_iter()
        .map(|place| count_to(place.start)..count_to(place.end))
        .collect()
}

/// Collapses white space: one space for each run, none at the ends.
pub(crate) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// The window of `width` characters with the most matched characters, the first among equals, with
/// the matches at its centre.
fn best_window(places: &[Range<usize>], total: usize, width: usize) -> Range<usize> {
    let (mut best, mut best_held) = (0..0, 0);
    let (mut from, mut held) = (0, 0);
    for place in places {
        held += place.len();
        while place.end - places[from].start > width && places[from].start < place.start {
            held -= places[from].len();
            from += 1;
        }
        if held > best_held {
            (best, best_held) = (places[from].start..place.end, held);
        }
    }
    let spare = width.saturating_sub(best.len());
    let start = best.start.saturating_sub(spare / 2).min(total - width);
    start..start + width
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_stands_around_the_match() {
        let text = format!("{} The needle is here. {}", "some hay ".repeat(60), "hay ".repeat(60));
        let shown = snippet(&HybridQuery::analyse("needles"), &text, 60);
        assert!(shown.contains("needle"), "{shown}");
        assert!(shown.starts_with("\u{2026}") && shown.ends_with("\u{2026}"), "{shown}");
        assert!(shown.chars().count() <= 60);
        let words: Vec<&str> = shown.trim_matches('\u{2026}').split(' ').collect();
        assert!(words.iter().all(|word| text.split_whitespace().any(|known| known == *word)));
    }

    #[test]
    fn short_texts_stand_whole_and_others_from_their_beginning() {
        let query = HybridQuery::analyse("absent");
        assert_eq!(snippet(&query, " a\n b ", 300), "a b");
        let text = "word ".repeat(100);
        let shown = snippet(&query, &text, 20);
        assert!(shown.starts_with("word word") && shown.ends_with("word…"), "{shown}");
    }

    #[test]
    fn places_count_characters() {
        let query = HybridQuery::analyse("tower");
        assert_eq!(highlight(&query, "Ätherische towers, Tower"), [11..17, 19..24]);
    }

    proptest! {
        #[test]
        fn never_longer_than_asked(
            query in "[a-c塔 ]{0,6}", text in "[a-c塔\n ]{0,120}", chars_max in 0_usize..60,
        ) {
            let shown = snippet(&HybridQuery::analyse(&query), &text, chars_max);
            prop_assert!(shown.chars().count() <= chars_max, "{shown}");
            let inner = shown.trim_matches('\u{2026}');
            prop_assert!(folded(&text).contains(inner));
        }
    }
}
