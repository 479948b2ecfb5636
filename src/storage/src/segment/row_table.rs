//! Row table: source, place and index of each row, in fixed-width columns that are read in place.
//!
//! ```text
//! u32 each, little-endian, one column after the other; n rows, s sources
//! source[n]          position of the row's source in the source section
//! document_start[n]  first character in the extracted text
//! page_start[n]      first character on the page
//! chars[n]           characters
//! page[n]            two bits of kind (whole, page, slide, sheet), thirty of number
//! index[n]           position of the chunk in its source; kept when neighbours are deleted
//! rows_start[s + 1]  where a source's rows begin in the next column
//! rows_of[n]         rows by source, then by index
//! ```
//! A reader rejects a section of the wrong length, and positions out of range.

use bytes::Bytes;

use lodestone_types::{ChunkPlace, PageRef, RowId};

const COLUMNS_PER_ROW: usize = 7;

/// One row, as passed to the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowEntry {
    /// Position of the row's source.
    pub source: u32,
    /// Place of the chunk in the text.
    pub place: ChunkPlace,
    /// Index of the chunk in its source.
    pub index: u32,
}

/// Encodes the section. `rows` must be grouped by source, in source order, ascending by index.
pub fn encode(rows: &[RowEntry], source_count: u32) -> Vec<u8> {
    debug_assert!(rows.is_sorted_by_key(|row| (row.source, row.index)));
    let words = rows.len() * COLUMNS_PER_ROW + source_count as usize + 1;
    let mut bytes = Vec::with_capacity(words * 4);
    let mut column = |value: &dyn Fn(&RowEntry) -> u32| {
        for row in rows {
            bytes.extend(value(row).to_le_bytes());
        }
    };
    column(&|row| row.source);
    column(&|row| row.place.document_start);
    column(&|row| row.place.page_start);
    column(&|row| row.place.chars);
    column(&|row| encode_page(row.place.page));
    column(&|row| row.index);
    let mut start = 0;
    for source in 0..=source_count {
        while start < rows.len() && rows[start].source < source {
            start += 1;
        }
        bytes.extend((start as u32).to_le_bytes());
    }
    for row in 0..rows.len() as u32 {
        bytes.extend(row.to_le_bytes());
    }
    bytes
}

fn encode_page(page: PageRef) -> u32 {
    const NUMBER: u32 = (1 << 30) - 1;
    match page {
        PageRef::Whole => 0,
        PageRef::Page(number) => 1 << 30 | number.min(NUMBER),
        PageRef::Slide(number) => 2 << 30 | number.min(NUMBER),
        PageRef::Sheet(number) => 3 << 30 | number.min(NUMBER),
    }
}

fn decode_page(code: u32) -> PageRef {
    let number = code & ((1 << 30) - 1);
    match code >> 30 {
        1 => PageRef::Page(number),
        2 => PageRef::Slide(number),
        3 => PageRef::Sheet(number),
        _ => PageRef::Whole,
    }
}

/// The section, read in place.
#[derive(Debug, Clone)]
pub struct RowTable {
    bytes: Bytes,
    rows: usize,
    sources: usize,
}

impl RowTable {
    /// Checks length, alignment and every position.
    ///
    /// # Errors
    /// The broken rule as a phrase.
    pub fn open(bytes: Bytes, rows: u32, sources: u32) -> Result<Self, &'static str> {
        let (rows, sources) = (rows as usize, sources as usize);
        if bytes.len() != (rows * COLUMNS_PER_ROW + sources + 1) * 4 {
            return Err("the row table has another length");
        }
        if bytemuck::try_cast_slice::<u8, u32>(&bytes).is_err() {
            return Err("the row table is not aligned");
        }
        let table = Self { bytes, rows, sources };
        if table.column(0).iter().any(|source| *source as usize >= sources) {
            return Err("a row names a source that is not there");
        }
        let starts = table.starts();
        if starts[0] != 0 || starts[sources] as usize != rows || !starts.is_sorted() {
            return Err("the rows of the sources do not add up");
        }
        if table.rows_of_all().iter().any(|row| *row as usize >= rows) {
            return Err("a source names a row that is not there");
        }
        Ok(table)
    }

    fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.bytes)
    }

    fn column(&self, column: usize) -> &[u32] {
        &self.words()[column * self.rows..(column + 1) * self.rows]
    }

    fn starts(&self) -> &[u32] {
        &self.words()[6 * self.rows..6 * self.rows + self.sources + 1]
    }

    fn rows_of_all(&self) -> &[u32] {
        &self.words()[6 * self.rows + self.sources + 1..]
    }

    /// Reads a row's value in a column; 0 for a row out of range, which only a file that became
    /// unreadable can name.
    fn number(&self, column: usize, row: RowId) -> u32 {
        self.column(column).get(row.0 as usize).copied().unwrap_or(0)
    }

    /// Position of the row's source.
    pub fn source(&self, row: RowId) -> u32 {
        self.number(0, row)
    }

    /// Index of the row's chunk in its source.
    pub fn index(&self, row: RowId) -> u32 {
        self.number(5, row)
    }

    /// Place of the row's chunk in the text.
    pub fn place(&self, row: RowId) -> ChunkPlace {
        ChunkPlace {
            document_start: self.number(1, row),
            page_start: self.number(2, row),
            chars: self.number(3, row),
            page: decode_page(self.number(4, row)),
        }
    }

    /// Rows of a source, ascending by index.
    pub fn rows_of(&self, source: u32) -> &[u32] {
        let rows = match self.starts().get(source as usize..) {
            Some([from, to, ..]) => self.rows_of_all().get(*from as usize..*to as usize),
            _ => None,
        };
        rows.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(bytes: &[u8]) -> Bytes {
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        struct Owner(Vec<u32>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                bytemuck::cast_slice(&self.0)
            }
        }
        Bytes::from_owner(Owner(words))
    }

    fn entry(source: u32, index: u32) -> RowEntry {
        let page = PageRef::Slide(index + 1);
        let place = ChunkPlace { document_start: 7, page_start: 5, chars: 3, page };
        RowEntry { source, place, index }
    }

    #[test]
    fn rows_come_back_as_written() {
        let rows = [entry(0, 0), entry(0, 2), entry(2, 0)];
        let table = RowTable::open(aligned(&encode(&rows, 3)), 3, 3).unwrap();
        for (position, row) in rows.iter().enumerate() {
            let id = RowId(position as u32);
            assert_eq!(table.source(id), row.source);
            assert_eq!(table.index(id), row.index);
            assert_eq!(table.place(id), row.place);
        }
        assert_eq!(table.rows_of(0), &[0, 1]);
        assert!(table.rows_of(1).is_empty());
        assert_eq!(table.rows_of(2), &[2]);
    }

    #[test]
    fn positions_out_of_range_are_refused() {
        let rows = [entry(0, 0), entry(1, 0)];
        let good = encode(&rows, 2);
        let problem = |bytes| RowTable::open(bytes, 2, 2).err();
        assert_eq!(problem(aligned(&good)), None);
        let cut = problem(aligned(&good[..good.len() - 4]));
        assert_eq!(cut, Some("the row table has another length"));
        let shifted = aligned(&[&[0], &good[..], &[0; 3]].concat()).slice(1..=good.len());
        assert_eq!(problem(shifted), Some("the row table is not aligned"));
        let (unknown_source, sums) =
            ("a row names a source that is not there", "the rows of the sources do not add up");
        for (position, value, rule) in [
            (0, 9_u32, unknown_source),
            (12, 1, sums),
            (13, 3, sums),
            (14, 9, sums),
            (15, 9, "a source names a row that is not there"),
            (16, 2, "a source names a row that is not there"),
        ] {
            let mut bad = good.clone();
            bad[position * 4..position * 4 + 4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(problem(aligned(&bad)), Some(rule), "word {position}");
        }
    }
}
