//! One searchable piece of a source, and its position in the source.

use serde::{Deserialize, Serialize};

/// Kind of a page number, which decides its name in `layout` (API 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PageRef {
    /// Formats without pages: everything is on page 1.
    #[default]
    Whole,
    /// A page of a paged document, from 1.
    Page(u32),
    /// A slide, from 1.
    Slide(u32),
    /// A sheet, from 1.
    Sheet(u32),
}

/// Position of a chunk in the extracted text. Indexes count Unicode characters from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkPlace {
    /// First character in the whole text.
    pub document_start: u32,
    /// First character on its page.
    pub page_start: u32,
    /// Characters of the chunk.
    pub chars: u32,
    /// The page on which it begins.
    pub page: PageRef,
}

/// Output of the chunker: exactly the text at its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkDraft {
    /// The text.
    pub text: String,
    /// Its position.
    pub place: ChunkPlace,
}
