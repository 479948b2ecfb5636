//! The vector sections of an open segment, and the blocks of them to verify before they are read.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use lodestone_compute::one_bit::BLOCK_ROWS;
use lodestone_compute::rotation::Rotation;
use lodestone_io::{BlockFile, IoError};
use lodestone_types::RowId;

/// A section in place, none of it verified.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) bytes: Bytes,
    pub(super) place: Range<usize>,
}

/// The vector sections.
#[derive(Debug)]
pub(super) struct VectorSections {
    pub(super) codes: Unverified,
    pub(super) factors: Unverified,
    pub(super) originals: Unverified,
    pub(super) norms: Unverified,
    pub(super) lists: Option<ListSections>,
    /// Set once every block was verified: searches then ask for none.
    pub(super) is_verified: OnceLock<()>,
}

#[derive(Debug)]
pub(super) struct ListSections {
    pub(super) lists: Unverified,
    /// Byte of `lists` at which the rows of the slots begin; what comes before is verified.
    pub(super) slots_at: usize,
    pub(super) one_bit: Unverified,
    pub(super) rotation: Rotation,
}

/// The blocks of the vector sections, to be verified before their bytes are read. Damage is
/// remembered by the file: a search goes on over it, and its caller asks [`Segment::check`] before
/// passing the result on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TierBlocks<'a> {
    pub(super) file: &'a BlockFile,
    pub(super) sections: &'a VectorSections,
    pub(super) rows: usize,
    pub(super) code_bytes: usize,
    pub(super) original_bytes: usize,
    pub(super) one_bit_bytes: usize,
}

impl TierBlocks<'_> {
    fn verify(&self, section: &Unverified, range: Range<usize>) -> Result<(), IoError> {
        let start = section.place.start;
        self.file.verify(start + range.start..start + range.end)
    }

    /// T1 of a row: its codes and both factors. Returns whether they are sound, as all below.
    #[inline]
    pub(super) fn codes_of(&self, row: RowId) -> bool {
        self.check_codes(row.0 as usize).is_ok()
    }

    #[inline]
    pub(super) fn check_codes(&self, row: usize) -> Result<(), IoError> {
        let VectorSections { codes, factors, .. } = self.sections;
        self.verify(codes, row * self.code_bytes..(row + 1) * self.code_bytes)?;
        self.verify(factors, row * 4..row * 4 + 4)?;
        self.verify(factors, (self.rows + row) * 4..(self.rows + row) * 4 + 4)
    }

    /// T1 of all rows.
    pub(super) fn all_codes(&self) -> bool {
        let VectorSections { codes, factors, .. } = self.sections;
        let both = [codes, factors];
        both.into_iter().all(|section| self.file.verify(section.place.clone()).is_ok())
    }

    /// The lengths of all rows.
    pub(super) fn all_norms(&self) -> bool {
        self.file.verify(self.sections.norms.place.clone()).is_ok()
    }

    /// T2 of a row.
    pub(super) fn original_of(&self, row: RowId) -> bool {
        self.check_original(row.0 as usize).is_ok()
    }

    pub(super) fn check_original(&self, row: usize) -> Result<(), IoError> {
        let VectorSections { originals, norms, .. } = self.sections;
        self.verify(originals, row * self.original_bytes..(row + 1) * self.original_bytes)?;
        let norm = row * 4..row * 4 + 4;
        if norms.place.is_empty() { Ok(()) } else { self.verify(norms, norm) }
    }

    /// T0 and the rows of a list: `blocks` blocks from `first`.
    pub(super) fn list(&self, first: usize, blocks: usize) -> bool {
        let Some(ListSections { lists, one_bit, slots_at, .. }) = &self.sections.lists else {
            return false;
        };
        let of = |bytes: usize| first * bytes..(first + blocks) * bytes;
        let Range { start, end } = of(BLOCK_ROWS * size_of::<u32>());
        self.verify(lists, slots_at + start..slots_at + end).is_ok()
            && self.verify(one_bit, of(self.one_bit_bytes)).is_ok()
    }
}
