//! One call of a kernel: the blocks to scan, the query, and the rows found.

use crate::Prefetcher;
use crate::one_bit::{BLOCK_ROWS, OneBitQuery, TILE, block_bytes};

/// A view of blocks of T0.
#[derive(Debug, Clone, Copy)]
pub struct OneBitRows<'a> {
    pub(super) width: usize,
    pub(super) blocks: &'a [u8],
}

/// The reference point of a run of blocks, relative to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Dot product of query and reference.
    pub dot: f32,
    /// Number of standard deviations that the bound allows, times the distance of query and
    /// reference.
    pub allowance: f32,
}

/// A row that may reach the requested score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MayReach {
    /// Position relative to the first block of the scan.
    pub position: u32,
    /// Estimate plus bound.
    pub upper: f32,
}

/// A kernel that scans one run of blocks.
pub(super) type Kernel = fn(&Task<'_>, &mut Vec<MayReach>);

/// Number of code bytes whose sums fit the 16-bit accumulators of kernels.
pub(super) const BYTES_MAX: usize = 256 * TILE;

const _: () = assert!(BYTES_MAX / TILE * u8::MAX as usize <= u16::MAX as usize);

/// Arguments of one kernel call.
pub(super) struct Task<'a> {
    pub rows: OneBitRows<'a>,
    pub query: &'a OneBitQuery,
    pub reference: Reference,
    pub threshold: f32,
    pub ahead: Prefetcher<'a>,
}

impl<'a> Task<'a> {
    /// Returns the number of cache lines of `ahead` to prefetch per tile of codes.
    pub fn lines_a_tile(&self) -> usize {
        self.ahead.lines_a_step(self.rows.len() * (self.rows.width / 8).div_ceil(TILE))
    }

    pub fn blocks(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let codes = self.rows.width / 8 * BLOCK_ROWS;
        let blocks = self.rows.blocks.chunks_exact(block_bytes(self.rows.width));
        blocks.map(move |block| block.split_at(codes))
    }
}
