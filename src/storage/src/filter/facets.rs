//! Facets: counts of rows by the value of a key.

use std::collections::HashMap;

use roaring::RoaringBitmap;

use crate::filter::format::EntryRows;
use crate::filter::key;
use crate::filter::source::{Root, is_system_key, is_system_time};
use crate::filter::{Columns, FilterError};

/// Runs up to this length are cheaper to look up row by row than to count by their bounds.
const SHORT_RUN_ROWS: u64 = 64;

/// Values of a key, each with its number of rows, over any number of segments.
#[derive(Debug, Clone)]
pub struct ValueCounts {
    /// Values as text, each with at least one row.
    pub counts: HashMap<String, u64>,
    /// Number of further values of counted rows; one that several segments have counts in each.
    pub unread: usize,
    values_max: usize,
    bytes_max: usize,
}

impl ValueCounts {
    /// Creates counts of at most `values_max` values whose encoded keys are at most `bytes_max`
    /// bytes long.
    pub fn new(values_max: usize, bytes_max: usize) -> Self {
        Self { counts: HashMap::new(), unread: 0, values_max, bytes_max }
    }

    /// Adds rows to a value. A value that is counted has all its rows counted: once there is no
    /// place for another value, none becomes free.
    fn add(&mut self, key: &[u8], rows: u64) {
        if key.len() > self.bytes_max {
            self.unread += 1;
            return;
        }
        let Some(text) = key::shown(key) else { return };
        let has_place = self.counts.len() < self.values_max;
        match self.counts.get_mut(&text) {
            Some(count) => *count += rows,
            None if has_place => {
                self.counts.insert(text, rows);
            }
            None => self.unread += 1,
        }
    }
}

impl Columns {
    /// Adds the numbers of rows in `among` by the value of a key. Values that only other rows have
    /// change nothing. The key is resolved as in the filter `metadata`: system keys first, then the
    /// document's, then the tenant's for rows whose document lacks the key.
    ///
    /// # Errors
    /// [`FilterError::Damaged`] if a bitmap is malformed.
    pub fn count_values(
        &self,
        path: &str,
        among: &RoaringBitmap,
        counts: &mut ValueCounts,
    ) -> Result<(), FilterError> {
        if is_system_key(path) {
            return self.count_in(Root::System, path, among, counts);
        }
        self.count_in(Root::Document, path, among, counts)?;
        let others = among - self.holding(Root::Document, path)?;
        self.count_in(Root::Tenant, path, &others, counts)
    }

    fn count_in(
        &self,
        root: Root,
        path: &str,
        among: &RoaringBitmap,
        counts: &mut ValueCounts,
    ) -> Result<(), FilterError> {
        let column = self.column(root, path);
        // Most keys that only other rows have end here, before their values are looked at.
        let among = self.marked(column)? & among;
        if among.is_empty() {
            return Ok(());
        }
        let is_time = root == Root::System && is_system_time(path);
        for entry in self.entries_of(column) {
            let key = self.tables.key(entry);
            let is_second_form = is_time && key::text_bytes(key).is_none();
            if key == key::PRESENT || key == key::NULL || is_second_form {
                continue;
            }
            let rows = self.count_held(entry, &among)?;
            if rows > 0 {
                counts.add(key, rows);
            }
        }
        Ok(())
    }

    /// Number of rows in `among` that have the value of an entry.
    fn count_held(&self, entry: usize, among: &RoaringBitmap) -> Result<u64, FilterError> {
        Ok(match self.tables.rows_of(entry) {
            EntryRows::Run(rows) if rows.end - rows.start <= SHORT_RUN_ROWS => {
                rows.filter(|row| among.contains(*row as u32)).count() as u64
            }
            // Runs are never empty; an entry without rows is a bitmap.
            EntryRows::Run(rows) => {
                among.range_cardinality(rows.start as u32..=(rows.end - 1) as u32)
            }
            EntryRows::Bitmap(number) => self.bitmap(number)?.intersection_len(among),
        })
    }
}
