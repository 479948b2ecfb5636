// Scan and batch over f16 find what plain f64 sums of the same halves do: every row that may be
// among the best k is named once, none that cannot be, and estimates are off by rounding alone.

#include "rows.hpp"

namespace {

struct Case {
    const char *family;  // "scan" or "batch"
    uint32_t width;      // Queries a block.
    uint32_t dimension, rows, queries, k, step;
    int selection;  // 0: all, 1: a mask, 2: a list, 3: a mask that passes nothing.
    uint32_t blocks;
};

// The nearest half of a value between -2 and 2, ties to even, and what it stands for. Steps of f16
// below its normals are those of its least normal.
uint16_t half_of(float value, double &stands_for) {
    int exponent = 0;
    frexp(value, &exponent);
    if (exponent < -13) exponent = -13;
    double step = ldexp(1, exponent - 11);
    stands_for = nearbyint((double)value / step) * step;
    uint32_t bits = __builtin_bit_cast(uint32_t, (float)stands_for);
    uint16_t sign = bits >> 16 & 0x8000;
    double size = fabs(stands_for);
    if (size < ldexp(1, -14)) return sign | (uint16_t)(size * ldexp(1, 24));
    bits &= 0x7fffffff;
    return sign | (uint16_t)((bits >> 13) - (112u << 10));
}

// Unit vectors as halves, rows padded with zeros to chunks of 32, and the same in f64.
struct HalfRows {
    uint32_t stride;
    std::vector<uint16_t> bits;
    std::vector<float> ones, residuals;
    std::vector<std::vector<double>> values;

    HalfRows(uint32_t dimension, const std::vector<std::vector<float>> &vectors)
        : stride((dimension + 31) / 32 * 64) {
        for (const auto &vector : vectors) {
            double squares = 0, lost = 0;
            for (float value : vector) squares += (double)value * value;
            std::vector<double> row(dimension);
            size_t first = bits.size();
            bits.resize(first + stride / 2, 0);
            for (uint32_t i = 0; squares != 0 && i < dimension; i++) {
                double unit = (double)vector[i] / std::sqrt(squares);
                bits[first + i] = half_of((float)unit, row[i]);
                lost += (unit - row[i]) * (unit - row[i]);
            }
            ones.push_back(1);
            residuals.push_back((float)std::sqrt(lost));
            values.push_back(row);
        }
    }
};

void check(const Case &c, uint32_t seed) {
    Random random(seed);
    const bool is_batch = strcmp(c.family, "batch") == 0;
    HalfRows rows(c.dimension, topical(random, c.dimension, c.rows, 5));
    HalfRows queries(c.dimension, topical(random, c.dimension, c.queries, 3));
    std::vector<QueryFactors> factors;
    for (float residual : queries.residuals) {
        factors.push_back(QueryFactors{1, residual + 1e-4f, 1, 0});
    }
    std::vector<uint32_t> mask((c.rows + 31) / 32), listed, selected;
    for (uint32_t row = 0; row < c.rows; row++) {
        if (c.selection == 3 || (c.selection == 1 && below(random, 3) != 0)) continue;
        if (c.selection == 2 && below(random, 2) != 0) continue;
        mask[row / 32] |= 1u << row % 32;
        selected.push_back(row);
    }
    if (c.selection == 2) listed = selected;
    OnDevice<uint16_t> values(rows.bits), query_values(queries.bits);
    OnDevice<float> scales(rows.ones), residuals(rows.residuals), thresholds((size_t)c.queries);
    OnDevice<uint32_t> on_mask(mask), on_list(listed), counts((size_t)c.queries);
    OnDevice<QueryFactors> on_factors(factors);
    uint32_t total = c.selection == 2 ? (uint32_t)listed.size() : c.rows, capacity = total + 7;
    uint32_t sampled = (total + c.step - 1) / c.step, groups = (sampled + 15) / 16;
    OnDevice<float> maxima((size_t)c.queries * groups);
    OnDevice<FoundRow> found((size_t)c.queries * capacity);
    Answers answers(c.queries, capacity);
    bool has_mask = c.selection == 1 || c.selection == 3;
    SearchParams params{values.at, scales.at, residuals.at, has_mask ? on_mask.at : 0,
                        c.selection == 2 ? on_list.at : 0, query_values.at, on_factors.at,
                        thresholds.at, maxima.at, found.at, counts.at, sampled, c.step,
                        rows.stride, c.queries, groups, capacity};
    char sample[64], collect[64];
    snprintf(sample, sizeof sample, "%s_sample_f16_%u", c.family, c.width);
    snprintf(collect, sizeof collect, "%s_collect_f16_%u", c.family, c.width);
    uint32_t across = is_batch ? (c.queries + c.width - 1) / c.width : 1;
    uint32_t shared =
        is_batch ? batch_shared_bytes(c.width, rows.stride) : c.width * rows.stride;
    emulated_order(seed % 3 == 0 ? 0 : seed);
    launch(sample, c.blocks, across, 256, shared, params);
    launch("select_threshold", c.queries, 1, 512, 1168,
           SelectThresholdParams{maxima.at, thresholds.at, counts.at, answers.words.at, groups,
                                 c.k});
    params.visited = total;
    params.step = 1;
    launch(collect, c.blocks, across, 256, shared, params);
    launch("select_candidates_halves", c.queries, 1, 512, 1168,
           SelectCandidatesParams{found.at, counts.at, scales.at, residuals.at, on_factors.at,
                                  thresholds.at, answers.words.at, capacity, capacity, c.k,
                                  c.queries});
    emulated_order(0);
    if (failures > 0) return;
    answers.download();
    for (uint32_t query = 0; query < c.queries; query++) {
        // Sums of c.dimension products of unit vectors in f32, in any order.
        const double slack = (c.dimension + 16) * ldexp(1, -23);
        std::vector<double> scores(c.rows), lowers;
        auto bound = [&](uint32_t row) { return factors[query].constant + rows.residuals[row]; };
        for (uint32_t row : selected) {
            for (uint32_t i = 0; i < c.dimension; i++) {
                scores[row] += rows.values[row][i] * queries.values[query][i];
            }
            lowers.push_back(scores[row] - bound(row));
        }
        double threshold = -INFINITY;
        if (lowers.size() >= c.k) {
            std::sort(lowers.begin(), lowers.end(), std::greater<double>());
            threshold = lowers[c.k - 1];
        }
        std::vector<uint32_t> times(c.rows);
        bool is_right = answers.count(query) <= capacity;
        for (uint32_t at = 0; is_right && at < answers.count(query); at++) {
            KeptRow row = answers.row(query, at);
            is_right = row.row < c.rows && fabs(row.estimate - scores[row.row]) <= slack;
            if (is_right) times[row.row]++;
        }
        uint32_t stands = 0;
        for (uint32_t row : selected) {
            double upper = scores[row] + bound(row);
            if (upper > threshold + 2 * slack) is_right = is_right && times[row] == 1;
            if (upper < threshold - 2 * slack) is_right = is_right && times[row] == 0;
            stands += times[row];
            is_right = is_right && times[row] <= 1;
        }
        is_right = is_right && stands == answers.count(query);
        expect(is_right, "%s %u: d %u, %u rows, query %u of %u, k %u, selection %d: %u named",
               c.family, c.width, c.dimension, c.rows, query, c.queries, c.k, c.selection,
               answers.count(query));
    }
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t dimension : {1u, 32u, 33u, 384u, 1536u}) {
        for (uint32_t rows : {0u, 1u, 17u, 130u, 600u}) {
            if (dimension > 1000 && rows > 200) continue;
            uint32_t k = rows > 100 ? 10 : 3, queries = 1 + seed % 8;
            int selection = (int)(seed % 4);
            check({"scan", 8, dimension, rows, queries, k, 1 + seed % 3, selection, 2},
                  seed);
            seed++;
        }
    }
    check({"scan", 16, 384, 500, 16, 5, 3, 1, 1}, seed++);
    check({"scan", 16, 100, 300, 13, 256, 1, 0, 3}, seed++);
    for (int selection = 0; selection < 4; selection++) {
        check({"batch", 32, 64, 500, 20, 10, 2, selection, 2}, seed++);
    }
    check({"batch", 64, 100, 300, 70, 5, 1, 1, 2}, seed++);
    check({"batch", 128, 200, 300, 130, 10, 2, 0, 1}, seed++);
    check({"batch", 256, 384, 260, 257, 10, 1, 2, 2}, seed++);
    check({"batch", 32, 3024, 140, 5, 2, 1, 1, 1}, seed++);
    expect(emulated_conflicts() == 0, "ldmatrix meets conflicts of banks");
    printf("halves: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
