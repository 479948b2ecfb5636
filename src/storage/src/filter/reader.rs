//! Open columns: checked once, then searched in place.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::filter::FilterError;
use crate::filter::format::{EntryRows, Tables};
use crate::filter::key;
use crate::filter::source::{CHUNK_ID, ROOTS, Root, SUB_TENANT};
use lodestone_types::SubTenantId;

/// The open columns of one segment.
///
/// Opening reads the directory and checks its order and bounds completely; bitmaps are decoded when
/// they are used. Clones share the bytes.
#[derive(Clone)]
pub struct Columns {
    pub(super) tables: Tables,
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tables { rows, columns, entries, .. } = &self.tables;
        write!(f, "Columns {{ rows: {rows}, columns: {columns}, entries: {entries} }}")
    }
}

impl Columns {
    /// Checks the directory and opens the columns.
    ///
    /// # Errors
    /// [`FilterError::Damaged`] naming the first violation of the format.
    pub fn open(bytes: Bytes) -> Result<Self, FilterError> {
        let columns = Self { tables: Tables::locate(bytes)? };
        columns.check_columns()?;
        columns.check_entries()?;
        columns.check_sub_tenants()?;
        Ok(columns)
    }

    /// Number of rows that the columns cover.
    pub fn rows(&self) -> u32 {
        self.tables.rows
    }

    /// The rows of one sub-tenant; empty if it has none here.
    pub fn sub_tenant(&self, name: &SubTenantId) -> RoaringBitmap {
        // Checked on open; if the file became unreadable since, the bytes may be anything.
        self.entry(self.sub_tenant_column(), &key::of_text(name.as_str()))
            .and_then(|entry| self.rows_of(entry).ok())
            .unwrap_or_default()
    }

    /// The rows to which clients gave this id, in all sub-tenants.
    ///
    /// # Errors
    /// [`FilterError::Damaged`] for a malformed bitmap.
    pub fn chunk_id(&self, id: &str) -> Result<RoaringBitmap, FilterError> {
        match self.entry(self.column(Root::Scope, CHUNK_ID), &key::of_text(id)) {
            Some(entry) => self.rows_of(entry),
            None => Ok(RoaringBitmap::new()),
        }
    }

    /// Whether any row has an id given by a client.
    pub fn has_chunk_ids(&self) -> bool {
        self.column(Root::Scope, CHUNK_ID).is_some()
    }

    /// The sub-tenants that have rows here, sorted by name, each with its number of rows.
    pub fn sub_tenants(&self) -> Vec<(SubTenantId, u64)> {
        self.entries_of(self.sub_tenant_column())
            .filter_map(|entry| self.sub_tenant_at(entry).ok())
            .collect()
    }

    /// Finds the column of a path, whose parts are joined by dots.
    pub(super) fn column(&self, root: Root, path: &str) -> Option<usize> {
        let mut parent = root as u32;
        let mut column = None;
        for part in path.split('.') {
            let found = self.child(parent, part.as_bytes())?;
            parent = (found + ROOTS) as u32;
            column = Some(found);
        }
        column
    }

    /// The entries of a column; empty if there is no such column.
    pub(super) fn entries_of(&self, column: Option<usize>) -> Range<usize> {
        column.map_or(0..0, |column| self.tables.entries_of(column))
    }

    /// Finds the entry with exactly this key.
    pub(super) fn entry(&self, column: Option<usize>, key: &[u8]) -> Option<usize> {
        let entries = self.entries_of(column);
        let entry = self.lower_bound(&entries, key);
        (entry < entries.end && self.tables.key(entry) == key).then_some(entry)
    }

    /// The first of `entries` whose key is not below `key`, or their end.
    pub(super) fn lower_bound(&self, entries: &Range<usize>, key: &[u8]) -> usize {
        partition_point(entries.clone(), |entry| self.tables.key(entry) < key)
    }

    /// The first of `entries` whose key is above `key`, or their end.
    pub(super) fn upper_bound(&self, entries: &Range<usize>, key: &[u8]) -> usize {
        partition_point(entries.clone(), |entry| self.tables.key(entry) <= key)
    }

    /// The rows of one entry.
    pub(super) fn rows_of(&self, entry: usize) -> Result<RoaringBitmap, FilterError> {
        match self.tables.rows_of(entry) {
            EntryRows::Run(rows) => Ok(bitmap_of(rows)),
            EntryRows::Bitmap(number) => self.bitmap(number),
        }
    }

    /// Decodes a bitmap and checks it against the rows of the segment.
    pub(super) fn bitmap(&self, number: usize) -> Result<RoaringBitmap, FilterError> {
        let damaged = |problem| FilterError::Damaged { part: "bitmap", number, problem };
        let mut bytes = self.tables.bitmap(number);
        let rows = RoaringBitmap::deserialize_from(&mut bytes)
            .map_err(|_| damaged("is not in the roaring format"))?;
        if !bytes.is_empty() {
            return Err(damaged("is followed by stray bytes"));
        }
        if rows.max().is_some_and(|last| last >= self.tables.rows) {
            return Err(damaged("reaches beyond the rows"));
        }
        Ok(rows)
    }

    fn child(&self, parent: u32, name: &[u8]) -> Option<usize> {
        let wanted = (parent, name);
        let tables = &self.tables;
        let column = partition_point(0..tables.columns, |column| {
            (tables.parent(column), tables.name(column)) < wanted
        });
        let is_found =
            column < tables.columns && (tables.parent(column), tables.name(column)) == wanted;
        is_found.then_some(column)
    }

    fn sub_tenant_column(&self) -> Option<usize> {
        self.column(Root::Scope, SUB_TENANT)
    }

    fn sub_tenant_at(&self, entry: usize) -> Result<(SubTenantId, u64), FilterError> {
        let damaged = |problem| FilterError::Damaged { part: "entry", number: entry, problem };
        let name = key::text_bytes(self.tables.key(entry))
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|name| SubTenantId::parse_stored(name).ok())
            .ok_or(damaged("is not the name of a sub-tenant"))?;
        Ok((name, self.rows_of(entry)?.len()))
    }

    fn check_columns(&self) -> Result<(), FilterError> {
        let tables = &self.tables;
        check_offsets("name", tables.columns, |column| tables.name_offset(column))?;
        check_offsets("column", tables.columns, |column| tables.first_entry(column).into())?;
        let damaged = |number, problem| FilterError::Damaged { part: "column", number, problem };
        if tables.first_entry(tables.columns) as usize != tables.entries {
            return Err(damaged(tables.columns, "does not end the entries"));
        }
        for column in 0..tables.columns {
            if tables.parent(column) as usize >= column + ROOTS {
                return Err(damaged(column, "comes before its parent"));
            }
            if column == 0 {
                continue;
            }
            let before = (tables.parent(column - 1), tables.name(column - 1));
            if before.cmp(&(tables.parent(column), tables.name(column))) != Ordering::Less {
                return Err(damaged(column, "is out of order"));
            }
        }
        Ok(())
    }

    fn check_entries(&self) -> Result<(), FilterError> {
        let tables = &self.tables;
        check_offsets("entry", tables.entries, |entry| tables.key_offset(entry))?;
        check_offsets("bitmap", tables.bitmaps, |bitmap| tables.bitmap_offset(bitmap))?;
        let damaged = |number, problem| FilterError::Damaged { part: "entry", number, problem };
        let mut bitmaps_seen = 0;
        for column in 0..tables.columns {
            let entries = tables.entries_of(column);
            for entry in entries.clone() {
                if !key::is_well_formed(tables.key(entry)) {
                    return Err(damaged(entry, "has a malformed key"));
                }
                if entry > entries.start && tables.key(entry - 1) >= tables.key(entry) {
                    return Err(damaged(entry, "is out of order"));
                }
                match tables.rows_of(entry) {
                    EntryRows::Run(rows) if rows.end > u64::from(tables.rows) => {
                        return Err(damaged(entry, "reaches beyond the rows"));
                    }
                    EntryRows::Run(_) => {}
                    EntryRows::Bitmap(number) if number != bitmaps_seen => {
                        return Err(damaged(entry, "names a bitmap out of turn"));
                    }
                    EntryRows::Bitmap(_) => bitmaps_seen += 1,
                }
            }
        }
        if bitmaps_seen == tables.bitmaps {
            return Ok(());
        }
        Err(FilterError::Damaged { part: "bitmap", number: bitmaps_seen, problem: "is not used" })
    }

    fn check_sub_tenants(&self) -> Result<(), FilterError> {
        for entry in self.entries_of(self.sub_tenant_column()) {
            self.sub_tenant_at(entry)?;
        }
        Ok(())
    }
}

/// A bitmap of the rows from `start` up to but excluding `end`.
pub(super) fn bitmap_of(rows: Range<u64>) -> RoaringBitmap {
    let mut bitmap = RoaringBitmap::new();
    insert(&mut bitmap, rows);
    bitmap
}

/// Inserts a run of rows, whose end may be 2^32.
pub(super) fn insert(bitmap: &mut RoaringBitmap, rows: Range<u64>) {
    if !rows.is_empty() {
        bitmap.insert_range(rows.start as u32..=(rows.end - 1) as u32);
    }
}

/// Checks that offsets start at 0 and never descend. Their end was checked when the tables were
/// located.
fn check_offsets(
    part: &'static str,
    items: usize,
    offset: impl Fn(usize) -> u64,
) -> Result<(), FilterError> {
    let mut last = 0;
    for number in 0..=items {
        let next = offset(number);
        if next < last || (number == 0 && next != 0) {
            return Err(FilterError::Damaged { part, number, problem: "has a wrong offset" });
        }
        last = next;
    }
    Ok(())
}

/// The first number in a range for which `is_before` is false, given that it is true for a prefix.
fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if is_before(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}
