//! PDF: glyphs on pages to text in reading order.
//!
//! The library `pdf_oxide` decodes the file and says which glyph stands where; what they mean
//! together is found out here:
//!
//! ```text
//! bytes -> guard -> library -> glyphs -> pieces (of lines) -> furniture dropped
//!   -> columns -> lines -> tables, prose, items, listings -> headings -> outline with geometry
//! ```
//! Pages are taken as they are shown: cropped and turned. Text that stands at right angles is read
//! after the rest of its page; text at other angles (stamps across a page) is not read. The order
//! of what draws a page, its tags and its forms' values do not count.
//!
//! Invariants
//! - Letters of one column never get into a line of another.
//! - Each line's place is that of the glyphs that it was made of.
//! - Cost is that of sorting glyphs, but for columns: edges of pieces by pieces, bounded.
//!
//! - `guard`: what is refused before the library sees it
//! - `tree`: the tree of pages, which may loop
//! - `frame`: a page as shown; `glyphs`: what stands on it
//! - `pieces`: glyphs to stretches of lines; `accents`: signs on letters; `direction`: text from
//!   the right
//! - `furniture`: running heads and feet; `columns`: the order of parts; `lines`: their lines
//! - `marks`: items of lists; `tables`: rows and columns; `prose`: paragraphs and listings
//! - `passage`: a block with the places of its lines; `headings`: which passages are titles
//! - `words`: hyphens that belong to words; `info`: what the file says about itself

mod accents;
mod columns;
mod direction;
mod frame;
mod furniture;
mod glyphs;
mod guard;
mod headings;
mod info;
mod lines;
mod marks;
mod passage;
mod pieces;
mod prose;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_oxide::PdfDocument;

use crate::outline::{Outline, too_long};
use crate::pdf::frame::Turn;
use crate::pdf::glyphs::Faces;
use crate::pdf::passage::{Kind, Passage};
use crate::pdf::pieces::Piece;
use crate::pdf::words::Words;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted, PageRef, PlacedLine};

/// Pages of a document.
const PAGES_MAX: usize = 5_000;
/// Pages in succession that cannot be found, after which no more are looked for: a file may speak
/// of any number of pages, and each search goes through all of it.
const LOST_PAGES_MAX: usize = 16;

/// Passages that may stand between the two parts of a paragraph: the labels of a figure are many.
const INTERRUPTIONS_MAX: usize = 40;

/// Bytes of the second part: what is shorter may as well be a piece of a formula.
const PART_BYTES_MIN: usize = 16;

/// A page with its pieces, one list for each turn in which there is text.
#[derive(Debug)]
struct Page {
    number: u32,
    size: (f32, f32),
    turns: Vec<(Turn, Vec<Piece>)>,
}

/// Reads a PDF.
pub(super) fn read(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    guard::check(bytes)?;
    // The library indexes and unwraps where files lie to it.
    let outcome = catch_unwind(AssertUnwindSafe(|| decode(bytes)));
    let (pages, title) = outcome.unwrap_or_else(|_| Err(broken("it contradicts itself")))?;
    let extracted = arrange(pages, title)?;
    if extracted.text.is_empty() && guard::has_pictures(bytes) {
        return Err(ExtractError::OnlyPictures { format: "PDF" });
    }
    Ok(extracted)
}

fn broken(problem: &str) -> ExtractError {
    ExtractError::Broken { format: "PDF", problem: problem.to_owned() }
}

/// The pages of a file and its title.
fn decode(bytes: &[u8]) -> Result<(Vec<Page>, Option<String>), ExtractError> {
    let encrypted = || ExtractError::Encrypted { format: "PDF" };
    let opened = PdfDocument::from_bytes(bytes.to_vec());
    let Ok(document) = opened else {
        let is_encrypted = guard::says_encrypted(bytes);
        return Err(if is_encrypted { encrypted() } else { broken("it cannot be opened") });
    };
    // Without a password given, a file may still open with the empty one.
    if document.is_encrypted() && !matches!(document.authenticate(b""), Ok(true)) {
        return Err(encrypted());
    }
    if document.all_object_ids().len() > guard::OBJECTS_MAX {
        return Err(guard::too_many_objects());
    }
    tree::check(&document)?;
    let count = document.page_count().map_err(|_| broken("its pages cannot be found"))?;
    if count > PAGES_MAX {
        return Err(tree::too_many_pages());
    }
    let (mut pages, mut faces) = (Vec::new(), Faces::default());
    let (mut lost, mut bytes_of_text) = (0, 0);
    for index in 0..count {
        let Some(found) = glyphs::of_page(&document, index, &mut faces)? else {
            lost += 1;
            if lost == LOST_PAGES_MAX {
                break;
            }
            continue;
        };
        lost = 0;
        let turns = found.turns.into_iter();
        let turns: Vec<_> =
            turns.map(|(turn, glyphs)| (turn, pieces::of_glyphs(glyphs, &faces))).collect();
        let pieces = turns.iter().flat_map(|(_, pieces)| pieces);
        bytes_of_text += pieces.map(|piece| piece.text.len()).sum::<usize>();
        if bytes_of_text > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        pages.push(Page { number: index as u32 + 1, size: found.size, turns });
    }
    if pages.is_empty() {
        return Err(broken("it has no pages"));
    }
    Ok((pages, info::title(&document)))
}

/// The text of all pages.
fn arrange(mut pages: Vec<Page>, title: Option<String>) -> Result<Extracted, ExtractError> {
    drop_furniture(&mut pages);
    let pieces = pages.iter().flat_map(|page| &page.turns).flat_map(|(_, pieces)| pieces);
    let words = Words::of_pieces(pieces);
    let is_compound = |word: &str| words.has_compound(word);
    let mut read: Vec<(u32, Vec<Passage>)> = Vec::with_capacity(pages.len());
    for page in pages {
        read.push((page.number, passages(page, &is_compound)));
    }
    headings::mark(read.iter_mut().flat_map(|(_, passages)| passages));
    let mut outline = Outline::default();
    if let Some(title) = title {
        outline.set_title(&title);
    }
    for (number, passages) in read {
        outline.page(PageRef::Page(number));
        for passage in passages {
            write(&mut outline, number, passage)?;
        }
    }
    Ok(outline.finish())
}

fn drop_furniture(pages: &mut [Page]) {
    let mut leaves = Vec::with_capacity(pages.len());
    for page in pages {
        let height = page.size.1;
        if let Some((_, pieces)) = page.turns.first_mut() {
            leaves.push(furniture::Leaf { height, pieces });
        }
    }
    furniture::drop(&mut leaves);
}

/// The passages of a page in the order in which they are read.
fn passages(page: Page, is_compound: &dyn Fn(&str) -> bool) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for (turn, pieces) in page.turns {
        let first_of_turn = passages.len();
        for part in columns::in_order(pieces) {
            let lines = lines::of_pieces(part);
            for mut passage in prose::passages(&lines, is_compound) {
                for (_, area) in &mut passage.places {
                    *area = turn.shown(*area, page.size);
                }
                match begun(&mut passages[first_of_turn..], &passage) {
                    Some(begun) => begun.join(passage, is_compound),
                    None => passages.push(passage),
                }
            }
        }
    }
    passages
}

/// The paragraph that goes on with a passage: the last one in letters of its size, if that was left
/// open. Between the two may stand what interrupts a column: notes, figures, formulas.
fn begun<'a>(passages: &'a mut [Passage], next: &Passage) -> Option<&'a mut Passage> {
    let is_part = next.kind == Kind::Prose && next.text.starts_with(char::is_lowercase);
    if !is_part || next.text.len() < PART_BYTES_MIN {
        return None;
    }
    let near = passages.len().saturating_sub(INTERRUPTIONS_MAX);
    let is_alike = |passage: &&mut Passage| {
        matches!(passage.kind, Kind::Prose | Kind::Item)
            && passage.is_of_words()
            && (passage.size - next.size).abs() < 0.05 * next.size
    };
    let last = passages[near..].iter_mut().rev().find(is_alike)?;
    let is_open = last.text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | '-'));
    (is_open && last.text.contains(' ')).then_some(last)
}

/// Writes a passage and where its lines stand.
fn write(outline: &mut Outline, page: u32, passage: Passage) -> Result<(), ExtractError> {
    let kind = match passage.kind {
        Kind::Prose => BlockKind::Paragraph,
        Kind::Item => BlockKind::ListItem,
        Kind::Table => BlockKind::Table,
        Kind::Code => BlockKind::Code,
        Kind::Heading { level } => BlockKind::Heading { level },
    };
    let before = outline.len();
    match passage.kind {
        Kind::Heading { level } => outline.heading(level, &passage.text)?,
        _ => outline.push(kind, &passage.text)?,
    }
    let Some(block) = outline.last().filter(|block| block.range.end > before) else {
        return Ok(());
    };
    // Pieces were cleaned and trimmed, so the outline has only put marks before the text.
    let end = block.range.end;
    let start = end - passage.text.len().min(block.range.len());
    for (range, area) in passage.places {
        let range = start + range.start..(start + range.end).min(end);
        if !range.is_empty() {
            outline.geometry().push(PlacedLine { range, page, area });
        }
    }
    Ok(())
}
