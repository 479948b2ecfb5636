// G3 and exact scores: lists, gathered rows and cosines are what plain loops give.

#include "rows.hpp"

namespace {

struct MaskListParams {
    uint64_t mask, run_counts, listed;
    uint32_t words, capacity;
};

struct GatherRowsParams {
    uint64_t codes, scales, residuals, listed, gathered_codes, gathered_scales, gathered_residuals;
    uint32_t count, stride;
};

struct RescoreParams {
    uint64_t values, units, kept, kept_counts, scores;
    uint32_t dimension, kept_capacity;
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

void gathered(uint32_t dimension, uint32_t count, uint32_t seed) {
    Random random(seed);
    CodeRows rows(dimension), expected(dimension);
    for (int i = 0; i < 90; i++) rows.push(random_vector(random, dimension));
    std::vector<uint32_t> listed(count);
    for (uint32_t &row : listed) {
        row = below(random, rows.rows);
        auto from = rows.codes.begin() + (size_t)row * rows.stride;
        expected.codes.insert(expected.codes.end(), from, from + rows.stride);
        expected.scales.push_back(rows.scales[row]);
        expected.residuals.push_back(rows.residuals[row]);
    }
    OnDevice<int8_t> codes(rows.codes), to_codes(expected.codes.size());
    OnDevice<float> scales(rows.scales), residuals(rows.residuals), to_scales((size_t)count),
        to_residuals((size_t)count);
    OnDevice<uint32_t> on_list(listed);
    launch("gather_rows", 2, 1, 256, 0,
           GatherRowsParams{codes.at, scales.at, residuals.at, on_list.at, to_codes.at,
                            to_scales.at, to_residuals.at, count, rows.stride});
    expect(to_codes.download() == expected.codes, "gathered codes, d %u", dimension);
    expect(to_scales.download() == expected.scales, "gathered scales, d %u", dimension);
    expect(to_residuals.download() == expected.residuals, "gathered residuals, d %u", dimension);
}

float widened(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    float rest = (float)(bits & 1023) / 1024;
    float size = exponent == 0 ? ldexpf(rest, -14) : ldexpf(1 + rest, exponent - 15);
    return bits >> 15 ? -size : size;
}

// Half the time f16, of which every bit pattern below 1 is a value.
void rescored(uint32_t dimension, bool is_half, uint32_t seed) {
    Random random(seed);
    const uint32_t rows = 30, queries = 3, capacity = 25;
    std::vector<float> values, units;
    std::vector<uint16_t> halves;
    for (uint32_t row = 0; row < rows; row++) {
        float size = row % 5 == 0 ? 1e30f : row % 5 == 1 ? 1e-38f : row % 5 == 2 ? 0 : 1;
        for (uint32_t i = 0; i < dimension; i++) {
            values.push_back(between(random, -1, 1) * size);
            halves.push_back((uint16_t)(random() & 0xabff));
            if (is_half) values.back() = widened(halves.back());
        }
    }
    for (uint32_t query = 0; query < queries; query++) {
        auto vector = random_vector(random, dimension);
        double squares = 0;
        for (float value : vector) squares += (double)value * value;
        for (float value : vector) {
            units.push_back(query == 1 ? 0 : (float)(value / std::sqrt(squares)));
        }
    }
    if (!is_half) std::copy(units.begin(), units.begin() + dimension, values.begin() + dimension);
    std::vector<KeptRow> kept(queries * capacity);
    for (auto &row : kept) row = KeptRow{below(random, rows), 0};
    std::vector<uint32_t> counts = {capacity, 7, capacity + 1};
    OnDevice<float> on_values(values), on_units(units),
        scores(std::vector<float>(kept.size(), 9.0f));
    OnDevice<uint16_t> on_halves(halves);
    OnDevice<KeptRow> on_kept(kept);
    OnDevice<uint32_t> on_counts(counts);
    launch(is_half ? "rescore_f16" : "rescore_f32", 2, queries, 256, 0,
           RescoreParams{is_half ? on_halves.at : on_values.at, on_units.at, on_kept.at,
                         on_counts.at, scores.at, dimension, capacity});
    auto got = scores.download();
    for (uint32_t query = 0; query < queries; query++) {
        for (uint32_t at = 0; at < capacity; at++) {
            float score = got[query * capacity + at];
            if (at >= counts[query] || counts[query] > capacity) {
                expect(score == 9.0f, "a score that nobody asked for");
                continue;
            }
            double dot = 0, squares = 0, size = 0;
            for (uint32_t i = 0; i < dimension; i++) {
                double value = values[(size_t)kept[query * capacity + at].row * dimension + i];
                double unit = units[query * dimension + i];
                dot += value * unit;
                size += std::fabs(value * unit);
                squares += value * value;
            }
            double cosine = is_half ? dot : squares == 0 ? 0 : dot / std::sqrt(squares);
            cosine = std::min(1.0, std::max(-1.0, cosine));
            double allowed = (dimension + 16) / 16777216.0 * std::max(1.0, is_half ? size : 0);
            bool is_right = std::fabs(score - cosine) <= allowed &&
                            !(score == 0 && std::signbit(score));
            expect(is_right, "cosine %g for %g, d %u", score, cosine, dimension);
        }
    }
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t words : {0u, 1u, 255u, 2048u, 2049u, 5000u}) {
        for (uint32_t kind = 0; kind < 3; kind++) lists(words, kind, seed++);
    }
    for (uint32_t dimension : {1u, 64u, 384u, 1536u}) {
        for (uint32_t count : {0u, 1u, 70u}) gathered(dimension, count, seed++);
    }
    for (uint32_t dimension : {1u, 7u, 8u, 100u, 384u, 1001u, 1536u}) {
        rescored(dimension, true, seed++);
        rescored(dimension, false, seed++);
    }
    printf("gather: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
