//! The scan in NEON.
//!
//! Entries are added up in 8 bits, then in 16, and flushed to 32 before those can overflow. The
//! bound is computed by the operations of plain code in their order, fused where those are, so that
//! every bit agrees. A row exactly at the threshold is found; one whose bound is NaN is not.

use std::arch::aarch64::*;

use crate::one_bit::tables::TABLE;
use crate::one_bit::task::{BYTES_MAX, Kernel, MayReach, Task};
use crate::one_bit::{BLOCK_ROWS, TILE};

/// Rows whose codes fill a register.
const CODES: usize = 16;
/// Rows whose 16-bit sums fill a register.
const NARROW: usize = 8;
/// Rows whose 32-bit sums and factors fill a register.
const WIDE: usize = 4;

const _: () = assert!(cfg!(target_feature = "neon"), "the kernel is not chosen at run time");

/// Returns the kernels that this processor can run. NEON is part of the baseline of 64-bit ARM.
pub(super) fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    let neon: Kernel = |task, found| {
        // SAFETY: this file compiles only if the whole program is built for NEON.
        #[allow(unsafe_code)]
        unsafe {
            scan_neon(task, found)
        }
    };
    std::iter::once(("neon", neon))
}

#[target_feature(enable = "neon")]
fn scan_neon(task: &Task<'_>, found: &mut Vec<MayReach>) {
    for (number, (codes, factors)) in task.blocks().enumerate() {
        let sums = block_sums(task.query.tables(), codes);
        for (part, sums) in sums.into_iter().enumerate() {
            let row = part * WIDE;
            let upper = upper_bounds(task, sums, factors, row);
            if vmaxvq_u32(vcgeq_f32(upper, vdupq_n_f32(task.threshold))) == 0 {
                continue;
            }
            let uppers: [f32; WIDE] = bytemuck::must_cast(upper);
            for (lane, upper) in uppers.into_iter().enumerate() {
                if upper >= task.threshold {
                    found.push(MayReach {
                        position: (number * BLOCK_ROWS + row + lane) as u32,
                        upper,
                    });
                }
            }
        }
    }
}

/// Computes the sums of the table entries of 64 rows, in order.
#[target_feature(enable = "neon")]
fn block_sums(tables: &[u8], codes: &[u8]) -> [uint32x4_t; BLOCK_ROWS / WIDE] {
    let (tables, _) = tables.as_chunks::<{ 2 * TABLE }>();
    let (codes, _) = codes.as_chunks::<BLOCK_ROWS>();
    let nibble = vdupq_n_u8(15);
    let mut wide = [vdupq_n_u32(0); BLOCK_ROWS / WIDE];
    for (codes, tables) in codes.chunks(BYTES_MAX).zip(tables.chunks(BYTES_MAX)) {
        let mut narrow = [vdupq_n_u16(0); BLOCK_ROWS / NARROW];
        for (tile, tables) in codes.chunks(TILE).zip(tables.chunks(TILE)) {
            for (part, sums) in narrow.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let mut sum = vdupq_n_u8(0);
                for (bytes, tables) in tile.iter().zip(tables) {
                    let [first, second]: [uint8x16_t; 2] = bytemuck::must_cast(*tables);
                    let bytes: &[[u8; CODES]; BLOCK_ROWS / CODES] = bytemuck::must_cast_ref(bytes);
                    let bytes = bytemuck::must_cast(bytes[part]);
                    let first = vqtbl1q_u8(first, vandq_u8(bytes, nibble));
                    let second = vqtbl1q_u8(second, vshrq_n_u8::<4>(bytes));
                    sum = vaddq_u8(sum, vaddq_u8(first, second));
                }
                sums[0] = vaddw_u8(sums[0], vget_low_u8(sum));
                sums[1] = vaddw_high_u8(sums[1], sum);
            }
        }
        for (sums, narrow) in wide.as_chunks_mut::<2>().0.iter_mut().zip(narrow) {
            sums[0] = vaddw_u16(sums[0], vget_low_u16(narrow));
            sums[1] = vaddw_high_u16(sums[1], narrow);
        }
    }
    wide
}

/// Computes the upper bounds of four rows from their sums.
#[target_feature(enable = "neon")]
fn upper_bounds(task: &Task<'_>, sums: uint32x4_t, factors: &[u8], row: usize) -> float32x4_t {
    let query = task.query;
    let column = |column: usize| -> float32x4_t {
        let at = (column * BLOCK_ROWS + row) * 4;
        bytemuck::pod_read_unaligned(&factors[at..at + 16])
    };
    let step = vdupq_n_f32(query.step());
    let bias = vdupq_n_f32(query.bias());
    let signs = vfmaq_f32(bias, vcvtq_f32_u32(sums), step);
    let offset = vaddq_f32(column(1), vdupq_n_f32(task.reference.dot));
    let estimate = vfmaq_f32(offset, signs, column(0));
    vfmaq_f32(estimate, column(2), vdupq_n_f32(task.reference.allowance))
}
