//! Parses a reply that was requested as a list with one item per line.

use std::collections::BTreeSet;

/// Returns the distinct lines of a reply, stripped of list markers and quotes. Skips lines without
/// a word and lines longer than `chars_max` characters.
pub(super) fn lines(reply: &str, chars_max: usize) -> Vec<String> {
    let is_list_mark = |c: char| {
        c.is_whitespace() || matches!(c, '-' | '*' | '"' | '\u{2022}' | '\u{201C}' | '\u{201D}')
    };
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for line in reply.lines() {
        let digits = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = digits.len() < line.trim_start().len() && digits.starts_with(['.', ')']);
        let line = if is_numbered { &digits[1..] } else { line };
        let line = line.trim_matches(is_list_mark).to_owned();
        let has_words = line.contains(char::is_alphanumeric);
        if has_words && line.chars().count() <= chars_max && seen.insert(line.clone()) {
            found.push(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_or_without_list_marks() {
        let reply =
            "Who built A and B?\n\n1. Who built A?\n- \"Who built B?\"\n* Who built A?\n---";
        assert_eq!(lines(reply, 20), ["Who built A and B?", "Who built A?", "Who built B?"]);
        assert_eq!(lines("3 pumps lift what?", 20), ["3 pumps lift what?"]);
        assert!(lines(&"x".repeat(21), 20).is_empty());
    }
}
