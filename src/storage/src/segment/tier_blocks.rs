//! The vector sections of an open segment and the lazy verification of their blocks.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use lodestone_compute::one_bit::BLOCK_ROWS;
use lodestone_compute::rotation::Rotation;
use lodestone_io::{BlockFile, IoError};
use lodestone_types::RowId;

/// A section in place, none of it verified yet.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) bytes: Bytes,
    pub(super) place: Range<usize>,
}

/// The vector sections of a segment.
#[derive(Debug)]
pub(super) struct VectorSections {
    pub(super) codes: Unverified,
    pub(super) factors: Unverified,
    pub(super) originals: Unverified,
    pub(super) norms: Unverified,
    pub(super) lists: Option<ListSections>,
    /// Set once every block is verified; searches then skip verification.
    pub(super) is_verified: OnceLock<()>,
}

#[derive(Debug)]
pub(super) struct ListSections {
    pub(super) lists: Unverified,
    /// Byte of `lists` at which the rows of the slots begin; everything before it is already
    /// verified.
    pub(super) slots_at: usize,
    pub(super) one_bit: Unverified,
    pub(super) rotation: Rotation,
}

/// Verifies blocks of the vector sections before their bytes are read. The file remembers damage: a
/// search continues past it, and its caller calls [`Segment::check`] before passing the result on.
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

    /// Verifies T1 of a row: its codes and both factors. Like the methods below it returns whether
    /// the bytes are intact.
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

    /// Verifies T1 of all rows.
    pub(super) fn all_codes(&self) -> bool {
        let VectorSections { codes, factors, .. } = self.sections;
        let both = [codes, factors];
        both.into_iter().all(|section| self.file.verify(section.place.clone()).is_ok())
    }

    /// Verifies the norms of all rows.
    pub(super) fn all_norms(&self) -> bool {
        self.file.verify(self.sections.norms.place.clone()).is_ok()
    }

    /// Verifies T2 of a row.
    pub(super) fn original_of(&self, row: RowId) -> bool {
        self.check_original(row.0 as usize).is_ok()
    }

    pub(super) fn check_original(&self, row: usize) -> Result<(), IoError> {
        let VectorSections { originals, norms, .. } = self.sections;
        self.verify(originals, row * self.original_bytes..(row + 1) * self.original_bytes)?;
        let norm = row * 4..row * 4 + 4;
        if norms.place.is_empty() { Ok(()) } else { self.verify(norms, norm) }
    }

    /// Verifies T0 and the slots of a list that occupies `blocks` blocks from block `first`.
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
