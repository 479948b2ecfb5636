//! Dot products of many rows of codes with many vectors of codes, exact in integers.
//!
//! One row and one query are bound by memory; many rows and many queries are bound by the
//! multipliers, if the loop keeps its sums in registers (Goto and van de Geijn 2008).
//!
//! ```text
//! fixed side (queries, centroids), packed once     streaming side (rows), read in place
//!   panel = 16 vectors: for each 4 components        strip = 6 rows
//!           16 x 4 bytes, code + 128                 sums  = 6 rows x 4 panels in registers
//! ```
//! With AVX-512 VNNI a step multiplies unsigned by signed bytes. Adding 128 makes the fixed side
//! unsigned; the sum of each row's codes corrects for it. On other machines every pair goes through
//! simsimd: the results are equal, but take longer.

use simsimd::SpatialSimilarity;

/// Vectors per panel.
const PANEL: usize = 16;
/// Panels whose sums are held in registers together.
const PANELS: usize = 4;
/// Vectors of the fixed side that one inner loop covers.
pub const TILE: usize = PANEL * PANELS;
/// Rows whose sums are held in registers together.
pub const STRIP: usize = 6;
/// Components that one instruction multiplies.
const STEP: usize = 4;

/// Vectors of codes, packed for products with many rows.
#[derive(Debug)]
pub struct PackedCodes {
    stride: usize,
    count: usize,
    /// The codes as given, `count * stride`.
    plain: Vec<i8>,
    /// Panels, padded with zero vectors to whole tiles; empty if the machine has no kernel.
    panels: Vec<u8>,
}

impl PackedCodes {
    /// Packs vectors of `stride` codes each; `stride` is a multiple of 64.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn new(codes: Vec<i8>, stride: usize) -> Self {
        assert!(stride.is_multiple_of(64) && codes.len().is_multiple_of(stride));
        let count = codes.len() / stride;
        let mut panels = Vec::new();
        if has_kernel() {
            panels = vec![128; count.next_multiple_of(TILE) * stride];
            for (vector, codes) in codes.chunks_exact(stride).enumerate() {
                let panel = &mut panels[vector / PANEL * PANEL * stride..][..PANEL * stride];
                for (step, group) in codes.as_chunks::<STEP>().0.iter().enumerate() {
                    let place = (step * PANEL + vector % PANEL) * STEP;
                    for (to, from) in panel[place..place + STEP].iter_mut().zip(group) {
                        *to = from.cast_unsigned() ^ 0x80;
                    }
                }
            }
        }
        Self { stride, count, plain: codes, panels }
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the machine has a kernel, with which products cost a tenth of individual ones.
    pub fn is_quick(&self) -> bool {
        !self.panels.is_empty()
    }

    /// Returns a bit mask of the products of a tile that reach their threshold, after each is
    /// multiplied by its factor and `slope`, and `base` is added.
    pub fn reaching(
        &self,
        dots: &[i32; TILE],
        factors: &[f32; TILE],
        thresholds: &[f32; TILE],
        (slope, base): (f32, f32),
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.is_quick() {
            // SAFETY: panels exist only where `has_kernel` found the features.
            #[allow(unsafe_code)]
            return unsafe { x86::reaching(dots, factors, thresholds, slope, base) };
        }
        let each = dots.iter().zip(factors).zip(thresholds);
        each.rev().fold(0, |bits, ((dot, factor), threshold)| {
            bits << 1 | u64::from(*dot as f32 * factor * slope + base >= *threshold)
        })
    }

    /// Returns the codes of all vectors, as given.
    pub fn all_codes(&self) -> &[i8] {
        &self.plain
    }

    /// Returns the codes of one vector.
    pub fn codes(&self, vector: usize) -> &[i8] {
        &self.plain[vector * self.stride..][..self.stride]
    }

    /// Calls `take(row, first, dots)` for every row of the strip and every tile of this side:
    /// `dots[i]` is the product with vector `first + i`. `rows` are at most [`STRIP`] rows of
    /// codes.
    pub fn multiply(&self, rows: &[&[i8]], mut take: impl FnMut(usize, usize, &[i32])) {
        assert!(rows.len() <= STRIP && rows.iter().all(|row| row.len() == self.stride));
        #[cfg(target_arch = "x86_64")]
        if !self.panels.is_empty() {
            let strip: [&[i8]; STRIP] = std::array::from_fn(|at| rows[at.min(rows.len() - 1)]);
            let mut sums = [[0; TILE]; STRIP];
            for (tile, panels) in self.panels.chunks_exact(TILE * self.stride).enumerate() {
                // SAFETY: panels exist only where `has_kernel` found the features.
                #[allow(unsafe_code)]
                unsafe {
                    x86::strip_times_tile(&strip, panels, &mut sums);
                }
                let first = tile * TILE;
                let width = TILE.min(self.count - first);
                for (row, sums) in sums.iter().enumerate().take(rows.len()) {
                    take(row, first, &sums[..width]);
                }
            }
            return;
        }
        let mut dots = [0; TILE];
        for (row, codes) in rows.iter().enumerate() {
            for first in (0..self.count).step_by(TILE) {
                let width = TILE.min(self.count - first);
                for (at, dot) in dots[..width].iter_mut().enumerate() {
                    let product = i8::dot(codes, self.codes(first + at));
                    *dot = product.expect("both sides have the same stride") as i32;
                }
                take(row, first, &dots[..width]);
            }
        }
    }
}

/// Whether the processor has the instructions of the tile kernel.
fn has_kernel() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PANEL, PANELS, STEP, STRIP, TILE};
    use std::arch::x86_64::*;

    /// Returns a bit mask of the scores that reach their threshold.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn reaching(
        dots: &[i32; TILE],
        factors: &[f32; TILE],
        thresholds: &[f32; TILE],
        slope: f32,
        base: f32,
    ) -> u64 {
        let (slope, base) = (_mm512_set1_ps(slope), _mm512_set1_ps(base));
        let (dots, factors) = (dots.as_chunks::<PANEL>().0, factors.as_chunks::<PANEL>().0);
        let parts = dots.iter().zip(factors).zip(thresholds.as_chunks::<PANEL>().0);
        let mut bits = 0;
        for (part, ((dots, factors), thresholds)) in parts.enumerate() {
            let dots = _mm512_cvtepi32_ps(bytemuck::must_cast(*dots));
            let factors: __m512 = bytemuck::must_cast(*factors);
            let scores = _mm512_fmadd_ps(_mm512_mul_ps(dots, factors), slope, base);
            let thresholds: __m512 = bytemuck::must_cast(*thresholds);
            let reaching = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(scores, thresholds);
            bits |= u64::from(reaching) << (part * PANEL);
        }
        bits
    }

    /// Sets `sums[r][i]` to the product of strip row r and vector i of the tile.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn strip_times_tile(
        strip: &[&[i8]; STRIP],
        panels: &[u8],
        sums: &mut [[i32; TILE]; STRIP],
    ) {
        let stride = strip[0].len();
        let mut tile = [[_mm512_setzero_si512(); PANELS]; STRIP];
        let mut row_sums = [_mm512_setzero_si512(); STRIP];
        let ones = _mm512_set1_epi8(1);
        for (sum, row) in row_sums.iter_mut().zip(strip) {
            for codes in row.as_chunks::<64>().0 {
                *sum = _mm512_dpbusd_epi32(*sum, ones, bytemuck::must_cast(*codes));
            }
        }
        let (a, rest) = panels.split_at(PANEL * stride);
        let (b, rest) = rest.split_at(PANEL * stride);
        let (c, d) = rest.split_at(PANEL * stride);
        let panel_steps = a
            .as_chunks::<64>()
            .0
            .iter()
            .zip(b.as_chunks::<64>().0)
            .zip(c.as_chunks::<64>().0.iter().zip(d.as_chunks::<64>().0));
        let [r0, r1, r2, r3, r4, r5] = strip.map(|row| row.as_chunks::<STEP>().0);
        let rows = r0.iter().zip(r1).zip(r2.iter().zip(r3)).zip(r4.iter().zip(r5));
        for (((a, b), (c, d)), (((r0, r1), (r2, r3)), (r4, r5))) in panel_steps.zip(rows) {
            let panels: [__m512i; PANELS] = [
                bytemuck::must_cast(*a),
                bytemuck::must_cast(*b),
                bytemuck::must_cast(*c),
                bytemuck::must_cast(*d),
            ];
            for (sums, codes) in tile.iter_mut().zip([r0, r1, r2, r3, r4, r5]) {
                let codes = _mm512_set1_epi32(i32::from_ne_bytes(codes.map(i8::cast_unsigned)));
                for (sum, panel) in sums.iter_mut().zip(panels) {
                    *sum = _mm512_dpbusd_epi32(*sum, panel, codes);
                }
            }
        }
        for ((tile, row_sum), sums) in tile.iter().zip(row_sums).zip(sums) {
            let offset = _mm512_set1_epi32(128 * _mm512_reduce_add_epi32(row_sum));
            for (part, sums) in tile.iter().zip(sums.as_chunks_mut::<PANEL>().0) {
                *sums = bytemuck::must_cast(_mm512_sub_epi32(*part, offset));
            }
        }
    }
}
