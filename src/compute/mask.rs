//! Naming rows to a backend: all, those of a dense mask, or a list.

use crate::compute::ComputeError;
use crate::types::RowId;

/// Passing rows of one segment as dense words: row r is bit `r % 64` of word `r / 64`.
/// No bit at or above the number of rows is ever set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMask {
    words: Vec<u64>,
    rows: usize,
    passing: usize,
}

impl RowMask {
    /// The mask of the rows in `ranges` (both ends included, any order, overlaps allowed) over a
    /// segment of `rows` rows; what lies outside the segment is left out.
    pub fn from_ranges(
        rows: usize,
        ranges: impl IntoIterator<Item = std::ops::RangeInclusive<u32>>,
    ) -> Self {
        let mut words = vec![0_u64; rows.div_ceil(64)];
        for range in ranges {
            let start = *range.start() as usize;
            let end = (*range.end() as usize + 1).min(rows);
            set_bits(&mut words, start, end);
        }
        let passing = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, rows, passing }
    }

    /// The words, the lowest rows first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Rows of the segment, passing or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows that pass.
    pub fn passing(&self) -> usize {
        self.passing
    }
}

/// Sets bits `start..end`.
fn set_bits(words: &mut [u64], start: usize, end: usize) {
    let mut at = start;
    while at < end {
        let (word, bit) = (at / 64, at % 64);
        let width = (64 - bit).min(end - at);
        words[word] |= (u64::MAX >> (64 - width)) << bit;
        at += width;
    }
}

/// Which rows a scan visits, and so the order of its estimates.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Every row, ascending.
    All,
    /// The rows of a mask, ascending.
    Masked(&'a RowMask),
    /// These rows, in this order.
    Listed(&'a [RowId]),
}

impl Selection<'_> {
    /// Number of rows that a scan over `rows` rows visits.
    pub fn count(&self, rows: usize) -> usize {
        match self {
            Self::All => rows,
            Self::Masked(mask) => mask.passing(),
            Self::Listed(listed) => listed.len(),
        }
    }

    /// Refuses rows that a segment of `rows` rows does not have.
    ///
    /// # Errors
    /// [`ComputeError::RowOutOfRange`], or [`ComputeError::Shape`] for a mask of another segment.
    pub fn check(&self, rows: usize) -> Result<(), ComputeError> {
        match self {
            Self::All => Ok(()),
            Self::Masked(mask) if mask.rows() == rows => Ok(()),
            Self::Masked(mask) => {
                let (expected, received) = (rows, mask.rows());
                Err(ComputeError::Shape { column: "mask", expected, received })
            }
            Self::Listed(listed) => match listed.iter().find(|row| row.0 as usize >= rows) {
                None => Ok(()),
                Some(row) => Err(ComputeError::RowOutOfRange { row: row.0, rows }),
            },
        }
    }

    /// Calls `visit` with each selected row of a segment of `rows` rows, in order.
    pub fn for_each(&self, rows: usize, mut visit: impl FnMut(usize)) {
        match self {
            Self::All => (0..rows).for_each(visit),
            Self::Listed(listed) => listed.iter().for_each(|row| visit(row.0 as usize)),
            Self::Masked(mask) => {
                for (position, &word) in mask.words.iter().enumerate() {
                    let mut remaining = word;
                    while remaining != 0 {
                        visit(position * 64 + remaining.trailing_zeros() as usize);
                        remaining &= remaining - 1;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_bits_and_never_leave_the_segment() {
        let ranges = [3..=3, 60..=70, 65..=66, 128..=u32::MAX, 500..=600];
        let mask = RowMask::from_ranges(130, ranges);
        let expected: Vec<usize> = [3].into_iter().chain(60..=70).chain([128, 129]).collect();
        let mut visited = Vec::new();
        Selection::Masked(&mask).for_each(130, |row| visited.push(row));
        assert_eq!(visited, expected);
        assert_eq!((mask.passing(), mask.words().len()), (expected.len(), 3));

        let full = RowMask::from_ranges(128, [0..=127]);
        assert_eq!(full.words(), [u64::MAX, u64::MAX]);
        assert_eq!(RowMask::from_ranges(0, [0..=9]).passing(), 0);
    }

    #[test]
    fn rows_outside_are_refused() {
        assert!(Selection::Listed(&[RowId(0), RowId(4)]).check(4).is_err());
        assert!(Selection::Listed(&[RowId(3), RowId(0), RowId(3)]).check(4).is_ok());
        assert!(Selection::Masked(&RowMask::from_ranges(5, [])).check(4).is_err());
        assert!(Selection::All.check(0).is_ok());
    }
}
