//! Reads the body of a Word document element by element. Nesting is kept on stacks: paragraphs in
//! text boxes in paragraphs, tables in table cells.

use crate::events::{Element, Event, Events};
use crate::flow::Flow;
use crate::office::chart;
use crate::office::document::notes::Notes;
use crate::office::document::numbering::Numbering;
use crate::office::document::paragraph::Paragraph;
use crate::office::document::properties::{self, of_paragraph};
use crate::office::document::styles::Styles;
use crate::office::equation::Equations;
use crate::office::relations::Relations;
use crate::outline::too_long;
use crate::package::Package;
use crate::{ExtractError, TEXT_BYTES_MAX, decode, detect, html, read};
use lodestone_types::{Extracted, Warning};

/// Maximum nesting of fields.
const FIELDS_MAX: usize = 64;
/// Maximum bytes kept of a field instruction.
const INSTRUCTION_BYTES_MAX: usize = 100;
/// Maximum characters of the name of an embedded document in a warning.
const NAME_CHARS_MAX: usize = 100;

/// A field: text computed by Word.
#[derive(Debug, Default)]
struct Field {
    instruction: String,
    /// Whether its result is left out.
    is_muted: bool,
}

/// Reads the body of one part.
#[derive(Debug)]
pub(super) struct Walker<'w> {
    package: &'w Package<'w>,
    relations: &'w Relations,
    styles: &'w Styles,
    numbering: &'w mut Numbering,
    notes: &'w mut Notes,
    flow: &'w mut Flow,
    /// The open paragraphs, outermost first.
    paragraphs: Vec<Paragraph>,
    /// A paragraph whose paragraph mark was deleted.
    joined: Option<Paragraph>,
    fields: Vec<Field>,
    is_text: bool,
    is_instruction: bool,
    /// Whether the current run is hidden.
    is_hidden: bool,
    /// Whether the current content control shows only its placeholder.
    is_placeholder: bool,
    skips_page_numbers: bool,
    /// Charts and diagrams to write after the paragraph.
    charts: Vec<String>,
    equations: Equations,
}

impl<'w> Walker<'w> {
    /// Creates a walker over a part with these relationships.
    pub(super) fn new(
        package: &'w Package<'w>,
        relations: &'w Relations,
        styles: &'w Styles,
        numbering: &'w mut Numbering,
        notes: &'w mut Notes,
        flow: &'w mut Flow,
    ) -> Self {
        Self {
            package,
            relations,
            styles,
            numbering,
            notes,
            flow,
            paragraphs: Vec::new(),
            joined: None,
            fields: Vec::new(),
            is_text: false,
            is_instruction: false,
            is_hidden: false,
            is_placeholder: false,
            skips_page_numbers: false,
            charts: Vec::new(),
            equations: Equations::default(),
        }
    }

    /// Leaves out page numbers.
    pub(super) fn without_page_numbers(mut self) -> Self {
        self.skips_page_numbers = true;
        self
    }

    /// Reads the part called `name`.
    pub(super) fn read(&mut self, name: &str) -> Result<(), ExtractError> {
        let Some(part) = self.package.part(name)? else { return Ok(()) };
        let mut events = Events::new(part)?;
        loop {
            let known = match events.next()? {
                Event::Open(element) => self.open(&element)?,
                Event::Close(name) => {
                    self.close(name.as_str())?;
                    Next::Go
                }
                Event::Text(text) => {
                    self.text(&text)?;
                    Next::Go
                }
                Event::End => break,
            };
            match known {
                Next::Go => {}
                Next::Skip => events.skip()?,
                Next::Paragraph => {
                    let properties = of_paragraph(&mut events)?;
                    if let Some(paragraph) = self.paragraphs.last_mut() {
                        paragraph.properties = properties;
                    }
                }
                Next::Run => {
                    let mut is_hidden = false;
                    properties::each(&mut events, |element| {
                        is_hidden |= element.name() == "vanish" && element.is_on();
                    })?;
                    self.is_hidden = is_hidden;
                }
                Next::Row => self.row_properties(&mut events)?,
                Next::Cell => self.cell_properties(&mut events)?,
                Next::Control => {
                    let mut is_placeholder = false;
                    properties::each(&mut events, |element| {
                        is_placeholder |= element.name() == "showingPlcHdr" && element.is_on();
                    })?;
                    self.is_placeholder = is_placeholder;
                }
            }
        }
        self.settle()?;
        self.flow.write_notes()
    }

    fn open(&mut self, element: &Element<'_>) -> Result<Next, ExtractError> {
        if let Some(sign) = self.equations.open(element) {
            self.write(&sign)?;
        }
        match element.name() {
            "p" => self.paragraphs.push(self.joined.take().unwrap_or_default()),
            "pPr" => return Ok(Next::Paragraph),
            "r" => self.is_hidden = false,
            "rPr" => return Ok(Next::Run),
            "t" => self.is_text = true,
            "instrText" => self.is_instruction = true,
            "tab" | "ptab" => self.write(" ")?,
            "br" | "cr" => self.write("\n")?,
            "noBreakHyphen" => self.write("-")?,
            "sym" => self.symbol(element)?,
            "fldChar" => self.field(element),
            "fldSimple" => {
                let instruction = element.attribute("instr").unwrap_or_default();
                if self.is_muting(&instruction) {
                    return Ok(Next::Skip);
                }
            }
            "footnoteReference" | "endnoteReference" | "commentReference" => {
                let id = element.attribute("id").unwrap_or_default();
                if let Some(note) = self.notes.take(element.name(), &id) {
                    self.flow.note(&note);
                }
            }
            "tbl" => {
                self.settle()?;
                self.flow.begin_table();
            }
            "tr" => {
                if let Some(table) = self.flow.table() {
                    table.row();
                }
            }
            "trPr" => return Ok(Next::Row),
            "tc" => {
                if let Some(table) = self.flow.table() {
                    table.cell(1, 1);
                }
            }
            "tcPr" => return Ok(Next::Cell),
            "sdtPr" => return Ok(Next::Control),
            "sdtContent" if std::mem::take(&mut self.is_placeholder) => return Ok(Next::Skip),
            "docPr" => self.picture(element)?,
            "chart" | "relIds" => self.charts.extend(
                element
                    .prefixed("id")
                    .or_else(|| element.prefixed("dm"))
                    .and_then(|id| self.relations.target(&id))
                    .map(str::to_owned),
            ),
            "altChunk" => self.foreign(element)?,
            // The first alternative is taken; the others repeat it for older programs.
            "del" | "moveFrom" | "Fallback" | "rt" | "sectPr" | "tblPr" | "tblGrid" | "tblPrEx"
            | "cNvPr" => return Ok(Next::Skip),
            _ => {}
        }
        Ok(Next::Go)
    }

    fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        if let Some(sign) = self.equations.close(name) {
            self.write(&sign)?;
        }
        match name {
            "t" => self.is_text = false,
            "instrText" => self.is_instruction = false,
            "p" => self.end_paragraph()?,
            "tbl" => {
                self.settle()?;
                self.flow.end_table()?;
                if !self.flow.is_in_table() && self.paragraphs.is_empty() {
                    self.flow.write_notes()?;
                }
            }
            "tc" => self.settle()?,
            _ => {}
        }
        Ok(())
    }

    fn end_paragraph(&mut self) -> Result<(), ExtractError> {
        let Some(paragraph) = self.paragraphs.pop() else { return Ok(()) };
        if paragraph.properties.is_joined && self.paragraphs.is_empty() {
            self.joined = Some(paragraph);
            return Ok(());
        }
        paragraph.write(self.styles, self.numbering, self.flow)?;
        for name in std::mem::take(&mut self.charts) {
            chart::write(self.package, &name, self.flow)?;
        }
        if self.paragraphs.is_empty() && !self.flow.is_in_table() {
            self.flow.write_notes()?;
        }
        Ok(())
    }

    /// Writes a paragraph whose mark was deleted if no paragraph follows to continue it.
    fn settle(&mut self) -> Result<(), ExtractError> {
        match self.joined.take() {
            Some(paragraph) => paragraph.write(self.styles, self.numbering, self.flow),
            None => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.is_instruction {
            if let Some(field) = self.fields.last_mut()
                && field.instruction.len() + text.len() <= INSTRUCTION_BYTES_MAX
            {
                field.instruction.push_str(text);
            }
            return Ok(());
        }
        if self.is_text { self.write(text) } else { Ok(()) }
    }

    fn write(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.is_hidden || self.fields.iter().any(|field| field.is_muted) {
            return Ok(());
        }
        let Some(paragraph) = self.paragraphs.last_mut() else { return Ok(()) };
        if self.flow.len() + paragraph.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        paragraph.text.push_str(text);
        Ok(())
    }

    /// Writes a character of a symbol font; private use characters mean nothing without the font.
    fn symbol(&mut self, element: &Element<'_>) -> Result<(), ExtractError> {
        let code = element.attribute("char").and_then(|code| u32::from_str_radix(&code, 16).ok());
        let sign = code.filter(|code| !(0xF000..=0xF0FF).contains(code)).and_then(char::from_u32);
        match sign.filter(|sign| !sign.is_control()) {
            Some(sign) => self.write(sign.encode_utf8(&mut [0; 4])),
            None => Ok(()),
        }
    }

    fn field(&mut self, element: &Element<'_>) {
        match element.attribute("fldCharType").as_deref() {
            Some("begin") if self.fields.len() < FIELDS_MAX => self.fields.push(Field::default()),
            Some("separate") => {
                let is_muted =
                    self.fields.last().is_some_and(|field| self.is_muting(&field.instruction));
                if let Some(field) = self.fields.last_mut() {
                    field.is_muted = is_muted;
                }
            }
            Some("end") => {
                self.fields.pop();
            }
            _ => {}
        }
    }

    fn is_muting(&self, instruction: &str) -> bool {
        let word = instruction.split_whitespace().next().unwrap_or("");
        self.skips_page_numbers && matches!(word, "PAGE" | "NUMPAGES" | "SECTIONPAGES")
    }

    /// Writes the alternative text of a picture if a person wrote it. Generated descriptions carry
    /// a note in a second line.
    fn picture(&mut self, element: &Element<'_>) -> Result<(), ExtractError> {
        let description = element.attribute("descr").unwrap_or_default();
        let line = description.lines().next().unwrap_or("").trim();
        if line.is_empty() {
            return Ok(());
        }
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.space();
        }
        self.write(line)?;
        self.write(" ")
    }

    /// Writes an embedded document.
    fn foreign(&mut self, element: &Element<'_>) -> Result<(), ExtractError> {
        let Some(id) = element.prefixed("id") else { return Ok(()) };
        let Some(name) = self.relations.target(&id) else { return Ok(()) };
        match self.read_foreign(name) {
            Ok(inner) => self.flow.append(&inner)?,
            Err(ExtractError::EmptyFile | ExtractError::NoText) => {}
            Err(failure) => {
                let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
                self.flow.warn(Warning::attachment_not_read(&shown, &failure.to_string()));
            }
        }
        Ok(())
    }

    fn read_foreign(&self, name: &str) -> Result<Extracted, ExtractError> {
        let bytes = self.package.bytes(name)?.unwrap_or_default();
        if name.ends_with("html") || name.ends_with("htm") {
            return html::read(&decode::html(&bytes));
        }
        let format = detect(name, None, &bytes)?;
        let budget = self.package.budget();
        Ok(budget.enclosed(|| read(format, &bytes, budget))?.1)
    }

    fn row_properties(&mut self, events: &mut Events<'_>) -> Result<(), ExtractError> {
        let mut is_deleted = false;
        let mut before = 0;
        properties::each(events, |element| match element.name() {
            "del" => is_deleted = true,
            "gridBefore" => before = element.number("val").unwrap_or(0),
            _ => {}
        })?;
        let Some(table) = self.flow.table() else { return Ok(()) };
        if before > 0 {
            table.cell(usize::try_from(before).unwrap_or(1), 1);
        }
        table.set_deleted(is_deleted);
        Ok(())
    }

    fn cell_properties(&mut self, events: &mut Events<'_>) -> Result<(), ExtractError> {
        let mut columns = 1;
        let mut is_below = false;
        properties::each(events, |element| match element.name() {
            "gridSpan" => {
                columns = element.number("val").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
            }
            "vMerge" => is_below = element.attribute("val").as_deref() != Some("restart"),
            _ => {}
        })?;
        if let Some(table) = self.flow.table() {
            table.reshape(columns, is_below);
        }
        Ok(())
    }
}

/// The next step for an element that has started. The caller does it, since it owns the stream.
#[derive(Debug, Clone, Copy)]
enum Next {
    Go,
    Skip,
    Paragraph,
    Run,
    Row,
    Cell,
    Control,
}
