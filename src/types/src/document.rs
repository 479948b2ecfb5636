//! An extracted document: its text and structure, on the way from extraction to chunking.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Geometry, PageRef, Warning};

/// Kind of a block of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockKind {
    /// A heading.
    Heading {
        /// 1 for the highest, 6 for the lowest.
        level: u8,
    },
    /// A paragraph of prose.
    Paragraph,
    /// One item of a list, without the items below it.
    ListItem,
    /// A whole table, one row a line.
    Table,
    /// A listing; its line breaks count.
    Code,
    /// One record of structured data: a row, an object, an entry.
    Record,
}

/// A block of text of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its kind.
    pub kind: BlockKind,
    /// Its bytes in [`Extracted::text`], never empty, on character boundaries.
    pub range: Range<usize>,
}

/// Start of a page, a slide or a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStart {
    /// The page.
    pub page: PageRef,
    /// A byte of [`Extracted::text`]: the first of the page's first block.
    pub start: usize,
}

/// The text of a document. Blocks ascend and do not overlap; text between them is white space.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// Unicode text with LF line ends and without U+0000.
    pub text: String,
    /// The document's own title, where it has one.
    pub title: Option<String>,
    /// Its structure.
    pub blocks: Vec<Block>,
    /// Starts of its pages, ascending. Empty for formats without pages; pages without text are
    /// not among them.
    pub pages: Vec<PageStart>,
    /// Positions of its lines on the pages, for formats whose pages are fixed.
    #[serde(default)]
    pub geometry: Geometry,
    /// Parts of the document that are not in the text.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}
