//! The properties of a document, of which only the title is read.

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::package::Package;

/// Bytes of a title that are kept.
const TITLE_BYTES_MAX: usize = 1000;

/// The title, where one was given.
pub(super) fn title(package: &Package<'_>) -> Option<String> {
    // Properties are no content: their damage does not make the document unreadable.
    read(package).ok().flatten().filter(|title| !title.trim().is_empty())
}

fn read(package: &Package<'_>) -> Result<Option<String>, ExtractError> {
    let Some(part) = package.part("docProps/core.xml")? else { return Ok(None) };
    let mut events = Events::new(part)?;
    let mut title = String::new();
    let mut is_title = false;
    loop {
        match events.next()? {
            Event::Open(element) => is_title = element.name() == "title",
            Event::Close(_) => is_title = false,
            Event::Text(text) if is_title && title.len() < TITLE_BYTES_MAX => title.push_str(&text),
            Event::Text(_) => {}
            Event::End => return Ok(Some(title)),
        }
    }
}
