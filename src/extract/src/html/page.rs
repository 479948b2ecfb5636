//! Blocks and white space of a page: what a browser would lay out, as text.

use crate::html::Scope;
use crate::html::menus::{Letters, letters};
use crate::html::stack::{Stack, Traits};
use crate::html::table::Table;
use crate::html::tags::Tag;
use crate::html::tokens::StartTag;
use crate::outline::{Outline, too_long};
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// Levels by which items are indented at most.
const INDENT_LEVELS_MAX: usize = 8;

/// A page while it is read.
#[derive(Debug)]
pub(super) struct Page {
    outline: Outline,
    stack: Stack,
    /// The block under way: white space is collapsed, but for line breaks and preformatted text.
    line: String,
    title: String,
    heading: Option<u8>,
    listings: usize,
    lists: Vec<List>,
    items: usize,
    /// The mark that the next block of an item begins with.
    mark: Option<String>,
    tables: Vec<Table>,
    /// Whether text goes to a cell of the innermost table.
    is_in_cell: bool,
    /// Columns and rows that the cell under way spans beyond its own.
    span: (usize, usize),
    /// Letters and links of the line under way that are in links.
    linked: Letters,
    /// The blocks so far, tables aside, and which of them are passed over.
    blocks: Vec<Letters>,
    passed_over: Vec<bool>,
    /// Letters that are kept, and those of the site that are not.
    kept: usize,
    passed: usize,
}

/// What a page was read to.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Its text.
    pub document: Extracted,
    /// The letters of its blocks.
    pub blocks: Vec<Letters>,
    /// Letters that were kept.
    pub kept: usize,
    /// Letters that could be seen and were passed over.
    pub passed: usize,
}

#[derive(Debug)]
struct List {
    is_numbered: bool,
    count: usize,
}

impl Page {
    /// An empty page that passes over the blocks of these numbers.
    pub(super) fn new(scope: Scope, passed_over: Vec<bool>) -> Self {
        Self {
            outline: Outline::default(),
            stack: Stack::new(scope),
            line: String::new(),
            title: String::new(),
            heading: None,
            listings: 0,
            lists: Vec::new(),
            items: 0,
            mark: None,
            tables: Vec::new(),
            is_in_cell: false,
            span: (0, 0),
            linked: Letters::default(),
            blocks: Vec::new(),
            passed_over,
            kept: 0,
            passed: 0,
        }
    }

    /// The document, and the letters of its blocks.
    pub(super) fn finish(mut self) -> Result<Rendered, ExtractError> {
        while self.stack.last().is_some() {
            self.pop()?;
        }
        self.flush()?;
        self.outline.set_title(&self.title);
        let Self { outline, blocks, kept, passed, .. } = self;
        Ok(Rendered { document: outline.finish(), blocks, kept, passed })
    }

    /// A start tag.
    pub(super) fn open(&mut self, start: StartTag<'_>) -> Result<(), ExtractError> {
        let tag = Tag::of(&start.name);
        for _ in 0..self.stack.ended_by(tag) {
            self.pop()?;
        }
        let traits = Traits::of(start.attributes);
        if tag.is_void() {
            return self.void(tag, &traits);
        }
        // Only elements of other vocabularies close themselves; of those only these are known.
        if start.is_self_closing && tag == Tag::Unread {
            return Ok(());
        }
        self.stack.push(&start.name, tag, &traits);
        let is_link = tag == Tag::Link && traits.leads && self.stack.is_visible();
        self.linked.links += usize::from(is_link);
        if tag.is_block() && self.stack.is_visible() {
            if let Tag::Cell { .. } = tag {
                self.span = traits.span;
            }
            self.begin(tag)?;
        }
        Ok(())
    }

    /// An end tag.
    pub(super) fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        for _ in 0..self.stack.closed_by(name) {
            self.pop()?;
        }
        Ok(())
    }

    /// Text between tags.
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
        if self.outline.len() + self.line.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if self.stack.is_in_link() {
            self.linked.linked += letters(text);
        }
        if self.listings > 0 && !self.is_in_cell {
            self.line.push_str(text);
        } else {
            self.run(text);
        }
        Ok(())
    }

    /// Appends text with its white space collapsed.
    fn run(&mut self, text: &str) {
        // What HTML collapses; a no-break space is not among it.
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
            Tag::Void { is_block: true } => self.boundary()?,
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

    /// What a visible block does to the text when it opens.
    fn begin(&mut self, tag: Tag) -> Result<(), ExtractError> {
        match tag {
            Tag::Row if self.is_grid() => {
                self.line.clear();
                if let Some(table) = self.tables.last_mut() {
                    table.row();
                }
                return Ok(());
            }
            Tag::Cell { .. } if self.is_grid() => {
                self.line.clear();
                self.is_in_cell = true;
                return Ok(());
            }
            Tag::Table => return self.begin_table(),
            _ => self.boundary()?,
        }
        match tag {
            Tag::Heading(level) => self.heading = Some(level),
            Tag::Listing => self.listings += 1,
            Tag::List { is_numbered } => self.lists.push(List { is_numbered, count: 0 }),
            Tag::Item => self.begin_item(),
            _ => {}
        }
        Ok(())
    }

    fn begin_item(&mut self) {
        self.items += 1;
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(INDENT_LEVELS_MAX));
        self.mark = Some(match self.lists.last_mut() {
            Some(list) if list.is_numbered => {
                list.count += 1;
                format!("{indent}{}. ", list.count)
            }
            _ => format!("{indent}- "),
        });
    }

    /// A table inside a cell makes the outer one a layout: what it holds so far is written.
    fn begin_table(&mut self) -> Result<(), ExtractError> {
        if self.is_in_cell {
            self.is_in_cell = false;
            let inner = std::mem::take(&mut self.line);
            if let Some(outer) = self.tables.last_mut() {
                outer.is_layout = true;
                let rows = outer.take_markdown();
                self.outline.push(BlockKind::Table, &rows)?;
            }
            self.line = inner;
        }
        self.boundary()?;
        self.tables.push(Table::default());
        Ok(())
    }

    /// Whether the innermost table collects rows and cells.
    fn is_grid(&self) -> bool {
        self.tables.last().is_some_and(|table| !table.is_layout)
    }

    /// Closes the innermost element.
    fn pop(&mut self) -> Result<(), ExtractError> {
        let was_visible = self.stack.is_visible();
        let Some(closed) = self.stack.pop() else { return Ok(()) };
        if !was_visible || !closed.tag.is_block() {
            return Ok(());
        }
        match closed.tag {
            Tag::Cell { is_header } if self.is_in_cell => return self.end_cell(is_header),
            Tag::Table => return self.end_table(),
            Tag::Row if self.is_grid() => return Ok(()),
            _ => self.boundary()?,
        }
        match closed.tag {
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

    fn end_cell(&mut self, is_header: bool) -> Result<(), ExtractError> {
        self.is_in_cell = false;
        let content = std::mem::take(&mut self.line);
        let content = content.trim();
        // What a short cell holds is judged with its table: not at all.
        let linked = std::mem::take(&mut self.linked);
        let Some(table) = self.tables.last_mut() else { return Ok(()) };
        if Table::is_too_long(content) {
            table.is_layout = true;
            let rows = table.take_markdown();
            self.outline.push(BlockKind::Table, &rows)?;
            self.linked = linked;
            return self.block(BlockKind::Paragraph, content);
        }
        table.cell(content, is_header, self.span);
        Ok(())
    }

    fn end_table(&mut self) -> Result<(), ExtractError> {
        self.boundary()?;
        if let Some(mut table) = self.tables.pop() {
            let rows = table.take_markdown();
            self.outline.push(BlockKind::Table, &rows)?;
        }
        Ok(())
    }

    /// The edge of a block: inside a cell a space, elsewhere the end of the block under way.
    fn boundary(&mut self) -> Result<(), ExtractError> {
        if self.is_in_cell {
            self.run(" ");
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), ExtractError> {
        let line = std::mem::take(&mut self.line);
        let content = if self.listings > 0 { line.trim_end() } else { line.trim() };
        if content.trim().is_empty() {
            return Ok(());
        }
        if let Some(level) = self.heading {
            self.linked = Letters::default();
            return self.outline.heading(level, content);
        }
        if self.listings > 0 {
            return self.block(BlockKind::Code, content);
        }
        match self.mark.take() {
            Some(mark) => self.block(BlockKind::ListItem, &format!("{mark}{content}")),
            None if self.items > 0 => self.block(BlockKind::ListItem, content),
            None => self.block(BlockKind::Paragraph, content),
        }
    }

    /// A block that may be part of a menu.
    fn block(&mut self, kind: BlockKind, content: &str) -> Result<(), ExtractError> {
        let linked = std::mem::take(&mut self.linked);
        let number = self.blocks.len();
        // The number of an item is no letter of its author.
        let all = letters(content).max(linked.linked);
        let is_in_header = self.stack.is_in_header();
        self.blocks.push(Letters { all, is_in_header, ..linked });
        match self.passed_over.get(number) {
            Some(true) => {
                self.kept = self.kept.saturating_sub(all);
                self.passed += all;
                Ok(())
            }
            _ => self.outline.push(kind, content),
        }
    }
}
