//! JSON, or a sequence of JSON values: every value becomes a `path: value` line.
//!
//! ```text
//! {"team": "A", "people": [{"name": "Ada", "tags": ["x", "y"]}, {"name": "Bo"}]}
//!
//! team: A                     record
//!
//! people.name: Ada            record: an object in an array
//! people.tags: x, y
//!
//! people.name: Bo             record
//! ```
//! Empty strings and nulls are omitted. A notebook (Jupyter) is read as its cells.
//!
//! - `scanner`: the grammar; `records`: lines and records; `notebook`: cells

mod notebook;
mod records;
mod scanner;

use crate::ExtractError;
use lodestone_types::Extracted;

/// Reads JSON.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    if text.contains("\"nbformat\"") && text.contains("\"cells\"") {
        let mut writer = notebook::Writer::default();
        scanner::run(text, &mut writer)?;
        let extracted = writer.finish()?;
        if !extracted.blocks.is_empty() {
            return Ok(extracted);
        }
    }
    let mut writer = records::Writer::default();
    scanner::run(text, &mut writer)?;
    writer.finish()
}

/// Whether `text` is JSON of any content.
pub(super) fn is_valid(text: &str) -> bool {
    scanner::run(text, &mut Ignore).is_ok()
}

/// Receives the events of the scanner, in order.
trait Sink {
    fn open(&mut self, is_array: bool) -> Result<(), ExtractError>;
    fn close(&mut self) -> Result<(), ExtractError>;
    fn key(&mut self, key: &str);
    fn scalar(&mut self, value: &str) -> Result<(), ExtractError>;
}

struct Ignore;

impl Sink for Ignore {
    fn open(&mut self, _: bool) -> Result<(), ExtractError> {
        Ok(())
    }
    fn close(&mut self) -> Result<(), ExtractError> {
        Ok(())
    }
    fn key(&mut self, _: &str) {}
    fn scalar(&mut self, _: &str) -> Result<(), ExtractError> {
        Ok(())
    }
}
