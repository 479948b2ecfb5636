//! Paragraph properties: style, outline level, list, and whether its end was deleted.

use crate::ExtractError;
use crate::events::{Event, Events};

/// The paragraph properties used.
#[derive(Debug, Default, Clone)]
pub(super) struct Properties {
    /// The style.
    pub style: Option<String>,
    /// The outline level, from 0; 9 is body text.
    pub outline: Option<u8>,
    /// The list; `0` overrides the list of the style with none.
    pub list: Option<String>,
    /// The list level, from 0.
    pub list_level: Option<usize>,
    /// Whether the paragraph mark was deleted, so that the next paragraph continues this one.
    pub is_joined: bool,
}

/// Reads to the end of the `pPr` that has just started.
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

/// Reads to the end of the properties that have just started, passing on each element in them.
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
