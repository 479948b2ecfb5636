//! Pieces of a column to its lines.

use crate::pdf::direction;
use crate::pdf::pieces::Piece;
use lodestone_types::PageArea;

/// Baselines of one line differ by less, in sizes.
const SAME_LINE_EM: f32 = 0.35;
/// Lines at the end of the column so far to which a piece may still belong.
const OPEN_LINES: usize = 3;

/// A line, its pieces sorted from the left.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub pieces: Vec<Piece>,
    pub baseline: f32,
    pub size: f32,
    pub left: f32,
    pub right: f32,
    /// Letters of its longest piece, which gives the line its size.
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
        let apart = (piece.baseline - self.baseline).abs();
        let overlaps = |own: &Piece| {
            piece.left < own.right - 0.2 * own.size && own.left < piece.right - 0.2 * own.size
        };
        // Pieces of a line do not overlap, so only the neighbours could.
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

    /// Number of letters, without spaces.
    pub(super) fn letters(&self) -> usize {
        self.pieces.iter().map(|piece| piece.letters).sum()
    }

    /// Whether most letters of the line are bold.
    pub(super) fn is_bold(&self) -> bool {
        let bold = self.pieces.iter().filter(|piece| piece.is_bold).map(|piece| piece.letters);
        bold.sum::<usize>() * 2 > self.letters()
    }

    /// Whether the line stands on many pages.
    pub(super) fn is_running(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_running)
    }

    /// Whether all letters of the line are equally wide.
    pub(super) fn is_mono(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_mono)
    }

    /// Area of the page that the line covers.
    pub(super) fn area(&self) -> PageArea {
        let areas = self.pieces.iter().map(Piece::area);
        areas.reduce(PageArea::around).unwrap_or_default()
    }

    /// Text of the line in the order in which it is read.
    pub(super) fn text(&self) -> String {
        let mut texts: Vec<&str> = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        if self.is_from_right() {
            texts.reverse();
        }
        texts.join(" ")
    }

    /// Whether the line is read from the right.
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
