//! Reads Rich Text Format: control words, groups and text in code pages.
//!
//! ```text
//! bytes -> tokens -> groups (destination, font, hidden) -> paragraphs and rows -> flow
//! ```
//! Destinations without document text (fonts, pictures, styles, unknown starred ones) are skipped.
//! A table is a run of rows; a nested table is read as text of its cell.
//!
//! - `tokens`: the grammar; `destinations`: the purpose of groups
//! - `reader`: groups and control words; `writer`: paragraphs, rows, notes
//! - `code_pages`: encodings

pub(super) mod code_pages;
mod destinations;
mod reader;
mod tokens;
mod writer;

use crate::ExtractError;
use crate::rtf::reader::Reader;
use crate::rtf::tokens::Tokens;
use lodestone_types::Extracted;

/// Reads an RTF document.
pub(super) fn read(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    if !bytes.starts_with(b"{\\rtf") {
        let problem = "it does not begin with {\\rtf".to_owned();
        return Err(ExtractError::Broken { format: "RTF", problem });
    }
    let mut reader = Reader::default();
    for token in Tokens::new(bytes) {
        reader.token(token)?;
    }
    reader.finish()
}
