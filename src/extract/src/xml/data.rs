//! XML data: elements with text become `name: value` lines, repeated elements become records.

use crate::flow::Flow;
use crate::outline::too_long;
use crate::xml::Sink;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// Depths at which elements become records: the children of the root, and those of its only child
/// (`<rss><channel><item>`).
const RECORD_DEPTHS: std::ops::RangeInclusive<usize> = 2..=3;

/// Writes XML data as records.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    open: Vec<Open>,
    /// The current record.
    lines: String,
}

#[derive(Debug)]
struct Open {
    name: String,
    /// Text directly in the element, with whitespace collapsed.
    text: String,
}

impl Writer {
    /// Returns the finished document.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        self.flush()?;
        self.flow.finish()
    }

    fn flush(&mut self) -> Result<(), ExtractError> {
        let lines = std::mem::take(&mut self.lines);
        self.flow.block(BlockKind::Record, &lines)
    }

    fn line(&mut self, name: &str, value: &str) -> Result<(), ExtractError> {
        let value = value.trim();
        if value.is_empty() {
            return Ok(());
        }
        if self.flow.len() + self.lines.len() + name.len() + value.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        self.lines.push_str(name);
        self.lines.push_str(": ");
        self.lines.push_str(value);
        self.lines.push('\n');
        Ok(())
    }

    /// Writes the text of an element so far, so that lines are in document order.
    fn settle(&mut self) -> Result<(), ExtractError> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if open.text.is_empty() {
            return Ok(());
        }
        let name = open.name.clone();
        let text = std::mem::take(&mut open.text);
        if self.open.len() == 2 && name == "title" || self.ends_path(&["channel", "title"]) {
            self.flow.set_title(&text);
        }
        self.line(&name, &text)
    }

    fn ends_path(&self, path: &[&str]) -> bool {
        self.open.len() >= path.len()
            && self.open.iter().rev().zip(path.iter().rev()).all(|(open, name)| open.name == *name)
    }
}

impl Sink for Writer {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) -> Result<(), ExtractError> {
        self.settle()?;
        self.open.push(Open { name: name.to_owned(), text: String::new() });
        for (attribute, value) in attributes {
            self.line(&format!("{name}.{attribute}"), value)?;
        }
        Ok(())
    }

    fn close(&mut self, _: &str) -> Result<(), ExtractError> {
        self.settle()?;
        let depth = self.open.len();
        self.open.pop();
        // A single value is not a record: it joins its neighbours.
        if RECORD_DEPTHS.contains(&depth) && self.lines.lines().nth(1).is_some() {
            self.flush()?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if self.flow.len() + self.lines.len() + open.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                open.text.push(c);
            } else if !open.text.is_empty() && !open.text.ends_with(' ') {
                open.text.push(' ');
            }
        }
        Ok(())
    }
}
