//! Spreadsheets: tables of cells, in which runs of equal rows and cells are stored once.

use crate::events::{Element, Event, Events};
use crate::flow::Flow;
use crate::office::workbook::formats;
use crate::package::Package;
use crate::sheet::Sheet;
use crate::{ExtractError, outline};
use lodestone_types::PageRef;

/// Maximum repetitions of a row or cell with text. Runs that fill a sheet to its end do not contain
/// text; runs of text are forms.
const REPEATED_MAX: u32 = 1000;
/// The largest row or column accepted; LibreOffice stops at 1,048,576 rows.
const INDEX_MAX: u32 = 1 << 21;

/// A cell of the current row.
#[derive(Debug, Clone)]
struct Cell {
    column: u32,
    text: String,
    is_value: bool,
    /// Number of consecutive columns in which it occurs.
    repeated: u32,
    /// Numbers of rows and columns that it spans.
    span: (u32, u32),
}

#[derive(Debug)]
struct Table {
    name: String,
    sheet: Sheet,
    row: u32,
    row_repeated: u32,
    column: u32,
    cells: Vec<Cell>,
    text: String,
    /// The value in the attributes of the cell.
    value: Option<String>,
    repeated: u32,
    span: (u32, u32),
    is_in_cell: bool,
}

/// Reads all sheets.
pub(super) fn read(package: &Package<'_>, flow: &mut Flow) -> Result<(), ExtractError> {
    let Some(part) = package.part("content.xml")? else { return Ok(()) };
    let mut events = Events::new(part)?;
    let mut number = 0;
    let mut table: Option<Table> = None;
    loop {
        let is_read = match events.next()? {
            Event::Open(element) => match (element.name(), &mut table) {
                ("table", None) => {
                    number += 1;
                    let name = element.attribute("name").unwrap_or_default();
                    table = Some(Table::new(name));
                    true
                }
                (_, Some(table)) => table.open(&element)?,
                ("automatic-styles" | "scripts" | "tracked-changes", None) => false,
                _ => true,
            },
            Event::Close(name) => {
                match (name.as_str(), &mut table) {
                    ("table", Some(_)) => {
                        if let Some(table) = table.take() {
                            write(table, number, flow)?;
                        }
                    }
                    (name, Some(table)) => table.close(name)?,
                    _ => {}
                }
                true
            }
            Event::Text(text) => {
                if let Some(table) = &mut table {
                    table.text(&text)?;
                }
                true
            }
            Event::End => return Ok(()),
        };
        if !is_read {
            events.skip()?;
        }
    }
}

fn write(table: Table, number: u32, flow: &mut Flow) -> Result<(), ExtractError> {
    let mut inner = Flow::default();
    table.sheet.write(&mut inner)?;
    if inner.len() == 0 {
        return Ok(());
    }
    flow.page(PageRef::Sheet(number));
    flow.heading(2, &table.name)?;
    flow.append(&inner.finish()?)
}

impl Table {
    fn new(name: String) -> Self {
        Self {
            name,
            sheet: Sheet::default(),
            row: 0,
            row_repeated: 1,
            column: 0,
            cells: Vec::new(),
            text: String::new(),
            value: None,
            repeated: 1,
            span: (1, 1),
            is_in_cell: false,
        }
    }

    fn open(&mut self, element: &Element<'_>) -> Result<bool, ExtractError> {
        let count = |name: &str| {
            let given = element.number(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
            given.clamp(1, INDEX_MAX)
        };
        match element.name() {
            "table-row" => {
                self.row = self.row.saturating_add(1).min(INDEX_MAX);
                self.row_repeated = count("number-rows-repeated");
                self.column = 0;
                self.cells.clear();
            }
            "table-cell" | "covered-table-cell" => {
                self.column = self.column.saturating_add(1).min(INDEX_MAX);
                self.repeated = count("number-columns-repeated");
                self.span = (count("number-rows-spanned"), count("number-columns-spanned"));
                self.value = value_of(element);
                self.text.clear();
                self.is_in_cell = true;
            }
            "p" if !self.text.is_empty() => self.text.push(' '),
            "s" | "tab" | "line-break" => self.text(" ")?,
            // A drawing, a comment, or a table attached to the cell.
            "annotation" | "shapes" | "table" | "forms" | "detective" | "title" | "desc" => {
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.is_in_cell {
            if self.text.len() + text.len() > crate::TEXT_BYTES_MAX {
                return Err(outline::too_long());
            }
            self.text.push_str(text);
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        match name {
            "table-cell" | "covered-table-cell" => {
                self.is_in_cell = false;
                let shown = std::mem::take(&mut self.text);
                let value = self.value.take();
                let is_value = value.is_some();
                // Dates are written in ISO 8601, everything else as displayed.
                let text = value.filter(|value| !value.is_empty()).unwrap_or(shown);
                if !text.trim().is_empty() {
                    let (column, repeated, span) = (self.column, self.repeated, self.span);
                    self.cells.push(Cell { column, text, is_value, repeated, span });
                }
                self.column = self.column.saturating_add(self.repeated - 1).min(INDEX_MAX);
            }
            "table-row" => {
                let cells = std::mem::take(&mut self.cells);
                if !cells.is_empty() {
                    for offset in 0..self.row_repeated.min(REPEATED_MAX) {
                        self.write_row(self.row + offset, &cells)?;
                    }
                }
                self.row = self.row.saturating_add(self.row_repeated - 1).min(INDEX_MAX);
            }
            _ => {}
        }
        Ok(())
    }

    fn write_row(&mut self, row: u32, cells: &[Cell]) -> Result<(), ExtractError> {
        for cell in cells {
            for offset in 0..cell.repeated.min(REPEATED_MAX) {
                self.sheet.cell(row, cell.column + offset, &cell.text, cell.is_value)?;
            }
            let (rows, columns) = cell.span;
            if rows > 1 {
                self.sheet.merge((row, cell.column), (row + rows - 1, cell.column + columns - 1));
            }
        }
        Ok(())
    }
}

/// The value of a non-text cell, if its attributes are better than its text; empty if the text is
/// as good.
fn value_of(element: &Element<'_>) -> Option<String> {
    let value = element.attribute("value").and_then(|value| value.parse::<f64>().ok());
    match element.attribute("value-type")?.as_str() {
        "date" => {
            let day = element.attribute("date-value").unwrap_or_default();
            let day = day.strip_suffix("T00:00:00").unwrap_or(&day).replace('T', " ");
            Some(day)
        }
        "percentage" => Some(value.map(|value| formats::percent(value, 6)).unwrap_or_default()),
        "float" => Some(value.map(formats::number).unwrap_or_default()),
        "currency" | "time" | "boolean" => Some(String::new()),
        _ => None,
    }
}
