//! A set of rows in the form that a scan over postings tests fastest.

use roaring::RoaringBitmap;

/// A mask is dense if it holds more than one row in this many.
const DENSE_SHARE: u64 = 4;

/// Rows that may match: a bitmap with one bit a row, or all rows.
pub(super) struct RowMask {
    /// None: all rows.
    bits: Option<Vec<u64>>,
    /// Rows in the mask.
    count: u64,
}

impl RowMask {
    /// The rows below `rows` that are in every mask given.
    pub(super) fn new(rows: u32, masks: [Option<&RoaringBitmap>; 2]) -> Self {
        let both;
        let mask = match masks {
            [Some(a), Some(b)] => {
                both = a & b;
                &both
            }
            [Some(mask), None] | [None, Some(mask)] => mask,
            [None, None] => return Self { bits: None, count: u64::from(rows) },
        };
        let mut bits = vec![0; (rows as usize).div_ceil(64)];
        let mut count = 0;
        let mut ranges = mask.iter();
        while let Some(range) = ranges.next_range() {
            let (start, end) = (*range.start(), (*range.end()).min(rows.saturating_sub(1)));
            if start >= rows {
                break;
            }
            fill(&mut bits, start as usize, end as usize);
            count += u64::from(end - start) + 1;
        }
        Self { bits: Some(bits), count }
    }

    /// Rows in the mask.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether so many rows are in the mask that it is cheaper to look at every posting and to
    /// drop the rows outside at the end: a test that comes out either way half of the time stalls
    /// the processor at every posting.
    pub(super) fn is_dense(&self, rows: u32) -> bool {
        self.count * DENSE_SHARE > u64::from(rows)
    }

    /// The bits, or None if every row is in the mask.
    pub(super) fn bits(&self) -> Option<&[u64]> {
        self.bits.as_deref()
    }

    /// Calls `each` with every row of the mask in ascending order.
    pub(super) fn for_each(&self, rows: u32, mut each: impl FnMut(u32)) {
        let Some(bits) = &self.bits else { return (0..rows).for_each(each) };
        for (at, &word) in bits.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                each(at as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }
}

/// Whether a row is in the mask; rows outside of the index are not.
#[inline]
pub(super) fn has(bits: &[u64], row: u32) -> bool {
    bits.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
}

/// Sets the bits from `start` to `end`, both included.
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

    proptest! {
        #[test]
        fn the_mask_holds_the_rows_of_both(
            rows in 0_u32..300,
            a in proptest::collection::vec(0_u32..400, 0..200),
            b in proptest::collection::vec(0_u32..400, 0..200),
            span in (0_u32..400, 0_u32..400),
        ) {
            let mut a: RoaringBitmap = a.into_iter().collect();
            a.insert_range(span.0.min(span.1)..span.0.max(span.1));
            let b: RoaringBitmap = b.into_iter().collect();
            for masks in [[Some(&a), Some(&b)], [Some(&a), None], [None, Some(&b)], [None, None]] {
                let inside = |row: &u32| masks.iter().all(|m| m.is_none_or(|m| m.contains(*row)));
                let expected: Vec<u32> = (0..rows).filter(inside).collect();
                let mask = RowMask::new(rows, masks);
                let mut found = Vec::new();
                mask.for_each(rows, |row| found.push(row));
                prop_assert_eq!(mask.count(), expected.len() as u64);
                if let Some(bits) = mask.bits() {
                    prop_assert!((0..400).all(|row| has(bits, row) == expected.contains(&row)));
                }
                prop_assert_eq!(found, expected);
            }
        }
    }
}
