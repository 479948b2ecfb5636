//! XML prose: paragraphs, headings from titles, lists, and table rows.

use crate::flow::Flow;
use crate::grid::Grid;
use crate::outline::too_long;
use crate::xml::Sink;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// The role of an element in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Continues the line.
    Inline,
    /// A field, separated from its neighbours by a space.
    Field,
    /// A block.
    Block,
    /// A block in which titles are one level lower.
    Section,
    /// The title of the document or of a section.
    Title,
    /// A list item.
    Item,
    /// A table row.
    Row,
    /// A table cell.
    Cell,
    /// A code listing.
    Listing,
    /// Not read.
    Unread,
}

fn role_of(name: &str) -> Role {
    match name {
        "italic" | "bold" | "sup" | "sub" | "xref" | "ext-link" | "uri" | "email" | "a" | "b"
        | "i" | "u" | "em" | "strong" | "emphasis" | "emph" | "hi" | "span" | "code" | "tt"
        | "sc" | "monospace" | "underline" | "named-content" | "styled-content" | "link"
        | "ulink" | "literal" | "command" | "filename" | "option" | "citetitle" | "quote" | "q"
        | "thead" | "tbody" | "tfoot" | "tgroup" | "abbrev" | "acronym" | "ref" | "r" | "t"
        | "font" | "small" => Role::Inline,
        "sec" | "section" | "chapter" | "appendix" | "part" | "sect1" | "sect2" | "sect3"
        | "sect4" | "sect5" | "ref-list" | "ack" | "app" | "abstract" | "glossary" => Role::Section,
        "title" | "article-title" | "head" | "h1" | "h2" | "h3" => Role::Title,
        "list-item" | "li" | "listitem" | "item" | "citation-item" => Role::Item,
        "tr" | "row" => Role::Row,
        "td" | "th" | "entry" | "cell" => Role::Cell,
        "pre" | "preformat" | "programlisting" | "screen" | "literallayout" => Role::Listing,
        "tex-math" | "script" | "style" | "annotation" | "object-id" | "journal-id" | "issn"
        | "contrib-id" | "role" => Role::Unread,
        "p" | "para" | "simpara" | "div" | "body" | "front" | "back" | "contrib" | "aff"
        | "kwd" | "kwd-group" | "caption" | "label" | "fig" | "table" | "table-wrap"
        | "article" | "book" | "mixed-citation" | "element-citation" | "citation" | "note"
        | "fn" | "list" | "itemizedlist" | "orderedlist" | "disp-formula" | "disp-quote"
        | "blockquote" | "journal-meta" | "article-categories" | "contrib-group"
        | "title-group" | "pub-date" | "history" | "permissions" | "funding-group"
        | "author-notes" | "text" | "media" => Role::Block,
        _ => Role::Field,
    }
}

#[derive(Debug)]
struct Open {
    role: Role,
    /// Whether text occurs directly in it, so that its child elements are inline.
    is_mixed: bool,
}

/// Writes XML prose.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    open: Vec<Open>,
    sections: usize,
    unread: usize,
    listings: usize,
    /// The current block.
    line: String,
    has_title: bool,
    /// Whether the next block starts a list item.
    is_item_fresh: bool,
}

impl Writer {
    /// Returns the finished document.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        self.flush(BlockKind::Paragraph)?;
        self.flow.finish()
    }

    fn flush(&mut self, kind: BlockKind) -> Result<(), ExtractError> {
        self.flow.end_table()?;
        let line = std::mem::take(&mut self.line);
        let content = if kind == BlockKind::Code { line.trim_end() } else { line.trim() };
        if content.is_empty() || kind != BlockKind::ListItem {
            return self.flow.block(kind, content);
        }
        let mark = if std::mem::take(&mut self.is_item_fresh) { "- " } else { "" };
        self.flow.block(kind, &format!("{mark}{content}"))
    }

    /// The current table, created by the first row or cell.
    fn table(&mut self) -> &mut Grid {
        if !self.flow.is_in_table() {
            self.flow.begin_table();
        }
        self.flow.table().expect("a table is open")
    }

    /// Ends the words before a table that is part of a paragraph.
    fn flush_words(&mut self) -> Result<(), ExtractError> {
        if self.line.trim().is_empty() { Ok(()) } else { self.flush(self.kind()) }
    }

    fn begin_cell(&mut self, attributes: &[(String, String)]) -> Result<(), ExtractError> {
        let span = |name: &str| -> Option<usize> {
            let found = attributes.iter().find(|(found, _)| found == name);
            found.and_then(|(_, value)| value.trim().parse().ok())
        };
        // CALS tables count the additional rows.
        let behind = span("morerows").map(|rows| rows.saturating_add(1));
        let (columns, rows) =
            (span("colspan").unwrap_or(1), span("rowspan").or(behind).unwrap_or(1));
        if !self.flow.is_in_table() {
            self.flush_words()?;
        }
        self.line.clear();
        self.table().cell_between(columns, rows);
        Ok(())
    }

    fn is_inside(&self, roles: &[Role]) -> bool {
        self.open.iter().any(|open| roles.contains(&open.role))
    }

    /// The kind of the block that ends now, given by the innermost block element.
    fn kind(&self) -> BlockKind {
        let apart = self.open.iter().rev().find(|open| {
            matches!(open.role, Role::Item | Role::Listing | Role::Section | Role::Title)
        });
        match apart.map(|open| open.role) {
            Some(Role::Item) => BlockKind::ListItem,
            Some(Role::Listing) => BlockKind::Code,
            _ => BlockKind::Paragraph,
        }
    }

    fn space(&mut self) {
        if !self.line.is_empty() && !self.line.ends_with([' ', '\n']) {
            self.line.push(' ');
        }
    }

    /// The role of an element in its context: within mixed text it is inline.
    fn effective(&self, role: Role) -> Role {
        let in_cell = self.is_inside(&[Role::Cell, Role::Title]);
        match role {
            Role::Unread | Role::Inline => role,
            _ if self.open.last().is_some_and(|open| open.is_mixed) && role != Role::Row => {
                Role::Inline
            }
            _ if in_cell => Role::Field,
            _ => role,
        }
    }

    fn end_title(&mut self) -> Result<(), ExtractError> {
        let title = std::mem::take(&mut self.line);
        if title.trim().is_empty() {
            return Ok(());
        }
        if self.sections == 0 && !self.has_title {
            self.has_title = true;
            self.flow.set_title(&title);
            return self.flow.heading(1, &title);
        }
        // Titles of figures and journals are not in a section of their own.
        let level = u8::try_from(self.sections + 1).unwrap_or(6).clamp(2, 6);
        self.flow.heading(level, &title)
    }
}

impl Sink for Writer {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) -> Result<(), ExtractError> {
        let mut role = self.effective(role_of(name));
        let in_citation = name == "article-title"
            && self.open.last().is_some_and(|open| {
                open.role != Role::Block || self.line.chars().any(|c| !c.is_whitespace())
            });
        if role == Role::Title && in_citation {
            role = Role::Field;
        }
        match role {
            Role::Inline => {}
            Role::Field => self.space(),
            Role::Cell => self.begin_cell(attributes)?,
            Role::Unread => self.unread += 1,
            Role::Row => {
                self.flush_words()?;
                self.table().row();
            }
            Role::Block | Role::Title | Role::Item => self.flush(self.kind())?,
            Role::Section => {
                self.flush(self.kind())?;
                self.sections += 1;
            }
            Role::Listing => {
                self.flush(self.kind())?;
                self.listings += 1;
            }
        }
        if role == Role::Item {
            self.is_item_fresh = true;
        }
        self.open.push(Open { role, is_mixed: false });
        Ok(())
    }

    fn close(&mut self, _: &str) -> Result<(), ExtractError> {
        let kind = self.kind();
        let Some(closed) = self.open.pop() else { return Ok(()) };
        match closed.role {
            Role::Inline => Ok(()),
            Role::Field => {
                self.space();
                Ok(())
            }
            Role::Unread => {
                self.unread -= 1;
                Ok(())
            }
            Role::Cell => {
                let text = std::mem::take(&mut self.line);
                self.flow.block(BlockKind::Paragraph, text.trim())
            }
            Role::Row => Ok(()),
            Role::Title => self.end_title(),
            Role::Section => {
                self.sections -= 1;
                self.flush(kind)
            }
            Role::Listing => {
                self.listings -= 1;
                self.flush(kind)
            }
            Role::Block | Role::Item => self.flush(kind),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.unread > 0 {
            return Ok(());
        }
        if self.flow.len() + self.line.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if self.listings > 0 {
            self.line.push_str(text);
            return Ok(());
        }
        if let Some(open) = self.open.last_mut() {
            open.is_mixed |= text.chars().any(|c| !c.is_whitespace());
        }
        for c in text.chars() {
            match c {
                ' ' | '\t' | '\n' | '\r' => self.space(),
                _ => self.line.push(c),
            }
        }
        Ok(())
    }
}
