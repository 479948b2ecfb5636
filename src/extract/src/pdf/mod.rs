//! PDF reader: from glyphs on pages to text in reading order.
//!
//! `hayro-syntax` parses the file and `hayro-font` decodes the fonts; the rest is done here:
//!
//! ```text
//! bytes -> guard -> parser -> content -> glyphs -> pieces (of lines) -> running heads once
//!   -> ruled tables -> columns -> lines -> tables, prose, items, listings -> headings
//!   -> outline with geometry
//! ```
//! Pages are read as displayed: cropped and rotated. Text at right angles is read after the rest of
//! its page; text at other angles, such as stamps, is not read. Invisible text is read: scans carry
//! it under their images. Optional content, tags, replacement text and annotations are ignored.
//! Pages that cannot be read completely are named in a warning.
//!
//! Invariants
//! - Letters of one column never end up in a line of another.
//! - The area of each line is that of the glyphs it consists of.
//! - Cost is that of sorting the glyphs, except for columns: edges of pieces times pieces, bounded.
//!
//! - `guard`: checks before parsing; `info`: the title of the document
//! - `content`: glyphs and rules drawn by a page; `fonts`: their characters and widths;
//!   `form`: values of form fields
//! - `frame`: the page as displayed; `glyphs`: glyphs on the displayed page
//! - `pieces`: glyphs to pieces of lines; `accents`: accents on letters;
//!   `direction`: right-to-left text
//! - `running_heads`: headers and footers of pages; `columns`: reading order of parts;
//!   `lines`: their lines
//! - `rules`: lines drawn on the page; `grids`: those that form cells; `ruled`: tables in them
//! - `marks`: list items; `tables`: rows and columns; `prose`: paragraphs and listings
//! - `page_block`: a block with the areas of its lines; `headings`: heading detection
//! - `words`: hyphens that belong to words
//! - `picture`: a page as an image

mod accents;
mod columns;
mod content;
mod direction;
mod fonts;
mod form;
mod frame;
mod glyphs;
mod grids;
mod guard;
mod headings;
mod info;
mod lines;
mod marks;
mod page_block;
mod picture;
mod pieces;
mod prose;
mod ruled;
mod rules;
mod running_heads;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::outline::{Outline, too_long};
use crate::pdf::fonts::Fonts;
use crate::pdf::frame::{Frame, Turn};
use crate::pdf::glyphs::Missing;
use crate::pdf::grids::Grid;
use crate::pdf::page_block::{Kind, PageBlock};
pub(super) use crate::pdf::picture::draw as draw_page;
use crate::pdf::pieces::Piece;
use crate::pdf::words::Words;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::limits::PDF_PAGES_MAX;
use lodestone_types::{BlockKind, Extracted, PageRef, PlacedLine, Warning};

/// A catalog without a page tree. Appended to a file that has lost its own, it makes the parser
/// search all objects for pages.
const CATALOG: &[u8] = b"\n9999999 0 obj <</Type /Catalog /Pages 9999999 0 R>> endobj\n";
/// Maximum blocks between the two parts of a paragraph: a figure can have many labels.
const INTERRUPTIONS_MAX: usize = 40;

/// Minimum bytes of the second part: a shorter one may be a piece of a formula.
const PART_BYTES_MIN: usize = 16;

/// The pieces of a page that are level in one rotation, and the grids around them.
#[derive(Debug)]
struct Level {
    turn: Turn,
    pieces: Vec<Piece>,
    grids: Vec<Grid>,
}

/// A page with its pieces by text rotation.
#[derive(Debug)]
struct Page {
    number: u32,
    size: (f32, f32),
    levels: Vec<Level>,
    missing: Missing,
}

impl Page {
    /// A page that could not be read at all.
    fn unreadable(page: &hayro_syntax::page::Page<'_>, number: u32) -> Self {
        let size = Frame::of_page(page).size();
        Self { number, size, levels: Vec::new(), missing: Missing::Letters }
    }
}

/// Reads a PDF document.
pub(super) fn read(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    guard::check(bytes)?;
    // A parser may panic on a file that contradicts itself.
    let outcome = catch_unwind(AssertUnwindSafe(|| decode(bytes)));
    let (pages, title) = outcome.unwrap_or_else(|_| Err(broken("it contradicts itself")))?;
    let numbers = |missing: Missing| -> Vec<u32> {
        pages.iter().filter(|page| page.missing == missing).map(|page| page.number).collect()
    };
    let (unreadable, pictures) = (numbers(Missing::Letters), numbers(Missing::Pictures));
    let mut extracted = arrange(pages, title)?;
    if !unreadable.is_empty() {
        extracted.warnings.push(Warning::unreadable_pages(&unreadable));
    }
    if !pictures.is_empty() {
        extracted.warnings.push(Warning::pages_without_text(&pictures));
    }
    if guard::is_cut_off(bytes) {
        if extracted.text.is_empty() {
            return Err(broken("its end is missing, as after an interrupted transfer"));
        }
        extracted.warnings.push(Warning::cut_off());
    }
    if extracted.text.is_empty() && guard::has_pictures(bytes) {
        return Err(ExtractError::OnlyPictures { format: "PDF" });
    }
    Ok(extracted)
}

fn broken(problem: &str) -> ExtractError {
    ExtractError::Broken { format: "PDF", problem: problem.to_owned() }
}

/// Opens a file and checks the number of pages.
fn open(bytes: &[u8]) -> Result<Pdf, ExtractError> {
    // A file may open with the empty password.
    let opened = Pdf::new(bytes.to_vec()).or_else(|error| match error {
        LoadPdfError::Invalid if !guard::says_encrypted(bytes) => {
            Pdf::new([bytes, CATALOG].concat())
        }
        _ => Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected)),
    });
    let pdf = opened.map_err(|error| match error {
        LoadPdfError::Invalid => broken("it cannot be opened"),
        LoadPdfError::Decryption(_) => ExtractError::Encrypted { format: "PDF" },
    })?;
    if pdf.len() > guard::OBJECTS_MAX {
        return Err(guard::too_many_objects());
    }
    if pdf.pages().len() > PDF_PAGES_MAX {
        return Err(ExtractError::BeyondLimit { what: "pages", max: PDF_PAGES_MAX });
    }
    Ok(pdf)
}

/// The pages of a file and its title.
fn decode(bytes: &[u8]) -> Result<(Vec<Page>, Option<String>), ExtractError> {
    let pdf = open(bytes)?;
    let (mut pages, mut fonts) = (Vec::new(), Fonts::new());
    let mut bytes_of_text = 0;
    for (page, number) in pdf.pages().iter().zip(1..) {
        // If the parser panics on one page, the others are still read.
        let read = catch_unwind(AssertUnwindSafe(|| page_of(page, number, &mut fonts)));
        let read = read.unwrap_or_else(|_| Ok(Page::unreadable(page, number)))?;
        let pieces = read.levels.iter().flat_map(|level| &level.pieces);
        bytes_of_text += pieces.map(|piece| piece.text.len()).sum::<usize>();
        if bytes_of_text > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        pages.push(read);
    }
    if pages.is_empty() {
        return Err(broken("it has no pages"));
    }
    Ok((pages, info::title(&pdf)))
}

/// The pieces of a page, including form field values.
fn page_of<'a>(
    page: &hayro_syntax::page::Page<'a>,
    number: u32,
    fonts: &mut Fonts<'a>,
) -> Result<Page, ExtractError> {
    let found = glyphs::of_page(page, fonts)?;
    let mut levels: Vec<Level> = Vec::with_capacity(found.turns.len());
    for (turn, glyphs) in found.turns {
        let (matrix, height) = (turn.matrix(found.size), turn.size(found.size).1);
        let rules = found.rules.iter().filter_map(|rule| rule.placed(matrix, height));
        let grids = grids::of_rules(rules.collect());
        levels.push(Level { turn, pieces: pieces::of_glyphs(glyphs, &grids, fonts), grids });
    }
    let values = form::values(page);
    let missing = match found.missing {
        Missing::Pictures if !values.is_empty() => Missing::Nothing,
        missing => missing,
    };
    if let Some(upright) = levels.first_mut() {
        upright.pieces.extend(values);
    }
    Ok(Page { number, size: found.size, levels, missing })
}

/// The text of all pages.
fn arrange(mut pages: Vec<Page>, title: Option<String>) -> Result<Extracted, ExtractError> {
    drop_running_heads(&mut pages);
    let pieces = pages.iter().flat_map(|page| &page.levels).flat_map(|level| &level.pieces);
    let words = Words::of_pieces(pieces);
    let is_compound = |word: &str| words.has_compound(word);
    let mut read: Vec<(u32, Vec<PageBlock>)> = Vec::with_capacity(pages.len());
    for page in pages {
        read.push((page.number, blocks(page, &is_compound)));
    }
    headings::mark(read.iter_mut().flat_map(|(_, blocks)| blocks));
    let mut outline = Outline::default();
    if let Some(title) = title {
        outline.set_title(&title);
    }
    for (number, blocks) in read {
        outline.page(PageRef::Page(number));
        for block in blocks {
            write(&mut outline, number, block)?;
        }
    }
    Ok(outline.finish())
}

fn drop_running_heads(pages: &mut [Page]) {
    let mut upright = Vec::with_capacity(pages.len());
    for page in pages {
        if let Some(Level { pieces, .. }) = page.levels.first_mut() {
            upright.push(running_heads::PagePieces { height: page.size.1, pieces });
        }
    }
    running_heads::drop(&mut upright);
}

/// The blocks of a page in reading order.
fn blocks(page: Page, is_compound: &dyn Fn(&str) -> bool) -> Vec<PageBlock> {
    let mut blocks: Vec<PageBlock> = Vec::new();
    for Level { turn, pieces, grids } in page.levels {
        let first_of_turn = blocks.len();
        for part in columns::in_order(ruled::gathered(pieces, &grids, is_compound)) {
            let lines = lines::of_pieces(part);
            for mut block in prose::blocks(&lines, is_compound) {
                for (_, area) in &mut block.areas {
                    *area = turn.shown(*area, page.size);
                }
                match begun(&mut blocks[first_of_turn..], &block) {
                    Some(begun) => begun.join(block, is_compound),
                    None => blocks.push(block),
                }
            }
        }
    }
    blocks
}

/// The paragraph that `next` continues: the last one of the same font size, if it is unfinished.
/// Notes, figures and formulas may come between the two.
fn begun<'a>(blocks: &'a mut [PageBlock], next: &PageBlock) -> Option<&'a mut PageBlock> {
    let is_part = next.kind == Kind::Prose && next.text.starts_with(char::is_lowercase);
    if !is_part || next.text.len() < PART_BYTES_MIN {
        return None;
    }
    let near = blocks.len().saturating_sub(INTERRUPTIONS_MAX);
    let is_alike = |block: &&mut PageBlock| {
        matches!(block.kind, Kind::Prose | Kind::Item)
            && block.is_of_words()
            && (block.size - next.size).abs() < 0.05 * next.size
    };
    let last = blocks[near..].iter_mut().rev().find(is_alike)?;
    let is_open = last.text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | '-'));
    (is_open && last.text.contains(' ')).then_some(last)
}

/// Writes a block and the areas of its lines.
fn write(outline: &mut Outline, page: u32, block: PageBlock) -> Result<(), ExtractError> {
    let kind = match block.kind {
        Kind::Prose => BlockKind::Paragraph,
        Kind::Item => BlockKind::ListItem,
        Kind::Table => BlockKind::Table,
        Kind::Code => BlockKind::Code,
        Kind::Heading { level } => BlockKind::Heading { level },
    };
    let before = outline.len();
    match block.kind {
        Kind::Heading { level } => outline.heading(level, &block.text)?,
        _ => outline.push(kind, &block.text)?,
    }
    let Some(written) = outline.last().filter(|written| written.range.end > before) else {
        return Ok(());
    };
    // Pieces are already cleaned and trimmed, so the outline has only added a prefix to the text.
    let end = written.range.end;
    let start = end - block.text.len().min(written.range.len());
    for (range, area) in block.areas {
        let range = start + range.start..(start + range.end).min(end);
        if !range.is_empty() {
            outline.geometry().push(PlacedLine { range, page, area });
        }
    }
    Ok(())
}
