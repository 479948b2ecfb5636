//! Upper bounds of a term's score in blocks of its postings, so that blocks that cannot matter are
//! skipped.
//!
//! For each full block of 128 postings, the index library stores the length and frequency of the
//! row that is best by its own BM25, and the bit width of the block's frequencies. Our BM25 has
//! other constants and another mean length, so that row need not be the best by ours. But its ratio
//! t = frequency / norm, by the library's norm, bounds that of all rows of the block; this bounds
//! from below the length of a row with a given frequency, and hence our ratio from above. With F
//! the greatest frequency,
//!
//! frequency / our norm(length) <= f / our norm(least length with f / their norm(length) <= t)
//!
//! for some f in 1..F. The right side increases with f until the least length is above zero and is
//! monotone from there on, so its maximum is at that f or at F. Where all frequencies are 1, as in
//! most blocks of rare words, it is the exact maximum.
//!
//! ```text
//! term with 128 postings or more: VInt bytes of the entries, one entry a full block, postings
//! entry: last row u32, bits of row deltas u8, bits of frequencies u8, [sum of frequencies u32,]
//!        code of the length u8, frequency u8 (255: that or more)
//! ```

use std::io;

use tantivy::directory::OwnedBytes;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;

use crate::index::OpenField;
use crate::mask::Window;
use crate::schema::Field;

/// Saturation of the term frequency (k1 of BM25); as in Anserini, a common baseline.
pub(super) const K1: f64 = 0.9;
/// Share of the length normalisation (b of BM25); as in Anserini.
pub(super) const B: f64 = 0.4;
/// Postings per full block.
const BLOCK_POSTINGS: u32 = 128;
/// Maximum length of a variable-length integer.
const LENGTH_BYTES_MAX: usize = 10;
/// BM25 constants with which the index library picks the best row of a block.
const THEIR_K1: f32 = 1.2;
const THEIR_B: f32 = 0.75;

/// Mean lengths of a field, as used by the index library when it wrote the blocks, and ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// Terms of the segment divided by all of its rows.
    pub theirs: f32,
    /// Terms of the scope divided by the rows that have the field.
    pub ours: f32,
}

/// The block entries of a term, read in ascending order.
#[derive(Clone)]
pub(super) struct Blocks {
    entries: OwnedBytes,
    entry_bytes: usize,
    count: usize,
    /// Whether postings follow the last full block.
    has_rest: bool,
    /// The first block that may extend into the next window.
    at: usize,
    /// The block last evaluated, and its ratio.
    known: (usize, f32),
}

impl Blocks {
    /// Opens the entries of a term; `None` if it has no full block.
    pub(super) fn open(
        open: &OpenField,
        field: Field,
        info: &TermInfo,
    ) -> io::Result<Option<Self>> {
        if info.doc_freq < BLOCK_POSTINGS {
            return Ok(None);
        }
        let place = &info.postings_range;
        let head = place.start..place.end.min(place.start + LENGTH_BYTES_MAX);
        let head = open.posting_bytes.read_bytes_slice(head)?;
        let entry_bytes = if field == Field::Words { 12 } else { 8 };
        let count = (info.doc_freq / BLOCK_POSTINGS) as usize;
        let Some((length_bytes, length)) = vint(&head) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if length != (count * entry_bytes) as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let start = place.start + length_bytes;
        let entries = open.posting_bytes.read_bytes_slice(start..start + count * entry_bytes)?;
        let has_rest = !info.doc_freq.is_multiple_of(BLOCK_POSTINGS);
        let known = (usize::MAX, 0.0);
        Ok(Some(Self { entries, entry_bytes, count, has_rest, at: 0, known }))
    }

    /// Upper bound of frequency / our norm over the rows of the window.
    pub(super) fn ratio_max(&mut self, window: &Window, means: Means) -> f32 {
        while self.at < self.count && self.last_row(self.at) < window.start() {
            self.at += 1;
        }
        let mut most = 0.0;
        for block in self.at..self.count {
            most = f32::max(most, self.ratio(block, means));
            if self.last_row(block) >= window.end() - 1 {
                return most;
            }
        }
        if self.has_rest { f32::INFINITY } else { most }
    }

    fn last_row(&self, block: usize) -> u32 {
        let entry = &self.entries[block * self.entry_bytes..];
        u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]])
    }

    fn ratio(&mut self, block: usize, means: Means) -> f32 {
        if self.known.0 != block {
            let entry = &self.entries[block * self.entry_bytes..][..self.entry_bytes];
            let (length, frequency) = (entry[self.entry_bytes - 2], entry[self.entry_bytes - 1]);
            self.known = (block, ratio_max(entry[5], length, frequency, means));
        }
        self.known.1
    }
}

/// Upper bound of frequency / our norm in a block with this bit width of frequencies, whose best
/// row by the library's norm has this length and frequency.
fn ratio_max(frequency_bits: u8, length: u8, frequency: u8, means: Means) -> f32 {
    if matches!(frequency, 0 | u8::MAX) || frequency_bits > 31 {
        return f32::INFINITY;
    }
    // Frequencies are stored minus one.
    let most = (1_u32 << frequency_bits) as f32;
    let length = FieldNormReader::id_to_fieldnorm(length) as f32;
    let their_norm = THEIR_K1 * (1.0 - THEIR_B + THEIR_B * length / means.theirs);
    let norm_of_one = their_norm / f32::from(frequency);
    let least_norm = THEIR_K1 * (1.0 - THEIR_B);
    let ratio = |frequency: f32| {
        let norm = f32::max(frequency * norm_of_one, least_norm);
        let length = (norm - least_norm) / (THEIR_K1 * THEIR_B) * means.theirs;
        frequency / (K1 as f32 * (1.0 - B as f32 + B as f32 * length / means.ours))
    };
    f32::max(ratio(most), ratio((least_norm / norm_of_one).clamp(1.0, most)))
}

/// Decodes a variable-length integer of the index library: seven bits per byte, least significant
/// first, with the high bit set in the last byte. Also returns its length.
fn vint(bytes: &[u8]) -> Option<(usize, u64)> {
    let end = bytes.iter().position(|byte| *byte >= 0x80)?;
    let number = bytes[..=end].iter().rev().try_fold(0_u64, |number, byte| {
        number.checked_mul(128)?.checked_add(u64::from(byte & 0x7F))
    });
    Some((end + 1, number?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn norm(length: u8, k1: f32, b: f32, mean: f32) -> f32 {
        k1 * (1.0 - b + b * FieldNormReader::id_to_fieldnorm(length) as f32 / mean)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Goal: no row exceeds the bound, for any rows of a block and any means.
        #[test]
        fn no_row_is_above_the_bound_of_its_block(
            rows in prop::collection::vec((1_u32..200, 0_u8..90), 1..128),
            theirs in 0.05_f32..500.0,
            ours in 1.0_f32..500.0,
        ) {
            let factor = |(frequency, length): &(u32, u8)| {
                let frequency = *frequency as f32;
                frequency / (frequency + norm(*length, THEIR_K1, THEIR_B, theirs))
            };
            let best = rows.iter().max_by(|a, b| factor(a).total_cmp(&factor(b))).unwrap();
            let bits = rows.iter().map(|row| 32 - (row.0 - 1).leading_zeros()).max().unwrap();
            let bound = ratio_max(bits as u8, best.1, best.0 as u8, Means { theirs, ours });
            for (frequency, length) in &rows {
                let ratio = *frequency as f32 / norm(*length, K1 as f32, B as f32, ours);
                prop_assert!(ratio <= bound * crate::score::SLACK, "{ratio} {bound}");
            }
            let is_single = rows.iter().all(|row| row.0 == 1);
            let shortest = rows.iter().map(|row| row.1).min().unwrap();
            let exact = 1.0 / norm(shortest, K1 as f32, B as f32, ours);
            prop_assert!(!is_single || bound <= exact * crate::score::SLACK);
        }

        #[test]
        fn numbers_read_back(number in any::<u64>()) {
            let digit = |at: u32| (number >> (7 * at).min(63)) as u8 & 0x7F;
            let mut bytes: Vec<u8> = (0..10).map(digit).collect();
            let end = (0..10).rev().find(|at| bytes[*at] != 0).unwrap_or(0);
            bytes.truncate(end + 1);
            bytes[end] |= 0x80;
            prop_assert!(end == 9 || vint(&bytes) == Some((end + 1, number)));
        }
    }
}
