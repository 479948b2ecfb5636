// Embedding model, dense layers: states times weights, and the element-wise operations that follow.
// output = f(states weights^T + bias) + residual; f16 in and out, f32 in between, on packed tokens
// without padding.
//
// Kernels  embed_product_ROWSxCOLUMNS  for output tiles of 128x128, 128x64 and 64x64; the launcher
//                                      chooses the one estimated to be fastest
//          embed_product_128x128_by_warpgroups  the same tile with Hopper's own instructions
// Launcher src/compute/src/cuda/encoder/product.rs
// Block    128 threads, four warps as 2 x 2 over the tile; by warpgroups 256, each group 64 tokens.
//          Grid: x = outputs / COLUMNS, rounded up (neighbours share states, which are larger than
//          the weights); y = tokens / ROWS, rounded up.
// Shared   STAGES * (ROWS + COLUMNS) * 128 bytes: 98304 (3 stages), 73728 (3), 65536 (4).
// Limits   inputs and outputs: multiples of 8. Any number of tokens; tails are zeroed and masked.
// Design   Chunks of 64 inputs stream by cp.async through STAGES buffers, swizzled so that ldmatrix
//          has no bank conflicts; m16n8k16. A warp of 128x128 has 64 x 64 totals in registers:
//          8 ldmatrix for 32 mma, 4 KiB of shared memory for 131 kFLOP. The four lanes of a row
//          exchange pairs before they store, so that each store has 16 bytes and a row 64.
// Time     measured on an H200, 16,384 tokens of MiniLM (384, 1536), a layer: query-key-value 42 us
//          by warpgroups and 55 by mma, widen with GELU 65 (124 by mma with erff), attended and
//          narrow 26 (56). Memory: widen writes 50 MB and narrow reads them.
// Registers 218, 150 and 110, by warpgroups 119 (ptxas 13.0, sm_90a), no spills; 2, 3, 3 and 2
//          blocks a multiprocessor.
// Error    f32 sums in an order that the hardware chooses; 2^-11 of a number when stored.

// Inputs per chunk; a row of a stage is 128 bytes.
static const u32 INPUTS = 64;
static const u32 LINE = 128;

struct EmbedProductParams {
    const u16 *states;    // f16 [tokens][inputs]
    const u16 *weights;   // f16 [outputs][inputs]
    const f32 *bias;      // [outputs]
    const u16 *residual;  // f16 [tokens][outputs], or null
    u16 *output;          // f16 [tokens][outputs], none of the others
    u32 tokens;
    u32 inputs;
    u32 outputs;
    u32 activation;       // 0 none, 1 GELU by erf, 2 GELU by tanh, 3 max(x, 0)
};

template <u32 ACTIVATION>
DEVICE f32 activated(f32 x) {
    if (ACTIVATION == 1) return 0.5f * x * (1.0f + error_function(x * 0.70710678f));
    if (ACTIVATION == 2) {
        // x (1 + tanh u) / 2 = x / (1 + e^-2u); beyond the range of f32 it is x or 0, correctly.
        f32 u = 0.79788456f * (x + 0.044715f * x * x * x);
        return x * reciprocal(1.0f + power_of_two(-2.885390082f * u));
    }
    if (ACTIVATION == 3) return larger(x, 0.0f);
    return x;
}

// One warp's part of a tile's product: FRAGMENTS x 16 tokens by TILES x 8 outputs.
template <u32 FRAGMENTS, u32 TILES>
struct Totals {
    f32 at[FRAGMENTS][TILES][4];
};

// Copies chunk `chunk` of ROWS of an operand's `count` rows, from `first` on, to shared memory.
template <u32 ROWS, u32 THREADS>
DEVICE void bring_rows(const u16 *from, u32 first, u32 count, u32 inputs, u32 chunk, u8 *to) {
    const u32 unit = thread_in_block() % 8, input = chunk * INPUTS + unit * 8;
    const u32 line = thread_in_block() / 8;
    const u16 *row = from + (u64)(first + line) * inputs + input;
#pragma unroll
    for (u32 at = 0; at < ROWS; at += THREADS / 8) {
        bool has = first + at + line < count && input < inputs;
        copy_async_16(to + swizzled_line(at + line, unit), has ? row : from, has);
        row += (u64)(THREADS / 8) * inputs;
    }
}

// Adds the product of one chunk to the totals.
template <u32 FRAGMENTS, u32 TILES>
DEVICE void multiply(Totals<FRAGMENTS, TILES> &totals, const u8 *states, const u8 *weights) {
    const u32 lane = thread_in_block() % WARP;
#pragma unroll
    for (u32 step = 0; step < INPUTS / 16; step++) {
        u32 a[FRAGMENTS][4], b[TILES / 2][4];
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS; at++) {
            u32 row = at * 16 + lane % 16;
            load_matrix_x4(a[at], states + swizzled_line(row, step * 2 + lane / 16));
        }
#pragma unroll
        for (u32 pair = 0; pair < TILES / 2; pair++) {
            u32 row = pair * 16 + lane / 16 * 8 + lane % 8;
            load_matrix_x4(b[pair], weights + swizzled_line(row, step * 2 + lane / 8 % 2));
        }
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS; at++) {
#pragma unroll
            for (u32 tile = 0; tile < TILES; tile++) {
                u32 half = tile % 2 * 2;
                mma_f16_16x8x16(totals.at[at][tile], a[at], b[tile / 2][half],
                                b[tile / 2][half + 1]);
            }
        }
    }
}

// Applies bias, activation and residual, and stores; four tiles of one row at a time.
template <u32 ACTIVATION, u32 FRAGMENTS, u32 TILES>
DEVICE void finish(const EmbedProductParams &p, Totals<FRAGMENTS, TILES> &totals, u32 first_token,
                   u32 first_output) {
    const u32 group = thread_in_block() % WARP / 4, quad = thread_in_block() % 4;
#pragma unroll
    for (u32 tile = 0; tile < TILES; tile += 4) {
        // The first of the outputs that this lane computes, and of the 8 that it loads and stores.
        const u32 computed = first_output + tile * 8 + quad * 2;
        const u32 column = first_output + tile * 8 + quad * 8;
        f32 bias[8];
#pragma unroll
        for (u32 at = 0; at < 8; at++) {
            u32 output = computed + at / 2 * 8 + at % 2;
            bias[at] = output < p.outputs ? p.bias[output] : 0.0f;
        }
#pragma unroll
        for (u32 half = 0; half < 2 * FRAGMENTS; half++) {
            const u32 token = first_token + half * 8 + group;
            const bool has = token < p.tokens && column < p.outputs;
            const u64 place = (u64)token * p.outputs + column;
            u32 pairs[4] = {};
            if (p.residual != nullptr) {
                Words4 words = load_streaming_16(p.residual + place, has);
                pairs[0] = words.x, pairs[1] = words.y, pairs[2] = words.z, pairs[3] = words.w;
                quad_transpose(pairs);
            }
#pragma unroll
            for (u32 at = 0; at < 4; at++) {
                const f32 *pair = &totals.at[half / 2][tile + at][half % 2 * 2];
                f32 low = activated<ACTIVATION>(pair[0] + bias[2 * at]);
                f32 high = activated<ACTIVATION>(pair[1] + bias[2 * at + 1]);
                pairs[at] = pair_of_f16(low + low_f16(pairs[at]), high + high_f16(pairs[at]));
            }
            quad_transpose(pairs);
            if (has) *(Words4 *)(p.output + place) = Words4{pairs[0], pairs[1], pairs[2], pairs[3]};
        }
    }
}

template <u32 FRAGMENTS, u32 TILES>
DEVICE void finish_any(const EmbedProductParams &p, Totals<FRAGMENTS, TILES> &totals, u32 token,
                       u32 output) {
    if (p.activation == 0) {
        finish<0>(p, totals, token, output);
    } else if (p.activation == 1) {
        finish<1>(p, totals, token, output);
    } else if (p.activation == 2) {
        finish<2>(p, totals, token, output);
    } else {
        finish<3>(p, totals, token, output);
    }
}

// Streams the chunks of a tile's operands through STAGES buffers. Calls `each(states, weights,
// chunk)` for each in order, after a barrier before which all threads call `arrived()`.
template <u32 ROWS, u32 COLUMNS, u32 STAGES, u32 THREADS, class Arrived, class Each>
DEVICE void stream_chunks(const EmbedProductParams &p, u32 first_token, u32 first_output,
                          Arrived arrived, Each each) {
    const u32 STAGE_SIZE = (ROWS + COLUMNS) * LINE, chunks = divided_up(p.inputs, INPUTS);
    u8 *stages = shared_memory();
    auto bring = [&](u32 chunk, u32 stage) {
        u8 *to = stages + stage * STAGE_SIZE;
        if (chunk < chunks) {
            bring_rows<ROWS, THREADS>(p.states, first_token, p.tokens, p.inputs, chunk, to);
            bring_rows<COLUMNS, THREADS>(p.weights, first_output, p.outputs, p.inputs, chunk,
                                         to + ROWS * LINE);
        }
        copy_async_commit();
    };
#pragma unroll
    for (u32 stage = 0; stage + 1 < STAGES; stage++) bring(stage, stage);
    u32 stage = 0, next = STAGES - 1;
    for (u32 chunk = 0; chunk < chunks; chunk++) {
        copy_async_wait<STAGES - 2>();
        arrived();
        block_barrier();
        bring(chunk + STAGES - 1, next);
        const u8 *now = stages + stage * STAGE_SIZE;
        each(now, now + ROWS * LINE, chunk);
        next = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    copy_async_wait<0>();
}

template <u32 ROWS, u32 COLUMNS, u32 STAGES>
DEVICE void embed_product(const EmbedProductParams &p) {
    const u32 warp = thread_in_block() / WARP;
    const u32 row = warp / 2 * (ROWS / 2), column = warp % 2 * (COLUMNS / 2);
    const u32 first_token = block_in_grid_y() * ROWS, first_output = block_in_grid() * COLUMNS;
    Totals<ROWS / 32, COLUMNS / 16> totals = {};
    auto each = [&](const u8 *states, const u8 *weights, u32) {
        multiply(totals, states + row * LINE, weights + column * LINE);
    };
    stream_chunks<ROWS, COLUMNS, STAGES, 128>(p, first_token, first_output, [] {}, each);
    finish_any(p, totals, first_token + row, first_output + column);
}

#ifdef WARPGROUPS
KERNEL(256, 2) __global__ void embed_product_128x128_by_warpgroups(const EmbedProductParams p) {
    const u32 ROWS = 128, COLUMNS = 128, warp = thread_in_block() / WARP;
    const u32 first_token = block_in_grid_y() * ROWS, first_output = block_in_grid() * COLUMNS;
    Totals<1, COLUMNS / 8> totals;
    auto each = [&](const u8 *states, const u8 *weights, u32 chunk) {
        warpgroup_begin();
#pragma unroll
        for (u32 step = 0; step < INPUTS / 16; step++) {
            const u8 *own = states + warp / 4 * 64 * LINE;
            warpgroup_product_f16(totals.at[0], own, weights, step, chunk + step > 0);
        }
        warpgroup_end();
    };
    auto arrived = [] { warpgroup_shows(); };
    stream_chunks<ROWS, COLUMNS, 3, 256>(p, first_token, first_output, arrived, each);
    finish_any(p, totals, first_token + warp * 16, first_output);
}
LAUNCHABLE(embed_product_128x128_by_warpgroups)
#endif

KERNEL(128, 2) __global__ void embed_product_128x128(const EmbedProductParams p) {
    embed_product<128, 128, 3>(p);
}
KERNEL(128, 3) __global__ void embed_product_128x64(const EmbedProductParams p) {
    embed_product<128, 64, 3>(p);
}
KERNEL(128, 3) __global__ void embed_product_64x64(const EmbedProductParams p) {
    embed_product<64, 64, 4>(p);
}

LAUNCHABLE(embed_product_128x128)
LAUNCHABLE(embed_product_128x64)
LAUNCHABLE(embed_product_64x64)
