// The nearest points of rows, one after the other, with ties to the lower point, are those
// of src/compute/src/kmeans.rs.

#include "rows.hpp"

namespace {

struct AssignParams {
    uint64_t codes, listed, point_codes, point_scales, before, best;
    uint32_t stride, points, wanted, unused;
};

uint64_t key_of(float score, uint32_t point) {
    uint32_t bits;
    memcpy(&bits, &score, 4);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~point;
}

unsigned shared_bytes(uint32_t width, uint32_t stride) {
    return width * stride + 8192 * (width == 256 ? 3 : 4) + 4096;
}

// Random lists and cuts of the points; then the `nearest` next ones where there is a kernel.
void assigned(uint32_t width, uint32_t dimension, uint32_t count, uint32_t points,
              uint32_t nearest, uint32_t cuts, uint32_t seed) {
    Random random(seed);
    CodeRows rows(dimension), centres(dimension);
    for (const auto &vector : topical(random, dimension, count, 4)) rows.push(vector);
    for (const auto &vector : topical(random, dimension, points, 4)) centres.push(vector);
    std::vector<uint32_t> listed(count);
    for (uint32_t i = 0; i < count; i++) listed[i] = i;
    std::shuffle(listed.begin(), listed.end(), random);
    std::vector<std::vector<uint64_t>> expected(count);
    for (uint32_t row = 0; row < count; row++) {
        for (uint32_t point = 0; point < points; point++) {
            float score = (float)rows.dot(row, centres, point) * centres.scales[point];
            expected[row].push_back(key_of(score, point));
        }
        std::sort(expected[row].rbegin(), expected[row].rend());
    }
    OnDevice<int8_t> codes(rows.codes), point_codes(centres.codes);
    OnDevice<float> scales(centres.scales);
    OnDevice<uint32_t> on_list(listed);
    OnDevice<uint64_t> best(std::vector<uint64_t>((size_t)nearest * count, 0));
    emulated_order(seed % 2 == 0 ? 0 : seed);
    for (uint32_t round = 0; round < nearest; round++) {
        uint64_t own = best.at + (uint64_t)round * count * 8;
        AssignParams params{codes.at, on_list.at, point_codes.at, scales.at,
                            round == 0 ? 0 : own - count * 8, own, rows.stride, points, count, 0};
        char kernel[32];
        snprintf(kernel, sizeof kernel, round == 0 ? "assign_%u" : "assign_next_%u", width);
        unsigned down = (count + width - 1) / width;
        launch(kernel, cuts, down, 256, shared_bytes(width, rows.stride), params);
        if (failures > 0) break;
        auto keys = best.download();
        for (uint32_t at = 0; at < count; at++) {
            const auto &all = expected[listed[at]];
            uint64_t wanted = round < all.size() ? all[round] : 0;
            uint64_t key = keys[(size_t)round * count + at];
            expect(key == wanted, "%s: row %u of %u, d %u: %llx for %llx", kernel, listed[at],
                   count, dimension, (unsigned long long)key, (unsigned long long)wanted);
        }
    }
    emulated_order(0);
}

}  // namespace

int main() {
    uint32_t seed = 1;
    assigned(256, 65, 300, 300, 1, 1, seed++);
    assigned(256, 384, 200, 130, 1, 2, seed++);
    assigned(128, 100, 300, 58, 4, 1, seed++);
    assigned(128, 384, 140, 140, 3, 2, seed++);
    assigned(64, 130, 200, 200, 1, 3, seed++);
    assigned(32, 1, 100, 5, 7, 1, seed++);
    assigned(32, 1536, 40, 130, 2, 1, seed++);
    assigned(32, 64, 90, 129, 12, 1, seed++);
    assigned(64, 64, 1, 1, 1, 1, seed++);
    printf("assign: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
