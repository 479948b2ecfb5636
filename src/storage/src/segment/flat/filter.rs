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

/// Segment rows per passing row above which a list is cheaper than a mask: the mask of 256 rows
/// costs about as much as a list of four.
const ROWS_A_LISTED_ROW: usize = 64;

/// The passing rows of one segment. Each form is computed when a search first needs it and is then
/// shared by all searches that use this filter.
#[derive(Debug)]
pub struct RowFilter<'a> {
    bitmap: Cow<'a, RoaringBitmap>,
    rows: usize,
    passing: usize,
    dense: OnceLock<RowMask>,
    listed: OnceLock<Vec<RowId>>,
    /// Whether condensing was requested; cleared by the caller that does it.
    may_condense: AtomicBool,
    condensed: OnceLock<Condensed>,
}

impl<'a> RowFilter<'a> {
    /// Takes the rows of `bitmap` in a segment of `rows` rows; numbers out of range are ignored.
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

    /// The bitmap as it was given.
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

    /// The rows in the form for a backend: a list if building and iterating it costs less than a
    /// mask.
    pub(super) fn selection(&self) -> Selection<'_> {
        match self.are_few() {
            true => Selection::Listed(self.listed()),
            false => Selection::Masked(self.dense()),
        }
    }

    /// The passing rows as a bit mask; computed on first use.
    pub fn dense(&self) -> &RowMask {
        self.dense.get_or_init(|| RowMask::from_bitmap(self.rows, &self.bitmap))
    }

    /// Bytes of the bitmap and of the form that searches use, without [`Self::condensed_bytes`].
    pub fn bytes(&self) -> usize {
        let form = if self.are_few() { 4 * self.passing } else { self.rows / 8 };
        self.bitmap.serialized_size() + form
    }

    /// Bytes of a compact copy of T0 and T1 of the passing rows, for vectors of `dimension`
    /// components; `None` if a copy would not pay off.
    pub fn condensed_bytes(&self, dimension: usize) -> Option<usize> {
        let pays = (ONE_BIT_ROWS_MIN..PROBED_PASSING_MIN).contains(&self.passing)
            && self.passing * ROWS_A_PASSING_ROW <= self.rows;
        pays.then(|| Condensed::bytes(dimension, self.passing) + 4 * self.passing)
    }

    /// Requests that the filter be condensed, by whichever caller picks it up. For repeated
    /// filters.
    pub fn allow_condensing(&self) {
        self.may_condense.store(true, Ordering::Release);
    }

    /// Whether condensing was requested and nobody has started it.
    pub fn may_condense(&self) -> bool {
        self.may_condense.load(Ordering::Acquire)
    }

    /// Condenses the filter if that was requested and pays off: copies T0 and T1 of the passing
    /// rows, at the cost of about a hundred and fifty searches, which makes later ones several
    /// times as fast. Concurrent searches continue on the old path meanwhile.
    pub fn condense(&self, tiers: &Tiers<'_>) {
        if self.may_condense.swap(false, Ordering::AcqRel)
            && self.condensed_bytes(tiers.rows.dimension()).is_some()
        {
            tiers.prepare_scan(Some(self));
            self.condensed.get_or_init(|| Condensed::new(tiers, self));
        }
    }

    /// The compact copy of the passing rows, once it exists.
    pub(super) fn condensed(&self) -> Option<&Condensed> {
        self.condensed.get()
    }
}

impl RowFilter<'static> {
    /// Like [`RowFilter::new`], but owns its bitmap.
    pub fn owned(bitmap: RoaringBitmap, rows: usize) -> Self {
        Self::of(Cow::Owned(bitmap), rows)
    }
}
