//! Lines that begin with a bare number and count up from 1, like items of notes: "1 radios".

use std::ops::Range;

use super::lines::has_columns;
use super::{Form, Parser};
use crate::text::sentences;

/// Minimum number of consecutive lines starting with 1, 2, 3 and so on that count as items.
const COUNTED_ITEMS_MIN: usize = 3;
/// Maximum number of lines in such an item.
const ITEM_LINES_MAX: usize = 20;

impl Parser<'_> {
    pub(super) fn counted_list(&mut self, at: usize) {
        let group = self.begin(Form::List);
        self.found.groups[group].is_numbered = true;
        for item in self.counted(at) {
            self.push_item(self.lines[item.start].bytes.start..self.lines[item.end - 1].bytes.end);
        }
        self.lead = None;
    }

    /// The line ranges of items that begin with a bare number ("1 radios") and count up from 1;
    /// empty if there are few.
    pub(super) fn counted(&self, at: usize) -> Vec<Range<usize>> {
        let mut items: Vec<Range<usize>> = Vec::new();
        let number = |line: usize| self.lines.get(line).and_then(|line| bare_number(line.content));
        let mut line = at;
        while number(line) == Some(items.len() + 1) {
            let goes_on = |end: &usize| {
                self.lines.get(*end).is_some_and(|next| {
                    let is_deeper = next.indent > self.lines[line].indent;
                    let is_of_item = || {
                        is_deeper || sentences::goes_on(self.lines[*end - 1].content, next.content)
                    };
                    let is_next = bare_number(next.content) == Some(items.len() + 2);
                    !next.content.is_empty() && !is_next && is_of_item()
                })
            };
            let last = line + ITEM_LINES_MAX;
            let end = (line + 1..last).find(|end| !goes_on(end)).unwrap_or(last);
            let end = end.min(self.lines.len());
            items.push(line..end);
            line = end;
        }
        if items.len() < COUNTED_ITEMS_MIN { Vec::new() } else { items }
    }
}

/// The number at the start of a line that goes on in words.
fn bare_number(content: &str) -> Option<usize> {
    let (number, rest) = content.split_once(' ')?;
    let is_item = rest.trim_start().starts_with(char::is_alphabetic) && !has_columns(content);
    number.parse().ok().filter(|_| is_item && number.len() <= 2)
}
