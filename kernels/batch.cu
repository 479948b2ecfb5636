// G2: which rows may be among the best k of many queries, by T1? A matrix product of codes in
// which no product leaves the registers unless it passes its query's threshold.
//
//   block   QUERIES queries stay in shared memory; tiles of 128 rows stream through STAGES buffers
//           of 128 x 64 bytes each (cp.async), chunk after chunk and tile after tile without a gap
//   warp    a part of 128 x QUERIES: its totals are in registers (mma m16n8k32, exact)
//   end of  a first test a product in three instructions, with the greatest residual of the
//   a tile  warp's rows; what passes takes the quick test of G1, and then its place in `found`
//
//   shared memory row of 64 bytes: unit u (16 bytes) of row r is at unit (r % 2) * 4 + (u ^ r / 2
//   % 4) of line r / 2: the eight rows of a matrix then lie in eight different groups of banks
//
// Kernels  batch_sample_N, batch_collect_N for N = 256, 128, 64, 32 queries a block
// Params   SearchParams (device.cuh); rows that do not pass the mask are not read
// Block    256 threads. Grid: y = queries / N, rounded up; x = as many as run at once, over y:
//          blocks of one x read the same rows at about the same time, so that they come once
//          from memory and then from the second cache.
// Shared   N * (stride + 16) + 8,192 * STAGES bytes (STAGES: 3 for N = 256, otherwise 4): take the
//          largest N that fits. H200 (227 KiB): 256 up to stride 768, 128 up to 1,472, 64 to 3,072.
// Does     2 * visited * stride * queries operations; moves visited * stride bytes a block of x.
//          1M x 384 x 1,024: 786 G. mma.sync reaches about 62 % of the 1,979 T of wgmma: .64 ms;
//          a warp's 64 x 64 tile asks 8 ldmatrix for 32 mma, so shared memory keeps pace (32
//          against 51 clocks). The tests cost 1,300 clocks a tile beside 4,900: .85 ms in all.

static const u32 BATCH_THREADS = 256;
static const u32 TILE_ROWS = 128;
static const u32 STAGE_BYTES = TILE_ROWS * CHUNK_BYTES;

// Where unit `unit` of row `row` lies in a stack of rows of 64 bytes.
DEVICE u32 swizzled(u32 row, u32 unit) {
    return row / 2 * 128 + (row % 2 * 4 + (unit ^ (row / 2 % 4))) * 16;
}

// Whether any of 128 rows passes. Only rows in order are told from the mask alone.
DEVICE bool has_passing(const SearchParams &p, u32 tile) {
    if (p.mask == nullptr || p.listed != nullptr || p.step != 1) return true;
    u32 first = tile * (TILE_ROWS / 32), words = divided_up(p.visited, 32), any = 0;
    for (u32 word = first; word < first + TILE_ROWS / 32 && word < words; word++) {
        any |= p.mask[word];
    }
    return any != 0;
}

// This block's next tile from `tile` on. A sampling pass leaves none out: all maxima are written.
template <bool SAMPLES>
DEVICE u32 next_tile(const SearchParams &p, u32 tile) {
    while (!SAMPLES && tile * TILE_ROWS < p.visited && !has_passing(p, tile)) {
        tile += blocks_in_grid();
    }
    return tile;
}

// Brings chunk after chunk of tile after tile to shared memory. A thread has one unit of two rows.
struct RowStream {
    u32 tile, chunk, stage;
    const i8 *rows[2];
    bool has[2];
};

template <bool SAMPLES>
DEVICE void begin_tile(const SearchParams &p, RowStream &stream, u32 tile) {
    stream.tile = next_tile<SAMPLES>(p, tile);
    stream.chunk = 0;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 position = stream.tile * TILE_ROWS + half * 64 + thread_in_block() / 4;
        u32 row = position < p.visited ? visited_row(p, position) : 0;
        stream.has[half] = position < p.visited && passes(p.mask, row);
        stream.rows[half] = p.codes + (u64)row * p.stride + thread_in_block() % 4 * 16;
    }
}

template <u32 STAGES, bool SAMPLES>
DEVICE void bring_next(const SearchParams &p, RowStream &stream, u8 *stages) {
    if (stream.tile * TILE_ROWS < p.visited) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 row = half * 64 + thread_in_block() / 4;
            u8 *to = stages + stream.stage * STAGE_BYTES + swizzled(row, thread_in_block() % 4);
            const i8 *from = stream.rows[half] + stream.chunk * CHUNK_BYTES;
            copy_async_16(to, stream.has[half] ? from : p.query_codes, stream.has[half]);
        }
        stream.stage = stream.stage + 1 == STAGES ? 0 : stream.stage + 1;
        stream.chunk++;
        if (stream.chunk * CHUNK_BYTES == p.stride) {
            begin_tile<SAMPLES>(p, stream, stream.tile + blocks_in_grid());
        }
    }
    copy_async_commit();
}

// What the first test needs of a query: dot * row scale + residual * per_residual >= floor.
struct alignas(8) FirstTest {
    f32 per_residual, floor;
};

// The part of a block's product that one warp has: FRAGMENTS x 16 rows by TILES x 8 queries.
template <u32 FRAGMENTS, u32 TILES>
struct Part {
    u32 first_row, first_query;
    i32 totals[FRAGMENTS][TILES][4];
};

// Adds the product of one chunk.
template <u32 FRAGMENTS, u32 TILES>
DEVICE void multiply_chunk(Part<FRAGMENTS, TILES> &part, const u8 *rows, const u8 *queries) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 step = 0; step < 2; step++) {
        u32 a[FRAGMENTS][4];
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS; at++) {
            u32 row = part.first_row + at * 16 + lane % 16;
            load_matrix_x4(a[at], rows + swizzled(row, step * 2 + lane / 16));
        }
#pragma unroll
        for (u32 pair = 0; pair < TILES / 2; pair++) {
            u32 query = part.first_query + pair * 16 + lane / 16 * 8 + lane % 8, b[4];
            load_matrix_x4(b, queries + swizzled(query, step * 2 + lane / 8 % 2));
#pragma unroll
            for (u32 at = 0; at < FRAGMENTS; at++) {
                mma_s8_16x8x32(part.totals[at][2 * pair], a[at], b[0], b[1]);
                mma_s8_16x8x32(part.totals[at][2 * pair + 1], a[at], b[2], b[3]);
            }
        }
    }
}

// A lane's rows of a tile: two a fragment.
template <u32 FRAGMENTS>
struct TileRows {
    u32 first;  // Position of the first; 8 to the next.
    f32 scales[2 * FRAGMENTS];
    f32 residuals[2 * FRAGMENTS];
};

template <u32 FRAGMENTS>
DEVICE bool is_wanted(const SearchParams &p, const TileRows<FRAGMENTS> &rows, u32 at, u32 &row) {
    u32 position = rows.first + 8 * at;
    if (position >= p.visited) return false;
    row = visited_row(p, position);
    return passes(p.mask, row);
}

template <u32 FRAGMENTS>
DEVICE TileRows<FRAGMENTS> tile_rows(const SearchParams &p, u32 first) {
    TileRows<FRAGMENTS> rows;
    rows.first = first;
#pragma unroll
    for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
        u32 position = first + 8 * at;
        u32 row = visited_row(p, position < p.visited ? position : 0);
        rows.scales[at] = p.scales[row];
        rows.residuals[at] = p.residuals[row];
    }
    return rows;
}

// The best lower bound of each 16 rows and query to `maxima`.
template <u32 FRAGMENTS, u32 TILES>
DEVICE void keep_maxima(const SearchParams &p, const Part<FRAGMENTS, TILES> &part,
                        const TileRows<FRAGMENTS> &rows, u32 first_query) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 column = 0; column < 2 * TILES; column++) {
        u32 query = first_query + column / 2 * 8 + 2 * (lane % 4) + column % 2;
        bool is_query = query < p.queries;
        QueryFactors factors = is_query ? p.query_factors[query] : QueryFactors{0, 0, 0, 0};
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS; at++) {
            f32 best = -INFINITE;
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 own = 2 * at + half, row;
                i32 dot = part.totals[at][column / 2][column % 2 + 2 * half];
                f32 lower = quick_lower(dot, rows.scales[own], rows.residuals[own], factors);
                best = is_wanted(p, rows, own, row) ? larger(best, lower) : best;
            }
            for (u32 mask = 4; mask < WARP; mask *= 2) {
                best = larger(best, warp_shuffle_xor(best, mask));
            }
            u32 group = (rows.first - lane / 4) / GROUP_ROWS + at;
            if (lane < 4 && is_query && group < p.groups) {
                p.maxima[(u64)query * p.groups + group] = best;
            }
        }
    }
}

DEVICE void append(const SearchParams &p, u32 query, u32 row, i32 dot) {
    u32 place = atomic_add(&p.counts[query], 1);
    if (place < p.capacity) p.found[(u64)query * p.capacity + place] = FoundRow{row, dot};
}

// Tests every product of a tile, and appends what passes.
template <u32 FRAGMENTS, u32 TILES>
DEVICE void collect(const SearchParams &p, const Part<FRAGMENTS, TILES> &part,
                    const TileRows<FRAGMENTS> &rows, const FirstTest *tests, u32 first_query) {
    const u32 lane = thread_in_block() % WARP;
    f32 residual = 0;
#pragma unroll
    for (u32 at = 0; at < 2 * FRAGMENTS; at++) residual = larger(residual, rows.residuals[at]);
#pragma unroll
    for (u32 mask = 4; mask < WARP; mask *= 2) {
        residual = larger(residual, warp_shuffle_xor(residual, mask));
    }
#pragma unroll
    for (u32 column = 0; column < 2 * TILES; column++) {
        u32 place = column / 2 * 8 + 2 * (lane % 4) + column % 2;
        FirstTest test = tests[part.first_query + place];
        f32 rest = residual * test.per_residual - test.floor;
        u32 signs = ~0u;
#pragma unroll
        for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
            i32 dot = part.totals[at / 2][column / 2][column % 2 + 2 * (at % 2)];
            signs &= bits_of(fused((f32)dot, rows.scales[at], rest));
        }
        if (signs >> 31 != 0) continue;
        u32 query = first_query + place;
        f32 threshold = p.thresholds[query];
        QueryFactors factors = p.query_factors[query];
#pragma unroll
        for (u32 at = 0; at < 2 * FRAGMENTS; at++) {
            i32 dot = part.totals[at / 2][column / 2][column % 2 + 2 * (at % 2)];
            u32 row;
            f32 upper = quick_upper(dot, rows.scales[at], rows.residuals[at], factors);
            if (upper >= threshold && is_wanted(p, rows, at, row)) append(p, query, row, dot);
        }
    }
}

// The first test of each query of the block; one that nothing passes where there is no query.
template <u32 QUERIES>
DEVICE void place_tests(const SearchParams &p, FirstTest *tests, u32 first_query) {
    for (u32 at = thread_in_block(); at < QUERIES; at += BATCH_THREADS) {
        FirstTest test = {0, INFINITE};
        if (first_query + at < p.queries) {
            QueryFactors factors = p.query_factors[first_query + at];
            f32 scale = factors.scale > 0 ? factors.scale : 1;
            f32 floor = p.thresholds[first_query + at] - factors.constant - 2 * SLACK;
            test = FirstTest{factors.per_residual / scale, floor / scale};
        }
        tests[at] = test;
    }
}

template <u32 QUERIES>
DEVICE void bring_queries(const SearchParams &p, u8 *shared, u32 first_query) {
    u32 units = QUERIES * (p.stride / 16);
    for (u32 unit = thread_in_block(); unit < units; unit += BATCH_THREADS) {
        u32 chunk = unit / (4 * QUERIES), at = unit / 4 % QUERIES, query = first_query + at;
        u64 from = (u64)query * p.stride + chunk * CHUNK_BYTES + unit % 4 * 16;
        u8 *to = shared + chunk * QUERIES * CHUNK_BYTES + swizzled(at, unit % 4);
        bool has = query < p.queries;
        copy_async_16(to, has ? p.query_codes + from : p.query_codes, has);
    }
}

template <u32 QUERIES, u32 FRAGMENTS, u32 TILES, u32 STAGES, bool SAMPLES>
DEVICE void batch(const SearchParams &p) {
    const u32 lane = thread_in_block() % WARP, warp = thread_in_block() / WARP;
    const u32 across = QUERIES / (8 * TILES), chunks = p.stride / CHUNK_BYTES;
    const u32 first_query = block_in_grid_y() * QUERIES;
    u8 *stages = shared_memory();
    u8 *queries = stages + STAGES * STAGE_BYTES;
    FirstTest *tests = (FirstTest *)(queries + QUERIES * p.stride);
    Part<FRAGMENTS, TILES> part;
    part.first_row = warp / across * 16 * FRAGMENTS;
    part.first_query = warp % across * 8 * TILES;
    RowStream stream;
    stream.stage = 0;
    begin_tile<SAMPLES>(p, stream, block_in_grid());
    u32 tile = stream.tile, stage = 0;
    bring_queries<QUERIES>(p, queries, first_query);
    if (!SAMPLES) place_tests<QUERIES>(p, tests, first_query);
#pragma unroll
    for (u32 at = 0; at + 1 < STAGES; at++) bring_next<STAGES, SAMPLES>(p, stream, stages);
    for (; tile * TILE_ROWS < p.visited;
         tile = next_tile<SAMPLES>(p, tile + blocks_in_grid())) {
        u32 first_row = tile * TILE_ROWS + part.first_row + lane / 4;
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS * TILES * 4; at++) {
            part.totals[at / 4 / TILES][at / 4 % TILES][at % 4] = 0;
        }
        TileRows<FRAGMENTS> rows = tile_rows<FRAGMENTS>(p, first_row);
        for (u32 chunk = 0; chunk < chunks; chunk++) {
            copy_async_wait<STAGES - 2>();
            block_barrier();
            bring_next<STAGES, SAMPLES>(p, stream, stages);
            multiply_chunk(part, stages + stage * STAGE_BYTES,
                           queries + chunk * QUERIES * CHUNK_BYTES);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        if (SAMPLES) {
            keep_maxima(p, part, rows, first_query + part.first_query);
        } else {
            collect(p, part, rows, tests, first_query + part.first_query);
        }
    }
    copy_async_wait<0>();
}

KERNEL(256, 1) __global__ void batch_sample_256(const SearchParams p) {
    batch<256, 4, 8, 3, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_256(const SearchParams p) {
    batch<256, 4, 8, 3, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_128(const SearchParams p) {
    batch<128, 2, 8, 4, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_128(const SearchParams p) {
    batch<128, 2, 8, 4, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_64(const SearchParams p) {
    batch<64, 1, 8, 4, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_64(const SearchParams p) {
    batch<64, 1, 8, 4, false>(p);
}
KERNEL(256, 1) __global__ void batch_sample_32(const SearchParams p) {
    batch<32, 1, 4, 4, true>(p);
}
KERNEL(256, 1) __global__ void batch_collect_32(const SearchParams p) {
    batch<32, 1, 4, 4, false>(p);
}

LAUNCHABLE(batch_sample_256)
LAUNCHABLE(batch_collect_256)
LAUNCHABLE(batch_sample_128)
LAUNCHABLE(batch_collect_128)
LAUNCHABLE(batch_sample_64)
LAUNCHABLE(batch_collect_64)
LAUNCHABLE(batch_sample_32)
LAUNCHABLE(batch_collect_32)
