//! The inner loops in AVX-512 with VNNI.

use std::arch::x86_64::*;

use crate::embed::int16::machine::Attention;
use crate::embed::int16::product::{Dense, PANEL, PanelStep, STRIP};
use crate::embed::int16::quantize::Codes;

/// Numbers of a register.
const LANES: usize = 16;
/// Registers of a panel.
const REGISTERS: usize = PANEL / LANES;
/// Queries of attention whose sums are in registers at once.
const QUERIES: usize = 6;
/// Registers of keys beside them: 24 sums.
const KEYS: usize = 4;
/// Keys that one inner loop covers.
const KEY_TILE: usize = KEYS * LANES;

/// `codes` times `layer` into `output`, (tokens, outputs).
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn multiply(layer: &Dense, codes: &Codes, output: &mut [f32]) {
    let outputs = layer.outputs();
    let stride = codes.stride();
    for (panel, column_steps, columns) in layer.panels() {
        let column_steps: [__m512; REGISTERS] = bytemuck::must_cast(*column_steps);
        let strips = codes.codes().chunks_exact(STRIP * stride);
        let rows = output.chunks_mut(STRIP * outputs);
        for ((strip, steps), rows) in strips.zip(codes.steps().chunks(STRIP)).zip(rows) {
            let sums = strip_times_panel(strip, panel);
            for ((row, sums), step) in rows.chunks_exact_mut(outputs).zip(sums).zip(steps) {
                let step = _mm512_set1_ps(*step);
                let mut scaled = [step; REGISTERS];
                for ((to, sum), column_step) in scaled.iter_mut().zip(sums).zip(column_steps) {
                    *to = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(step, column_step));
                }
                let scaled: [f32; PANEL] = bytemuck::must_cast(scaled);
                let row = &mut row[columns.clone()];
                match row.first_chunk_mut::<PANEL>() {
                    Some(row) => *row = scaled,
                    None => row.copy_from_slice(&scaled[..row.len()]),
                }
            }
        }
    }
}

/// The sums of a strip of tokens over one panel.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strip_times_panel(strip: &[i16], panel: &[PanelStep]) -> [[__m512i; REGISTERS]; STRIP] {
    let steps = panel.len();
    assert_eq!(strip.len(), STRIP * steps * 2, "the caller cuts whole strips");
    let pairs: &[[i16; 2]] = strip.as_chunks().0;
    let mut sums = [[_mm512_setzero_si512(); REGISTERS]; STRIP];
    for (at, weights) in panel.iter().enumerate() {
        let weights: [__m512i; REGISTERS] = bytemuck::must_cast(*weights);
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `row` is below STRIP and `at` below `steps`, and the strip was found to have
            // STRIP times `steps` pairs.
            #[allow(unsafe_code)]
            let pair = unsafe { *pairs.get_unchecked(row * steps + at) };
            let pair = _mm512_set1_epi32(bytemuck::must_cast(pair));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = _mm512_dpwssd_epi32(*sum, pair, weights);
            }
        }
    }
    sums
}

/// Attention of one passage: `fused` (tokens, 3, heads, head) are queries, already divided by the
/// square root of `head`, keys and values; `context` is (tokens, heads, head).
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn attend(
    fused: &[f32],
    heads: usize,
    head: usize,
    context: &mut [f32],
    scratch: &mut Attention,
) {
    let hidden = heads * head;
    assert!(head.is_multiple_of(LANES) && fused.len() == 3 * context.len());
    let count = context.len() / hidden;
    let padded = count.next_multiple_of(KEY_TILE);
    let Attention { keys, values, scores } = scratch;
    keys.resize(head * padded, 0.0);
    values.resize(count * head, 0.0);
    scores.resize(QUERIES * padded, 0.0);
    for number in 0..heads {
        let query_at = number * head;
        take_keys(fused, hidden, hidden + query_at, padded, keys);
        let value_at = 2 * hidden + query_at;
        let rows = fused.chunks_exact(3 * hidden);
        for (value, row) in values.chunks_exact_mut(head).zip(rows) {
            value.copy_from_slice(&row[value_at..value_at + head]);
        }
        for first in (0..count).step_by(QUERIES) {
            let width = QUERIES.min(count - first);
            // Where there are fewer, the last is computed over and over.
            let mut queries: [&[f32]; QUERIES] = [&[]; QUERIES];
            for (at, query) in queries.iter_mut().enumerate() {
                let start = (first + at.min(width - 1)) * 3 * hidden + query_at;
                *query = &fused[start..start + head];
            }
            scores_of(&queries, keys, padded, scores);
            let mut inverses = [0.0; QUERIES];
            for (row, inverse) in scores.chunks_exact_mut(padded).zip(&mut inverses) {
                *inverse = 1.0 / exponentials(row, count);
            }
            let place = Place { first, width, hidden, at: query_at };
            let pairs = head / (2 * LANES);
            for pair in 0..pairs {
                mix::<2>(
                    scores,
                    padded,
                    values,
                    head,
                    2 * LANES * pair,
                    &inverses,
                    &place,
                    context,
                );
            }
            if head > 2 * LANES * pairs {
                mix::<1>(
                    scores,
                    padded,
                    values,
                    head,
                    2 * LANES * pairs,
                    &inverses,
                    &place,
                    context,
                );
            }
        }
    }
}

/// The keys of one head, (head, tokens) from (tokens, 3 * hidden); zeros behind the last token.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn take_keys(fused: &[f32], hidden: usize, key_at: usize, padded: usize, keys: &mut [f32]) {
    let tokens = fused.len() / (3 * hidden);
    for first in (0..padded).step_by(LANES) {
        for (block, keys) in keys.chunks_exact_mut(LANES * padded).enumerate() {
            let mut rows = [_mm512_setzero_ps(); LANES];
            for (at, row) in rows.iter_mut().enumerate().take(tokens.saturating_sub(first)) {
                let start = (first + at) * 3 * hidden + key_at + block * LANES;
                let numbers: &[f32; LANES] = fused[start..].first_chunk().expect("whole registers");
                *row = bytemuck::must_cast(*numbers);
            }
            for (component, keys) in transposed(rows).into_iter().zip(keys.chunks_exact_mut(padded))
            {
                let keys: &mut [f32; LANES] = keys[first..].first_chunk_mut().expect("whole tiles");
                *keys = bytemuck::must_cast(component);
            }
        }
    }
}

/// Rows to columns.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn transposed(rows: [__m512; LANES]) -> [__m512; LANES] {
    let mut fours = rows;
    for (four, rows) in fours.as_chunks_mut::<4>().0.iter_mut().zip(rows.as_chunks::<4>().0) {
        let low = _mm512_castps_pd(_mm512_unpacklo_ps(rows[0], rows[1]));
        let high = _mm512_castps_pd(_mm512_unpackhi_ps(rows[0], rows[1]));
        let next_low = _mm512_castps_pd(_mm512_unpacklo_ps(rows[2], rows[3]));
        let next_high = _mm512_castps_pd(_mm512_unpackhi_ps(rows[2], rows[3]));
        // Each now holds columns j, j + 4, j + 8 and j + 12 of four rows.
        *four = [
            _mm512_castpd_ps(_mm512_unpacklo_pd(low, next_low)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(low, next_low)),
            _mm512_castpd_ps(_mm512_unpacklo_pd(high, next_high)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(high, next_high)),
        ];
    }
    let mut columns = rows;
    for j in 0..4 {
        let even = _mm512_shuffle_f32x4::<0x88>(fours[j], fours[4 + j]);
        let odd = _mm512_shuffle_f32x4::<0xdd>(fours[j], fours[4 + j]);
        let next_even = _mm512_shuffle_f32x4::<0x88>(fours[8 + j], fours[12 + j]);
        let next_odd = _mm512_shuffle_f32x4::<0xdd>(fours[8 + j], fours[12 + j]);
        columns[j] = _mm512_shuffle_f32x4::<0x88>(even, next_even);
        columns[4 + j] = _mm512_shuffle_f32x4::<0x88>(odd, next_odd);
        columns[8 + j] = _mm512_shuffle_f32x4::<0xdd>(even, next_even);
        columns[12 + j] = _mm512_shuffle_f32x4::<0xdd>(odd, next_odd);
    }
    columns
}

/// Products of the queries with all keys into `scores`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn scores_of(queries: &[&[f32]; QUERIES], keys: &[f32], padded: usize, scores: &mut [f32]) {
    for tile in (0..padded).step_by(KEY_TILE) {
        let mut sums = [[_mm512_setzero_ps(); KEYS]; QUERIES];
        for (component, row) in keys.chunks_exact(padded).enumerate() {
            let row: &[f32; KEY_TILE] = row[tile..].first_chunk().expect("whole tiles");
            let row: [__m512; KEYS] = bytemuck::must_cast(*row);
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_ps(query[component]);
                for (sum, keys) in sums.iter_mut().zip(row) {
                    *sum = _mm512_fmadd_ps(query, keys, *sum);
                }
            }
        }
        for (row, sums) in scores.chunks_exact_mut(padded).zip(sums) {
            let row: &mut [f32; KEY_TILE] = row[tile..].first_chunk_mut().expect("whole tiles");
            *row = bytemuck::must_cast(sums);
        }
    }
}

/// Replaces the first `count` scores by e^(score - largest) and the rest by 0; their sum.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn exponentials(row: &mut [f32], count: usize) -> f32 {
    let (row, _) = row.as_chunks_mut::<LANES>();
    let present = |at: usize| -> __mmask16 {
        let left = count.saturating_sub(at * LANES).min(LANES);
        ((1_u32 << left) - 1) as __mmask16
    };
    let lowest = _mm512_set1_ps(f32::NEG_INFINITY);
    let mut top = lowest;
    for (at, scores) in row.iter().enumerate() {
        top = _mm512_mask_max_ps(top, present(at), top, bytemuck::must_cast(*scores));
    }
    let top = _mm512_set1_ps(_mm512_reduce_max_ps(top));
    let mut total = _mm512_setzero_ps();
    for (at, scores) in row.iter_mut().enumerate() {
        let shifted = _mm512_sub_ps(bytemuck::must_cast(*scores), top);
        let power = _mm512_maskz_mov_ps(present(at), exponential(shifted));
        total = _mm512_add_ps(total, power);
        *scores = bytemuck::must_cast(power);
    }
    _mm512_reduce_add_ps(total)
}

/// e^x for x of at most 0 with a relative error below 3e-7: x = n ln 2 + r, e^r by the polynomial
/// of Cephes `expf`, as `elementwise` has it. Below -104 it is 0 in f32 whatever x is, and far
/// below r would not be small any more.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn exponential(x: __m512) -> __m512 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    // The second operand passes where one is not a number.
    let x = _mm512_max_ps(_mm512_set1_ps(-104.0), x);
    let n =
        _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::LOG2_E)));
    // ln 2 in two parts, so that n times the first is exact.
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693_359_4), x);
    let r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.121_944_4e-4), r);
    let mut p = _mm512_set1_ps(1.987_569_1e-4);
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0] {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(coefficient));
    }
    _mm512_scalef_ps(p, n)
}

/// Where the results of a strip of queries go in (tokens, hidden): `width` tokens from `first`,
/// the head's numbers from `at`.
struct Place {
    first: usize,
    width: usize,
    hidden: usize,
    at: usize,
}

/// The values weighted by the scores, times `inverses`: REGISTERS registers of components from
/// `column` for each query.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[allow(clippy::too_many_arguments)]
fn mix<const REGISTERS: usize>(
    scores: &[f32],
    padded: usize,
    values: &[f32],
    head: usize,
    column: usize,
    inverses: &[f32; QUERIES],
    place: &Place,
    context: &mut [f32],
) {
    let mut sums = [[_mm512_setzero_ps(); REGISTERS]; QUERIES];
    let count = values.len() / head;
    assert!(count <= padded && scores.len() == QUERIES * padded);
    for (at, row) in values.chunks_exact(head).enumerate() {
        let mut values = [_mm512_setzero_ps(); REGISTERS];
        let row = row[column..column + REGISTERS * LANES].as_chunks::<LANES>().0;
        for (value, row) in values.iter_mut().zip(row) {
            *value = bytemuck::must_cast(*row);
        }
        for (query, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `query` is below QUERIES and `at` below `count`, which is at most `padded`;
            // the length of the scores was looked at above.
            #[allow(unsafe_code)]
            let score = unsafe { *scores.get_unchecked(query * padded + at) };
            let score = _mm512_set1_ps(score);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = _mm512_fmadd_ps(score, value, *sum);
            }
        }
    }
    for (at, (sums, inverse)) in sums.iter().zip(inverses).enumerate().take(place.width) {
        let start = (place.first + at) * place.hidden + place.at + column;
        let row = context[start..start + REGISTERS * LANES].as_chunks_mut::<LANES>().0;
        for (to, sum) in row.iter_mut().zip(sums) {
            *to = bytemuck::must_cast(_mm512_mul_ps(*sum, _mm512_set1_ps(*inverse)));
        }
    }
}

/// Replaces `row` by x * Phi(x) of x = row + `bias`, Phi by the error function.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn add_bias_gelu(row: &mut [f32], bias: &[f32]) {
    let (row, row_rest) = row.as_chunks_mut::<LANES>();
    let (bias, bias_rest) = bias.as_chunks::<LANES>();
    for (x, bias) in row.iter_mut().zip(bias) {
        let biased = _mm512_add_ps(bytemuck::must_cast(*x), bytemuck::must_cast(*bias));
        *x = bytemuck::must_cast(gelu(biased));
    }
    let mut biased = [0.0; LANES];
    for ((to, x), bias) in biased.iter_mut().zip(&*row_rest).zip(bias_rest) {
        *to = x + bias;
    }
    let numbers: [f32; LANES] = bytemuck::must_cast(gelu(bytemuck::must_cast(biased)));
    let rest = row_rest.len();
    row_rest.copy_from_slice(&numbers[..rest]);
}

/// x * Phi(x) by the rational function that `elementwise` has, with a reciprocal refined once
/// (Newton) in place of the division, which would take longer than all else here.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn gelu(x: __m512) -> __m512 {
    let bound = _mm512_set1_ps(4.0);
    let argument = _mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::FRAC_1_SQRT_2));
    // The second operand passes where the first is not a number.
    let t =
        _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), bound), _mm512_min_ps(bound, argument));
    let s = _mm512_mul_ps(t, t);
    let mut p = _mm512_set1_ps(-2.726_142_3e-10);
    for coefficient in [
        2.770_681_3e-8,
        -2.101_024e-6,
        -5.692_506_5e-5,
        -7.349_906_4e-4,
        -2.954_6e-3,
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
