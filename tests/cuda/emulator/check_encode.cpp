// G6: codes, scales, residuals, lengths, rotated vectors and blocks of T0 have the CPU's bits.

#include "one_bit.hpp"

namespace {

struct EncodeRowsParams {
    uint64_t vectors, codes, scales, residuals, norms;
    uint32_t rows, dimension, stride, unused;
};

struct RotateParams {
    uint64_t vectors, signs, rotated;
    uint32_t rows, dimension, width, rows_a_block;
};

struct EncodeOneBitParams {
    uint64_t units, signs, references, rows_of_slots, lists_of_blocks, blocks;
    uint32_t slots, dimension, width, rows_a_block;
};

std::vector<float> flat(const std::vector<std::vector<float>> &vectors) {
    std::vector<float> all;
    for (const auto &vector : vectors) all.insert(all.end(), vector.begin(), vector.end());
    return all;
}

template <class T>
bool same_bits(const std::vector<T> &a, const std::vector<T> &b) {
    return a.size() == b.size() && (a.empty() || memcmp(&a[0], &b[0], a.size() * sizeof(T)) == 0);
}

void encoded(uint32_t dimension, uint32_t count, uint32_t seed) {
    Random random(seed);
    auto vectors = topical(random, dimension, count, 3);
    if (count > 2) {
        std::fill(vectors[1].begin(), vectors[1].end(), 3e38f);
        std::fill(vectors[2].begin(), vectors[2].end(), -1e-45f);
    }
    if (dimension >= 64 && count > 3) {
        // Of length 512 and scale 2 / 512: 63, 9, -5 and 1 lie between two codes.
        const float halves[9] = {254, -254, 254, 254, 63, 9, -5, 2, 1};
        std::fill(vectors[3].begin(), vectors[3].end(), 0);
        std::copy(halves, halves + 9, vectors[3].begin());
    }
    CodeRows expected(dimension);
    for (const auto &vector : vectors) expected.push(vector);
    OnDevice<float> from(flat(vectors)), scales((size_t)count), residuals((size_t)count),
        norms((size_t)count);
    OnDevice<int8_t> codes(expected.codes.size());
    launch("encode_rows", count / 128 + 1, 1, 128, 0,
           EncodeRowsParams{from.at, codes.at, scales.at, residuals.at, norms.at, count, dimension,
                            expected.stride, 0});
    if (failures > 0) return;
    expect(codes.download() == expected.codes, "codes, d %u", dimension);
    expect(same_bits(scales.download(), expected.scales), "scales, d %u", dimension);
    expect(same_bits(residuals.download(), expected.residuals), "residuals, d %u", dimension);
    expect(same_bits(norms.download(), expected.norms), "lengths, d %u", dimension);
}

void one_bit(uint32_t dimension, uint32_t rows_a_block, uint32_t seed) {
    Random random(seed);
    uint32_t width = (dimension + 63) / 64 * 64;
    auto signs = rotation_signs(width);
    std::vector<std::vector<float>> units, points, rotated_points;
    for (const auto &vector : topical(random, dimension, 100, 3)) units.push_back(unit_of(vector));
    for (int i = 0; i < 2; i++) points.push_back(unit_of(random_vector(random, dimension)));
    // A row that is its list's point.
    units[5] = points[0];
    for (const auto &point : points) rotated_points.push_back(rotated(point, signs));
    std::vector<uint32_t> slots(192, NO_ROW), lists = {0, 1, 1};
    for (uint32_t i = 0; i < 40; i++) slots[i] = i;
    for (uint32_t i = 0; i < 100; i++) slots[64 + i] = 99 - i;
    auto references = flat(rotated_points);
    auto expected = one_bit_blocks(units, slots, lists, references, signs);
    OnDevice<float> on_units(flat(units)), on_signs(signs), on_points(flat(points)),
        on_references((size_t)2 * width);
    OnDevice<uint32_t> on_slots(slots), on_lists(lists);
    OnDevice<uint8_t> blocks(expected.size());
    unsigned shared = rows_a_block * (32 + 4 * (width + 1));
    emulated_order(seed);
    launch("rotate", (2 + rows_a_block - 1) / rows_a_block, 1, 256, shared,
           RotateParams{on_points.at, on_signs.at, on_references.at, 2, dimension, width,
                        rows_a_block});
    if (failures > 0) return;
    expect(same_bits(on_references.download(), references), "rotated points, d %u", dimension);
    launch("encode_one_bit", 192 / rows_a_block, 1, 256, shared,
           EncodeOneBitParams{on_units.at, on_signs.at, on_references.at, on_slots.at, on_lists.at,
                              blocks.at, 192, dimension, width, rows_a_block});
    emulated_order(0);
    if (failures > 0) return;
    expect(blocks.download() == expected, "blocks of T0, d %u", dimension);
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t dimension : {1u, 3u, 64u, 65u, 384u, 1000u, 1536u}) {
        for (uint32_t count : {0u, 1u, 50u, 129u}) encoded(dimension, count, seed++);
    }
    for (uint32_t dimension : {1u, 63u, 64u, 128u, 384u, 1000u}) {
        one_bit(dimension, dimension < 500 ? 32 : 16, seed++);
        one_bit(dimension, 4, seed++);
    }
    one_bit(1536, 2, seed++);
    printf("encode: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
