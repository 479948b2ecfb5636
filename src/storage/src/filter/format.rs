//! Tables of the column file; `filter` draws the layout.

use std::ops::Range;

use bytes::Bytes;

use crate::filter::FilterError;

pub(super) const MAGIC: [u8; 4] = *b"LDFC";
pub(super) const VERSION: u32 = 1;

pub(super) const HEADER_BYTES: usize = 24;
pub(super) const COLUMN_BYTES: usize = 16;
pub(super) const ENTRY_BYTES: usize = 16;
pub(super) const BITMAP_BYTES: usize = 8;

/// The rows of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryRows {
    /// A consecutive run of rows.
    Run(Range<u64>),
    /// The rows in the bitmap with this number.
    Bitmap(usize),
}

/// The file with its tables located. Offsets are trusted, because `reader` checks all of them
/// before first use. If the file has become unreadable since, offsets may read as zeros; the slices
/// between them are then empty.
#[derive(Clone)]
pub(super) struct Tables {
    bytes: Bytes,
    pub(super) rows: u32,
    pub(super) columns: usize,
    pub(super) entries: usize,
    pub(super) bitmaps: usize,
    names_at: usize,
    keys_at: usize,
    bitmaps_at: usize,
}

impl Tables {
    /// Checks the header and that the parts add up to the length of the file.
    pub(super) fn locate(bytes: Bytes) -> Result<Self, FilterError> {
        let damaged = |problem| Err(FilterError::Damaged { part: "header", number: 0, problem });
        if bytes.len() < HEADER_BYTES {
            return damaged("is cut short");
        }
        if bytes[..4] != MAGIC {
            return damaged("has another magic");
        }
        if u32_at(&bytes, 4) != VERSION {
            return damaged("has another version");
        }
        // At most 2^32 items of 16 bytes each, so no sum of table sizes overflows 64 bits.
        let [columns, entries, bitmaps] = [12, 16, 20].map(|at| u32_at(&bytes, at) as usize);
        let entries_at = HEADER_BYTES + (columns + 1) * COLUMN_BYTES;
        let offsets_at = entries_at + (entries + 1) * ENTRY_BYTES;
        let names_at = offsets_at + (bitmaps + 1) * BITMAP_BYTES;
        if bytes.len() < names_at {
            return damaged("announces more tables than there are bytes");
        }
        let end_of = |start: usize, row_at: usize| {
            let blob_bytes = usize::try_from(u64_at(&bytes, row_at)).ok()?;
            start.checked_add(blob_bytes)
        };
        let ends = end_of(names_at, entries_at - COLUMN_BYTES).and_then(|keys_at| {
            let bitmaps_at = end_of(keys_at, offsets_at - ENTRY_BYTES)?;
            Some((keys_at, bitmaps_at, end_of(bitmaps_at, names_at - BITMAP_BYTES)?))
        });
        match ends {
            Some((keys_at, bitmaps_at, end)) if end == bytes.len() => {
                let rows = u32_at(&bytes, 8);
                Ok(Self { bytes, rows, columns, entries, bitmaps, names_at, keys_at, bitmaps_at })
            }
            _ => damaged("announces another length than that of the bytes"),
        }
    }

    fn entries_at(&self) -> usize {
        HEADER_BYTES + (self.columns + 1) * COLUMN_BYTES
    }

    /// Offset of a column's name; for the row after the last, the end of the names.
    pub(super) fn name_offset(&self, column: usize) -> u64 {
        u64_at(&self.bytes, HEADER_BYTES + column * COLUMN_BYTES)
    }

    /// First entry of a column; for the row after the last, the number of all entries.
    pub(super) fn first_entry(&self, column: usize) -> u32 {
        u32_at(&self.bytes, HEADER_BYTES + column * COLUMN_BYTES + 8)
    }

    /// Parent of a column: the number of a map, or 4 + the number of another column.
    pub(super) fn parent(&self, column: usize) -> u32 {
        u32_at(&self.bytes, HEADER_BYTES + column * COLUMN_BYTES + 12)
    }

    /// Offset of an entry's key; for the row after the last, the end of the keys.
    pub(super) fn key_offset(&self, entry: usize) -> u64 {
        u64_at(&self.bytes, self.entries_at() + entry * ENTRY_BYTES)
    }

    /// Offset of a bitmap; for the row after the last, the end of the bitmaps.
    pub(super) fn bitmap_offset(&self, bitmap: usize) -> u64 {
        u64_at(&self.bytes, self.names_at - (self.bitmaps + 1 - bitmap) * BITMAP_BYTES)
    }

    pub(super) fn name(&self, column: usize) -> &[u8] {
        self.slice(self.names_at, self.name_offset(column), self.name_offset(column + 1))
    }

    pub(super) fn key(&self, entry: usize) -> &[u8] {
        self.slice(self.keys_at, self.key_offset(entry), self.key_offset(entry + 1))
    }

    pub(super) fn bitmap(&self, bitmap: usize) -> &[u8] {
        let end = self.bitmap_offset(bitmap + 1);
        self.slice(self.bitmaps_at, self.bitmap_offset(bitmap), end)
    }

    pub(super) fn entries_of(&self, column: usize) -> Range<usize> {
        self.first_entry(column) as usize..self.first_entry(column + 1) as usize
    }

    pub(super) fn rows_of(&self, entry: usize) -> EntryRows {
        let at = self.entries_at() + entry * ENTRY_BYTES + 8;
        match (u32_at(&self.bytes, at), u32_at(&self.bytes, at + 4)) {
            (bitmap, 0) => EntryRows::Bitmap(bitmap as usize),
            (start, count) => EntryRows::Run(u64::from(start)..u64::from(start) + u64::from(count)),
        }
    }

    fn slice(&self, base: usize, start: u64, end: u64) -> &[u8] {
        self.bytes.get(base + start as usize..base + end as usize).unwrap_or_default()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

const _: () = assert!(usize::BITS == 64);
