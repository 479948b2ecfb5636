//! Running headers and footers, page numbers among them: dropped from the pages of a document.

use std::collections::HashMap;

use crate::pdf::pieces::Piece;

/// Share of a page's height, at its top and at its bottom, in which they stand.
const ZONE: f32 = 0.12;
/// The same for a number without words, which is rarely anything else.
const NUMBER_ZONE: f32 = 0.2;
/// Share of pages on which a text must stand at the same height. Left and right pages differ.
const SHARE_MIN: f32 = 0.4;
/// Pages on which a text must stand.
const PAGES_MIN: usize = 2;
/// Points by which its height may vary.
const DRIFT_MAX: f32 = 6.0;

/// Pieces of a page, and its height.
#[derive(Debug)]
pub(super) struct PagePieces<'a> {
    pub height: f32,
    pub pieces: &'a mut Vec<Piece>,
}

/// Number of pages on which a text stands at a height, and the last of them.
type Counts = HashMap<(String, i32), (usize, usize)>;

/// Drops the pieces that are repeated, unless there are no others.
pub(super) fn drop(pages: &mut [PagePieces<'_>]) {
    let mut counts = Counts::new();
    for (number, page) in pages.iter().enumerate() {
        let margins = Margins::of(page);
        for piece in page.pieces.iter().filter(|piece| margins.hold(piece)) {
            let count = counts.entry((key(piece), height(piece))).or_insert((0, usize::MAX));
            count.0 += usize::from(count.1 != number);
            count.1 = number;
        }
    }
    let needed = PAGES_MIN.max((SHARE_MIN * pages.len() as f32).ceil() as usize);
    let repeated: Vec<Vec<bool>> = pages
        .iter()
        .map(|page| {
            let margins = Margins::of(page);
            let is_repeated = |piece| margins.hold(piece) && count(&counts, piece) >= needed;
            page.pieces.iter().map(is_repeated).collect()
        })
        .collect();
    if repeated.iter().flatten().all(|is_repeated| *is_repeated) {
        return;
    }
    for (page, repeated) in pages.iter_mut().zip(repeated) {
        let mut repeated = repeated.into_iter();
        page.pieces.retain(|_| !repeated.next().unwrap_or(false));
    }
}

/// Height at which a piece stands, in steps by which it may vary.
fn height(piece: &Piece) -> i32 {
    (piece.baseline / DRIFT_MAX).floor() as i32
}

/// Number of pages on which a piece stands at about its height.
fn count(counts: &Counts, piece: &Piece) -> usize {
    let (key, height) = (key(piece), height(piece));
    let count = |height| counts.get(&(key.clone(), height)).map_or(0, |(pages, _)| *pages);
    count(height) + count(height - 1).max(count(height + 1))
}

/// Top and bottom margin of a page.
#[derive(Debug)]
struct Margins {
    height: f32,
    first: f32,
    last: f32,
}

impl Margins {
    fn of(page: &PagePieces<'_>) -> Self {
        let baselines = || page.pieces.iter().map(|piece| piece.baseline);
        let (first, last) = (baselines().fold(f32::MAX, f32::min), baselines().fold(0.0, f32::max));
        Self { height: page.height, first, last }
    }

    /// Whether a piece stands in a margin. A number without words must stand outermost: tables
    /// hold others.
    fn hold(&self, piece: &Piece) -> bool {
        let is_within = |zone: f32| piece.bottom < zone || piece.top > self.height - zone;
        if piece.text.contains(char::is_alphabetic) {
            return is_within(ZONE * self.height);
        }
        let is_outermost = piece.baseline < self.first + 1.0 || piece.baseline > self.last - 1.0;
        is_outermost && is_within(NUMBER_ZONE * self.height)
    }
}

/// Text of a piece with a sign in place of numbers: they count the pages.
fn key(piece: &Piece) -> String {
    let mut key = String::with_capacity(piece.text.len());
    for c in piece.text.chars() {
        if !c.is_numeric() {
            key.extend(c.to_lowercase());
        } else if !key.ends_with('#') {
            key.push('#');
        }
    }
    key
}
