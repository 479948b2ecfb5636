// Embedding model, attention: each token attends to the tokens of its passage. For each head, the
// softmax of query . key over the passage, times the values. Passages are packed one after another
// and do not see each other.
//
// Kernels  embed_attention_32, embed_attention_64  by the width of a head
// Launcher src/compute/src/cuda/encoder/attention.rs
// Block    128 threads: 64 queries of one passage and head, 16 per warp. Grid: x = query tiles of
//          all passages (from a list, so no block is without work), y = heads.
// Shared   320 rows of a head: 64 queries, and two stages of 64 keys and 64 values: 20480 bytes for
//          a width of 32, 40960 for 64.
// Limits   hidden = heads * head. Queries are already scaled by 1 / sqrt(head), in their weights. A
//          tile begins inside its passage.
// Design   Scores and values by mma m16n8k16; online softmax in f32 (Milakov and Gimelshein 2018,
//          Dao 2023), for passages of any length in registers: keys and values stream in tiles of
//          64, the next one in flight (cp.async). Weights pass from one product to the other in
//          registers, because the layouts of totals and factors are equal.
// Time     on an H200, 128 passages of 128 tokens, 12 heads of 32: 3.2 GFLOP and 25 M powers a
//          layer; 50 MB in and out, mostly of the L2 cache. About 25 us a layer, .15 ms a batch:
//          tensor cores idle most of the time; special functions take 7 us, traffic the rest.
// Registers 108 and 141 (ptxas 13.0, sm_90), no spills; 4 and 3 blocks a multiprocessor.
// Error    weights in [0, 1] are rounded to f16, as is the result.

static const u32 ATTENTION_THREADS = 128;
// Queries per block, and keys per step.
static const u32 TILE = 64;
static const f32 LOG2_E = 1.44269504f;

struct QueryTile {
    u32 start;   // the passage's first token
    u32 length;  // the passage's tokens
    u32 first;   // the tile's first query within the passage
    u32 unused;
};

struct EmbedAttentionParams {
    const u16 *fused;        // f16 [tokens][3][hidden]: queries, keys, values
    const QueryTile *tiles;  // [grid x]
    u16 *context;            // f16 [tokens][hidden]
    u32 hidden;
    u32 unused;
};

// Byte offset of a unit of a head's row in shared memory; a row has WIDTH f16 numbers.
template <u32 WIDTH>
DEVICE u32 place_of(u32 row, u32 unit) {
    return WIDTH == 64 ? swizzled_line(row, unit) : swizzled(row, unit);
}

// Copies TILE of `count` rows, starting at `first`, to shared memory; zeros beyond the end.
template <u32 WIDTH>
DEVICE void bring_head(const u16 *from, u32 first, u32 count, u32 stride, u8 *to) {
    const u32 units = WIDTH / 8, unit = thread_in_block() % units;
#pragma unroll
    for (u32 at = 0; at < TILE; at += ATTENTION_THREADS / units) {
        u32 line = at + thread_in_block() / units;
        bool has = first + line < count;
        const u16 *row = from + (u64)(has ? first + line : 0) * stride + unit * 8;
        copy_async_16(to + place_of<WIDTH>(line, unit), row, has);
    }
}

// One warp's state for 16 queries. Each lane has parts of rows g and g + 8, in this order.
template <u32 WIDTH>
struct Attention {
    u32 queries[WIDTH / 16][4];
    f32 mixed[WIDTH / 8][4];
    f32 top[2];    // the largest score so far
    f32 total[2];  // of the weights, over this lane's keys
};

// Scores 16 queries against 64 keys; minus infinity for keys beyond the `left` that exist.
template <u32 WIDTH>
DEVICE void score(const Attention<WIDTH> &state, const u8 *keys, u32 left, f32 (&scores)[8][4]) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 step = 0; step < WIDTH / 16; step++) {
#pragma unroll
        for (u32 pair = 0; pair < 4; pair++) {
            u32 row = pair * 16 + lane / 16 * 8 + lane % 8, b[4];
            load_matrix_x4(b, keys + place_of<WIDTH>(row, step * 2 + lane / 8 % 2));
            mma_f16_16x8x16(scores[2 * pair], state.queries[step], b[0], b[1]);
            mma_f16_16x8x16(scores[2 * pair + 1], state.queries[step], b[2], b[3]);
        }
    }
    if (left >= TILE) return;
#pragma unroll
    for (u32 at = 0; at < 32; at++) {
        u32 key = at / 4 * 8 + lane % 4 * 2 + at % 2;
        if (key >= left) scores[at / 4][at % 4] = -INFINITE;
    }
}

// Turns scores into weights relative to the largest score so far, and rescales the values mixed so
// far.
template <u32 WIDTH>
DEVICE void weigh(Attention<WIDTH> &state, f32 (&scores)[8][4]) {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        f32 top = state.top[half];
#pragma unroll
        for (u32 at = 0; at < 16; at++) {
            top = larger(top, scores[at / 2][half * 2 + at % 2]);
        }
        top = larger(top, warp_shuffle_xor(top, 1));
        top = larger(top, warp_shuffle_xor(top, 2));
        f32 shrink = power_of_two((state.top[half] - top) * LOG2_E);
        f32 total = state.total[half] * shrink;
        state.top[half] = top;
#pragma unroll
        for (u32 at = 0; at < 16; at++) {
            f32 &weight = scores[at / 2][half * 2 + at % 2];
            weight = power_of_two((weight - top) * LOG2_E);
            total += weight;
        }
        state.total[half] = total;
#pragma unroll
        for (u32 at = 0; at < WIDTH / 4; at++) state.mixed[at / 2][half * 2 + at % 2] *= shrink;
    }
}

// Adds weights times values to the mix.
template <u32 WIDTH>
DEVICE void mix(Attention<WIDTH> &state, const u8 *values, const f32 (&weights)[8][4]) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 step = 0; step < TILE / 16; step++) {
        u32 a[4];
#pragma unroll
        for (u32 at = 0; at < 4; at++) {
            const f32 *pair = &weights[2 * step + at / 2][at % 2 * 2];
            a[at] = pair_of_f16(pair[0], pair[1]);
        }
#pragma unroll
        for (u32 pair = 0; pair < WIDTH / 16; pair++) {
            u32 row = step * 16 + lane % 16, b[4];
            load_matrix_x4_transposed(b, values + place_of<WIDTH>(row, pair * 2 + lane / 16));
            mma_f16_16x8x16(state.mixed[2 * pair], a, b[0], b[1]);
            mma_f16_16x8x16(state.mixed[2 * pair + 1], a, b[2], b[3]);
        }
    }
}

// Divides by the weights' total and stores; `place` is this lane's first query in its passage.
template <u32 WIDTH>
DEVICE void store_mixed(const EmbedAttentionParams &p, Attention<WIDTH> &state,
                        const QueryTile &tile, u32 place) {
    const u32 quad = thread_in_block() % 4;
    u16 *head = p.context + (u64)block_in_grid_y() * WIDTH;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        f32 total = state.total[half];
        total += warp_shuffle_xor(total, 1);
        total += warp_shuffle_xor(total, 2);
        f32 inverse = quotient(1.0f, total);
        const u32 query = place + half * 8;
#pragma unroll
        for (u32 first = 0; first < WIDTH / 8; first += 4) {
            u32 pairs[4];
#pragma unroll
            for (u32 at = 0; at < 4; at++) {
                const f32 *pair = &state.mixed[first + at][half * 2];
                pairs[at] = pair_of_f16(pair[0] * inverse, pair[1] * inverse);
            }
            quad_transpose(pairs);
            u16 *to = head + (u64)(tile.start + query) * p.hidden + first * 8 + quad * 8;
            if (query < tile.length) *(Words4 *)to = Words4{pairs[0], pairs[1], pairs[2], pairs[3]};
        }
    }
}

template <u32 WIDTH>
DEVICE void attend(const EmbedAttentionParams &p) {
    const u32 BYTES = TILE * WIDTH * 2, lane = thread_in_block() % WARP;
    u8 *queries = shared_memory(), *pairs = queries + BYTES;
    const QueryTile tile = p.tiles[block_in_grid()];
    const u32 stride = 3 * p.hidden, own = thread_in_block() / WARP * 16;
    const u16 *head = p.fused + (u64)tile.start * stride + block_in_grid_y() * WIDTH;
    auto bring = [&](u32 first) {
        u8 *to = pairs + first / TILE % 2 * 2 * BYTES;
        bring_head<WIDTH>(head + p.hidden, first, tile.length, stride, to);
        bring_head<WIDTH>(head + 2 * p.hidden, first, tile.length, stride, to + BYTES);
        copy_async_commit();
    };
    bring_head<WIDTH>(head, tile.first, tile.length, stride, queries);
    bring(0);
    Attention<WIDTH> state = {};
    state.top[0] = state.top[1] = -INFINITE;
    for (u32 first = 0; first < tile.length; first += TILE) {
        copy_async_wait<0>();
        block_barrier();
        if (first + TILE < tile.length) bring(first + TILE);
        if (first == 0) {
#pragma unroll
            for (u32 step = 0; step < WIDTH / 16; step++) {
                u32 at = place_of<WIDTH>(own + lane % 16, step * 2 + lane / 16);
                load_matrix_x4(state.queries[step], queries + at);
            }
        }
        const u8 *keys = pairs + first / TILE % 2 * 2 * BYTES;
        f32 scores[8][4] = {};
        score(state, keys, tile.length - first, scores);
        weigh(state, scores);
        mix(state, keys + BYTES, scores);
    }
    store_mixed(p, state, tile, tile.first + own + lane / 4);
}

KERNEL(128, 4) __global__ void embed_attention_32(const EmbedAttentionParams p) { attend<32>(p); }
KERNEL(128, 3) __global__ void embed_attention_64(const EmbedAttentionParams p) { attend<64>(p); }

LAUNCHABLE(embed_attention_32)
LAUNCHABLE(embed_attention_64)
