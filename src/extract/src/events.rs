//! XML parts of containers as a stream of events: names without prefixes, references in text
//! resolved, nesting and sizes limited, and nothing retained but the current event.

use std::borrow::Cow;
use std::io::{BufRead, Cursor, Read};

use quick_xml::events::{BytesEnd, BytesStart, Event as Raw};
use quick_xml::reader::Reader;

use crate::budget::Budget;
use crate::package::Part;
use crate::{DEPTH_MAX, ExtractError, decode, xml};

/// An event of the stream.
#[derive(Debug)]
pub(super) enum Event<'e> {
    /// The start of an element.
    Open(Element<'e>),
    /// The end of an element; also follows empty ones.
    Close(Name<'e>),
    /// Text.
    Text(Cow<'e, str>),
    /// The end of the part.
    End,
}

/// The start tag of an element.
#[derive(Debug)]
pub(super) struct Element<'e> {
    start: BytesStart<'e>,
}

/// The name of an element that has ended.
#[derive(Debug)]
pub(super) struct Name<'e>(BytesEnd<'e>);

impl Name<'_> {
    /// The name without its prefix.
    pub(super) fn as_str(&self) -> &str {
        local(self.0.name().0)
    }
}

impl Element<'_> {
    /// The name without its prefix.
    pub(super) fn name(&self) -> &str {
        local(self.start.name().0)
    }

    /// The value of the attribute with this name, whatever its prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        self.value(name).map(Cow::into_owned)
    }

    /// The value of the attribute with this name, without copying, for elements that occur by the
    /// million.
    pub(super) fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        self.find(|found| local(found) == name)
    }

    /// The value of the attribute with this name that has a prefix: relationship ids occur next to
    /// plain ids.
    pub(super) fn prefixed(&self, name: &str) -> Option<String> {
        self.find(|found| found.contains(':') && local(found) == name).map(Cow::into_owned)
    }

    /// The value of the attribute as a number; `None` if it is missing or not a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value(name)?.trim().parse().ok()
    }

    /// Whether a property like `<w:b/>` is on, which it is unless it says otherwise.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self.value("val").as_deref(), Some("0" | "false" | "off" | "none"))
    }

    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<Cow<'_, str>> {
        // Skip checks: looking for duplicates is quadratic.
        let mut attributes = self.start.attributes();
        let mut attributes = attributes.with_checks(false).flatten();
        let found = attributes.find(|attribute| is_wanted(attribute.key.0))?;
        Some(match found.value {
            Cow::Borrowed(raw) => quick_xml::escape::unescape(raw).unwrap_or(Cow::Borrowed(raw)),
            Cow::Owned(raw) => {
                Cow::Owned(quick_xml::escape::unescape(&raw).map_or(raw.clone(), String::from))
            }
        })
    }
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// A part as UTF-8: unchanged, or decoded if it declares itself as UTF-16.
#[derive(Debug)]
enum Input<'a> {
    Part(Box<Part<'a>>),
    Decoded(Cursor<String>),
}

impl Input<'_> {
    fn begin_token(&mut self) {
        if let Self::Part(part) = self {
            part.begin_token();
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Part(part) => part.read(buffer),
            Self::Decoded(text) => text.read(buffer),
        }
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        match self {
            Self::Part(part) => part.fill_buf(),
            Self::Decoded(text) => text.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Part(part) => part.consume(amount),
            Self::Decoded(text) => text.consume(amount),
        }
    }
}

/// The events of one part.
#[derive(Debug)]
pub(super) struct Events<'a> {
    reader: Reader<Input<'a>>,
    buffer: Vec<u8>,
    depth: usize,
    failure: Failure<'a>,
}

/// Context for errors, kept because the reader owns the part.
#[derive(Debug, Clone, Copy)]
struct Failure<'a> {
    budget: &'a Budget,
    format: &'static str,
}

impl<'a> Events<'a> {
    /// Starts reading a part.
    pub(super) fn new(mut part: Part<'a>) -> Result<Self, ExtractError> {
        let failure = Failure { budget: part.budget(), format: part.format() };
        let head = match part.fill_buf() {
            Ok(head) => &head[..head.len().min(4)],
            Err(problem) => {
                return Err(failure.budget.failure(failure.format, problem.to_string()));
            }
        };
        let is_wide = decode::marked(head).is_some_and(|encoding| encoding != encoding_rs::UTF_8);
        let input = match is_wide {
            true => Input::Decoded(Cursor::new(decode::text(&part.collect()?))),
            false => Input::Part(Box::new(part)),
        };
        let mut reader = Reader::from_reader(input);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        Ok(Self { reader, buffer: Vec::new(), depth: 0, failure })
    }

    /// Returns the next event. A part that ends inside an element is damaged.
    pub(super) fn next(&mut self) -> Result<Event<'_>, ExtractError> {
        // The borrow checker cannot follow a borrowed event through a loop: skipped events become
        // empty text.
        self.buffer.clear();
        self.reader.get_mut().begin_token();
        let failure = self.failure;
        let event = self.reader.read_event_into(&mut self.buffer);
        let broken = |problem: String| failure.budget.failure(failure.format, problem);
        match event.map_err(|problem| broken(problem.to_string()))? {
            Raw::Start(start) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    let what = "nesting of XML elements";
                    return Err(ExtractError::BeyondLimit { what, max: DEPTH_MAX });
                }
                Ok(Event::Open(Element { start }))
            }
            Raw::End(end) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(Event::Close(Name(end)))
            }
            Raw::Text(content) => Ok(Event::Text(content.xml10_content())),
            Raw::CData(content) => Ok(Event::Text(content.xml10_content())),
            Raw::GeneralRef(reference) => Ok(Event::Text(xml::resolved(&reference).into())),
            Raw::Eof if self.depth > 0 => Err(broken("a part ends inside an element".to_owned())),
            Raw::Eof => Ok(Event::End),
            Raw::Empty(_) | Raw::Comment(_) | Raw::Decl(_) | Raw::PI(_) | Raw::DocType(_) => {
                Ok(Event::Text(Cow::Borrowed("")))
            }
        }
    }

    /// Skips the rest of the element that has just started.
    pub(super) fn skip(&mut self) -> Result<(), ExtractError> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            self.next()?;
        }
        Ok(())
    }
}
