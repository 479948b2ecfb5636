// Rows and queries for checks, encoded as in src/compute/src/quantize.rs, and the plain oracle of a
// search, as in src/compute/src/candidates.rs.
#pragma once

#include <algorithm>
#include <limits>

#include "check.hpp"

struct QueryFactors {
    float scale, constant, per_residual, unused;
};

struct FoundRow {
    uint32_t row;
    int32_t dot;
};

struct KeptRow {
    uint32_t row;
    float estimate;
    bool operator<(const KeptRow &other) const { return row < other.row; }
};

// T1 of some vectors.
struct CodeRows {
    uint32_t dimension = 0, stride = 0, rows = 0;
    std::vector<int8_t> codes;
    std::vector<float> scales, residuals;

    explicit CodeRows(uint32_t dimension)
        : dimension(dimension), stride((dimension + 63) / 64 * 64) {}

    void push(const std::vector<float> &vector) {
        double squares = 0, lost = 0;
        float largest = 0;
        for (float value : vector) squares += (double)value * value;
        for (float value : vector) largest = std::max(largest, std::fabs(value));
        double norm = std::sqrt(squares);
        float scale = norm == 0 ? 0 : (float)((double)largest / norm / 127.0);
        size_t first = codes.size();
        codes.resize(first + stride, 0);
        for (size_t i = 0; norm != 0 && i < vector.size(); i++) {
            double unit = (double)vector[i] / norm;
            double code = std::min(127.0, std::max(-127.0, std::round(unit / (double)scale)));
            lost += (unit - code * (double)scale) * (unit - code * (double)scale);
            codes[first + i] = (int8_t)code;
        }
        scales.push_back(scale);
        float above = std::nextafterf((float)std::sqrt(lost), INFINITY);
        residuals.push_back(norm == 0 ? 0 : above);
        rows++;
    }
    int32_t dot(uint32_t row, const CodeRows &other, uint32_t at) const {
        int32_t sum = 0;
        for (uint32_t i = 0; i < stride; i++) {
            sum += (int32_t)codes[(size_t)row * stride + i] *
                   (int32_t)other.codes[(size_t)at * stride + i];
        }
        return sum;
    }
};

inline std::vector<float> random_vector(Random &random, uint32_t dimension) {
    std::vector<float> vector(dimension);
    for (float &value : vector) {
        value = between(random, -1, 1) + between(random, -1, 1) + between(random, -1, 1);
    }
    return vector;
}

// Rows round a few topics, some equal to others, some zero, some of one component.
inline std::vector<std::vector<float>> topical(Random &random, uint32_t dimension, uint32_t count,
                                               uint32_t topics) {
    std::vector<std::vector<float>> centres, vectors;
    for (uint32_t i = 0; i < topics; i++) centres.push_back(random_vector(random, dimension));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = below(random, 40);
        std::vector<float> vector = random_vector(random, dimension);
        if (kind == 0) vector.assign(dimension, 0);
        if (kind == 1) {
            vector.assign(dimension, 0);
            vector[below(random, dimension)] = between(random, -1e30f, 1e30f);
        }
        if (kind > 2) {
            const auto &centre = centres[below(random, topics)];
            for (uint32_t at = 0; at < dimension; at++) vector[at] = centre[at] + .7f * vector[at];
        }
        if (kind > 36 && i > 0) vector = vectors[below(random, i)];
        vectors.push_back(vector);
    }
    return vectors;
}

// A query's factors with a bound as `ErrorBound::new` makes it; `share` narrows it,
// 0 leaves none.
inline QueryFactors factors_of(const CodeRows &queries, uint32_t query, float share) {
    double squares = 0;
    for (uint32_t i = 0; i < queries.stride; i++) {
        squares += std::pow((double)queries.codes[(size_t)query * queries.stride + i], 2);
    }
    float decoded = (float)(std::sqrt(squares) * (double)queries.scales[query]);
    float constant = share == 0 ? 0 : queries.residuals[query] * share + 4e-5f;
    return QueryFactors{queries.scales[query], constant, decoded * share, 0};
}

inline float estimate_of(int32_t dot, const QueryFactors &query, float scale) {
    return (float)((double)dot * ((double)query.scale * (double)scale));
}

// What may be among the best k of `selected`, ascending rows.
inline std::vector<KeptRow> candidates(const CodeRows &rows, const std::vector<uint32_t> &selected,
                                       const CodeRows &queries, uint32_t query,
                                       const QueryFactors &factors, uint32_t k) {
    std::vector<float> lowers;
    std::vector<KeptRow> kept;
    auto bound = [&](uint32_t row) {
        float part = factors.per_residual * rows.residuals[row];
        return factors.constant + part;
    };
    std::vector<float> estimates;
    for (uint32_t row : selected) {
        estimates.push_back(estimate_of(rows.dot(row, queries, query), factors, rows.scales[row]));
        lowers.push_back(estimates.back() - bound(row));
    }
    float threshold = -INFINITY;
    if (lowers.size() >= k) {
        std::nth_element(lowers.begin(), lowers.begin() + k - 1, lowers.end(),
                         std::greater<float>());
        threshold = lowers[k - 1];
    }
    for (size_t at = 0; at < selected.size(); at++) {
        if (estimates[at] + bound(selected[at]) >= threshold) {
            kept.push_back(KeptRow{selected[at], estimates[at]});
        }
    }
    std::sort(kept.begin(), kept.end());
    return kept;
}

// Parameters as the kernels document them.
struct SearchParams {
    uint64_t codes, scales, residuals, mask, listed, query_codes, query_factors, thresholds, maxima,
        found, counts;
    uint32_t visited, step, stride, queries, groups, capacity;
};

struct SelectThresholdParams {
    uint64_t maxima, thresholds, counts, total;
    uint32_t groups, rank;
};

struct SelectCandidatesParams {
    uint64_t found, counts, scales, residuals, query_factors, thresholds, answers;
    uint32_t capacity, kept_capacity, k, queries;
};

// Shared memory of a kernel of batch.cu.
inline uint32_t batch_shared_bytes(uint32_t queries, uint32_t stride) {
    bool is_widest = queries == 256;
    return queries * (stride + 8) + 8192 * (is_widest ? 3 : 4) + 16 + 12 * (is_widest ? 512 : 192);
}

// Answers to all queries: a total, a range for each query, and rows, three words each.
struct Answers {
    uint32_t queries;
    OnDevice<uint32_t> words;
    std::vector<uint32_t> got;

    Answers(uint32_t queries, uint32_t rows_max)
        : queries(queries), words(3 * (1 + (size_t)queries * (1 + rows_max))) {}
    void download() { got = words.download(); }
    uint32_t count(uint32_t query) const { return got[3 + 3 * query + 1]; }
    KeptRow row(uint32_t query, uint32_t at) const {
        size_t place = 3 * (1 + (size_t)queries + got[3 + 3 * query] + at);
        KeptRow row;
        memcpy(&row, &got[place], sizeof row);
        return row;
    }
};
