//! Values of form fields, as pieces of text placed in the boxes of their fields.
//!
//! Only values are read, not their appearance: many programs that fill in forms draw none.
//! Passwords and signatures are left out; a ticked checkbox reads `[x]`.

use hayro_font::kurbo::Point;
use hayro_syntax::object::dict::keys::{ANNOTS, AS, FF, FT, PARENT, RECT, SUBTYPE, V, WIDGET};
use hayro_syntax::object::{Array, Dict, Name, Object, Rect};
use hayro_syntax::page::Page;

use crate::clean::clean;
use crate::pdf::frame::Frame;
use crate::pdf::info;
use crate::pdf::pieces::Piece;

/// Maximum ancestors of a field. A field inherits their values and types.
const PARENTS_MAX: usize = 8;
/// Maximum bytes of one value.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Field flag: password.
const PASSWORD: i64 = 1 << 13;
/// Font size range in a field, in points; its box may be higher.
const SIZES: (f32, f32) = (4.0, 12.0);

/// The values on a page.
pub(super) fn values(page: &Page<'_>) -> Vec<Piece> {
    let annotations = page.raw().get::<Array<'_>>(ANNOTS).unwrap_or_default();
    let fields = annotations.iter::<Dict<'_>>().filter(|annotation| {
        annotation.get::<Name<'_>>(SUBTYPE).is_some_and(|name| &*name == WIDGET)
    });
    fields.filter_map(|field| piece(page, &field, &value(&field)?)).collect()
}

/// The value of a field; `None` if empty.
fn value(field: &Dict<'_>) -> Option<String> {
    let inherited = |key: &[u8]| {
        let mut at = field.clone();
        for _ in 0..PARENTS_MAX {
            if let Some(value) = at.get::<Object<'_>>(key) {
                return Some(value);
            }
            at = at.get::<Dict<'_>>(PARENT)?;
        }
        None
    };
    let is = |name: &[u8]| matches!(inherited(FT), Some(Object::Name(found)) if &*found == name);
    if is(b"Btn") {
        let state = field.get::<Name<'_>>(AS)?;
        return (&*state != b"Off").then(|| "[x]".to_owned());
    }
    let flags = match inherited(FF) {
        Some(Object::Number(flags)) => flags.as_i64(),
        _ => 0,
    };
    if flags & PASSWORD != 0 {
        return None;
    }
    let text = match inherited(V)? {
        Object::String(text) => info::text(text.as_bytes(), VALUE_BYTES_MAX),
        Object::Stream(text) => info::text(&text.decoded_data().ok()?, VALUE_BYTES_MAX),
        Object::Array(chosen) => {
            let chosen = chosen.iter::<hayro_syntax::object::String<'_>>();
            let texts = chosen.map(|text| info::text(text.as_bytes(), VALUE_BYTES_MAX));
            texts.collect::<Vec<_>>().join(", ")
        }
        _ => return None,
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = clean(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A text in the box of a field.
fn piece(page: &Page<'_>, field: &Dict<'_>, text: &str) -> Option<Piece> {
    let place = field.get::<Rect>(RECT)?;
    let frame = Frame::of_page(page);
    let corner = |x: f64, y: f64| {
        let point = frame.matrix() * Point::new(x, y);
        (point.x as f32, frame.size().1 - point.y as f32)
    };
    let (one, other) = (corner(place.x0, place.y0), corner(place.x1, place.y1));
    let (left, edge) = (one.0.min(other.0), one.0.max(other.0));
    let (top, bottom) = (one.1.min(other.1), one.1.max(other.1));
    if ![left, edge, top, bottom].iter().all(|edge| edge.is_finite()) {
        return None;
    }
    let height = bottom - top;
    let size = (0.7 * height).clamp(SIZES.0, SIZES.1);
    let letters = text.chars().filter(|c| !c.is_whitespace()).count();
    let advance = 0.5 * size;
    // Text of several lines starts at the top of its box.
    let is_high = height > 2.5 * size;
    let baseline = if is_high { top + size } else { (top + bottom) / 2.0 + 0.35 * size };
    Some(Piece {
        text: text.to_owned(),
        left,
        right: edge.min(left + advance * text.chars().count() as f32).max(left),
        top,
        bottom,
        baseline,
        size,
        letters,
        is_bold: false,
        is_mono: false,
        advance,
        is_running: false,
        table: None,
    })
}
