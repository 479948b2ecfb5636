// Embedding model, layer norms: the token states before the first layer, and after each half of a
// layer (Ba, Kiros, Hinton 2016). Statistics in f32, in two passes over registers.
//
// Kernels  embed_gather  word vector + position vector, normalised
//          embed_norm    normalises rows, to which a product has already added bias and residual
// Launcher src/compute/src/cuda/encoder/rows.rs
// Block    256 threads, one warp a row. Grid: any x. Shared: none.
// Limits   hidden: a multiple of 8, at most 1024. The caller checks that ids are below the
//          vocabulary and positions below the window.
// Moves    gather 6 bytes a component, norm 4. On an H200, 16,384 tokens x 384: 12.6 MB in and out
//          of an L2 cache of 50 MB, about 6 us each; 13 of them in 6 layers, .08 ms a batch.
// Registers 64 and 63 (ptxas 13.0, sm_90), no spills.
// Error    f16 storage: 2^-11 of a component.

static const u32 ROW_WARPS = 8;
// Components that 32 lanes hold with 16 bytes each, and the maximum number of such spans.
static const u32 SPAN = 256;
static const u32 SPANS = 4;

struct NormWeights {
    const f32 *scale;  // [hidden]
    const f32 *shift;  // [hidden]
};

struct EmbedGatherParams {
    const u16 *words;      // f16 [vocabulary][hidden]
    const u16 *positions;  // f16 [window][hidden], the token type's vector added
    const Words2 *tokens;  // [count]: x = id, y = position in its passage
    NormWeights norm;
    u16 *states;           // f16 [count][hidden]
    u32 count;
    u32 hidden;
    f32 epsilon;
    u32 unused;
};

struct EmbedNormParams {
    const u16 *rows;  // f16 [count][hidden]
    NormWeights norm;
    u16 *states;      // f16 [count][hidden], not the rows themselves
    u32 count;
    u32 hidden;
    f32 epsilon;
    u32 unused;
};

// A row distributed over a warp: of span i, lane l has the 8 components from SPAN * i + 8 * l on.
struct Row {
    f32 values[SPANS][8];
};

DEVICE u32 column_of(u32 span) { return span * SPAN + thread_in_block() % WARP * 8; }

// Adds f16 numbers to a row; columns from `hidden` on stay zero.
DEVICE void add_row(Row &row, const u16 *from, u32 hidden) {
#pragma unroll
    for (u32 span = 0; span < SPANS; span++) {
        u32 column = column_of(span);
        Words4 words = load_streaming_16(from + column, column < hidden);
        u32 pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (u32 at = 0; at < 4; at++) {
            row.values[span][2 * at] += low_f16(pairs[at]);
            row.values[span][2 * at + 1] += high_f16(pairs[at]);
        }
    }
}

// The sum of (value - shift) ^ POWER over the row, for powers 1 and 2.
template <u32 POWER>
DEVICE f32 row_total(const Row &row, u32 hidden, f32 shift) {
    f32 total = 0;
#pragma unroll
    for (u32 span = 0; span < SPANS; span++) {
        if (column_of(span) >= hidden) continue;
#pragma unroll
        for (u32 at = 0; at < 8; at++) {
            f32 value = row.values[span][at] - shift;
            total += POWER == 1 ? value : value * value;
        }
    }
    return warp_total(total);
}

DEVICE void load_8(f32 (&values)[8], const f32 *from) {
    Words4 low = *(const Words4 *)from, high = *(const Words4 *)(from + 4);
    u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (u32 at = 0; at < 8; at++) values[at] = from_bits(words[at]);
}

DEVICE void store_normalised(const Row &row, const NormWeights &norm, u16 *to, u32 hidden,
                             f32 epsilon) {
    f32 mean = quotient(row_total<1>(row, hidden, 0), (f32)hidden);
    f32 variance = quotient(row_total<2>(row, hidden, mean), (f32)hidden);
    f32 inverse = quotient(1.0f, square_root(variance + epsilon));
#pragma unroll
    for (u32 span = 0; span < SPANS; span++) {
        u32 column = column_of(span);
        if (column >= hidden) continue;
        f32 scale[8], shift[8];
        load_8(scale, norm.scale + column);
        load_8(shift, norm.shift + column);
        u32 pairs[4];
#pragma unroll
        for (u32 at = 0; at < 4; at++) {
            f32 low = (row.values[span][2 * at] - mean) * inverse;
            f32 high = (row.values[span][2 * at + 1] - mean) * inverse;
            pairs[at] = pair_of_f16(low * scale[2 * at] + shift[2 * at],
                                    high * scale[2 * at + 1] + shift[2 * at + 1]);
        }
        *(Words4 *)(to + column) = Words4{pairs[0], pairs[1], pairs[2], pairs[3]};
    }
}

KERNEL(256, 2) __global__ void embed_gather(const EmbedGatherParams p) {
    const u32 warp = thread_in_block() / WARP;
    for (u32 at = block_in_grid() * ROW_WARPS + warp; at < p.count;
         at += blocks_in_grid() * ROW_WARPS) {
        Words2 token = p.tokens[at];
        Row row = {};
        add_row(row, p.words + (u64)token.x * p.hidden, p.hidden);
        add_row(row, p.positions + (u64)token.y * p.hidden, p.hidden);
        store_normalised(row, p.norm, p.states + (u64)at * p.hidden, p.hidden, p.epsilon);
    }
}

KERNEL(256, 2) __global__ void embed_norm(const EmbedNormParams p) {
    const u32 warp = thread_in_block() / WARP;
    for (u32 at = block_in_grid() * ROW_WARPS + warp; at < p.count;
         at += blocks_in_grid() * ROW_WARPS) {
        Row row = {};
        add_row(row, p.rows + (u64)at * p.hidden, p.hidden);
        store_normalised(row, p.norm, p.states + (u64)at * p.hidden, p.hidden, p.epsilon);
    }
}

LAUNCHABLE(embed_gather)
LAUNCHABLE(embed_norm)
