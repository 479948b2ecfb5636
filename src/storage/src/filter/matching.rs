//! Evaluates a filter to the bitmap of the rows that pass.

use std::ops::Range;

use roaring::RoaringBitmap;

use crate::filter::format::EntryRows;
use crate::filter::reader::{bitmap_of, insert};
use crate::filter::source::{Root, SOURCE_ID, is_system_key};
use crate::filter::{Columns, FilterError, key};
use lodestone_types::id::normalized;
use lodestone_types::{Comparison, Condition, Filter, FilterMap, FilterValue};

// Chosen by `benches/filter_columns.rs`; results do not depend on these values.

/// Runs up to this length are cheaper to set bit by bit than to insert.
const SHORT_RUN_ROWS: u64 = 64;
/// Fewer runs than this are inserted one by one.
const FEW_RUNS: usize = 16;
/// Clearing and collecting this many bytes of plain bits costs about as much as one insertion.
const BYTES_PER_RUN: usize = 1024;

impl Columns {
    /// The rows that pass a filter, out of all `rows` of the segment: dead rows and rows of all
    /// sub-tenants are included.
    ///
    /// # Errors
    /// [`FilterError::RowsDisagree`] if the columns cover a different number of rows,
    /// [`FilterError::Damaged`] if a bitmap is malformed.
    pub fn matching(&self, filter: &Filter, rows: u32) -> Result<RoaringBitmap, FilterError> {
        if rows != self.rows() {
            return Err(FilterError::RowsDisagree { stored: self.rows(), rows });
        }
        self.filter(filter)
    }

    fn filter(&self, filter: &Filter) -> Result<RoaringBitmap, FilterError> {
        match filter {
            Filter::All => Ok(self.all()),
            Filter::Is(condition) => self.condition(condition),
            Filter::And(parts) => {
                let mut passing = self.all();
                for part in parts {
                    passing &= self.filter(part)?;
                    if passing.is_empty() {
                        break;
                    }
                }
                Ok(passing)
            }
            Filter::Or(parts) => {
                let mut passing = RoaringBitmap::new();
                for part in parts {
                    passing |= self.filter(part)?;
                }
                Ok(passing)
            }
        }
    }

    fn condition(&self, condition: &Condition) -> Result<RoaringBitmap, FilterError> {
        let Condition { map, path, comparison } = condition;
        match (map, is_system_key(path)) {
            (FilterMap::System, true) => self.compare(Root::System, path, comparison),
            (FilterMap::System, false) => {
                self.compare_first(Root::Document, Root::Tenant, path, comparison)
            }
            (map, true) => self.compare_first((*map).into(), Root::System, path, comparison),
            (map, false) => self.compare((*map).into(), path, comparison),
        }
    }

    /// Evaluates rows that hold the path's first key in `first` there, and all other rows in
    /// `second`.
    fn compare_first(
        &self,
        first: Root,
        second: Root,
        path: &str,
        comparison: &Comparison,
    ) -> Result<RoaringBitmap, FilterError> {
        let held = self.holding(first, path)?;
        let mut passing = RoaringBitmap::new();
        if !held.is_empty() {
            passing = self.compare(first, path, comparison)? & &held;
        }
        if held.len() < u64::from(self.rows()) {
            passing |= self.compare(second, path, comparison)? - held;
        }
        Ok(passing)
    }

    /// The rows that hold the first key of a path, even if only with a null.
    pub(super) fn holding(&self, root: Root, path: &str) -> Result<RoaringBitmap, FilterError> {
        let first_key = path.split('.').next().unwrap_or(path);
        self.marked(self.column(root, first_key))
    }

    /// The rows that have any value in a column, even if only a null.
    pub(super) fn marked(&self, column: Option<usize>) -> Result<RoaringBitmap, FilterError> {
        let marks = [key::PRESENT, key::NULL];
        self.union(marks.iter().filter_map(|mark| self.entry(column, mark)))
    }

    fn compare(
        &self,
        root: Root,
        path: &str,
        comparison: &Comparison,
    ) -> Result<RoaringBitmap, FilterError> {
        let column = self.column(root, path);
        let of_ids = (root == Root::System && path == SOURCE_ID).then(|| of_ids(comparison));
        match of_ids.as_ref().unwrap_or(comparison) {
            Comparison::AnyOf(values) => self.any_of(column, values),
            Comparison::NoneOf(values) => Ok(self.all() - self.any_of(column, values)?),
            Comparison::Exists(true) => self.union(self.entry(column, key::PRESENT)),
            Comparison::Exists(false) => self.missing(column),
            Comparison::Greater(operand) => {
                let [_, _, above, end] = self.around(column, operand);
                self.union(above..end)
            }
            Comparison::GreaterOrEqual(operand) => {
                let [_, equal, _, end] = self.around(column, operand);
                self.union(equal..end)
            }
            Comparison::Less(operand) => {
                let [start, equal, _, _] = self.around(column, operand);
                self.union(start..equal)
            }
            Comparison::LessOrEqual(operand) => {
                let [start, _, above, _] = self.around(column, operand);
                self.union(start..above)
            }
        }
    }

    fn any_of(
        &self,
        column: Option<usize>,
        values: &[FilterValue],
    ) -> Result<RoaringBitmap, FilterError> {
        let found = values.iter().filter_map(|value| self.entry(column, &key::of_value(value)));
        let mut rows = self.union(found)?;
        if values.contains(&FilterValue::Null) {
            rows |= self.missing(column)?;
        }
        Ok(rows)
    }

    /// The rows without a value other than null.
    fn missing(&self, column: Option<usize>) -> Result<RoaringBitmap, FilterError> {
        Ok(self.all() - self.union(self.entry(column, key::PRESENT))?)
    }

    /// Four positions among the entries of the operand's type: the first entry, the first not below
    /// the operand, the first above it, and the end. All are 0 for null, which is not ordered.
    fn around(&self, column: Option<usize>, operand: &FilterValue) -> [usize; 4] {
        if *operand == FilterValue::Null {
            return [0; 4];
        }
        let entries = self.entries_of(column);
        let key = key::of_value(operand);
        [
            self.lower_bound(&entries, &key::start_of_type(&key)),
            self.lower_bound(&entries, &key),
            self.upper_bound(&entries, &key),
            self.lower_bound(&entries, &key::end_of_type(&key)),
        ]
    }

    /// The union of the rows of several entries.
    fn union(
        &self,
        entries: impl IntoIterator<Item = usize>,
    ) -> Result<RoaringBitmap, FilterError> {
        let mut rows = RoaringBitmap::new();
        let mut short_runs = Vec::new();
        for entry in entries {
            match self.tables.rows_of(entry) {
                EntryRows::Run(run) if run.end - run.start > SHORT_RUN_ROWS => {
                    insert(&mut rows, run);
                }
                EntryRows::Run(run) => short_runs.push(run),
                EntryRows::Bitmap(number) => {
                    // Inserting a run among runs would move all later ones; in plain bitmap words
                    // it is a write.
                    rows.remove_run_compression();
                    rows |= self.bitmap(number)?;
                }
            }
        }
        self.insert_short(&mut rows, short_runs);
        Ok(rows)
    }

    /// Inserts short runs. They come in the order of values, not of rows: if there are many,
    /// setting plain bits costs one write each, while a sorted set would search and move.
    fn insert_short(&self, rows: &mut RoaringBitmap, runs: Vec<Range<u64>>) {
        let bits_bytes = (self.rows() as usize).div_ceil(8);
        if runs.len() < FEW_RUNS || runs.len() < bits_bytes / BYTES_PER_RUN {
            runs.into_iter().for_each(|run| insert(rows, run));
            return;
        }
        let mut bits = vec![0_u8; bits_bytes];
        for row in runs.into_iter().flatten() {
            bits[(row / 8) as usize] |= 1 << (row % 8);
        }
        *rows |= RoaringBitmap::from_lsb0_bytes(0, &bits);
    }

    fn all(&self) -> RoaringBitmap {
        bitmap_of(0..u64::from(self.rows()))
    }
}

/// Normalises the operands of a comparison with ids to the form in which ids are stored.
fn of_ids(comparison: &Comparison) -> Comparison {
    let stored = |value: &FilterValue| match value {
        FilterValue::Text(text) if !text.is_ascii() => FilterValue::Text(normalized(text)),
        value => value.clone(),
    };
    let all = |values: &[FilterValue]| values.iter().map(stored).collect();
    match comparison {
        Comparison::AnyOf(values) => Comparison::AnyOf(all(values)),
        Comparison::NoneOf(values) => Comparison::NoneOf(all(values)),
        Comparison::Exists(exists) => Comparison::Exists(*exists),
        Comparison::Greater(value) => Comparison::Greater(stored(value)),
        Comparison::GreaterOrEqual(value) => Comparison::GreaterOrEqual(stored(value)),
        Comparison::Less(value) => Comparison::Less(stored(value)),
        Comparison::LessOrEqual(value) => Comparison::LessOrEqual(stored(value)),
    }
}
