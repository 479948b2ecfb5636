//! Lines of chunks on the pages of their document. Segments without such chunks omit the section.
//!
//! ```text
//! little-endian; n rows, m lines
//! u32 first[n + 1]   where a row's lines begin; the last is m
//! m x { u32 start, u32 end, u32 page, f32 x, f32 y, f32 width, f32 height }
//!                    characters of the chunk's text; points from the page's top left corner
//! ```
//! A row's lines ascend and do not overlap. Only the lines of chunks in a result are read, so a
//! reader rejects a section of the wrong length on opening, and rows that break the other rules
//! when it reads them.

use std::borrow::Cow;

use crate::segment::SegmentError;
use crate::segment::format::read_u32;
use crate::segment::section::LazySection;
use lodestone_types::{LineBox, PageArea, PageBox, RowId};

const LINE_BYTES: usize = 28;

/// Encodes the section; `None` if no row has a line.
pub(super) fn encode<'a>(
    rows: impl Iterator<Item = Result<Cow<'a, [LineBox]>, SegmentError>>,
) -> Result<Option<Vec<u8>>, SegmentError> {
    let mut firsts = vec![0_u32];
    let mut lines = Vec::new();
    for row in rows {
        for LineBox { start, end, place: PageBox { page, area } } in &*row? {
            let PageArea { x, y, width, height } = area;
            lines.extend([start, end, page].into_iter().flat_map(|value| value.to_le_bytes()));
            lines.extend([x, y, width, height].into_iter().flat_map(|value| value.to_le_bytes()));
        }
        firsts.push((lines.len() / LINE_BYTES) as u32);
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(firsts.len() * 4 + lines.len());
    bytes.extend(firsts.into_iter().flat_map(u32::to_le_bytes));
    bytes.append(&mut lines);
    Ok(Some(bytes))
}

/// The section; each row is verified when it is read.
#[derive(Debug, Clone)]
pub(super) struct LineTable {
    section: LazySection,
    rows: usize,
}

impl LineTable {
    /// Checks the length. The error is the broken rule.
    pub(super) fn open(section: LazySection, rows: u32) -> Result<Self, String> {
        let rows = rows as usize;
        let table = Self { section, rows };
        let count = table.first(rows)?;
        match table.section.len() == table.place(count) {
            true => Ok(table),
            false => Err("the lines have another length".to_owned()),
        }
    }

    /// Number of lines before those of a row.
    fn first(&self, row: usize) -> Result<usize, String> {
        let bytes = self.section.read(row * 4..row * 4 + 4).map_err(|error| error.to_string())?;
        Ok(read_u32(bytes, 0) as usize)
    }

    /// Byte position of a line.
    fn place(&self, line: usize) -> usize {
        (self.rows + 1) * 4 + line * LINE_BYTES
    }

    /// The lines of a row, ascending. The error is the broken rule.
    pub(super) fn of(&self, row: RowId) -> Result<Vec<LineBox>, String> {
        let (first, end) = (self.first(row.0 as usize)?, self.first(row.0 as usize + 1)?);
        let bytes = self.section.read(self.place(first)..self.place(end));
        let bytes = bytes.map_err(|error| error.to_string())?;
        let lines: Vec<LineBox> = bytes.chunks_exact(LINE_BYTES).map(line).collect();
        let is_sound = |line: &LineBox| {
            let PageArea { x, y, width, height } = line.place.area;
            line.start < line.end && [x, y, width, height].iter().all(|value| value.is_finite())
        };
        let ascend = lines.windows(2).all(|pair| pair[0].end <= pair[1].start);
        match ascend && lines.iter().all(is_sound) {
            true => Ok(lines),
            false => Err(format!("the lines of row {} break the rules", row.0)),
        }
    }
}

fn line(bytes: &[u8]) -> LineBox {
    let number = |at| read_u32(bytes, at);
    let points = |at| f32::from_bits(number(at));
    let area = PageArea { x: points(12), y: points(16), width: points(20), height: points(24) };
    LineBox { start: number(0), end: number(4), place: PageBox { page: number(8), area } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Vec<LineBox>> {
        let line = |start, end, page| {
            let area = PageArea { x: 72.0, y: start as f32, width: 100.0, height: 12.0 };
            LineBox { start, end, place: PageBox { page, area } }
        };
        vec![vec![], vec![line(0, 40, 1), line(41, 80, 1), line(80, 81, 2)], vec![line(5, 6, 2)]]
    }

    fn bytes_of(rows: &[Vec<LineBox>]) -> Option<Vec<u8>> {
        encode(rows.iter().map(|row| Ok(Cow::from(row)))).unwrap()
    }

    /// Reads a whole section and returns the first broken rule.
    fn problem(bytes: &[u8], rows: u32) -> Option<String> {
        let table = match LineTable::open(LazySection::of(bytes), rows) {
            Ok(table) => table,
            Err(problem) => return Some(problem),
        };
        (0..rows).find_map(|row| table.of(RowId(row)).err())
    }

    #[test]
    fn lines_read_back() {
        let rows = sample();
        let table = LineTable::open(LazySection::of(&bytes_of(&rows).unwrap()), 3).unwrap();
        for (row, lines) in rows.iter().enumerate() {
            assert_eq!(table.of(RowId(row as u32)).as_ref(), Ok(lines));
        }
        assert!(table.of(RowId(3)).is_err());
        assert_eq!(bytes_of(&[vec![], vec![]]), None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bytes = bytes_of(&sample()).unwrap();
        assert_eq!(problem(&bytes, 3), None);
        for length in 0..bytes.len() {
            assert!(problem(&bytes[..length], 3).is_some(), "{length}");
        }
        assert!(problem(&bytes, 2).is_some() && problem(&bytes, 4).is_some());
        let changed = |at: usize, value: u32| {
            let mut bytes = bytes.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            problem(&bytes, 3)
        };
        // A row that ends before it begins, or past the last line.
        assert!(changed(4, 4).is_some() && changed(8, 9).is_some());
        let second = 4 * 4 + LINE_BYTES;
        assert!(changed(second, 39).is_some(), "begins before the first ends");
        assert!(changed(second + 4, 41).is_some(), "is empty");
        assert!(changed(second + 12, f32::NAN.to_bits()).is_some());
    }
}
