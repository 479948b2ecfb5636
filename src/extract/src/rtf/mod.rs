//! Rich Text Format: words, groups and bytes in code pages.
//!
//! ```text
//! bytes -> tokens -> groups (destination, font, hidden) -> paragraphs and rows -> flow
//! ```
//! Destinations that hold no text of the document (fonts, pictures, styles, unknown ones behind a
//! star) are passed over. A table is a run of rows; nested tables are taken as text of their cell.
//!
//! - `tokens`: the grammar; `destinations`: purposes of groups
//! - `reader`: groups and words; `writer`: paragraphs, rows, notes
//! - `code_pages`: bytes to letters

pub(super) mod code_pages;
mod destinations;
mod reader;
mod tokens;
mod writer;

use crate::ExtractError;
use crate::rtf::reader::Reader;
use crate::rtf::tokens::Tokens;
use lodestone_types::Extracted;

/// Reads RTF.
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
