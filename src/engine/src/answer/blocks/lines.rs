//! Lines of a text and what their form says.

use std::ops::Range;

use crate::answer::{values, words};

/// Characters of a line that is drawn.
const RULE_CHARS_MIN: usize = 3;
/// Words of a remark such as "Version 2.0, valid from 1 January 2025".
const REMARK_WORDS_MAX: usize = 7;
/// Lines at the top of a text that may tell about it: edition, author, date.
const FRONT_CHARS_MAX: usize = 200;

/// A line without the white space at its ends.
#[derive(Debug, Clone)]
pub(super) struct Line<'t> {
    pub(super) bytes: Range<usize>,
    /// Bytes of white space before it.
    pub(super) indent: usize,
    pub(super) content: &'t str,
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut at = 0;
    let of_line = |line: &'_ str| {
        let (start, indent) = (at, line.len() - line.trim_start().len());
        at += line.len();
        (start, indent)
    };
    let starts: Vec<(usize, usize)> = text.split_inclusive('\n').map(of_line).collect();
    text.split_inclusive('\n')
        .zip(starts)
        .map(|(line, (start, indent))| {
            let content = line.trim();
            let start = start + if content.is_empty() { 0 } else { indent };
            Line { bytes: start..start + content.len(), indent, content }
        })
        .collect()
}

/// Whether a line is drawn across the page, below a heading or between parts.
pub(super) fn is_rule(content: &str) -> bool {
    let drawn = |c: char| matches!(c, '-' | '=' | '_' | '*' | '~' | '+' | ' ');
    content.len() >= RULE_CHARS_MIN && content.chars().all(drawn)
}

/// Whether parts of a line are set apart by white space, as in a table without lines.
pub(super) fn has_columns(content: &str) -> bool {
    content.contains("   ")
}

/// Whether a line begins or ends a block of code.
pub(super) fn is_fence(content: &str) -> bool {
    content.starts_with("```") || content.starts_with("~~~")
}

/// Level and text of a line that is marked as a heading.
pub(super) fn heading(content: &str) -> Option<(usize, &str)> {
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    let text = content.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, text.trim()))
}

/// Whether the line begins with a day, as those of logs and chats do.
pub(super) fn is_stamped(content: &str) -> bool {
    let content = content.strip_prefix('[').unwrap_or(content).as_bytes();
    let has = |at: usize, is_one: fn(&u8) -> bool| content.get(at).is_some_and(is_one);
    (0..4).chain(5..7).chain(8..10).all(|at| has(at, u8::is_ascii_digit))
        && [4, 7].iter().all(|at| has(*at, |byte| matches!(byte, b'-' | b'/')))
        && has(10, |byte| matches!(byte, b'T' | b' '))
        && has(11, u8::is_ascii_digit)
}

/// Whether a message of a chat asks: it ends or begins as a question does.
pub(super) fn is_asked(line: &str) -> bool {
    let message = line.split_once(": ").map_or(line, |(_, message)| message);
    let first = message.split_whitespace().next().unwrap_or_default();
    line.ends_with(['?', '\u{FF1F}']) || words::is_interrogative(first)
}

/// Whether a text below a title tells of its edition: fields, or a short remark with a date.
pub(super) fn is_edition(content: &str) -> bool {
    let first = content.split(". ").next().unwrap_or_default();
    let is_remark = first.split_whitespace().count() <= REMARK_WORDS_MAX;
    content.chars().count() <= FRONT_CHARS_MAX
        && (content.matches(": ").count() > 1 || (is_remark && !values::days(content).is_empty()))
}

/// Whether a line is made of parts between marks, as links of a page and notes on an edition are.
pub(super) fn is_apparatus(content: &str) -> bool {
    let separators = [" \u{B7} ", " | ", " > ", " \u{BB} "];
    separators.iter().map(|mark| content.matches(mark).count()).sum::<usize>() >= 2
}
