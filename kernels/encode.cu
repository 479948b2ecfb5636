// Encoding: unit vectors to T0 blocks relative to each list's rotated point. Bit-equal to the
// CPU (src/compute/src/rotation.rs, one_bit/encode.rs): a sum that rounds is taken by one thread in
// the order of the components, and the number of rows keeps the device busy instead.
//
// Kernel   encode_one_bit
// Launcher src/compute/src/cuda/encode.rs
// Block    256 threads, R = 32, 16, 8, 4 or 2 rows a block, one warp a row; use the largest R whose
//          shared memory fits. Grid: x = slots / R, rounded up.
// Shared   R * (32 + 4 * (width + 1)) bytes.
// Limits   width = dimension rounded up to 64, at most 3,072. Vectors are finite.
// Does     4 log2(width) passes over shared memory, 8 bytes a component each: 1M x 384 moves 110 GB
//          at 33 TB/s, 4 ms, and 384 x 4 sequential additions for each warp of rows.
// Built    ptxas 13.0 for sm_90, no spills: 42 to 56 registers.

static const u32 ROTATE_THREADS = 256;
static const u32 ROUNDS = 4;
static const u32 BLOCK_ROWS = 64;
static const u32 NO_ROW = 0xffffffffu;

struct EncodeOneBitParams {
    const f32 *units;            // [rows][dimension]
    const f32 *signs;            // [4][width]
    const f32 *references;       // [lists][width], the rotated points
    const u32 *rows_of_slots;    // [slots]; 2^32 - 1 where a block is only filled up
    const u32 *lists_of_blocks;  // [slots / 64]
    u8 *blocks;                  // [slots / 64] blocks as one_bit/mod.rs draws them
    u32 slots;                   // a multiple of 64
    u32 dimension;
    u32 width;
    u32 rows_a_block;            // R
};

// Replaces neighbouring runs of 2^shift of `count` values by their sums and differences. One warp.
DEVICE void butterflies(f32 *values, u32 count, u32 shift) {
    for (u32 pair = thread_in_block() % WARP; pair < count / 2; pair += WARP) {
        u32 low = (pair >> shift << (shift + 1)) + (pair & ((1u << shift) - 1));
        u32 high = low + (1u << shift);
        f32 a = values[low], b = values[high];
        values[low] = sum(a, b);
        values[high] = difference(a, b);
    }
    warp_barrier();
}

// Rotates a row in shared memory in place. One warp.
DEVICE void rotate_row(f32 *values, const f32 *signs, u32 width) {
    const u32 lane = thread_in_block() % WARP, log = highest_bit(width), power = 1u << log;
    const f32 scale = quotient(1.0f, square_root((f32)power));
    for (u32 round = 0; round < ROUNDS; round++) {
        for (u32 i = lane; i < width; i += WARP) {
            values[i] = product(values[i], signs[round * width + i]);
        }
        warp_barrier();
        f32 *part = values + (round % 2 == 0 ? 0 : width - power);
        for (u32 shift = 0; shift < log; shift++) butterflies(part, power, shift);
        for (u32 i = lane; i < power; i += WARP) part[i] = product(part[i], scale);
        warp_barrier();
        if (power == width) continue;
        for (u32 low = lane; low < width / 2; low += WARP) {
            const f32 half = from_bits(0x3f3504f3u);  // 1 / sqrt(2)
            f32 a = values[low], b = values[low + width / 2];
            values[low] = product(sum(a, b), half);
            values[low + width / 2] = product(difference(a, b), half);
        }
        warp_barrier();
    }
}

// Copies a vector to shared memory, padded with zeros, and rotates it there. One warp.
DEVICE void bring_rotated(f32 *values, const f32 *vector, u32 dimension, const f32 *signs,
                          u32 width) {
    for (u32 i = thread_in_block() % WARP; i < width; i += WARP) {
        values[i] = i < dimension ? vector[i] : 0.0f;
    }
    warp_barrier();
    rotate_row(values, signs, width);
}

// One of four sums over a row's residual, in the order of the components. By `kind`: 0: squares,
// 1: absolute values, 2: products with the reference, 3: the reference with the residual's signs.
DEVICE f64 sum_of(u32 kind, const f32 *values, const f32 *reference, u32 width) {
    f64 total = 0;
    for (u32 i = 0; i < width; i++) {
        f64 rest = (f64)difference(values[i], reference[i]), centre = (f64)reference[i];
        f64 term = rest > 0 ? centre : -centre;
        if (kind == 0) term = product(rest, rest);
        if (kind == 1) term = rest < 0 ? -rest : rest;
        if (kind == 2) term = product(rest, centre);
        total = sum(total, term);
    }
    return total;
}

// Derives scale, offset and error from the sums, as one_bit/encode.rs does. Zeros for a row that
// equals its reference, and for a slot without a row.
DEVICE void write_factors(f32 *columns, const f64 *sums, u32 rows, f64 width) {
    f64 squares = sums[0], absolute = sums[rows], across = sums[2 * rows];
    f32 factors[3] = {0, 0, 0};
    if (squares != 0) {
        f64 scale = quotient(squares, absolute);
        f64 along = quotient(absolute, square_root(product(width, squares)));
        f64 missing = difference(1.0, product(along, along));
        f64 share = quotient(missing > 0 ? missing : 0, width - 1);
        f64 deviation = quotient(square_root(share), along);
        factors[0] = narrowed(scale);
        factors[1] = narrowed(difference(across, product(scale, sums[3 * rows])));
        factors[2] = narrowed(product(square_root(squares), deviation));
    }
    for (u32 column = 0; column < 3; column++) columns[column * BLOCK_ROWS] = factors[column];
}

KERNEL(256, 2) __global__ void encode_one_bit(const EncodeOneBitParams p) {
    const u32 rows = p.rows_a_block, warp = thread_in_block() / WARP;
    const u32 lane = thread_in_block() % WARP, first = block_in_grid() * rows;
    const u32 block = first / BLOCK_ROWS, at = first % BLOCK_ROWS;
    f64 *sums = (f64 *)shared_memory();  // [4][rows]
    f32 *shared = (f32 *)(sums + 4 * rows);
    const f32 *reference = p.references + (u64)p.lists_of_blocks[block] * p.width;
    u8 *codes = p.blocks + (u64)block * (p.width * 8 + 12 * BLOCK_ROWS);
    for (u32 row = warp; row < rows; row += ROTATE_THREADS / WARP) {
        u32 number = p.rows_of_slots[first + row];
        if (number == NO_ROW) continue;
        const f32 *unit = p.units + (u64)number * p.dimension;
        bring_rotated(shared + row * (p.width + 1), unit, p.dimension, p.signs, p.width);
    }
    block_barrier();
    if (warp < 4 && lane < rows) {
        const f32 *values = shared + lane * (p.width + 1);
        bool has_row = p.rows_of_slots[first + lane] != NO_ROW;
        sums[warp * rows + lane] = has_row ? sum_of(warp, values, reference, p.width) : 0;
    }
    for (u32 byte = thread_in_block(); byte < rows * p.width / 8; byte += ROTATE_THREADS) {
        u32 row = byte % rows, group = byte / rows * 8, bits = 0;
        if (p.rows_of_slots[first + row] != NO_ROW) {
            const f32 *values = shared + row * (p.width + 1) + group;
            for (u32 bit = 0; bit < 8; bit++) {
                bits |= (u32)(difference(values[bit], reference[group + bit]) > 0) << bit;
            }
        }
        codes[group * 8 + at + row] = (u8)bits;
    }
    block_barrier();
    if (thread_in_block() < rows) {
        f32 *columns = (f32 *)(codes + p.width * 8) + at + thread_in_block();
        write_factors(columns, sums + thread_in_block(), rows, (f64)p.width);
    }
}

LAUNCHABLE(encode_one_bit)
