//! Blocks and white space of a page, as a browser would lay them out.

use crate::flow::{Flow, INDENT_LEVELS_MAX};
use crate::grid::{Letters, Piece};
use crate::html::Scope;
use crate::html::menus::letters;
use crate::html::stack::{Stack, Traits};
use crate::html::tags::Tag;
use crate::html::tokens::StartTag;
use crate::outline::too_long;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// Maximum bytes of a number or sign before the button that holds the text of a heading.
const MARK_BYTES_MAX: usize = 64;

/// A page while it is read.
#[derive(Debug)]
pub(super) struct Page {
    flow: Flow,
    stack: Stack,
    /// The current block, with white space collapsed except for line breaks and preformatted text.
    line: String,
    title: String,
    heading: Option<u8>,
    listings: usize,
    lists: Vec<List>,
    items: usize,
    /// The marker for the next block of the current list item.
    mark: Option<String>,
    /// One entry per open table: whether one of its cells is open.
    tables: Vec<bool>,
    /// Letters of the current block that are in links, and its links.
    linked: Letters,
    /// Visible letters kept, and visible letters left out.
    kept: usize,
    passed: usize,
}

/// A finished page.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Its text.
    pub document: Extracted,
    /// The letter counts of its blocks; `None` for headings and tables.
    pub letters: Vec<Option<Letters>>,
    /// Number of letters kept.
    pub kept: usize,
    /// Number of visible letters left out.
    pub passed: usize,
}

impl Rendered {
    /// Returns the page without the blocks that `dropped` marks among those with letter counts, and
    /// with the blocks that `last` marks moved to the end.
    pub(super) fn arranged(
        self,
        dropped: impl Fn(&[Letters]) -> Vec<bool>,
        last: impl Fn(&[Letters]) -> Vec<bool>,
    ) -> Result<Self, ExtractError> {
        let judged: Vec<Letters> = self.letters.iter().copied().flatten().collect();
        let (dropped, last) = (dropped(&judged), last(&judged));
        if !dropped.contains(&true) && !last.contains(&true) {
            return Ok(self);
        }
        let Self { mut document, letters, mut kept, mut passed } = self;
        let (mut body, mut end, mut number) = (Vec::new(), Vec::new(), 0);
        for (block, letters) in document.blocks.drain(..).zip(letters) {
            let at = number;
            number += usize::from(letters.is_some());
            let is = |marks: &[bool]| letters.is_some() && marks.get(at) == Some(&true);
            match letters {
                Some(letters) if is(&dropped) => {
                    kept = kept.saturating_sub(letters.all);
                    passed += letters.all;
                }
                _ if is(&last) => end.push(block),
                _ => body.push(block),
            }
        }
        document.blocks = body;
        document.blocks.append(&mut end);
        let mut flow = Flow::default();
        flow.append(&document)?;
        let document = Extracted { title: document.title, ..flow.finish()? };
        Ok(Self { document, letters: Vec::new(), kept, passed })
    }
}

#[derive(Debug)]
struct List {
    is_numbered: bool,
    /// The number of the next item.
    next: u32,
}

impl Page {
    /// Creates an empty page.
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            flow: Flow::default(),
            stack: Stack::new(scope),
            line: String::new(),
            title: String::new(),
            heading: None,
            listings: 0,
            lists: Vec::new(),
            items: 0,
            mark: None,
            tables: Vec::new(),
            linked: Letters::default(),
            kept: 0,
            passed: 0,
        }
    }

    /// Finishes the document.
    pub(super) fn finish(mut self) -> Result<Rendered, ExtractError> {
        while self.stack.last().is_some() {
            self.pop()?;
        }
        self.flush()?;
        self.flow.set_title(&self.title);
        let (document, letters) = self.flow.finish_with_letters()?;
        Ok(Rendered { document, letters, kept: self.kept, passed: self.passed })
    }

    /// Processes a start tag.
    pub(super) fn open(&mut self, start: StartTag<'_>) -> Result<(), ExtractError> {
        let tag = self.kind_of(&start.name);
        for _ in 0..self.stack.ended_by(tag) {
            self.pop()?;
        }
        let traits = Traits::of(start.attributes);
        if tag.is_void() {
            return self.void(tag, &traits);
        }
        // Only elements of other vocabularies, such as SVG, are self-closing.
        if start.is_self_closing && tag == Tag::Unread {
            return Ok(());
        }
        let is_pushed = self.stack.push(&start.name, tag, &traits);
        let is_link = tag == Tag::Link && traits.leads && self.stack.is_visible();
        self.linked.links += usize::from(is_link);
        match tag.is_block() && self.stack.is_visible() {
            true if is_pushed => self.begin(tag, &traits),
            // Nothing ends beyond the depth limit, so nothing may begin there.
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// The kind of an element. In accordions, a button holds the text of a heading, and is read.
    fn kind_of(&self, name: &str) -> Tag {
        let is_text = || self.stack.is_in_label() && !self.has_words();
        match Tag::of(name) {
            Tag::Unread if name == "button" && is_text() => Tag::Inline,
            tag => tag,
        }
    }

    /// Whether the current block is more than a number or a sign.
    fn has_words(&self) -> bool {
        self.line.len() > MARK_BYTES_MAX || self.line.contains(char::is_alphabetic)
    }

    /// Processes an end tag.
    pub(super) fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        for _ in 0..self.stack.closed_by(name) {
            self.pop()?;
        }
        // The text after a button is apart from it.
        if name == "button" && self.stack.is_in_label() && self.listings == 0 {
            self.run(" ");
        }
        Ok(())
    }

    /// Processes text between tags.
    pub(super) fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        let is_title = self.stack.last().is_some_and(|open| open.tag == Tag::Title);
        if is_title {
            if self.stack.is_title_visible() && self.title.is_empty() {
                self.title = text.chars().take(1000).collect();
            }
            return Ok(());
        }
        if !self.stack.is_visible() {
            self.passed += if self.stack.is_title_visible() { letters(text) } else { 0 };
            return Ok(());
        }
        self.kept += letters(text);
        if self.flow.len() + self.line.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if self.stack.is_in_link() {
            self.linked.linked += letters(text);
        }
        if self.listings > 0 {
            self.line.push_str(text);
        } else {
            self.run(text);
        }
        Ok(())
    }

    /// Appends text with white space collapsed.
    fn run(&mut self, text: &str) {
        // The white space that HTML collapses, which does not include the no-break space.
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{0C}');
        for c in text.chars() {
            if !is_space(c) {
                self.line.push(c);
            } else if !self.line.is_empty() && !self.line.ends_with([' ', '\n']) {
                self.line.push(' ');
            }
        }
    }

    fn void(&mut self, tag: Tag, traits: &Traits) -> Result<(), ExtractError> {
        if !self.stack.is_visible() {
            return Ok(());
        }
        match tag {
            Tag::LineBreak => self.break_line(),
            Tag::Image if !traits.alt.trim().is_empty() => {
                self.text(" ")?;
                self.text(&traits.alt)?;
                self.text(" ")?;
            }
            Tag::Void { is_block: true } => self.flush()?,
            _ => {}
        }
        Ok(())
    }

    fn break_line(&mut self) {
        if self.listings == 0 {
            self.line.truncate(self.line.trim_end_matches(' ').len());
        }
        if !self.line.is_empty() {
            self.line.push('\n');
        }
    }

    /// Opens a visible block.
    fn begin(&mut self, tag: Tag, traits: &Traits) -> Result<(), ExtractError> {
        if let (Tag::Row | Tag::Cell { .. }, Some(table)) = (tag, self.flow.table()) {
            // Text between the cells of a table belongs to none of them.
            self.line.clear();
            self.linked = Letters::default();
            if let Tag::Cell { is_header } = tag {
                table.cell_between(traits.span.0, traits.span.1);
                table.set_header(is_header);
                self.set_in_cell(true);
            } else {
                table.row();
            }
            return Ok(());
        }
        self.flush()?;
        match tag {
            Tag::Table => {
                self.flow.begin_table();
                self.tables.push(false);
            }
            Tag::Heading(level) => self.heading = Some(level),
            Tag::Listing => self.listings += 1,
            Tag::List { is_numbered } => {
                self.lists.push(List { is_numbered, next: traits.number.unwrap_or(1) });
            }
            Tag::Item => self.begin_item(traits.number),
            _ => {}
        }
        Ok(())
    }

    fn begin_item(&mut self, number: Option<u32>) {
        self.items += 1;
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(INDENT_LEVELS_MAX));
        self.mark = Some(match self.lists.last_mut() {
            Some(list) if list.is_numbered => {
                let number = number.unwrap_or(list.next);
                list.next = number.saturating_add(1);
                format!("{indent}{number}. ")
            }
            _ => format!("{indent}- "),
        });
    }

    fn set_in_cell(&mut self, is_in_cell: bool) {
        if let Some(table) = self.tables.last_mut() {
            *table = is_in_cell;
        }
    }

    /// Closes the innermost element.
    fn pop(&mut self) -> Result<(), ExtractError> {
        let was_visible = self.stack.is_visible();
        let Some(closed) = self.stack.pop() else { return Ok(()) };
        if !was_visible || !closed.tag.is_block() {
            return Ok(());
        }
        if closed.tag == Tag::Row && !self.tables.is_empty() {
            return Ok(());
        }
        self.flush()?;
        match closed.tag {
            Tag::Cell { .. } => self.set_in_cell(false),
            Tag::Table => {
                self.tables.pop();
                self.flow.end_table()?;
            }
            Tag::Heading(_) => self.heading = None,
            Tag::Listing => self.listings = self.listings.saturating_sub(1),
            Tag::List { .. } => {
                self.lists.pop();
            }
            Tag::Item => {
                self.items = self.items.saturating_sub(1);
                self.mark = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the current block.
    fn flush(&mut self) -> Result<(), ExtractError> {
        let line = std::mem::take(&mut self.line);
        let content = if self.listings > 0 { line.trim_end() } else { line.trim() };
        if content.trim().is_empty() {
            return Ok(());
        }
        let linked = std::mem::take(&mut self.linked);
        // The number of an item does not count as a letter.
        let all = letters(content).max(linked.linked);
        let letters = Some(Letters { all, is_in_header: self.stack.is_in_header(), ..linked });
        let kind = match self.heading {
            Some(level) => BlockKind::Heading { level },
            None if self.listings > 0 => BlockKind::Code,
            None if self.items > 0 => BlockKind::ListItem,
            None => BlockKind::Paragraph,
        };
        let mark = self.mark.take_if(|_| kind == BlockKind::ListItem);
        let piece = Piece {
            kind,
            text: mark.map_or_else(|| content.to_owned(), |mark| mark + content),
            flat: Some(content.to_owned()).filter(|_| self.flow.is_in_table()),
            letters: letters.filter(|_| self.heading.is_none()),
        };
        match self.tables.last() {
            Some(false) => self.flow.piece_before_table(piece),
            _ => self.flow.piece(piece),
        }
    }
}
