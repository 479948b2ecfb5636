//! The glyphs and rules of a page at their displayed positions.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use hayro_font::kurbo::{Affine, Point, Vec2};
use hayro_syntax::Filter;
use hayro_syntax::object::dict::keys::CONTENTS;
use hayro_syntax::object::{Object, Stream};
use hayro_syntax::page::Page;

use crate::ExtractError;
use crate::pdf::content::{Drawn, GLYPHS_MAX, Interpreter};
use crate::pdf::fonts::Fonts;
use crate::pdf::frame::{Frame, Turn};
use crate::pdf::rules::Rule;

/// Maximum content bytes per page; forms may add the same again.
const CONTENT_BYTES_MAX: usize = 64 << 20;
/// Maximum slope, in degrees, of a line that is read as level: scans are never straight.
const LEAN_DEGREES_MAX: f64 = 10.0;
/// Points by which a glyph may lie outside the page: font metrics are generous.
const OUTSIDE_MAX: f32 = 3.0;
/// Font sizes, in points, that can be read.
const SIZES: std::ops::Range<f32> = 0.5..2_000.0;
/// Letters closer than this share of their width, and than this many points, are one letter drawn
/// twice to look bold.
const SAME_PLACE: (f32, f32) = (0.3, 2.0);

/// Minimum letters without a character for a page to count as unreadable, if they also make up this
/// share (1/n) of its letters. Bullets and other symbols are fewer.
const LOST_MIN: usize = 20;
const LOST_SHARE: usize = 10;

/// One drawn glyph, or one letter of a ligature. In points from the top left corner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    pub c: char,
    pub left: f32,
    pub right: f32,
    /// Distance of the baseline from the top.
    pub baseline: f32,
    /// Ascent and descent of the font.
    pub ascent: f32,
    pub descent: f32,
    pub size: f32,
    /// Index for [`Fonts::face`].
    pub face: u16,
}

/// The glyphs of a page by text rotation, and its rules.
#[derive(Debug)]
pub(super) struct PageGlyphs {
    /// Width and height of the page as displayed.
    pub size: (f32, f32),
    /// Rotations with any text, upright first, each with the text that is level in it.
    pub turns: Vec<(Turn, Vec<Glyph>)>,
    /// Rules on the page as displayed, measured from its lower left corner.
    pub rules: Vec<Rule>,
    /// The part of the page that is missing.
    pub missing: Missing,
}

/// The part of a page that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing is missing.
    Nothing,
    /// All or many of its letters.
    Letters,
    /// It has no letters, but images that may show some.
    Pictures,
}

/// Reads the glyphs of a page. Content that cannot be decoded is left out.
///
/// # Errors
/// [`ExtractError::BeyondLimit`] for a page of too many bytes or glyphs.
pub(super) fn of_page<'a>(
    page: &Page<'a>,
    fonts: &mut Fonts<'a>,
) -> Result<PageGlyphs, ExtractError> {
    let frame = Frame::of_page(page);
    let streams = streams(page);
    let content = content(&streams)?;
    let mut interpreter = Interpreter::new(fonts, frame.matrix(), CONTENT_BYTES_MAX);
    interpreter.run(&content, page.resources(), 0);
    if interpreter.drawn.len() >= GLYPHS_MAX {
        let what = "glyphs of a page";
        return Err(ExtractError::BeyondLimit { what, max: GLYPHS_MAX });
    }
    let is_lost = interpreter.lost >= LOST_MIN
        && interpreter.lost.saturating_mul(LOST_SHARE) >= interpreter.codes;
    let missing = match () {
        () if is_lost => Missing::Letters,
        () if interpreter.codes == 0 && !streams.iter().all(inflates) => Missing::Letters,
        () if interpreter.codes == 0 && interpreter.has_picture => Missing::Pictures,
        () => Missing::Nothing,
    };
    let rules = interpreter.pen.into_rules();
    let mut turns = Turn::ALL.map(|turn| (turn, Vec::new()));
    for drawn in interpreter.drawn {
        let Some(turn) = turn_of(&drawn) else { continue };
        let (width, height) = turn.size(frame.size());
        if let Some(glyph) = glyph(&drawn, turn.matrix(frame.size()), (width, height), fonts) {
            turns[turn.quarters()].1.push(glyph);
        }
    }
    let mut turns: Vec<(Turn, Vec<Glyph>)> = turns.into();
    turns.retain(|(turn, glyphs)| *turn == Turn::UPRIGHT || !glyphs.is_empty());
    for (_, glyphs) in &mut turns {
        drop_doubles(glyphs);
    }
    Ok(PageGlyphs { size: frame.size(), turns, rules, missing })
}

/// The streams that draw a page.
fn streams<'a>(page: &Page<'a>) -> Vec<Stream<'a>> {
    match page.raw().get::<Object<'_>>(CONTENTS) {
        Some(Object::Stream(stream)) => vec![stream],
        Some(Object::Array(parts)) => {
            parts.raw_iter().filter_map(|part| page.xref().get(part.as_obj_ref()?.into())).collect()
        }
        _ => Vec::new(),
    }
}

/// The content of a page: its streams, concatenated.
fn content(streams: &[Stream<'_>]) -> Result<Vec<u8>, ExtractError> {
    let mut content = Vec::new();
    for part in streams.iter().filter_map(|stream| stream.decoded_data().ok()) {
        if content.len() + part.len() > CONTENT_BYTES_MAX {
            let what = "bytes of a page's content";
            return Err(ExtractError::BeyondLimit { what, max: CONTENT_BYTES_MAX });
        }
        content.extend_from_slice(&part);
        content.push(b'\n');
    }
    Ok(content)
}

/// Whether a stream is valid for its filter. The library decodes as much as it can of a damaged
/// one, which may be nothing.
fn inflates(stream: &Stream<'_>) -> bool {
    let [Filter::FlateDecode] = stream.filters()[..] else { return true };
    let raw = stream.raw_data();
    let inflated = ZlibDecoder::new(&*raw).take(CONTENT_BYTES_MAX as u64);
    io::copy(&mut { inflated }, &mut io::sink()).is_ok()
}

/// The rotation in which a glyph is level.
fn turn_of(drawn: &Drawn<'_>) -> Option<Turn> {
    let [a, b, ..] = drawn.matrix.as_coeffs();
    let degrees = Vec2::new(a, b).atan2().to_degrees();
    let quarters = (degrees / 90.0).round();
    let lean = (degrees - 90.0 * quarters).abs();
    (lean <= LEAN_DEGREES_MAX).then(|| Turn::UPRIGHT.and(quarters as i32))
}

/// Places a glyph on the page, of size `page`, rotated by `level`.
fn glyph(
    drawn: &Drawn<'_>,
    level: Affine,
    page: (f32, f32),
    fonts: &mut Fonts<'_>,
) -> Option<Glyph> {
    let [a, b, c, d, x, y] = drawn.matrix.as_coeffs();
    let size = c.hypot(d) as f32;
    let origin = level * Point::new(x, y);
    let (left, baseline) = (origin.x as f32, page.1 - origin.y as f32);
    let right = left + (drawn.width * a.hypot(b)).max(0.0) as f32;
    let is_there = left.is_finite() && right.is_finite() && baseline.is_finite();
    if !is_there || !SIZES.contains(&size) || says_nothing(drawn.c) {
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
    let face = drawn.font.face;
    fonts.face_mut(face).see(drawn.c, (right - left) / size);
    let (ascent, descent) = drawn.font.height;
    let (ascent, descent) = (ascent * size, descent * size);
    Some(Glyph { c: drawn.c, left, right, baseline, ascent, descent, size, face })
}

/// Control characters and codes without a letter.
fn says_nothing(c: char) -> bool {
    (c.is_control() && !c.is_whitespace()) || c == '\u{FFFD}'
}

/// Sorts the glyphs and drops letters drawn again at about the same place.
fn drop_doubles(glyphs: &mut Vec<Glyph>) {
    let line = |glyph: &Glyph| glyph.baseline.round() as i32;
    glyphs.sort_by(|a, b| line(a).cmp(&line(b)).then(a.left.total_cmp(&b.left)));
    glyphs.dedup_by(|next, last| {
        let (share, points) = SAME_PLACE;
        let near = (share * (next.right - next.left)).min(points);
        next.c == last.c && line(next) == line(last) && next.left - last.left < near
    });
}
