// Scan, batch and the selection after them against src/compute/src/candidates.rs, row by row and bit for
// bit: over widths, masks, lists, ties, zero rows, few rows and orders of threads and blocks.

#include "rows.hpp"

namespace {

struct Case {
    const char *family;  // "scan", "batch", or "warpgroup": the batch by warpgroups
    uint32_t width;      // Queries a block.
    uint32_t dimension, rows, queries, k, step;
    int selection;  // 0: all, 1: a mask, 2: a list, 3: a mask that passes nothing, 4: few runs.
    float share;
    uint32_t blocks;
};

unsigned shared_bytes(const Case &c, uint32_t stride) {
    if (strcmp(c.family, "scan") == 0) return c.width * stride;
    bool by_warpgroup = strcmp(c.family, "warpgroup") == 0;
    return by_warpgroup ? c.width * (stride + 8) + 3 * 4096 + 16 + 12 * 192
                        : batch_shared_bytes(c.width, stride);
}

void check(const Case &c, uint32_t seed) {
    Random random(seed);
    CodeRows rows(c.dimension), queries(c.dimension);
    for (const auto &vector : topical(random, c.dimension, c.rows, 5)) rows.push(vector);
    for (const auto &vector : topical(random, c.dimension, c.queries, 3)) queries.push(vector);
    std::vector<QueryFactors> factors;
    for (uint32_t i = 0; i < c.queries; i++) factors.push_back(factors_of(queries, i, c.share));
    std::vector<uint32_t> mask((c.rows + 31) / 32), listed, selected;
    for (uint32_t row = 0; row < c.rows; row++) {
        bool passes = c.selection != 3;
        if (c.selection == 1) passes = below(random, 3) == 0;
        if (c.selection == 4) passes = row / 150 % 3 == 1;
        if (!passes) continue;
        mask[row / 32] |= 1u << row % 32;
        selected.push_back(row);
    }
    if (c.selection == 2) {
        selected.clear();
        for (uint32_t i = 0; i < c.rows / 2; i++) selected.push_back(below(random, c.rows));
        listed = selected;
    }
    OnDevice<int8_t> codes(rows.codes), query_codes(queries.codes);
    OnDevice<float> scales(rows.scales), residuals(rows.residuals);
    OnDevice<uint32_t> on_mask(mask), on_list(listed), counts((size_t)c.queries);
    OnDevice<QueryFactors> on_factors(factors);
    OnDevice<float> thresholds((size_t)c.queries);
    uint32_t total = c.selection == 2 ? (uint32_t)listed.size() : c.rows, capacity = total + 7;
    uint32_t sampled = (total + c.step - 1) / c.step, groups = (sampled + 15) / 16;
    OnDevice<float> maxima((size_t)c.queries * groups);
    OnDevice<FoundRow> found((size_t)c.queries * capacity);
    Answers answers(c.queries, capacity);
    bool has_mask = c.selection == 1 || c.selection == 3 || c.selection == 4;
    SearchParams params{codes.at, scales.at, residuals.at, has_mask ? on_mask.at : 0,
                        c.selection == 2 ? on_list.at : 0, query_codes.at, on_factors.at,
                        thresholds.at, maxima.at, found.at, counts.at, sampled, c.step,
                        rows.stride, c.queries, groups, capacity};
    char sample[64], collect[64];
    bool by_warpgroup = strcmp(c.family, "warpgroup") == 0;
    const char *family = by_warpgroup ? "batch" : c.family;
    const char *way = by_warpgroup ? "by_warpgroup_" : "";
    snprintf(sample, sizeof sample, "%s_sample_%s%u", family, way, c.width);
    snprintf(collect, sizeof collect, "%s_collect_%s%u", family, way, c.width);
    uint32_t across = strcmp(family, "batch") == 0 ? (c.queries + c.width - 1) / c.width : 1;
    uint32_t threads = by_warpgroup ? 128 : 256;
    emulated_order(seed % 3 == 0 ? 0 : seed);
    launch(sample, c.blocks, across, threads, shared_bytes(c, rows.stride), params);
    launch("select_threshold", c.queries, 1, 512, 1168,
           SelectThresholdParams{maxima.at, thresholds.at, counts.at, answers.words.at, groups,
                                 c.k});
    params.visited = total;
    params.step = 1;
    launch(collect, c.blocks, across, threads, shared_bytes(c, rows.stride), params);
    launch("select_candidates", c.queries, 1, 512, 1168,
           SelectCandidatesParams{found.at, counts.at, scales.at, residuals.at, on_factors.at,
                                  thresholds.at, answers.words.at, capacity, capacity, c.k,
                                  c.queries});
    emulated_order(0);
    if (failures > 0) return;
    answers.download();
    for (uint32_t query = 0; query < c.queries; query++) {
        auto expected = candidates(rows, selected, queries, query, factors[query], c.k);
        std::vector<KeptRow> got;
        for (uint32_t at = 0; at < std::min(answers.count(query), capacity); at++) {
            got.push_back(answers.row(query, at));
        }
        std::sort(got.begin(), got.end());
        bool same = got.size() == expected.size();
        for (size_t i = 0; same && i < got.size(); i++) {
            same = got[i].row == expected[i].row &&
                   memcmp(&got[i].estimate, &expected[i].estimate, 4) == 0;
        }
        expect(same, "%s %u: d %u, %u rows, query %u of %u, k %u, selection %d: %zu for %zu",
               c.family, c.width, c.dimension, c.rows, query, c.queries, c.k, c.selection,
               got.size(), expected.size());
    }
}

// Too small a capacity is reported, and nothing is written beyond it.
void overflow() {
    Random random(3);
    CodeRows rows(64), queries(64);
    for (int i = 0; i < 200; i++) rows.push(random_vector(random, 64));
    queries.push(random_vector(random, 64));
    OnDevice<int8_t> codes(rows.codes), query_codes(queries.codes);
    OnDevice<float> scales(rows.scales), residuals(rows.residuals);
    OnDevice<QueryFactors> factors(std::vector<QueryFactors>{factors_of(queries, 0, 1)});
    for (uint32_t capacity : {150u, 200u}) {
        OnDevice<uint32_t> counts((size_t)1);
        OnDevice<float> thresholds((size_t)1);
        OnDevice<FoundRow> found((size_t)capacity);
        Answers answers(1, 100);
        launch("select_threshold", 1, 1, 512, 1168,
               SelectThresholdParams{0, thresholds.at, counts.at, answers.words.at, 0, 10});
        SearchParams params{codes.at, scales.at, residuals.at, 0, 0, query_codes.at, factors.at,
                            thresholds.at, 0, found.at, counts.at, 200, 1, 64, 1, 0, capacity};
        launch("scan_collect_8", 2, 1, 256, 8 * 64, params);
        launch("select_candidates", 1, 1, 512, 1168,
               SelectCandidatesParams{found.at, counts.at, scales.at, residuals.at, factors.at,
                                      thresholds.at, answers.words.at, capacity, 100, 190, 1});
        expect(counts.download()[0] == 200, "all rows are counted");
        answers.download();
        uint32_t told = answers.count(0);
        expect(capacity < 200 ? told == ~0u : told >= 190 && told <= 200, "capacity: %u", told);
    }
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t dimension : {1u, 64u, 65u, 384u, 400u, 1536u}) {
        for (uint32_t rows : {0u, 1u, 15u, 16u, 17u, 130u, 700u}) {
            if (dimension > 1000 && rows > 200) continue;
            int selection = (int)(seed % 5);
            uint32_t k = rows > 100 ? 10 : 3, queries = 1 + seed % 8;
            check({"scan", 8, dimension, rows, queries, k, 1 + seed % 3, selection, .2f, 2}, seed);
            seed++;
        }
    }
    check({"scan", 16, 100, 500, 13, 256, 1, 0, 1, 3}, seed++);
    check({"scan", 16, 384, 700, 16, 5, 3, 1, .3f, 1}, seed++);
    check({"scan", 8, 3024, 40, 2, 1, 1, 0, .3f, 1}, seed++);
    for (int selection = 0; selection < 5; selection++) {
        check({"batch", 32, 64, 700, 20, 10, 2, selection, .3f, 2}, seed++);
        check({"batch", 64, 100, 300, 70, 5, 1, selection, .3f, 2}, seed++);
    }
    // No bound: the k-th row just reaches its own score, and so do its equals.
    check({"scan", 8, 70, 400, 6, 10, 2, 0, 0, 2}, seed++);
    check({"batch", 32, 70, 400, 20, 10, 2, 1, 0, 2}, seed++);
    check({"batch", 32, 1, 300, 3, 2, 1, 0, .3f, 1}, seed++);
    check({"batch", 32, 1536, 140, 5, 2, 1, 1, .3f, 1}, seed++);
    check({"batch", 64, 384, 260, 64, 64, 1, 0, 1, 3}, seed++);
    check({"batch", 128, 384, 200, 130, 10, 1, 0, .1f, 1}, seed++);
    check({"batch", 128, 130, 400, 128, 10, 2, 4, .1f, 1}, seed++);
    check({"batch", 256, 200, 300, 200, 10, 1, 1, .1f, 2}, seed++);
    check({"batch", 256, 65, 700, 300, 100, 1, 2, .1f, 2}, seed++);
    for (int selection = 0; selection < 5; selection++) {
        check({"warpgroup", 128, 64, 300, 100, 10, 2, selection, .3f, 2}, seed++);
    }
    check({"warpgroup", 256, 384, 200, 300, 10, 1, 0, .1f, 1}, seed++);
    check({"warpgroup", 256, 65, 400, 256, 100, 1, 1, .1f, 2}, seed++);
    check({"warpgroup", 128, 768, 130, 70, 5, 1, 0, .1f, 1}, seed++);
    check({"batch", 32, 64, 0, 4, 10, 1, 0, .3f, 2}, seed++);
    check({"batch", 32, 64, 1, 4, 10, 1, 0, .3f, 2}, seed++);
    overflow();
    expect(emulated_conflicts() == 0, "ldmatrix meets conflicts of banks");
    printf("search: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
