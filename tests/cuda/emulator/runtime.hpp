// Declarations shared by the parts of the emulator's runtime.
//
//   launch.cpp  blocks one after the other; a fiber per thread; barriers; the functions
//               that programs call (emulated_*)
//   memory.cpp  buffers, shadow of every 4 bytes, races, memory nobody wrote
//   warp.cpp    warp operations, matrix fragments, copies in the background
//
// Found without a GPU:
// - a read or write outside buffers, shared memory and the thread's own stack, to the byte
// - a read of bytes that nobody wrote
// - two threads at one address, one of them writing, with no barrier between (whatever order the
//   fibers ran in), and two blocks at one address, but for atomics
// - a copy read before it was waited for: the data lands only at the wait
// - a barrier or a warp operation that some threads do not meet, or meet another way
// - unaligned 16-byte accesses; counted: bank conflicts of ldmatrix
// Not found: errors that depend on the width of vectors of plain loads, on caches, on timing.
// Atomics order nothing here: a block that waits for another's flag is refused as a race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device.hpp"

namespace emulator {

static const uint32_t WARP_LANES = 32;

// Operations in which a warp's lanes meet.
enum class Meeting { None, Barrier, Ballot, Shuffle, ShuffleXor, Matrix, MmaS8, MmaF16 };

struct Copy {
    uint8_t *to;
    const uint8_t *from;
    bool has;
};

struct Thread {
    ThreadPosition position;
    void *stack_pointer = nullptr;
    uint8_t *stack = nullptr;
    bool is_done = false;
    bool at_barrier = false;
    std::vector<std::vector<Copy>> groups;  // Committed and not yet waited for.
    std::vector<Copy> open;
};

struct Warp {
    Meeting meeting = Meeting::None;
    uint32_t arrived = 0;
    uint32_t lanes = 0;
    uint32_t epoch = 0;
    const void *in[WARP_LANES];
    void *out[WARP_LANES];
};

struct Block {
    std::vector<Thread *> threads;
    std::vector<Warp> warps;
    uint8_t *shared = nullptr;
    uint32_t shared_bytes = 0;
};

extern Block block;
extern Thread *current;

// Ends the launch with a message; does not return to the kernel.
[[noreturn]] void fail(const std::string &message);
// Runs others until someone calls `wake` for this thread.
void pause();
void wake(Thread *thread);
// The lanes of the current warp meet; the last to arrive does `work` for all.
void meet(Meeting meeting, const void *in, void *out, void (*work)(Warp &));

enum class Access { Read, Write, Atomic };
// Checks an access of the current thread; fails if it may not be.
void check(const void *at, size_t bytes, Access access);
// Marks shared bytes that a background copy will fill: nobody may read them before.
void mark_pending(const void *at, size_t bytes);
void memory_begin_launch();
void memory_begin_block();
void memory_barrier();

}  // namespace emulator
