//! Reads XML: prose becomes paragraphs under headings, data becomes `name: value` records.
//!
//! The vocabulary decides: an element called `p` or `para` marks a document as prose (JATS,
//! DocBook, TEI); without one it is data (feeds, exports, settings). From SVG drawings the text is
//! read.
//!
//! Nothing external is read, and no entity is declared or expanded: the document type is ignored
//! and unknown entities are kept as written.
//!
//! - `prose`, `data`, `drawing`: the writers

mod data;
mod drawing;
mod prose;

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::{ATTRIBUTES_MAX, DEPTH_MAX, ExtractError, error};
use lodestone_types::Extracted;

/// Receives the parts of a document in order. Names have no namespace prefix.
trait Sink {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) -> Result<(), ExtractError>;
    fn close(&mut self, name: &str) -> Result<(), ExtractError>;
    fn text(&mut self, text: &str) -> Result<(), ExtractError>;
}

/// Reads an XML document.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    if is_drawing(text) {
        let mut writer = drawing::Writer::default();
        run(text, &mut writer)?;
        return writer.finish();
    }
    if is_prose(text) {
        let mut writer = prose::Writer::default();
        run(text, &mut writer)?;
        return writer.finish();
    }
    let mut writer = data::Writer::default();
    run(text, &mut writer)?;
    writer.finish()
}

/// Whether the root element is that of SVG.
fn is_drawing(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => return start.local_name().as_ref() == "svg",
            Ok(Event::Empty(_) | Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

fn is_prose(text: &str) -> bool {
    const PARAGRAPHS: [&str; 6] = ["<p>", "<p ", "<para>", "<para ", "<simpara>", "<w:p>"];
    PARAGRAPHS.iter().any(|tag| text.contains(tag))
}

fn run(text: &str, sink: &mut impl Sink) -> Result<(), ExtractError> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    let damaged = |at: u64, problem: String| {
        let line = error::line_of(text, usize::try_from(at).unwrap_or(text.len()));
        ExtractError::Damaged { format: "XML", line, problem }
    };
    loop {
        let event = reader.read_event();
        let at = reader.error_position().max(reader.buffer_position());
        match event.map_err(|failure| damaged(at, failure.to_string()))? {
            Event::Start(start) => {
                depth += 1;
                if depth > DEPTH_MAX {
                    let what = "nesting of XML elements";
                    return Err(ExtractError::BeyondLimit { what, max: DEPTH_MAX });
                }
                let attributes = attributes_of(&start)?;
                sink.open(start.local_name().as_ref(), &attributes)?;
            }
            Event::Empty(start) => {
                let attributes = attributes_of(&start)?;
                sink.open(start.local_name().as_ref(), &attributes)?;
                sink.close(start.local_name().as_ref())?;
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                sink.close(end.local_name().as_ref())?;
            }
            Event::Text(content) => sink.text(&content.xml10_content())?,
            Event::CData(content) => sink.text(&content.xml10_content())?,
            Event::GeneralRef(reference) => sink.text(&resolved(&reference))?,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof if depth > 0 => {
                let problem = "the document ends inside an element".to_owned();
                return Err(damaged(text.len() as u64, problem));
            }
            Event::Eof => return Ok(()),
        }
    }
}

/// The text of a character or entity reference; an unknown one is kept as written.
pub(super) fn resolved(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character.to_string();
    }
    match (&**reference, resolve_xml_entity(reference)) {
        (_, Some(text)) => text.to_owned(),
        // Not predefined in XML, but declared by every document type used for prose.
        ("nbsp", None) => "\u{A0}".to_owned(),
        (name, None) => format!("&{name};"),
    }
}

/// Attribute names and values, without namespace declarations. Duplicates are not checked, since
/// that is quadratic. Malformed attributes are ignored.
fn attributes_of(start: &BytesStart<'_>) -> Result<Vec<(String, String)>, ExtractError> {
    let mut found = Vec::new();
    for (count, attribute) in start.attributes().with_checks(false).enumerate() {
        if count >= ATTRIBUTES_MAX {
            let what = "attributes of one XML element";
            return Err(ExtractError::BeyondLimit { what, max: ATTRIBUTES_MAX });
        }
        let Ok(attribute) = attribute else { continue };
        let name: &str = attribute.key.as_ref();
        if name == "xmlns" || name.starts_with("xmlns:") || name.starts_with("xsi:") {
            continue;
        }
        let raw: &str = attribute.value.as_ref();
        let value = quick_xml::escape::unescape(raw).map_or_else(|_| raw.to_owned(), String::from);
        found.push((attribute.key.local_name().as_ref().to_owned(), value));
    }
    Ok(found)
}
