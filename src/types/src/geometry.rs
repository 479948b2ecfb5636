//! Positions of text on the pages of a document.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A rectangle on a page as displayed (after the page's rotation and cropping), in points of 1/72
/// inch from the top left corner.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PageArea {
    /// Distance from the left edge of the page.
    pub x: f32,
    /// Distance from the top edge of the page.
    pub y: f32,
    /// Extent to the right of `x`.
    pub width: f32,
    /// Extent downwards from `y`.
    pub height: f32,
}

impl PageArea {
    /// The smallest rectangle that contains both.
    #[must_use]
    pub fn around(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = (self.x + self.width).max(other.x + other.width);
        let bottom = (self.y + self.height).max(other.y + other.height);
        Self { x, y, width: right - x, height: bottom - y }
    }
}

/// A rectangle on a specific page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageBox {
    /// The page, from 1.
    pub page: u32,
    /// The rectangle on that page.
    pub area: PageArea,
}

/// The position of a line, or part of one, within a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineBox {
    /// First character, counted in the chunk when stored and in the document in search results.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
    /// The page and rectangle of the line.
    pub place: PageBox,
}

impl LineBox {
    /// Whether the line overlaps the characters of `range`.
    pub fn touches(&self, range: &Range<usize>) -> bool {
        (self.start as usize) < range.end && range.start < self.end as usize
    }
}

/// Merges consecutive places on the same page into their smallest enclosing rectangle.
pub fn page_boxes(places: impl Iterator<Item = PageBox>) -> Vec<PageBox> {
    let mut boxes: Vec<PageBox> = Vec::new();
    for place in places {
        match boxes.last_mut() {
            Some(last) if last.page == place.page => last.area = last.area.around(place.area),
            _ => boxes.push(place),
        }
    }
    boxes
}

/// A line of text, or part of one, and its position on a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlacedLine {
    /// Byte range in the document's text; never empty, on character boundaries.
    pub range: Range<usize>,
    /// The page, from 1.
    pub page: u32,
    /// The rectangle on that page.
    pub area: PageArea,
}

/// Positions of the lines of a document. Empty for formats without a fixed page layout.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Geometry {
    lines: Vec<PlacedLine>,
}

impl Geometry {
    /// Appends the next line of the text.
    ///
    /// # Panics
    /// If the line is empty or begins before the previous one ends: lookups rely on the order.
    pub fn push(&mut self, line: PlacedLine) {
        let end = self.lines.last().map_or(0, |last| last.range.end);
        assert!(line.range.start >= end && !line.range.is_empty(), "lines ascend");
        self.lines.push(line);
    }

    /// All lines, in ascending order and without overlaps.
    pub fn lines(&self) -> &[PlacedLine] {
        &self.lines
    }

    /// The lines that overlap `range` of the text; none for an empty range.
    fn touched(&self, range: &Range<usize>) -> impl Iterator<Item = &PlacedLine> {
        let first = self.lines.partition_point(|line| line.range.end <= range.start);
        let end = if range.is_empty() { 0 } else { range.end };
        self.lines[first..].iter().take_while(move |line| line.range.start < end)
    }

    /// Returns, for each page that `range` of the text touches, the smallest rectangle around the
    /// touched lines, in page order. A partly touched line counts as a whole.
    pub fn boxes(&self, range: &Range<usize>) -> Vec<PageBox> {
        page_boxes(self.touched(range).map(|line| PageBox { page: line.page, area: line.area }))
    }

    /// Returns the lines of the chunk `range` of `text`, with offsets in characters of the chunk. A
    /// partly covered line keeps its whole rectangle.
    pub fn lines_of(&self, text: &str, range: &Range<usize>) -> Vec<LineBox> {
        let (mut byte, mut char) = (range.start, 0);
        let mut chars_before = |end: usize| {
            char += text[byte..end].chars().count() as u32;
            byte = end;
            char
        };
        let line = |line: &PlacedLine| LineBox {
            start: chars_before(line.range.start.max(range.start)),
            end: chars_before(line.range.end.min(range.end)),
            place: PageBox { page: line.page, area: line.area },
        };
        self.touched(range).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(range: Range<usize>, page: u32, x: f32, y: f32) -> PlacedLine {
        PlacedLine { range, page, area: PageArea { x, y, width: 10.0, height: 2.0 } }
    }

    fn boxes(geometry: &Geometry, range: &Range<usize>) -> Vec<(u32, PageArea)> {
        geometry.boxes(range).into_iter().map(|found| (found.page, found.area)).collect()
    }

    fn sample() -> Geometry {
        let mut geometry = Geometry::default();
        geometry.push(line(0..5, 1, 0.0, 0.0));
        geometry.push(line(6..9, 1, 5.0, 4.0));
        geometry.push(line(9..12, 2, 1.0, 1.0));
        geometry.push(line(20..30, 4, 2.0, 2.0));
        geometry
    }

    #[test]
    fn the_smallest_box_on_each_page_lies_round_the_lines_that_are_touched() {
        let area = |x, y, width, height| PageArea { x, y, width, height };
        let geometry = sample();
        assert_eq!(boxes(&geometry, &(0..5)), [(1, area(0.0, 0.0, 10.0, 2.0))]);
        assert_eq!(boxes(&geometry, &(4..7)), [(1, area(0.0, 0.0, 15.0, 6.0))]);
        let both = [(1, area(5.0, 4.0, 10.0, 2.0)), (2, area(1.0, 1.0, 10.0, 2.0))];
        assert_eq!(boxes(&geometry, &(8..10)), both);
        assert_eq!(boxes(&geometry, &(0..99)).len(), 3);
        // Between two lines, after the last one, and empty ranges.
        assert_eq!(boxes(&geometry, &(5..6)), []);
        assert_eq!(boxes(&geometry, &(12..20)), []);
        assert_eq!(boxes(&geometry, &(30..99)), []);
        assert_eq!(boxes(&geometry, &(7..7)), []);
        assert_eq!(boxes(&Geometry::default(), &(0..1)), []);
    }

    #[test]
    fn lines_of_a_chunk_count_its_characters() {
        // The second character of the chunk takes two bytes.
        let text = "ab\u{e9}d fghjkl12345678klmnopqrst";
        let lines = sample().lines_of(text, &(1..11));
        let found = lines.iter().map(|line| (line.start, line.end, line.place.page));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 3, 1), (4, 7, 1), (7, 9, 2)]);
        assert_eq!(sample().lines_of(text, &(12..20)), []);
        assert!(lines[1].touches(&(6..9)) && !lines[1].touches(&(7..9)));
    }

    #[test]
    #[should_panic(expected = "lines ascend")]
    fn lines_out_of_order_are_refused() {
        sample().push(line(29..31, 4, 0.0, 0.0));
    }

    #[test]
    fn it_travels_as_json() {
        let written = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Geometry>(&written).unwrap(), sample());
    }
}
