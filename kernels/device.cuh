// Common base of all kernels: names for the hardware's instructions, and a few shared types.
//
// This text, followed by product.cuh, is prepended to every kernel source, so kernels include no
// headers and compile with both NVRTC and nvcc. Kernels contain no inline PTX and no intrinsics:
// with other definitions of these names they run elsewhere, such as on a CPU in tests
// (tests/cuda/emulator).
//
// Times in the head of a file are estimates from an H200's limits (4.3 TB/s of reads, 1,979 TOPS of
// int8) unless marked "measured"; benches/runs has the runs.
//
// Rules that the emulator enforces
// - Shared memory is dynamic, from `shared_memory()`; a kernel documents its size in bytes.
// - All 32 lanes reach each warp operation, and all threads of the block each `block_barrier`.
// - Arithmetic whose bits must equal the CPU's uses `product`, `sum`, `difference`, `fused` and
//   `quotient`: each rounds once, to nearest, and is never contracted with another operation.
// - No block reads what another block of the same launch writes, except through atomics.
// A kernel is `KERNEL(threads, blocks a multiprocessor) __global__ void name(const Params p)`, and
// `LAUNCHABLE(name)` names it at the foot of its file. Requires compute capability 8.0 or later.

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#ifndef LODESTONE_EMULATED

// Suppresses warnings of unused functions, because no kernel uses all of this text.
#pragma nv_diag_suppress 177

#define LAUNCHABLE(name)
#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define KERNEL(threads, blocks) extern "C" __launch_bounds__(threads, blocks)

// Sixteen bytes, loaded and stored as a unit.
struct alignas(16) Words4 {
    u32 x, y, z, w;
};
struct alignas(8) Words2 {
    u32 x, y;
};

// Position of the thread.
DEVICE u32 thread_in_block() { return threadIdx.x; }
DEVICE u32 threads_in_block() { return blockDim.x; }
DEVICE u32 block_in_grid() { return blockIdx.x; }
DEVICE u32 block_in_grid_y() { return blockIdx.y; }
DEVICE u32 blocks_in_grid() { return gridDim.x; }
DEVICE u32 blocks_in_grid_y() { return gridDim.y; }

// The block's dynamic shared memory, aligned as `matrix_of` requires.
DEVICE u8 *shared_memory() {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    return dynamic_shared;
}

DEVICE void block_barrier() { __syncthreads(); }
DEVICE void warp_barrier() { __syncwarp(); }

// Warp operations over all 32 lanes.
DEVICE u32 warp_ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
DEVICE u32 warp_shuffle(u32 value, u32 lane) { return __shfl_sync(0xffffffffu, value, lane); }
DEVICE u32 warp_shuffle_xor(u32 value, u32 mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

// Bit operations.
DEVICE u32 population(u32 word) { return __popc(word); }
DEVICE u32 lowest_bit(u32 word) { return __ffs(word) - 1; }
DEVICE u32 highest_bit(u32 word) { return 31 - __clz(word); }
DEVICE u32 bits_of(f32 value) { return __float_as_uint(value); }
DEVICE f32 from_bits(u32 bits) { return __uint_as_float(bits); }

// Arithmetic that rounds once and is never contracted.
DEVICE f32 product(f32 a, f32 b) { return __fmul_rn(a, b); }
DEVICE f32 sum(f32 a, f32 b) { return __fadd_rn(a, b); }
DEVICE f32 difference(f32 a, f32 b) { return __fsub_rn(a, b); }
DEVICE f32 fused(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
DEVICE f32 quotient(f32 a, f32 b) { return __fdiv_rn(a, b); }
DEVICE f32 square_root(f32 a) { return __fsqrt_rn(a); }
DEVICE f64 product(f64 a, f64 b) { return __dmul_rn(a, b); }
DEVICE f64 sum(f64 a, f64 b) { return __dadd_rn(a, b); }
DEVICE f64 difference(f64 a, f64 b) { return __dsub_rn(a, b); }
DEVICE f64 quotient(f64 a, f64 b) { return __ddiv_rn(a, b); }
DEVICE f64 square_root(f64 a) { return __dsqrt_rn(a); }
DEVICE f32 narrowed(f64 value) { return __double2float_rn(value); }
// Widens an f16, given as its bits.
DEVICE f32 widened_f16(u16 bits) {
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Packs two values as f16, the first in the lower half of the word.
DEVICE u32 pair_of_f16(f32 low, f32 high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
// 2^value and 1 / value, with an error of a few units in the last place.
DEVICE f32 power_of_two(f32 value) {
    f32 power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
    return power;
}
DEVICE f32 reciprocal(f32 value) {
    f32 inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(value));
    return inverse;
}
// erf, with an error below 2e-7, which f16 does not show (Abramowitz and Stegun 1964, 7.1.26).
DEVICE f32 error_function(f32 value) {
    const f32 size = fabsf(value), t = reciprocal(__fmaf_rn(0.3275911f, size, 1.0f));
    f32 rest = __fmaf_rn(1.061405429f, t, -1.453152027f);
    rest = __fmaf_rn(rest, t, 1.421413741f);
    rest = __fmaf_rn(rest, t, -0.284496736f);
    rest = __fmaf_rn(rest, t, 0.254829592f) * t;
    return copysignf(1.0f - rest * power_of_two(-1.442695041f * size * size), value);
}

// Loads 16 bytes that are read once, bypassing the L1 cache, from memory that nobody writes during
// the kernel. Returns zeros if `has` is false: predicated without a branch, so that several loads
// can be in flight together.
DEVICE Words4 load_streaming_16(const void *from, bool has = true) {
    Words4 words;
    asm volatile("{ .reg .pred has; setp.ne.u32 has, %5, 0;\n\t"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n\t"
                 "@has ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4]; }"
                 : "=&r"(words.x), "=&r"(words.y), "=&r"(words.z), "=&r"(words.w)
                 : "l"(from), "r"((u32)has));
    return words;
}

// Atomics; each returns the previous value.
DEVICE u32 atomic_add(u32 *at, u32 value) { return atomicAdd(at, value); }
DEVICE u32 atomic_max(u32 *at, u32 value) { return atomicMax(at, value); }
DEVICE u64 atomic_max(u64 *at, u64 value) { return atomicMax(at, value); }

// Copies 16 bytes asynchronously from global to shared memory. If `has` is false it writes zeros
// and does not read the address, which must still be valid. Complete after `copy_async_wait` and a
// barrier.
DEVICE void copy_async_16(void *to_shared, const void *from_global, bool has) {
    u32 to = (u32)__cvta_generic_to_shared(to_shared);
    u32 bytes = has ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from_global), "r"(bytes)
                 : "memory");
}
DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `PENDING` of this thread's copy groups are in flight.
template <int PENDING>
DEVICE void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Loads four 8 x 16-byte matrices; lanes 8i .. 8i + 8 give the addresses of the rows of matrix i.
// Lane l receives word l % 4 of row l / 4 of each.
DEVICE void load_matrix_x4(u32 (&words)[4], const void *shared_row) {
    u32 from = (u32)__cvta_generic_to_shared(shared_row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(from)
                 : "memory");
}
// Likewise, with each matrix of 16-bit values transposed.
DEVICE void load_matrix_x4_transposed(u32 (&words)[4], const void *shared_row) {
    u32 from = (u32)__cvta_generic_to_shared(shared_row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(from)
                 : "memory");
}

// total += a b. Lane l = 4g + t holds, of a (16 x 32 bytes), words t and t + 4 of rows g and g + 8:
// a[0] = (g, t), a[1] = (g + 8, t), a[2] = (g, t + 4), a[3] = (g + 8, t + 4); of b (32 bytes for
// each of 8 columns), words t and t + 4 of column g; of the totals, (g, 2t), (g, 2t + 1),
// (g + 8, 2t), (g + 8, 2t + 1). Exact unless a total exceeds 2^31.
DEVICE void mma_s8_16x8x32(i32 (&total)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(total[0]), "+r"(total[1]), "+r"(total[2]), "+r"(total[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Likewise over 16 pairs of f16, two to a word, with f32 totals; the summation order is undefined.
DEVICE void mma_f16_16x8x16(f32 (&total)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(total[0]), "+f"(total[1]), "+f"(total[2]), "+f"(total[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Warpgroup tensor core operations: the four warps of a group multiply matrices that lie in shared
// memory. Available only on Hopper, in code compiled for it specifically (sm_90a).
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WARPGROUPS

// Matrix descriptor for rows of 64 bytes, `swizzled`, starting at a multiple of 512 bytes; every
// eight rows take 512 bytes. A step is half a row.
DEVICE u64 matrix_of(const void *shared_rows, u32 step) {
    u32 from = (u32)__cvta_generic_to_shared(shared_rows) + step * 32;
    return (u64)(from >> 4) | (u64)1 << 16 | (u64)(512 >> 4) << 32 | (u64)2 << 62;
}
#define TOTALS_1(at) "+r"(t[at][0]), "+r"(t[at][1]), "+r"(t[at][2]), "+r"(t[at][3])
#define TOTALS_4(at) TOTALS_1(at), TOTALS_1(at + 1), TOTALS_1(at + 2), TOTALS_1(at + 3)
#define TOTALS_16(at) TOTALS_4(at), TOTALS_4(at + 4), TOTALS_4(at + 8), TOTALS_4(at + 12)
DEVICE void warpgroup_mma(i32 (&t)[16][4], u64 rows, u64 kept, bool adds) {
    asm volatile("{ .reg .pred adds; setp.ne.u32 adds, %66, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
                 "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,"
                 "%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
                 "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, adds; }"
                 : TOTALS_16(0)
                 : "l"(rows), "l"(kept), "r"((u32)adds));
}
DEVICE void warpgroup_mma(i32 (&t)[32][4], u64 rows, u64 kept, bool adds) {
    asm volatile("{ .reg .pred adds; setp.ne.u32 adds, %130, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
                 "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,"
                 "%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
                 "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,"
                 "%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,"
                 "%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,"
                 "%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,"
                 "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,"
                 "%123,%124,%125,%126,%127"
                 "}, %128, %129, adds; }"
                 : TOTALS_16(0), TOTALS_16(16)
                 : "l"(rows), "l"(kept), "r"((u32)adds));
}
#define FLOATS_1(at) "+f"(t[at][0]), "+f"(t[at][1]), "+f"(t[at][2]), "+f"(t[at][3])
#define FLOATS_4(at) FLOATS_1(at), FLOATS_1(at + 1), FLOATS_1(at + 2), FLOATS_1(at + 3)
#define FLOATS_16(at) FLOATS_4(at), FLOATS_4(at + 4), FLOATS_4(at + 8), FLOATS_4(at + 12)
DEVICE void warpgroup_mma(f32 (&t)[16][4], u64 rows, u64 kept, bool adds) {
    asm volatile("{ .reg .pred adds; setp.ne.u32 adds, %66, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
                 "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,"
                 "%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
                 "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
                 "}, %64, %65, adds, 1, 1, 0, 0; }"
                 : FLOATS_16(0)
                 : "l"(rows), "l"(kept), "r"((u32)adds));
}
// totals (+)= rows kept^T over step `step`, for 64 rows and TILES x 8 kept vectors of s8. Warp w
// has rows 16w .. 16w + 16, each tile laid out as the totals of mma_s8_16x8x32. Call between
// `warpgroup_begin` and `warpgroup_end`, which waits for the result.
template <u32 TILES>
DEVICE void warpgroup_product(i32 (&totals)[TILES][4], const u8 *rows, const u8 *kept, u32 step,
                              bool adds) {
    warpgroup_mma(totals, matrix_of(rows, step), matrix_of(kept, step), adds);
}
// Likewise for f16 in rows of 128 bytes, `swizzled_line`, starting at a multiple of 1,024 bytes; a
// step is a quarter of a row.
DEVICE void warpgroup_product_f16(f32 (&totals)[16][4], const u8 *rows, const u8 *kept, u32 step,
                                  bool adds) {
    const u64 lines = (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
    u32 left = (u32)__cvta_generic_to_shared(rows) + step * 32;
    u32 right = (u32)__cvta_generic_to_shared(kept) + step * 32;
    warpgroup_mma(totals, lines | left >> 4, lines | right >> 4, adds);
}
DEVICE void warpgroup_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void warpgroup_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// Makes this thread's writes to shared memory visible to warpgroup products, after a barrier.
DEVICE void warpgroup_shows() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif

#endif  // LODESTONE_EMULATED

// ---- Shared by the kernels on every platform ----

static const u32 WARP = 32;
// Rows are padded with zeros to a multiple of this many bytes.
static const u32 CHUNK_BYTES = 64;
// Consecutive visited rows that a sampling pass reduces to one maximum.
static const u32 GROUP_ROWS = 16;
// Slack of the quick test, which rounds differently from the estimate; more than the difference.
#define SLACK 1e-5f
#define INFINITE from_bits(0x7f800000u)

// A query's part of an estimate and its bound: estimate = dot * (scale * row scale) in f64, rounded
// once; bound = constant + per_residual * row residual in f32.
struct alignas(16) QueryFactors {
    f32 scale;
    f32 constant;
    f32 per_residual;
    f32 unused;
};

// A row that may be among the best, with its dot product with the query: the exact integer for
// codes, the bits of an f32 for halves.
struct alignas(8) FoundRow {
    u32 row;
    i32 dot;
};

// Number formats of rows and queries: one-byte codes, or f16. Fragments are 32 bytes in both, so
// chunks and shared memory have the same layout; only the multiplication differs.
struct Codes {
    typedef i32 Total;
    DEVICE void multiply(i32 (&total)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        mma_s8_16x8x32(total, a, b0, b1);
    }
};
struct Halves {
    typedef f32 Total;
    DEVICE void multiply(f32 (&total)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        mma_f16_16x8x16(total, a, b0, b1);
    }
};
DEVICE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
DEVICE f32 larger(f32 a, f32 b) { return a > b ? a : b; }
DEVICE f32 smaller(f32 a, f32 b) { return a < b ? a : b; }
DEVICE u32 divided_up(u32 a, u32 b) { return (a + b - 1) / b; }
DEVICE f32 warp_shuffle_xor(f32 value, u32 mask) {
    return from_bits(warp_shuffle_xor(bits_of(value), mask));
}

// Returns the sum of `own` over the preceding threads of the block; sets `total` to the block's
// total. Called by all threads; `shared` has one word per warp, at most 32.
DEVICE u32 sum_before(u32 *shared, u32 own, u32 &total) {
    u32 lane = thread_in_block() % WARP, warp = thread_in_block() / WARP, until = own;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        u32 other = warp_shuffle(until, (lane - distance) % WARP);
        until += lane >= distance ? other : 0;
    }
    if (lane == WARP - 1) shared[warp] = until;
    block_barrier();
    u32 before = 0;
    total = 0;
    for (u32 other = 0; other < threads_in_block() / WARP; other++) {
        before += other < warp ? shared[other] : 0;
        total += shared[other];
    }
    block_barrier();
    return before + until - own;
}

// Whether a row passes the mask, in which row r is bit r % 32 of word r / 32. Null passes all rows.
DEVICE bool passes(const u32 *mask, u32 row) {
    return mask == nullptr || ((mask[row / 32] >> (row % 32)) & 1) != 0;
}

// Maps a value to an integer with the order of f32::total_cmp; `from_ordered` is the inverse.
DEVICE u32 ordered(f32 value) {
    u32 bits = bits_of(value);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
DEVICE f32 from_ordered(u32 key) {
    return from_bits(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

// Parameters of a pass that searches for rows that may be among the best k of each query. Shared by
// scan.cu and batch.cu, which find the same rows. Rows are T1, or T2 as f16, for which
// scales are 1 and residuals 0. A pass visits rows 0, step, 2 step ... of the selected ones; only
// those that pass the mask count.
//   sampling pass    maxima[query][group] = highest lower bound (estimate - bound) of 16 visited
//                    rows, -inf if none passes. At least k rows reach the k-th largest maximum, so
//                    as a threshold it excludes none of the best k.
//   collecting pass  appends rows whose upper bound may reach the query's threshold to found, and
//                    counts them. Rows beyond the capacity are only counted; the caller then
//                    repeats the search with more memory, or elsewhere.
struct SearchParams {
    const i8 *codes;                    // [rows][stride] bytes of codes or halves
    const f32 *scales;                  // [rows]
    const f32 *residuals;               // [rows]
    const u32 *mask;                    // [(rows + 31) / 32], or null: all rows pass
    const u32 *listed;                  // rows to visit, or null: all of them in order
    const i8 *query_codes;              // [queries][stride] bytes, of the same kind
    const QueryFactors *query_factors;  // [queries]
    const f32 *thresholds;              // [queries]; collecting
    f32 *maxima;                        // [queries][groups]; sampling
    FoundRow *found;                    // [queries][capacity]; collecting
    u32 *counts;                        // [queries], zeroed before; collecting
    u32 visited;                        // rows, or length of the list, over step, rounded up
    u32 step;                           // from one visited row (or list entry) to the next, >= 1
    u32 stride;                         // bytes of a row, a multiple of 64
    u32 queries;
    u32 groups;                         // visited / 16, rounded up; sampling
    u32 capacity;                       // collecting
};

// The row visited at `position`, which is below `visited`.
DEVICE u32 visited_row(const SearchParams &p, u32 position) {
    u32 at = position * p.step;
    return p.listed == nullptr ? at : p.listed[at];
}
// An upper bound of (estimate + bound) and a lower one of (estimate - bound), for any rounding.
DEVICE f32 quick_upper(f32 dot, f32 scale, f32 residual, const QueryFactors &query) {
    f32 bound = query.constant + SLACK + query.per_residual * residual;
    return dot * (query.scale * scale) + bound;
}
DEVICE f32 quick_lower(f32 dot, f32 scale, f32 residual, const QueryFactors &query) {
    f32 bound = query.constant + SLACK + query.per_residual * residual;
    return dot * (query.scale * scale) - bound;
}

// A dot product in the form of FoundRow.
DEVICE i32 kept_bits(i32 dot) { return dot; }
DEVICE i32 kept_bits(f32 dot) { return (i32)bits_of(dot); }

DEVICE f32 warp_total(f32 value) {
    for (u32 mask = 16; mask > 0; mask /= 2) value = sum(value, warp_shuffle_xor(value, mask));
    return value;
}

// Byte offset of unit `unit` (16 bytes) of row `row` in a stack of 128-byte rows, swizzled so that
// the eight rows of a matrix lie in eight different groups of banks.
DEVICE u32 swizzled_line(u32 row, u32 unit) { return row * 128 + (unit ^ row % 8) * 16; }

// The low and the high half of a word, as f16.
DEVICE f32 low_f16(u32 pair) { return widened_f16((u16)pair); }
DEVICE f32 high_f16(u32 pair) { return widened_f16((u16)(pair >> 16)); }

// Transposes words among the four lanes that share a row of a fragment: word i of lane t becomes
// word t of lane i. Pairs of f16 from four neighbouring tiles become 16 bytes of one tile, and vice
// versa.
DEVICE void quad_transpose(u32 (&words)[4]) {
    const u32 lane = thread_in_block();
    const bool odd = lane % 2 != 0, upper = lane / 2 % 2 != 0;
#pragma unroll
    for (u32 at = 0; at < 4; at += 2) {
        u32 got = warp_shuffle_xor(odd ? words[at] : words[at + 1], 1);
        words[at] = odd ? got : words[at];
        words[at + 1] = odd ? words[at + 1] : got;
    }
#pragma unroll
    for (u32 at = 0; at < 2; at++) {
        u32 got = warp_shuffle_xor(upper ? words[at] : words[at + 2], 2);
        words[at] = upper ? got : words[at];
        words[at + 2] = upper ? words[at + 2] : got;
    }
}
