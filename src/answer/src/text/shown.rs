//! Passages as answers show them.

use crate::text::notes;
use crate::text::snippet::folded;

/// The text of an answer if nothing in the chunks answers.
pub const ABSTENTION: &str = "Nothing in the indexed content answers this question.";

/// A passage as an answer shows it: white space collapsed, without emphasis marks, and without
/// footnote marks ([`notes::without`] explains `has_marks`).
pub(crate) fn shown(passage: &str, has_marks: bool) -> String {
    unmarked(&notes::without(&without_emphasis(&folded(passage)), has_marks))
}

/// Removes the double asterisks around bold words, which may begin before the text or end after it.
/// Asterisks within or between words are operators and stay.
fn without_emphasis(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("**") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        shown.push_str(before);
        let last = shown.chars().next_back();
        let is_inside = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let next = after.chars().next();
        let opens = is_inside(next) && !is_word(last);
        let closes = is_inside(last) && !is_word(next);
        if !opens && !closes {
            shown.push_str("**");
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Turns brackets that hold only numbers into parentheses, since they would be taken for the
/// citations of an answer.
pub(crate) fn unmarked(passage: &str) -> String {
    let mut shown = String::with_capacity(passage.len());
    let mut is_open = false;
    for (at, c) in passage.char_indices() {
        match c {
            '[' if holds_numbers(&passage[at + 1..]) => {
                is_open = true;
                shown.push('(');
            }
            ']' if is_open => {
                is_open = false;
                shown.push(')');
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// Whether only numbers and separators precede the next closing bracket.
fn holds_numbers(text: &str) -> bool {
    let Some((inside, _)) = text.split_once(']') else { return false };
    let is_part =
        |c: char| c.is_numeric() || matches!(c, ' ' | ',' | ';' | '-' | '\u{2013}' | '^' | '#');
    inside.contains(char::is_numeric) && inside.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_citation_marks_are_neutral() {
        assert_eq!(
            shown("As shown [3],\n\n see [4, 5] and [6–8].", false),
            "As shown (3), see (4, 5) and (6–8)."
        );
        assert_eq!(shown("a[i] [note 3] [[7]] [] [x]", false), "a[i] [note 3] [(7)] [] [x]");
        assert_eq!(shown("[3[4]", false), "[3(4)");
    }

    #[test]
    fn marks_of_emphasis_are_left_out() {
        for (passage, expected) in [
            (
                "They have **four working days** to say yes.",
                "They have four working days to say yes.",
            ),
            ("**Quiet.** 22:00 to 6:00", "Quiet. 22:00 to 6:00"),
            ("**Begun here and not ended.", "Begun here and not ended."),
            ("x**2 + 3 ** y", "x**2 + 3 ** y"),
        ] {
            assert_eq!(shown(passage, false), expected);
        }
    }
}
