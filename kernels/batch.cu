// Finds the rows that may be among the best k of many queries, by T1 or by T2 as f16. A matrix
// product whose elements never leave the registers unless they pass their query's threshold.
//
// Queries are kept, rows stream (product.cuh). At the end of a tile, each element gets a first test
// of three instructions that assumes the greatest residual of the warp's rows; those that pass are
// tested again with their own row's residual, and take a place in shared memory. Once some hundred
// places are taken, all threads write them to `found` together: writing each hit by itself would
// make its warp wait for an atomic, and a tile has dozens of hits.
//
// Kernels  batch_sample_N, batch_collect_N for N = 256, 128, 64, 32 queries a block, over codes;
//          batch_sample_f16_N, batch_collect_f16_N over rows of f16;
//          batch_sample_by_warpgroup_N, batch_collect_by_warpgroup_N for N = 256, 128 over codes:
//          on Hopper, two blocks per multiprocessor take turns with products and tests
// Params   SearchParams (device.cuh); rows that do not pass the mask are not read
// Launcher src/compute/src/cuda/batch.rs
// Block    256 threads, by warpgroup 128. Grid: y = queries / N, rounded up; x = as many blocks as
//          run at once, divided by y. Blocks with equal x read the same rows at about the same
//          time, so the rows come from memory once and then from the L2 cache.
// Shared   N * (stride + 8) + 64 * ROWS * STAGES + 16 + 12 * PLACES bytes (ROWS 128, STAGES and
//          PLACES 3 and 512 for N = 256, otherwise 4 and 192; by warpgroup ROWS 64, 3, 192): choose
//          the largest N that fits. H200 (227 KiB): 256 up to stride 768, 128 up to 1,472, 64 to
//          3,072; by warpgroup, so that two blocks fit, 256 up to 384 and 128 up to 768.
// Does     2 * visited * stride * queries operations; reads visited * stride bytes per N queries.
// Time     measured on an H200, 1M x 384: 256 queries .30 ms, 1,024 1.08 ms (728 T operations a
//          second), by warpgroup; 64 queries .20 ms by mma. A sample of 15,625 rows takes .05 ms.
// Built    ptxas 13.0 for sm_90a, no spills: 238 and 228 registers for 256 queries, 158 and 137 for
//          128, 108 and 95 for 64, 77 and 80 for 32; by warpgroup 186 and 200, 122 and 127.

// The rows of a search. A sampling pass skips no tile, because it writes every maximum.
template <class RowNumbers, u32 ROWS, bool SAMPLES>
struct SearchedRows {
    typedef RowNumbers Numbers;
    const SearchParams &p;
    u32 count, stride;
    const i8 *zeros;

    DEVICE_MEMBER const i8 *codes(u32 position) const {
        u32 row = visited_row(p, position);
        return passes(p.mask, row) ? p.codes + (u64)row * stride : nullptr;
    }
    // Whether any row of a tile passes. Only rows in order can be judged by the mask alone.
    DEVICE_MEMBER bool has_passing(u32 tile) const {
        if (SAMPLES || p.mask == nullptr || p.listed != nullptr || p.step != 1) return true;
        u32 first = tile * (ROWS / 32), words = divided_up(count, 32), any = 0;
        for (u32 word = first; word < first + ROWS / 32 && word < words; word++) {
            any |= p.mask[word];
        }
        return any != 0;
    }
    DEVICE_MEMBER u32 next(u32 tile) const {
        while (tile * ROWS < count && !has_passing(tile)) tile += blocks_in_grid();
        return tile;
    }
};

struct Queries {
    const SearchParams &p;
    u32 count, stride;
    const i8 *zeros;
    DEVICE_MEMBER const i8 *codes(u32 position) const {
        return p.query_codes + (u64)position * stride;
    }
};

// First test of a query: dot * row scale + residual * per_residual >= threshold.
struct alignas(8) FirstTest {
    f32 per_residual, threshold;
};
// The tests of two neighbouring queries.
struct alignas(16) FirstTests {
    FirstTest of[2];
};

// A lane's rows in a tile: two per fragment.
template <u32 FRAGMENTS>
struct TileRows {
    u32 first;   // Position of the first; 8 to the next.
    u32 wanted;  // A bit for each that is a row and passes.
    f32 scales[2 * FRAGMENTS];
    f32 residuals[2 * FRAGMENTS];
};

template <u32 FRAGMENTS>
DEVICE TileRows<FRAGMENTS> tile_rows(const SearchParams &p, u32 first) {
    TileRows<FRAGMENTS> rows;
    rows.first = first;
    rows.wanted = 0;
#pragma unroll
    for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
        u32 position = first + 8 * at;
        u32 row = visited_row(p, position < p.visited ? position : 0);
        bool is_wanted = position < p.visited && passes(p.mask, row);
        rows.wanted |= (u32)is_wanted << at;
        rows.scales[at] = p.scales[row];
        rows.residuals[at] = p.residuals[row];
    }
    return rows;
}

// The maximum of each of eight values over the eight lanes that differ in `lane / 4`: lane 4i + t
// returns that of value i. Each round halves the number of values, sending half and keeping half.
DEVICE f32 largest_of_eight(f32 (&values)[8]) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 half = 4; half > 0; half /= 2) {
        const bool is_upper = (lane & 4 * half) != 0;
#pragma unroll
        for (u32 at = 0; at < half; at++) {
            f32 sent = is_upper ? values[at] : values[at + half];
            f32 own = is_upper ? values[at + half] : values[at];
            values[at] = larger(own, warp_shuffle_xor(sent, 4 * half));
        }
    }
    return values[0];
}

// Writes the best lower bound of each 16 rows and query to `maxima`.
template <class Numbers, u32 FRAGMENTS, u32 TILES>
DEVICE void keep_maxima(const SearchParams &p, const Part<Numbers, FRAGMENTS, TILES> &part,
                        const TileRows<FRAGMENTS> &rows, u32 first_query) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile += 4) {
        QueryFactors factors[8];
#pragma unroll
        for (u32 at = 0; at < 8; at++) {
            u32 query = first_query + (tile + at / 2) * 8 + 2 * (lane % 4) + at % 2;
            bool is_query = query < p.queries;
            factors[at] = is_query ? p.query_factors[query] : QueryFactors{0, 0, 0, 0};
        }
        // The one of the eight queries whose maximum this lane writes.
        const u32 query = first_query + (tile + lane / 8) * 8 + 2 * (lane % 4) + lane / 4 % 2;
#pragma unroll
        for (u32 fragment = 0; fragment < FRAGMENTS; fragment++) {
            f32 best[8];
#pragma unroll
            for (u32 at = 0; at < 8; at++) {
                best[at] = -INFINITE;
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    u32 own = 2 * fragment + half;
                    f32 dot = (f32)part.totals[fragment][tile + at / 2][at % 2 + 2 * half];
                    f32 scale = rows.scales[own], residual = rows.residuals[own];
                    f32 lower = quick_lower(dot, scale, residual, factors[at]);
                    best[at] = (rows.wanted >> own & 1) != 0 ? larger(best[at], lower) : best[at];
                }
            }
            f32 largest = largest_of_eight(best);
            u32 group = (rows.first - lane / 4) / GROUP_ROWS + fragment;
            if (query < p.queries && group < p.groups) {
                p.maxima[(u64)query * p.groups + group] = largest;
            }
        }
    }
}

// A product that passed both tests.
struct Hit {
    u32 query, position;
    i32 dot;
};

template <u32 PLACES>
struct Hits {
    u32 count;  // May exceed PLACES: what found no place went to `found` at once.
    u32 unused[3];
    Hit places[PLACES];
};

DEVICE void append(const SearchParams &p, const Hit &hit) {
    u32 place = atomic_add(&p.counts[hit.query], 1);
    if (place >= p.capacity) return;
    FoundRow row = {visited_row(p, hit.position), hit.dot};
    p.found[(u64)hit.query * p.capacity + place] = row;
}

template <u32 PLACES>
DEVICE void keep(const SearchParams &p, Hits<PLACES> *hits, const Hit &hit) {
    u32 place = atomic_add(&hits->count, 1);
    if (place < PLACES) {
        hits->places[place] = hit;
    } else {
        append(p, hit);
    }
}

// Writes out the hits if there are at least `least`. Called by all threads, after a barrier that
// follows the last `keep`.
template <u32 PLACES>
DEVICE void flush(const SearchParams &p, Hits<PLACES> *hits, u32 least) {
    const u32 count = smaller(hits->count, PLACES);
    // No thread may keep a hit before all have read the count; with one chunk per row, there is no
    // other barrier in between.
    if (count >= least || p.stride == CHUNK_BYTES) block_barrier();
    if (count < least) return;
    if (thread_in_block() == 0) hits->count = 0;
    for (u32 at = thread_in_block(); at < count; at += threads_in_block()) {
        append(p, hits->places[at]);
    }
    block_barrier();
}

// Tests every product of a tile, and keeps those that pass. The first tests of sixteen products are
// combined without a branch.
template <class Numbers, u32 FRAGMENTS, u32 TILES, u32 PLACES>
DEVICE void collect(const SearchParams &p, const Part<Numbers, FRAGMENTS, TILES> &part,
                    const TileRows<FRAGMENTS> &rows, const FirstTest *tests,
                    Hits<PLACES> *all_hits, u32 first_query) {
    const u32 lane = thread_in_block() % WARP, ROWS = 2 * FRAGMENTS, TOGETHER = 4 / FRAGMENTS;
    f32 residual = 0;
#pragma unroll
    for (u32 at = 0; at < ROWS; at++) residual = larger(residual, rows.residuals[at]);
#pragma unroll
    for (u32 mask = 4; mask < WARP; mask *= 2) {
        residual = larger(residual, warp_shuffle_xor(residual, mask));
    }
#pragma unroll
    for (u32 first = 0; first < TILES; first += TOGETHER) {
        FirstTests own[TOGETHER];
        u32 signs = ~0u;
#pragma unroll
        for (u32 tile = 0; tile < TOGETHER; tile++) {
            u32 place = part.first_kept + (first + tile) * 8 + 2 * (lane % 4);
            own[tile] = *(const FirstTests *)(tests + place);
#pragma unroll
            for (u32 column = 0; column < 2; column++) {
                const FirstTest &test = own[tile].of[column];
                f32 rest = residual * test.per_residual - test.threshold;
#pragma unroll
                for (u32 at = 0; at < ROWS; at++) {
                    f32 dot = (f32)part.totals[at / 2][first + tile][column + 2 * (at % 2)];
                    signs &= bits_of(fused(dot, rows.scales[at], rest));
                }
            }
        }
        if (signs >> 31 != 0) continue;
        u32 hits = 0;
        i32 dots[16];
#pragma unroll
        for (u32 product = 0; product < 16; product++) {
            u32 at = product % ROWS, column = product / ROWS % 2, tile = product / ROWS / 2;
            auto dot = part.totals[at / 2][first + tile][column + 2 * (at % 2)];
            const FirstTest &test = own[tile].of[column];
            f32 rest = rows.residuals[at] * test.per_residual - test.threshold;
            bool is_hit = fused((f32)dot, rows.scales[at], rest) >= 0;
            hits |= (u32)(is_hit && (rows.wanted >> at & 1) != 0) << product;
            dots[product] = kept_bits(dot);
        }
        for (; hits != 0; hits &= hits - 1) {
            u32 product = lowest_bit(hits);
            i32 dot = 0;
#pragma unroll
            for (u32 at = 0; at < 16; at++) dot = at == product ? dots[at] : dot;
            u32 at = product % ROWS, column = product / ROWS % 2, tile = product / ROWS / 2;
            u32 query = first_query + (first + tile) * 8 + 2 * (lane % 4) + column;
            keep(p, all_hits, Hit{query, rows.first + 8 * at, dot});
        }
    }
}

// Computes the first test of each query of the block; one that never passes where there is none.
template <u32 QUERIES>
DEVICE void place_tests(const SearchParams &p, FirstTest *tests, u32 first_query) {
    for (u32 at = thread_in_block(); at < QUERIES; at += threads_in_block()) {
        FirstTest test = {0, INFINITE};
        if (first_query + at < p.queries) {
            QueryFactors factors = p.query_factors[first_query + at];
            f32 scale = factors.scale > 0 ? factors.scale : 1;
            f32 threshold = p.thresholds[first_query + at] - factors.constant - 2 * SLACK;
            test = FirstTest{factors.per_residual / scale, threshold / scale};
        }
        tests[at] = test;
    }
}

// The state of a block beside the product.
template <class Numbers, u32 ROWS, u32 QUERIES, u32 FRAGMENTS, u32 TILES, u32 STAGES, u32 PLACES,
          bool SAMPLES>
struct Batch {
    const SearchParams &p;
    u32 first_query;
    u8 *stages, *kept;
    Hits<PLACES> *hits;
    FirstTest *tests;
    TileRows<FRAGMENTS> rows;
    typedef Part<Numbers, FRAGMENTS, TILES> OwnPart;

    DEVICE_MEMBER explicit Batch(const SearchParams &params) : p(params) {
        first_query = block_in_grid_y() * QUERIES;
        stages = shared_memory();
        kept = stages + STAGES * ROWS * CHUNK_BYTES;
        hits = (Hits<PLACES> *)(kept + QUERIES * p.stride);
        tests = (FirstTest *)(hits + 1);
        if (thread_in_block() == 0) hits->count = 0;
        bring_kept<QUERIES>(Queries{p, p.queries, p.stride, p.query_codes}, kept, first_query);
        if (!SAMPLES) place_tests<QUERIES>(p, tests, first_query);
    }
    DEVICE_MEMBER SearchedRows<Numbers, ROWS, SAMPLES> source() const {
        return {p, p.visited, p.stride, p.query_codes};
    }
    DEVICE_MEMBER void before(const OwnPart &part, u32 tile) {
        u32 first = tile * ROWS + part.first_row + thread_in_block() % WARP / 4;
        rows = tile_rows<FRAGMENTS>(p, first);
    }
    DEVICE_MEMBER void between() const {
        if (!SAMPLES) flush(p, hits, PLACES / 2);
    }
    DEVICE_MEMBER void after(const OwnPart &part) const {
        if (SAMPLES) {
            keep_maxima(p, part, rows, first_query + part.first_kept);
        } else {
            collect(p, part, rows, tests, hits, first_query + part.first_kept);
        }
    }
    DEVICE_MEMBER void end() const {
        block_barrier();
        if (!SAMPLES) flush(p, hits, 1);
    }
};

template <class Numbers, u32 QUERIES, u32 FRAGMENTS, u32 TILES, u32 STAGES, bool SAMPLES>
DEVICE void batch(const SearchParams &p) {
    // One hit in a thousand products fills half of the places in some tiles.
    const u32 places = QUERIES == 256 ? 512 : 192;
    Batch<Numbers, TILE_ROWS, QUERIES, FRAGMENTS, TILES, STAGES, places, SAMPLES> own(p);
    auto before = [&](const Part<Numbers, FRAGMENTS, TILES> &part, u32 tile) {
        own.before(part, tile);
    };
    auto between = [&] { own.between(); };
    auto after = [&](const Part<Numbers, FRAGMENTS, TILES> &part, u32) { own.after(part); };
    multiply_tiles<STAGES, QUERIES, FRAGMENTS, TILES>(own.source(), own.stages, own.kept, before,
                                                      between, after);
    own.end();
}

#ifdef WARPGROUPS
template <u32 QUERIES, bool SAMPLES>
DEVICE void batch_by_warpgroup(const SearchParams &p) {
    const u32 tiles = QUERIES / 8, stages = 3, places = 192;
    Batch<Codes, WARPGROUP_ROWS, QUERIES, 1, tiles, stages, places, SAMPLES> own(p);
    auto before = [&](const Part<Codes, 1, tiles> &part, u32 tile) { own.before(part, tile); };
    auto between = [&] { own.between(); };
    auto after = [&](const Part<Codes, 1, tiles> &part, u32) { own.after(part); };
    multiply_tiles_by_warpgroup<stages, QUERIES>(own.source(), own.stages, own.kept, before,
                                                 between, after);
    own.end();
}

KERNEL(128, 2) __global__ void batch_sample_by_warpgroup_256(const SearchParams p) {
    batch_by_warpgroup<256, true>(p);
}
KERNEL(128, 2) __global__ void batch_collect_by_warpgroup_256(const SearchParams p) {
    batch_by_warpgroup<256, false>(p);
}
KERNEL(128, 2) __global__ void batch_sample_by_warpgroup_128(const SearchParams p) {
    batch_by_warpgroup<128, true>(p);
}
KERNEL(128, 2) __global__ void batch_collect_by_warpgroup_128(const SearchParams p) {
    batch_by_warpgroup<128, false>(p);
}
LAUNCHABLE(batch_sample_by_warpgroup_256)
LAUNCHABLE(batch_collect_by_warpgroup_256)
LAUNCHABLE(batch_sample_by_warpgroup_128)
LAUNCHABLE(batch_collect_by_warpgroup_128)
#endif

KERNEL(256, 1) __global__ void batch_sample_256(const SearchParams p) {
    batch<Codes, 256, 4, 8, 3, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_256(const SearchParams p) {
    batch<Codes, 256, 4, 8, 3, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_128(const SearchParams p) {
    batch<Codes, 128, 2, 8, 4, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_128(const SearchParams p) {
    batch<Codes, 128, 2, 8, 4, false>(p);
}
KERNEL(256, 2) __global__ void batch_sample_64(const SearchParams p) {
    batch<Codes, 64, 1, 8, 4, true>(p);
}
KERNEL(256, 2) __global__ void batch_collect_64(const SearchParams p) {
    batch<Codes, 64, 1, 8, 4, false>(p);
}
KERNEL(256, 2) __global__ void batch_sample_32(const SearchParams p) {
    batch<Codes, 32, 1, 4, 4, true>(p);
}
KERNEL(256, 2) __global__ void batch_collect_32(const SearchParams p) {
    batch<Codes, 32, 1, 4, 4, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_f16_256(const SearchParams p) {
    batch<Halves, 256, 4, 8, 3, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_f16_256(const SearchParams p) {
    batch<Halves, 256, 4, 8, 3, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_f16_128(const SearchParams p) {
    batch<Halves, 128, 2, 8, 4, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_f16_128(const SearchParams p) {
    batch<Halves, 128, 2, 8, 4, false>(p);
}
KERNEL(256, 2) __global__ void batch_sample_f16_64(const SearchParams p) {
    batch<Halves, 64, 1, 8, 4, true>(p);
}
KERNEL(256, 2) __global__ void batch_collect_f16_64(const SearchParams p) {
    batch<Halves, 64, 1, 8, 4, false>(p);
}
KERNEL(256, 2) __global__ void batch_sample_f16_32(const SearchParams p) {
    batch<Halves, 32, 1, 4, 4, true>(p);
}
KERNEL(256, 2) __global__ void batch_collect_f16_32(const SearchParams p) {
    batch<Halves, 32, 1, 4, 4, false>(p);
}
LAUNCHABLE(batch_sample_256)
LAUNCHABLE(batch_collect_256)
LAUNCHABLE(batch_sample_128)
LAUNCHABLE(batch_collect_128)
LAUNCHABLE(batch_sample_64)
LAUNCHABLE(batch_collect_64)
LAUNCHABLE(batch_sample_32)
LAUNCHABLE(batch_collect_32)
LAUNCHABLE(batch_sample_f16_256)
LAUNCHABLE(batch_collect_f16_256)
LAUNCHABLE(batch_sample_f16_128)
LAUNCHABLE(batch_collect_f16_128)
LAUNCHABLE(batch_sample_f16_64)
LAUNCHABLE(batch_collect_f16_64)
LAUNCHABLE(batch_sample_f16_32)
LAUNCHABLE(batch_collect_f16_32)
