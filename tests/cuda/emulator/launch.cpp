// Launches: blocks one after the other, their threads as fibers that run until they must wait.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>

#include "runtime.hpp"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulator {

const ThreadPosition *position = nullptr;
Block block;
Thread *current = nullptr;

namespace {

const size_t STACK_BYTES = 256 << 10;
const uint32_t THREADS_MAX = 1024;
const uint32_t SHARED_BYTES_MAX = 227 << 10;

struct Kernel {
    size_t parameter_bytes;
    void (*call)(void *, const void *);
    void *kernel;
};

std::map<std::string, Kernel> &kernels() {
    static std::map<std::string, Kernel> kernels;
    return kernels;
}

std::deque<Thread *> ready;
std::vector<Thread *> pool;
std::string error;
uint32_t order_seed = 0;
const Kernel *running = nullptr;
const void *parameters = nullptr;
uint32_t unfinished = 0, waiting = 0;

#if defined(__x86_64__)
void *launcher = nullptr;
extern "C" void emulator_switch(void **saved, void *next);
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch, .-emulator_switch
)");
void to(void **from, void *next) { emulator_switch(from, next); }
void prepare(Thread *thread, void (*entry)()) {
    void **top = (void **)(thread->stack + STACK_BYTES);
    *--top = nullptr;  // Where a return address would be: keeps the stack aligned as a call does.
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    thread->stack_pointer = top;
}
#else
ucontext_t launcher_context;
void *launcher = &launcher_context;
void to(void **from, void *next) { swapcontext((ucontext_t *)*from, (ucontext_t *)next); }
void prepare(Thread *thread, void (*entry)()) {
    if (thread->stack_pointer == nullptr) thread->stack_pointer = new ucontext_t;
    ucontext_t *context = (ucontext_t *)thread->stack_pointer;
    getcontext(context);
    context->uc_stack.ss_sp = thread->stack;
    context->uc_stack.ss_size = STACK_BYTES;
    makecontext(context, entry, 0);
}
#endif

void run(Thread *thread, void **from) {
    current = thread;
    position = &thread->position;
    to(from, thread->stack_pointer);
}

void leave_to_launcher(Thread *thread) {
    current = nullptr;
    to(&thread->stack_pointer, launcher);
}

void next_or_end(Thread *thread) {
    if (ready.empty()) {
        if (unfinished > 0 && error.empty()) {
            error = "a divergent barrier: " + std::to_string(waiting) + " threads wait at one, " +
                    std::to_string(unfinished) + " of " + std::to_string(block.threads.size()) +
                    " have not ended, and none can go on";
        }
        return leave_to_launcher(thread);
    }
    Thread *next = ready.front();
    ready.pop_front();
    if (next != thread) run(next, &thread->stack_pointer);
}

void body() {
    running->call(running->kernel, parameters);
    current->is_done = true;
    unfinished--;
    if (waiting > 0 && waiting == unfinished) {
        fail("a divergent barrier: this thread ended while " + std::to_string(waiting) +
             " threads wait");
    }
    next_or_end(current);
}

void run_block(uint32_t threads, uint32_t x, uint32_t y, const uint32_t *grid,
               std::mt19937 *shuffled) {
    block.threads.clear();
    block.warps.assign((threads + WARP_LANES - 1) / WARP_LANES, Warp());
    ready.clear();
    memory_begin_block();
    for (uint32_t i = 0; i < threads; i++) {
        if (pool.size() <= i) {
            pool.push_back(new Thread);
            pool[i]->stack = (uint8_t *)malloc(STACK_BYTES);
        }
        Thread *thread = pool[i];
        thread->position = ThreadPosition{i, threads, x, y, grid[0], grid[1]};
        thread->is_done = thread->at_barrier = false;
        thread->groups.clear();
        thread->open.clear();
#if defined(__SANITIZE_ADDRESS__)
        // Threads never return from their first call: clear the state that it left.
        ASAN_UNPOISON_MEMORY_REGION(thread->stack, STACK_BYTES);
#endif
        prepare(thread, body);
        block.threads.push_back(thread);
        block.warps[i / WARP_LANES].lanes |= 1u << i % WARP_LANES;
        ready.push_back(thread);
    }
    if (shuffled != nullptr) std::shuffle(ready.begin(), ready.end(), *shuffled);
    unfinished = threads;
    waiting = 0;
    Thread *first = ready.front();
    ready.pop_front();
    run(first, &launcher);
    current = nullptr;
}

}  // namespace

void fail(const std::string &message) {
    char where[128];
    snprintf(where, sizeof where, "block (%u, %u), thread %u: ", position->block, position->block_y,
             position->thread);
    error = where + message;
    leave_to_launcher(current);
    abort();
}

void pause() { next_or_end(current); }
void wake(Thread *thread) { ready.push_back(thread); }

void block_barrier() {
    if (unfinished < block.threads.size()) {
        fail("a divergent barrier: other threads of the block have ended");
    }
    waiting++;
    if (waiting < block.threads.size()) return pause();
    waiting = 0;
    memory_barrier();
    for (Thread *thread : block.threads) {
        if (thread != current) wake(thread);
    }
}

void meet(Meeting meeting, const void *in, void *out, void (*work)(Warp &)) {
    uint32_t number = current->position.thread / WARP_LANES;
    uint32_t lane = current->position.thread % WARP_LANES;
    Warp &warp = block.warps[number];
    if (warp.lanes != ~0u) fail("a warp operation in a warp that is not full");
    if (warp.arrived != 0 && warp.meeting != meeting) {
        fail("lanes of one warp are at different warp operations");
    }
    warp.meeting = meeting;
    warp.in[lane] = in;
    warp.out[lane] = out;
    warp.arrived |= 1u << lane;
    if (warp.arrived != warp.lanes) return pause();
    work(warp);
    warp.arrived = 0;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        Thread *other = block.threads[number * WARP_LANES + i];
        if (other != current) wake(other);
    }
}

uint8_t *shared_memory() { return block.shared; }

void known(const char *name, size_t parameter_bytes, void (*call)(void *, const void *),
           void *kernel) {
    kernels()[name] = Kernel{parameter_bytes, call, kernel};
}

}  // namespace emulator

using namespace emulator;

extern "C" {

// 0: it ran. 1: no such kernel. 2: a shape that no device accepts. 3: the kernel broke a rule;
// `emulated_error` says which. Not for several threads at once.
int emulated_launch(const char *kernel, const unsigned grid[3], const unsigned threads[3],
                    unsigned shared_bytes, const void *params) {
    error.clear();
    auto found = kernels().find(kernel);
    if (found == kernels().end()) {
        error = std::string("no kernel is called ") + kernel;
        return 1;
    }
    uint32_t width = threads[0] * threads[1] * threads[2];
    if (grid[0] == 0 || grid[1] == 0 || grid[1] > 65535 || grid[2] != 1 || threads[1] != 1 ||
        threads[2] != 1 || width == 0 || width > THREADS_MAX || width % WARP_LANES != 0 ||
        shared_bytes > SHARED_BYTES_MAX) {
        error = std::string("a shape that no device takes: ") + kernel;
        return 2;
    }
    running = &found->second;
    std::vector<uint8_t> copied(running->parameter_bytes + 16);
    uint8_t *aligned = copied.data() + (16 - (uintptr_t)copied.data() % 16) % 16;
    memcpy(aligned, params, running->parameter_bytes);
    parameters = aligned;
    block.shared = (uint8_t *)aligned_alloc(256, (shared_bytes / 256 + 1) * 256);
    block.shared_bytes = shared_bytes;
    std::mt19937 random(order_seed);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < (uint64_t)grid[0] * grid[1]; i++) order.push_back(i);
    if (order_seed != 0) std::shuffle(order.begin(), order.end(), random);
    memory_begin_launch();
    for (uint64_t number : order) {
        run_block(width, number % grid[0], number / grid[0], grid,
                  order_seed == 0 ? nullptr : &random);
        if (!error.empty()) break;
    }
    free(block.shared);
    block.shared = nullptr;
    if (error.empty()) return 0;
    error = std::string(kernel) + ": " + error;
    return 3;
}

// The rule that the last launch broke; empty where it ran.
const char *emulated_error() { return error.c_str(); }

// Blocks and threads in ascending order for 0, otherwise in one that the seed decides.
void emulated_order(uint32_t seed) { order_seed = seed; }

// Bytes of a kernel's parameters; 0 where it is not known.
uint64_t emulated_parameter_bytes(const char *kernel) {
    auto found = kernels().find(kernel);
    return found == kernels().end() ? 0 : found->second.parameter_bytes;
}

}  // extern "C"
