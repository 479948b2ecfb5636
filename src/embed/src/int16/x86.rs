//! The inner loops in AVX-512 with VNNI.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::int16::LANES;
use crate::int16::panel::{PANEL, Panel, PanelStep, REGISTERS, STRIP, TAIL};
use crate::int16::quantize::Codes;

/// Multiplies `codes` by `panels`, which have `width` outputs in total, and adds the bias. The
/// results replace `output`, (tokens, outputs), or are added to it if `adds`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn multiply<'p>(
    (panels, width): (impl Iterator<Item = Panel<'p>>, usize),
    codes: &Codes,
    output: &mut [f32],
    adds: bool,
) {
    let whole = codes.steps().len() / STRIP * STRIP;
    let (strips, tail) = codes.codes().split_at(whole * codes.stride());
    let (steps, tail_steps) = codes.steps().split_at(whole);
    let (rows, tail_rows) = output.split_at_mut(whole * width);
    for (number, panel) in panels.enumerate() {
        let at = number * PANEL;
        strips_times_panel::<STRIP>(strips, steps, &panel, rows, (at, width), adds);
        strips_times_panel::<TAIL>(tail, tail_steps, &panel, tail_rows, (at, width), adds);
    }
}

/// Multiplies all strips by one panel; the results go to column `at` of rows of `width` values.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strips_times_panel<const ROWS: usize>(
    codes: &[i16],
    steps: &[f32],
    panel: &Panel,
    output: &mut [f32],
    (at, width): (usize, usize),
    adds: bool,
) {
    let column_steps: [__m512; REGISTERS] = bytemuck::must_cast(*panel.steps);
    let bias: [__m512; REGISTERS] = bytemuck::must_cast(*panel.bias);
    let strips = codes.chunks_exact(ROWS * panel.codes.len() * 2).zip(steps.chunks(ROWS));
    for ((strip, steps), rows) in strips.zip(output.chunks_mut(ROWS * width)) {
        strip_times_panel::<ROWS>(strip, panel.codes, |number, sums| {
            // The last strip may have codes of more rows than there are.
            let Some(step) = steps.get(number) else { return };
            let row = rows[number * width + at..].first_chunk_mut().expect("whole panels");
            let row: &mut [f32; PANEL] = row;
            let step = _mm512_set1_ps(*step);
            let mut results = bias;
            if adds {
                let before: [__m512; REGISTERS] = bytemuck::must_cast(*row);
                for (result, before) in results.iter_mut().zip(before) {
                    *result = _mm512_add_ps(*result, before);
                }
            }
            for ((result, sum), column_step) in results.iter_mut().zip(sums).zip(column_steps) {
                let step = _mm512_mul_ps(step, column_step);
                *result = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), step, *result);
            }
            *row = bytemuck::must_cast(results);
        });
    }
}

/// Multiplies a strip by one panel and passes the sums to `put`, row by row.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn strip_times_panel<const ROWS: usize>(
    strip: &[i16],
    panel: &[PanelStep],
    mut put: impl FnMut(usize, [__m512i; REGISTERS]),
) {
    let steps = panel.len();
    assert_eq!(strip.len(), ROWS * steps * 2, "the caller cuts whole strips");
    let mut rows: [&[[i16; 2]]; ROWS] = [&[]; ROWS];
    for (row, pairs) in rows.iter_mut().zip(strip.as_chunks().0.chunks_exact(steps)) {
        *row = pairs;
    }
    let mut sums = [[_mm512_setzero_si512(); REGISTERS]; ROWS];
    for (at, weights) in panel.iter().enumerate() {
        let weights: [__m512i; REGISTERS] = bytemuck::must_cast(weights.0);
        for (pairs, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: `at` is below `steps`, and the assertion above ensures that the strip has
            // ROWS rows of `steps` pairs.
            #[allow(unsafe_code)]
            let pair = unsafe { *pairs.get_unchecked(at) };
            let pair = _mm512_set1_epi32(bytemuck::must_cast(pair));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = multiply_add(*sum, pair, weights);
            }
        }
    }
    // By reference: an iterator over the array itself would copy the whole of it twice.
    for (row, sums) in sums.iter().enumerate() {
        put(row, *sums);
    }
}

/// Adds two products each to `sum`. Inline assembly, because the compiler splits this intrinsic
/// into two instructions if it considers that faster, which costs a third of the throughput here.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
fn multiply_add(mut sum: __m512i, pairs: __m512i, weights: __m512i) -> __m512i {
    // SAFETY: the instruction only touches registers, and `target_feature` guarantees its presence.
    #[allow(unsafe_code)]
    unsafe {
        asm!(
            "vpdpwssd {sum}, {pairs}, {weights}",
            sum = inout(zmm_reg) sum,
            pairs = in(zmm_reg) pairs,
            weights = in(zmm_reg) weights,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// Replaces each value of `row`, which is whole registers, by its GELU in exact form, x * Phi(x).
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn activate(row: &mut [f32]) {
    let (registers, rest) = row.as_chunks_mut::<LANES>();
    assert!(rest.is_empty(), "layers are whole panels");
    for x in registers {
        *x = bytemuck::must_cast(gelu(bytemuck::must_cast(*x)));
    }
}

/// x * Phi(x) by the rational function of `elementwise`. One Newton step refines an approximate
/// reciprocal, in place of a division, which would take longer than everything else here.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn gelu(x: __m512) -> __m512 {
    let bound = _mm512_set1_ps(4.0);
    let argument = _mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::FRAC_1_SQRT_2));
    // The second operand is returned if the first is NaN.
    let t =
        _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), bound), _mm512_min_ps(bound, argument));
    let s = _mm512_mul_ps(t, t);
    let mut p = _mm512_set1_ps(-2.726_142_3e-10);
    for coefficient in [
        2.770_681_3e-8, -2.101_024e-6, -5.692_506_5e-5, -7.349_906_4e-4, -2.954_6e-3,
        -1.609_603_3e-2,
    ] {
        p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(coefficient));
    }
    let mut q = _mm512_set1_ps(-1.456_607_2e-5);
    for coefficient in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329_3e-3, -1.426_474e-2] {
        q = _mm512_fmadd_ps(q, s, _mm512_set1_ps(coefficient));
    }
    let rough = _mm512_rcp14_ps(q);
    let inverse = _mm512_mul_ps(rough, _mm512_fnmadd_ps(q, rough, _mm512_set1_ps(2.0)));
    let erf = _mm512_mul_ps(_mm512_mul_ps(t, p), inverse);
    let half = _mm512_mul_ps(x, _mm512_set1_ps(0.5));
    _mm512_fmadd_ps(half, erf, half)
}
