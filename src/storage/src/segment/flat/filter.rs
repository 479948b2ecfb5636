//! The rows of one segment that a search may return, in the forms that its paths need.

use std::sync::OnceLock;

use roaring::RoaringBitmap;

use lodestone_compute::{RowMask, Selection};
use lodestone_types::RowId;

/// Rows of the segment for each passing one, above which a list is cheaper than a mask: the mask of
/// 256 rows costs about as much as a list of four.
const ROWS_A_LISTED_ROW: usize = 64;

/// Passing rows of one segment.
#[derive(Debug)]
pub struct RowFilter<'a> {
    bitmap: &'a RoaringBitmap,
    rows: usize,
    passing: usize,
    dense: OnceLock<RowMask>,
}

impl<'a> RowFilter<'a> {
    /// The rows of `bitmap` in a segment of `rows` rows; others are ignored.
    pub fn new(bitmap: &'a RoaringBitmap, rows: usize) -> Self {
        let passing = bitmap.range_cardinality(..rows as u32) as usize;
        Self { bitmap, rows, passing, dense: OnceLock::new() }
    }

    /// Number of passing rows.
    pub fn passing(&self) -> usize {
        self.passing
    }

    /// The passing rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        self.bitmap.iter().take(self.passing).map(RowId)
    }

    /// The passing rows, ascending.
    pub fn listed(&self) -> Vec<RowId> {
        self.rows().collect()
    }

    /// The passing rows, if going through a list of them costs less than making words of them.
    pub(super) fn listed_if_few(&self) -> Option<Vec<RowId>> {
        (self.passing * ROWS_A_LISTED_ROW < self.rows).then(|| self.listed())
    }

    /// Names the rows to a backend: by `listed` if it was worth making.
    pub(super) fn selection<'b>(&'b self, listed: &'b Option<Vec<RowId>>) -> Selection<'b> {
        match listed {
            Some(listed) => Selection::Listed(listed),
            None => Selection::Masked(self.dense()),
        }
    }

    /// The passing rows as words; computed on first use.
    pub fn dense(&self) -> &RowMask {
        self.dense.get_or_init(|| RowMask::from_bitmap(self.rows, self.bitmap))
    }
}
