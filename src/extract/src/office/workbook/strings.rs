//! The shared strings of a workbook, in one buffer, and the escapes in strings.

use std::borrow::Cow;
use std::ops::Range;

use crate::events::{Event, Events};
use crate::outline::too_long;
use crate::package::Package;
use crate::{ExtractError, TEXT_BYTES_MAX};

/// Bytes of an escape such as `_x000D_`.
const ESCAPE_BYTES: usize = 7;

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

/// Resolves escapes such as `_x000D_`, which stand for characters that XML cannot hold. Control
/// characters become spaces.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find("_x") {
        let escaped = rest.get(at..at + ESCAPE_BYTES).and_then(escaped_in);
        plain.push_str(&rest[..at]);
        plain.push(escaped.map_or('_', |c| if c.is_control() { ' ' } else { c }));
        rest = &rest[at + escaped.map_or(1, |_| ESCAPE_BYTES)..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The character that an escape stands for.
fn escaped_in(escape: &str) -> Option<char> {
    let digits = escape.strip_prefix("_x")?.strip_suffix('_')?;
    let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_number).and_then(char::from_u32)
}
