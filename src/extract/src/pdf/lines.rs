//! Assembles the pieces of a column into lines.

use crate::pdf::direction;
use crate::pdf::page_block::PageBlock;
use crate::pdf::pieces::Piece;
use lodestone_types::PageArea;

/// Maximum baseline difference within a line, in em.
const SAME_LINE_EM: f32 = 0.35;
/// Lines at the end of the column that a piece may still belong to.
const OPEN_LINES: usize = 3;

/// A line, with its pieces sorted from the left.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub pieces: Vec<Piece>,
    pub baseline: f32,
    pub size: f32,
    pub left: f32,
    pub right: f32,
    /// Letters of its longest piece, which determines the size of the line.
    most: usize,
}

impl Line {
    fn new(piece: Piece) -> Self {
        let Piece { baseline, size, left, right, letters, .. } = piece;
        Self { pieces: vec![piece], baseline, size, left, right, most: letters }
    }

    fn place(&self, piece: &Piece) -> usize {
        self.pieces.partition_point(|own| own.left <= piece.left)
    }

    fn takes(&self, piece: &Piece) -> bool {
        if self.table().is_some() || piece.table.is_some() {
            return false;
        }
        let apart = (piece.baseline - self.baseline).abs();
        let overlaps = |own: &Piece| {
            piece.left < own.right - 0.2 * own.size && own.left < piece.right - 0.2 * own.size
        };
        // Pieces of a line do not overlap, so only the neighbours need checking.
        let place = self.place(piece);
        let beside = self.pieces[place.saturating_sub(1)..].iter().take(2);
        apart <= SAME_LINE_EM * self.size.min(piece.size) && !beside.into_iter().any(overlaps)
    }

    fn add(&mut self, piece: Piece) {
        self.left = self.left.min(piece.left);
        self.right = self.right.max(piece.right);
        if piece.letters > self.most {
            (self.baseline, self.size, self.most) = (piece.baseline, piece.size, piece.letters);
        }
        let place = self.place(&piece);
        self.pieces.insert(place, piece);
    }

    /// The number of letters, without spaces.
    pub(super) fn letters(&self) -> usize {
        self.pieces.iter().map(|piece| piece.letters).sum()
    }

    /// Whether most letters are bold.
    pub(super) fn is_bold(&self) -> bool {
        let bold = self.pieces.iter().filter(|piece| piece.is_bold).map(|piece| piece.letters);
        bold.sum::<usize>() * 2 > self.letters()
    }

    /// Whether the line is a running head.
    pub(super) fn is_running(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_running)
    }

    /// Whether the line is monospaced.
    pub(super) fn is_mono(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_mono)
    }

    /// The area of the page covered by the line.
    pub(super) fn area(&self) -> PageArea {
        let areas = self.pieces.iter().map(Piece::area);
        areas.reduce(PageArea::around).unwrap_or_default()
    }

    /// The text of the line in reading order.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self.in_order().iter().map(|piece| piece.text.as_str()).collect();
        texts.join(" ")
    }

    /// The pieces of the line in reading order.
    pub(super) fn in_order(&self) -> Vec<&Piece> {
        let mut pieces: Vec<&Piece> = self.pieces.iter().collect();
        if self.is_from_right() {
            pieces.reverse();
        }
        pieces
    }

    /// The ruled table that the line stands for.
    pub(super) fn table(&self) -> Option<&PageBlock> {
        self.pieces[0].table.as_deref()
    }

    /// Whether the line is read from right to left.
    pub(super) fn is_from_right(&self) -> bool {
        let right = |piece: &&Piece| direction::is_from_right(&piece.text);
        let letters = self.pieces.iter().filter(right).map(|piece| piece.letters);
        letters.sum::<usize>() * 2 > self.letters()
    }
}

/// The lines of a column whose pieces are sorted from the top.
pub(super) fn of_pieces(pieces: Vec<Piece>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces {
        let open = lines.len().saturating_sub(OPEN_LINES);
        match lines[open..].iter_mut().rev().find(|line| line.takes(&piece)) {
            Some(line) => line.add(piece),
            None => lines.push(Line::new(piece)),
        }
    }
    lines
}
