// Products of many vectors with many others, tile by tile: the base of batch.cu and assign.cu.
// Vectors are codes, or f16 of twice the bytes. Prepended to each kernel source, after device.cuh.
//
// A block of 256 threads keeps some vectors (queries or rows) in shared memory, while tiles of 128
// others stream through STAGES buffers of 128 x 64 bytes (cp.async), chunk after chunk and tile
// after tile without a gap. Each warp computes a part of the 128 x kept products, with its totals
// in registers. The warpgroup variant uses blocks of 128 threads and tiles of 64; both have two
// threads per row.
//
//   64-byte row in shared memory: unit u (16 bytes) of row r is unit (r % 2) * 4 + (u ^ r / 2 % 4)
//   of line r / 2, so that the eight rows of a matrix lie in eight different groups of banks
//
// A source of vectors has `Numbers`, their format; `count`; `stride` in bytes; `zeros`, any 16-byte
// aligned address, passed where nothing is read; `codes(position)`, null for a vector of zeros; and
// `next(tile)`, the first tile that has vectors, from this one on in steps of the grid.

static const u32 TILE_ROWS = 128;
static const u32 STAGE_BYTES = TILE_ROWS * CHUNK_BYTES;
// The warpgroup variant has half the threads a block and half the rows a tile.
static const u32 WARPGROUP_ROWS = 64;

// Byte offset of unit `unit` of row `row` in a stack of 64-byte rows.
DEVICE u32 swizzled(u32 row, u32 unit) {
    return row / 2 * 128 + (row % 2 * 4 + (unit ^ (row / 2 % 4))) * 16;
}

// Copies chunk after chunk, tile after tile, to shared memory. Each thread copies one unit of two
// rows.
struct Stream {
    u32 tile, chunk, stage;
    const i8 *rows[2];
};

template <u32 ROWS, class Source>
DEVICE void begin_tile(const Source &source, Stream &stream, u32 tile) {
    stream.tile = source.next(tile);
    stream.chunk = 0;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 position = stream.tile * ROWS + half * (ROWS / 2) + thread_in_block() / 4;
        stream.rows[half] = position < source.count ? source.codes(position) : nullptr;
    }
}

template <u32 STAGES, u32 ROWS, class Source>
DEVICE void bring_next(const Source &source, Stream &stream, u8 *stages) {
    if (stream.tile * ROWS < source.count) {
        u32 unit = thread_in_block() % 4, offset = stream.chunk * CHUNK_BYTES + unit * 16;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 row = half * (ROWS / 2) + thread_in_block() / 4;
            u8 *to = stages + stream.stage * ROWS * CHUNK_BYTES + swizzled(row, unit);
            const i8 *from = stream.rows[half];
            copy_async_16(to, from == nullptr ? source.zeros : from + offset, from != nullptr);
        }
        stream.stage = stream.stage + 1 == STAGES ? 0 : stream.stage + 1;
        stream.chunk++;
        if (stream.chunk * CHUNK_BYTES == source.stride) {
            begin_tile<ROWS>(source, stream, stream.tile + blocks_in_grid());
        }
    }
    copy_async_commit();
}

// Copies KEPT vectors, from position `first` on, to shared memory in chunk-major order, without
// committing the copies.
template <u32 KEPT, class Source>
DEVICE void bring_kept(const Source &source, u8 *shared, u32 first) {
    u32 units = KEPT * (source.stride / 16);
    for (u32 unit = thread_in_block(); unit < units; unit += threads_in_block()) {
        u32 chunk = unit / (4 * KEPT), at = unit / 4 % KEPT, position = first + at;
        const i8 *from = position < source.count ? source.codes(position) : nullptr;
        u8 *to = shared + chunk * KEPT * CHUNK_BYTES + swizzled(at, unit % 4);
        u32 offset = chunk * CHUNK_BYTES + unit % 4 * 16;
        copy_async_16(to, from == nullptr ? source.zeros : from + offset, from != nullptr);
    }
}

// One warp's part of a block's product: FRAGMENTS x 16 streamed by TILES x 8 kept vectors.
template <class Numbers, u32 FRAGMENTS, u32 TILES>
struct Part {
    u32 first_row, first_kept;
    typename Numbers::Total totals[FRAGMENTS][TILES][4];
};

// Adds the product of one chunk to the totals.
template <class Numbers, u32 FRAGMENTS, u32 TILES>
DEVICE void multiply_chunk(Part<Numbers, FRAGMENTS, TILES> &part, const u8 *rows, const u8 *kept) {
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
            u32 row = part.first_kept + pair * 16 + lane / 16 * 8 + lane % 8, b[4];
            load_matrix_x4(b, kept + swizzled(row, step * 2 + lane / 8 % 2));
#pragma unroll
            for (u32 at = 0; at < FRAGMENTS; at++) {
                Numbers::multiply(part.totals[at][2 * pair], a[at], b[0], b[1]);
                Numbers::multiply(part.totals[at][2 * pair + 1], a[at], b[2], b[3]);
            }
        }
    }
}

// Multiplies the kept vectors, whose copies are issued but not yet committed, with each tile of
// this block. `before(part, tile)` loads the values that `after(part, tile)` uses, overlapping with
// the product. All threads call `between()` once per tile, after a barrier that follows every
// `after` of the previous tile.
template <u32 STAGES, u32 KEPT, u32 FRAGMENTS, u32 TILES, class Source, class Before,
          class Between, class After>
DEVICE void multiply_tiles(const Source &source, u8 *stages, const u8 *kept, Before before,
                           Between between, After after) {
    const u32 warp = thread_in_block() / WARP, across = KEPT / (8 * TILES);
    Part<typename Source::Numbers, FRAGMENTS, TILES> part;
    part.first_row = warp / across * 16 * FRAGMENTS;
    part.first_kept = warp % across * 8 * TILES;
    Stream stream;
    stream.stage = 0;
    begin_tile<TILE_ROWS>(source, stream, block_in_grid());
    u32 tile = stream.tile, stage = 0;
#pragma unroll
    for (u32 at = 0; at + 1 < STAGES; at++) bring_next<STAGES, TILE_ROWS>(source, stream, stages);
    for (; tile * TILE_ROWS < source.count; tile = source.next(tile + blocks_in_grid())) {
#pragma unroll
        for (u32 at = 0; at < FRAGMENTS * TILES * 4; at++) {
            part.totals[at / 4 / TILES][at / 4 % TILES][at % 4] = 0;
        }
        before(part, tile);
        for (u32 chunk = 0; chunk * CHUNK_BYTES < source.stride; chunk++) {
            copy_async_wait<STAGES - 2>();
            block_barrier();
            if (chunk == 0) between();
            bring_next<STAGES, TILE_ROWS>(source, stream, stages);
            multiply_chunk(part, stages + stage * STAGE_BYTES, kept + chunk * KEPT * CHUNK_BYTES);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        after(part, tile);
    }
    copy_async_wait<0>();
}

#ifdef WARPGROUPS
// Likewise with tiles of 64 codes, multiplied by the block's warpgroup. Its tensor cores idle while
// it processes the totals; two blocks per multiprocessor take turns.
template <u32 STAGES, u32 KEPT, class Source, class Before, class Between, class After>
DEVICE void multiply_tiles_by_warpgroup(const Source &source, u8 *stages, const u8 *kept,
                                        Before before, Between between, After after) {
    Part<Codes, 1, KEPT / 8> part;
    part.first_row = thread_in_block() / WARP * 16;
    part.first_kept = 0;
    Stream stream;
    stream.stage = 0;
    begin_tile<WARPGROUP_ROWS>(source, stream, block_in_grid());
    u32 tile = stream.tile, stage = 0;
#pragma unroll
    for (u32 at = 0; at + 1 < STAGES; at++) {
        bring_next<STAGES, WARPGROUP_ROWS>(source, stream, stages);
    }
    for (; tile * WARPGROUP_ROWS < source.count; tile = source.next(tile + blocks_in_grid())) {
        before(part, tile);
        for (u32 chunk = 0; chunk * CHUNK_BYTES < source.stride; chunk++) {
            copy_async_wait<STAGES - 2>();
            warpgroup_shows();
            block_barrier();
            if (chunk == 0) between();
            bring_next<STAGES, WARPGROUP_ROWS>(source, stream, stages);
            const u8 *rows = stages + stage * WARPGROUP_ROWS * CHUNK_BYTES;
            const u8 *own = kept + chunk * KEPT * CHUNK_BYTES;
            warpgroup_begin();
            warpgroup_product(part.totals[0], rows, own, 0, chunk > 0);
            warpgroup_product(part.totals[0], rows, own, 1, true);
            warpgroup_end();
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        after(part, tile);
    }
    copy_async_wait<0>();
}
#endif
