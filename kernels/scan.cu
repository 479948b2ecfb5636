// Finds the rows that may be among the best k of a few queries, by T1 or by T2 as f16, in one
// pass over the rows.
//
// Rows go straight from memory into tensor core fragments, 16 rows by 64 bytes a step. A product of
// codes may be summed in any order, so the 16 bytes that a lane loads at once serve as words 0 and
// 4, then 1 and 5 of the fragment, and the queries' words are arranged to match. Eight queries cost
// the same arithmetic as one; memory bandwidth is the limit.
//
//   lane 4g + t   rows g and g + 8 of a tile of 16, bytes 16t .. 16t + 16 of each chunk of 64
//   shared        queries as [chunk][query][64 bytes]: a warp loads 512 consecutive bytes
//
// Kernels  scan_sample_N, scan_collect_N for up to N = 8 or 16 queries over i8 codes;
//          scan_sample_f16_N, scan_collect_f16_N over rows of f16: twice the bytes, bounds a tenth
//          as wide
// Params   SearchParams (device.cuh)
// Launcher src/compute/src/cuda/scan.rs
// Block    256 threads. Grid: any x; best as many blocks as run at once (2 per multiprocessor).
//          Shared: N * stride bytes. Limits: stride <= 227 KiB / N.
// Moves    visited * (stride + 8) bytes. 1M x 384: 392 MB, 91 us at 4.3 TB/s. In flight per
//          multiprocessor: 16 warps x 12 loads x 512 bytes = 96 KiB, four times what latency needs.
// Time     measured on an H200, 1 query over 1M x 384: collect 96.6 us (4.06 TB/s), sample of one
//          row in 64 6.1, select_threshold 6.0, select_candidates 8.5; the whole search .125 ms
//          from host to host, .96 ms at 10M.
// Built    ptxas 13.0 for sm_90, no spills: 90 and 96 registers for 8 queries, 108 and 116 for 16.
// Exact    Products of codes are exact in i32; those of halves are f32 sums in an order that the
//          hardware chooses (the bound includes their error: src/compute/src/cuda/numbers.rs). The
//          quick test may pass rows by up to SLACK too many, never too few; select.cu decides.

static const u32 SCAN_THREADS = 256;
// Chunks whose loads are in flight together: all of a 384-byte row.
static const u32 SCAN_AHEAD = 6;

// One of the two rows that a lane reads from a tile.
struct ScannedRow {
    const i8 *codes;
    u32 row;
    f32 scale, residual;
    bool is_wanted;
};

DEVICE ScannedRow scanned_row(const SearchParams &p, u32 position, u32 word) {
    ScannedRow at = {p.codes, 0, 0, 0, position < p.visited};
    if (at.is_wanted) {
        at.row = visited_row(p, position);
        at.is_wanted = passes(p.mask, at.row);
    }
    if (at.is_wanted) {
        at.codes = p.codes + (u64)at.row * p.stride + 16 * word;
        at.scale = p.scales[at.row];
        at.residual = p.residuals[at.row];
    }
    return at;
}

// Copies the queries to shared memory, padded with zeros.
template <u32 TILES>
DEVICE void place_queries(const SearchParams &p, Words4 *shared) {
    u32 units = TILES * 8 * (p.stride / 16);
    for (u32 unit = thread_in_block(); unit < units; unit += SCAN_THREADS) {
        u32 query = unit / 4 % (8 * TILES), chunk = unit / (32 * TILES);
        u64 from = (u64)query * p.stride + chunk * CHUNK_BYTES + unit % 4 * 16;
        shared[unit] = load_streaming_16(p.query_codes + from, query < p.queries);
    }
    block_barrier();
}

// Multiplies two rows by all queries.
template <class Numbers, u32 TILES>
DEVICE void multiply_rows(const SearchParams &p, const Words4 *shared, const ScannedRow (&rows)[2],
                          typename Numbers::Total (&totals)[TILES][4]) {
    const u32 lane = thread_in_block() % WARP, chunks = p.stride / CHUNK_BYTES;
    for (u32 first = 0; first < chunks; first += SCAN_AHEAD) {
        Words4 low[SCAN_AHEAD], high[SCAN_AHEAD];
#pragma unroll
        for (u32 ahead = 0; ahead < SCAN_AHEAD; ahead++) {
            bool has = first + ahead < chunks;
            u64 offset = (u64)(first + ahead) * CHUNK_BYTES;
            low[ahead] = load_streaming_16(rows[0].codes + offset, has && rows[0].is_wanted);
            high[ahead] = load_streaming_16(rows[1].codes + offset, has && rows[1].is_wanted);
        }
#pragma unroll
        for (u32 ahead = 0; ahead < SCAN_AHEAD; ahead++) {
            if (first + ahead >= chunks) break;
            const Words4 &a = low[ahead], &b = high[ahead];
            const u32 even[4] = {a.x, b.x, a.y, b.y}, odd[4] = {a.z, b.z, a.w, b.w};
            const Words4 *queries = shared + (first + ahead) * TILES * 32 + lane;
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) {
                Words4 query = queries[tile * 32];
                Numbers::multiply(totals[tile], even, query.x, query.y);
                Numbers::multiply(totals[tile], odd, query.z, query.w);
            }
        }
    }
}

// Appends the rows that pass. The eight lanes that share a query reserve their places with a single
// atomic.
DEVICE void append(const SearchParams &p, bool passes, u32 query, u32 row, i32 dot) {
    u32 votes = warp_ballot(passes);
    if (votes == 0) return;
    u32 lane = thread_in_block() % WARP;
    u32 own = votes & (0x11111111u << (lane % 4));
    u32 leader = own == 0 ? lane : lowest_bit(own), first = 0;
    if (passes && lane == leader) first = atomic_add(&p.counts[query], population(own));
    first = warp_shuffle(first, leader);
    u32 place = first + population(own & ((1u << lane) - 1));
    if (passes && place < p.capacity) {
        p.found[(u64)query * p.capacity + place] = FoundRow{row, dot};
    }
}

template <class Numbers, u32 TILES, bool SAMPLES>
DEVICE void scan(const SearchParams &p) {
    Words4 *shared = (Words4 *)shared_memory();
    place_queries<TILES>(p, shared);
    const u32 lane = thread_in_block() % WARP, group = lane / 4, word = lane % 4;
    QueryFactors factors[TILES][2];
    f32 thresholds[TILES][2];
#pragma unroll
    for (u32 at = 0; at < 2 * TILES; at++) {
        u32 query = at / 2 * 8 + 2 * word + at % 2;
        bool is_query = query < p.queries;
        factors[at / 2][at % 2] = is_query ? p.query_factors[query] : QueryFactors{0, 0, 0, 0};
        thresholds[at / 2][at % 2] = !SAMPLES && is_query ? p.thresholds[query] : INFINITE;
    }
    const u32 tiles = divided_up(p.visited, GROUP_ROWS), warps = SCAN_THREADS / WARP;
    for (u32 tile = block_in_grid() * warps + thread_in_block() / WARP; tile < tiles;
         tile += blocks_in_grid() * warps) {
        const ScannedRow rows[2] = {scanned_row(p, tile * GROUP_ROWS + group, word),
                                    scanned_row(p, tile * GROUP_ROWS + group + 8, word)};
        bool is_wanted = rows[0].is_wanted || rows[1].is_wanted;
        bool has_rows = p.mask == nullptr || warp_ballot(is_wanted) != 0;
        if (!SAMPLES && !has_rows) continue;
        typename Numbers::Total totals[TILES][4] = {};
        if (has_rows) multiply_rows<Numbers, TILES>(p, shared, rows, totals);
        u32 passing = 0;
#pragma unroll
        for (u32 at = 0; at < 2 * TILES; at++) {
            const QueryFactors &query = factors[at / 2][at % 2];
            u32 number = at / 2 * 8 + 2 * word + at % 2;
            f32 best = -INFINITE;
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                const ScannedRow &row = rows[half];
                f32 dot = (f32)totals[at / 2][at % 2 + 2 * half];
                if (SAMPLES) {
                    f32 lower = quick_lower(dot, row.scale, row.residual, query);
                    best = row.is_wanted ? larger(best, lower) : best;
                } else {
                    f32 upper = quick_upper(dot, row.scale, row.residual, query);
                    bool is_hit = row.is_wanted && upper >= thresholds[at / 2][at % 2];
                    passing |= (u32)is_hit << (2 * at + half);
                }
            }
            if (SAMPLES) {
                for (u32 mask = 4; mask < WARP; mask *= 2) {
                    best = larger(best, warp_shuffle_xor(best, mask));
                }
                if (group == 0 && number < p.queries) {
                    p.maxima[(u64)number * p.groups + tile] = best;
                }
            }
        }
        if (!SAMPLES && warp_ballot(passing != 0) != 0) {
#pragma unroll
            for (u32 at = 0; at < 4 * TILES; at++) {
                u32 half = at % 2, column = at / 2 % 2, number = at / 4 * 8 + 2 * word + column;
                bool is_hit = ((passing >> at) & 1) != 0;
                i32 dot = kept_bits(totals[at / 4][column + 2 * half]);
                append(p, is_hit, number, rows[half].row, dot);
            }
        }
    }
}

KERNEL(256, 2) __global__ void scan_sample_8(const SearchParams p) {
    scan<Codes, 1, true>(p);
}
KERNEL(256, 2) __global__ void scan_sample_16(const SearchParams p) {
    scan<Codes, 2, true>(p);
}
KERNEL(256, 2) __global__ void scan_collect_8(const SearchParams p) {
    scan<Codes, 1, false>(p);
}
KERNEL(256, 2) __global__ void scan_collect_16(const SearchParams p) {
    scan<Codes, 2, false>(p);
}
KERNEL(256, 2) __global__ void scan_sample_f16_8(const SearchParams p) {
    scan<Halves, 1, true>(p);
}
KERNEL(256, 2) __global__ void scan_sample_f16_16(const SearchParams p) {
    scan<Halves, 2, true>(p);
}
KERNEL(256, 2) __global__ void scan_collect_f16_8(const SearchParams p) {
    scan<Halves, 1, false>(p);
}
KERNEL(256, 2) __global__ void scan_collect_f16_16(const SearchParams p) {
    scan<Halves, 2, false>(p);
}
LAUNCHABLE(scan_sample_8)
LAUNCHABLE(scan_sample_16)
LAUNCHABLE(scan_collect_8)
LAUNCHABLE(scan_collect_16)
LAUNCHABLE(scan_sample_f16_8)
LAUNCHABLE(scan_sample_f16_16)
LAUNCHABLE(scan_collect_f16_8)
LAUNCHABLE(scan_collect_f16_16)
