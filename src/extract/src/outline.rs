//! Builds the text of a document: appends and separates blocks, records them and limits the size.

use crate::clean::clean;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{Block, BlockKind, Extracted, Geometry, PageRef, PageStart, Warning};

/// Maximum warnings per document.
const WARNINGS_MAX: usize = 20;

/// The document text being built by a reader.
#[derive(Debug, Default)]
pub(super) struct Outline {
    text: String,
    title: Option<String>,
    first_heading: Option<String>,
    blocks: Vec<Block>,
    pages: Vec<PageStart>,
    /// The page that starts with the next block.
    page: Option<PageRef>,
    geometry: Geometry,
    warnings: Vec<Warning>,
}

impl Outline {
    /// Starts a new page at the next block.
    pub(super) fn page(&mut self, page: PageRef) {
        self.page = Some(page);
    }

    /// Appends the blocks and warnings of another document, without its title and pages.
    pub(super) fn append(&mut self, other: &Extracted) -> Result<(), ExtractError> {
        for warning in &other.warnings {
            self.warn(Warning { pages: Vec::new(), ..warning.clone() });
        }
        for block in &other.blocks {
            self.push(block.kind, &other.text[block.range.clone()])?;
        }
        Ok(())
    }

    /// Appends a block. Surrounding blank lines are dropped; a blank block is ignored.
    pub(super) fn push(&mut self, kind: BlockKind, content: &str) -> Result<(), ExtractError> {
        let content = &*clean(content);
        let content = content.trim_end().trim_start_matches('\n');
        if is_blank(content) {
            return Ok(());
        }
        if self.text.len() + content.len() + 2 > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if let Some(last) = self.blocks.last() {
            let is_list = last.kind == BlockKind::ListItem && kind == BlockKind::ListItem;
            self.text.push_str(if is_list { "\n" } else { "\n\n" });
        }
        let start = self.text.len();
        if let Some(page) = self.page.take() {
            self.pages.push(PageStart { page, start });
        }
        self.text.push_str(content);
        self.blocks.push(Block { kind, range: start..self.text.len() });
        Ok(())
    }

    /// Appends a heading in Markdown syntax.
    pub(super) fn heading(&mut self, level: u8, content: &str) -> Result<(), ExtractError> {
        let content = &*clean(content.trim());
        if self.first_heading.is_none() && !is_blank(content) {
            self.first_heading = Some(content.replace('\n', " "));
        }
        if is_blank(content) {
            return Ok(());
        }
        let marks = &"######"[..usize::from(level.clamp(1, 6))];
        self.push(BlockKind::Heading { level }, &format!("{marks} {}", content.replace('\n', " ")))
    }

    /// Adds a warning about content missing from the text.
    pub(super) fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }

    /// The number of blocks so far.
    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    /// The last block.
    pub(super) fn last(&self) -> Option<&Block> {
        self.blocks.last()
    }

    /// The line positions on pages so far, for the reader to add to.
    pub(super) fn geometry(&mut self) -> &mut Geometry {
        &mut self.geometry
    }

    /// The text length so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Sets the title, which takes precedence over the first heading. A blank title is ignored.
    pub(super) fn set_title(&mut self, title: &str) {
        let title = clean(title).split_whitespace().collect::<Vec<_>>().join(" ");
        if self.title.is_none() && !title.is_empty() {
            self.title = Some(title);
        }
    }

    /// Returns the finished document.
    pub(super) fn finish(self) -> Extracted {
        let title = self.title.or(self.first_heading);
        let Self { text, blocks, pages, geometry, warnings, .. } = self;
        Extracted { text, title, blocks, pages, geometry, warnings }
    }
}

/// The error for text over the size limit.
pub(super) fn too_long() -> ExtractError {
    ExtractError::BeyondLimit { what: "bytes of text", max: TEXT_BYTES_MAX }
}

/// Whether a text is invisible: only whitespace and zero-width characters.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace() || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
    })
}
