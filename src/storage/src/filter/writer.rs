//! Writes the columns of one segment.

use std::collections::VecDeque;
use std::ops::Range;

use roaring::RoaringBitmap;

use crate::filter::format::{BITMAP_BYTES, COLUMN_BYTES, ENTRY_BYTES, HEADER_BYTES};
use crate::filter::format::{MAGIC, VERSION};
use crate::filter::source::{self, ROOTS, Rows, Tree};
use lodestone_types::{RowPayload, SourceRecord};

/// Collects the sources of one segment and writes their columns.
#[derive(Debug, Default)]
pub struct ColumnsBuilder {
    tree: Tree,
    rows: u32,
}

impl ColumnsBuilder {
    /// Creates a builder without sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source that occupies `rows`. The rows of different sources must be disjoint and cover
    /// the segment. A source without rows is ignored.
    pub fn add_source(&mut self, source: &SourceRecord, rows: Range<u32>) {
        if rows.is_empty() {
            return;
        }
        self.rows = self.rows.max(rows.end);
        source::add(&mut self.tree, source, &rows);
    }

    /// Adds the payload of one row, after its source.
    pub fn add_payload(&mut self, row: u32, payload: &RowPayload) {
        source::add_payload(&mut self.tree, payload, row);
    }

    /// Encodes the columns for [`crate::filter::Columns::open`].
    pub fn finish(self) -> Vec<u8> {
        let mut writer = Writer::default();
        let Tree { parts, mut entries } = self.tree;
        // Breadth first, so that columns are written in the order of (parent, name).
        let mut parents: VecDeque<u32> = (0..ROOTS as u32).collect();
        let mut parent = 0;
        while let Some(number) = parents.pop_front() {
            let first = |number: u32| (number, Box::<str>::default());
            for ((_, name), part) in parts.range(first(number)..first(number + 1)) {
                writer.add_column(parent, name);
                let first = |number: u32| (number, Box::<[u8]>::default());
                for ((_, key), rows) in entries.range_mut(first(*part)..first(part + 1)) {
                    // Written entries are removed from memory.
                    writer.add_entry(key, std::mem::replace(rows, Rows::Run(0..0)));
                }
                parents.push_back(*part);
            }
            parent += 1;
        }
        writer.finish(self.rows)
    }
}

/// The parts of the file, all growing at once.
#[derive(Debug, Default)]
struct Writer {
    columns: Vec<u8>,
    entries: Vec<u8>,
    offsets: Vec<u8>,
    names: Vec<u8>,
    keys: Vec<u8>,
    bitmaps: Vec<u8>,
}

impl Writer {
    fn add_column(&mut self, parent: u32, name: &str) {
        let first_entry = count(&self.entries, ENTRY_BYTES);
        push_row(&mut self.columns, &self.names, first_entry, parent);
        self.names.extend_from_slice(name.as_bytes());
    }

    fn add_entry(&mut self, key: &[u8], rows: Rows) {
        match rows {
            Rows::Run(run) => {
                push_row(&mut self.entries, &self.keys, run.start, run.end - run.start);
            }
            Rows::Bitmap(rows) => self.add_bitmap(rows),
        }
        self.keys.extend_from_slice(key);
    }

    fn add_bitmap(&mut self, mut rows: RoaringBitmap) {
        let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return };
        if rows.len() == u64::from(last - first) + 1 {
            return push_row(&mut self.entries, &self.keys, first, last - first + 1);
        }
        let number = count(&self.offsets, BITMAP_BYTES);
        push_row(&mut self.entries, &self.keys, number, 0);
        self.offsets.extend_from_slice(&(self.bitmaps.len() as u64).to_le_bytes());
        rows.optimize();
        rows.serialize_into(&mut self.bitmaps).expect("a vector takes all bytes");
    }

    fn finish(mut self, rows: u32) -> Vec<u8> {
        let counts = [
            count(&self.columns, COLUMN_BYTES),
            count(&self.entries, ENTRY_BYTES),
            count(&self.offsets, BITMAP_BYTES),
        ];
        push_row(&mut self.columns, &self.names, counts[1], 0);
        push_row(&mut self.entries, &self.keys, 0, 0);
        self.offsets.extend_from_slice(&(self.bitmaps.len() as u64).to_le_bytes());

        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(&MAGIC);
        for field in [VERSION, rows].into_iter().chain(counts) {
            header.extend_from_slice(&field.to_le_bytes());
        }
        debug_assert_eq!(header.len(), HEADER_BYTES);
        let Self { columns, entries, offsets, names, keys, bitmaps } = self;
        [header, columns, entries, offsets, names, keys, bitmaps].concat()
    }
}

/// Number of rows in a table so far.
fn count(table: &[u8], row_bytes: usize) -> u32 {
    u32::try_from(table.len() / row_bytes).expect("a segment has under 2^32 values")
}

/// Appends a row of 16 bytes whose item begins at the end of `blob`.
fn push_row(table: &mut Vec<u8>, blob: &[u8], a: u32, b: u32) {
    table.extend_from_slice(&(blob.len() as u64).to_le_bytes());
    table.extend_from_slice(&a.to_le_bytes());
    table.extend_from_slice(&b.to_le_bytes());
}
