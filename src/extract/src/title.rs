//! Reads the title from the document properties.

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::package::Package;

/// Maximum bytes of a title.
const TITLE_BYTES_MAX: usize = 1000;

/// The title in the part called `name`, if set.
pub(super) fn title(package: &Package<'_>, name: &str) -> Option<String> {
    // Properties are not content: if they are damaged, the document is still readable.
    read(package, name).ok().flatten().filter(|title| !title.trim().is_empty())
}

fn read(package: &Package<'_>, name: &str) -> Result<Option<String>, ExtractError> {
    let Some(part) = package.part(name)? else { return Ok(None) };
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
