//! A sheet of cells of any format: its tables are found and written as records or rows.
//!
//! ```text
//! cells, merges -> islands (cells that touch) -> titles, header -> records or Markdown
//! ```
//! A sheet may hold several tables beside and below each other, with titles between them. Cells
//! that touch belong together. Where a table has a row of names, each row below becomes a record of
//! `name: value` lines, because a row with the names of its columns resembles a question about it;
//! other tables become Markdown.
//!
//! Only cells with text are held, so the cost grows with the text and not with the area.
//!
//! - `islands`: groups of cells; `header`: the row that names the columns; `names`: what is a name
//! - `dates`: days and times

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

/// Cells of one sheet. At 20 bytes of markup and more for each, no larger one fits its bounds.
const CELLS_MAX: usize = 2_000_000;
/// Merged areas that are read, and the cells that they may fill in all.
const MERGES_MAX: usize = 20_000;

/// A cell with text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    row: u32,
    column: u32,
    start: u32,
    end: u32,
    /// Whether it holds a number, a day or a truth value.
    is_value: bool,
}

/// A sheet under construction.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    cells: Vec<Cell>,
    text: String,
    /// Areas that were merged over several rows: first and last place.
    merges: Vec<[(u32, u32); 2]>,
}

impl Sheet {
    /// Adds a cell. Rows and columns count from 1.
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

    /// Merges an area: it shows the text of its first cell.
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

    /// Repeats a cell that spans rows in each of them.
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
        // Stable: where a covered cell has a text of its own, that stays.
        self.cells.sort_by_key(|cell| (cell.row, cell.column));
        self.cells.dedup_by_key(|cell| (cell.row, cell.column));
    }
}

/// The ranges of rows in cells that are sorted.
fn rows_of(cells: &[Cell]) -> Vec<&[Cell]> {
    cells.chunk_by(|one, next| one.row == next.row).collect()
}

/// The text of a cell.
fn text_of<'t>(cell: &Cell, text: &'t str) -> &'t str {
    let range: Range<usize> = cell.start as usize..cell.end as usize;
    text.get(range).unwrap_or("")
}
