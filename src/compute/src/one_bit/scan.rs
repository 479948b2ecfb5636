//! Scans blocks of T0 for rows that may reach a score.

use crate::one_bit::tables::TABLE;
use crate::one_bit::task::{Kernel, MayReach, OneBitRows, Reference, Task};
use crate::one_bit::{BLOCK_ROWS, OneBitQuery, block_bytes};
use crate::{Prefetcher, prefetch};

impl<'a> OneBitRows<'a> {
    /// Views blocks of rows of `width` rotated components; `None` if their length does not fit.
    pub fn new(width: usize, blocks: &'a [u8]) -> Option<Self> {
        blocks.len().is_multiple_of(block_bytes(width)).then_some(Self { width, blocks })
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len() / block_bytes(self.width)
    }

    /// Returns the number of bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the blocks as bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.blocks
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Prefetches all blocks.
    pub fn prefetch(&self) {
        prefetch(self.blocks);
    }

    /// Returns a run of `count` blocks from `first` on.
    pub fn run(&self, first: usize, count: usize) -> Self {
        let bytes = block_bytes(self.width);
        Self { width: self.width, blocks: &self.blocks[first * bytes..(first + count) * bytes] }
    }

    /// Appends to `found` the rows whose upper bound is at least `threshold`, prefetching `ahead`
    /// meanwhile.
    pub fn scan(
        &self,
        query: &OneBitQuery,
        reference: Reference,
        threshold: f32,
        ahead: &[u8],
        found: &mut Vec<MayReach>,
    ) {
        let task = Task { rows: *self, query, reference, threshold, ahead: Prefetcher::new(ahead) };
        let (_, kernel) = kernels().next().expect("plain code runs everywhere");
        kernel(&task, found);
    }
}

/// Returns the kernels that this processor can run, the widest first and plain code last.
pub(super) fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    #[cfg(target_arch = "aarch64")]
    let native = super::neon::kernels();
    #[cfg(target_arch = "x86_64")]
    let native = super::x86::kernels();
    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    let native = std::iter::empty();
    let plain: Kernel = scan_plain;
    native.chain([("plain", plain)])
}

/// Scans in plain code on any machine; also the reference that the kernels are tested against.
pub(super) fn scan_plain(task: &Task<'_>, found: &mut Vec<MayReach>) {
    let Task { query, reference, threshold, .. } = task;
    for (number, (codes, factors)) in task.blocks().enumerate() {
        let mut sums = [0_u32; BLOCK_ROWS];
        let tables = query.tables().chunks_exact(2 * TABLE);
        for (bytes, tables) in codes.chunks_exact(BLOCK_ROWS).zip(tables) {
            for (sum, byte) in sums.iter_mut().zip(bytes) {
                let (low, high) = (usize::from(byte & 15), usize::from(byte >> 4));
                *sum += u32::from(tables[low]) + u32::from(tables[TABLE + high]);
            }
        }
        let factor = |column: usize, row: usize| {
            let at = (column * BLOCK_ROWS + row) * 4;
            f32::from_le_bytes(factors[at..at + 4].try_into().expect("four bytes"))
        };
        for (row, sum) in sums.iter().enumerate() {
            let signs = (*sum as f32).mul_add(query.step(), query.bias());
            let estimate = signs.mul_add(factor(0, row), factor(1, row) + reference.dot);
            let upper = factor(2, row).mul_add(reference.allowance, estimate);
            if upper >= *threshold {
                found.push(MayReach { position: (number * BLOCK_ROWS + row) as u32, upper });
            }
        }
    }
}
