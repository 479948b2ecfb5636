//! A set of rows, read window by window, so that a search only costs as much as the windows that
//! contain rows of the set.

use std::ops::RangeInclusive;

use roaring::RoaringBitmap;
use roaring::bitmap::Iter;

/// Rows per window: their sums, 16 KiB, fit into a core's L1 cache.
pub(super) const WINDOW_ROWS: usize = 4096;
pub(super) const WORDS: usize = WINDOW_ROWS / 64;

/// The rows that may match.
pub(super) struct RowMask<'a> {
    /// Number of rows of the index.
    rows: u32,
    /// `None`: all rows.
    bitmap: Option<&'a RoaringBitmap>,
    count: u64,
}

impl<'a> RowMask<'a> {
    /// Creates the mask of a bitmap's rows below `rows`.
    pub(super) fn new(rows: u32, bitmap: Option<&'a RoaringBitmap>) -> Self {
        let inside = |bitmap: &RoaringBitmap| bitmap.range_cardinality(..rows);
        Self { rows, bitmap, count: bitmap.map_or(u64::from(rows), inside) }
    }

    /// Number of rows in the mask.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Number of rows of the index.
    pub(super) fn index_rows(&self) -> u64 {
        u64::from(self.rows)
    }

    /// Whether the mask contains every row of the index.
    pub(super) fn is_all(&self) -> bool {
        self.count == u64::from(self.rows)
    }

    /// Calls `each` with every row of the mask, in ascending order.
    pub(super) fn for_each(&self, each: impl FnMut(u32)) {
        match self.bitmap {
            Some(bitmap) => bitmap.range(..self.rows).for_each(each),
            None => (0..self.rows).for_each(each),
        }
    }

    /// The windows that contain rows of the mask.
    pub(super) fn windows(&self) -> Windows<'_> {
        Windows {
            rows: self.rows,
            ranges: self.bitmap.map(RoaringBitmap::iter),
            pending: self.bitmap.is_none().then_some(0..=u32::MAX),
        }
    }
}

/// The rows of a mask within one aligned block of rows.
#[derive(Clone)]
pub(super) struct Window {
    start: u32,
    words: [u64; WORDS],
    count: u32,
}

impl Window {
    /// First row of the window, a multiple of the window size.
    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// One past the last row of the window.
    pub(super) fn end(&self) -> u32 {
        self.start.saturating_add(WINDOW_ROWS as u32)
    }

    /// Number of rows of the mask in the window.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether the row at a position is in the mask; false for positions outside the window.
    #[inline]
    pub(super) fn has(&self, place: u32) -> bool {
        self.words.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// The rows of the window whose positions are set in `bits`; `None` if there are none.
    pub(super) fn among(&self, bits: &[u64; WORDS]) -> Option<Self> {
        let words: [u64; WORDS] = std::array::from_fn(|at| self.words[at] & bits[at]);
        let count = words.iter().map(|word| word.count_ones()).sum();
        (count > 0).then_some(Self { start: self.start, words, count })
    }

    /// Calls `each` with every row of the mask in the window, in ascending order.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32)) {
        for (at, &word) in self.words.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                each(self.start + at as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }
}

/// Iterates over the windows of a mask, in ascending order.
pub(super) struct Windows<'m> {
    rows: u32,
    /// `None` if all rows are in the mask.
    ranges: Option<Iter<'m>>,
    /// The part of a range of the mask not yet covered by a window.
    pending: Option<RangeInclusive<u32>>,
}

impl Windows<'_> {
    /// Returns the next window that contains a row of the mask at or after `row`; rows before `row`
    /// are excluded from it.
    pub(super) fn next_from(&mut self, row: u32) -> Option<Window> {
        if self.pending.as_ref().is_none_or(|range| *range.end() < row) {
            self.pending = None;
            self.ranges.as_mut()?.advance_to(row);
        }
        let range = self.next_range()?;
        let mut range = (*range.start()).max(row)..=*range.end();
        if range.is_empty() {
            return None;
        }
        let start = range.start() / WINDOW_ROWS as u32 * WINDOW_ROWS as u32;
        let mut window = Window { start, words: [0; WORDS], count: 0 };
        let last = window.end() - 1;
        while *range.start() <= last {
            let (from, to) = (*range.start(), (*range.end()).min(last));
            fill(&mut window.words, (from - start) as usize, (to - start) as usize);
            window.count += to - from + 1;
            let Some(next) = (match *range.end() > last {
                true => Some(last + 1..=*range.end()),
                false => self.next_range(),
            }) else {
                return Some(window);
            };
            range = next;
        }
        self.pending = Some(range);
        Some(window)
    }

    /// The next range of rows, clipped to the index.
    fn next_range(&mut self) -> Option<RangeInclusive<u32>> {
        let next = self.pending.take().or_else(|| self.ranges.as_mut()?.next_range())?;
        (*next.start() < self.rows).then(|| *next.start()..=(*next.end()).min(self.rows - 1))
    }
}

/// Sets the bits `start` to `end`, inclusive.
fn fill(bits: &mut [u64], start: usize, end: usize) {
    let (first, last) = (start / 64, end / 64);
    let (head, tail) = (u64::MAX << (start % 64), u64::MAX >> (63 - end % 64));
    if first == last {
        bits[first] |= head & tail;
        return;
    }
    bits[first] |= head;
    bits[first + 1..last].fill(u64::MAX);
    bits[last] |= tail;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of some windows: single rows and a range.
    fn any_mask() -> impl Strategy<Value = RoaringBitmap> {
        let points = proptest::collection::vec(0_u32..40_000, 0..50);
        (points, 0_u32..40_000, 0_u32..9000).prop_map(|(points, start, length)| {
            let mut mask: RoaringBitmap = points.into_iter().collect();
            mask.insert_range(start..start + length);
            mask
        })
    }

    proptest! {
        #[test]
        fn windows_hold_the_rows_of_a_mask_and_pass_over_the_rest(
            rows in 0_u32..35_000,
            bitmap in any_mask(),
            steps in proptest::collection::vec(0_u32..9000, 40),
        ) {
            for bitmap in [Some(&bitmap), None] {
                let inside = |row: &u32| bitmap.is_none_or(|bitmap| bitmap.contains(*row));
                let expected: Vec<u32> = (0..rows).filter(inside).collect();
                let mask = RowMask::new(rows, bitmap);
                prop_assert_eq!(mask.count(), expected.len() as u64);
                prop_assert_eq!(mask.is_all(), expected.len() == rows as usize);
                let mut found = Vec::new();
                mask.for_each(|row| found.push(row));
                prop_assert_eq!(&found, &expected);

                let (mut windows, mut from) = (mask.windows(), 0);
                for step in &steps {
                    from += step;
                    let rest: Vec<u32> = expected.iter().copied().filter(|r| *r >= from).collect();
                    let Some(window) = windows.next_from(from) else {
                        prop_assert!(rest.is_empty());
                        break;
                    };
                    let mut found = Vec::new();
                    window.for_each(|row| found.push(row));
                    let of_window = rest.iter().copied().take_while(|row| *row < window.end());
                    prop_assert_eq!(&found, &of_window.collect::<Vec<_>>());
                    prop_assert!(!found.is_empty() && found.len() == window.count() as usize);
                    prop_assert!(found.iter().all(|row| window.has(row - window.start())));
                    prop_assert!(!window.has(WINDOW_ROWS as u32));
                    from = window.end();
                }
            }
        }
    }
}
