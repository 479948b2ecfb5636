//! Glyphs of a page at the places where a reader sees them.
//!
//! The library interprets the page; everything about it that depends on how the page is shown is
//! put before it as one more transformation: the visible box moves to the origin, `/Rotate` turns.
//! So its coordinates are those of the page as shown, but for y, which it counts upwards.

use std::collections::HashMap;

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::TextExtractor;
use pdf_oxide::layout::{FontWeight, TextChar};

use crate::ExtractError;
use crate::pdf::frame::{Frame, Turn};
use crate::pdf::{direction, guard};

/// Bytes of what draws one page.
const CONTENT_BYTES_MAX: usize = 64 << 20;
/// Degrees by which a line of text may lean and still be read as level: scans are never straight.
const LEAN_DEGREES_MAX: f32 = 10.0;
/// Widths that differ by less, in sizes, are those of one glyph.
const SAME_WIDTH: f32 = 0.002;
/// Shapes of alef in a font: alone and behind a letter, with and without a sign.
const ALEFS_MAX: usize = 8;
/// Points by which a glyph may stand outside of the page: fonts are measured generously.
const OUTSIDE_MAX: f32 = 3.0;
/// Sizes of letters, in points, that somebody may read.
const SIZES: std::ops::Range<f32> = 0.5..2_000.0;

/// One glyph that was drawn, or one letter of a ligature. Points from the top left corner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    pub c: char,
    pub left: f32,
    pub right: f32,
    /// The line on which letters stand, downwards.
    pub baseline: f32,
    /// How far the font rises above the baseline and falls below it.
    pub ascent: f32,
    pub descent: f32,
    pub size: f32,
    /// Index into [`Faces`].
    pub face: u16,
}

/// The fonts of a document, each once.
#[derive(Debug, Default)]
pub(super) struct Faces {
    numbers: HashMap<String, u16>,
    faces: Vec<Face>,
}

/// What a font is like.
#[derive(Debug, Clone, Default)]
pub(super) struct Face {
    pub is_bold: bool,
    is_mono_by_name: bool,
    /// Widths of its letters in units of its size: the least, the most.
    widths: Option<(f32, f32)>,
    /// Whether a narrow letter and a wide one were among them.
    kinds: (bool, bool),
    /// Widths of alef where no lam stands before it, in the same units.
    alefs: Vec<f32>,
}

impl Face {
    /// Whether all letters are equally wide.
    pub(super) fn is_mono(&self) -> bool {
        let is_even = self.widths.is_some_and(|(least, most)| most - least < 0.01 * most);
        self.is_mono_by_name || (is_even && self.kinds == (true, true))
    }

    /// Whether an alef of that width is a letter of its own, not half of a ligature with lam.
    pub(super) fn has_alef(&self, width: f32) -> bool {
        self.alefs.iter().any(|known| (known - width).abs() < SAME_WIDTH)
    }

    fn see_alef(&mut self, width: f32) {
        if self.alefs.len() < ALEFS_MAX && !self.has_alef(width) {
            self.alefs.push(width);
        }
    }

    fn see(&mut self, c: char, width: f32) {
        if !c.is_ascii_alphabetic() || width <= 0.0 {
            return;
        }
        let (least, most) = self.widths.unwrap_or((width, width));
        self.widths = Some((least.min(width), most.max(width)));
        self.kinds.0 |= matches!(c, 'i' | 'l' | 'j' | 't' | 'f' | 'r');
        self.kinds.1 |= matches!(c, 'm' | 'w' | 'M' | 'W' | 'o' | 'n');
    }
}

impl Faces {
    /// The font of that number.
    pub(super) fn face(&self, number: u16) -> &Face {
        &self.faces[usize::from(number)]
    }

    fn number(&mut self, char: &TextChar) -> u16 {
        if let Some(&number) = self.numbers.get(&char.font_name) {
            return number;
        }
        // A file with more fonts than numbers is none that people read.
        let number = u16::try_from(self.faces.len()).unwrap_or(u16::MAX - 1).min(u16::MAX - 1);
        let name = char.font_name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if usize::from(number) == self.faces.len() {
            self.faces.push(Face {
                is_bold: matches!(
                    char.font_weight,
                    FontWeight::Bold | FontWeight::ExtraBold | FontWeight::SemiBold
                ) || has(&["bold", "black", "heavy", "-medi", "cmbx", "demi"]),
                is_mono_by_name: has(&[
                    "courier",
                    "mono",
                    "consol",
                    "typewriter",
                    "cmtt",
                    "menlo",
                    "sftt",
                ]),
                ..Face::default()
            });
        }
        self.numbers.insert(char.font_name.clone(), number);
        number
    }
}

/// The glyphs of a page: those that stand upright, and those that a reader turns the page for.
#[derive(Debug)]
pub(super) struct PageGlyphs {
    /// Width and height of the page as shown.
    pub size: (f32, f32),
    /// Turns in which there is any text, with the text that is level then.
    pub turns: Vec<(Turn, Vec<Glyph>)>,
}

/// Reads the glyphs of a page. A page whose content cannot be decoded has none.
pub(super) fn of_page(
    document: &PdfDocument,
    index: usize,
    faces: &mut Faces,
) -> Result<Option<PageGlyphs>, ExtractError> {
    let Ok(page) = document.get_page(index) else { return Ok(None) };
    let Some(frame) = Frame::of_page(document, index) else { return Ok(None) };
    let mut found = PageGlyphs { size: frame.size(), turns: Vec::new() };
    let Ok(content) = document.get_page_content_data(index) else { return Ok(Some(found)) };
    if content.len() > CONTENT_BYTES_MAX {
        let what = "bytes of a page's content";
        return Err(ExtractError::BeyondLimit { what, max: CONTENT_BYTES_MAX });
    }
    if content.is_empty() || guard::nests_too_deep(&content) {
        return Ok(Some(found));
    }
    let mut rest = Turn::ALL.to_vec();
    while let Some(turn) = rest.pop() {
        let mut extractor = TextExtractor::new();
        extractor.set_page_index(index as u32);
        if let Some(resources) = page.as_dict().and_then(|page| page.get("Resources")) {
            extractor.set_resources(resources.clone());
            extractor.set_document(document);
            // Fonts that cannot be loaded are replaced; the text may still be there.
            let _ = document.load_fonts_public(resources, &mut extractor);
        }
        let Ok(chars) = extractor.extract_owned(&drawing(&frame, turn, &content)) else { continue };
        let is_in = |other: Turn| chars.iter().any(|char| turn_of(char, turn) == Some(other));
        rest.retain(|other| is_in(*other));
        let (width, height) = turn.size(frame.size());
        let level = chars.iter().filter(|char| turn_of(char, turn) == Some(turn));
        let glyphs: Vec<Glyph> =
            level.filter_map(|char| glyph(char, (width, height), faces)).collect();
        for pair in glyphs.windows(2) {
            let [last, glyph] = [pair[0], pair[1]];
            if direction::is_alef(glyph.c) && last.c != direction::LAM {
                let width = (glyph.right - glyph.left) / glyph.size;
                faces.faces[usize::from(glyph.face)].see_alef(width);
            }
        }
        found.turns.push((turn, glyphs));
    }
    Ok(Some(found))
}

/// What draws the page in that turn.
fn drawing(frame: &Frame, turn: Turn, content: &[u8]) -> Vec<u8> {
    // The library would decode replacement texts through the font that is set, which gives other
    // letters; what the glyphs themselves say is right.
    const REPLACEMENT: &[u8] = b"/ActualText";
    let mut drawing = format!("{} cm\n", frame.operands(turn)).into_bytes();
    let start = drawing.len();
    drawing.extend_from_slice(content);
    let mut at = start;
    while let Some(found) =
        drawing[at..].windows(REPLACEMENT.len()).position(|window| window == REPLACEMENT)
    {
        drawing[at + found + 1] = b'X';
        at += found + REPLACEMENT.len();
    }
    drawing
}

/// The turn in which a glyph is level, that was drawn in the turn `drawn`.
fn turn_of(char: &TextChar, drawn: Turn) -> Option<Turn> {
    let quarters = (char.rotation_degrees / 90.0).round();
    let lean = (char.rotation_degrees - 90.0 * quarters).abs();
    (lean <= LEAN_DEGREES_MAX).then(|| drawn.and(quarters as i32))
}

fn glyph(char: &TextChar, page: (f32, f32), faces: &mut Faces) -> Option<Glyph> {
    let size = char.font_size;
    let baseline = page.1 - char.origin_y;
    let (left, right) = (char.origin_x, char.origin_x + char.advance_width.max(0.0));
    let is_there = left.is_finite() && right.is_finite() && baseline.is_finite();
    if !is_there || !SIZES.contains(&size) || says_nothing(char.char) {
        return None;
    }
    let middle = (left + right) / 2.0;
    let is_outside = middle < -OUTSIDE_MAX
        || middle > page.0 + OUTSIDE_MAX
        || baseline < -OUTSIDE_MAX
        || baseline > page.1 + OUTSIDE_MAX;
    if is_outside {
        return None;
    }
    let face = faces.number(char);
    faces.faces[usize::from(face)].see(char.char, (right - left) / size);
    // Fonts lie about their height.
    let ascent = char.ascent.clamp(0.5 * size, 1.1 * size);
    let descent = (-char.descent).clamp(0.1 * size, 0.4 * size);
    Some(Glyph { c: char.char, left, right, baseline, ascent, descent, size, face })
}

/// Control characters and codes to which no letter belongs.
fn says_nothing(c: char) -> bool {
    (c.is_control() && !c.is_whitespace()) || c == '\u{FFFD}'
}
