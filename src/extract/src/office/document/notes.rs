//! What stands beside the body: notes, headers and footers.

use std::collections::{BTreeMap, BTreeSet};

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::office::document::numbering::Numbering;
use crate::office::document::styles::Styles;
use crate::office::document::walker::Walker;
use crate::office::relations::Relations;
use crate::package::Package;
use lodestone_types::BlockKind;

/// Letters that a header must have to be more than "Page 3 of 7".
const HEADER_LETTERS_MIN: usize = 10;
/// Headers and footers of one document: each section can have six.
const HEADERS_MAX: usize = 60;

/// The notes of a document, by their kind and id.
#[derive(Debug, Default)]
pub(super) struct Notes {
    texts: BTreeMap<String, String>,
    /// Notes that were referred to and are not written yet.
    waiting: Vec<String>,
    count: usize,
}

impl Notes {
    /// Reads the part called `name`, whose notes are simple: their text is taken line by line.
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
                    "t" => is_text = true,
                    "tab" | "br" | "p" => text.push(' '),
                    "pPr" | "del" | "moveFrom" | "Fallback" => events.skip()?,
                    _ => {}
                },
                Event::Close(name) => match name.as_str() {
                    "t" => is_text = false,
                    "footnote" | "endnote" => {
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

    /// The text refers to a note.
    pub(super) fn refer(&mut self, kind: &str, id: &str) {
        // Each note is written once, however often it is referred to.
        if let Some(text) = self.texts.remove(&key_of(kind, id)).filter(|text| !text.is_empty()) {
            self.count += 1;
            self.waiting.push(format!("[{}] {text}", self.count));
        }
    }

    /// Writes the notes that wait.
    pub(super) fn write(&mut self, flow: &mut Flow) -> Result<(), ExtractError> {
        self.waiting.drain(..).try_for_each(|note| flow.block(BlockKind::Paragraph, &note))
    }
}

fn key_of(kind: &str, id: &str) -> String {
    format!("{} {id}", &kind[..kind.len().min(4)])
}

/// Writes each different header and footer once.
pub(super) fn headers_and_footers(
    package: &Package<'_>,
    relations: &Relations,
    styles: &Styles,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let mut seen = BTreeSet::new();
    let parts = relations.of_kind("header").chain(relations.of_kind("footer"));
    for name in parts.take(HEADERS_MAX) {
        let own = Relations::of(package, name)?;
        let (mut numbering, mut notes, mut inner) =
            (Numbering::default(), Notes::default(), Flow::default());
        Walker::new(package, &own, styles, &mut numbering, &mut notes, &mut inner)
            .without_page_numbers()
            .read(name)?;
        let text = inner.finish()?.text;
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let letters = line.chars().filter(|c| c.is_alphabetic()).count();
        if letters >= HEADER_LETTERS_MIN && seen.insert(line) {
            flow.block(BlockKind::Paragraph, &text)?;
        }
    }
    Ok(())
}
