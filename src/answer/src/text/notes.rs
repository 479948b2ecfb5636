//! Footnote and reference marks: `[12]`, `[note 3]`, `[a]`, raised digits.
//!
//! Copied into an answer, they would clutter it or be taken for its citations. A mark belongs to
//! the word or punctuation it is attached to, so it neither ends a sentence nor begins one. A
//! bracket may also be an index (`items[0]`) or a word of its sentence (`as shown in [3]`): after a
//! word it counts as a mark only in a text that has marks after punctuation.

use lodestone_text::chunk::marks::{is_closer, is_wide_end};

/// Maximum number of bytes in a mark; anything longer is text in brackets.
const MARK_BYTES_MAX: usize = 24;

/// Length in bytes of the mark at the start of a text; 0 if there is none.
pub(crate) fn mark_len(text: &str) -> usize {
    let Some(c) = text.chars().next() else { return 0 };
    if is_raised(c) {
        return text.find(|c| !is_raised(c)).unwrap_or(text.len());
    }
    let Some(inside) = text.strip_prefix('[') else { return 0 };
    let end = inside.bytes().take(MARK_BYTES_MAX + 1).position(|byte| byte == b']');
    let Some(end) = end else { return 0 };
    if is_mark(&inside[..end]) { end + 2 } else { 0 }
}

/// Whether a text has marks after its punctuation, so that those after words are marks too.
pub(crate) fn are_in(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| {
        let is_behind_stop = text[..at].ends_with(is_stop);
        is_behind_stop && mark_len(&text[at..]) > 0
    })
}

/// Removes the marks attached to punctuation and, with `has_marks`, those attached to words.
pub(crate) fn without(text: &str, has_marks: bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = mark_len(rest);
        let is_attached = match kept.chars().next_back() {
            Some(before) if is_stop(before) || is_closer(before) => true,
            // A raised digit after a letter is an exponent.
            Some(before) => has_marks && c == '[' && before.is_alphanumeric(),
            None => false,
        };
        if length > 0 && is_attached {
            rest = &rest[length..];
        } else {
            kept.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    kept
}

fn is_mark(inside: &str) -> bool {
    let is_separator = |c: char| matches!(c, ' ' | ',' | ';' | '-' | '\u{2013}');
    let is_numbers = inside.contains(|c: char| c.is_ascii_digit())
        && inside.chars().all(|c| c.is_ascii_digit() || is_separator(c));
    let is_letter = inside.len() == 1 && inside.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_named = |name: &str| {
        let number = inside.strip_prefix(name).map(str::trim);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    is_numbers || is_letter || inside == "citation needed" || is_named("note ") || is_named("nb ")
}

fn is_stop(c: char) -> bool {
    is_wide_end(c) || matches!(c, '.' | ',' | ';' | ':' | '!' | '?')
}

fn is_raised(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '\u{2070}' | '\u{2074}'..='\u{2079}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_behind_stops_go() {
        for (text, bare) in [
            ("It opened in 1889.[12]", "It opened in 1889."),
            ("It opened,[3][4] and closed.[note 2]", "It opened, and closed."),
            ("\"It moves.\"[7] He left.¹²", "\"It moves.\" He left."),
            ("It moves.[citation needed]", "It moves."),
        ] {
            assert_eq!(without(text, are_in(text)), bare);
        }
    }

    #[test]
    fn marks_behind_words_go_where_there_are_others() {
        assert!(are_in("The tower[4] is of iron.[5]"));
        assert_eq!(without("The tower[4] is of iron.[5]", true), "The tower is of iron.");
        for text in ["Take items[0] first.", "As shown in [3], it is 40 m².", "[sic] [see below]"]
        {
            assert!(!are_in(text));
            assert_eq!(without(text, false), text);
        }
        assert_eq!(without("It is 40 m², see [3].", true), "It is 40 m², see [3].");
    }
}
