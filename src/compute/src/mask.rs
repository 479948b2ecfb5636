//! Selects rows for a backend: all, those of a dense mask, or a list.

use std::sync::atomic::{AtomicU64, Ordering};

use roaring::RoaringBitmap;

use crate::ComputeError;
use crate::serialised::{self, ChunkRows};
use lodestone_types::RowId;

/// The passing rows of a segment as a dense bit mask: row r is bit `r % 64` of word `r / 64`. Bits
/// at or above the number of rows are never set.
#[derive(Debug, Clone)]
pub struct RowMask {
    words: Vec<u64>,
    rows: usize,
    passing: usize,
    identity: u64,
}

/// Compares words and number of rows, ignoring identities.
impl PartialEq for RowMask {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, &self.words) == (other.rows, &other.words)
    }
}

impl Eq for RowMask {}

impl RowMask {
    /// Builds the mask of the rows in `ranges` over a segment of `rows` rows. Ranges may overlap
    /// and come in any order; rows outside the segment are ignored.
    #[cfg(test)]
    pub(super) fn from_ranges(
        rows: usize,
        ranges: impl IntoIterator<Item = std::ops::RangeInclusive<u32>>,
    ) -> Self {
        let mut words = vec![0_u64; rows.div_ceil(64)];
        for range in ranges {
            let start = *range.start() as usize;
            let end = (*range.end() as usize + 1).min(rows);
            set_bits(&mut words, start, end);
        }
        Self::of(words, rows)
    }

    /// Builds the mask of the rows in `bitmap`, ignoring rows outside the segment. Reads the bitmap
    /// in its serialised form (RoaringFormatSpec, "portable"), in which a dense chunk of 65,536
    /// rows already consists of words: iterating over the rows would take ten times as long.
    pub fn from_bitmap(rows: usize, bitmap: &RoaringBitmap) -> Self {
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        bitmap.serialize_into(&mut bytes).expect("memory takes all that is written to it");
        let mut words = vec![0_u64; rows.div_ceil(64)];
        for chunk in serialised::chunks(&bytes) {
            let first = chunk.key * serialised::CHUNK_ROWS;
            match chunk.rows {
                ChunkRows::Words(bytes) => {
                    let place = words.get_mut(first / 64..).unwrap_or_default();
                    for (word, bytes) in place.iter_mut().zip(bytes.as_chunks::<8>().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                }
                ChunkRows::Listed(listed) => {
                    for row in listed.as_chunks::<2>().0 {
                        let row = first + usize::from(u16::from_le_bytes(*row));
                        set_bits(&mut words, row.min(rows), (row + 1).min(rows));
                    }
                }
                ChunkRows::Runs(runs) => {
                    for [a, b, c, d] in runs.as_chunks::<4>().0 {
                        let start = first + usize::from(u16::from_le_bytes([*a, *b]));
                        let end = start + usize::from(u16::from_le_bytes([*c, *d])) + 1;
                        set_bits(&mut words, start.min(rows), end.min(rows));
                    }
                }
            }
        }
        if let (Some(last), filled @ 1..) = (words.last_mut(), rows % 64) {
            *last &= u64::MAX >> (64 - filled);
        }
        Self::of(words, rows)
    }

    fn of(words: Vec<u64>, rows: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let passing = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, rows, passing, identity: MADE.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the mask's number. Masks of one process with equal numbers have equal words, so that
    /// a device may keep a copy.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Whether a row passes.
    ///
    /// # Panics
    /// If the segment does not have the row.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the words, lowest rows first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the number of rows of the segment, passing or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows that pass.
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

/// Selects the rows that a scan visits, and thereby the order of its estimates.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// All rows in ascending order.
    All,
    /// The rows of a mask in ascending order.
    Masked(&'a RowMask),
    /// The given rows in the given order.
    Listed(&'a [RowId]),
}

impl Selection<'_> {
    /// Returns the number of rows that a scan over `rows` rows visits.
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

    /// Chunks of every kind, at the boundaries of words, of chunks and of the segment.
    #[test]
    fn a_bitmap_becomes_the_same_bits_as_its_ranges() {
        let listed = (0..3000_u32).map(|row| row * 37 % 200_000);
        let dense = (0..40_000_u32).map(|row| 65_530 + row * 3);
        let mut runs = RoaringBitmap::new();
        for start in [0, 60, 65_500, 131_072, 262_000] {
            runs.insert_range(start..start + 100);
        }
        runs.optimize();
        let empty = RoaringBitmap::new();
        for bitmap in [listed.collect(), dense.collect(), runs, empty, RoaringBitmap::full()] {
            for rows in [0, 1, 63, 64, 65, 65_535, 65_536, 65_537, 131_072, 262_050, 300_000] {
                let mut ranges = bitmap.iter();
                let within = std::iter::from_fn(|| ranges.next_range());
                let within = within.take_while(|range| (*range.start() as usize) < rows);
                let expected = RowMask::from_ranges(rows, within);
                let mask = RowMask::from_bitmap(rows, &bitmap);
                assert_eq!(mask, expected, "{rows} rows");
                for row in [0, 63, 64, rows / 2, rows.saturating_sub(1)] {
                    assert!(row >= rows || mask.contains(row) == bitmap.contains(row as u32));
                }
            }
        }
    }

    #[test]
    fn rows_outside_are_refused() {
        assert!(Selection::Listed(&[RowId(0), RowId(4)]).check(4).is_err());
        assert!(Selection::Listed(&[RowId(3), RowId(0), RowId(3)]).check(4).is_ok());
        assert!(Selection::Masked(&RowMask::from_ranges(5, [])).check(4).is_err());
        assert!(Selection::All.check(0).is_ok());
    }
}
