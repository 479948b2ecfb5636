// G5: which rows of the lists near a query may be among its best, by one bit a component (T0)?
//
//   one_bit_queries   rotated queries -> 16-bit integers in two planes of bytes
//   lists_passing     rows of each list that pass a filter
//   lists_see         dot product with every list's point, and the score its best rows may have
//   (select.cu)       lists_choose: the most promising; grouped by list for the whole batch
//   one_bit_scan      T0 of each chosen list, once for all queries that chose it -> upper bounds
//   (select.cu)       one_bit_select: T1 of the most promising rows gives a threshold, then of all
//                     rows that may reach it; select_candidates as after a scan
//
// A scan is a product of bits and integers, so the tensor cores take it: sum of signs . q is
// 2 (bits . q) - sum of q. Bits become bytes of 0 and 1 in registers by a multiplication; two
// planes of the query, high and low, are exact to max |q| / 32,512 / 2, eighty times finer than the
// tables of the CPU (one_bit/query.rs): the bounds here are a little tighter. Blocks lie as they
// do on disk: lane 4g + t takes bytes of rows 8g .. 8g + 8 for components 32j + 8t .. + 8, so that
// a warp's load is 256 bytes in a row. Rows 8g + 2m and 8g + 2m + 1 are rows g and g + 8 of
// fragment m.
//
// Block    one_bit_queries: 32 threads, a block a query. lists_passing: 256 threads, a warp a list.
//          lists_see: 256 threads, grid x = lists / 128, y = queries / 8, rounded up.
//          one_bit_scan: 128 threads, grid: as many blocks as lists may be chosen.
// Shared   none.
// Moves    lists_see: lists * stride bytes for each 8 queries, from the second cache after the
//          first. one_bit_scan: a list's blocks (56 bytes a row at d = 384) once for each 8 queries
//          that chose it, and 8 bytes a row and query out. Batch 1, 64 lists of 256 rows: 1 MB;
//          with lists_see over 4,096 lists (1.6 MB) and the selections about 40 us, of which the
//          bytes are one: launches and the latency of each stage take the rest.
// Built    ptxas 13.0 for sm_90, no spills: one_bit_scan 84 registers, the others 21 to 44.

static const u32 ONE_BIT_ROWS = 64;
static const u32 NO_ROW = 0xffffffffu;
// As in src/storage/src/segment/lists/probe.rs: spreads towards the query at which a list's best
// rows are expected.
#define PROMISED_SPREADS 0.3f

// A rotated query in integers: signs . query = step * (2 (bits . integers) - total) +- lost.
struct alignas(16) OneBitFactors {
    f32 step;
    i32 total;
    f32 lost;
    f32 residual;  // Of the query's T1 codes: rounding error of lists_see.
};

struct OneBitQueriesParams {
    const f32 *rotated;      // [queries][width]
    const f32 *residuals;    // [queries]
    i8 *planes;              // [queries][2][width]: value = 256 * first + second
    OneBitFactors *factors;  // [queries]
    u32 width;               // a multiple of 64
    u32 unused;
};

struct ListsPassingParams {
    const u32 *mask;           // [(rows + 31) / 32]
    const u32 *rows_of_slots;  // [slots]
    const u32 *first_blocks;   // [lists]
    const u32 *sizes;          // [lists]
    u32 *passing;              // [lists]
    u32 lists;
    u32 unused;
};

struct ListsSeeParams {
    const i8 *point_codes;              // [lists][stride]
    const f32 *point_scales;            // [lists]
    const f32 *squares;                 // [lists]
    const f32 *spreads;                 // [lists]
    const u32 *passing;                 // [lists], or null: none is empty
    const i8 *query_codes;              // [queries][stride]
    const QueryFactors *query_factors;  // [queries]
    f32 *dots;                          // [queries][lists]
    f32 *promises;                      // [queries][lists]; -inf for a list that nothing passes
    u32 lists;
    u32 stride;
    u32 queries;
    u32 unused;
};

struct OneBitScanParams {
    const u8 *blocks;              // T0 in list order, one_bit/mod.rs
    const u32 *rows_of_slots;      // [slots]
    const u32 *first_blocks;       // [lists]
    const u32 *sizes;              // [lists]
    const f32 *squares;            // [lists]
    const u32 *mask;               // [(rows + 31) / 32], or null
    const i8 *planes;              // [queries][2][width]
    const OneBitFactors *factors;  // [queries]
    const f32 *dots;               // [queries][lists]
    const u32 *active;             // the lists that were chosen
    const u32 *active_count;       // [1]
    const ListMember *members;     // [lists][member_capacity]
    const u32 *member_counts;      // [lists]
    KeptRow *uppers;               // [queries][slot_capacity]: row and upper bound of each slot of
                                   // the chosen lists; 2^32 - 1 and -inf where no row passes
    u32 lists;
    u32 width;
    u32 member_capacity;
    u32 slot_capacity;
    f32 deviations;                // that the bound allows
    u32 unused;
};

KERNEL(32, 16) __global__ void one_bit_queries(const OneBitQueriesParams p) {
    const u32 query = block_in_grid(), lane = thread_in_block();
    const f32 *rotated = p.rotated + (u64)query * p.width;
    i8 *planes = p.planes + (u64)query * 2 * p.width;
    f32 largest = 0;
    for (u32 i = lane; i < p.width; i += WARP) {
        largest = larger(largest, rotated[i] < 0 ? -rotated[i] : rotated[i]);
    }
    for (u32 mask = 16; mask > 0; mask /= 2) {
        largest = larger(largest, warp_shuffle_xor(largest, mask));
    }
    f32 step = largest > 0 ? largest / 32512.0f : 1.0f;
    u32 total = 0;
    for (u32 i = lane; i < p.width; i += WARP) {
        f32 steps = rotated[i] / step;
        i32 value = (i32)(steps < 0 ? steps - 0.5f : steps + 0.5f);
        i32 high = (value + 128) >> 8;
        planes[i] = (i8)high;
        planes[p.width + i] = (i8)(value - 256 * high);
        total += (u32)value;
    }
    for (u32 mask = 16; mask > 0; mask /= 2) total += warp_shuffle_xor(total, mask);
    if (lane != 0) return;
    // Half a step a component, and as much again for the rounding of the steps themselves.
    f32 lost = 0.505f * step * (f32)p.width;
    p.factors[query] = OneBitFactors{step, (i32)total, lost, p.residuals[query]};
}

KERNEL(256, 4) __global__ void lists_passing(const ListsPassingParams p) {
    u32 list = block_in_grid() * 8 + thread_in_block() / WARP, count = 0;
    if (list >= p.lists) return;
    const u32 *rows = p.rows_of_slots + (u64)p.first_blocks[list] * ONE_BIT_ROWS;
    for (u32 at = thread_in_block() % WARP; at < p.sizes[list]; at += WARP) {
        count += passes(p.mask, rows[at]);
    }
    for (u32 mask = 16; mask > 0; mask /= 2) count += warp_shuffle_xor(count, mask);
    if (thread_in_block() % WARP == 0) p.passing[list] = count;
}

// Distance of a unit query from a point, as src/storage/src/segment/lists/view.rs has it.
DEVICE f32 distance_of(f32 dot, f32 square) {
    f32 squared = difference(sum(1.0f, square), product(2.0f, dot));
    return square_root(squared > 0 ? squared : 0);
}

KERNEL(256, 2) __global__ void lists_see(const ListsSeeParams p) {
    const u32 lane = thread_in_block() % WARP, group = lane / 4, word = lane % 4;
    const u32 first = (block_in_grid() * 8 + thread_in_block() / WARP) * 16;
    if (first >= p.lists) return;
    const u32 first_query = block_in_grid_y() * 8, query = first_query + group;
    const bool has_low = first + group < p.lists, has_high = first + group + 8 < p.lists;
    const i8 *low = p.point_codes + (u64)(first + group) * p.stride + 16 * word;
    const i8 *high = low + 8 * (u64)p.stride;
    const i8 *codes = p.query_codes + (u64)query * p.stride + 16 * word;
    i32 totals[4] = {0, 0, 0, 0};
#pragma unroll 4
    for (u32 offset = 0; offset < p.stride; offset += CHUNK_BYTES) {
        Words4 a = load_streaming_16(low + offset, has_low);
        Words4 b = load_streaming_16(high + offset, has_high);
        Words4 q = load_streaming_16(codes + offset, query < p.queries);
        const u32 even[4] = {a.x, b.x, a.y, b.y}, odd[4] = {a.z, b.z, a.w, b.w};
        mma_s8_16x8x32(totals, even, q.x, q.y);
        mma_s8_16x8x32(totals, odd, q.z, q.w);
    }
#pragma unroll
    for (u32 at = 0; at < 4; at++) {
        u32 list = first + group + at / 2 * 8, own = first_query + 2 * word + at % 2;
        if (list >= p.lists || own >= p.queries) continue;
        f32 by_query = product((f32)totals[at], p.query_factors[own].scale);
        f32 dot = product(by_query, p.point_scales[list]);
        f32 distance = distance_of(dot, p.squares[list]);
        f32 promise = sum(dot, product(product(PROMISED_SPREADS, p.spreads[list]), distance));
        bool is_empty = p.passing != nullptr && p.passing[list] == 0;
        p.dots[(u64)own * p.lists + list] = dot;
        p.promises[(u64)own * p.lists + list] = is_empty ? -INFINITE : promise;
    }
}

// Four bits as four bytes of 0 and 1.
DEVICE u32 spread_bits(u32 bits) { return (bits & 15) * 0x00204081u & 0x01010101u; }

// A list as one query sees it.
struct SeenList {
    bool has_query;
    u32 query, first_slot;
    f32 dot, allowance;
    OneBitFactors factors;
};

DEVICE SeenList seen_list(const OneBitScanParams &p, u32 list, u32 member, u32 members) {
    SeenList seen = {member < members, 0, 0, 0, 0, {0, 0, 0, 0}};
    if (!seen.has_query) return seen;
    const ListMember &chosen = p.members[(u64)list * p.member_capacity + member];
    seen.query = chosen.query;
    seen.first_slot = chosen.first_slot;
    seen.factors = p.factors[seen.query];
    f32 square = p.squares[list], dot = p.dots[(u64)seen.query * p.lists + list];
    seen.dot = dot + seen.factors.residual * square_root(square);
    seen.allowance = p.deviations * distance_of(dot, square);
    return seen;
}

// Products of 64 rows with eight queries: totals of fragment m at [m][plane].
DEVICE void multiply_bits(const u8 *codes, const i8 *planes, bool has_query, u32 width,
                          i32 (&totals)[4][2][4]) {
    const u32 lane = thread_in_block() % WARP, group = lane / 4, word = lane % 4;
    const u8 *rows = codes + word * ONE_BIT_ROWS + 8 * group;
#pragma unroll 4
    for (u32 first = 0; first < width; first += 32) {
        Words2 bytes = load_streaming_8(rows + first / 8 * ONE_BIT_ROWS);
        const i8 *own = planes + first + 8 * word;
        Words2 high = load_streaming_8(own, has_query);
        Words2 low = load_streaming_8(own + width, has_query);
#pragma unroll
        for (u32 at = 0; at < 4; at++) {
            u32 pair = (at < 2 ? bytes.x : bytes.y) >> at % 2 * 16;
            const u32 a[4] = {spread_bits(pair), spread_bits(pair >> 8), spread_bits(pair >> 4),
                              spread_bits(pair >> 12)};
            mma_s8_16x8x32(totals[at][0], a, high.x, high.y);
            mma_s8_16x8x32(totals[at][1], a, low.x, low.y);
        }
    }
}

// Upper bounds of 64 rows of a list for eight of its members.
DEVICE void scan_block(const OneBitScanParams &p, u32 list, u32 block, u32 first_member,
                       u32 members) {
    const u32 lane = thread_in_block() % WARP, group = lane / 4, word = lane % 4;
    const u64 number = (u64)p.first_blocks[list] + block;
    const u8 *codes = p.blocks + number * (p.width * 8 + 12 * ONE_BIT_ROWS);
    const u32 *rows = p.rows_of_slots + number * ONE_BIT_ROWS + 8 * group;
    i32 totals[4][2][4] = {};
    bool has_query = first_member + group < members;
    u32 query = 0;
    if (has_query) {
        query = p.members[(u64)list * p.member_capacity + first_member + group].query;
    }
    multiply_bits(codes, p.planes + (u64)query * 2 * p.width, has_query, p.width, totals);
    const SeenList seen[2] = {seen_list(p, list, first_member + 2 * word, members),
                              seen_list(p, list, first_member + 2 * word + 1, members)};
    const f32 *columns = (const f32 *)(codes + p.width * 8) + 8 * group;
#pragma unroll
    for (u32 at = 0; at < 8; at++) {
        u32 row = block * ONE_BIT_ROWS + 8 * group + at < p.sizes[list] ? rows[at] : NO_ROW;
        bool is_wanted = row != NO_ROW && passes(p.mask, row);
        f32 scale = columns[at], offset = columns[ONE_BIT_ROWS + at];
        f32 error = columns[2 * ONE_BIT_ROWS + at];
#pragma unroll
        for (u32 side = 0; side < 2; side++) {
            const SeenList &own = seen[side];
            if (!own.has_query) continue;
            const u32 part = side + at % 2 * 2;
            i32 bits = 256 * totals[at / 2][0][part] + totals[at / 2][1][part];
            f32 steps = (f32)(2 * bits - own.factors.total);
            f32 signs = fused(steps, own.factors.step, own.factors.lost);
            f32 estimate = fused(signs, scale, offset + own.dot);
            f32 upper = fused(error, own.allowance, estimate);
            u32 slot = own.first_slot + block * ONE_BIT_ROWS + 8 * group + at;
            p.uppers[(u64)own.query * p.slot_capacity + slot] =
                is_wanted ? KeptRow{row, upper} : KeptRow{NO_ROW, -INFINITE};
        }
    }
}

KERNEL(128, 4) __global__ void one_bit_scan(const OneBitScanParams p) {
    const u32 warp = thread_in_block() / WARP, warps = threads_in_block() / WARP;
    for (u32 at = block_in_grid(); at < *p.active_count; at += blocks_in_grid()) {
        u32 list = p.active[at], members = p.member_counts[list];
        u32 blocks = divided_up(p.sizes[list], ONE_BIT_ROWS);
        for (u32 member = 0; member < members; member += 8) {
            for (u32 block = warp; block < blocks; block += warps) {
                scan_block(p, list, block, member, members);
            }
        }
    }
}

LAUNCHABLE(one_bit_queries)
LAUNCHABLE(lists_passing)
LAUNCHABLE(lists_see)
LAUNCHABLE(one_bit_scan)
