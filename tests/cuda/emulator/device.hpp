// The names of kernels/device.cuh for a CPU: kernels are compiled with these in place of PTX.
//
// A CUDA thread is a fiber; runtime.hpp lists the checks. This header is compiled with the kernels,
// whose every memory access reports itself (see `run`), so all other accesses are made by the
// runtime, behind these calls.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define LODESTONE_EMULATED
#define __global__
#define __device__
#define __host__
#define __restrict__ __restrict
#define __forceinline__ inline
#define __launch_bounds__(...)
#define DEVICE static inline __attribute__((unused))
#define DEVICE_MEMBER inline
// Reads of the emulator itself are not a kernel's.
#define OWN DEVICE __attribute__((no_sanitize("thread")))
#define KERNEL(threads, blocks) extern "C"

struct alignas(16) Words4 {
    uint32_t x, y, z, w;
};
struct alignas(8) Words2 {
    uint32_t x, y;
};

namespace emulator {

struct ThreadPosition {
    uint32_t thread, threads, block, block_y, blocks, blocks_y;
};
extern const ThreadPosition *position;

// All of these end the kernel where a rule is broken.
uint8_t *shared_memory();
void block_barrier();
void warp_barrier();
uint32_t ballot(bool vote);
uint32_t shuffle(uint32_t value, uint32_t lane);
uint32_t shuffle_xor(uint32_t value, uint32_t mask);
void load_16(void *to, const void *from);
uint32_t atomic_add(uint32_t *at, uint32_t value);
uint32_t atomic_max(uint32_t *at, uint32_t value);
uint64_t atomic_max(uint64_t *at, uint64_t value);
void copy_async_16(void *to, const void *from, bool has);
void copy_async_commit();
void copy_async_wait(int pending);
void load_matrix_x4(uint32_t *words, const void *row, bool transposed);
void mma_s8(int32_t *total, const uint32_t *a, uint32_t b0, uint32_t b1);
void mma_f16(float *total, const uint32_t *a, uint32_t b0, uint32_t b1);
float widened_f16(uint16_t bits);
uint16_t narrowed_f16(float value);

void known(const char *name, size_t parameter_bytes, void (*call)(void *, const void *),
           void *kernel);

// The copy of the parameters is the launch's, not the kernel's: it is not reported.
template <class Params>
__attribute__((no_sanitize("thread"))) void call(void *kernel, const void *params) {
    ((void (*)(Params))kernel)(*(const Params *)params);
}

struct Known {
    template <class Params>
    Known(const char *name, void (*kernel)(Params)) {
        known(name, sizeof(Params), call<Params>, (void *)kernel);
    }
};

}  // namespace emulator

#define LAUNCHABLE(name) static const emulator::Known known_##name(#name, name);

OWN uint32_t thread_in_block() { return emulator::position->thread; }
OWN uint32_t threads_in_block() { return emulator::position->threads; }
OWN uint32_t block_in_grid() { return emulator::position->block; }
OWN uint32_t block_in_grid_y() { return emulator::position->block_y; }
OWN uint32_t blocks_in_grid() { return emulator::position->blocks; }
OWN uint32_t blocks_in_grid_y() { return emulator::position->blocks_y; }
DEVICE uint8_t *shared_memory() { return emulator::shared_memory(); }
DEVICE void block_barrier() { emulator::block_barrier(); }
DEVICE void warp_barrier() { emulator::warp_barrier(); }
DEVICE uint32_t warp_ballot(bool vote) { return emulator::ballot(vote); }
DEVICE uint32_t warp_shuffle(uint32_t value, uint32_t lane) {
    return emulator::shuffle(value, lane);
}
DEVICE uint32_t warp_shuffle_xor(uint32_t value, uint32_t mask) {
    return emulator::shuffle_xor(value, mask);
}

DEVICE uint32_t population(uint32_t word) { return __builtin_popcount(word); }
DEVICE uint32_t lowest_bit(uint32_t word) { return word == 0 ? ~0u : __builtin_ctz(word); }
DEVICE uint32_t highest_bit(uint32_t word) { return word == 0 ? ~0u : 31 - __builtin_clz(word); }
DEVICE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
DEVICE float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Built with -ffp-contract=off: each rounds once.
DEVICE float product(float a, float b) { return a * b; }
DEVICE float sum(float a, float b) { return a + b; }
DEVICE float difference(float a, float b) { return a - b; }
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float quotient(float a, float b) { return a / b; }
DEVICE float square_root(float a) { return __builtin_sqrtf(a); }
DEVICE double product(double a, double b) { return a * b; }
DEVICE double sum(double a, double b) { return a + b; }
DEVICE double difference(double a, double b) { return a - b; }
DEVICE double quotient(double a, double b) { return a / b; }
DEVICE double square_root(double a) { return __builtin_sqrt(a); }
DEVICE float narrowed(double value) { return (float)value; }
DEVICE float widened_f16(uint16_t bits) { return emulator::widened_f16(bits); }
DEVICE uint32_t pair_of_f16(float low, float high) {
    return emulator::narrowed_f16(low) | (uint32_t)emulator::narrowed_f16(high) << 16;
}
DEVICE float power_of_two(float value) { return exp2f(value); }
DEVICE float reciprocal(float value) { return 1 / value; }
DEVICE float error_function(float value) { return erff(value); }

DEVICE Words4 load_streaming_16(const void *from, bool has = true) {
    Words4 words = {0, 0, 0, 0};
    if (has) emulator::load_16(&words, from);
    return words;
}
DEVICE uint32_t atomic_add(uint32_t *at, uint32_t value) { return emulator::atomic_add(at, value); }
DEVICE uint32_t atomic_max(uint32_t *at, uint32_t value) { return emulator::atomic_max(at, value); }
DEVICE unsigned long long atomic_max(unsigned long long *at, unsigned long long value) {
    return emulator::atomic_max((uint64_t *)at, value);
}
DEVICE void copy_async_16(void *to_shared, const void *from_global, bool has) {
    emulator::copy_async_16(to_shared, from_global, has);
}
DEVICE void copy_async_commit() { emulator::copy_async_commit(); }
template <int PENDING>
DEVICE void copy_async_wait() {
    emulator::copy_async_wait(PENDING);
}
DEVICE void load_matrix_x4(uint32_t (&words)[4], const void *shared_row) {
    emulator::load_matrix_x4(words, shared_row, false);
}
DEVICE void load_matrix_x4_transposed(uint32_t (&words)[4], const void *shared_row) {
    emulator::load_matrix_x4(words, shared_row, true);
}
DEVICE void mma_s8_16x8x32(int32_t (&total)[4], const uint32_t (&a)[4], uint32_t b0,
                           uint32_t b1) {
    emulator::mma_s8(total, a, b0, b1);
}
DEVICE void mma_f16_16x8x16(float (&total)[4], const uint32_t (&a)[4], uint32_t b0,
                            uint32_t b1) {
    emulator::mma_f16(total, a, b0, b1);
}

#define WARPGROUPS
struct Bytes32 {
    int8_t of[32];
};
struct Halves32 {
    uint16_t of[16];
};
DEVICE int32_t dot_of_units(const Words4 (&a)[2], const Words4 (&b)[2], int32_t total) {
    const auto left = __builtin_bit_cast(Bytes32, a), right = __builtin_bit_cast(Bytes32, b);
    for (uint32_t at = 0; at < 32; at++) total += (int32_t)left.of[at] * right.of[at];
    return total;
}
DEVICE float dot_of_units(const Words4 (&a)[2], const Words4 (&b)[2], float total) {
    const auto left = __builtin_bit_cast(Halves32, a), right = __builtin_bit_cast(Halves32, b);
    for (uint32_t at = 0; at < 16; at++) {
        total += widened_f16(left.of[at]) * widened_f16(right.of[at]);
    }
    return total;
}
// Totals as the lanes of a warp have them after mma: rows 16w + l / 4 and eight below, two columns
// of each tile. `place` is the offset of a unit of a row.
template <class Total, uint32_t TILES, class Place>
DEVICE void warpgroup_multiply(Total (&totals)[TILES][4], const uint8_t *rows, const uint8_t *kept,
                               uint32_t step, bool adds, Place place) {
    const uint32_t thread = thread_in_block() % 128, lane = thread % 32;
    auto load = [&](Words4 (&words)[2], const uint8_t *from, uint32_t row) {
        for (uint32_t half = 0; half < 2; half++) {
            emulator::load_16(&words[half], from + place(row, 2 * step + half));
        }
    };
    Words4 own[2][2];
    for (uint32_t half = 0; half < 2; half++) {
        load(own[half], rows, thread / 32 * 16 + lane / 4 + 8 * half);
    }
    for (uint32_t tile = 0; tile < TILES; tile++) {
        for (uint32_t part = 0; part < 4; part++) {
            Words4 column[2];
            load(column, kept, tile * 8 + lane % 4 * 2 + part % 2);
            Total before = adds ? totals[tile][part] : 0;
            totals[tile][part] = dot_of_units(own[part / 2], column, before);
        }
    }
}
template <uint32_t TILES>
DEVICE void warpgroup_product(int32_t (&totals)[TILES][4], const uint8_t *rows,
                              const uint8_t *kept, uint32_t step, bool adds) {
    warpgroup_multiply(totals, rows, kept, step, adds, [](uint32_t row, uint32_t unit) {
        return row / 2 * 128 + (row % 2 * 4 + (unit ^ (row / 2 % 4))) * 16;
    });
}
DEVICE void warpgroup_product_f16(float (&totals)[16][4], const uint8_t *rows,
                                  const uint8_t *kept, uint32_t step, bool adds) {
    warpgroup_multiply(totals, rows, kept, step, adds, [](uint32_t row, uint32_t unit) {
        return row * 128 + (unit ^ row % 8) * 16;
    });
}
DEVICE void warpgroup_begin() {}
DEVICE void warpgroup_end() {}
DEVICE void warpgroup_shows() {}
