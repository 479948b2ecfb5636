//! Lines of a text, and the recognition of their forms.

use std::ops::Range;

use crate::text::quotes::mark_len;
use crate::text::{sentences, values, words};

/// Minimum number of characters in a drawn line.
const RULE_CHARS_MIN: usize = 3;
/// Maximum number of words in a remark such as "Version 2.0, valid from 1 January 2025".
const REMARK_WORDS_MAX: usize = 7;
/// Bytes within which the colon of a time must follow a date: "[Wed September 24 23:59".
const STAMP_BYTES_MAX: usize = 24;
/// Maximum number of characters in a term that is explained.
const ENTRY_CHARS_MAX: usize = 40;
/// Marks between a term and its explanation.
const GAPS: [char; 4] = ['-', '\u{2013}', '\u{2014}', '='];
/// Maximum number of characters in a line at the top of a text about its edition, author or date.
const FRONT_CHARS_MAX: usize = 200;
/// Headings of lists of works that a text refers to. "References" may be customers or projects,
/// and footnotes may state facts.
const BIBLIOGRAPHY: &str = "\
    bibliography|literature cited|works cited|literatur|einzelnachweise|bibliographie|\
    bibliografía|bibliografia|литература";

/// A line without surrounding white space.
#[derive(Debug, Clone)]
pub(super) struct Line<'t> {
    pub(super) bytes: Range<usize>,
    /// Bytes of white space before the line.
    pub(super) indent: usize,
    /// Number of quote marks before it, which are not part of it.
    pub(super) depth: usize,
    pub(super) content: &'t str,
}

/// The lines of a text, without the marks before quoted ones. Code has none unless all of it is
/// quoted.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let (mut at, mut is_quoted) = (0, false);
    // Whether the code that a line is in, if any, is quoted.
    let mut code: Option<bool> = None;
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = if code == Some(false) { 0 } else { mark_len(bare.trim_end(), is_quoted) };
        is_quoted = mark > 0;
        let inside = if is_quoted { &bare[mark..] } else { line };
        let content = inside.trim();
        if is_fence(content) {
            code = if code.is_some() { None } else { Some(is_quoted) };
        }
        let indent = inside.len() - inside.trim_start().len();
        let start = at + if content.is_empty() { 0 } else { line.len() - inside.len() + indent };
        let bytes = start..start + content.len();
        let depth = bare[..mark].matches('>').count();
        lines.push(Line { bytes, indent, depth, content });
        at += line.len();
    }
    lines
}

/// Whether a line is drawn, as below headings or between parts.
pub(super) fn is_rule(content: &str) -> bool {
    let drawn = |c: char| matches!(c, '-' | '=' | '_' | '*' | '~' | '+' | ' ');
    content.len() >= RULE_CHARS_MIN && content.chars().all(drawn)
}

/// Whether parts of a line are separated by white space, as in a table without rules.
pub(super) fn has_columns(content: &str) -> bool {
    content.contains("   ")
}

/// Whether a line begins or ends a block of code.
pub(super) fn is_fence(content: &str) -> bool {
    content.starts_with("```") || content.starts_with("~~~")
}

/// Level and text of a line marked as a heading.
pub(super) fn heading(content: &str) -> Option<(usize, &str)> {
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    let text = content.get(level..)?.strip_prefix(' ')?;
    let text = text.trim();
    (1..=6).contains(&level).then(|| (level, sentences::bold(text).unwrap_or(text)))
}

/// Whether a line begins with a date and time, as in logs and chats, with day, month and year in
/// any order.
pub(super) fn is_stamped(content: &str) -> bool {
    let content = content.strip_prefix('[').unwrap_or(content);
    let Some(colon) = content.bytes().take(STAMP_BYTES_MAX).position(|byte| byte == b':') else {
        return false;
    };
    let day = content[..colon].trim_end_matches(|c: char| c.is_ascii_digit());
    let is_time = (1..=2).contains(&(colon - day.len()))
        && content[colon + 1..].starts_with(|c: char| c.is_ascii_digit());
    let mut words = day
        .strip_suffix('T')
        .unwrap_or(day)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .peekable();
    let is_of_day = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_digit()) || values::is_calendar_word(word)
    };
    is_time
        && words.peek().is_some()
        && words.all(is_of_day)
        && day.contains(|c: char| c.is_ascii_digit())
}

/// A term with its explanation on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'t> {
    pub(super) term: &'t str,
    /// Byte offset of the explanation in the line.
    pub(super) value: usize,
    /// Whether the form is unambiguous: `term .... explanation`, `**term** - explanation`.
    pub(super) is_marked: bool,
}

/// Recognises a term with its explanation: `turnover .... the whole volume`,
/// `**turnover** - the whole volume`, `turnover = the whole volume`.
pub(super) fn entry(content: &str) -> Option<Entry<'_>> {
    let of_bold = || {
        let (term, rest) = content.strip_prefix("**")?.split_once("**")?;
        let value = rest.trim_start().strip_prefix(GAPS)?;
        Some((term.trim_end_matches(':'), value.strip_prefix(' ')?, true))
    };
    let of_dots = || {
        let (term, rest) = content.split_once(" .")?;
        Some((term, rest.trim_start_matches('.').strip_prefix(' ')?, content.contains(" ..")))
    };
    let of_gap = || {
        let at = content.find(|c: char| GAPS.contains(&c)).filter(|at| *at > 0)?;
        let (term, rest) = (content[..at].strip_suffix(' ')?, &content[at..]);
        Some((term, rest.strip_prefix(GAPS)?.strip_prefix(' ')?, false))
    };
    let (term, value, is_marked) = of_bold().or_else(of_dots).or_else(of_gap)?;
    let is_term = term.chars().count() <= ENTRY_CHARS_MAX
        && term.contains(char::is_alphabetic)
        && !term.contains(['.', ',', ';', '?', '!']);
    let value = value.trim_start();
    let at = content.len() - value.len();
    (is_term && !value.is_empty()).then_some(Entry { term: term.trim(), value: at, is_marked })
}

/// Whether a chat message is a question, by its last character or its first word.
pub(super) fn is_asked(line: &str) -> bool {
    let message = line.split_once(": ").map_or(line, |(_, message)| message);
    let first = message.split_whitespace().next().unwrap_or_default();
    line.ends_with(['?', '\u{FF1F}']) || words::is_interrogative(first)
}

/// Whether a text below a title describes the edition: fields, or a short remark with a date.
pub(super) fn is_edition(content: &str) -> bool {
    let first = content.split(". ").next().unwrap_or_default();
    let is_remark = first.split_whitespace().count() <= REMARK_WORDS_MAX;
    content.chars().count() <= FRONT_CHARS_MAX
        && (content.matches(": ").count() > 1 || (is_remark && !values::days(content).is_empty()))
}

/// Whether a text consists of links to sections of its own page, as in a table of contents.
pub(super) fn is_contents(text: &str) -> bool {
    let (mut rest, mut links) = (text, 0);
    let is_word = |text: &str| text.contains(char::is_alphanumeric);
    while let Some((before, link)) = rest.split_once('[') {
        let target = link.split_once("](#").and_then(|(_, target)| target.split_once(')'));
        let Some((_, behind)) = target.filter(|_| !is_word(before)) else { return false };
        (rest, links) = (behind, links + 1);
    }
    links > 0 && !is_word(rest)
}

/// Whether an item only names a work that the text refers to: "3. ^ Ada Moss (2001). Ducks."
pub(super) fn is_reference(item: &str, heading: &str) -> bool {
    let work = item.trim_start_matches(|c: char| c.is_ascii_digit() || "[]). ".contains(c));
    let is_listed = words::is_entry(BIBLIOGRAPHY, heading.trim().trim_end_matches(':'));
    let mut words = work.split(|c: char| !c.is_alphanumeric());
    work.starts_with('^')
        || (is_listed && words.any(|word| word.starts_with("http") || values::year(word).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_contents_are_seen() {
        assert!(is_contents("[Install](#install): [package](#package) \u{B7} [archive](#archive)"));
        for text in
            ["See [Install](#install)", "[Install](#install) first", "[Site](a.example)", "1"]
        {
            assert!(!is_contents(text), "{text}");
        }
    }

    #[test]
    fn days_and_times_before_a_line_are_seen() {
        for line in [
            "2025-03-20 15:21 ann: hello",
            "[2025-03-20T15:21:09] started",
            "05/05/2025, 06:52 - Bridget KB: turnstile 2",
            "[Sun May 04 23:59:58 2025] gateway ok",
            "4 Mai 2025 9:05 Ada: bonjour",
        ] {
            assert!(is_stamped(line), "{line}");
        }
        for line in [
            "2025-03-20 is the day", "Open from 9:00 to 17:00.", "9:00 registration",
            "Ratio 3: see below", "On 4 May 9:00 we begin.",
        ] {
            assert!(!is_stamped(line), "{line}");
        }
    }

    #[test]
    fn dots_lead_from_a_term_to_its_explanation() {
        let told =
            |line| entry(line).map(|one: Entry<'_>| (one.term, &line[one.value..], one.is_marked));
        assert_eq!(
            told("turnover .... the whole volume"),
            Some(("turnover", "the whole volume", true))
        );
        assert_eq!(
            told("bather load . people at once"),
            Some(("bather load", "people at once", false))
        );
        assert_eq!(told("**POD** - proof of it"), Some(("POD", "proof of it", true)));
        assert_eq!(
            told("chute \u{2013} slide to the cage"),
            Some(("chute", "slide to the cage", false))
        );
        assert_eq!(told("one, two - three"), None);
        assert_eq!(told("well-known words"), None);
        assert_eq!(entry("Contents ........ "), None);
        assert_eq!(entry("A file .gitignore is here"), None);
    }
}
