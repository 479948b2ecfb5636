//! Rectangles of chunks on the pages of their document. Segments without such chunks omit the
//! section.
//!
//! ```text
//! little-endian; n rows, m rectangles
//! u32 start[n + 1]   where a row's rectangles begin; the last is m
//! m x { u32 page, f32 x, f32 y, f32 width, f32 height }   points from the page's top left corner
//! ```
//! A row's rectangles ascend by page. A reader rejects a section of the wrong length, starts out of
//! order, and numbers that are not finite.

use std::borrow::Cow;

use bytes::Bytes;

use crate::segment::format::read_u32;
use lodestone_types::{PageArea, PageBox, RowId};

const BOX_BYTES: usize = 20;

/// Encodes the section; `None` if no row has a rectangle.
pub(super) fn encode<'a>(rows: impl Iterator<Item = Cow<'a, [PageBox]>>) -> Option<Vec<u8>> {
    let mut starts = vec![0_u32];
    let mut boxes = Vec::new();
    for row in rows {
        for PageBox { page, area: PageArea { x, y, width, height } } in &*row {
            boxes.extend(page.to_le_bytes());
            boxes.extend([x, y, width, height].into_iter().flat_map(|value| value.to_le_bytes()));
        }
        starts.push((boxes.len() / BOX_BYTES) as u32);
    }
    if boxes.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(starts.len() * 4 + boxes.len());
    bytes.extend(starts.into_iter().flat_map(u32::to_le_bytes));
    bytes.append(&mut boxes);
    Some(bytes)
}

/// The section, read in place; empty if the segment has none.
#[derive(Debug, Clone)]
pub(super) struct BoxTable {
    bytes: Bytes,
    rows: usize,
}

impl BoxTable {
    /// Checks lengths, order and numbers. The error is the broken rule.
    pub(super) fn open(bytes: Option<Bytes>, rows: u32) -> Result<Self, &'static str> {
        let rows = rows as usize;
        let Some(bytes) = bytes else { return Ok(Self { bytes: Bytes::new(), rows: 0 }) };
        let table = Self { bytes, rows };
        let starts_bytes = (rows + 1) * 4;
        if table.bytes.len() < starts_bytes {
            return Err("the rectangles are cut");
        }
        let boxes = table.start(rows);
        if table.bytes.len() != starts_bytes + boxes * BOX_BYTES {
            return Err("the rectangles have another length");
        }
        if table.start(0) != 0 || (0..rows).any(|row| table.start(row) > table.start(row + 1)) {
            return Err("the rectangles are out of order");
        }
        let is_sound = |at: usize| {
            let PageArea { x, y, width, height } = table.read(at).area;
            [x, y, width, height].iter().all(|value| value.is_finite())
        };
        match (0..boxes).all(is_sound) {
            true => Ok(table),
            false => Err("a rectangle is not finite"),
        }
    }

    fn start(&self, row: usize) -> usize {
        read_u32(&self.bytes, row * 4) as usize
    }

    fn read(&self, at: usize) -> PageBox {
        let at = (self.rows + 1) * 4 + at * BOX_BYTES;
        let number = |offset| f32::from_bits(read_u32(&self.bytes, at + offset));
        let area = PageArea { x: number(4), y: number(8), width: number(12), height: number(16) };
        PageBox { page: read_u32(&self.bytes, at), area }
    }

    /// The rectangles of a row, one per page.
    pub(super) fn of(&self, row: RowId) -> Vec<PageBox> {
        let row = row.0 as usize;
        if row >= self.rows {
            return Vec::new();
        }
        // If the file became unreadable after it was checked, the numbers may be anything.
        let end = self.start(row + 1).min((self.bytes.len() / 4 - self.rows - 1) * 4 / BOX_BYTES);
        (self.start(row)..end).map(|at| self.read(at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Vec<PageBox>> {
        let area = |x| PageArea { x, y: 2.5, width: 100.0, height: 12.0 };
        let one = |page, x| PageBox { page, area: area(x) };
        vec![vec![], vec![one(1, 72.0)], vec![one(1, 0.0), one(2, -3.5)], vec![]]
    }

    #[test]
    fn rectangles_read_back() {
        let rows = sample();
        let bytes = encode(rows.iter().map(Cow::from)).unwrap();
        let table = BoxTable::open(Some(bytes.into()), 4).unwrap();
        for (row, boxes) in rows.iter().enumerate() {
            assert_eq!(table.of(RowId(row as u32)), *boxes);
        }
        assert_eq!(encode([Cow::Borrowed(&[][..]), Cow::Borrowed(&[])].into_iter()), None);
        let none = BoxTable::open(None, 7).unwrap();
        assert!((0..7).all(|row| none.of(RowId(row)).is_empty()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bytes = encode(sample().iter().map(Cow::from)).unwrap();
        let open = |bytes: Vec<u8>, rows| BoxTable::open(Some(bytes.into()), rows).err();
        assert_eq!(open(bytes.clone(), 4), None);
        for length in 0..bytes.len() {
            assert!(open(bytes[..length].to_vec(), 4).is_some(), "{length}");
        }
        assert!(open(bytes.clone(), 3).is_some() && open(bytes.clone(), 5).is_some());
        let changed = |at: usize, value: u32| {
            let mut bytes = bytes.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            open(bytes, 4)
        };
        assert!(changed(0, 1).is_some() && changed(8, 4).is_some());
        assert!(changed(5 * 4 + 4, f32::NAN.to_bits()).is_some());
    }
}
