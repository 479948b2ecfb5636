//! What stands on every page and belongs to none: running heads, feet, page numbers.

use std::collections::HashMap;

use crate::pdf::pieces::Piece;

/// The part of a page's height, at its top and at its bottom, where they stand.
const ZONE: f32 = 0.12;
/// The same for a number alone, which belongs to little else.
const NUMBER_ZONE: f32 = 0.2;
/// The share of pages on which a text must stand at the same height. Left and right pages differ.
const SHARE_MIN: f32 = 0.4;
/// Pages on which it must stand.
const PAGES_MIN: usize = 2;
/// Points by which its place may vary.
const DRIFT_MAX: f32 = 6.0;

/// The pieces of a page, and how high it is.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub height: f32,
    pub pieces: &'a mut Vec<Piece>,
}

/// On how many pages a text stands at a height, and the last of them.
type Places = HashMap<(String, i32), (usize, usize)>;

/// Drops what is repeated, unless there is nothing else.
pub(super) fn drop(leaves: &mut [Leaf<'_>]) {
    let mut places = Places::new();
    for (page, leaf) in leaves.iter().enumerate() {
        let rim = Rim::of(leaf);
        for piece in leaf.pieces.iter().filter(|piece| rim.holds(piece)) {
            let place = places.entry((key(piece), height(piece))).or_insert((0, usize::MAX));
            place.0 += usize::from(place.1 != page);
            place.1 = page;
        }
    }
    let needed = PAGES_MIN.max((SHARE_MIN * leaves.len() as f32).ceil() as usize);
    let repeated: Vec<Vec<bool>> = leaves
        .iter()
        .map(|leaf| {
            let rim = Rim::of(leaf);
            let is_repeated = |piece| rim.holds(piece) && pages(&places, piece) >= needed;
            leaf.pieces.iter().map(is_repeated).collect()
        })
        .collect();
    if repeated.iter().flatten().all(|is_repeated| *is_repeated) {
        return;
    }
    for (leaf, repeated) in leaves.iter_mut().zip(repeated) {
        let mut repeated = repeated.into_iter();
        leaf.pieces.retain(|_| !repeated.next().unwrap_or(false));
    }
}

/// The height at which a piece stands, in steps by which it may vary.
fn height(piece: &Piece) -> i32 {
    (piece.baseline / DRIFT_MAX).floor() as i32
}

/// On how many pages a piece stands at about its height.
fn pages(places: &Places, piece: &Piece) -> usize {
    let (key, height) = (key(piece), height(piece));
    let count = |height| places.get(&(key.clone(), height)).map_or(0, |(pages, _)| *pages);
    count(height) + count(height - 1).max(count(height + 1))
}

/// The top and the bottom of a page.
#[derive(Debug)]
struct Rim {
    height: f32,
    first: f32,
    last: f32,
}

impl Rim {
    fn of(leaf: &Leaf<'_>) -> Self {
        let baselines = || leaf.pieces.iter().map(|piece| piece.baseline);
        let (first, last) = (baselines().fold(f32::MAX, f32::min), baselines().fold(0.0, f32::max));
        Self { height: leaf.height, first, last }
    }

    /// Whether a piece stands there. A number alone must stand outermost: tables hold others.
    fn holds(&self, piece: &Piece) -> bool {
        let is_within = |zone: f32| piece.bottom < zone || piece.top > self.height - zone;
        if piece.text.contains(char::is_alphabetic) {
            return is_within(ZONE * self.height);
        }
        let is_outermost = piece.baseline < self.first + 1.0 || piece.baseline > self.last - 1.0;
        is_outermost && is_within(NUMBER_ZONE * self.height)
    }
}

/// The text with its numbers taken out: they count the pages.
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
