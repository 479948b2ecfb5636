//! Reads Excel workbooks: a heading for each visible sheet, then its tables.
//!
//! ```text
//! workbook -> sheets in order -> cells (streamed) -> sheet -> tables, records
//!             shared strings, formats
//! ```
//! For formulas the stored value is used. Dates, times, percentages and units are written as such.
//! A hidden sheet is read only if no other sheet has text.
//!
//! calamine 0.38 is not usable here: it does not support percentages, allocates a sheet as a full
//! rectangle of cells (one cell in the last corner makes 17 billion), and decompresses outside the
//! budget of the upload.
//!
//! - `strings`: shared strings; `cells`: one sheet
//! - `formats`: number formats; `figure`: numbers with a unit

mod cells;
mod figure;
pub(crate) mod formats;
mod strings;

use crate::ExtractError;
use crate::budget::Budget;
use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::office::relations::{self, Relations};
use crate::office::workbook::formats::Formats;
use crate::office::workbook::strings::SharedStrings;
use crate::office::{PROPERTIES, chart, comments};
use crate::package::Package;
use crate::title::title;
use lodestone_types::{Extracted, PageRef, Warning};

/// Maximum sheets per workbook.
const SHEETS_MAX: usize = 2000;

/// A sheet as listed in the workbook.
#[derive(Debug)]
struct Listed {
    name: String,
    id: String,
    number: u32,
    is_hidden: bool,
}

/// The parts shared by all sheets.
#[derive(Debug)]
struct Book<'b> {
    package: &'b Package<'b>,
    relations: Relations,
    strings: SharedStrings,
    formats: Formats,
}

/// Reads a workbook.
pub(crate) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = Package::open(bytes, "Excel workbook", budget)?;
    let (main, relations) = relations::main_part(&package, "xl/workbook.xml")?;
    let (sheets, has_late_epoch) = listed(&package, &main)?;
    let named = |kind: &str, usual: &str| relations.first(kind).unwrap_or(usual).to_owned();
    let strings = SharedStrings::read(&package, &named("sharedStrings", "xl/sharedStrings.xml"))?;
    let formats = Formats::read(&package, &named("styles", "xl/styles.xml"), has_late_epoch)?;
    let mut flow = Flow::default();
    if let Some(title) = title(&package, PROPERTIES) {
        flow.set_title(&title);
    }
    let book = Book { package: &package, relations, strings, formats };
    let mut unvalued = 0;
    for sheet in sheets.iter().filter(|sheet| !sheet.is_hidden) {
        unvalued += book.sheet(sheet, &mut flow)?;
    }
    if flow.len() == 0 {
        for sheet in sheets.iter().filter(|sheet| sheet.is_hidden) {
            unvalued += book.sheet(sheet, &mut flow)?;
        }
    }
    if unvalued > 0 {
        flow.warn(Warning::formulas_without_values(unvalued));
    }
    flow.finish()
}

/// The sheets in order, and whether dates are counted from 1904.
fn listed(package: &Package<'_>, main: &str) -> Result<(Vec<Listed>, bool), ExtractError> {
    let mut sheets = Vec::new();
    let mut has_late_epoch = false;
    let Some(part) = package.part(main)? else { return Ok((sheets, has_late_epoch)) };
    let mut events = Events::new(part)?;
    loop {
        match events.next()? {
            Event::Open(element) if element.name() == "workbookPr" => {
                let flag = element.attribute("date1904");
                has_late_epoch = matches!(flag.as_deref(), Some("1" | "true"));
            }
            Event::Open(element) if element.name() == "sheet" => {
                let number = u32::try_from(sheets.len() + 1).unwrap_or(u32::MAX);
                let state = element.attribute("state").unwrap_or_default();
                sheets.push(Listed {
                    name: element.attribute("name").unwrap_or_default(),
                    id: element.prefixed("id").unwrap_or_default(),
                    number,
                    is_hidden: state.to_ascii_lowercase().ends_with("hidden"),
                });
                if sheets.len() > SHEETS_MAX {
                    return Err(ExtractError::BeyondLimit { what: "sheets", max: SHEETS_MAX });
                }
            }
            Event::End => return Ok((sheets, has_late_epoch)),
            _ => {}
        }
    }
}

impl Book<'_> {
    /// Writes a sheet and returns the number of its formulas without a value.
    fn sheet(&self, listed: &Listed, flow: &mut Flow) -> Result<usize, ExtractError> {
        let Some(name) = self.relations.target(&listed.id) else { return Ok(0) };
        let (sheet, unvalued) = cells::read(self.package, name, &self.strings, &self.formats)?;
        let mut inner = Flow::default();
        sheet.write(&mut inner)?;
        let relations = Relations::of(self.package, name)?;
        for drawing in relations.of_kind("drawing") {
            chart::write(self.package, drawing, &mut inner)?;
            let relations = Relations::of(self.package, drawing)?;
            for name in relations.of_kind("chart") {
                chart::write(self.package, name, &mut inner)?;
            }
        }
        for kind in ["comments", "threadedComment"] {
            for name in relations.of_kind(kind) {
                comments::write(self.package, name, &mut inner)?;
            }
        }
        if inner.len() == 0 {
            return Ok(unvalued);
        }
        flow.page(PageRef::Sheet(listed.number));
        flow.heading(2, &listed.name)?;
        flow.append(&inner.finish()?)?;
        Ok(unvalued)
    }
}
