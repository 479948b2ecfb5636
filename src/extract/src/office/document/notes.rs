//! Notes and comments of a Word document.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::package::Package;

/// The notes and comments of a document, by kind and ID.
#[derive(Debug, Default)]
pub(super) struct Notes {
    texts: BTreeMap<String, String>,
}

impl Notes {
    /// Reads the part called `name`. Notes have simple content and are read line by line.
    pub(super) fn read(&mut self, package: &Package<'_>, name: &str) -> Result<(), ExtractError> {
        let Some(part) = package.part(name)? else { return Ok(()) };
        let mut events = Events::new(part)?;
        let mut key = String::new();
        let mut text = String::new();
        let mut is_text = false;
        loop {
            match events.next()? {
                Event::Open(element) => match element.name() {
                    "footnote" | "endnote" => {
                        key = key_of(element.name(), &element.attribute("id").unwrap_or_default());
                        text.clear();
                    }
                    "comment" => {
                        key = key_of(element.name(), &element.attribute("id").unwrap_or_default());
                        let author = element.attribute("author").unwrap_or_default();
                        text = format!("Comment by {author}:");
                    }
                    "t" => is_text = true,
                    "tab" | "br" | "p" => text.push(' '),
                    "pPr" | "del" | "moveFrom" | "Fallback" => events.skip()?,
                    _ => {}
                },
                Event::Close(name) => match name.as_str() {
                    "t" => is_text = false,
                    "footnote" | "endnote" | "comment" => {
                        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                        self.texts.insert(std::mem::take(&mut key), text);
                    }
                    _ => {}
                },
                Event::Text(content) if is_text => text.push_str(&content),
                Event::Text(_) => {}
                Event::End => return Ok(()),
            }
        }
    }

    /// Takes a referenced note. Each is written only once, even if referenced again.
    pub(super) fn take(&mut self, kind: &str, id: &str) -> Option<String> {
        self.texts.remove(&key_of(kind, id))
    }
}

fn key_of(kind: &str, id: &str) -> String {
    format!("{} {id}", &kind[..kind.len().min(4)])
}
