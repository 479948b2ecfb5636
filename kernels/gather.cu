// G3: a filter that few rows pass. Its mask becomes a list, and the list's rows may be brought
// together, so that searches read what passes and nothing else.
//
// A search (scan.cu, batch.cu) takes a list as it is: a row is at least 64 bytes in one place, and
// whole rows from anywhere come nearly as fast as rows in order. Bringing rows together costs as
// much as three such searches and pays where one filter serves more.
//
// Kernels  mask_count   passing rows of each run of 65,536      (grid: runs; 256 threads)
//          mask_list    mask -> its rows, ascending             (the same; after mask_count)
//          gather_rows  codes and factors of listed rows        (any grid; 256 threads)
// Shared   mask_count, mask_list: 64 bytes; gather_rows: none.
// Moves    mask_*: rows / 8 bytes each and 4 a passing row. gather_rows: 2 m (stride + 8); a warp
//          moves 512 bytes a step, four steps under way: 60 % of bandwidth from m = 10,000 on.
//          1M x 384, m = 100,000: 78 MB, 18 us at 4.3 TB/s, 30 us expected; the list 5 us.
// Built    ptxas 13.0 for sm_90, no spills: 24 to 48 registers.

static const u32 GATHER_THREADS = 256;
// Words of the mask that one block of mask_count and mask_list looks at: 8 a thread.
static const u32 RUN_WORDS = 2048;
static const u32 THREAD_WORDS = RUN_WORDS / GATHER_THREADS;

struct MaskListParams {
    const u32 *mask;  // [words]; no bit at or above the number of rows is set
    u32 *run_counts;  // [(words + 2047) / 2048]; mask_count writes, mask_list reads
    u32 *listed;      // [as many as pass]; mask_list writes
    u32 words;
    u32 capacity;     // of listed: nothing is written beyond it
};

struct GatherRowsParams {
    const i8 *codes;         // [rows][stride]
    const f32 *scales;       // [rows]
    const f32 *residuals;    // [rows]
    const u32 *listed;       // [count]
    i8 *gathered_codes;      // [count][stride]
    f32 *gathered_scales;    // [count]
    f32 *gathered_residuals; // [count]
    u32 count;
    u32 stride;
};

DEVICE u32 own_words(const MaskListParams &p, u32 (&words)[THREAD_WORDS]) {
    u32 first = block_in_grid() * RUN_WORDS + thread_in_block() * THREAD_WORDS, count = 0;
#pragma unroll
    for (u32 at = 0; at < THREAD_WORDS; at++) {
        words[at] = first + at < p.words ? p.mask[first + at] : 0;
        count += population(words[at]);
    }
    return count;
}

KERNEL(256, 4) __global__ void mask_count(const MaskListParams p) {
    u32 words[THREAD_WORDS], total;
    sum_before((u32 *)shared_memory(), own_words(p, words), total);
    if (thread_in_block() == 0) p.run_counts[block_in_grid()] = total;
}

KERNEL(256, 4) __global__ void mask_list(const MaskListParams p) {
    u32 *shared = (u32 *)shared_memory();
    u32 words[THREAD_WORDS], own = 0, earlier, total;
    for (u32 run = thread_in_block(); run < block_in_grid(); run += GATHER_THREADS) {
        own += p.run_counts[run];
    }
    sum_before(shared, own, earlier);
    u32 place = earlier + sum_before(shared, own_words(p, words), total);
    u32 first = (block_in_grid() * RUN_WORDS + thread_in_block() * THREAD_WORDS) * 32;
#pragma unroll
    for (u32 at = 0; at < THREAD_WORDS; at++) {
        for (u32 word = words[at]; word != 0; word &= word - 1) {
            if (place < p.capacity) p.listed[place] = first + at * 32 + lowest_bit(word);
            place++;
        }
    }
}

KERNEL(256, 4) __global__ void gather_rows(const GatherRowsParams p) {
    const u32 units_of_row = p.stride / 16, threads = blocks_in_grid() * GATHER_THREADS;
    const u64 units = (u64)p.count * units_of_row;
    const u64 first = (u64)block_in_grid() * GATHER_THREADS + thread_in_block();
    for (u64 unit = first; unit < units; unit += 4 * (u64)threads) {
        Words4 words[4];
#pragma unroll
        for (u32 ahead = 0; ahead < 4; ahead++) {
            u64 at = unit + ahead * (u64)threads;
            if (at >= units) continue;
            u64 row = p.listed[at / units_of_row];
            words[ahead] = load_streaming_16(p.codes + row * p.stride + at % units_of_row * 16);
        }
#pragma unroll
        for (u32 ahead = 0; ahead < 4; ahead++) {
            u64 at = unit + ahead * (u64)threads;
            if (at < units) ((Words4 *)p.gathered_codes)[at] = words[ahead];
        }
    }
    for (u64 at = first; at < p.count; at += threads) {
        u32 row = p.listed[at];
        p.gathered_scales[at] = p.scales[row];
        p.gathered_residuals[at] = p.residuals[row];
    }
}

LAUNCHABLE(mask_count)
LAUNCHABLE(mask_list)
LAUNCHABLE(gather_rows)
