// Embedding model, pooling: the vector of each passage is the mean of its tokens' states, or its
// first token's state, scaled to length 1.
//
// Kernel   embed_pool
// Launcher src/compute/src/cuda/encoder/pool.rs
// Block    256 threads, one block a passage: warps take tokens in turn and combine their sums in
//          shared memory. Grid: x = passages. Shared: 32 * hidden + 32 bytes.
// Limits   hidden: a multiple of 8, at most 1024. A passage has at least one token.
// Moves    2 bytes a component of all tokens; 16,384 tokens x 384: 12.6 MB, about 6 us.
// Registers 72 (ptxas 13.0, sm_90), no spills.
// Error    f32 sums, in an order that depends only on the passage's length. A sum of zeros, or of
//          numbers beyond f16, gives numbers that are not finite; the caller checks.

static const u32 POOL_THREADS = 256;
static const u32 POOL_WARPS = 8;
static const u32 POOL_SPAN = 256;
static const u32 POOL_SPANS = 4;

struct EmbedPoolParams {
    const u16 *states;  // f16 [tokens][hidden]
    const u32 *starts;  // [passages + 1]: first token of each passage, then the end of the last
    f32 *vectors;       // [passages][hidden]
    u32 hidden;
    u32 only_first;     // 0: the mean over all tokens; the division by their number cancels out
};

// Sums this warp's tokens, and writes the sums to shared memory.
DEVICE void sum_tokens(const EmbedPoolParams &p, u32 first, u32 end, f32 *sums) {
    const u32 warp = thread_in_block() / WARP, lane = thread_in_block() % WARP;
    f32 totals[POOL_SPANS][8] = {};
    for (u32 token = first + warp; token < end; token += POOL_WARPS) {
#pragma unroll
        for (u32 span = 0; span < POOL_SPANS; span++) {
            u32 column = span * POOL_SPAN + lane * 8;
            const u16 *from = p.states + (u64)token * p.hidden + column;
            Words4 words = load_streaming_16(from, column < p.hidden);
            u32 pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
            for (u32 at = 0; at < 4; at++) {
                totals[span][2 * at] += low_f16(pairs[at]);
                totals[span][2 * at + 1] += high_f16(pairs[at]);
            }
        }
    }
#pragma unroll
    for (u32 span = 0; span < POOL_SPANS; span++) {
        u32 column = span * POOL_SPAN + lane * 8;
        if (column >= p.hidden) continue;
#pragma unroll
        for (u32 at = 0; at < 8; at++) sums[warp * p.hidden + column + at] = totals[span][at];
    }
}

KERNEL(256, 2) __global__ void embed_pool(const EmbedPoolParams p) {
    f32 *sums = (f32 *)shared_memory(), *squares = sums + POOL_WARPS * p.hidden;
    const u32 passage = block_in_grid(), thread = thread_in_block();
    const u32 first = p.starts[passage];
    sum_tokens(p, first, p.only_first != 0 ? first + 1 : p.starts[passage + 1], sums);
    block_barrier();
    f32 values[POOL_SPANS] = {}, square = 0;
#pragma unroll
    for (u32 span = 0; span < POOL_SPANS; span++) {
        u32 column = span * POOL_THREADS + thread;
        if (column >= p.hidden) continue;
        for (u32 warp = 0; warp < POOL_WARPS; warp++) {
            values[span] += sums[warp * p.hidden + column];
        }
        square += values[span] * values[span];
    }
    square = warp_total(square);
    if (thread % WARP == 0) squares[thread / WARP] = square;
    block_barrier();
    f32 all = 0;
    for (u32 warp = 0; warp < POOL_WARPS; warp++) all += squares[warp];
    f32 inverse = quotient(1.0f, square_root(all));
#pragma unroll
    for (u32 span = 0; span < POOL_SPANS; span++) {
        u32 column = span * POOL_THREADS + thread;
        if (column >= p.hidden) continue;
        p.vectors[(u64)passage * p.hidden + column] = values[span] * inverse;
    }
}

LAUNCHABLE(embed_pool)
