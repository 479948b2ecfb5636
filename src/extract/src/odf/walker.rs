//! The content of a text document or presentation, element by element.

use crate::events::{Element, Event, Events};
use crate::flow::Flow;
use crate::numerals;
use crate::odf::styles::{LEVELS, Styles};
use crate::outline::too_long;
use crate::package::Package;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, PageRef};

/// Maximum number of spaces that one element may stand for.
const SPACES_MAX: usize = 100;
/// Maximum nesting of lists that is tracked.
const LISTS_MAX: usize = 64;

/// An open list.
#[derive(Debug, Default)]
struct List {
    style: String,
    count: i64,
    /// Whether the open item has not started its first paragraph yet.
    is_fresh: bool,
    /// Whether an item is open, rather than the list's header.
    is_item: bool,
}

/// An open paragraph.
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    heading: Option<u8>,
}

#[derive(Debug)]
struct Walker<'w> {
    styles: &'w Styles,
    flow: &'w mut Flow,
    lists: Vec<List>,
    /// Number of open lists beyond those tracked.
    beyond: usize,
    paragraphs: Vec<Paragraph>,
    /// The depth of paragraphs outside the open note, if there is one.
    note: Option<usize>,
    slides: u32,
    /// Whether the current shape is the title of a slide.
    is_slide_title: bool,
}

/// Reads the content.
pub(super) fn read(
    package: &Package<'_>,
    styles: &Styles,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let Some(part) = package.part("content.xml")? else { return Ok(()) };
    let mut events = Events::new(part)?;
    let mut walker = Walker {
        styles,
        flow,
        lists: Vec::new(),
        beyond: 0,
        paragraphs: Vec::new(),
        note: None,
        slides: 0,
        is_slide_title: false,
    };
    loop {
        let is_read = match events.next()? {
            Event::Open(element) => walker.open(&element)?,
            Event::Close(name) => {
                walker.close(name.as_str())?;
                true
            }
            Event::Text(text) => {
                walker.text(&text)?;
                true
            }
            Event::End => return walker.flow.write_notes(),
        };
        if !is_read {
            events.skip()?;
        }
    }
}

impl Walker<'_> {
    /// Processes a start tag; returns whether to read its contents.
    fn open(&mut self, element: &Element<'_>) -> Result<bool, ExtractError> {
        match element.name() {
            "p" => {
                let style = element.attribute("style-name").unwrap_or_default();
                let is_title = self.paragraphs.is_empty() && self.styles.titles.contains(&style);
                self.begin_paragraph(is_title.then_some(1));
            }
            "h" => {
                let level = element.number("outline-level").unwrap_or(1).clamp(1, 6);
                self.begin_paragraph(u8::try_from(level).ok());
            }
            "list" => self.begin_list(element),
            "list-item" | "list-header" => {
                let is_item = element.name() == "list-item";
                if let Some(list) = self.lists.last_mut().filter(|_| self.beyond == 0) {
                    list.is_fresh = true;
                    list.is_item = is_item;
                    if let Some(start) = element.number("start-value").filter(|_| is_item) {
                        list.count = start.saturating_sub(1);
                    }
                    list.count = list.count.saturating_add(i64::from(is_item));
                }
            }
            "s" => {
                let count = element.number("c").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
                self.text(&" ".repeat(count.min(SPACES_MAX)))?;
            }
            "tab" => self.text(" ")?,
            "line-break" => self.write("\n")?,
            "table" => self.flow.begin_table(),
            "table-row" => {
                if let Some(table) = self.flow.table() {
                    table.row();
                }
            }
            "table-cell" => {
                let span = |name: &str| {
                    element.number(name).and_then(|n| usize::try_from(n).ok()).unwrap_or(1)
                };
                let (columns, rows) = (span("number-columns-spanned"), span("number-rows-spanned"));
                if let Some(table) = self.flow.table() {
                    // The columns that it covers follow as separate cells.
                    table.cell_over(columns, rows);
                }
            }
            "covered-table-cell" => {
                if let Some(table) = self.flow.table() {
                    table.hidden();
                }
                return Ok(false);
            }
            "note" => self.note = Some(self.paragraphs.len()),
            "page" => {
                self.slides += 1;
                self.flow.page(PageRef::Slide(self.slides));
            }
            "frame" => {
                let class = element.attribute("class").unwrap_or_default();
                self.is_slide_title = class == "title";
                return Ok(!matches!(class.as_str(), "footer" | "date-time" | "page-number"));
            }
            "notes" => self.is_slide_title = false,
            // Comments, deleted text, alternatives to drawings, note marks, computed fields.
            "annotation" | "tracked-changes" | "note-citation" | "automatic-styles" | "scripts"
            | "font-face-decls" | "page-number" | "settings" | "forms" | "sequence-decls"
            | "ruby-text" | "desc" | "thumbnail" => return Ok(false),
            _ => {}
        }
        Ok(true)
    }

    fn begin_paragraph(&mut self, heading: Option<u8>) {
        let heading = heading.or(self.is_slide_title.then_some(2));
        self.paragraphs.push(Paragraph { text: String::new(), heading });
    }

    fn begin_list(&mut self, element: &Element<'_>) {
        if self.lists.len() >= LISTS_MAX {
            self.beyond += 1;
            return;
        }
        let named = element.attribute("style-name");
        let above = self.lists.last().map(|list| list.style.clone());
        let style = named.or(above).unwrap_or_default();
        self.lists.push(List { style, ..List::default() });
    }

    fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        match name {
            "p" | "h" => self.end_paragraph()?,
            "list" if self.beyond > 0 => self.beyond -= 1,
            "list" => {
                self.lists.pop();
            }
            "table" => self.flow.end_table()?,
            "note" => self.note = None,
            "frame" => self.is_slide_title = false,
            _ => {}
        }
        Ok(())
    }

    fn end_paragraph(&mut self) -> Result<(), ExtractError> {
        let Some(paragraph) = self.paragraphs.pop() else { return Ok(()) };
        let text = paragraph.text.trim();
        if self.note.is_some_and(|outside| self.paragraphs.len() >= outside) {
            self.flow.note(text);
            return Ok(());
        }
        self.write_block(text, paragraph.heading)?;
        if self.paragraphs.is_empty() && !self.flow.is_in_table() {
            self.flow.write_notes()?;
        }
        Ok(())
    }

    fn write_block(&mut self, text: &str, heading: Option<u8>) -> Result<(), ExtractError> {
        if let Some(level) = heading {
            return self.flow.heading(level, text);
        }
        let level = self.lists.len().saturating_sub(1);
        let Some(list) = self.lists.last_mut().filter(|list| list.is_item) else {
            return self.flow.block(BlockKind::Paragraph, text);
        };
        if text.is_empty() {
            return Ok(());
        }
        if !std::mem::take(&mut list.is_fresh) {
            return self.flow.block(BlockKind::ListItem, text);
        }
        let format =
            self.styles.numbered.get(&list.style).map(|all| all[level.min(LEVELS - 1)].as_str());
        let mark = match format.filter(|format| !format.is_empty()) {
            Some(format) => format!("{}.", numerals::written(list.count, format)),
            None => "-".to_owned(),
        };
        self.flow.item(level, &mark, text)
    }

    /// Adds text as written: white space collapses, as in HTML.
    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        let Some(paragraph) = self.paragraphs.last_mut() else { return Ok(()) };
        if self.flow.len() + paragraph.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        for c in text.chars() {
            if !matches!(c, ' ' | '\t' | '\n' | '\r') {
                paragraph.text.push(c);
            } else if !paragraph.text.ends_with([' ', '\n']) {
                paragraph.text.push(' ');
            }
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.flow.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
        Ok(())
    }
}
