//! An extracted document: its text and structure, as handed from extraction to chunking.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Geometry, PageRef, Warning};

/// Kind of a block of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockKind {
    /// A heading.
    Heading {
        /// From 1, the highest, to 6, the lowest.
        level: u8,
    },
    /// A paragraph of prose.
    Paragraph,
    /// One list item, without the items nested below it.
    ListItem,
    /// A whole table, one row per line.
    Table,
    /// A code listing; line breaks are significant.
    Code,
    /// One record of structured data: a row, an object, an entry.
    Record,
}

/// A block of text of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its kind.
    pub kind: BlockKind,
    /// Byte range in [`Extracted::text`]; never empty, on character boundaries.
    pub range: Range<usize>,
}

/// The start of a page, slide or sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStart {
    /// The page.
    pub page: PageRef,
    /// Byte offset in [`Extracted::text`] of the page's first block.
    pub start: usize,
}

/// The text and structure of a document. Blocks are ascending and disjoint; the text between them
/// is white space.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// Unicode text with LF line endings and without U+0000.
    pub text: String,
    /// The title found in the document itself, if any.
    pub title: Option<String>,
    /// The blocks that make up the document.
    pub blocks: Vec<Block>,
    /// Page starts, ascending. Empty for formats without pages; pages without text are omitted.
    pub pages: Vec<PageStart>,
    /// Positions of the lines on the pages, for formats with a fixed page layout.
    #[serde(default)]
    pub geometry: Geometry,
    /// Parts of the document that are missing from the text.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}
