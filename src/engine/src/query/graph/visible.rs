//! The visible rows among the rows of an entity, at a cost that does not grow with the entity.
//!
//! An entity may be named by every row of a tenant while a search sees only a few of them. Rows and
//! mask are therefore intersected by galloping, up to a limit.

use roaring::RoaringBitmap;
use roaring::bitmap::Iter;

/// Maximum jumps over hidden rows, per entity and segment. Rows beyond are not found.
const LEAPS_MAX: usize = 1 << 14;
/// Maximum rows of an entity checked for its frequency; of more rows, that many are sampled evenly.
const SAMPLE_MAX: usize = 1 << 14;

/// The rows that a mask lets through, in ascending order.
pub(super) struct VisibleRows<'a> {
    rows: &'a [u32],
    mask: Option<Mask<'a>>,
    leaps: usize,
}

struct Mask<'a> {
    iter: Iter<'a>,
    /// The last row taken from `iter`.
    last: Option<u32>,
}

impl<'a> VisibleRows<'a> {
    /// Iterates over those of `rows`, in ascending order, that are in the mask, or over all without
    /// one.
    pub(super) fn new(rows: &'a [u32], mask: Option<&'a RoaringBitmap>) -> Self {
        let mask = mask.map(|mask| Mask { iter: mask.iter(), last: None });
        Self { rows, mask, leaps: 0 }
    }
}

impl Iterator for VisibleRows<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            let (row, rest) = self.rows.split_first()?;
            let Some(mask) = &mut self.mask else {
                self.rows = rest;
                return Some(*row);
            };
            if mask.last.is_none_or(|last| last < *row) {
                mask.iter.advance_to(*row);
                mask.last = Some(mask.iter.next()?);
            }
            if mask.last == Some(*row) {
                self.rows = rest;
                return Some(*row);
            }
            if self.leaps == LEAPS_MAX {
                return None;
            }
            self.leaps += 1;
            self.rows = from(self.rows, mask.last?);
        }
    }
}

/// The part of ascending rows from `least` on. Costs the logarithm of the number of rows skipped.
fn from(rows: &[u32], least: u32) -> &[u32] {
    let mut end = 1;
    while end < rows.len() && rows[end] < least {
        end *= 2;
    }
    let (start, end) = (end / 2, end.min(rows.len()));
    &rows[start + rows[start..end].partition_point(|row| *row < least)..]
}

/// The number of rows in the scope: exact up to [`SAMPLE_MAX`] rows, and beyond that within a
/// percent or two, which changes a weight derived from it by less than a thousandth.
pub(super) fn frequency(rows: &[u32], scope: &RoaringBitmap) -> u64 {
    let step = rows.len().div_ceil(SAMPLE_MAX).max(1);
    let looked = rows.iter().step_by(step);
    let found = looked.clone().filter(|row| scope.contains(**row)).count();
    (found as u64 * rows.len() as u64) / (looked.len().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hub_costs_what_is_taken_of_it() {
        const ROWS: u32 = 4_000_000;
        let hub: Vec<u32> = (0..ROWS).collect();
        let taken = VisibleRows::new(&hub, None).take(10).count();
        assert_eq!(taken, 10);
        // Rows of another scope precede ours: one jump.
        let late: RoaringBitmap = (ROWS - 5..ROWS + 5).collect();
        let mut visible = VisibleRows::new(&hub, Some(&late));
        assert_eq!((visible.by_ref().count(), visible.leaps), (5, 1));
        // Worst case: nothing is visible, and hidden and masked rows alternate.
        let hub: Vec<u32> = (0..ROWS).map(|row| row * 2).collect();
        let odd: RoaringBitmap = (0..ROWS).map(|row| row * 2 + 1).collect();
        let mut visible = VisibleRows::new(&hub, Some(&odd));
        assert_eq!((visible.next(), visible.leaps), (None, LEAPS_MAX));
    }

    #[test]
    fn a_frequency_is_exact_where_it_is_low_and_close_where_it_is_high() {
        let rows: Vec<u32> = (0..1000).collect();
        let scope: RoaringBitmap = (0..1000).filter(|row| row % 7 == 0).collect();
        assert_eq!(frequency(&rows, &scope), 143);
        assert_eq!(frequency(&[], &scope), 0);
        let rows: Vec<u32> = (0..1_000_000).collect();
        let scope: RoaringBitmap = (0..1_000_000).filter(|row| row % 7 < 3).collect();
        let found = frequency(&rows, &scope);
        assert!(found.abs_diff(428_571) < 10_000, "{found}");
    }

    proptest! {
        #[test]
        fn it_is_the_intersection(
            rows in prop::collection::btree_set(0_u32..300, 0..100),
            mask in prop::collection::btree_set(0_u32..300, 0..100),
        ) {
            let sorted: Vec<u32> = rows.iter().copied().collect();
            let bitmap: RoaringBitmap = mask.iter().copied().collect();
            let found: Vec<u32> = VisibleRows::new(&sorted, Some(&bitmap)).collect();
            let expected: Vec<u32> = rows.intersection(&mask).copied().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
