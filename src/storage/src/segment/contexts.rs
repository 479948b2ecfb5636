//! Contexts of chunks: the headings above each and the header row of its table. Segments without
//! such chunks omit the section.
//!
//! ```text
//! little-endian; n rows, m distinct contexts
//! u32 m
//! u32 number[n]      a row's context; 0 is none, k the k-th
//! u32 start[m + 1]   where a context begins in the text; the last is its length
//! UTF-8 text
//! ```
//! Contexts are numbered in the order of their first row, so equal input gives equal bytes. A
//! reader rejects a section of the wrong length, numbers and starts out of range, and text that is
//! not UTF-8.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;

use crate::segment::format::read_u32;
use lodestone_types::RowId;

/// Encodes the section; `None` if no row has a context.
pub(super) fn encode<'a>(rows: impl Iterator<Item = Cow<'a, str>>) -> Option<Vec<u8>> {
    let mut number_of: HashMap<String, u32> = HashMap::new();
    let (mut numbers, mut starts, mut text) = (Vec::new(), vec![0_u32], String::new());
    for row in rows {
        let known = if row.is_empty() { Some(0) } else { number_of.get(&*row).copied() };
        let number = known.unwrap_or_else(|| {
            text.push_str(&row);
            starts.push(text.len() as u32);
            number_of.insert(row.into_owned(), starts.len() as u32 - 1);
            starts.len() as u32 - 1
        });
        numbers.push(number);
    }
    if text.is_empty() {
        return None;
    }
    let count = starts.len() as u32 - 1;
    let words = std::iter::once(count).chain(numbers).chain(starts);
    let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    bytes.extend(text.into_bytes());
    Some(bytes)
}

/// The section, read in place; empty if the segment has none.
#[derive(Debug, Clone)]
pub(super) struct ContextTable {
    bytes: Bytes,
    rows: usize,
    count: usize,
}

impl ContextTable {
    /// Checks lengths, numbers, order and text. The error is the broken rule.
    pub(super) fn open(bytes: Option<Bytes>, rows: u32) -> Result<Self, &'static str> {
        let Some(bytes) = bytes else { return Ok(Self { bytes: Bytes::new(), rows: 0, count: 0 }) };
        if bytes.len() < 4 {
            return Err("the contexts are cut");
        }
        let count = read_u32(&bytes, 0) as usize;
        let table = Self { bytes, rows: rows as usize, count };
        let Some(text) = table.bytes.get(table.text_at()..) else {
            return Err("the contexts are cut");
        };
        let ends_well = table.start(0) == 0 && table.start(count) == text.len();
        if !ends_well || (0..count).any(|at| table.start(at) >= table.start(at + 1)) {
            return Err("the contexts are out of order");
        }
        if (0..table.rows).any(|row| table.number(row) > count) {
            return Err("a row has an unknown context");
        }
        let Ok(text) = std::str::from_utf8(text) else { return Err("a context is not UTF-8") };
        match (0..count).all(|at| text.is_char_boundary(table.start(at))) {
            true => Ok(table),
            false => Err("a context begins inside a character"),
        }
    }

    fn text_at(&self) -> usize {
        (1 + self.rows + self.count + 1) * 4
    }

    fn number(&self, row: usize) -> usize {
        read_u32(&self.bytes, (1 + row) * 4) as usize
    }

    fn start(&self, at: usize) -> usize {
        read_u32(&self.bytes, (1 + self.rows + at) * 4) as usize
    }

    /// The context of a row; empty if it has none.
    pub(super) fn of(&self, row: RowId) -> &str {
        let row = row.0 as usize;
        // If the file became unreadable after it was checked, the numbers may be anything.
        let number = if row < self.rows { self.number(row).min(self.count) } else { 0 };
        let Some(at) = number.checked_sub(1) else { return "" };
        let (from, to) = (self.text_at() + self.start(at), self.text_at() + self.start(at + 1));
        self.bytes.get(from..to).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 6] = ["", "Report", "Report\nSales", "Report", "", "Détail"];

    fn sample() -> Vec<u8> {
        encode(ROWS.iter().map(|row| Cow::Borrowed(*row))).unwrap()
    }

    #[test]
    fn contexts_read_back() {
        let table = ContextTable::open(Some(sample().into()), 6).unwrap();
        for (row, context) in ROWS.iter().enumerate() {
            assert_eq!(table.of(RowId(row as u32)), *context);
        }
        assert_eq!(sample().len(), (1 + 6 + 4) * 4 + "ReportReport\nSalesDétail".len());
        assert_eq!(encode([Cow::Borrowed(""), Cow::Borrowed("")].into_iter()), None);
        let none = ContextTable::open(None, 7).unwrap();
        assert!((0..7).all(|row| none.of(RowId(row)).is_empty()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bytes = sample();
        let open = |bytes: Vec<u8>, rows| ContextTable::open(Some(bytes.into()), rows).err();
        assert_eq!(open(bytes.clone(), 6), None);
        for length in 0..bytes.len() {
            assert!(open(bytes[..length].to_vec(), 6).is_some(), "{length}");
        }
        assert!(open(bytes.clone(), 5).is_some() && open(bytes.clone(), 7).is_some());
        let changed = |at: usize, value: u32| {
            let mut bytes = bytes.clone();
            bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
            open(bytes, 6)
        };
        let broken = [(0, u32::MAX), (0, 2), (2, 4), (7, 1), (8, 0), (10, 7)];
        for (at, value) in broken {
            assert!(changed(at, value).is_some(), "{at} {value}");
        }
        let mut inside = bytes.clone();
        let last = inside.len() - 5;
        inside[last] = 0xFF;
        assert_eq!(open(inside, 6), Some("a context is not UTF-8"));
    }
}
