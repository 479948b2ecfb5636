//! Blocks and tables of a document while a reader walks it: what is inside a table goes to its
//! cells, everything else to the outline.

use crate::grid::{Grid, Piece, Rendered};
use crate::outline::{Outline, too_long};
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted, PageRef};

/// Levels by which items are indented at most.
const INDENT_LEVELS_MAX: usize = 8;

/// A document under construction.
#[derive(Debug, Default)]
pub(super) struct Flow {
    outline: Outline,
    /// The tables that are open, outermost first.
    tables: Vec<Grid>,
    /// Bytes that stand in open tables.
    held: usize,
}

impl Flow {
    /// Adds a block.
    pub(super) fn block(&mut self, kind: BlockKind, text: &str) -> Result<(), ExtractError> {
        self.piece(Piece { kind, text: text.to_owned(), flat: None })
    }

    /// Adds a heading; `text` has no marks.
    pub(super) fn heading(&mut self, level: u8, text: &str) -> Result<(), ExtractError> {
        self.block(BlockKind::Heading { level: level.clamp(1, 6) }, text)
    }

    /// Adds an item of a list, `level` counted from 0.
    pub(super) fn item(
        &mut self,
        level: usize,
        mark: &str,
        text: &str,
    ) -> Result<(), ExtractError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let indent = "  ".repeat(level.min(INDENT_LEVELS_MAX));
        self.block(BlockKind::ListItem, &format!("{indent}{mark} {}", text.trim()))
    }

    fn piece(&mut self, piece: Piece) -> Result<(), ExtractError> {
        let size = piece.text.len() + piece.flat.as_ref().map_or(0, String::len);
        if self.outline.len() + self.held + size > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        let Some(table) = self.tables.last_mut() else {
            return match piece.kind {
                BlockKind::Heading { level } => self.outline.heading(level, &piece.text),
                kind => self.outline.push(kind, &piece.text),
            };
        };
        if !piece.text.trim().is_empty() {
            self.held += size;
            table.add(piece);
        }
        Ok(())
    }

    /// Whether a table is open.
    pub(super) fn is_in_table(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Begins a table.
    pub(super) fn begin_table(&mut self) {
        self.tables.push(Grid::default());
    }

    /// The innermost open table.
    pub(super) fn table(&mut self) -> Option<&mut Grid> {
        self.tables.last_mut()
    }

    /// Ends the innermost table.
    pub(super) fn end_table(&mut self) -> Result<(), ExtractError> {
        let Some(table) = self.tables.pop() else { return Ok(()) };
        let rendered = table.finish();
        if self.tables.is_empty() {
            self.held = 0;
        }
        match rendered {
            Rendered::Table { markdown, flat } => {
                let flat = Some(flat).filter(|_| self.is_in_table());
                self.piece(Piece { kind: BlockKind::Table, text: markdown, flat })
            }
            Rendered::Layout(pieces) => pieces.into_iter().try_for_each(|piece| self.piece(piece)),
        }
    }

    /// What follows stands on this page.
    pub(super) fn page(&mut self, page: PageRef) {
        self.outline.page(page);
    }

    /// Names the document.
    pub(super) fn set_title(&mut self, title: &str) {
        self.outline.set_title(title);
    }

    /// Appends the blocks of another document.
    pub(super) fn append(&mut self, other: &Extracted) -> Result<(), ExtractError> {
        self.outline.append(other)
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.outline.len() + self.held
    }

    /// The document; tables that are still open end.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        while self.is_in_table() {
            self.end_table()?;
        }
        Ok(self.outline.finish())
    }
}
