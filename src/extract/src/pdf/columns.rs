//! The reading order of the parts of a page: columns one after the other, between the parts that
//! span them.
//!
//! ```text
//!   +--------------------+   above: read first
//!   | title              |
//!   | left     | right   |   a gutter without text separates columns
//!   | left     | right   |   if both sides contain lines of prose
//!   | footnote           |   below: read last
//!   +--------------------+
//! ```
//! Each part is split in the same way. Table rows are not prose: they stay together.

use std::collections::BTreeSet;

use crate::pdf::direction;
use crate::pdf::pieces::Piece;

/// Minimum gutter width, in em.
const GUTTER_EM: f32 = 0.7;
/// Minimum rows of each column.
const ROWS_MIN: usize = 3;
/// Minimum letters of a piece of prose; table cells and form fields have fewer. Most letters of a
/// column are in such pieces.
const PROSE_LETTERS_MIN: usize = 18;
/// Minimum vertical overlap of two columns, as a share of the lower column.
const BESIDE_MIN: f32 = 0.4;
/// Maximum depth of nested parts; newspapers have five.
const DEPTH_MAX: usize = 12;
/// Above this number of pieces a page is not searched for columns.
const PIECES_MAX: usize = 10_000;

/// A gutter, and the pieces on either side of it, sorted from the top.
#[derive(Debug)]
struct Gutter {
    middle: f32,
    first: usize,
    end: usize,
    /// Letters of the column that has fewer.
    letters: usize,
}

/// One side of a gutter during the scan of its pieces.
#[derive(Debug, Clone, Copy)]
struct Side {
    rows: usize,
    letters: usize,
    /// Letters in pieces of prose.
    prose: usize,
    top: f32,
    bottom: f32,
    baseline: f32,
}

const EMPTY: Side =
    Side { rows: 0, letters: 0, prose: 0, top: f32::MAX, bottom: f32::MIN, baseline: f32::MIN };

impl Side {
    fn add(&mut self, piece: &Piece) {
        self.rows += usize::from(piece.baseline - self.baseline > 0.5 * piece.size);
        self.letters += piece.letters;
        self.prose += if piece.letters >= PROSE_LETTERS_MIN { piece.letters } else { 0 };
        self.top = self.top.min(piece.top);
        self.bottom = self.bottom.max(piece.bottom);
        self.baseline = piece.baseline;
    }

    fn is_column(&self) -> bool {
        self.rows >= ROWS_MIN && self.prose * 2 > self.letters
    }
}

/// The parts of a page in reading order, each sorted from the top.
pub(super) fn in_order(mut pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    pieces.sort_by(|a, b| a.baseline.total_cmp(&b.baseline).then(a.left.total_cmp(&b.left)));
    let mut parts = Vec::new();
    let mut open = vec![(pieces, 0)];
    while let Some((pieces, depth)) = open.pop() {
        let gutter = if depth < DEPTH_MAX { gutter(&pieces) } else { None };
        let Some(gutter) = gutter else {
            if !pieces.is_empty() {
                parts.push(pieces);
            }
            continue;
        };
        let mut above = pieces;
        let below = above.split_off(gutter.end);
        let beside = above.split_off(gutter.first);
        let text: String = beside.iter().map(|piece| piece.text.as_str()).collect();
        let is_left = |piece: &Piece| piece.left < gutter.middle;
        let (left, right): (Vec<_>, Vec<_>) = beside.into_iter().partition(is_left);
        let mut columns = [left, right];
        if direction::is_from_right(&text) {
            columns.reverse();
        }
        let [one, other] = columns;
        // The part pushed last is read first.
        open.extend([below, other, one, above].map(|part| (part, depth + 1)));
    }
    parts
}

/// The gutter that separates the most text.
fn gutter(pieces: &[Piece]) -> Option<Gutter> {
    if pieces.len() < 2 * ROWS_MIN || pieces.len() > PIECES_MAX {
        return None;
    }
    let mut sizes: Vec<f32> = pieces.iter().map(|piece| piece.size).collect();
    sizes.sort_by(f32::total_cmp);
    let width = GUTTER_EM * sizes[sizes.len() / 2];
    // It is enough to try gutters that start at the right edge of a piece.
    let starts: BTreeSet<i32> = pieces.iter().map(|piece| piece.right.ceil() as i32).collect();
    let mut best: Option<Gutter> = None;
    for start in starts {
        let start = start as f32;
        for found in stretches(pieces, start, start + width) {
            if best.as_ref().is_none_or(|best| found.letters > best.letters) {
                best = Some(found);
            }
        }
    }
    best
}

/// Vertical ranges in which no piece crosses the gutter and both sides are columns.
fn stretches(pieces: &[Piece], start: f32, end: f32) -> Vec<Gutter> {
    let mut found = Vec::new();
    let (mut first, mut left, mut right) = (0, EMPTY, EMPTY);
    for at in 0..=pieces.len() {
        let piece = pieces.get(at);
        let is_inside = |piece: &&Piece| piece.right > start && piece.left < end;
        if let Some(piece) = piece.filter(|piece| !is_inside(piece)) {
            if piece.right <= start { &mut left } else { &mut right }.add(piece);
            continue;
        }
        let beside = left.bottom.min(right.bottom) - left.top.max(right.top);
        let lower = (left.bottom - left.top).min(right.bottom - right.top);
        if left.is_column() && right.is_column() && beside >= BESIDE_MIN * lower {
            let letters = left.letters.min(right.letters);
            found.push(Gutter { middle: (start + end) / 2.0, first, end: at, letters });
        }
        (first, left, right) = (at + 1, EMPTY, EMPTY);
    }
    found
}
