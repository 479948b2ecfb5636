//! A table while it is read: cells that span columns and rows, and blocks inside cells.
//!
//! A cell that spans rows is repeated in each of them, so that a row can be read on its own; one
//! that spans columns is written once, followed by empty cells, so that columns stay below their
//! names. A table of one column, or one with a cell as long as a section, only arranges text: its
//! blocks are written one after the other.

use crate::TEXT_BYTES_MAX;
use lodestone_types::BlockKind;

/// Characters of a cell above which a table is a layout of text, not a table of values.
const CELL_CHARS_MAX: usize = 600;
/// Bytes of a cell above which it is not repeated in the rows that it spans.
const REPEATED_BYTES_MAX: usize = 100;
/// Columns that one cell may span.
const SPAN_MAX: usize = 256;
/// Columns of a row beyond which no cell spans more than one.
const COLUMNS_MAX: usize = 1024;
/// Rows that one cell may span.
const ROWS_MAX: usize = 4096;

/// A block inside a cell.
#[derive(Debug)]
pub(super) struct Piece {
    /// What it is.
    pub kind: BlockKind,
    /// Its text. A heading has no marks.
    pub text: String,
    /// A table inside the cell, as one line.
    pub flat: Option<String>,
}

#[derive(Debug, Default)]
struct Cell {
    /// Columns that it covers, 1 at least.
    columns: usize,
    /// Whether it is the lower part of the cell above it.
    is_below: bool,
    pieces: Vec<Piece>,
}

/// A table under way.
#[derive(Debug, Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
    /// For each column how many rows more the cell above covers.
    covered: Vec<usize>,
    /// The column at which the next cell stands.
    column: usize,
    /// Whether the last row was deleted.
    is_deleted: bool,
}

/// What a table turned out to be.
#[derive(Debug)]
pub(super) enum Rendered {
    /// A table of values, as Markdown and as one line.
    Table {
        /// One row a line.
        markdown: String,
        /// Its cells in order.
        flat: String,
    },
    /// Text that was arranged in a table: its blocks in order.
    Layout(Vec<Piece>),
}

impl Grid {
    /// Begins a row.
    pub(super) fn row(&mut self) {
        // Most tables cover nothing; those that do are bounded in width.
        for rows in &mut self.covered {
            *rows = rows.saturating_sub(1);
        }
        if std::mem::take(&mut self.is_deleted) {
            self.rows.pop();
        }
        self.rows.push(Vec::new());
        self.column = 0;
    }

    /// Says of the last row whether it was deleted.
    pub(super) fn set_deleted(&mut self, is_deleted: bool) {
        self.is_deleted = is_deleted;
    }

    /// Says of the last cell how many columns it covers, and whether it goes on with the one
    /// above it.
    pub(super) fn reshape(&mut self, columns: usize, is_below: bool) {
        let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) else { return };
        let columns = if self.column >= COLUMNS_MAX { 1 } else { columns.clamp(1, SPAN_MAX) };
        self.column = self.column - cell.columns + columns;
        cell.columns = columns;
        cell.is_below = is_below;
    }

    /// Begins a cell that covers so many columns and rows, itself counted.
    pub(super) fn cell(&mut self, columns: usize, rows: usize) {
        let columns = columns.clamp(1, SPAN_MAX);
        let end = self.column + columns;
        if rows > 1 && end <= COLUMNS_MAX {
            self.covered.resize(self.covered.len().max(end), 0);
            self.covered[self.column..end].fill(rows.min(ROWS_MAX));
        }
        self.push(Cell { columns, is_below: false, pieces: Vec::new() });
    }

    /// Begins a cell of a table that leaves out the cells which others cover.
    pub(super) fn cell_between(&mut self, columns: usize, rows: usize) {
        if self.rows.is_empty() {
            self.row();
        }
        while self.covered.get(self.column).is_some_and(|rows| *rows > 0) {
            self.hidden();
        }
        self.cell(columns, rows);
    }

    /// Begins a cell whose other columns follow as cells of their own.
    pub(super) fn cell_over(&mut self, columns: usize, rows: usize) {
        let column = self.column;
        self.cell(1, rows);
        let end = column.saturating_add(columns.clamp(1, SPAN_MAX));
        if rows > 1 && end <= COLUMNS_MAX {
            self.covered.resize(self.covered.len().max(end), 0);
            self.covered[column..end].fill(rows.min(ROWS_MAX));
        }
    }

    /// Begins a cell that another one covers: from above where that reaches so far, else from the
    /// left.
    pub(super) fn hidden(&mut self) {
        let is_below = self.covered.get(self.column).is_some_and(|rows| *rows > 0);
        self.push(Cell { columns: 1, is_below, pieces: Vec::new() });
    }

    fn push(&mut self, mut cell: Cell) {
        if self.rows.is_empty() {
            self.row();
        }
        if self.column >= COLUMNS_MAX {
            cell.columns = 1;
        }
        self.column = self.column.saturating_add(cell.columns);
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Adds a block to the last cell.
    pub(super) fn add(&mut self, piece: Piece) {
        if piece.text.trim().is_empty() {
            return;
        }
        if self.rows.last().is_none_or(Vec::is_empty) {
            self.cell(1, 1);
        }
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.pieces.push(piece);
        }
    }

    /// Ends the table.
    pub(super) fn finish(mut self) -> Rendered {
        if self.is_deleted {
            self.rows.pop();
        }
        let width = |row: &Vec<Cell>| row.iter().map(|cell| cell.columns).sum::<usize>();
        let is_narrow = self.rows.iter().map(width).max().unwrap_or(0) < 2;
        let is_long = |cell: &Cell| {
            let pieces = cell.pieces.iter();
            pieces.map(|piece| piece.text.chars().count()).sum::<usize>() > CELL_CHARS_MAX
        };
        if is_narrow || self.rows.iter().flatten().any(is_long) {
            let cells = self.rows.into_iter().flatten();
            return Rendered::Layout(cells.flat_map(|cell| cell.pieces).collect());
        }
        let mut markdown = String::new();
        let mut flat = String::new();
        let mut above: Vec<String> = Vec::new();
        for row in &self.rows {
            // Spans and repetitions can make more of a table than was read; the caller refuses it.
            if markdown.len() > TEXT_BYTES_MAX {
                break;
            }
            let texts = texts_of(row, &above);
            if texts.iter().all(String::is_empty) {
                continue;
            }
            for text in texts.iter().filter(|text| !text.is_empty()) {
                if !flat.is_empty() {
                    flat.push(' ');
                }
                flat.push_str(text);
            }
            let is_first = markdown.is_empty();
            write_row(&texts, &mut markdown);
            if is_first {
                markdown.push_str(&"| --- ".repeat(texts.len()));
                markdown.push_str("|\n");
            }
            above = texts;
        }
        Rendered::Table { markdown, flat }
    }
}

/// One text a column. `above` are those of the row before.
fn texts_of(row: &[Cell], above: &[String]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for cell in row {
        let column = texts.len();
        let repeated = above
            .get(column)
            .filter(|text| cell.is_below && cell.pieces.is_empty() && !text.is_empty())
            .filter(|text| text.len() <= REPEATED_BYTES_MAX);
        texts.push(match repeated {
            Some(text) => text.clone(),
            None => joined(&cell.pieces),
        });
        texts.resize(column + cell.columns, String::new());
    }
    texts
}

fn joined(pieces: &[Piece]) -> String {
    let mut line = String::new();
    for piece in pieces {
        for word in piece.flat.as_deref().unwrap_or(&piece.text).split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

/// Writes one row of Markdown.
pub(super) fn write_row(texts: &[String], markdown: &mut String) {
    markdown.push('|');
    for text in texts {
        markdown.push(' ');
        markdown.push_str(&text.replace('|', "\\|"));
        markdown.push_str(" |");
    }
    markdown.push('\n');
}
