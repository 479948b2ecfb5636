// The embedding kernels against plain loops in f64 over the same f16 numbers, within rounding.
// Odd shapes, tails, passages of one token and of the longest window.

#include <algorithm>

#include "check.hpp"

namespace emulator {
uint16_t narrowed_f16(float value);
}

namespace {

struct GatherParams {
    uint64_t words, positions, tokens, scale, shift, states;
    uint32_t count, hidden;
    float epsilon;
    uint32_t unused;
};
struct NormParams {
    uint64_t rows, scale, shift, states;
    uint32_t count, hidden;
    float epsilon;
    uint32_t unused;
};
struct ProductParams {
    uint64_t states, weights, bias, residual, output;
    uint32_t tokens, inputs, outputs, activation;
};
struct QueryTile {
    uint32_t start, length, first, unused;
};
struct AttentionParams {
    uint64_t fused, tiles, context;
    uint32_t hidden, unused;
};
struct PoolParams {
    uint64_t states, starts, vectors;
    uint32_t hidden, only_first;
};

typedef std::vector<uint16_t> Halves;

double widened(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double rest = (bits & 1023) / 1024.0;
    double size = exponent == 0 ? ldexp(rest, -14) : ldexp(1 + rest, exponent - 15);
    return bits >> 15 ? -size : size;
}

Halves halves(Random &random, size_t count, float size) {
    Halves values(count);
    for (auto &value : values) value = emulator::narrowed_f16(between(random, -size, size));
    return values;
}
std::vector<float> floats(Random &random, size_t count, float low, float high) {
    std::vector<float> values(count);
    for (auto &value : values) value = between(random, low, high);
    return values;
}

// One unit of rounding of f16 and some sums in f32.
bool is_near(double got, double wanted, double size = 1) {
    return std::fabs(got - wanted) <= 6e-4 * (size + std::fabs(wanted));
}

double activated(double x, uint32_t activation) {
    if (activation == 1) return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    if (activation == 2) return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    return activation == 3 ? std::max(x, 0.0) : x;
}

void product(const char *kernel, uint32_t tokens, uint32_t inputs, uint32_t outputs,
             uint32_t activation, bool has_residual) {
    Random random(tokens * 31 + inputs * 7 + outputs + activation);
    uint32_t rows = 0, columns = 0;
    sscanf(kernel, "embed_product_%ux%u", &rows, &columns);
    Halves states = halves(random, (size_t)tokens * inputs, 1),
           weights = halves(random, (size_t)outputs * inputs, 0.3f),
           residual = halves(random, (size_t)tokens * outputs, 4);
    auto bias = floats(random, outputs, -3, 3);
    OnDevice<uint16_t> on_states(states), on_weights(weights), on_residual(residual),
        output((size_t)tokens * outputs);
    OnDevice<float> on_bias(bias);
    ProductParams params{on_states.at, on_weights.at, on_bias.at, has_residual ? on_residual.at : 0,
                         output.at,    tokens,        inputs,     outputs,
                         activation};
    uint32_t stages = rows == 64 ? 4 : 3;
    uint32_t threads = strstr(kernel, "by_warpgroups") != nullptr ? 256 : 128;
    launch(kernel, (outputs + columns - 1) / columns, (tokens + rows - 1) / rows, threads,
           stages * (rows + columns) * 128, params);
    auto got = output.download();
    for (uint32_t token = 0; token < tokens; token++) {
        for (uint32_t column = 0; column < outputs; column++) {
            double total = bias[column];
            for (uint32_t i = 0; i < inputs; i++) {
                total += widened(states[(size_t)token * inputs + i]) *
                         widened(weights[(size_t)column * inputs + i]);
            }
            size_t place = (size_t)token * outputs + column;
            double wanted = activated(total, activation);
            if (has_residual) wanted += widened(residual[place]);
            expect(is_near(widened(got[place]), wanted), "%s %ux%ux%u, %u: %g for %g at %u, %u",
                   kernel, tokens, inputs, outputs, activation, widened(got[place]), wanted, token,
                   column);
        }
    }
}

void attention(uint32_t width, uint32_t heads, const std::vector<uint32_t> &lengths, float size) {
    Random random(width + lengths.size() + lengths[0]);
    const uint32_t hidden = heads * width;
    std::vector<QueryTile> tiles;
    uint32_t tokens = 0;
    for (uint32_t length : lengths) {
        for (uint32_t first = 0; first < length; first += 64) {
            tiles.push_back({tokens, length, first, 0});
        }
        tokens += length;
    }
    Halves fused = halves(random, (size_t)tokens * 3 * hidden, size);
    OnDevice<uint16_t> on_fused(fused), context((size_t)tokens * hidden);
    OnDevice<QueryTile> on_tiles(tiles);
    AttentionParams params{on_fused.at, on_tiles.at, context.at, hidden, 0};
    char kernel[32];
    snprintf(kernel, sizeof kernel, "embed_attention_%u", width);
    launch(kernel, (unsigned)tiles.size(), heads, 128, 320 * width * 2, params);
    auto got = context.download();
    uint32_t start = 0;
    for (uint32_t length : lengths) {
        auto number = [&](uint32_t token, uint32_t part, uint32_t head, uint32_t at) {
            size_t row = (size_t)(start + token) * 3 * hidden;
            return widened(fused[row + part * hidden + head * width + at]);
        };
        // Every query of a short passage, and some of a long one.
        for (uint32_t query = 0; query < length; query += length > 130 ? 17 : 1) {
            for (uint32_t head = 0; head < heads; head++) {
                std::vector<double> weights(length), mixed(width);
                double top = -1e300, total = 0;
                for (uint32_t key = 0; key < length; key++) {
                    for (uint32_t at = 0; at < width; at++) {
                        weights[key] += number(query, 0, head, at) * number(key, 1, head, at);
                    }
                    top = std::max(top, weights[key]);
                }
                for (auto &weight : weights) total += weight = std::exp(weight - top);
                for (uint32_t key = 0; key < length; key++) {
                    for (uint32_t at = 0; at < width; at++) {
                        mixed[at] += weights[key] / total * number(key, 2, head, at);
                    }
                }
                for (uint32_t at = 0; at < width; at++) {
                    size_t place = (size_t)(start + query) * hidden + head * width + at;
                    expect(is_near(widened(got[place]), mixed[at], size),
                           "%s, length %u: %g for %g, query %u, head %u", kernel, length,
                           widened(got[place]), mixed[at], query, head);
                }
            }
        }
        start += length;
    }
}

std::vector<double> normalised(const std::vector<double> &row, const std::vector<float> &scale,
                               const std::vector<float> &shift, double epsilon) {
    double mean = 0, variance = 0;
    for (double x : row) mean += x / row.size();
    for (double x : row) variance += (x - mean) * (x - mean) / row.size();
    std::vector<double> normal;
    for (size_t i = 0; i < row.size(); i++) {
        normal.push_back((row[i] - mean) / std::sqrt(variance + epsilon) * scale[i] + shift[i]);
    }
    return normal;
}

void rows(uint32_t hidden, uint32_t count) {
    Random random(hidden + count);
    const uint32_t vocabulary = 13, window = 7;
    Halves words = halves(random, vocabulary * hidden, 2), before = words,
           positions = halves(random, window * hidden, 1),
           states = halves(random, (size_t)count * hidden, 30);
    auto scale = floats(random, hidden, 0.5f, 2), shift = floats(random, hidden, -1, 1);
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < count; i++) {
        tokens.push_back(i == 0 ? vocabulary - 1 : below(random, vocabulary));
        tokens.push_back(i == 0 ? window - 1 : below(random, window));
    }
    std::fill(states.begin(), states.begin() + hidden, 0x3c00);  // A row without variance.
    OnDevice<uint16_t> on_words(words), on_positions(positions), on_rows(states),
        gathered((size_t)count * hidden), normed((size_t)count * hidden);
    OnDevice<float> on_scale(scale), on_shift(shift);
    OnDevice<uint32_t> on_tokens(tokens);
    launch("embed_gather", 2, 1, 256, 0,
           GatherParams{on_words.at, on_positions.at, on_tokens.at, on_scale.at, on_shift.at,
                        gathered.at, count, hidden, 1e-12f, 0});
    launch("embed_norm", 3, 1, 256, 0,
           NormParams{on_rows.at, on_scale.at, on_shift.at, normed.at, count, hidden, 1e-5f, 0});
    auto got_gathered = gathered.download(), got_normed = normed.download();
    for (uint32_t at = 0; at < count; at++) {
        std::vector<double> sum, row;
        for (uint32_t i = 0; i < hidden; i++) {
            sum.push_back(widened(words[tokens[2 * at] * hidden + i]) +
                          widened(positions[tokens[2 * at + 1] * hidden + i]));
            row.push_back(widened(states[(size_t)at * hidden + i]));
        }
        auto wanted = normalised(sum, scale, shift, 1e-12);
        auto normal = normalised(row, scale, shift, 1e-5);
        for (uint32_t i = 0; i < hidden; i++) {
            size_t place = (size_t)at * hidden + i;
            expect(is_near(widened(got_gathered[place]), wanted[i]), "gather, %u: %g for %g",
                   hidden, widened(got_gathered[place]), wanted[i]);
            expect(is_near(widened(got_normed[place]), normal[i]), "norm, %u: %g for %g", hidden,
                   widened(got_normed[place]), normal[i]);
        }
    }
}

void pooled(uint32_t hidden, const std::vector<uint32_t> &lengths, bool only_first) {
    Random random(hidden + lengths.size());
    std::vector<uint32_t> starts{0};
    for (uint32_t length : lengths) starts.push_back(starts.back() + length);
    Halves states = halves(random, (size_t)starts.back() * hidden, 3);
    OnDevice<uint16_t> on_states(states);
    OnDevice<uint32_t> on_starts(starts);
    OnDevice<float> vectors(lengths.size() * hidden);
    launch("embed_pool", (unsigned)lengths.size(), 1, 256, 32 * hidden + 32,
           PoolParams{on_states.at, on_starts.at, vectors.at, hidden, only_first});
    auto got = vectors.download();
    for (size_t passage = 0; passage < lengths.size(); passage++) {
        std::vector<double> sum(hidden);
        uint32_t end = only_first ? starts[passage] + 1 : starts[passage + 1];
        double square = 0;
        for (uint32_t token = starts[passage]; token < end; token++) {
            for (uint32_t i = 0; i < hidden; i++) {
                sum[i] += widened(states[(size_t)token * hidden + i]);
            }
        }
        for (double x : sum) square += x * x;
        for (uint32_t i = 0; i < hidden; i++) {
            double wanted = sum[i] / std::sqrt(square), found = got[passage * hidden + i];
            expect(std::fabs(found - wanted) < 1e-5, "pool, %u: %g for %g", hidden, found, wanted);
        }
    }
}

// Random shapes.
void any(uint32_t seed) {
    Random random(seed);
    const char *kernels[] = {"embed_product_128x128", "embed_product_128x64",
                             "embed_product_64x64", "embed_product_128x128_by_warpgroups"};
    emulated_order(seed);
    product(kernels[below(random, 4)], 1 + below(random, 200), 8 + 8 * below(random, 30),
            8 + 8 * below(random, 30), below(random, 4), below(random, 2) == 0);
    std::vector<uint32_t> lengths;
    for (uint32_t i = below(random, 4); i < 5; i++) lengths.push_back(1 + below(random, 200));
    attention(below(random, 2) == 0 ? 32 : 64, 1 + below(random, 2), lengths, 1.5f);
    uint32_t hidden = 8 + 8 * below(random, 128);
    rows(hidden, 1 + below(random, 20));
    pooled(hidden, lengths, below(random, 4) == 0);
    emulated_order(0);
}

#if !defined(__SANITIZE_ADDRESS__)
// A tile that claims too long a passage reads beyond the buffer, and the read is found.
void faults() {
    Random random(1);
    OnDevice<uint16_t> fused(halves(random, 5 * 3 * 32, 1)), context((size_t)5 * 32);
    OnDevice<QueryTile> tiles(std::vector<QueryTile>{{0, 6, 0, 0}});
    AttentionParams params{fused.at, tiles.at, context.at, 32, 0};
    expect(try_launch("embed_attention_32", 1, 1, 128, 20480, params) == 3, "a read beyond");
    expect(try_launch("embed_attention_32", 1, 1, 128, 20464, params) == 3, "too little memory");
}
#endif

}  // namespace

int main() {
    for (const char *kernel :
         {"embed_product_128x128", "embed_product_128x64", "embed_product_64x64",
          "embed_product_128x128_by_warpgroups"}) {
        product(kernel, 1, 384, 72, 0, true);
        product(kernel, 65, 72, 200, 1, false);
        product(kernel, 129, 8, 8, 2, true);
        product(kernel, 130, 136, 136, 3, false);
        emulated_order(7);
        product(kernel, 70, 1024, 40, 1, true);
        emulated_order(0);
    }
    attention(32, 3, {1}, 1);
    attention(32, 2, {1, 2, 63, 64, 65, 1, 127, 9}, 1);
    attention(64, 2, {33, 1, 130}, 0.7f);
    attention(64, 1, {511}, 2);
    emulated_order(3);
    attention(32, 1, {512, 1}, 2);
    emulated_order(0);
    attention(32, 1, {70}, 12);
    for (uint32_t hidden : {8, 72, 384, 1024}) {
        for (uint32_t count : {1, 9, 33}) rows(hidden, count);
    }
    pooled(384, {1, 3, 511, 512}, false);
    pooled(1024, {9}, false);
    pooled(72, {1, 7, 8, 2}, false);
    pooled(72, {5, 1}, true);
    for (uint32_t seed = 1; seed <= 10; seed++) any(seed);
    expect(emulated_conflicts() == 0, "%llu bank conflicts of ldmatrix",
           (unsigned long long)emulated_conflicts());
#if !defined(__SANITIZE_ADDRESS__)
    faults();
#endif
    printf("embed: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
