// Assignment: finds the points nearest to each row, by T1. The points are those of
// k-means, or the coarse points of two levels.
//
// Rows are kept, points stream (product.cuh). A score is (dot as f32) * the point's scale; the
// row's own scale would not change the order. Ties go to the lower point, as in
// src/compute/src/kmeans.rs. A key combines both: the ordered score in the high word, the
// complement of the point in the low one. Blocks that examine different points for one row combine
// their keys by an atomic maximum, so the result does not depend on their order.
//
//   nearest P points: P rounds, each finding the greatest key below that of the round before; keys
//   are indexed by position in the list, so the caller downloads no others
//   two levels: first rows against coarse points, P times; then the listed rows near each coarse
//   point against the points below it
//
// Kernels  assign_N        for N = 256, 128, 64, 32 listed rows a block
//          assign_next_N   likewise, for keys below those of the round before; N = 128, 32
// Params   AssignParams
// Launcher src/compute/src/cuda/assign.rs
// Block    256 threads. Grid: y = rows / N, rounded up; x = parts into which the points are divided
//          (1 if the rows fill the device).
// Shared   N * stride + 8,192 * STAGES + 4,096 bytes (STAGES: 3 for N = 256, otherwise 4).
// Does     2 * rows * points * stride operations. Scoring a tile takes about 1,000 clocks besides
//          4,900 for mma.sync (batch.cu). 1M x 384 against 4,096 points: 3.1 T operations, 3.1 ms,
//          more than 50 % of what mma.sync reaches, but less than 50 % of what wgmma would.
// Built    ptxas 13.0 for sm_90a, no spills: 234 registers for 256 rows, 149 for 128, 103 for 64,
//          68 for 32; assign_next 166 and 78.

struct AssignParams {
    const i8 *codes;          // [rows][stride]
    const u32 *listed;        // [wanted]
    const i8 *point_codes;    // [points][stride]
    const f32 *point_scales;  // [points]
    const u64 *before;        // [wanted], keys of the round before; assign_next
    u64 *best;                // [wanted], zeroed before: ordered(score) << 32 | ~point
    u32 stride;
    u32 points;
    u32 wanted;               // Rows of the list.
    u32 unused;
};

struct ListedRows {
    typedef Codes Numbers;
    const AssignParams &p;
    u32 count, stride;
    const i8 *zeros;
    const u32 *listed;
    DEVICE_MEMBER const i8 *codes(u32 position) const {
        return p.codes + (u64)listed[position] * stride;
    }
};

struct Points {
    typedef Codes Numbers;
    u32 count, stride;
    const i8 *zeros;
    DEVICE_MEMBER const i8 *codes(u32 position) const { return zeros + (u64)position * stride; }
    DEVICE_MEMBER u32 next(u32 tile) const { return tile; }
};

DEVICE u64 key_of(f32 score, u32 point) { return (u64)ordered(score) << 32 | ~point; }
// Less than the key of any point.
#define NO_KEY ((u64)0x007fffffu << 32)

DEVICE u64 warp_larger(u64 key, u32 mask) {
    u64 high = warp_shuffle_xor((u32)(key >> 32), mask);
    u64 other = high << 32 | warp_shuffle_xor((u32)key, mask);
    return other > key ? other : key;
}

// A lane's points in a tile.
template <u32 FRAGMENTS>
struct TilePoints {
    u32 first;
    f32 scales[2 * FRAGMENTS];  // NaN, which beats nothing, where there is no point.
};

// Raises the best keys of this warp's rows by the scores of one tile of points.
template <u32 FRAGMENTS, u32 TILES, bool HAS_LIMIT>
DEVICE void raise(const AssignParams &p, const Part<Codes, FRAGMENTS, TILES> &part,
                  const TilePoints<FRAGMENTS> &points, u32 first_row, u64 *keys) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 column = 0; column < 2 * TILES; column++) {
        u32 kept = part.first_kept + column / 2 * 8 + 2 * (lane % 4) + column % 2;
        f32 threshold = from_ordered((u32)(keys[kept] >> 32)), best = -INFINITE;
        u64 limit = ~(u64)0;
        if (HAS_LIMIT && first_row + kept < p.wanted) limit = p.before[first_row + kept];
        u32 point = 0;
#pragma unroll
        for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
            i32 dot = part.totals[at / 2][column / 2][column % 2 + 2 * (at % 2)];
            f32 score = product((f32)dot, points.scales[at]);
            u32 number = points.first + 8 * at;
            bool is_better = score > best;
            if (HAS_LIMIT) is_better = is_better && key_of(score, number) < limit;
            best = is_better ? score : best;
            point = is_better ? number : point;
        }
        if (warp_ballot(best > threshold) == 0) continue;
        u64 key = best > threshold ? key_of(best, point) : 0;
        for (u32 mask = 4; mask < WARP; mask *= 2) key = warp_larger(key, mask);
        warp_barrier();
        if (lane < 4 && key > keys[kept]) keys[kept] = key;
    }
}

template <u32 KEPT, u32 FRAGMENTS, u32 TILES, u32 STAGES, bool HAS_LIMIT>
DEVICE void assign(const AssignParams &p) {
    const u32 across = KEPT / (8 * TILES), down = threads_in_block() / WARP / across;
    const u32 first_row = block_in_grid_y() * KEPT, count = smaller(KEPT, p.wanted - first_row);
    u8 *stages = shared_memory();
    u8 *kept = stages + STAGES * STAGE_BYTES;
    u64 *keys = (u64 *)(kept + KEPT * p.stride);  // [down][KEPT]
    for (u32 at = thread_in_block(); at < down * KEPT; at += threads_in_block()) keys[at] = NO_KEY;
    const ListedRows rows = {p, count, p.stride, p.point_codes, p.listed + first_row};
    const Points points = {p.points, p.stride, p.point_codes};
    bring_kept<KEPT>(rows, kept, 0);
    TilePoints<FRAGMENTS> lane_points;
    auto before = [&](const Part<Codes, FRAGMENTS, TILES> &part, u32 tile) {
        lane_points.first = tile * TILE_ROWS + part.first_row + thread_in_block() % WARP / 4;
#pragma unroll
        for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
            u32 point = lane_points.first + 8 * at;
            lane_points.scales[at] =
                point < p.points ? p.point_scales[point] : from_bits(0x7fc00000u);
        }
    };
    auto after = [&](const Part<Codes, FRAGMENTS, TILES> &part, u32) {
        u64 *own = keys + thread_in_block() / WARP / across * KEPT;
        raise<FRAGMENTS, TILES, HAS_LIMIT>(p, part, lane_points, first_row, own);
    };
    multiply_tiles<STAGES, KEPT, FRAGMENTS, TILES>(points, stages, kept, before, [] {}, after);
    block_barrier();
    if (thread_in_block() >= count) return;
    u64 best = NO_KEY;
    for (u32 part = 0; part < down; part++) {
        u64 key = keys[part * KEPT + thread_in_block()];
        best = key > best ? key : best;
    }
    if (best > NO_KEY) atomic_max(p.best + first_row + thread_in_block(), best);
}

KERNEL(256, 1) __global__ void assign_256(const AssignParams p) { assign<256, 4, 8, 3, false>(p); }
KERNEL(256, 1) __global__ void assign_128(const AssignParams p) { assign<128, 2, 8, 4, false>(p); }
KERNEL(256, 1) __global__ void assign_64(const AssignParams p) { assign<64, 1, 8, 4, false>(p); }
KERNEL(256, 1) __global__ void assign_32(const AssignParams p) { assign<32, 1, 4, 4, false>(p); }
KERNEL(256, 1) __global__ void assign_next_128(const AssignParams p) {
    assign<128, 2, 8, 4, true>(p);
}
KERNEL(256, 1) __global__ void assign_next_32(const AssignParams p) {
    assign<32, 1, 4, 4, true>(p);
}

LAUNCHABLE(assign_256)
LAUNCHABLE(assign_128)
LAUNCHABLE(assign_64)
LAUNCHABLE(assign_32)
LAUNCHABLE(assign_next_128)
LAUNCHABLE(assign_next_32)
