//! Bytes of a document to text and structure: one file a format.
//!
//! This room judges what a file is and reads it. It knows nothing of chunks, models or disks, opens
//! nothing that a document names, and executes nothing that a document holds.
//!
//! ```text
//! bytes, name, media type -> detect -> Format
//! Format, bytes -> decode (encoding) -> one of the formats -> outline -> Extracted
//! ```
//!
//! Invariants (property tests in `tests.rs`):
//! - any bytes give an answer or an error, never a panic; no reader recurses;
//! - the cost is linear in the input, whatever its shape: nesting, attributes and unclosed elements
//!   are counted and bounded by the constants below, and so is the text that comes out;
//! - text has LF line ends and no U+0000; blocks ascend, do not overlap, and are never blank.
//!
//! `txt` and `md` keep the source as it is, so that offsets point into the original. The others
//! write text of their own: headings, lists and tables as Markdown, records as `name: value` lines.
//!
//! - `detect`: what a file is; `decode`: character encodings
//! - `outline`: text under construction, with its blocks
//! - `txt`, `md`, `html`, `json`, `delimited` (csv, tsv), `xml`: the formats
//! - `sandbox`: the same in a process of its own
//! - `error`: what can be wrong, and whose fault it is

mod decode;
mod delimited;
mod detect;
mod error;
mod html;
mod json;
mod md;
mod outline;
pub mod sandbox;
#[cfg(test)]
mod tests;
mod txt;
mod xml;

use serde::{Deserialize, Serialize};

use crate::types::Extracted;

pub use detect::detect;
pub use error::ExtractError;

/// Bytes of text that one document may give.
pub const TEXT_BYTES_MAX: usize = 32 << 20;
/// Nesting of JSON arrays and objects, and of XML elements.
pub const DEPTH_MAX: usize = 256;
/// Nesting of HTML elements that is followed; deeper tags are passed over, their text is kept.
pub const HTML_DEPTH_MAX: usize = 512;
/// Attributes of one XML element.
pub const ATTRIBUTES_MAX: usize = 1000;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Plain text, source code and anything else without a structure we know.
    Txt,
    /// Markdown.
    Md,
    /// HTML and XHTML.
    Html,
    /// JSON, and JSON values one after the other (JSON Lines).
    Json,
    /// Values separated by commas, semicolons, tabs or bars.
    Csv,
    /// Values separated by tabs.
    Tsv,
    /// XML other than XHTML.
    Xml,
}

impl Format {
    /// The usual extension, without the dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Md => "md",
            Self::Html => "html",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Xml => "xml",
        }
    }

    /// Whether our own readers take it in one pass: safe code without a library behind it, linear
    /// in the input and without recursion. Such formats need no process of their own.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Txt | Self::Md | Self::Json | Self::Csv | Self::Tsv)
    }

    /// The media type under which an original of this format is served.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Txt => "text/plain",
            Self::Md => "text/markdown",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
            Self::Xml => "application/xml",
        }
    }
}

/// Reads the text and structure of a document.
///
/// # Errors
/// [`ExtractError`] says what is wrong with the document: damage, no text, a bound exceeded.
pub fn extract(format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
    let text = match format {
        Format::Html => decode::html(bytes),
        Format::Xml => decode::xml(bytes),
        Format::Txt | Format::Md | Format::Json | Format::Csv | Format::Tsv => decode::text(bytes),
    };
    let extracted = match format {
        Format::Txt => txt::read(text)?,
        Format::Md => md::read(text)?,
        Format::Html => html::read(&text)?,
        Format::Json => json::read(&text)?,
        Format::Csv => delimited::read(&text, None)?,
        Format::Tsv => delimited::read(&text, Some(b'\t'))?,
        Format::Xml => xml::read(&text)?,
    };
    if outline::is_blank(&extracted.text) {
        return Err(ExtractError::NoText);
    }
    Ok(extracted)
}
