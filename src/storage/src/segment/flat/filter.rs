//! The rows of one segment that a search may return, in the forms that its paths need.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use crate::segment::flat::Tiers;
use crate::segment::flat::condensed::Condensed;
use crate::segment::flat::path::{PROBED_PASSING_MIN, ROWS_A_PASSING_ROW};
use crate::segment::lists::ONE_BIT_ROWS_MIN;
use lodestone_compute::{RowMask, Selection};
use lodestone_types::RowId;

/// Rows of the segment for each passing one, above which a list is cheaper than a mask: the mask of
/// 256 rows costs about as much as a list of four.
const ROWS_A_LISTED_ROW: usize = 64;

/// Passing rows of one segment. Each form is made when a search first needs it, and serves all
/// searches that share this.
#[derive(Debug)]
pub struct RowFilter<'a> {
    bitmap: Cow<'a, RoaringBitmap>,
    rows: usize,
    passing: usize,
    dense: OnceLock<RowMask>,
    listed: OnceLock<Vec<RowId>>,
    /// Whether it is to be condensed; taken by who does it.
    may_condense: AtomicBool,
    condensed: OnceLock<Condensed>,
}

impl<'a> RowFilter<'a> {
    /// The rows of `bitmap` in a segment of `rows` rows; others are ignored.
    pub fn new(bitmap: &'a RoaringBitmap, rows: usize) -> Self {
        Self::of(Cow::Borrowed(bitmap), rows)
    }

    fn of(bitmap: Cow<'a, RoaringBitmap>, rows: usize) -> Self {
        let passing = bitmap.range_cardinality(..rows as u32) as usize;
        Self {
            bitmap,
            rows,
            passing,
            dense: OnceLock::new(),
            listed: OnceLock::new(),
            may_condense: AtomicBool::new(false),
            condensed: OnceLock::new(),
        }
    }

    /// The rows as they were given.
    pub fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    /// Number of passing rows.
    pub fn passing(&self) -> usize {
        self.passing
    }

    /// The passing rows, ascending.
    pub fn listed(&self) -> &[RowId] {
        let list = || self.bitmap.iter().take(self.passing).map(RowId).collect();
        self.listed.get_or_init(list)
    }

    #[cfg(test)]
    pub(in crate::segment) fn is_listed(&self) -> bool {
        self.listed.get().is_some()
    }

    fn are_few(&self) -> bool {
        self.passing * ROWS_A_LISTED_ROW < self.rows
    }

    /// Names the rows to a backend: by a list if going through that costs less than making words.
    pub(super) fn selection(&self) -> Selection<'_> {
        match self.are_few() {
            true => Selection::Listed(self.listed()),
            false => Selection::Masked(self.dense()),
        }
    }

    /// The passing rows as words; computed on first use.
    pub fn dense(&self) -> &RowMask {
        self.dense.get_or_init(|| RowMask::from_bitmap(self.rows, &self.bitmap))
    }

    /// Bytes of the bitmap and of the form that searches need, but for [`Self::condensed_bytes`].
    pub fn bytes(&self) -> usize {
        let form = if self.are_few() { 4 * self.passing } else { self.rows / 8 };
        self.bitmap.serialized_size() + form
    }

    /// Bytes of T0 and T1 of the passing rows apart, of vectors of `dimension` components; `None`
    /// where that would not pay.
    pub fn condensed_bytes(&self, dimension: usize) -> Option<usize> {
        let pays = (ONE_BIT_ROWS_MIN..PROBED_PASSING_MIN).contains(&self.passing)
            && self.passing * ROWS_A_PASSING_ROW <= self.rows;
        pays.then(|| Condensed::bytes(dimension, self.passing) + 4 * self.passing)
    }

    /// Asks that the filter be condensed, by who takes that up. For filters that are repeated.
    pub fn allow_condensing(&self) {
        self.may_condense.store(true, Ordering::Release);
    }

    /// Whether the filter is to be condensed.
    pub fn may_condense(&self) -> bool {
        self.may_condense.load(Ordering::Acquire)
    }

    /// Condenses the filter if that was asked for and pays: sets T0 and T1 of the passing rows
    /// apart, which costs as much as some hundred and fifty searches and makes later ones several
    /// times as fast. Searches go on meanwhile as before.
    pub fn condense(&self, tiers: &Tiers<'_>) {
        if self.may_condense.swap(false, Ordering::AcqRel)
            && self.condensed_bytes(tiers.rows.dimension()).is_some()
        {
            tiers.prepare_scan(Some(self));
            self.condensed.get_or_init(|| Condensed::new(tiers, self));
        }
    }

    /// The passing rows apart, if they stand so.
    pub(super) fn condensed(&self) -> Option<&Condensed> {
        self.condensed.get()
    }
}

impl RowFilter<'static> {
    /// As [`RowFilter::new`], of a bitmap of its own.
    pub fn owned(bitmap: RoaringBitmap, rows: usize) -> Self {
        Self::of(Cow::Owned(bitmap), rows)
    }
}
