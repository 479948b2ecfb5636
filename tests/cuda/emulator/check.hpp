// What checks of kernels share: buffers of the emulated device, launches, seeded numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" {
uint64_t emulated_allocate(uint64_t bytes);
void emulated_free(uint64_t address);
int emulated_upload(uint64_t to, const void *from, uint64_t bytes);
int emulated_download(void *to, uint64_t from, uint64_t bytes);
int emulated_fill(uint64_t to, uint8_t value, uint64_t bytes);
int emulated_launch(const char *kernel, const unsigned grid[3], const unsigned threads[3],
                    unsigned shared_bytes, const void *params);
const char *emulated_error();
void emulated_order(uint32_t seed);
uint64_t emulated_conflicts();
}

// Counts what went wrong; `run` asks at the end.
inline int failures = 0;

template <class... Values>
void expect(bool holds, const char *format, Values... values) {
    if (holds) return;
    failures++;
    if (failures > 20) return;
    printf("FAILED: ");
    printf(format, values...);
    printf("\n");
}
inline void expect(bool holds, const char *message) { expect(holds, "%s", message); }

// A buffer on the emulated device, freed with its owner.
template <class T>
struct OnDevice {
    uint64_t at = 0;
    size_t count = 0;
    explicit OnDevice(const std::vector<T> &values) : OnDevice(values.size()) {
        if (emulated_upload(at, values.data(), count * sizeof(T)) != 0) abort();
    }
    // Memory that nobody wrote.
    explicit OnDevice(size_t count) : at(emulated_allocate(count * sizeof(T))), count(count) {}
    OnDevice(const OnDevice &) = delete;
    ~OnDevice() { emulated_free(at); }
    std::vector<T> download() const {
        std::vector<T> values(count);
        if (emulated_download(values.data(), at, count * sizeof(T)) != 0) abort();
        return values;
    }
};

template <class Params>
int try_launch(const char *kernel, unsigned blocks, unsigned blocks_y, unsigned threads,
               unsigned shared_bytes, const Params &params) {
    unsigned grid[3] = {blocks, blocks_y, 1}, block[3] = {threads, 1, 1};
    return emulated_launch(kernel, grid, block, shared_bytes, &params);
}

template <class Params>
void launch(const char *kernel, unsigned blocks, unsigned blocks_y, unsigned threads,
            unsigned shared_bytes, const Params &params) {
    int code = try_launch(kernel, blocks, blocks_y, threads, shared_bytes, params);
    expect(code == 0, "%s: %d %s", kernel, code, emulated_error());
}

using Random = std::mt19937;
inline uint32_t below(Random &random, uint32_t end) { return random() % end; }
inline float between(Random &random, float low, float high) {
    return low + (high - low) * (float)(random() >> 8) / (float)(1 << 24);
}
