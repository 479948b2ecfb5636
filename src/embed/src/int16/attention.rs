//! Attention of one head over one passage. Both products run in 16-bit integers on the inner loop
//! of the dense layers, the softmax between them in f32.
//!
//! ```text
//! queries  one common step                           -> strips of codes
//! keys     one common step                           -> panels: 32 keys, 2 components per step
//! scores   queries x keys, exact in i32; powers of 2 of (score - largest) in f32
//! weights  powers, with as many codes as sums allow  -> strips of codes
//! values   one step per component                    -> panels: 32 components, 2 keys per step
//! ```

use std::arch::x86_64::*;
use std::ops::Range;

use crate::int16::LANES;
use crate::int16::panel::{PANEL, PanelStep, REGISTERS, STRIP, TAIL};
use crate::int16::x86::strip_times_panel;

/// The largest code of a value. It allows the codes of a query's weights a sum of 2^19; with 16
/// bits on both sides, weights over some hundred keys would be left with 8 bits.
const VALUE_MAX: f32 = 4095.0;
/// Maximum sum of the codes of one query's weights.
const WEIGHT_SUM_MAX: f32 = (i32::MAX / 4095) as f32;
/// Query, key and value in each row.
const PARTS: usize = 3;

/// Scratch memory of attention over one passage.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// (queries padded to whole strips, head).
    queries: Vec<i16>,
    keys: Vec<PanelStep>,
    values: Vec<PanelStep>,
    /// Value of one code step, per component of a value.
    value_steps: Vec<[f32; PANEL]>,
    /// (queries of a strip, keys padded to whole panels): scores, later the bits of powers.
    scores: Vec<[i32; LANES]>,
    /// (queries of a strip, keys padded to whole registers).
    weights: Vec<[i16; LANES]>,
}

/// Parameters that all strips of a passage share.
#[derive(Debug, Clone, Copy)]
struct PassageShape {
    /// Number of keys.
    count: usize,
    head: usize,
    /// Number of keys on either side that a query attends to.
    reach: usize,
    /// Exponent of 2 per unit of an integer score.
    exponent: f32,
}

/// Computes attention. `rows`, (tokens, 3, head), holds queries, already divided by the square root
/// of `head`, keys and values. Writes the results to the columns of `context` from `at` on, whose
/// rows have `hidden` values. With a `reach`, a token attends only to tokens at most that far away.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn attend(
    rows: &[f32],
    (head, reach): (usize, Option<usize>),
    context: &mut [f32],
    (at, hidden): (usize, usize),
    scratch: &mut Attention,
) {
    let count = rows.len() / (PARTS * head);
    // A score is a sum of `head` products: this is the largest code for which it fits i32.
    let limit = (f64::from(i32::MAX) / head as f64).sqrt().min(f64::from(i16::MAX)).floor() as f32;
    let [query_largest, key_largest] = [0, 1].map(|part| largest(rows, head, part));
    let Attention { queries, keys, values, value_steps, .. } = scratch;
    take_queries(rows, head, inverse(limit, query_largest), queries);
    take_keys(rows, head, inverse(limit, key_largest), keys);
    take_values(rows, head, values, value_steps);
    let exponent = query_largest / limit * (key_largest / limit) * std::f32::consts::LOG2_E;
    let passage = PassageShape { count, head, reach: reach.unwrap_or(count), exponent };
    let whole = count / STRIP * STRIP;
    for (number, rows) in context[..whole * hidden].chunks_mut(STRIP * hidden).enumerate() {
        strip::<STRIP>(&passage, number * STRIP, scratch, rows, (at, hidden));
    }
    for (number, rows) in context[whole * hidden..].chunks_mut(TAIL * hidden).enumerate() {
        strip::<TAIL>(&passage, whole + number * TAIL, scratch, rows, (at, hidden));
    }
}

/// Computes scores, weights and mixed values of the queries from `first` on, over the panels of
/// keys that at least one of them attends to.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strip<const ROWS: usize>(
    passage: &PassageShape,
    first: usize,
    scratch: &mut Attention,
    context: &mut [f32],
    (at, hidden): (usize, usize),
) {
    let PassageShape { count, head, reach, exponent } = *passage;
    let Attention { queries, keys, values, value_steps, scores, weights } = scratch;
    let from = first.saturating_sub(reach) / PANEL * PANEL;
    let seen = (first + ROWS + reach).min(count) - from;
    let row_scores = seen.div_ceil(PANEL) * REGISTERS;
    let row_weights = seen.div_ceil(LANES);
    scores.resize(ROWS * row_scores, [0; LANES]);
    weights.resize(ROWS * row_weights, [0; LANES]);
    let queries = &queries[first * head..(first + ROWS) * head];
    let keys = &keys[from / PANEL * head / 2..][..seen.div_ceil(PANEL) * head / 2];
    for (number, panel) in keys.chunks_exact(head / 2).enumerate() {
        strip_times_panel::<ROWS>(queries, panel, |row, sums| {
            let row = &mut scores[row * row_scores + number * REGISTERS..];
            let row: &mut [_; REGISTERS] = row.first_chunk_mut().expect("whole panels");
            *row = bytemuck::must_cast(sums);
        });
    }
    // The last strip may have more rows than there are queries.
    let mut steps = [0.0; ROWS];
    let steps = &mut steps[..context.len() / hidden];
    let rows = scores.chunks_exact_mut(row_scores).zip(weights.chunks_exact_mut(row_weights));
    for (query, ((scores, weights), step)) in (first..).zip(rows.zip(&mut *steps)) {
        let within =
            query.saturating_sub(reach).max(from) - from..(query + reach + 1).min(count) - from;
        *step = softmax(&mut scores[..row_weights], within, exponent, weights);
    }
    let weights = weights.as_flattened();
    for (number, panel) in values.chunks_exact(count.div_ceil(LANES) * LANES / 2).enumerate() {
        let panel = &panel[from / 2..][..row_weights * LANES / 2];
        let value_steps: [__m512; REGISTERS] = bytemuck::must_cast(value_steps[number]);
        strip_times_panel::<ROWS>(weights, panel, |row, sums| {
            let Some(step) = steps.get(row) else { return };
            let mut mixed = value_steps;
            for (mixed, sum) in mixed.iter_mut().zip(sums) {
                let step = _mm512_mul_ps(*mixed, _mm512_set1_ps(*step));
                *mixed = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), step);
            }
            let row = &mut context[row * hidden + at + number * PANEL..];
            let row: &mut [f32; PANEL] = row.first_chunk_mut().expect("whole panels");
            *row = bytemuck::must_cast(mixed);
        });
    }
}

/// Converts one query's scores to codes of its weights over the keys `within`, with zeros around
/// them. Returns the value of one code step. Leaves the powers in `scores`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn softmax(
    scores: &mut [[i32; LANES]],
    within: Range<usize>,
    exponent: f32,
    weights: &mut [[i16; LANES]],
) -> f32 {
    let registers = within.start / LANES..within.end.div_ceil(LANES);
    weights[..registers.start].fill([0; LANES]);
    weights[registers.end..].fill([0; LANES]);
    let in_first: __mmask16 = u16::MAX << (within.start % LANES);
    let in_last: __mmask16 = u16::MAX >> (registers.end * LANES - within.end);
    let (scores, weights) = (&mut scores[registers.clone()], &mut weights[registers]);
    let (last, others) = scores.split_last_mut().expect("a token sees itself");
    let in_last = if others.is_empty() { in_first & in_last } else { in_last };
    let is_seen = |at: usize| if at == 0 { in_first } else { u16::MAX };
    let lowest = _mm512_set1_epi32(i32::MIN);
    let mut top = _mm512_mask_mov_epi32(lowest, in_last, bytemuck::must_cast(*last));
    for (at, scores) in others.iter().enumerate() {
        top = _mm512_mask_max_epi32(top, is_seen(at), top, bytemuck::must_cast(*scores));
    }
    let factor = _mm512_set1_ps(exponent);
    // Subtracted before the multiplication, because its rounding error could exceed any exponent.
    let top = _mm512_cvtepi32_ps(_mm512_set1_epi32(_mm512_reduce_max_epi32(top)));
    let power = |scores: [i32; LANES]| {
        let below = _mm512_sub_ps(_mm512_cvtepi32_ps(bytemuck::must_cast(scores)), top);
        power_of_2(_mm512_mul_ps(below, factor))
    };
    let mut total = _mm512_maskz_mov_ps(in_last, power(*last));
    *last = bytemuck::must_cast(total);
    for (at, scores) in others.iter_mut().enumerate() {
        let power = _mm512_maskz_mov_ps(is_seen(at), power(*scores));
        total = _mm512_add_ps(total, power);
        *scores = bytemuck::must_cast(power);
    }
    let total = _mm512_reduce_add_ps(total);
    // Rounding may add half a code per key.
    let scale = ((WEIGHT_SUM_MAX - within.len() as f32) / total).min(f32::from(i16::MAX));
    for (codes, power) in weights.iter_mut().zip(scores) {
        let scaled = _mm512_mul_ps(bytemuck::must_cast(*power), _mm512_set1_ps(scale));
        *codes = bytemuck::must_cast(_mm512_cvtepi32_epi16(_mm512_cvtps_epi32(scaled)));
    }
    1.0 / (scale * total)
}

/// 2^x for x of at most 0: x = n + r with |r| at most 1/2, 2^r by the minimax polynomial of its
/// degree. The relative error is at most 3e-6, a tenth of half a code of the largest weight. Below
/// -126 the result stays at the smallest normal number.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn power_of_2(x: __m512) -> __m512 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    // The second operand is returned if one is NaN.
    let x = _mm512_max_ps(_mm512_set1_ps(-126.0), x);
    let n = _mm512_roundscale_ps::<NEAREST>(x);
    let r = _mm512_sub_ps(x, n);
    let mut p = _mm512_set1_ps(9.570_101e-3);
    for coefficient in [5.591_786e-2, 2.402_474_4e-1, 6.931_218e-1, 9.999_993e-1] {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(coefficient));
    }
    _mm512_scalef_ps(p, n)
}

/// Returns the factor from a value to its code; 0 if all values are too small for a reciprocal.
fn inverse(limit: f32, largest: f32) -> f32 {
    if largest < f32::MIN_POSITIVE { 0.0 } else { limit / largest }
}

/// Returns the bits of the absolute values, which sort like the values, with NaN at the top.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
fn magnitudes(numbers: &[f32; LANES]) -> __m512i {
    _mm512_and_si512(bytemuck::must_cast(*numbers), _mm512_set1_epi32(0x7fff_ffff))
}

/// Returns the largest absolute value of one part of all rows; NaN if there is one.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn largest(rows: &[f32], head: usize, part: usize) -> f32 {
    let mut top = _mm512_setzero_si512();
    for row in rows.chunks_exact(PARTS * head) {
        for numbers in row[part * head..(part + 1) * head].as_chunks::<LANES>().0 {
            top = _mm512_max_epu32(top, magnitudes(numbers));
        }
    }
    f32::from_bits(_mm512_reduce_max_epu32(top))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
fn rounded(numbers: &[f32; LANES], inverse: __m512) -> __m512i {
    _mm512_cvtps_epi32(_mm512_mul_ps(bytemuck::must_cast(*numbers), inverse))
}

/// Rounds 32 values to a register of codes.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn register_of_codes(numbers: &[f32; 2 * LANES], inverse: __m512) -> __m512i {
    let [low, high]: [[f32; LANES]; 2] = bytemuck::must_cast(*numbers);
    let low = _mm512_cvtepi32_epi16(rounded(&low, inverse));
    let high = _mm512_cvtepi32_epi16(rounded(&high, inverse));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn take_queries(rows: &[f32], head: usize, inverse: f32, queries: &mut Vec<i16>) {
    let count = rows.len() / (PARTS * head);
    queries.resize(count.next_multiple_of(TAIL) * head, 0);
    queries[count * head..].fill(0);
    let inverse = _mm512_set1_ps(inverse);
    for (codes, row) in queries.chunks_exact_mut(head).zip(rows.chunks_exact(PARTS * head)) {
        let numbers = row.as_chunks::<{ 2 * LANES }>().0;
        for (codes, numbers) in codes.as_chunks_mut::<{ 2 * LANES }>().0.iter_mut().zip(numbers) {
            *codes = bytemuck::must_cast(register_of_codes(numbers, inverse));
        }
    }
}

/// Rounds keys and transposes them into columns of panels, two components per 32-bit element.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn take_keys(rows: &[f32], head: usize, inverse: f32, keys: &mut Vec<PanelStep>) {
    let count = rows.len() / (PARTS * head);
    keys.resize(count.div_ceil(PANEL) * head / 2, PanelStep::ZERO);
    let inverse = _mm512_set1_ps(inverse);
    for first in (0..count.next_multiple_of(PANEL)).step_by(LANES) {
        let panel = first / PANEL * head / 2;
        for block in 0..head / (2 * LANES) {
            let start = head + block * 2 * LANES;
            let mut codes = [_mm512_setzero_si512(); LANES];
            let rows = rows.chunks_exact(PARTS * head).skip(first);
            for (codes, row) in codes.iter_mut().zip(rows) {
                let numbers = row[start..].first_chunk().expect("heads are whole registers");
                *codes = register_of_codes(numbers, inverse);
            }
            let steps = &mut keys[panel + block * LANES..][..LANES];
            for (step, column) in steps.iter_mut().zip(transposed(codes)) {
                step.0[first % PANEL / LANES] = bytemuck::must_cast(column);
            }
        }
    }
}

/// Rounds values to panels in which the values of two keys are interleaved, padded with zeros.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn take_values(
    rows: &[f32],
    head: usize,
    values: &mut Vec<PanelStep>,
    value_steps: &mut Vec<[f32; PANEL]>,
) {
    const ODD: __mmask32 = 0xaaaa_aaaa;
    let count = rows.len() / (PARTS * head);
    let pairs = count.next_multiple_of(LANES) / 2;
    values.resize(head / PANEL * pairs, PanelStep::ZERO);
    value_steps.resize(head / PANEL, [0.0; PANEL]);
    for (number, panel) in values.chunks_exact_mut(pairs).enumerate() {
        for register in 0..REGISTERS {
            let start = 2 * head + number * PANEL + register * LANES;
            let numbers = |row: &[f32]| -> [f32; LANES] {
                *row[start..].first_chunk().expect("heads are whole registers")
            };
            let mut top = _mm512_setzero_si512();
            for row in rows.chunks_exact(PARTS * head) {
                top = _mm512_max_epu32(top, magnitudes(&numbers(row)));
            }
            let largest: [f32; LANES] = bytemuck::must_cast(top);
            let inverses: __m512 = bytemuck::must_cast(largest.map(|x| inverse(VALUE_MAX, x)));
            let steps = &mut value_steps[number].as_chunks_mut::<LANES>().0[register];
            *steps = largest.map(|x| x / VALUE_MAX);
            let mut rows = rows.chunks_exact(PARTS * head);
            for step in &mut *panel {
                let mut next = || {
                    rows.next()
                        .map_or(_mm512_setzero_si512(), |row| rounded(&numbers(row), inverses))
                };
                let (even, odd) = (next(), next());
                let odd = _mm512_slli_epi32::<16>(odd);
                step.0[register] = bytemuck::must_cast(_mm512_mask_blend_epi16(ODD, even, odd));
            }
        }
    }
}

/// Transposes a 16 by 16 matrix of 32-bit elements.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn transposed(rows: [__m512i; LANES]) -> [__m512i; LANES] {
    let mut fours = rows;
    for (four, rows) in fours.as_chunks_mut::<4>().0.iter_mut().zip(rows.as_chunks::<4>().0) {
        let low = _mm512_unpacklo_epi32(rows[0], rows[1]);
        let high = _mm512_unpackhi_epi32(rows[0], rows[1]);
        let next_low = _mm512_unpacklo_epi32(rows[2], rows[3]);
        let next_high = _mm512_unpackhi_epi32(rows[2], rows[3]);
        // Each now holds columns j, j + 4, j + 8 and j + 12 of four rows.
        *four = [
            _mm512_unpacklo_epi64(low, next_low),
            _mm512_unpackhi_epi64(low, next_low),
            _mm512_unpacklo_epi64(high, next_high),
            _mm512_unpackhi_epi64(high, next_high),
        ];
    }
    let mut columns = rows;
    for j in 0..4 {
        let even = _mm512_shuffle_i32x4::<0x88>(fours[j], fours[4 + j]);
        let odd = _mm512_shuffle_i32x4::<0xdd>(fours[j], fours[4 + j]);
        let next_even = _mm512_shuffle_i32x4::<0x88>(fours[8 + j], fours[12 + j]);
        let next_odd = _mm512_shuffle_i32x4::<0xdd>(fours[8 + j], fours[12 + j]);
        columns[j] = _mm512_shuffle_i32x4::<0x88>(even, next_even);
        columns[4 + j] = _mm512_shuffle_i32x4::<0x88>(odd, next_odd);
        columns[8 + j] = _mm512_shuffle_i32x4::<0xdd>(even, next_even);
        columns[12 + j] = _mm512_shuffle_i32x4::<0xdd>(odd, next_odd);
    }
    columns
}
