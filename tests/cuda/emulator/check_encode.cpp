// Blocks of T0 have the CPU's bits.

#include "one_bit.hpp"

namespace {

struct EncodeOneBitParams {
    uint64_t units, signs, references, rows_of_slots, lists_of_blocks, blocks;
    uint32_t slots, dimension, width, rows_a_block;
};

std::vector<float> flat(const std::vector<std::vector<float>> &vectors) {
    std::vector<float> all;
    for (const auto &vector : vectors) all.insert(all.end(), vector.begin(), vector.end());
    return all;
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
    OnDevice<float> on_units(flat(units)), on_signs(signs), on_references(references);
    OnDevice<uint32_t> on_slots(slots), on_lists(lists);
    OnDevice<uint8_t> blocks(expected.size());
    unsigned shared = rows_a_block * (32 + 4 * (width + 1));
    emulated_order(seed);
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
    for (uint32_t dimension : {1u, 63u, 64u, 128u, 384u, 1000u}) {
        one_bit(dimension, dimension < 500 ? 32 : 16, seed++);
        one_bit(dimension, 4, seed++);
    }
    one_bit(1536, 2, seed++);
    printf("encode: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
