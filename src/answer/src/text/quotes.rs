//! Quote marks before the lines of a quoted text: `> ` in mails and Markdown.

use std::borrow::Cow;
use std::ops::Range;

use crate::text::sentences::item_mark;

/// The character that marks a quoted line.
const MARK: char = '>';

/// Length in bytes of the quote marks that a line begins with, together with the space after them.
/// "> 65 years" may be a bound instead, so a mark before a figure counts only below a quoted line.
pub(crate) fn mark_len(line: &str, is_below_quoted: bool) -> usize {
    let mut rest = line;
    while let Some(behind) = rest.strip_prefix(MARK) {
        rest = behind.strip_prefix(' ').filter(|next| next.starts_with(MARK)).unwrap_or(behind);
    }
    let quoted = rest.trim_start();
    let first = quoted.split_whitespace().next().unwrap_or_default();
    let is_bound = rest.starts_with('=')
        || (first.contains(|c: char| c.is_ascii_digit()) && item_mark(quoted).is_none());
    if rest.len() == line.len() || (is_bound && !is_below_quoted) {
        return 0;
    }
    line.len() - rest.strip_prefix(' ').unwrap_or(rest).len()
}

/// Length of the quote marks at a byte of a text; 0 unless it begins its line.
pub(crate) fn mark_at(text: &str, at: usize) -> usize {
    if !text[at..].starts_with(MARK) {
        return 0;
    }
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    if !text[line..at].trim().is_empty() {
        return 0;
    }
    let before = text[..line].lines().next_back().unwrap_or_default();
    let whole = text[at..].lines().next().unwrap_or_default();
    mark_len(whole, before.trim_start().starts_with(MARK))
}

/// A passage of a text without the quote marks before its lines after the first.
pub(crate) fn unquoted(text: &str, bytes: Range<usize>) -> Cow<'_, str> {
    let passage = &text[bytes.clone()];
    if !passage.contains(MARK) || !passage.contains('\n') {
        return Cow::Borrowed(passage);
    }
    let line = text[..bytes.start].rfind('\n').map_or(0, |end| end + 1);
    let mut is_quoted = text[line..bytes.start].trim_start().starts_with(MARK);
    let mut bare = String::with_capacity(passage.len());
    for (position, line) in passage.split_inclusive('\n').enumerate() {
        let line = if position == 0 { line } else { line.trim_start() };
        let mark = if position == 0 { 0 } else { mark_len(line.trim_end(), is_quoted) };
        is_quoted = mark > 0 || (position == 0 && is_quoted);
        bare.push_str(&line[mark..]);
    }
    Cow::Owned(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_bounds() {
        let bare = |line: &'static str| &line[mark_len(line, false)..];
        for (line, expected) in [
            ("> The gate is shut.", "The gate is shut."),
            (">> > Who has the key?", "Who has the key?"),
            (">no space", "no space"),
            (">", ""),
            ("> 2. Close the gate.", "2. Close the gate."),
            ("> 65 years: free", "> 65 years: free"),
            (">= 5 bar", ">= 5 bar"),
            ("> €20: no fee", "> €20: no fee"),
            ("no mark > here", "no mark > here"),
        ] {
            assert_eq!(bare(line), expected);
        }
        assert_eq!(mark_len("> 65 years", true), 2);
    }

    #[test]
    fn inner_lines_of_a_passage_lose_their_marks() {
        let text = "> Bring the\n> 5 long ropes\n> and a saw.\nHeld at\n> 5 bar.";
        let first = unquoted(text, 2..text.find("\nHeld").unwrap());
        assert_eq!(first, "Bring the\n5 long ropes\nand a saw.");
        let bound = unquoted(text, text.find("Held").unwrap()..text.len());
        assert_eq!(bound, "Held at\n> 5 bar.");
        assert_eq!(mark_at(text, text.find("> 5 long").unwrap()), 2);
        assert_eq!(mark_at(text, text.find("> 5 bar").unwrap()), 0);
    }
}
