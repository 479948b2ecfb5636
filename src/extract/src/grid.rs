//! A table while it is read: cells that span columns and rows, and blocks inside cells.
//!
//! A cell that spans rows is repeated in each of them, so that a row can be read on its own; one
//! that spans columns is written once, followed by empty cells, so that columns stay aligned with
//! their names. A table of one column, or with a cell as long as a section, is only used for
//! layout: its blocks are written one after the other. In HTML and XML such a cell becomes one
//! paragraph. Names of column groups are joined with the names of the columns below them.

use crate::TEXT_BYTES_MAX;
use crate::sheet::names::in_two_lines;
use lodestone_types::BlockKind;

/// Characters of a cell above which a table is layout rather than a table of values.
const CELL_CHARS_MAX: usize = 600;
/// Bytes of a cell above which it is not repeated in the rows that it spans.
pub(super) const REPEATED_BYTES_MAX: usize = 100;
/// Maximum number of columns that one cell may span.
const SPAN_MAX: usize = 256;
/// Number of columns of a row beyond which cells do not span any more.
const COLUMNS_MAX: usize = 256;
/// Rows examined to decide whether the column names take two lines.
const HEAD_ROWS: usize = 12;
/// Maximum number of rows that one cell may span.
const ROWS_MAX: usize = 4096;

/// Letter and link counts of one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Letters {
    /// All letters and digits.
    pub all: usize,
    /// Letters and digits in links.
    pub linked: usize,
    /// Number of links.
    pub links: usize,
    /// Whether the block is in the header of a page.
    pub is_in_header: bool,
}

/// A block on its way into a document or a cell.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its kind.
    pub kind: BlockKind,
    /// Its text. A heading is without markers.
    pub text: String,
    /// Its text within the line of a cell, if different.
    pub flat: Option<String>,
    /// Its letter counts, if the reader supplies them.
    pub letters: Option<Letters>,
}

impl Piece {
    /// Creates a block with only kind and text known.
    pub(super) fn new(kind: BlockKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), flat: None, letters: None }
    }
}

#[derive(Debug, Default)]
struct Cell {
    /// Number of columns covered, at least 1.
    columns: usize,
    /// Whether it continues the cell above it.
    is_below: bool,
    pieces: Vec<Piece>,
}

/// A table under construction.
#[derive(Debug, Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
    /// For each column, the number of further rows that a cell from above covers.
    covered: Vec<usize>,
    /// The column of the next cell.
    column: usize,
    /// Whether the last row was deleted.
    is_deleted: bool,
    /// Whether rows omit the cells covered from above.
    is_sparse: bool,
    /// Whether a cell of the first row is not a column name.
    is_nameless: bool,
}

/// A finished table.
#[derive(Debug)]
pub(super) enum Rendered {
    /// A table of values, as Markdown and as a single line.
    Table {
        /// One table row per line.
        markdown: String,
        /// Its cells in order.
        flat: String,
    },
    /// Text laid out by means of a table: its blocks in order.
    Layout(Vec<Piece>),
}

impl Grid {
    /// Starts a row.
    pub(super) fn row(&mut self) {
        self.fill();
        // Most tables cover nothing, and those that do have a bounded width.
        for rows in &mut self.covered {
            *rows = rows.saturating_sub(1);
        }
        if std::mem::take(&mut self.is_deleted) {
            self.rows.pop();
        }
        self.rows.push(Vec::new());
        self.column = 0;
    }

    /// Sets whether the last row was deleted.
    pub(super) fn set_deleted(&mut self, is_deleted: bool) {
        self.is_deleted = is_deleted;
    }

    /// Sets the number of columns covered by the last cell, and whether it continues the cell
    /// above.
    pub(super) fn reshape(&mut self, columns: usize, is_below: bool) {
        let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) else { return };
        let columns = if self.column >= COLUMNS_MAX { 1 } else { columns.clamp(1, SPAN_MAX) };
        self.column = self.column - cell.columns + columns;
        cell.columns = columns;
        cell.is_below = is_below;
    }

    /// Starts a cell that covers this many columns and rows, including its own.
    pub(super) fn cell(&mut self, columns: usize, rows: usize) {
        let columns = columns.clamp(1, SPAN_MAX);
        let end = self.column + columns;
        if rows > 1 && end <= COLUMNS_MAX {
            self.covered.resize(self.covered.len().max(end), 0);
            self.covered[self.column..end].fill(rows.min(ROWS_MAX));
        }
        self.push(Cell { columns, is_below: false, pieces: Vec::new() });
    }

    /// Starts a cell of a table that omits the cells covered by others.
    pub(super) fn cell_between(&mut self, columns: usize, rows: usize) {
        if self.rows.is_empty() {
            self.row();
        }
        self.is_sparse = true;
        self.fill();
        self.cell(columns, rows);
    }

    /// Adds the covered cells of a sparse row, up to the next one that is not covered.
    fn fill(&mut self) {
        while self.is_sparse && self.covered.get(self.column).is_some_and(|rows| *rows > 0) {
            self.hidden();
        }
    }

    /// Sets whether the last cell is a header. A first row without any such setting is one.
    pub(super) fn set_header(&mut self, is_header: bool) {
        self.is_nameless |= !is_header && self.rows.len() == 1;
    }

    /// Starts a cell whose other columns follow as cells of their own.
    pub(super) fn cell_over(&mut self, columns: usize, rows: usize) {
        let column = self.column;
        self.cell(1, rows);
        let end = column.saturating_add(columns.clamp(1, SPAN_MAX));
        if rows > 1 && end <= COLUMNS_MAX {
            self.covered.resize(self.covered.len().max(end), 0);
            self.covered[column..end].fill(rows.min(ROWS_MAX));
        }
    }

    /// Starts a cell that is covered by another one: from above if one reaches this far, else from
    /// the left.
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

    /// Finishes the table.
    pub(super) fn finish(mut self) -> Rendered {
        self.fill();
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
            let cells = self.rows.into_iter().flatten().flat_map(|mut cell| {
                let is_whole = !cell.pieces.iter().any(|piece| piece.kind == BlockKind::Table);
                if !is_long(&cell) {
                    cell.pieces.iter_mut().for_each(|piece| piece.letters = None);
                } else if self.is_sparse && is_whole {
                    cell.pieces = vec![paragraph(&cell.pieces)];
                }
                cell.pieces
            });
            return Rendered::Layout(cells.collect());
        }
        let mut markdown = String::new();
        let mut flat = String::new();
        let mut above: Vec<String> = Vec::new();
        let names = self.names_in_two_lines();
        for (number, row) in self.rows.iter().enumerate() {
            // Spans and repetitions can expand a table beyond its input; the caller refuses the
            // result.
            if markdown.len() > TEXT_BYTES_MAX {
                break;
            }
            let texts = match &names {
                Some(names) if number == 0 => names.clone(),
                Some(_) if number == 1 => continue,
                _ => texts_of(row, &above),
            };
            if texts.iter().all(String::is_empty) {
                continue;
            }
            for text in texts.iter().filter(|text| !text.is_empty()) {
                if !flat.is_empty() {
                    flat.push(' ');
                }
                flat.push_str(text);
            }
            let is_header = markdown.is_empty() && (names.is_some() || !self.is_nameless);
            write_row(&texts, is_header, &mut markdown);
            above = texts;
        }
        Rendered::Table { markdown, flat }
    }

    /// The column names, if the first two rows hold a part of each.
    fn names_in_two_lines(&self) -> Option<Vec<String>> {
        let mut head: Vec<Vec<String>> = Vec::new();
        for row in self.rows.iter().take(HEAD_ROWS) {
            let above = head.last().map_or(&[][..], Vec::as_slice);
            head.push(texts_of(row, above));
        }
        let texts = head.iter().map(|row| row.iter().map(String::as_str).collect());
        in_two_lines(&texts.collect::<Vec<_>>())
    }
}

/// One text per column. `above` has those of the previous row.
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

/// The pieces of a long cell as one paragraph.
fn paragraph(pieces: &[Piece]) -> Piece {
    let texts = pieces.iter().map(|piece| piece.flat.as_deref().unwrap_or(&piece.text));
    let add = |sum: Letters, piece: Letters| Letters {
        all: sum.all + piece.all,
        linked: sum.linked + piece.linked,
        links: sum.links + piece.links,
        is_in_header: piece.is_in_header,
    };
    let letters = pieces.iter().filter_map(|piece| piece.letters).reduce(add);
    let text = texts.collect::<Vec<_>>().join(" ");
    Piece { letters, ..Piece::new(BlockKind::Paragraph, text) }
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

/// Writes one row of Markdown, followed by the delimiter row if it holds the column names.
pub(super) fn write_row(texts: &[String], is_header: bool, markdown: &mut String) {
    markdown.push('|');
    for text in texts {
        markdown.push(' ');
        markdown.push_str(&text.replace('|', "\\|"));
        markdown.push_str(" |");
    }
    markdown.push('\n');
    if is_header {
        markdown.push_str(&"| --- ".repeat(texts.len()));
        markdown.push_str("|\n");
    }
}
