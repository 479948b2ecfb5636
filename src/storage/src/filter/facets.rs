//! Facets: counts of rows by the value of a key.

use roaring::RoaringBitmap;

use crate::filter::format::EntryRows;
use crate::filter::key;
use crate::filter::source::{Root, is_system_key, is_system_time};
use crate::filter::{Columns, FilterError};

/// Values of a key, each with its number of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// Values as text, each with at least one row.
    pub counts: Vec<(String, u64)>,
    /// Number of further values that were not counted.
    pub unread: usize,
}

impl Columns {
    /// Counts the rows in `among` by the value of a key. In each map at most `values_max` values
    /// are counted, and only values whose encoded key is at most `bytes_max` bytes long. The key is
    /// resolved as in the filter `metadata`: system keys first, then the document's, then the
    /// tenant's for rows whose document lacks the key.
    ///
    /// # Errors
    /// [`FilterError::Damaged`] if a bitmap is malformed.
    pub fn value_counts(
        &self,
        path: &str,
        among: &RoaringBitmap,
        values_max: usize,
        bytes_max: usize,
    ) -> Result<ValueCounts, FilterError> {
        let mut found = ValueCounts::default();
        if is_system_key(path) {
            self.count_values(Root::System, path, among, values_max, bytes_max, &mut found)?;
            return Ok(found);
        }
        self.count_values(Root::Document, path, among, values_max, bytes_max, &mut found)?;
        let others = among - self.holding(Root::Document, path)?;
        self.count_values(Root::Tenant, path, &others, values_max, bytes_max, &mut found)?;
        Ok(found)
    }

    fn count_values(
        &self,
        root: Root,
        path: &str,
        among: &RoaringBitmap,
        values_max: usize,
        bytes_max: usize,
        found: &mut ValueCounts,
    ) -> Result<(), FilterError> {
        if among.is_empty() {
            return Ok(());
        }
        let is_time = root == Root::System && is_system_time(path);
        let mut looked_at = 0;
        for entry in self.entries_of(self.column(root, path)) {
            let key = self.tables.key(entry);
            let is_second_form = is_time && key::text_bytes(key).is_none();
            if key == key::PRESENT || key == key::NULL || is_second_form {
                continue;
            }
            looked_at += 1;
            if looked_at > values_max || key.len() > bytes_max {
                found.unread += 1;
                continue;
            }
            let count = match self.tables.rows_of(entry) {
                // Runs are never empty; an entry without rows is a bitmap.
                EntryRows::Run(rows) => {
                    among.range_cardinality(rows.start as u32..=(rows.end - 1) as u32)
                }
                EntryRows::Bitmap(number) => self.bitmap(number)?.intersection_len(among),
            };
            if count > 0
                && let Some(text) = key::shown(key)
            {
                found.counts.push((text, count));
            }
        }
        Ok(())
    }
}
