//! Builds the flowing text of a document while a reader walks it: blocks, tables, notes, headers
//! and footers. Blocks inside a table go to its cells, all others to the outline.

use std::collections::BTreeSet;

use crate::grid::{Grid, Letters, Piece, Rendered};
use crate::outline::{Outline, too_long};
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted, PageRef, Warning};

/// Maximum number of indentation levels of list items.
pub(super) const INDENT_LEVELS_MAX: usize = 8;
/// Minimum number of letters for a header to be more than "Page 3 of 7".
const HEADER_LETTERS_MIN: usize = 10;

/// A document under construction.
#[derive(Debug, Default)]
pub(super) struct Flow {
    outline: Outline,
    /// The letter counts of the blocks of the outline, up to the last one with such counts.
    letters: Vec<Option<Letters>>,
    /// The open tables, outermost first.
    tables: Vec<Grid>,
    /// Bytes in open tables.
    held: usize,
    /// Notes waiting for the end of their paragraph.
    notes: Vec<String>,
    note_count: usize,
    /// Headers and footers waiting for the end of the document, and their normalised texts.
    margins: Vec<String>,
    margins_seen: BTreeSet<String>,
}

impl Flow {
    /// Adds a block.
    pub(super) fn block(&mut self, kind: BlockKind, text: &str) -> Result<(), ExtractError> {
        self.piece(Piece::new(kind, text))
    }

    /// Adds a heading; `text` is without markers.
    pub(super) fn heading(&mut self, level: u8, text: &str) -> Result<(), ExtractError> {
        self.block(BlockKind::Heading { level: level.clamp(1, 6) }, text)
    }

    /// Adds a list item; `level` counts from 0.
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

    /// Adds a block with all its properties.
    pub(super) fn piece(&mut self, piece: Piece) -> Result<(), ExtractError> {
        let size = piece.text.len() + piece.flat.as_ref().map_or(0, String::len);
        if self.outline.len() + self.held + size > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        let Some(table) = self.tables.last_mut() else {
            let before = self.outline.count();
            match piece.kind {
                BlockKind::Heading { level } => self.outline.heading(level, &piece.text)?,
                kind => self.outline.push(kind, &piece.text)?,
            }
            if piece.letters.is_some() && self.outline.count() > before {
                self.letters.resize(before, None);
                self.letters.push(piece.letters);
            }
            return Ok(());
        };
        if !piece.text.trim().is_empty() {
            self.held += size;
            table.add(piece);
        }
        Ok(())
    }

    /// Adds a block before the innermost open table, such as its caption.
    pub(super) fn piece_before_table(&mut self, piece: Piece) -> Result<(), ExtractError> {
        let table = self.tables.pop();
        let added = self.piece(piece);
        self.tables.extend(table);
        added
    }

    /// Whether a table is open.
    pub(super) fn is_in_table(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Starts a table.
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
        self.write_table(table)
    }

    /// Adds a complete table.
    pub(super) fn write_table(&mut self, table: Grid) -> Result<(), ExtractError> {
        let rendered = table.finish();
        if self.tables.is_empty() {
            self.held = 0;
        }
        match rendered {
            Rendered::Table { markdown, flat } => {
                let flat = Some(flat).filter(|_| self.is_in_table());
                self.piece(Piece { flat, ..Piece::new(BlockKind::Table, markdown) })
            }
            Rendered::Layout(pieces) => pieces.into_iter().try_for_each(|piece| self.piece(piece)),
        }
    }

    /// Numbers a note and holds it until [`Self::write_notes`]; ignores a blank one.
    pub(super) fn note(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.note_count += 1;
            self.notes.push(format!("[{}] {text}", self.note_count));
        }
    }

    /// Adds the notes held back.
    pub(super) fn write_notes(&mut self) -> Result<(), ExtractError> {
        let notes = std::mem::take(&mut self.notes);
        notes.iter().try_for_each(|note| self.block(BlockKind::Paragraph, note))
    }

    /// Holds a header or footer for the end of the document. Each distinct one is kept once, and
    /// those with little more than a page number are ignored.
    pub(super) fn margin(&mut self, text: &str) {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let letters = words.chars().filter(|c| c.is_alphabetic()).count();
        if letters >= HEADER_LETTERS_MIN && self.margins_seen.insert(words) {
            self.margins.push(text.trim().to_owned());
        }
    }

    /// Sets the page on which the next block begins.
    pub(super) fn page(&mut self, page: PageRef) {
        self.outline.page(page);
    }

    /// Sets the title of the document.
    pub(super) fn set_title(&mut self, title: &str) {
        self.outline.set_title(title);
    }

    /// Appends the blocks of another document.
    pub(super) fn append(&mut self, other: &Extracted) -> Result<(), ExtractError> {
        self.outline.append(other)
    }

    /// Warns about content that is missing from the text.
    pub(super) fn warn(&mut self, warning: Warning) {
        self.outline.warn(warning);
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.outline.len() + self.held
    }

    /// Finishes the document, ending any open tables.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        self.end()?;
        Ok(self.outline.finish())
    }

    /// Finishes the document; also returns the letter counts of its blocks.
    pub(super) fn finish_with_letters(
        mut self,
    ) -> Result<(Extracted, Vec<Option<Letters>>), ExtractError> {
        self.end()?;
        self.letters.resize(self.outline.count(), None);
        Ok((self.outline.finish(), self.letters))
    }

    /// Ends any open tables, and adds headers and footers.
    fn end(&mut self) -> Result<(), ExtractError> {
        while self.is_in_table() {
            self.end_table()?;
        }
        let margins = std::mem::take(&mut self.margins);
        margins.iter().try_for_each(|text| self.block(BlockKind::Paragraph, text))
    }
}
