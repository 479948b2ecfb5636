//! A block of text on a page (paragraph, item, table, listing or heading) with the areas of its
//! lines.

use std::ops::Range;

use lodestone_types::PageArea;
use lodestone_types::script::is_wide;

/// The kind of a block. Headings are detected once the whole document is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Prose,
    Item,
    Table,
    Code,
    Heading { level: u8 },
}

/// A block of text of one kind.
#[derive(Debug, Clone)]
pub(super) struct PageBlock {
    pub kind: Kind,
    pub text: String,
    /// Areas of its lines, by byte range of the text, ascending.
    pub areas: Vec<(Range<usize>, PageArea)>,
    /// Font size of its first line, in points.
    pub size: f32,
    pub is_bold: bool,
    /// Whether its first line is a running head.
    pub is_running: bool,
}

impl PageBlock {
    /// A block without text.
    pub(super) fn new(kind: Kind, size: f32, is_bold: bool) -> Self {
        Self { kind, text: String::new(), areas: Vec::new(), size, is_bold, is_running: false }
    }

    /// Appends text that covers an area.
    pub(super) fn put(&mut self, text: &str, area: PageArea) {
        let start = self.text.len();
        self.text.push_str(text);
        if !text.is_empty() {
            self.areas.push((start..self.text.len(), area));
        }
    }

    /// Whether the block is made of words, unlike rows of numbers.
    pub(super) fn is_of_words(&self) -> bool {
        let letters = self.text.chars().filter(|c| c.is_alphabetic()).count();
        let all = self.text.chars().filter(|c| !c.is_whitespace()).count();
        letters * 3 >= all * 2
    }

    /// Appends another block to the last line.
    pub(super) fn join(&mut self, other: Self, is_compound: &dyn Fn(&str) -> bool) {
        self.separate(&other.text, is_compound);
        let start = self.text.len();
        self.text.push_str(&other.text);
        let moved = other.areas.into_iter();
        self.areas
            .extend(moved.map(|(range, area)| (range.start + start..range.end + start, area)));
    }

    /// Ends the last line so that `next`, the text of the following line, can be appended: adds a
    /// space, or joins a hyphenated word. `is_compound` recognises compounds written with a hyphen.
    pub(super) fn separate(&mut self, next: &str, is_compound: &dyn Fn(&str) -> bool) {
        let mut before = self.text.chars().rev();
        let is_divided = matches!(before.next(), Some('-' | '\u{2010}'))
            && before.next().is_some_and(char::is_alphabetic);
        let Some(first) = next.chars().next().filter(|_| is_divided) else {
            if !self.text.is_empty() && !joins_without_space(&self.text, next) {
                self.text.push(' ');
            }
            return;
        };
        if !first.is_lowercase() || is_compound(&compound(&self.text, next)) {
            // Before a capital or digit the hyphen is part of the word.
            if !first.is_alphanumeric() {
                self.text.push(' ');
            }
            return;
        }
        self.text.pop();
        let end = self.text.len();
        if let Some((range, _)) = self.areas.last_mut() {
            range.end = range.end.min(end);
        }
        self.areas.pop_if(|(range, _)| range.start >= range.end);
    }
}

/// The hyphenated word formed by the end of `text` and the start of `next`.
fn compound(text: &str, next: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '-';
    let before = text.rsplit(|c| !is_part(c)).next().unwrap_or("");
    let after = next.split(|c| !is_part(c)).next().unwrap_or("");
    format!("{before}{after}").to_lowercase()
}

/// Whether two texts meet in a script without spaces between words.
fn joins_without_space(text: &str, next: &str) -> bool {
    text.ends_with(is_wide) && next.starts_with(is_wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(first: &str, second: &str) -> String {
        let mut block = PageBlock::new(Kind::Prose, 10.0, false);
        block.put(first, PageArea::default());
        let is_compound = |word: &str| word == "well-known";
        block.separate(second, &is_compound);
        block.put(second, PageArea::default());
        assert!(block.areas.iter().all(|(range, _)| range.end <= block.text.len()));
        block.text
    }

    #[test]
    fn divided_words_become_whole() {
        assert_eq!(joined("the infor-", "mation age"), "the information age");
        assert_eq!(joined("a well-", "known fact"), "a well-known fact");
        assert_eq!(joined("COVID-", "19 cases"), "COVID-19 cases");
        assert_eq!(joined("Jean-", "Paul"), "Jean-Paul");
        assert_eq!(joined("range 5 -", "and more"), "range 5 - and more");
        assert_eq!(joined("no", "hyphen"), "no hyphen");
        assert_eq!(joined("漢字", "漢"), "漢字漢");
    }
}
