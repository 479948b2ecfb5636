//! Extracts text and structure from the bytes of a document; one file per format.
//!
//! This crate detects the format of a file and reads it. It knows nothing of chunks, models or
//! disks, opens nothing that a document refers to, and executes nothing that a document contains.
//!
//! ```text
//! bytes, name, media type -> detect -> Format
//! Format, bytes -> decode (encoding) -> text formats -----------> outline -> Extracted
//!               -> package (ZIP) -> events (XML) -> office, odf, epub -> flow -> outline
//!               -> compound (OLE), rtf, mail -------------------------> flow -> outline
//!               -> pdf (glyphs, lines, columns) ---------------------------> outline
//! ```
//!
//! Invariants (property tests in `tests.rs`):
//! - any bytes yield a document or an error, never a panic; no reader recurses;
//! - cost is linear in the input, whatever its shape: nesting, attributes and unclosed elements are
//!   counted and limited by the constants below, and so is the size of the text;
//! - text has LF line endings and no U+0000; blocks are ascending, disjoint and never blank.
//!
//! `txt` and `md` keep the source as it is, so that offsets refer to the original. The others
//! generate their text: headings, lists and tables as Markdown, records as `name: value` lines.
//!
//! - `detect`: format detection; `container`: the same for containers; `decode`: character
//!   encodings
//! - `flow`, `grid`: the two builders: flowing text, and the tables inside it
//! - `outline`: the text that both write, with its blocks; `clean`: replacement of presentation
//!   forms
//! - `sheet`: cells to tables; `numerals`: list numbering
//! - `budget`: limits per upload; `package`, `events`: ZIP and XML under that budget; `title`: the
//!   title from a container's document properties
//! - `compound`: compound files (OLE)
//! - `txt`, `md`, `html`, `json`, `delimited` (csv, tsv), `xml`: text formats
//! - `office` (docx, pptx, xlsx), `odf` (odt, ods, odp), `epub`, `rtf`, `mail` (eml, msg)
//! - `pdf`: from glyphs on pages to text in reading order, with the boxes of its lines
//! - `picture`: pages rendered as pictures
//! - `sandbox`: extraction in a separate process
//! - `error`: errors, and whether the document or the server is at fault

#![forbid(unsafe_code)]

mod budget;
mod clean;
mod compound;
mod container;
mod decode;
mod delimited;
mod detect;
#[cfg(test)]
mod document_tests;
mod epub;
mod error;
mod events;
mod flow;
mod grid;
mod html;
mod json;
mod mail;
mod md;
mod numerals;
mod odf;
mod office;
mod outline;
mod package;
mod pdf;
mod picture;
mod rtf;
pub mod sandbox;
mod sheet;
#[cfg(test)]
mod tests;
mod title;
mod txt;
mod xml;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use lodestone_types::{Extracted, Warning};

pub use detect::detect;
pub use error::ExtractError;
pub use html::HtmlHead;
pub use picture::{Drawing, PIXELS_MAX, PagePicture, draw};

/// Maximum bytes of text of one document.
pub const TEXT_BYTES_MAX: usize = 32 << 20;
/// Maximum nesting of JSON arrays and objects, and of XML elements.
pub const DEPTH_MAX: usize = 256;
/// Maximum nesting of HTML elements; deeper tags are ignored, but their text is kept.
pub const HTML_DEPTH_MAX: usize = 512;
/// Maximum attributes of one XML element.
pub const ATTRIBUTES_MAX: usize = 1000;

/// A supported document format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Plain text, source code and anything else without a known structure.
    Txt,
    /// Markdown.
    Md,
    /// HTML and XHTML.
    Html,
    /// HTML fetched from a web site, from which menus are removed. Never detected from a file.
    WebPage,
    /// JSON, or a sequence of JSON values (JSON Lines).
    Json,
    /// Values separated by commas, semicolons, tabs or bars.
    Csv,
    /// Values separated by tabs.
    Tsv,
    /// XML other than XHTML.
    Xml,
    /// Word document.
    Docx,
    /// PowerPoint presentation.
    Pptx,
    /// Excel workbook.
    Xlsx,
    /// OpenDocument text.
    Odt,
    /// OpenDocument spreadsheet.
    Ods,
    /// OpenDocument presentation.
    Odp,
    /// Electronic book.
    Epub,
    /// Rich Text Format.
    Rtf,
    /// An email message or a web archive (MIME).
    Eml,
    /// An Outlook message.
    Msg,
    /// Portable Document Format.
    Pdf,
}

impl Format {
    /// The usual extension, without the dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Md => "md",
            Self::Html | Self::WebPage => "html",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Xml => "xml",
            Self::Docx => "docx",
            Self::Pptx => "pptx",
            Self::Xlsx => "xlsx",
            Self::Odt => "odt",
            Self::Ods => "ods",
            Self::Odp => "odp",
            Self::Epub => "epub",
            Self::Rtf => "rtf",
            Self::Eml => "eml",
            Self::Msg => "msg",
            Self::Pdf => "pdf",
        }
    }

    /// Whether the reader works in a single pass in safe code, linear in the input and without
    /// recursion. Such formats do not need a process of their own.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Txt | Self::Md | Self::Json | Self::Csv | Self::Tsv)
    }

    /// Whether the format is a ZIP container.
    pub(crate) fn is_package(self) -> bool {
        use Format::{Docx, Epub, Odp, Ods, Odt, Pptx, Xlsx};
        matches!(self, Docx | Pptx | Xlsx | Odt | Ods | Odp | Epub)
    }

    /// The media type with which an original of this format is served.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Txt => "text/plain",
            Self::Md => "text/markdown",
            Self::Html | Self::WebPage => "text/html",
            Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
            Self::Xml => "application/xml",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Pptx => {
                "application/vnd.openxmlformats-officedocument.presentationml.presentation"
            }
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Odt => "application/vnd.oasis.opendocument.text",
            Self::Ods => "application/vnd.oasis.opendocument.spreadsheet",
            Self::Odp => "application/vnd.oasis.opendocument.presentation",
            Self::Epub => "application/epub+zip",
            Self::Rtf => "application/rtf",
            Self::Eml => "message/rfc822",
            Self::Msg => "application/vnd.ms-outlook",
            Self::Pdf => "application/pdf",
        }
    }
}

/// Extracts the text and structure of a document.
///
/// # Errors
/// If the document is damaged, encrypted, exceeds a limit, or contains no text.
pub fn extract(format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
    Ok(read(format, bytes, &Budget::default())?.1)
}

/// Extracts a document under its upload's budget, and determines its exact format: from the
/// outside, an archive was judged by a few names only. Returns both.
fn read(
    judged: Format,
    bytes: &[u8],
    budget: &Budget,
) -> Result<(Format, Extracted), ExtractError> {
    // Office encrypts a document by wrapping it in a compound file.
    let is_hidden = judged != Format::Msg && !judged.is_plain() && compound::is_encrypted(bytes);
    if is_hidden {
        return Err(ExtractError::Encrypted { format: "document" });
    }
    let format = container::exact(judged, bytes, budget)?;
    let extracted = match format {
        Format::Txt => txt::read(decode::text(bytes))?,
        Format::Md => md::read(decode::text(bytes))?,
        Format::Html => html::read_file(&decode::html(bytes))?,
        Format::WebPage => html::read_page(&decode::html(bytes))?,
        Format::Json => or_plain(decode::text(bytes), json::read)?,
        Format::Csv => or_plain(decode::text(bytes), |text| delimited::read(text, None))?,
        Format::Tsv => or_plain(decode::text(bytes), |text| delimited::read(text, Some(b'\t')))?,
        Format::Xml => or_plain(decode::xml(bytes), xml::read)?,
        Format::Docx => office::document::read(bytes, budget)?,
        Format::Pptx => office::slides::read(bytes, budget)?,
        Format::Xlsx => office::workbook::read(bytes, budget)?,
        Format::Odt | Format::Odp => odf::read_text(bytes, budget)?,
        Format::Ods => odf::read_sheets(bytes, budget)?,
        Format::Epub => epub::read(bytes, budget)?,
        Format::Rtf => rtf::read(bytes)?,
        Format::Eml => mail::read_eml(bytes, budget)?,
        Format::Msg => mail::read_msg(bytes, budget)?,
        Format::Pdf => pdf::read(bytes)?,
    };
    if outline::is_blank(&extracted.text) {
        return Err(ExtractError::NoText);
    }
    Ok((format, extracted))
}

/// Reads a text in its format, or as plain text if it does not quite conform.
fn or_plain(
    text: String,
    read: impl FnOnce(&str) -> Result<Extracted, ExtractError>,
) -> Result<Extracted, ExtractError> {
    match read(&text) {
        Err(ref error @ (ExtractError::Damaged { .. } | ExtractError::Commented { .. })) => {
            let warnings = vec![Warning::read_as_text(&error.to_string())];
            Ok(Extracted { warnings, ..txt::read(text)? })
        }
        read => read,
    }
}

/// Reads the title and canonical URL from the head of an HTML page.
pub fn html_head(bytes: &[u8]) -> HtmlHead {
    html::read_head(&decode::html(bytes))
}
