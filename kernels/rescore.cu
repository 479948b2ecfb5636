// What are the cosines of the rows that select_candidates kept? Exact scores from T2, as
// ComputeBackend::exact gives them: in [-1, 1], never minus zero, 0 for a zero query or row.
//
// Kernels  rescore_f16  rows of normalised f16: a dot product in f32
//          rescore_f32  rows as clients gave them: dot product and length in f64, which holds the
//                       square of every f32
// Block    256 threads, one warp a row. Grid: x = any number of blocks a query (8 suffice for 64
//          kept rows), y = queries. Shared: none.
// Moves    2 or 4 bytes a component, whole rows from anywhere; 16 bytes a lane where the dimension
//          allows it (a multiple of 8, of 4).
//          64 rows of 384 f16: 49 KB a query, one trip to memory, 3 us; 1,024 queries: 20 us.
// Built    ptxas 13.0 for sm_90, no spills: 64 registers.
// Error    f32 sums in any order differ from the true sum by at most d units of rounding (Higham,
//          Accuracy and Stability, 3.1): within ErrorBound::rounding.

static const u32 RESCORE_WARPS = 8;

struct RescoreParams {
    const void *values;      // T2: f16 bits or f32 [rows][dimension]
    const f32 *units;        // [queries][dimension], the normalised queries
    const KeptRow *kept;     // [queries][kept_capacity]
    const u32 *kept_counts;  // [queries]; above kept_capacity: the query is left out
    f32 *scores;             // [queries][kept_capacity]
    u32 dimension;
    u32 kept_capacity;
};

// A cosine as it leaves the core.
DEVICE f32 settled(f64 cosine) {
    f64 cut = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    return sum(narrowed(cut), 0.0f);
}

DEVICE f32 warp_sum(f32 value) {
    for (u32 mask = 16; mask > 0; mask /= 2) value = sum(value, warp_shuffle_xor(value, mask));
    return value;
}
DEVICE f64 warp_sum(f64 value) {
    for (u32 mask = 16; mask > 0; mask /= 2) {
        value = sum(value, warp_shuffle_xor(value, mask));
    }
    return value;
}

struct HalfRow {
    static const u32 VALUES = 8;  // Of 16 bytes.
    f32 dot;

    DEVICE_MEMBER void add(u16 bits, f32 unit) { dot = fused(widened_f16(bits), unit, dot); }
    DEVICE_MEMBER void add_word(u32 word, const f32 *units) {
        add((u16)word, units[0]);
        add((u16)(word >> 16), units[1]);
    }
    DEVICE_MEMBER void add_16(Words4 words, const f32 *units) {
        add_word(words.x, units);
        add_word(words.y, units + 2);
        add_word(words.z, units + 4);
        add_word(words.w, units + 6);
    }
    DEVICE_MEMBER f32 score() { return settled((f64)warp_sum(dot)); }
    typedef u16 Value;
};

struct FullRow {
    static const u32 VALUES = 4;
    f64 dot, squares;

    DEVICE_MEMBER void add(f32 value, f32 unit) {
        dot = fused((f64)value, (f64)unit, dot);
        squares = fused((f64)value, (f64)value, squares);
    }
    DEVICE_MEMBER void add_16(Words4 words, const f32 *units) {
        add(from_bits(words.x), units[0]);
        add(from_bits(words.y), units[1]);
        add(from_bits(words.z), units[2]);
        add(from_bits(words.w), units[3]);
    }
    DEVICE_MEMBER f32 score() {
        f64 all = warp_sum(squares), product = warp_sum(dot);
        return all == 0 ? 0.0f : settled(quotient(product, square_root(all)));
    }
    typedef f32 Value;
};

template <class Row>
DEVICE void rescore(const RescoreParams &p) {
    const u32 query = block_in_grid_y(), lane = thread_in_block() % WARP;
    u32 count = p.kept_counts[query];
    count = count > p.kept_capacity ? 0 : count;
    const f32 *units = p.units + (u64)query * p.dimension;
    const u64 first = (u64)query * p.kept_capacity;
    for (u32 at = block_in_grid() * RESCORE_WARPS + thread_in_block() / WARP; at < count;
         at += blocks_in_grid() * RESCORE_WARPS) {
        typedef typename Row::Value Value;
        const Value *values = (const Value *)p.values + (u64)p.kept[first + at].row * p.dimension;
        Row row = {};
        if (p.dimension % Row::VALUES == 0) {
            for (u32 i = lane * Row::VALUES; i < p.dimension; i += WARP * Row::VALUES) {
                row.add_16(load_streaming_16(values + i), units + i);
            }
        } else {
            for (u32 i = lane; i < p.dimension; i += WARP) row.add(values[i], units[i]);
        }
        f32 score = row.score();
        if (lane == 0) p.scores[first + at] = score;
    }
}

KERNEL(256, 4) __global__ void rescore_f16(const RescoreParams p) { rescore<HalfRow>(p); }
KERNEL(256, 4) __global__ void rescore_f32(const RescoreParams p) { rescore<FullRow>(p); }

LAUNCHABLE(rescore_f16)
LAUNCHABLE(rescore_f32)
