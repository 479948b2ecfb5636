//! Finds the tables in a sheet of cells, in any format, and writes them as records or rows.
//!
//! ```text
//! cells, merges -> islands (cells that touch) -> titles, header -> records or Markdown
//! ```
//! A sheet may contain several tables next to and below each other, with titles between them. Cells
//! that touch belong together. In a table with a header, each row becomes a record of `name: value`
//! lines, because a row with its column names resembles a question about it; other tables become
//! Markdown.
//!
//! Only cells with text are stored, so the cost grows with the text, not with the area.
//!
//! - `islands`: groups of cells; `header`: header rows; `names`: column name rules
//! - `dates`: dates and times

pub(super) mod dates;
mod header;
mod islands;
pub(super) mod names;

use std::ops::Range;

pub(super) use header::names_columns;

use crate::flow::Flow;
use crate::grid::REPEATED_BYTES_MAX;
use crate::outline::too_long;
use crate::{ExtractError, TEXT_BYTES_MAX};

/// Maximum cells per sheet. At 20 or more bytes of markup per cell, no accepted file has more.
const CELLS_MAX: usize = 2_000_000;
/// Maximum merged areas, and maximum cells they may fill in total.
const MERGES_MAX: usize = 20_000;

/// A cell with text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    row: u32,
    column: u32,
    start: u32,
    end: u32,
    /// Whether it contains a number, a date or a boolean.
    is_value: bool,
}

/// A sheet being built.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    cells: Vec<Cell>,
    text: String,
    /// Areas merged over several rows: first and last cell.
    merges: Vec<[(u32, u32); 2]>,
}

impl Sheet {
    /// Adds a cell. Rows and columns are counted from 1.
    pub(super) fn cell(
        &mut self,
        row: u32,
        column: u32,
        text: &str,
        is_value: bool,
    ) -> Result<(), ExtractError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if self.cells.len() >= CELLS_MAX {
            return Err(ExtractError::BeyondLimit { what: "cells in a sheet", max: CELLS_MAX });
        }
        if self.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        let start = self.text.len() as u32;
        for (number, word) in text.split_whitespace().enumerate() {
            if number > 0 {
                self.text.push(' ');
            }
            self.text.push_str(word);
        }
        self.cells.push(Cell { row, column, start, end: self.text.len() as u32, is_value });
        Ok(())
    }

    /// Merges an area, which shows the text of its first cell.
    pub(super) fn merge(&mut self, first: (u32, u32), last: (u32, u32)) {
        if last.0 > first.0 && last.1 >= first.1 && self.merges.len() < MERGES_MAX {
            self.merges.push([first, last]);
        }
    }

    /// Writes the tables of the sheet.
    pub(super) fn write(mut self, flow: &mut Flow) -> Result<(), ExtractError> {
        self.cells.sort_by_key(|cell| (cell.row, cell.column));
        self.cells.dedup_by_key(|cell| (cell.row, cell.column));
        self.repeat_merged();
        let mut last_header: Option<header::Header> = None;
        for island in islands::found(&self.cells) {
            let rows = rows_of(&island);
            last_header = header::write(&rows, &self.text, last_header, flow)?;
        }
        Ok(())
    }

    /// Repeats a cell that spans several rows in each of them.
    fn repeat_merged(&mut self) {
        let mut added = Vec::new();
        for [first, last] in &self.merges {
            let found = self.cells.binary_search_by_key(first, |cell| (cell.row, cell.column));
            let Ok(index) = found else { continue };
            let cell = self.cells[index];
            if (cell.end - cell.start) as usize > REPEATED_BYTES_MAX {
                continue;
            }
            for row in first.0 + 1..=last.0 {
                if added.len() >= MERGES_MAX {
                    break;
                }
                added.push(Cell { row, ..cell });
            }
        }
        self.cells.append(&mut added);
        // The sort is stable: if a covered cell has its own text, it is kept.
        self.cells.sort_by_key(|cell| (cell.row, cell.column));
        self.cells.dedup_by_key(|cell| (cell.row, cell.column));
    }
}

/// Splits sorted cells into rows.
fn rows_of(cells: &[Cell]) -> Vec<&[Cell]> {
    cells.chunk_by(|one, next| one.row == next.row).collect()
}

/// The text of a cell.
fn text_of<'t>(cell: &Cell, text: &'t str) -> &'t str {
    let range: Range<usize> = cell.start as usize..cell.end as usize;
    text.get(range).unwrap_or("")
}
