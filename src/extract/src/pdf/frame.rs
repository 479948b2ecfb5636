//! The page as it is shown: cropped, turned, and measured from its top left corner.

use pdf_oxide::PdfDocument;

use lodestone_types::PageArea;

/// Points of a page's edges: the widest that readers accept is 14,400 units.
const EDGE_MAX: f32 = 1.0e6;

/// Quarters of a full turn, against the clock, by which a text is turned on the page as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u8);

impl Turn {
    /// All turns, the upright one last.
    pub(super) const ALL: [Self; 4] = [Self(3), Self(2), Self(1), Self(0)];

    /// This turn and `quarters` more.
    pub(super) fn and(self, quarters: i32) -> Self {
        Self((i32::from(self.0) + quarters).rem_euclid(4) as u8)
    }

    /// Width and height of a page of `size`, when it is held so that the text is level.
    pub(super) fn size(self, size: (f32, f32)) -> (f32, f32) {
        if self.0.is_multiple_of(2) { size } else { (size.1, size.0) }
    }

    /// Where an area of the page held so that the text is level lies on the page as shown, whose
    /// size is `size`.
    pub(super) fn shown(self, area: PageArea, size: (f32, f32)) -> PageArea {
        let PageArea { x, y, width, height } = area;
        match self.0 {
            0 => area,
            1 => PageArea { x: y, y: size.1 - x - width, width: height, height: width },
            2 => PageArea { x: size.0 - x - width, y: size.1 - y - height, width, height },
            _ => PageArea { x: size.0 - y - height, y: x, width: height, height: width },
        }
    }

    /// The matrix that turns a page of `size` so that the text is level.
    fn matrix(self, (width, height): (f32, f32)) -> [f32; 6] {
        match self.0 {
            0 => [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            1 => [0.0, -1.0, 1.0, 0.0, 0.0, width],
            2 => [-1.0, 0.0, 0.0, -1.0, width, height],
            _ => [0.0, 1.0, -1.0, 0.0, height, 0.0],
        }
    }
}

/// The visible box of a page and how it is turned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    left: f32,
    bottom: f32,
    width: f32,
    height: f32,
    /// As a reader turns the page by `/Rotate`, the text turns the other way.
    turn: Turn,
}

impl Frame {
    /// The frame of a page, unless its box is none.
    pub(super) fn of_page(document: &PdfDocument, index: usize) -> Option<Self> {
        // Without a box readers assume letter paper.
        let visible = document.get_page_visible_box(index).unwrap_or((0.0, 0.0, 612.0, 792.0));
        let degrees = document.get_page_rotation(index).unwrap_or(0);
        let (left, bottom, right, top) = visible;
        let (width, height) = (right - left, top - bottom);
        let is_page = |edge: f32| edge > 0.0 && edge < EDGE_MAX;
        // `/Rotate` turns with the clock: text is level on the page turned by as much.
        let turn = Turn(0).and(degrees / 90);
        (is_page(width) && is_page(height) && left.abs() < EDGE_MAX && bottom.abs() < EDGE_MAX)
            .then_some(Self { left, bottom, width, height, turn })
    }

    /// Width and height of the page as shown.
    pub(super) fn size(&self) -> (f32, f32) {
        self.turn.size((self.width, self.height))
    }

    /// The matrix from the page's own coordinates to those of the page as shown, held so that text
    /// in `turn` is level: six numbers.
    pub(super) fn operands(&self, turn: Turn) -> String {
        let origin = [1.0, 0.0, 0.0, 1.0, -self.left, -self.bottom];
        let shown = product(origin, self.turn.matrix((self.width, self.height)));
        let level = product(shown, turn.matrix(self.size()));
        level.map(|number| format!("{number:.4}")).join(" ")
    }
}

/// First one matrix, then the other.
fn product(one: [f32; 6], other: [f32; 6]) -> [f32; 6] {
    let [a, b, c, d, e, f] = other;
    let turned = |x: f32, y: f32| (x * a + y * c, x * b + y * d);
    let ((p, q), (r, s)) = (turned(one[0], one[1]), turned(one[2], one[3]));
    let (t, u) = turned(one[4], one[5]);
    [p, q, r, s, t + e, u + f]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(matrix: [f32; 6], (x, y): (f32, f32)) -> (f32, f32) {
        let [a, b, c, d, e, f] = matrix;
        (x * a + y * c + e, x * b + y * d + f)
    }

    /// Goal: turning a page and bringing an area back ends where it began.
    #[test]
    fn areas_come_back_from_every_turn() {
        let size = (200.0, 100.0);
        for turn in Turn::ALL {
            // A box at 20, 30 from the top left corner, 50 wide, 10 high.
            let (one, other) = ((20.0, 100.0 - 30.0), (70.0, 100.0 - 40.0));
            let (one, other) = (apply(turn.matrix(size), one), apply(turn.matrix(size), other));
            let height = turn.size(size).1;
            let area = PageArea {
                x: one.0.min(other.0),
                y: height - one.1.max(other.1),
                width: (one.0 - other.0).abs(),
                height: (one.1 - other.1).abs(),
            };
            let shown = PageArea { x: 20.0, y: 30.0, width: 50.0, height: 10.0 };
            assert_eq!(turn.shown(area, size), shown, "{turn:?}");
        }
    }

    #[test]
    fn the_visible_box_moves_to_the_origin_and_turns() {
        let frame = |turn| Frame { left: 10.0, bottom: 20.0, width: 200.0, height: 100.0, turn };
        let numbers = |frame: Frame| -> [f32; 6] {
            let operands = frame.operands(Turn(0));
            let numbers: Vec<f32> = operands.split(' ').map(|n| n.parse().unwrap()).collect();
            numbers.try_into().unwrap()
        };
        // The corner below on the left is above on the left, after a quarter with the clock.
        assert_eq!(apply(numbers(frame(Turn(0))), (10.0, 20.0)), (0.0, 0.0));
        assert_eq!(apply(numbers(frame(Turn(1))), (10.0, 20.0)), (0.0, 200.0));
        assert_eq!(apply(numbers(frame(Turn(2))), (10.0, 20.0)), (200.0, 100.0));
        assert_eq!(apply(numbers(frame(Turn(3))), (10.0, 20.0)), (100.0, 0.0));
        assert_eq!(frame(Turn(1)).size(), (100.0, 200.0));
    }
}
