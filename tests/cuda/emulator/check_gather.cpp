// The list of a mask equals that of a plain loop.

#include "rows.hpp"

namespace {

struct MaskListParams {
    uint64_t mask, run_counts, listed;
    uint32_t words, capacity;
};

void lists(uint32_t words, uint32_t kind, uint32_t seed) {
    Random random(seed);
    std::vector<uint32_t> mask(words), expected;
    for (uint32_t at = 0; at < words; at++) {
        uint32_t word = (uint32_t)random() & (uint32_t)random() & (uint32_t)random();
        mask[at] = kind == 0 ? word : kind == 1 ? ~0u : at % 700 == 3 ? 1u << 31 : 0;
        for (uint32_t bit = 0; bit < 32; bit++) {
            if (mask[at] >> bit & 1) expected.push_back(at * 32 + bit);
        }
    }
    uint32_t runs = std::max(1u, (words + 2047) / 2048);
    OnDevice<uint32_t> on_mask(mask), counts((size_t)runs), listed(expected.size());
    MaskListParams params{on_mask.at, counts.at, listed.at, words, (uint32_t)expected.size()};
    emulated_order(seed);
    launch("mask_count", runs, 1, 256, 64, params);
    launch("mask_list", runs, 1, 256, 64, params);
    expect(listed.download() == expected, "list of %u words, kind %u", words, kind);
    if (!expected.empty()) {
        OnDevice<uint32_t> few(expected.size() / 2);
        params.listed = few.at;
        params.capacity = (uint32_t)few.count;
        launch("mask_list", runs, 1, 256, 64, params);
    }
    emulated_order(0);
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t words : {0u, 1u, 255u, 2048u, 2049u, 5000u}) {
        for (uint32_t kind = 0; kind < 3; kind++) lists(words, kind, seed++);
    }
    printf("gather: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
