// Warp operations as the PTX ISA defines them, and copies in the background.

#include <cstring>

#include "runtime.hpp"

namespace emulator {

namespace {

uint64_t conflicts = 0;

template <class T>
const T &in(const Warp &warp, uint32_t lane) {
    return *(const T *)warp.in[lane];
}
template <class T>
T &out(const Warp &warp, uint32_t lane) {
    return *(T *)warp.out[lane];
}

struct ShuffleIn {
    uint32_t value, lane;
};

void shuffle_all(Warp &warp, bool is_xor) {
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const auto &own = in<ShuffleIn>(warp, lane);
        uint32_t from = (is_xor ? lane ^ own.lane : own.lane) % WARP_LANES;
        out<uint32_t>(warp, lane) = in<ShuffleIn>(warp, from).value;
    }
}

struct MatrixIn {
    const uint8_t *row;
    bool transposed;
};

void load_matrices(Warp &warp) {
    for (uint32_t matrix = 0; matrix < 4; matrix++) {
        uint16_t values[8][8];
        uint32_t of_bank[8] = {};
        for (uint32_t row = 0; row < 8; row++) {
            const uint8_t *at = in<MatrixIn>(warp, 8 * matrix + row).row;
            memcpy(values[row], at, 16);
            // Rows of one phase that want the same four banks, but not the same bytes.
            bool is_new = true;
            for (uint32_t other = 0; other < row; other++) {
                is_new &= in<MatrixIn>(warp, 8 * matrix + other).row != at;
            }
            of_bank[(at - block.shared) / 16 % 8] += is_new;
        }
        uint32_t most = 1;
        for (uint32_t count : of_bank) most = count > most ? count : most;
        conflicts += most - 1;
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            uint32_t row = lane / 4, column = 2 * (lane % 4);
            bool transposed = in<MatrixIn>(warp, lane).transposed;
            uint32_t low = transposed ? values[column][row] : values[row][column];
            uint32_t high = transposed ? values[column + 1][row] : values[row][column + 1];
            (&out<uint32_t>(warp, lane))[matrix] = low | high << 16;
        }
    }
}

template <class Total>
struct MmaIn {
    uint32_t a[4], b[2];
    Total total[4];
};

// Rows of a as bytes, columns of b as bytes, out of the lanes' fragments: the same positions for s8
// and f16, whose elements are 1 and 2 bytes.
template <class Total>
void gather(const Warp &warp, uint8_t (&a)[16][32], uint8_t (&b)[8][32]) {
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const auto &own = in<MmaIn<Total>>(warp, lane);
        uint32_t group = lane / 4, word = lane % 4;
        for (uint32_t part = 0; part < 4; part++) {
            memcpy(&a[group + 8 * (part % 2)][4 * word + 16 * (part / 2)], &own.a[part], 4);
        }
        for (uint32_t part = 0; part < 2; part++) {
            memcpy(&b[group][4 * word + 16 * part], &own.b[part], 4);
        }
    }
}

template <class Total, class Product>
void multiply(Warp &warp, Product dot) {
    uint8_t a[16][32], b[8][32];
    gather<Total>(warp, a, b);
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        Total *totals = &out<Total>(warp, lane);
        for (uint32_t part = 0; part < 4; part++) {
            uint32_t row = lane / 4 + 8 * (part / 2), column = 2 * (lane % 4) + part % 2;
            totals[part] = dot(in<MmaIn<Total>>(warp, lane).total[part], a[row], b[column]);
        }
    }
}

}  // namespace

float widened_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = bits >> 10 & 31, rest = bits & 1023;
    if (exponent == 0) return (sign != 0 ? -1.0f : 1.0f) * (float)rest / (float)(1 << 24);
    uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return __builtin_bit_cast(float, sign | wide << 23 | rest << 13);
}

uint16_t narrowed_f16(float value) {
    uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(sign | 0x7fff);
    if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) {
        // Below the normals: to nearest even, by the adder's own rounding.
        float shifted = __builtin_bit_cast(float, bits) + 0.5f;
        return (uint16_t)(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000));
    }
    uint32_t odd = bits >> 13 & 1;
    return (uint16_t)(sign | (bits - 0x38000000 + 0xfff + odd) >> 13);
}

void warp_barrier() {
    meet(Meeting::Barrier, nullptr, nullptr, [](Warp &warp) { warp.epoch++; });
}

uint32_t ballot(bool vote) {
    uint32_t votes;
    meet(Meeting::Ballot, &vote, &votes, [](Warp &warp) {
        uint32_t votes = 0;
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            votes |= (uint32_t)in<bool>(warp, lane) << lane;
        }
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) out<uint32_t>(warp, lane) = votes;
    });
    return votes;
}

uint32_t shuffle(uint32_t value, uint32_t lane) {
    ShuffleIn in{value, lane};
    uint32_t out;
    meet(Meeting::Shuffle, &in, &out, [](Warp &warp) { shuffle_all(warp, false); });
    return out;
}

uint32_t shuffle_xor(uint32_t value, uint32_t mask) {
    ShuffleIn in{value, mask};
    uint32_t out;
    meet(Meeting::ShuffleXor, &in, &out, [](Warp &warp) { shuffle_all(warp, true); });
    return out;
}

void load_matrix_x4(uint32_t *words, const void *row, bool transposed) {
    if ((uintptr_t)row % 16 != 0) fail("a row of a matrix is not aligned to 16 bytes");
    if ((const uint8_t *)row < block.shared ||
        (const uint8_t *)row >= block.shared + block.shared_bytes) {
        fail("a row of a matrix outside shared memory");
    }
    check(row, 16, Access::Read);
    MatrixIn in{(const uint8_t *)row, transposed};
    meet(Meeting::Matrix, &in, words, load_matrices);
}

void mma_s8(int32_t *total, const uint32_t *a, uint32_t b0, uint32_t b1) {
    MmaIn<int32_t> in{{a[0], a[1], a[2], a[3]}, {b0, b1}, {}};
    memcpy(in.total, total, sizeof in.total);
    meet(Meeting::MmaS8, &in, total, [](Warp &warp) {
        multiply<int32_t>(warp, [](int32_t total, const uint8_t *a, const uint8_t *b) {
            uint32_t sum = (uint32_t)total;
            for (int i = 0; i < 32; i++) sum += (uint32_t)((int32_t)(int8_t)a[i] * (int8_t)b[i]);
            return (int32_t)sum;
        });
    });
}

void mma_f16(float *total, const uint32_t *a, uint32_t b0, uint32_t b1) {
    MmaIn<float> in{{a[0], a[1], a[2], a[3]}, {b0, b1}, {}};
    memcpy(in.total, total, sizeof in.total);
    meet(Meeting::MmaF16, &in, total, [](Warp &warp) {
        // Over 16 pairs, one after the other.
        multiply<float>(warp, [](float total, const uint8_t *a, const uint8_t *b) {
            for (int i = 0; i < 16; i++) {
                uint16_t left, right;
                memcpy(&left, a + 2 * i, 2);
                memcpy(&right, b + 2 * i, 2);
                total += widened_f16(left) * widened_f16(right);
            }
            return total;
        });
    });
}

void copy_async_16(void *to, const void *from, bool has) {
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0) {
        fail("a background copy is not aligned to 16 bytes");
    }
    if ((uint8_t *)to < block.shared || (uint8_t *)to >= block.shared + block.shared_bytes) {
        fail("a background copy to somewhere outside shared memory");
    }
    if (has) check(from, 16, Access::Read);
    mark_pending(to, 16);
    current->open.push_back({(uint8_t *)to, (const uint8_t *)from, has});
}

void copy_async_commit() {
    current->groups.push_back(current->open);
    current->open.clear();
}

void copy_async_wait(int pending) {
    while (current->groups.size() > (size_t)pending) {
        for (const Copy &copy : current->groups.front()) {
            check(copy.to, 16, Access::Write);
            if (copy.has) {
                memcpy(copy.to, copy.from, 16);
            } else {
                memset(copy.to, 0, 16);
            }
        }
        current->groups.erase(current->groups.begin());
    }
}

void load_16(void *to, const void *from) {
    if ((uintptr_t)from % 16 != 0) fail("a load of 16 bytes is not aligned");
    check(from, 16, Access::Read);
    memcpy(to, from, 16);
}

uint32_t atomic_add(uint32_t *at, uint32_t value) {
    check(at, 4, Access::Atomic);
    uint32_t before = *at;
    *at = before + value;
    return before;
}

uint32_t atomic_max(uint32_t *at, uint32_t value) {
    check(at, 4, Access::Atomic);
    uint32_t before = *at;
    *at = before > value ? before : value;
    return before;
}

uint64_t atomic_max(uint64_t *at, uint64_t value) {
    if ((uintptr_t)at % 8 != 0) fail("an atomic on 8 bytes is not aligned");
    check(at, 8, Access::Atomic);
    uint64_t before = *at;
    *at = before > value ? before : value;
    return before;
}

}  // namespace emulator

// Wavefronts that ldmatrix took beyond what it must, since the library was loaded.
extern "C" uint64_t emulated_conflicts() { return emulator::conflicts; }
