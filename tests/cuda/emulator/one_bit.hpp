// T0 as src/compute/src/rotation.rs and one_bit/encode.rs make it, in plain loops.
#pragma once

#include "rows.hpp"

inline std::vector<float> rotation_signs(uint32_t width) {
    std::vector<float> signs;
    uint64_t state = 0x6c6f646573746f6eull;
    for (uint32_t i = 0; i < 4 * width; i++) {
        state += 0x9e3779b97f4a7c15ull;
        uint64_t mixed = state;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
        mixed ^= mixed >> 31;
        signs.push_back(mixed >> 63 == 0 ? 1.0f : -1.0f);
    }
    return signs;
}

inline void butterflies(float *values, uint32_t count, uint32_t half) {
    for (uint32_t first = 0; first + 2 * half <= count; first += 2 * half) {
        for (uint32_t i = first; i < first + half; i++) {
            float a = values[i], b = values[i + half];
            values[i] = a + b;
            values[i + half] = a - b;
        }
    }
}

inline std::vector<float> rotated(const std::vector<float> &vector,
                                  const std::vector<float> &signs) {
    uint32_t width = (uint32_t)signs.size() / 4, power = 1;
    while (2 * power <= width) power *= 2;
    std::vector<float> values = vector;
    values.resize(width, 0);
    float scale = 1.0f / std::sqrt((float)power);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < width; i++) values[i] *= signs[round * width + i];
        float *part = values.data() + (round % 2 == 0 ? 0 : width - power);
        for (uint32_t half = 1; half < power; half *= 2) butterflies(part, power, half);
        for (uint32_t i = 0; i < power; i++) part[i] *= scale;
        if (power == width) continue;
        butterflies(values.data(), width, width / 2);
        for (float &value : values) value *= 0.707106781f;
    }
    return values;
}

struct OneBitFactors {
    float scale = 0, offset = 0, error = 0;
};

inline OneBitFactors one_bit_factors(const std::vector<float> &values, const float *reference) {
    double squares = 0, absolute = 0, across = 0, with_signs = 0;
    for (size_t i = 0; i < values.size(); i++) {
        float residual = values[i] - reference[i];
        double rest = residual, centre = reference[i];
        squares += rest * rest;
        absolute += std::fabs(rest);
        across += rest * centre;
        with_signs += rest > 0 ? centre : -centre;
    }
    OneBitFactors factors;
    if (squares == 0) return factors;
    double scale = squares / absolute, width = (double)values.size();
    double along = absolute / std::sqrt(width * squares);
    double deviation = std::sqrt(std::max(0.0, 1.0 - along * along) / (width - 1)) / along;
    factors.scale = (float)scale;
    factors.offset = (float)(across - scale * with_signs);
    factors.error = (float)(std::sqrt(squares) * deviation);
    return factors;
}

inline std::vector<float> unit_of(const std::vector<float> &vector) {
    double squares = 0;
    for (float value : vector) squares += (double)value * value;
    double norm = squares == 0 ? 1 : std::sqrt(squares);
    std::vector<float> unit;
    for (float value : vector) unit.push_back((float)(value / norm));
    return unit;
}

const uint32_t NO_ROW = ~0u;

// Blocks of T0: the rows of the slots round the reference of each block's list.
inline std::vector<uint8_t> one_bit_blocks(const std::vector<std::vector<float>> &units,
                                           const std::vector<uint32_t> &rows_of_slots,
                                           const std::vector<uint32_t> &lists_of_blocks,
                                           const std::vector<float> &references,
                                           const std::vector<float> &signs) {
    size_t width = signs.size() / 4, bytes = width * 8 + 768;
    std::vector<uint8_t> blocks(lists_of_blocks.size() * bytes, 0);
    for (size_t slot = 0; slot < rows_of_slots.size(); slot++) {
        if (rows_of_slots[slot] == NO_ROW) continue;
        const float *reference = &references[lists_of_blocks[slot / 64] * width];
        auto values = rotated(units[rows_of_slots[slot]], signs);
        uint8_t *block = &blocks[slot / 64 * bytes];
        for (size_t i = 0; i < width; i++) {
            block[i / 8 * 64 + slot % 64] |= (values[i] - reference[i] > 0) << i % 8;
        }
        auto factors = one_bit_factors(values, reference);
        float columns[3] = {factors.scale, factors.offset, factors.error};
        for (int column = 0; column < 3; column++) {
            memcpy(block + width * 8 + (column * 64 + slot % 64) * 4, &columns[column], 4);
        }
    }
    return blocks;
}
