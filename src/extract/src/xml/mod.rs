//! XML: prose becomes paragraphs under headings, data becomes records of `name: value` lines.
//!
//! Which of the two a document is shows in its vocabulary: an element called `p` or `para` makes it
//! prose (JATS, DocBook, TEI), its absence data (feeds, exports, settings).
//!
//! Nothing outside is read, no entity is declared or expanded: a document type is passed over, an
//! unknown entity stays as it is written.
//!
//! - `prose`, `data`: the two ways of writing

mod data;
mod prose;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::{ATTRIBUTES_MAX, DEPTH_MAX, ExtractError, error};
use lodestone_types::Extracted;

/// Receives a document in order. Names come without their prefix.
trait Sink {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) -> Result<(), ExtractError>;
    fn close(&mut self, name: &str) -> Result<(), ExtractError>;
    fn text(&mut self, text: &str) -> Result<(), ExtractError>;
}

/// Reads XML.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    if is_prose(text) {
        let mut writer = prose::Writer::default();
        run(text, &mut writer)?;
        return writer.finish();
    }
    let mut writer = data::Writer::default();
    run(text, &mut writer)?;
    writer.finish()
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

/// What a reference stands for; an unknown one stays as it is written.
pub(super) fn resolved(reference: &BytesRef<'_>) -> String {
    let character = reference.resolve_char_ref().ok().flatten();
    match character.or_else(|| predefined(reference)) {
        Some(character) => character.to_string(),
        None => format!("&{};", &**reference),
    }
}

fn predefined(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        // Not predefined in XML, but declared in every document type that people write prose in.
        "nbsp" => Some('\u{A0}'),
        _ => None,
    }
}

/// Names and values, without declarations of namespaces. Duplicates are not looked for: that is
/// quadratic. What is malformed is passed over.
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
