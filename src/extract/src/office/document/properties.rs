//! Properties of a paragraph: style, outline, list, whether it was deleted.

use crate::ExtractError;
use crate::events::{Event, Events};

/// The properties of a paragraph that count.
#[derive(Debug, Default, Clone)]
pub(super) struct Properties {
    /// The style.
    pub style: Option<String>,
    /// The level in the outline, from 0; 9 is the body.
    pub outline: Option<u8>,
    /// The list; `0` takes a paragraph out of its style's.
    pub list: Option<String>,
    /// The level in that list, from 0.
    pub list_level: Option<usize>,
    /// Whether the end of the paragraph was deleted: the next one goes on in its line.
    pub is_joined: bool,
}

/// Reads to the end of the `pPr` that has just begun.
pub(super) fn of_paragraph(events: &mut Events<'_>) -> Result<Properties, ExtractError> {
    let mut found = Properties::default();
    let mut depth = 1;
    let mut is_mark = false;
    while depth > 0 {
        match events.next()? {
            Event::Open(element) => {
                depth += 1;
                match element.name() {
                    "pStyle" => found.style = element.attribute("val"),
                    "outlineLvl" => {
                        found.outline = element.number("val").and_then(|n| u8::try_from(n).ok());
                    }
                    "numId" => found.list = element.attribute("val"),
                    "ilvl" => {
                        found.list_level =
                            element.number("val").and_then(|n| usize::try_from(n).ok());
                    }
                    "rPr" => is_mark = true,
                    "del" | "moveFrom" if is_mark => found.is_joined = true,
                    "sectPr" | "pPrChange" | "rPrChange" => {
                        events.skip()?;
                        depth -= 1;
                    }
                    _ => {}
                }
            }
            Event::Close(name) => {
                is_mark &= name.as_str() != "rPr";
                depth -= 1;
            }
            Event::Text(_) => {}
            Event::End => break,
        }
    }
    Ok(found)
}

/// Reads to the end of the properties that have just begun, and hands on each element in them.
pub(super) fn each(
    events: &mut Events<'_>,
    mut found: impl FnMut(&crate::events::Element<'_>),
) -> Result<(), ExtractError> {
    let mut depth = 1;
    while depth > 0 {
        match events.next()? {
            Event::Open(element) => {
                depth += 1;
                found(&element);
            }
            Event::Close(_) => depth -= 1,
            Event::Text(_) => {}
            Event::End => break,
        }
    }
    Ok(())
}
