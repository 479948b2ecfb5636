// Converts the mask of a filter that few rows pass into a list of rows, so that searches read
// only those. A row is at least 64 contiguous bytes, and reading whole rows at random is nearly as
// fast as reading them in order (scan.cu, batch.cu).
//
// Kernels  mask_count  counts the passing rows of each run of 65,536
//          mask_list   writes the passing rows, ascending; after mask_count
// Launcher src/compute/src/cuda/gather.rs
// Block    256 threads. Grid: x = runs. Shared: 64 bytes.
// Moves    rows / 8 bytes each and 4 per passing row. 1M rows of which 100,000 pass: 5 us.
// Built    ptxas 13.0 for sm_90, no spills: 24 to 48 registers.

static const u32 GATHER_THREADS = 256;
// Words of the mask processed by one block of mask_count or mask_list: 8 per thread.
static const u32 RUN_WORDS = 2048;
static const u32 THREAD_WORDS = RUN_WORDS / GATHER_THREADS;

struct MaskListParams {
    const u32 *mask;  // [words]; no bit at or above the number of rows is set
    u32 *run_counts;  // [(words + 2047) / 2048]; mask_count writes, mask_list reads
    u32 *listed;      // [as many as pass]; mask_list writes
    u32 words;
    u32 capacity;     // of listed: nothing is written beyond it
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

LAUNCHABLE(mask_count)
LAUNCHABLE(mask_list)
