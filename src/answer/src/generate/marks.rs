//! A filter that normalises the citation marks of a text while a model streams it.
//!
//! Models write `[1]`, `[1, 2]`, `[1-3]`, `[Source 1]` and other kinds of brackets, and sometimes
//! cite a number that no source has. The output has `[n]` only for sources that were shown, and no
//! other brackets around a number, so a client may take every `[n]` for a citation.
//!
//! ```text
//! delta -> hold back white space and anything that may become a mark -> final text
//! mark  -> its distinct numbers: [1][2]; if none was shown, the mark and the space before it go
//! code  -> between back-ticks, `a[0]` is code and becomes `a[ 0 ]`, which means the same
//! ```
//! Emitted text never changes, so the concatenated pieces are the text.

use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of characters in a mark; a longer one is ordinary text.
const MARK_CHARS_MAX: usize = 40;
/// Maximum distance between the ends of a range such as `[1-3]`; a longer one is cut off.
const RANGE_MAX: usize = 20;
/// Words allowed in a mark beside its numbers.
const MARK_WORDS: &[&str] = &["source", "sources", "and", "quelle", "quellen", "und"];

/// A citation mark: the number of a source, at a position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Byte offset in the plain text.
    pub(super) at: usize,
    /// Number of the source, starting at 1.
    pub(super) number: usize,
}

/// A text, separated from its marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MarkedText {
    /// The text without marks.
    pub(super) plain: String,
    /// The marks, in text order.
    pub(super) marks: Vec<Mark>,
}

/// Normalises the marks of a text that arrives in pieces.
#[derive(Debug)]
pub(super) struct MarkFilter {
    shown: BTreeSet<usize>,
    marked: MarkedText,
    /// All text emitted so far.
    text: String,
    /// White space held back until the next character is known.
    spaces: String,
    /// Text that may become a mark, starting with its bracket.
    held: String,
    code: Code,
}

/// Whether the text ends inside an open bracket, so that removing a mark there could join its two
/// sides into a new mark.
fn may_become_mark(text: &str) -> bool {
    let last = text.chars().rev().take(MARK_CHARS_MAX).find(|c| !is_mark_part(*c));
    last == Some('[')
}

/// Removes all marks from a text.
pub(super) fn without_marks(text: &str) -> String {
    let mut filter = MarkFilter::new(BTreeSet::new());
    filter.push(text);
    filter.finish().1
}

/// Tracks whether the text is inside code.
#[derive(Debug, Default)]
struct Code {
    /// Number of back-ticks that opened the code; 0 outside of code.
    opened_by: usize,
    /// Length of the run of back-ticks just read.
    ticks: usize,
}

impl MarkFilter {
    /// Creates a filter that keeps the marks of the sources with these numbers.
    pub(super) fn new(shown: BTreeSet<usize>) -> Self {
        Self {
            shown,
            marked: MarkedText::default(),
            text: String::new(),
            spaces: String::new(),
            held: String::new(),
            code: Code::default(),
        }
    }

    /// Consumes the next piece; returns the text that has become final.
    pub(super) fn push(&mut self, delta: &str) -> String {
        let from = self.text.len();
        for c in delta.chars() {
            self.take(c);
        }
        self.text[from..].to_owned()
    }

    /// Ends the text: returns the last piece, the whole text, and the text separated from its
    /// marks.
    pub(super) fn finish(mut self) -> (String, String, MarkedText) {
        let from = self.text.len();
        self.give_up_mark();
        (self.text[from..].to_owned(), self.text, self.marked)
    }

    fn take(&mut self, c: char) {
        if !self.held.is_empty() {
            if is_closing(c) {
                return self.end_mark(c);
            }
            if is_mark_part(c) && self.held.chars().count() < MARK_CHARS_MAX {
                return self.held.push(c);
            }
            self.give_up_mark();
        }
        self.code.take(c);
        if is_opening(c) {
            self.held.push(c);
        } else if c.is_whitespace() {
            // Leading white space is dropped.
            if !self.text.is_empty() {
                self.spaces.push(c);
            }
        } else {
            self.write(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn write(&mut self, text: &str) {
        let spaces = std::mem::take(&mut self.spaces);
        for piece in [spaces.as_str(), text] {
            self.text.push_str(piece);
            self.marked.plain.push_str(piece);
        }
    }

    /// Emits the held text as plain text.
    fn give_up_mark(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.write(&held);
        }
    }

    fn end_mark(&mut self, closing: char) {
        let held = std::mem::take(&mut self.held);
        let opening = held.chars().next().map_or(0, char::len_utf8);
        let inside = &held[opening..];
        let Some(numbers) = numbers(inside) else {
            return self.write(&format!("{held}{closing}"));
        };
        if self.code.is_inside() {
            return self.write(&format!("[ {} ]", inside.trim()));
        }
        let numbers: Vec<usize> =
            numbers.into_iter().filter(|number| self.shown.contains(number)).collect();
        if numbers.is_empty() {
            return self.drop_mark(inside);
        }
        let spaces = std::mem::take(&mut self.spaces);
        self.text.push_str(&spaces);
        self.marked.plain.push_str(&spaces);
        for number in numbers {
            self.text.push_str(&format!("[{number}]"));
            self.marked.marks.push(Mark { at: self.marked.plain.len(), number });
        }
    }

    /// Drops a mark without a shown source, together with the space before it.
    fn drop_mark(&mut self, inside: &str) {
        if may_become_mark(&self.text) {
            return self.write(&format!("({})", inside.trim()));
        }
        if !self.spaces.contains('\n') {
            self.spaces.clear();
        }
    }
}

impl Code {
    fn take(&mut self, c: char) {
        if c == '`' {
            self.ticks += 1;
            return;
        }
        let ticks = std::mem::take(&mut self.ticks);
        if ticks > 0 && self.opened_by == 0 {
            self.opened_by = ticks;
        } else if ticks > 0 && ticks == self.opened_by {
            self.opened_by = 0;
        }
        // A line break closes code opened by a stray back-tick; fenced blocks have three.
        if c == '\n' && self.opened_by < 3 {
            self.opened_by = 0;
        }
    }

    fn is_inside(&self) -> bool {
        self.opened_by > 0
    }
}

fn is_opening(c: char) -> bool {
    matches!(c, '[' | '【' | '\u{FF3B}')
}

fn is_closing(c: char) -> bool {
    matches!(c, ']' | '】' | '\u{FF3D}')
}

fn is_separator(c: char) -> bool {
    matches!(c, ' ' | ',' | ';' | '&' | '^' | '#' | ':' | '\u{2020}' | '、' | '\u{FF0C}')
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2013}')
}

fn is_mark_part(c: char) -> bool {
    c.is_numeric() || c.is_alphabetic() || is_separator(c) || is_dash(c)
}

/// The distinct numbers between brackets, in order; `None` if the brackets are not a mark.
fn numbers(inside: &str) -> Option<Vec<usize>> {
    if !inside.contains(char::is_numeric) {
        return None;
    }
    let mut found = Vec::new();
    for word in inside.split(is_separator).filter(|word| !word.is_empty()) {
        if MARK_WORDS.contains(&word.to_lowercase().as_str()) {
            continue;
        }
        let mut ends = word.split(is_dash).map(number);
        let (first, last) = (ends.next()??, ends.next());
        if ends.next().is_some() {
            return None;
        }
        let last = last.unwrap_or(Some(first))?;
        let range = first..=last.min(first.saturating_add(RANGE_MAX));
        for number in range {
            if !found.contains(&number) {
                found.push(number);
            }
        }
    }
    Some(found)
}

/// Parses a number in ASCII or full-width digits. A number that is too large or in other digits
/// becomes 0, which no source has.
fn number(word: &str) -> Option<usize> {
    let digit = |c: char| match c {
        '0'..='9' => Some(c as usize - '0' as usize),
        '\u{FF10}'..='\u{FF19}' => Some(c as usize - 0xFF10),
        _ => None,
    };
    if word.is_empty() || !word.chars().all(char::is_numeric) {
        return None;
    }
    let digits: Option<Vec<usize>> = word.chars().map(digit).collect();
    let Some(digits) = digits.filter(|digits| digits.len() <= 6) else { return Some(0) };
    Some(digits.into_iter().fold(0, |sum, digit| sum * 10 + digit))
}

impl MarkedText {
    /// Renders the text with its marks, except those at the positions `dropped`. Where all marks
    /// go, the space before them goes too.
    pub(super) fn render(&self, dropped: &BTreeSet<usize>) -> Rendered {
        let kept =
            self.marks.iter().enumerate().filter(|(position, _)| !dropped.contains(position));
        let kept: BTreeSet<usize> = kept.map(|(_, mark)| mark.at).collect();
        let mut text = String::with_capacity(self.plain.len() + 4 * self.marks.len());
        let mut pieces = Vec::with_capacity(self.marks.len() + 1);
        let mut at = 0;
        for (position, mark) in self.marks.iter().enumerate() {
            pieces.push((at, text.len()));
            text.push_str(&self.plain[at..mark.at]);
            at = mark.at;
            if !dropped.contains(&position) {
                text.push_str(&mark.to_string());
            } else if may_become_mark(&text) {
                text.push_str(&format!("({})", mark.number));
            } else if !kept.contains(&at) && text.ends_with(' ') {
                text.pop();
            }
        }
        pieces.push((at, text.len()));
        text.push_str(&self.plain[at..]);
        Rendered { text, pieces }
    }
}

/// A text with its marks, and the mapping from the plain text to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    /// The text with marks.
    pub(super) text: String,
    /// Byte offsets at which each piece starts in the plain text and in `text`, ascending.
    pieces: Vec<(usize, usize)>,
}

impl Rendered {
    /// Converts a range of bytes in the plain text to a range of Unicode characters in `text`.
    pub(super) fn chars_of(&self, plain: &Range<usize>) -> Range<usize> {
        let byte = |at: usize, piece: usize| {
            let (there, here) = self.pieces[piece.saturating_sub(1)];
            here + (at - there)
        };
        let start = byte(plain.start, self.pieces.partition_point(|piece| piece.0 <= plain.start));
        // A mark right after the passage is not part of it.
        let end = byte(plain.end, self.pieces.partition_point(|piece| piece.0 < plain.end));
        let start = self.text[..start].chars().count();
        start..self.text[..end].chars().count()
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}]", self.number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(pieces: &[&str]) -> (Vec<String>, String, MarkedText) {
        let mut filter = MarkFilter::new((1..=3).collect());
        let mut out: Vec<String> = pieces.iter().map(|piece| filter.push(piece)).collect();
        let (last, text, marked) = filter.finish();
        out.push(last);
        (out, text, marked)
    }

    fn put_right(text: &str) -> String {
        filter(&[text]).1
    }

    #[test]
    fn marks_of_all_kinds_become_ours() {
        for (written, right) in [
            ("It is blue [1].", "It is blue [1]."),
            ("It is blue. [1, 2] So", "It is blue. [1][2] So"),
            ("a [1][2][3] b", "a [1][2][3] b"),
            ("a [1-3], b [2–3]", "a [1][2][3], b [2][3]"),
            ("a 【1\u{2020}source】 b \u{FF3B}\u{FF12}\u{FF3D}", "a [1] b [2]"),
            ("a [Source 1] b [Sources 1 and 3] c [^2]", "a [1] b [1][3] c [2]"),
            ("a [1; 1; 9] b", "a [1] b"),
            ("a [9]. b [0] c [99999999999999999999]", "a. b c"),
            ("a [\u{663}] b [2024] c", "a b c"),
            ("see [the list] and [x2] [] [1.5]", "see [the list] and [x2] [] [1.5]"),
            ("[[1]] [[9]1] [9[9]]", "[[1]] [(9)1] [9(9)]"),
            ("\n\n x [1]\n", "x [1]"),
            ("one\n[9] two", "one\n two"),
            ("open [1", "open [1"),
            ("use `a[0] + a[1]` here [1]", "use `a[ 0 ] + a[ 1 ]` here [1]"),
            ("```\nx[7]\ny\n```\nso [2]", "```\nx[ 7 ]\ny\n```\nso [2]"),
            ("a ` stray\nb [1]", "a ` stray\nb [1]"),
        ] {
            assert_eq!(put_right(written), right, "{written}");
        }
    }

    #[test]
    fn marks_can_be_taken_away() {
        let (_, text, marked) = filter(&["A. [1][2] B [3]. C [2]"]);
        let all = marked.render(&BTreeSet::new());
        assert_eq!(all.text, text);
        let c = marked.plain.find('C').unwrap();
        assert_eq!(all.chars_of(&(0..2)), 0..2);
        assert_eq!(all.chars_of(&(c..c + 1)), text.find('C').unwrap()..text.find('C').unwrap() + 1);
        let fewer = marked.render(&[1, 2].into());
        assert_eq!(fewer.text, "A. [1] B. C [2]");
        let b = marked.plain.find('B').unwrap();
        assert_eq!(fewer.chars_of(&(b..b + 1)), 7..8);
        assert_eq!(marked.render(&[0, 1, 2, 3].into()).text, "A. B. C");
        let (_, _, nested) = filter(&["[[1]0]"]);
        assert_eq!(nested.render(&[0].into()).text, "[(1)0]");
    }

    /// The `n` of every `[n]`, as a reader's program would find them.
    fn read_marks(text: &str) -> Vec<usize> {
        let bracketed = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
        let inside = bracketed.map(|(inside, _)| inside);
        let is_number =
            |inside: &&str| !inside.is_empty() && inside.chars().all(|c| c.is_ascii_digit());
        inside.filter(is_number).map(|digits| digits.parse().unwrap_or(usize::MAX)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn joined_pieces_are_the_text_and_every_mark_has_its_source(
            pieces in proptest::collection::vec(
                "([\\[\\]0-9 ,;`\n\\-.ab【】\u{FF11}]|\\[[0-9]\\]|\\PC){0,8}", 0..8),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let (out, text, marked) = filter(&pieces);
            prop_assert_eq!(out.concat(), text.clone());
            prop_assert_eq!(put_right(&pieces.concat()), text.clone(), "cuts change nothing");
            prop_assert_eq!(marked.render(&BTreeSet::new()).text, text.clone());
            let numbers: Vec<usize> = marked.marks.iter().map(|mark| mark.number).collect();
            prop_assert_eq!(read_marks(&text), numbers.clone());
            prop_assert!(numbers.iter().all(|number| (1..=3).contains(number)));
            let fewer = marked.render(&(0..numbers.len()).step_by(2).collect());
            let left: Vec<usize> = numbers.iter().copied().skip(1).step_by(2).collect();
            prop_assert_eq!(read_marks(&fewer.text), left);
        }
    }
}
