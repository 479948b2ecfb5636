//! Writes RTF paragraphs and rows as blocks.

use crate::flow::{Flow, INDENT_LEVELS_MAX};
use crate::grid::Piece;
use crate::outline::too_long;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// Maximum cells per row.
const CELLS_MAX: usize = 256;
/// Maximum nesting of text groups, such as a note in a box in a note.
const NESTED_MAX: usize = 16;

/// The merge state of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Merge {
    /// Not merged, or the first of merged cells.
    #[default]
    None,
    /// Merged with the cell to its left.
    Left,
    /// Merged with the cell above it.
    Above,
}

/// Paragraph properties.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Properties {
    /// The heading level, from 1.
    pub heading: Option<u8>,
    /// The list level, from 0.
    pub level: usize,
    /// Whether it is in a table cell.
    pub is_in_table: bool,
}

/// The document being built.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    /// The current paragraph.
    line: String,
    /// The marker of the current list item.
    mark: String,
    /// Paragraphs interrupted by a note or text box.
    left: Vec<String>,
    /// The cells of the current row, and the blocks of the current cell.
    cells: Vec<Vec<Piece>>,
    cell: Vec<Piece>,
    /// The merge states of the cells in the row.
    merges: Vec<Merge>,
    held: usize,
}

impl Writer {
    /// Sets the title of the document.
    pub(super) fn set_title(&mut self, title: &str) {
        self.flow.set_title(title);
    }

    /// Appends to the paragraph, or to the marker of its list item.
    pub(super) fn text(&mut self, text: &str, is_mark: bool) -> Result<(), ExtractError> {
        self.held += text.len();
        if self.flow.len() + self.held > TEXT_BYTES_MAX * 2 {
            return Err(too_long());
        }
        if is_mark {
            self.mark.push_str(text);
        } else {
            self.line.push_str(text);
        }
        Ok(())
    }

    /// Ends the paragraph.
    pub(super) fn paragraph(&mut self, properties: Properties) -> Result<(), ExtractError> {
        if !self.left.is_empty() {
            self.line.push('\n');
            return Ok(());
        }
        let is_in_row = properties.is_in_table || !self.cells.is_empty() || !self.cell.is_empty();
        let (kind, text) = self.take_block(properties);
        if is_in_row {
            if !text.trim().is_empty() {
                self.cell.push(Piece::new(kind, text));
            }
            return Ok(());
        }
        self.flow.end_table()?;
        self.held = 0;
        match kind {
            BlockKind::Heading { level } => self.flow.heading(level, &text)?,
            kind => self.flow.block(kind, &text)?,
        }
        self.flow.write_notes()
    }

    /// Takes the paragraph as a block, with markers and tabs resolved.
    fn take_block(&mut self, properties: Properties) -> (BlockKind, String) {
        let line = std::mem::take(&mut self.line);
        let mut mark = std::mem::take(&mut self.mark).trim().to_owned();
        let mut text = line.trim();
        // Many programs write the bullet and a tab as text.
        let typed = text.split_once('\t').map(|(sign, rest)| (sign.trim(), rest));
        if let Some((sign, rest)) = typed.filter(|(sign, _)| mark.is_empty() && is_mark(sign)) {
            mark = sign.to_owned();
            text = rest.trim();
        }
        let text = text.replace('\t', " ");
        if let Some(level) = properties.heading {
            let is_numbered = mark.chars().any(char::is_alphanumeric);
            let text = if is_numbered { format!("{mark} {text}") } else { text };
            return (BlockKind::Heading { level }, text);
        }
        if mark.is_empty() || text.is_empty() {
            return (BlockKind::Paragraph, text);
        }
        let is_numbered = mark.chars().any(char::is_alphanumeric) && mark.len() > 1;
        let mark = if is_numbered { mark.as_str() } else { "-" };
        (
            BlockKind::ListItem,
            format!("{}{mark} {text}", "  ".repeat(properties.level.min(INDENT_LEVELS_MAX))),
        )
    }

    /// Starts a row definition.
    pub(super) fn row_begins(&mut self) {
        self.merges.clear();
    }

    /// Adds the definition of the next cell in the row.
    pub(super) fn cell_described(&mut self, merge: Merge) {
        if self.merges.len() < CELLS_MAX {
            self.merges.push(merge);
        }
    }

    /// Ends a cell.
    pub(super) fn cell(&mut self, properties: Properties) {
        let (kind, text) = self.take_block(properties);
        self.cell.push(Piece::new(kind, text));
        let cell = std::mem::take(&mut self.cell);
        if self.cells.len() < CELLS_MAX {
            self.cells.push(cell);
        } else if let Some(last) = self.cells.last_mut() {
            last.extend(cell);
        }
    }

    /// Ends a row.
    pub(super) fn row(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        if cells.is_empty() {
            return;
        }
        if !self.flow.is_in_table() {
            self.flow.begin_table();
        }
        let Some(table) = self.flow.table() else { return };
        table.row();
        for (number, pieces) in cells.into_iter().enumerate() {
            let merge = self.merges.get(number).copied().unwrap_or_default();
            table.cell(1, 1);
            table.reshape(1, merge == Merge::Above);
            if merge == Merge::Left {
                continue;
            }
            for piece in pieces {
                table.add(piece);
            }
        }
    }

    /// Interrupts the paragraph for a note, text box or header; returns whether it may be read.
    pub(super) fn leave(&mut self) -> bool {
        if self.left.len() >= NESTED_MAX {
            return false;
        }
        self.left.push(std::mem::take(&mut self.line));
        true
    }

    /// Resumes the interrupted paragraph and returns the text written since.
    fn back(&mut self) -> String {
        let text = std::mem::take(&mut self.line);
        self.line = self.left.pop().unwrap_or_default();
        text.replace('\t', " ")
    }

    /// Ends a note.
    pub(super) fn end_note(&mut self) {
        let note = self.back().split_whitespace().collect::<Vec<_>>().join(" ");
        self.flow.note(&note);
    }

    /// Ends a text box, which comes before the paragraph it is anchored to.
    pub(super) fn end_box(&mut self) -> Result<(), ExtractError> {
        let text = self.back();
        for line in text.lines() {
            self.flow.block(BlockKind::Paragraph, line.trim())?;
        }
        Ok(())
    }

    /// Ends a header or footer.
    pub(super) fn end_margin(&mut self) {
        let text = self.back();
        self.flow.margin(&text);
    }

    /// Returns the finished document.
    pub(super) fn finish(mut self, properties: Properties) -> Result<Extracted, ExtractError> {
        while !self.left.is_empty() {
            self.end_box()?;
        }
        if !self.cell.is_empty() || !self.cells.is_empty() {
            self.cell(properties);
            self.row();
        }
        self.flow.end_table()?;
        self.paragraph(Properties { is_in_table: false, ..properties })?;
        self.flow.write_notes()?;
        self.flow.finish()
    }
}

/// Whether the text before a tab is a list marker: a bullet, or a number with a full stop.
fn is_mark(sign: &str) -> bool {
    let mut characters = sign.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) => matches!(
            c,
            '\u{2022}' | '\u{B7}' | '\u{25CF}' | '\u{25E6}' | '\u{25AA}' | '-' | '*' | '\u{2013}'
        ),
        (Some(_), Some(_)) => {
            let number = sign.trim_matches(['.', ')', '(']);
            number.len() < sign.len()
                && number.len() <= 4
                && !number.is_empty()
                && (number.bytes().all(|b| b.is_ascii_digit()) || number.len() == 1)
        }
        _ => false,
    }
}
