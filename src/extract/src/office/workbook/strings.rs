//! The shared strings of a workbook, in one buffer.

use std::ops::Range;

use crate::events::{Event, Events};
use crate::outline::too_long;
use crate::package::Package;
use crate::{ExtractError, TEXT_BYTES_MAX};

/// All shared strings.
#[derive(Debug, Default)]
pub(super) struct SharedStrings {
    text: String,
    /// The end offset of each string.
    ends: Vec<u32>,
}

impl SharedStrings {
    /// Reads the part called `name`.
    pub(super) fn read(package: &Package<'_>, name: &str) -> Result<Self, ExtractError> {
        let mut found = Self::default();
        let Some(part) = package.part(name)? else { return Ok(found) };
        let mut events = Events::new(part)?;
        let mut is_text = false;
        loop {
            match events.next()? {
                Event::Open(element) => match element.name() {
                    "t" => is_text = true,
                    // Phonetic text.
                    "rPh" => events.skip()?,
                    _ => {}
                },
                Event::Close(name) => match name.as_str() {
                    "t" => is_text = false,
                    "si" => found.ends.push(u32::try_from(found.text.len()).unwrap_or(u32::MAX)),
                    _ => {}
                },
                Event::Text(text) if is_text => {
                    if found.text.len() + text.len() > TEXT_BYTES_MAX {
                        return Err(too_long());
                    }
                    found.text.push_str(&text);
                }
                Event::Text(_) => {}
                Event::End => return Ok(found),
            }
        }
    }

    /// The string at this index.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let range: Range<usize> = start.unwrap_or(0) as usize..end as usize;
        self.text.get(range)
    }
}
