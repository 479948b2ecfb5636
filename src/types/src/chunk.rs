//! One searchable piece of a source, and its position in the source.

use serde::{Deserialize, Serialize};

/// A page number and its kind, which decides the member of `layout` that shows it: `page`, `slide`
/// or `sheet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PageRef {
    /// The whole document, for formats without pages; reported as page 1.
    #[default]
    Whole,
    /// A page of a paginated document, from 1.
    Page(u32),
    /// A slide, from 1.
    Slide(u32),
    /// A sheet, from 1.
    Sheet(u32),
}

/// Position of a chunk in the extracted text. Offsets count Unicode characters from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkPlace {
    /// Offset of the first character in the whole text.
    pub document_start: u32,
    /// Offset of the first character on its page.
    pub page_start: u32,
    /// Length in characters.
    pub chars: u32,
    /// The page on which the chunk begins.
    pub page: PageRef,
}

/// One chunk as the chunker produces it: exactly the text at its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkDraft {
    /// The text.
    pub text: String,
    /// Its position.
    pub place: ChunkPlace,
}
