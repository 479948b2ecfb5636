//! The page as displayed: cropped, rotated, and measured from its top left corner.

use hayro_font::kurbo::Affine;
use hayro_syntax::page::{Page, Rotation};

use lodestone_types::PageArea;

/// Maximum page edge in points: the widest that readers accept is 14,400 units.
const EDGE_MAX: f32 = 1.0e6;

/// Rotation of text on the displayed page, in quarter turns counter-clockwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u8);

impl Turn {
    /// No rotation.
    pub(super) const UPRIGHT: Self = Self(0);
    /// All rotations, in the order of [`Self::quarters`].
    pub(super) const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// Quarter turns, less than four.
    pub(super) fn quarters(self) -> usize {
        self.0.into()
    }

    /// This rotation plus `quarters`.
    pub(super) fn and(self, quarters: i32) -> Self {
        Self((i32::from(self.0) + quarters).rem_euclid(4) as u8)
    }

    /// Width and height of a page of `size` when rotated so that the text is level.
    pub(super) fn size(self, size: (f32, f32)) -> (f32, f32) {
        if self.0.is_multiple_of(2) { size } else { (size.1, size.0) }
    }

    /// Maps an area from the page rotated so that its text is level to the displayed page of
    /// `size`.
    pub(super) fn shown(self, area: PageArea, size: (f32, f32)) -> PageArea {
        let PageArea { x, y, width, height } = area;
        match self.0 {
            0 => area,
            1 => PageArea { x: y, y: size.1 - x - width, width: height, height: width },
            2 => PageArea { x: size.0 - x - width, y: size.1 - y - height, width, height },
            _ => PageArea { x: size.0 - y - height, y: x, width: height, height: width },
        }
    }

    /// The matrix that rotates a page of `size` so that the text is level.
    pub(super) fn matrix(self, (width, height): (f32, f32)) -> Affine {
        let (width, height) = (f64::from(width), f64::from(height));
        Affine::new(match self.0 {
            0 => [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            1 => [0.0, -1.0, 1.0, 0.0, 0.0, width],
            2 => [-1.0, 0.0, 0.0, -1.0, width, height],
            _ => [0.0, 1.0, -1.0, 0.0, height, 0.0],
        })
    }
}

/// The visible box of a page and its rotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    left: f32,
    bottom: f32,
    width: f32,
    height: f32,
    /// Readers rotate the page by `/Rotate`; the text is rotated the opposite way.
    turn: Turn,
}

impl Frame {
    /// The frame of a page. If its box is empty, readers assume letter size.
    pub(super) fn of_page(page: &Page<'_>) -> Self {
        let visible = page.intersected_crop_box();
        let [left, bottom, width, height] =
            [visible.x0, visible.y0, visible.width(), visible.height()].map(|edge| edge as f32);
        // `/Rotate` is clockwise: text rotated by the same amount is level.
        let turn = match page.rotation() {
            Rotation::None => Turn(0),
            Rotation::Horizontal => Turn(1),
            Rotation::Flipped => Turn(2),
            Rotation::FlippedHorizontal => Turn(3),
        };
        let is_page = |edge: f32| edge > 0.0 && edge < EDGE_MAX;
        if is_page(width) && is_page(height) && left.abs() < EDGE_MAX && bottom.abs() < EDGE_MAX {
            Self { left, bottom, width, height, turn }
        } else {
            Self { left: 0.0, bottom: 0.0, width: 612.0, height: 792.0, turn }
        }
    }

    /// Width and height of the page as displayed.
    pub(super) fn size(&self) -> (f32, f32) {
        self.turn.size((self.width, self.height))
    }

    /// The matrix from page space to the displayed page, with y upwards.
    pub(super) fn matrix(&self) -> Affine {
        let origin = Affine::translate((-f64::from(self.left), -f64::from(self.bottom)));
        self.turn.matrix((self.width, self.height)) * origin
    }
}

#[cfg(test)]
mod tests {
    use hayro_font::kurbo::Point;

    use super::*;

    fn apply(matrix: Affine, (x, y): (f64, f64)) -> (f32, f32) {
        let point = matrix * Point::new(x, y);
        (point.x as f32, point.y as f32)
    }

    /// Goal: rotating a page and mapping an area back is the identity.
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
        // A quarter turn clockwise moves the bottom left corner to the top left.
        assert_eq!(apply(frame(Turn(0)).matrix(), (10.0, 20.0)), (0.0, 0.0));
        assert_eq!(apply(frame(Turn(1)).matrix(), (10.0, 20.0)), (0.0, 200.0));
        assert_eq!(apply(frame(Turn(2)).matrix(), (10.0, 20.0)), (200.0, 100.0));
        assert_eq!(apply(frame(Turn(3)).matrix(), (10.0, 20.0)), (100.0, 0.0));
        assert_eq!(frame(Turn(1)).size(), (100.0, 200.0));
    }
}
