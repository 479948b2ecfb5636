//! Which styles of lists number their items, at which levels.

use std::collections::BTreeMap;

use crate::extract::ExtractError;
use crate::extract::events::{Event, Events};
use crate::extract::package::Package;

/// Levels of a list.
pub(super) const LEVELS: usize = 10;
/// Styles of one document.
const STYLES_MAX: usize = 10_000;

/// The styles that number, with the format of each level; empty for a bullet.
pub(super) type Numbered = BTreeMap<String, [String; LEVELS]>;

/// Those in the part called `name`.
pub(super) fn numbered(package: &Package<'_>, name: &str) -> Result<Numbered, ExtractError> {
    let mut found = Numbered::new();
    let Some(part) = package.part(name)? else { return Ok(found) };
    let mut events = Events::new(part)?;
    let mut style = String::new();
    loop {
        match events.next()? {
            Event::Open(element) => match element.name() {
                "list-style" => style = element.attribute("name").unwrap_or_default(),
                "list-level-style-number" if found.len() < STYLES_MAX => {
                    let level = element.number("level").and_then(|n| usize::try_from(n).ok());
                    let format = element.attribute("num-format").unwrap_or_default();
                    let levels = found.entry(style.clone()).or_default();
                    if let Some(slot) = level.and_then(|n| levels.get_mut(n.wrapping_sub(1))) {
                        *slot = format;
                    }
                }
                // Styles stand before the content.
                "body" => return Ok(found),
                _ => {}
            },
            Event::Close(_) | Event::Text(_) => {}
            Event::End => return Ok(found),
        }
    }
}
