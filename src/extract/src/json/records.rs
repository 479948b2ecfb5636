//! Values as lines, objects in arrays as records.

use crate::flow::Flow;
use crate::json::Sink;
use crate::outline::too_long;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

#[derive(Debug)]
struct Level {
    is_array: bool,
    /// Length of the path of this value, to which keys inside it are appended.
    path_before: usize,
    /// Whether the end of this value ends a record.
    is_record: bool,
}

/// Writes lines and records.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    levels: Vec<Level>,
    /// Keys from the outermost value to the current one, joined by dots.
    path: String,
    /// Lines of the current record.
    lines: String,
    /// Whether the last line belongs to the innermost array, and so may be extended.
    is_in_array_line: bool,
    is_in_record: bool,
}

impl Writer {
    /// Finishes the document.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        self.flush()?;
        self.flow.finish()
    }

    fn flush(&mut self) -> Result<(), ExtractError> {
        self.flow.block(BlockKind::Record, &self.lines)?;
        self.lines.clear();
        self.is_in_array_line = false;
        Ok(())
    }
}

impl Sink for Writer {
    fn open(&mut self, is_array: bool) -> Result<(), ExtractError> {
        let parent = self.levels.last();
        let is_element = parent.is_none_or(|level| level.is_array);
        // Outside of records, each large member of the outermost object becomes a block of its own.
        let is_member = self.levels.len() == 1;
        let is_record = !self.is_in_record && !is_array && is_element && parent.is_some();
        if is_record || (is_member && !self.is_in_record) || parent.is_none() {
            self.flush()?;
        }
        self.is_in_record |= is_record;
        self.is_in_array_line = false;
        self.levels.push(Level { is_array, path_before: self.path.len(), is_record });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExtractError> {
        let level = self.levels.pop().expect("the scanner closes what it opened");
        self.path.truncate(level.path_before);
        self.is_in_array_line = false;
        if level.is_record {
            self.is_in_record = false;
        }
        if level.is_record || (self.levels.len() <= 1 && !self.is_in_record) {
            self.flush()?;
        }
        Ok(())
    }

    fn key(&mut self, key: &str) {
        let before = self.levels.last().map_or(0, |level| level.path_before);
        self.path.truncate(before);
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.is_in_array_line = false;
    }

    fn scalar(&mut self, value: &str) -> Result<(), ExtractError> {
        if value.trim().is_empty() {
            return Ok(());
        }
        if self.flow.len() + self.lines.len() + self.path.len() + value.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        let is_in_array = self.levels.last().is_some_and(|level| level.is_array);
        if is_in_array && self.is_in_array_line {
            // Elements that include their own line break, as in notebooks, are lines.
            let joint = if self.lines.ends_with("\n\n") { "\n" } else { ", " };
            let kept = self.lines.trim_end_matches('\n').len();
            self.lines.truncate(kept);
            self.lines.push_str(joint);
        } else if !self.path.is_empty() {
            self.lines.push_str(&self.path);
            self.lines.push_str(": ");
        }
        self.lines.push_str(value);
        self.lines.push('\n');
        self.is_in_array_line = is_in_array;
        Ok(())
    }
}
