//! Styles: numbered lists, and paragraphs that are the title.

use std::collections::{BTreeMap, BTreeSet};

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::package::Package;

/// Maximum number of list levels.
pub(super) const LEVELS: usize = 10;
/// Maximum number of styles of one document.
const STYLES_MAX: usize = 10_000;

/// The styles that matter for text.
#[derive(Debug, Default)]
pub(super) struct Styles {
    /// Styles of numbered lists, with the format of each level; empty for a bullet.
    pub numbered: BTreeMap<String, [String; LEVELS]>,
    /// Styles of paragraphs that are titles of the document.
    pub titles: BTreeSet<String>,
}

impl Styles {
    /// Adds the styles in the part called `name`.
    pub(super) fn read(&mut self, package: &Package<'_>, name: &str) -> Result<(), ExtractError> {
        let Some(part) = package.part(name)? else { return Ok(()) };
        let mut events = Events::new(part)?;
        let mut list = String::new();
        loop {
            match events.next()? {
                Event::Open(element) => match element.name() {
                    "list-style" => list = element.attribute("name").unwrap_or_default(),
                    "list-level-style-number" if self.numbered.len() < STYLES_MAX => {
                        let level = element.number("level").and_then(|n| usize::try_from(n).ok());
                        let format = element.attribute("num-format").unwrap_or_default();
                        let levels = self.numbered.entry(list.clone()).or_default();
                        if let Some(slot) = level.and_then(|n| levels.get_mut(n.wrapping_sub(1))) {
                            *slot = format;
                        }
                    }
                    "style" if self.titles.len() < STYLES_MAX => {
                        let name = element.attribute("name").unwrap_or_default();
                        let parent = element.attribute("parent-style-name");
                        if name == "Title" || parent.as_deref() == Some("Title") {
                            self.titles.insert(name);
                        }
                    }
                    // Styles come before the content.
                    "body" => return Ok(()),
                    _ => {}
                },
                Event::Close(_) | Event::Text(_) => {}
                Event::End => return Ok(()),
            }
        }
    }
}
