//! The scan in AVX-512 and AVX2.

use std::arch::x86_64::*;

use crate::one_bit::tables::{TABLE, WideTable, has_wide_tables};
use crate::one_bit::task::{BYTES_MAX, Kernel, MayReach, Task};
use crate::one_bit::{BLOCK_ROWS, OneBitQuery, TILE};

/// Returns the kernels that this processor can run, the widest first.
pub(super) fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    let has_avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let vbmi: Kernel = |task, found| {
        // SAFETY: returned below only if the features were detected.
        #[allow(unsafe_code)]
        unsafe {
            scan_vbmi(task, found)
        }
    };
    let avx512: Kernel = |task, found| {
        // SAFETY: returned below only if the features were detected.
        #[allow(unsafe_code)]
        unsafe {
            scan_avx512(task, found)
        }
    };
    let avx2: Kernel = |task, found| {
        // SAFETY: returned below only if the features were detected.
        #[allow(unsafe_code)]
        unsafe {
            scan_avx2(task, found)
        }
    };
    let has_vbmi = has_wide_tables();
    let known =
        [(has_vbmi, "vbmi", vbmi), (has_avx512, "avx512", avx512), (has_avx2, "avx2", avx2)];
    known.into_iter().filter(|(has, _, _)| *has).map(|(_, name, kernel)| (name, kernel))
}

fn load512(bytes: &[u8]) -> __m512i {
    bytemuck::pod_read_unaligned(&bytes[..64])
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn scan_vbmi(task: &Task<'_>, found: &mut Vec<MayReach>) {
    let (mut ahead, lines) = (task.ahead, task.lines_a_tile());
    for (number, (codes, factors)) in task.blocks().enumerate() {
        let sums = wide_block_sums(task.query, codes, || ahead.fetch(lines));
        push_passing(task, number, sums, factors, found);
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn scan_avx512(task: &Task<'_>, found: &mut Vec<MayReach>) {
    let tables = task.query.tables().as_chunks().0;
    let (mut ahead, lines) = (task.ahead, task.lines_a_tile());
    for (number, (codes, factors)) in task.blocks().enumerate() {
        let sums = block_sums(tables, codes.as_chunks().0, || ahead.fetch(lines));
        push_passing(task, number, sums, factors, found);
    }
}

/// Appends the rows of a block whose upper bounds reach the threshold.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn push_passing(
    task: &Task<'_>,
    number: usize,
    sums: [__m512i; 4],
    factors: &[u8],
    found: &mut Vec<MayReach>,
) {
    let step = _mm512_set1_ps(task.query.step());
    let bias = _mm512_set1_ps(task.query.bias());
    let dot = _mm512_set1_ps(task.reference.dot);
    let allowance = _mm512_set1_ps(task.reference.allowance);
    let threshold = _mm512_set1_ps(task.threshold);
    for (part, sums) in sums.into_iter().enumerate() {
        let column = |column: usize| {
            let at = (column * BLOCK_ROWS + part * 16) * 4;
            _mm512_castsi512_ps(load512(&factors[at..at + 64]))
        };
        let signs = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), step, bias);
        let estimate = _mm512_fmadd_ps(signs, column(0), _mm512_add_ps(column(1), dot));
        let upper = _mm512_fmadd_ps(column(2), allowance, estimate);
        let mut passing = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(upper, threshold);
        let uppers: [f32; 16] = bytemuck::must_cast(upper);
        while passing != 0 {
            let lane = passing.trailing_zeros();
            passing &= passing - 1;
            let position = (number * BLOCK_ROWS + part * 16) as u32 + lane;
            found.push(MayReach { position, upper: uppers[lane as usize] });
        }
    }
}

/// Sums of 64 rows in 16 bits: `odd` has those of odd rows, `both` 256 times those plus those of
/// even rows.
#[derive(Clone, Copy)]
struct NarrowSums {
    both: __m512i,
    odd: __m512i,
}

impl NarrowSums {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn zero() -> Self {
        Self { both: _mm512_setzero_si512(), odd: _mm512_setzero_si512() }
    }

    /// Adds a byte to the sum of each row.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn add(&mut self, bytes: __m512i) {
        self.both = _mm512_add_epi16(self.both, bytes);
        self.odd = _mm512_add_epi16(self.odd, _mm512_srli_epi16::<8>(bytes));
    }

    /// Widens the sums to 32 bits: part p has in lane L rows 16 L + 4 p .. 16 L + 4 p + 4.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn widened(self) -> [__m512i; 4] {
        let zero = _mm512_setzero_si512();
        let even = _mm512_sub_epi16(self.both, _mm512_slli_epi16::<8>(self.odd));
        let low = _mm512_unpacklo_epi16(even, self.odd);
        let high = _mm512_unpackhi_epi16(even, self.odd);
        // Lane L of `low` holds rows 16 L .. 16 L + 8, of `high` the next eight.
        [
            _mm512_unpacklo_epi16(low, zero),
            _mm512_unpackhi_epi16(low, zero),
            _mm512_unpacklo_epi16(high, zero),
            _mm512_unpackhi_epi16(high, zero),
        ]
    }
}

/// Transposes the lanes of [`NarrowSums::widened`] so that the rows are in order.
#[target_feature(enable = "avx512f,avx512bw")]
fn in_order(wide: [__m512i; 4]) -> [__m512i; 4] {
    let t0 = _mm512_shuffle_i32x4::<0b01_00_01_00>(wide[0], wide[1]);
    let t1 = _mm512_shuffle_i32x4::<0b11_10_11_10>(wide[0], wide[1]);
    let t2 = _mm512_shuffle_i32x4::<0b01_00_01_00>(wide[2], wide[3]);
    let t3 = _mm512_shuffle_i32x4::<0b11_10_11_10>(wide[2], wide[3]);
    [
        _mm512_shuffle_i32x4::<0b10_00_10_00>(t0, t2),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(t0, t2),
        _mm512_shuffle_i32x4::<0b10_00_10_00>(t1, t3),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(t1, t3),
    ]
}

#[target_feature(enable = "avx512f,avx512bw")]
fn add_parts(wide: &mut [__m512i; 4], sums: NarrowSums) {
    for (sum, part) in wide.iter_mut().zip(sums.widened()) {
        *sum = _mm512_add_epi32(*sum, part);
    }
}

type Tables = [u8; 2 * TABLE];

/// Computes the sums of the table entries of 64 rows, in order; calls `beside` for each tile.
#[target_feature(enable = "avx512f,avx512bw")]
fn block_sums(
    tables: &[Tables],
    codes: &[[u8; BLOCK_ROWS]],
    mut beside: impl FnMut(),
) -> [__m512i; 4] {
    let mut wide = [_mm512_setzero_si512(); 4];
    for (codes, tables) in codes.chunks(BYTES_MAX).zip(tables.chunks(BYTES_MAX)) {
        let mut sums = NarrowSums::zero();
        for (bytes, tables) in codes.chunks(TILE).zip(tables.chunks(TILE)) {
            beside();
            sums.add(tile_sums(tables, bytes));
        }
        add_parts(&mut wide, sums);
    }
    in_order(wide)
}

/// Computes the sums of the entries of at most [`TILE`] bytes.
#[target_feature(enable = "avx512f,avx512bw")]
fn tile_sums(tables: &[Tables], codes: &[[u8; BLOCK_ROWS]]) -> __m512i {
    let nibble = _mm512_set1_epi8(15);
    let mut sums = _mm512_setzero_si512();
    for (bytes, tables) in codes.iter().zip(tables) {
        let bytes = load512(bytes);
        let low = _mm512_and_si512(bytes, nibble);
        let high = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble);
        let halves: &[[u8; TABLE]; 2] = bytemuck::must_cast_ref(tables);
        let first = _mm512_broadcast_i32x4(bytemuck::must_cast(halves[0]));
        let second = _mm512_broadcast_i32x4(bytemuck::must_cast(halves[1]));
        let both =
            _mm512_add_epi8(_mm512_shuffle_epi8(first, low), _mm512_shuffle_epi8(second, high));
        sums = _mm512_add_epi8(sums, both);
    }
    sums
}

/// Like [`block_sums`], with wide tables for whole tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn wide_block_sums(query: &OneBitQuery, codes: &[u8], mut beside: impl FnMut()) -> [__m512i; 4] {
    let (codes, _) = codes.as_chunks::<BLOCK_ROWS>();
    let (tiles, rest) = codes.as_chunks::<TILE>();
    let mut wide = [_mm512_setzero_si512(); 4];
    let runs = tiles.chunks(BYTES_MAX / TILE).zip(query.wide_tables().chunks(BYTES_MAX / TILE));
    for (tiles, tables) in runs {
        let mut sums = NarrowSums::zero();
        for (tile, tables) in tiles.iter().zip(tables) {
            beside();
            sums.add(wide_tile_sums(tables, tile));
        }
        add_parts(&mut wide, sums);
    }
    if !rest.is_empty() {
        let (tables, _) = query.tables().as_chunks();
        let mut sums = NarrowSums::zero();
        beside();
        sums.add(tile_sums(&tables[tiles.len() * TILE..], rest));
        add_parts(&mut wide, sums);
    }
    in_order(wide)
}

/// Computes the sums of the entries of a tile. Look-ups ignore the upper two bits of each byte.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn wide_tile_sums(tables: &[WideTable; TILE + 1], tile: &[[u8; BLOCK_ROWS]; TILE]) -> __m512i {
    /// Selects each bit from the first operand if it is set in the third, otherwise from the
    /// second.
    const CHOOSE: i32 = 0b1110_0100;
    let [a, b, c] = [0, 1, 2].map(|at| load512(&tile[at]));
    let ab = _mm512_ternarylogic_epi64::<CHOOSE>(
        _mm512_srli_epi16::<6>(a),
        _mm512_srli_epi16::<4>(b),
        _mm512_set1_epi8(0b11),
    );
    let abc = _mm512_ternarylogic_epi64::<CHOOSE>(
        ab,
        _mm512_srli_epi16::<2>(c),
        _mm512_set1_epi8(0b1111),
    );
    let find = |bytes, at: usize| _mm512_permutexvar_epi8(bytes, load512(&tables[at].0));
    let (first, second) = (_mm512_add_epi8(find(a, 0), find(b, 1)), find(c, 2));
    _mm512_add_epi8(first, _mm512_add_epi8(second, find(abc, 3)))
}

/// Rows of half a block, which fill a register of AVX2.
const HALF: usize = 32;

#[target_feature(enable = "avx2,fma")]
fn scan_avx2(task: &Task<'_>, found: &mut Vec<MayReach>) {
    let (mut ahead, lines) = (task.ahead, task.ahead.lines_a_step(2 * task.rows.len()));
    for (number, (codes, factors)) in task.blocks().enumerate() {
        for half in 0..BLOCK_ROWS / HALF {
            ahead.fetch(lines);
            let sums = half_sums(task.query.tables(), codes, half * HALF);
            for (part, sums) in sums.into_iter().enumerate() {
                let row = half * HALF + part * 8;
                let upper = upper_bounds(task, sums, factors, row);
                let threshold = _mm256_set1_ps(task.threshold);
                let mut passing = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(upper, threshold));
                let uppers: [f32; 8] = bytemuck::must_cast(upper);
                while passing != 0 {
                    let lane = passing.trailing_zeros();
                    passing &= passing - 1;
                    let position = (number * BLOCK_ROWS + row) as u32 + lane;
                    found.push(MayReach { position, upper: uppers[lane as usize] });
                }
            }
        }
    }
}

/// Computes the sums of the table entries of 32 rows, in order.
#[target_feature(enable = "avx2,fma")]
fn half_sums(tables: &[u8], codes: &[u8], first: usize) -> [__m256i; 4] {
    let (tables, _) = tables.as_chunks::<{ 2 * TABLE }>();
    let (codes, _) = codes.as_chunks::<BLOCK_ROWS>();
    let nibble = _mm256_set1_epi8(15);
    let zero = _mm256_setzero_si256();
    let mut wide = [zero; 4];
    for (codes, tables) in codes.chunks(BYTES_MAX).zip(tables.chunks(BYTES_MAX)) {
        // `both` sums whole 16-bit pairs of bytes, `odd` their upper bytes alone: rows 1, 3, 5...
        let (mut both, mut odd) = (zero, zero);
        for (tile, tables) in codes.chunks(TILE).zip(tables.chunks(TILE)) {
            let mut sums = zero;
            for (bytes, tables) in tile.iter().zip(tables) {
                let bytes: __m256i = bytemuck::pod_read_unaligned(&bytes[first..first + HALF]);
                let low = _mm256_and_si256(bytes, nibble);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
                let halves: &[[u8; TABLE]; 2] = bytemuck::must_cast_ref(tables);
                let first = _mm256_broadcastsi128_si256(bytemuck::must_cast(halves[0]));
                let second = _mm256_broadcastsi128_si256(bytemuck::must_cast(halves[1]));
                let first = _mm256_shuffle_epi8(first, low);
                let second = _mm256_shuffle_epi8(second, high);
                sums = _mm256_add_epi8(sums, _mm256_add_epi8(first, second));
            }
            both = _mm256_add_epi16(both, sums);
            odd = _mm256_add_epi16(odd, _mm256_srli_epi16::<8>(sums));
        }
        let even = _mm256_sub_epi16(both, _mm256_slli_epi16::<8>(odd));
        let low = _mm256_unpacklo_epi16(even, odd);
        let high = _mm256_unpackhi_epi16(even, odd);
        let parts = [
            _mm256_unpacklo_epi16(low, zero),
            _mm256_unpackhi_epi16(low, zero),
            _mm256_unpacklo_epi16(high, zero),
            _mm256_unpackhi_epi16(high, zero),
        ];
        for (sum, part) in wide.iter_mut().zip(parts) {
            *sum = _mm256_add_epi32(*sum, part);
        }
    }
    // wide[p] holds in lane L rows 16 L + 4 p .. 16 L + 4 p + 4.
    [
        _mm256_permute2x128_si256::<0x20>(wide[0], wide[1]),
        _mm256_permute2x128_si256::<0x20>(wide[2], wide[3]),
        _mm256_permute2x128_si256::<0x31>(wide[0], wide[1]),
        _mm256_permute2x128_si256::<0x31>(wide[2], wide[3]),
    ]
}

/// Computes the upper bounds of eight rows from their sums.
#[target_feature(enable = "avx2,fma")]
fn upper_bounds(task: &Task<'_>, sums: __m256i, factors: &[u8], row: usize) -> __m256 {
    let query = task.query;
    let column = |column: usize| -> __m256 {
        let at = (column * BLOCK_ROWS + row) * 4;
        bytemuck::pod_read_unaligned(&factors[at..at + 32])
    };
    let step = _mm256_set1_ps(query.step());
    let bias = _mm256_set1_ps(query.bias());
    let signs = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), step, bias);
    let offset = _mm256_add_ps(column(1), _mm256_set1_ps(task.reference.dot));
    let estimate = _mm256_fmadd_ps(signs, column(0), offset);
    _mm256_fmadd_ps(column(2), _mm256_set1_ps(task.reference.allowance), estimate)
}
