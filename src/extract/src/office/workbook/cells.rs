//! Reads the cells of a sheet as a stream.

use crate::ExtractError;
use crate::events::{Element, Event, Events};
use crate::office::workbook::formats::Formats;
use crate::office::workbook::strings::{SharedStrings, unescaped};
use crate::package::Package;
use crate::sheet::Sheet;

/// The largest accepted row or column; Excel stops at 1,048,576 rows.
const INDEX_MAX: u32 = 1 << 21;

/// The element that the current text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Value,
    Inline,
}

/// Reads the part called `name` and returns the number of formulas without a value.
pub(super) fn read(
    package: &Package<'_>,
    name: &str,
    strings: &SharedStrings,
    formats: &Formats,
) -> Result<(Sheet, usize), ExtractError> {
    let mut sheet = Sheet::default();
    let Some(part) = package.part(name)? else { return Ok((sheet, 0)) };
    let mut events = Events::new(part)?;
    let mut cell = Cell::default();
    let mut inside = Inside::Nothing;
    loop {
        match events.next()? {
            Event::Open(element) => match element.name() {
                "row" => cell.begin_row(&element),
                "c" => cell.begin(&element),
                "v" => {
                    cell.has_value = true;
                    inside = Inside::Value;
                }
                "t" => inside = Inside::Inline,
                "f" => {
                    cell.has_formula = true;
                    events.skip()?;
                }
                "rPh" | "extLst" | "conditionalFormatting" | "dataValidations" => {
                    events.skip()?;
                }
                "mergeCell" => {
                    let reference = element.attribute("ref").unwrap_or_default();
                    if let Some((first, last)) = reference.split_once(':')
                        && let (Some(first), Some(last)) = (place_of(first), place_of(last))
                    {
                        sheet.merge(first, last);
                    }
                }
                _ => {}
            },
            Event::Text(text) => match inside {
                Inside::Nothing => {}
                Inside::Value | Inside::Inline => cell.value.push_str(&text),
            },
            Event::Close(name) => match name.as_str() {
                "v" | "t" => inside = Inside::Nothing,
                "c" => cell.end(&mut sheet, strings, formats)?,
                _ => {}
            },
            Event::End => return Ok((sheet, cell.unvalued)),
        }
    }
}

/// A cell being read.
#[derive(Debug, Default)]
struct Cell {
    /// Counted from 1; 0 before the first row.
    row: u32,
    /// Counted from 1; 0 before the first cell of a row.
    column: u32,
    kind: String,
    format: usize,
    value: String,
    has_formula: bool,
    has_value: bool,
    /// Formula cells without a value so far.
    unvalued: usize,
}

impl Cell {
    fn begin_row(&mut self, element: &Element<'_>) {
        let given = element.number("r").and_then(|row| u32::try_from(row).ok());
        self.row = given.unwrap_or(self.row.saturating_add(1)).min(INDEX_MAX);
        self.column = 0;
    }

    fn begin(&mut self, element: &Element<'_>) {
        match element.value("r").as_deref().and_then(place_of) {
            Some((row, column)) => (self.row, self.column) = (row, column),
            None => self.column = self.column.saturating_add(1).min(INDEX_MAX),
        }
        self.kind.clear();
        self.kind.push_str(&element.value("t").unwrap_or_default());
        self.format = element.number("s").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        self.value.clear();
        (self.has_formula, self.has_value) = (false, false);
    }

    fn end(
        &mut self,
        sheet: &mut Sheet,
        strings: &SharedStrings,
        formats: &Formats,
    ) -> Result<(), ExtractError> {
        let value = self.value.trim();
        if value.is_empty() {
            // An empty value is one only of a text; openpyxl writes it for every formula.
            let is_valued = self.has_value && self.kind == "str";
            self.unvalued += usize::from(self.has_formula && !is_valued);
            return Ok(());
        }
        match self.kind.as_str() {
            "s" => {
                let text = value.parse().ok().and_then(|index| strings.get(index)).unwrap_or("");
                sheet.cell(self.row, self.column, &unescaped(text), false)
            }
            "str" | "inlineStr" => sheet.cell(self.row, self.column, &unescaped(value), false),
            "b" => {
                let word = if value == "1" { "TRUE" } else { "FALSE" };
                sheet.cell(self.row, self.column, word, true)
            }
            // A formula error says nothing about the content.
            "e" => Ok(()),
            "d" => {
                let day = value.strip_suffix("T00:00:00").unwrap_or(value).replace('T', " ");
                sheet.cell(self.row, self.column, &day, true)
            }
            _ => sheet.cell(self.row, self.column, &formats.written(value, self.format), true),
        }
    }
}

/// Row and column of a reference such as `$BC$12`, counted from 1.
fn place_of(reference: &str) -> Option<(u32, u32)> {
    let mut column: u32 = 0;
    let mut row: u32 = 0;
    for b in reference.bytes().filter(|b| *b != b'$') {
        if b.is_ascii_alphabetic() {
            let letter = u32::from(b.to_ascii_uppercase() - b'A') + 1;
            column = column.checked_mul(26)?.checked_add(letter)?;
        } else if b.is_ascii_digit() {
            row = row.checked_mul(10)?.checked_add(u32::from(b - b'0'))?;
        } else {
            return None;
        }
    }
    let is_sound = (1..=INDEX_MAX).contains(&row) && (1..=INDEX_MAX).contains(&column);
    is_sound.then_some((row, column))
}
