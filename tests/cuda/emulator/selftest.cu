// Kernels with known errors, which the emulator must find, and without, where it must find none.

struct FaultParams {
    const u32 *from;
    u32 *to;
    u32 count;
    u32 fault;
};

// Reverses 64 words within shared memory; `fault` chooses the error.
static const u32 FAULT_NONE = 0, FAULT_BARRIER = 1, FAULT_READ_BEYOND = 2, FAULT_WRITE_BEYOND = 3,
                 FAULT_DIVERGENT = 4, FAULT_UNWRITTEN = 5, FAULT_BLOCKS = 6, FAULT_SHARED = 7,
                 FAULT_EXIT = 8, FAULT_REUSE = 9;

extern "C" __global__ void faulty_reverse(const FaultParams p) {
    u32 *words = (u32 *)shared_memory();
    u32 thread = thread_in_block();
    if (p.fault == FAULT_EXIT && thread == 5) return;
    u32 from = p.fault == FAULT_READ_BEYOND ? thread + 1 : thread;
    if (p.fault != FAULT_UNWRITTEN || thread != 7) words[thread] = p.from[from];
    if (p.fault == FAULT_SHARED && thread == 63) words[64] = 0;
    if (p.fault == FAULT_DIVERGENT) {
        if (thread >= 32) return;
        block_barrier();
    } else if (p.fault != FAULT_BARRIER) {
        block_barrier();
    }
    u32 word = words[63 - thread];
    if (p.fault == FAULT_REUSE) words[thread] = word;
    u32 to = p.fault == FAULT_WRITE_BEYOND ? thread + 1 : thread;
    u32 block = p.fault == FAULT_BLOCKS ? 0 : block_in_grid();
    p.to[64 * block + to] = word;
}
LAUNCHABLE(faulty_reverse)

// Copies 64 x 16 bytes in the background; fault 1 reads without waiting, 2 with a wait but no
// barrier, 3 waits for too few of two groups.
extern "C" __global__ void faulty_copy(const FaultParams p) {
    Words4 *shared = (Words4 *)shared_memory();
    u32 thread = thread_in_block();
    copy_async_16(&shared[thread], p.from + 4 * thread, thread < p.count);
    copy_async_commit();
    copy_async_16(&shared[thread + 64], p.from + 4 * thread, true);
    copy_async_commit();
    if (p.fault == 3) copy_async_wait<1>();
    if (p.fault != 1 && p.fault != 3) copy_async_wait<0>();
    if (p.fault != 2) block_barrier();
    const Words4 &words = shared[127 - thread];
    p.to[thread] = words.x + words.w;
}
LAUNCHABLE(faulty_copy)

// Sums lanes through shared memory of one warp; fault 1 leaves out the warp's barrier, 2 lets lanes
// part before a shuffle.
extern "C" __global__ void faulty_warp(const FaultParams p) {
    u32 *words = (u32 *)shared_memory();
    u32 lane = thread_in_block();
    words[lane] = lane;
    if (p.fault != 1) warp_barrier();
    u32 value = words[lane ^ 1];
    if (p.fault == 2 && lane < 16) return;
    for (u32 mask = 16; mask > 0; mask /= 2) value += warp_shuffle_xor(value, mask);
    p.to[lane] = value;
}
LAUNCHABLE(faulty_warp)

struct FragmentParams {
    const u8 *a;
    const u8 *b;
    i32 *s8;
    f32 *f16;
};

// One product of 16 x 32 with 8 x 32 bytes, its fragments by ldmatrix.
extern "C" __global__ void fragments(const FragmentParams p) {
    u8 *shared = shared_memory();
    u32 lane = thread_in_block();
    for (u32 i = lane; i < 512; i += 32) shared[i] = p.a[i];
    for (u32 i = lane; i < 256; i += 32) shared[512 + i] = p.b[i];
    block_barrier();
    u32 a[4], b[4];
    // Matrices in the order of a's fragment: rows 0-8 and 8-16 of the left half, then of the right.
    load_matrix_x4(a, shared + (lane % 16) * 32 + lane / 16 * 16);
    load_matrix_x4(b, shared + 512 + lane % 8 * 32 + lane / 8 % 2 * 16);
    i32 sums[4] = {1, 1, 1, 1};
    mma_s8_16x8x32(sums, a, b[0], b[1]);
    f32 halves[4] = {0, 0, 0, 0};
    mma_f16_16x8x16(halves, a, b[0], b[1]);
    for (u32 i = 0; i < 4; i++) {
        u32 at = (lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2;
        p.s8[at] = sums[i];
        p.f16[at] = halves[i];
    }
}
LAUNCHABLE(fragments)
