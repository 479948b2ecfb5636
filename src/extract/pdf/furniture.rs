//! What stands on every page and belongs to none: running heads, feet, page numbers.

use std::collections::HashMap;

use crate::extract::pdf::pieces::Piece;

/// The part of a page's height, at its top and at its bottom, where they stand.
const ZONE: f32 = 0.12;
/// The same for a number alone, which belongs to little else.
const NUMBER_ZONE: f32 = 0.16;
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

/// Drops what is repeated, unless there is nothing else.
pub(super) fn drop(leaves: &mut [Leaf<'_>]) {
    let mut places: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
    for (page, leaf) in leaves.iter().enumerate() {
        for piece in leaf.pieces.iter().filter(|piece| is_outer(piece, leaf.height)) {
            places.entry(key(piece)).or_default().push((page, piece.baseline));
        }
    }
    let needed = PAGES_MIN.max((SHARE_MIN * leaves.len() as f32).ceil() as usize);
    let repeated = |piece: &Piece, height: f32| {
        is_outer(piece, height)
            && places.get(&key(piece)).is_some_and(|places| {
                let near = |place: &&(usize, f32)| (place.1 - piece.baseline).abs() <= DRIFT_MAX;
                let mut pages: Vec<usize> =
                    places.iter().filter(near).map(|(page, _)| *page).collect();
                pages.dedup();
                pages.len() >= needed
            })
    };
    let stays = |leaf: &Leaf<'_>| leaf.pieces.iter().any(|piece| !repeated(piece, leaf.height));
    if !leaves.iter().any(stays) {
        return;
    }
    for leaf in leaves {
        let height = leaf.height;
        leaf.pieces.retain(|piece| !repeated(piece, height));
    }
}

fn is_outer(piece: &Piece, height: f32) -> bool {
    let is_number = !piece.text.contains(char::is_alphabetic);
    let zone = height * if is_number { NUMBER_ZONE } else { ZONE };
    piece.bottom < zone || piece.top > height - zone
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
