// G5: from queries to the rows of near lists that may be among the best. Each stage is held against
// plain loops: promises and products to the bit, upper bounds in f64, selections exactly.

#include "one_bit.hpp"

namespace {

struct OneBitFactorsOfQuery {
    float step;
    int32_t total;
    float lost, residual;
};

struct OneBitQueriesParams {
    uint64_t rotated, residuals, planes, factors;
    uint32_t width, unused;
};

struct ListsPassingParams {
    uint64_t mask, rows_of_slots, first_blocks, sizes, passing;
    uint32_t lists, unused;
};

struct ListsSeeParams {
    uint64_t point_codes, point_scales, squares, spreads, passing, query_codes, query_factors, dots,
        promises;
    uint32_t lists, stride, queries, unused;
};

struct ListsChooseParams {
    uint64_t promises, sizes, active, active_count, members, member_counts, slot_counts;
    uint32_t lists, probes, member_capacity, slot_capacity;
};

struct OneBitScanParams {
    uint64_t blocks, rows_of_slots, first_blocks, sizes, squares, mask, planes, factors, dots,
        active, active_count, members, member_counts, uppers;
    uint32_t lists, width, member_capacity, slot_capacity;
    float deviations;
    uint32_t unused;
};

struct OneBitSelectParams {
    uint64_t uppers, slot_counts, codes, scales, residuals, query_codes, query_factors, found,
        counts;
    uint32_t slot_capacity, capacity, stride, first_rows, k, unused;
};

struct ListMember {
    uint32_t query, first_slot;
};

// Rows in lists, with everything that a search of them reads.
struct Lists {
    uint32_t dimension, width, count;
    CodeRows rows, points;
    std::vector<float> signs, squares, spreads, references;
    std::vector<std::vector<float>> units, decoded;
    std::vector<uint32_t> first_blocks, sizes, slots, lists_of_blocks;
    std::vector<uint8_t> blocks;

    Lists(Random &random, uint32_t dimension, uint32_t rows_count, uint32_t count)
        : dimension(dimension), width((dimension + 63) / 64 * 64), count(count), rows(dimension),
          points(dimension), signs(rotation_signs(width)) {
        std::vector<std::vector<float>> centres;
        for (uint32_t i = 0; i < count; i++) centres.push_back(random_vector(random, dimension));
        std::vector<std::vector<uint32_t>> of_list(count);
        for (uint32_t row = 0; row < rows_count; row++) {
            uint32_t list = row < count ? row : below(random, count);
            auto vector = random_vector(random, dimension);
            for (uint32_t i = 0; i < dimension; i++) {
                vector[i] = centres[list][i] + .5f * vector[i];
            }
            rows.push(vector);
            units.push_back(unit_of(vector));
            of_list[list].push_back(row);
        }
        for (uint32_t list = 0; list < count; list++) {
            auto point = unit_of(centres[list]);
            points.push(point);
            decoded.emplace_back();
            float square = 0;
            for (uint32_t i = 0; i < dimension; i++) {
                int8_t code = points.codes[(size_t)list * points.stride + i];
                decoded[list].push_back((float)code * points.scales[list]);
                square += decoded[list][i] * decoded[list][i];
            }
            squares.push_back(square);
            spreads.push_back(between(random, 0, 1));
            auto turned = rotated(decoded[list], signs);
            references.insert(references.end(), turned.begin(), turned.end());
            first_blocks.push_back((uint32_t)slots.size() / 64);
            sizes.push_back((uint32_t)of_list[list].size());
            slots.insert(slots.end(), of_list[list].begin(), of_list[list].end());
            slots.resize((slots.size() + 63) / 64 * 64, NO_ROW);
            lists_of_blocks.resize(slots.size() / 64, list);
        }
        blocks = one_bit_blocks(units, slots, lists_of_blocks, references, signs);
    }
};

struct Case {
    uint32_t dimension, rows, lists, queries, probes, k;
    bool has_mask;
};

// The rows of the upper bounds as one_bit_select must find them.
std::vector<KeptRow> selected(const Lists &lists, const CodeRows &queries, uint32_t query,
                              const QueryFactors &factors, const std::vector<KeptRow> &uppers,
                              uint32_t first_rows, uint32_t k) {
    std::vector<float> keys;
    for (const auto &row : uppers) keys.push_back(row.estimate);
    std::sort(keys.rbegin(), keys.rend());
    float first = keys.size() >= first_rows ? keys[first_rows - 1] : -INFINITY;
    std::vector<float> lowers;
    for (const auto &row : uppers) {
        if (row.row == NO_ROW || row.estimate < first) continue;
        float bound = factors.constant + factors.per_residual * lists.rows.residuals[row.row];
        int32_t dot = lists.rows.dot(row.row, queries, query);
        lowers.push_back(estimate_of(dot, factors, lists.rows.scales[row.row]) - bound);
    }
    std::sort(lowers.rbegin(), lowers.rend());
    float threshold = lowers.size() >= k ? lowers[k - 1] : -INFINITY;
    std::vector<KeptRow> found;
    for (const auto &row : uppers) {
        if (row.row != NO_ROW && row.estimate >= std::min(first, threshold)) found.push_back(row);
    }
    std::sort(found.begin(), found.end());
    return found;
}

void check(const Case &c, uint32_t seed) {
    Random random(seed);
    Lists lists(random, c.dimension, c.rows, c.lists);
    CodeRows queries(c.dimension);
    std::vector<std::vector<float>> units;
    std::vector<float> all_rotated;
    std::vector<QueryFactors> factors;
    for (uint32_t query = 0; query < c.queries; query++) {
        auto vector = random_vector(random, c.dimension);
        const auto &near = lists.units[below(random, c.rows)];
        for (uint32_t i = 0; i < c.dimension; i++) vector[i] = near[i] * 20 + vector[i];
        if (query == 2) std::fill(vector.begin(), vector.end(), 0);
        queries.push(vector);
        units.push_back(unit_of(vector));
        auto turned = rotated(units.back(), lists.signs);
        all_rotated.insert(all_rotated.end(), turned.begin(), turned.end());
        factors.push_back(factors_of(queries, query, .3f));
    }
    std::vector<uint32_t> mask((c.rows + 31) / 32);
    for (uint32_t row = 0; row < c.rows; row++) {
        // The first list is emptied.
        bool is_first = std::find(lists.slots.begin(), lists.slots.begin() + lists.sizes[0], row) !=
                        lists.slots.begin() + lists.sizes[0];
        if (!is_first && below(random, 2) == 0) mask[row / 32] |= 1u << row % 32;
    }
    auto passes = [&](uint32_t row) { return !c.has_mask || (mask[row / 32] >> row % 32 & 1); };
    emulated_order(seed % 2 == 0 ? 0 : seed);

    OnDevice<float> on_rotated(all_rotated), query_residuals(queries.residuals);
    OnDevice<int8_t> planes((size_t)c.queries * 2 * lists.width), query_codes(queries.codes);
    OnDevice<OneBitFactorsOfQuery> one_bit((size_t)c.queries);
    OnDevice<QueryFactors> on_factors(factors);
    launch("one_bit_queries", c.queries, 1, 32, 0,
           OneBitQueriesParams{on_rotated.at, query_residuals.at, planes.at, one_bit.at,
                               lists.width, 0});

    OnDevice<uint32_t> on_mask(mask), slots(lists.slots), first_blocks(lists.first_blocks),
        sizes(lists.sizes), passing((size_t)c.lists);
    launch("lists_passing", (c.lists + 7) / 8, 1, 256, 0,
           ListsPassingParams{on_mask.at, slots.at, first_blocks.at, sizes.at, passing.at, c.lists,
                              0});
    OnDevice<int8_t> point_codes(lists.points.codes), codes(lists.rows.codes);
    OnDevice<float> point_scales(lists.points.scales), squares(lists.squares),
        spreads(lists.spreads), scales(lists.rows.scales), residuals(lists.rows.residuals);
    OnDevice<float> dots((size_t)c.queries * c.lists), promises((size_t)c.queries * c.lists);
    launch("lists_see", (c.lists + 127) / 128, (c.queries + 7) / 8, 256, 0,
           ListsSeeParams{point_codes.at, point_scales.at, squares.at, spreads.at,
                          c.has_mask ? passing.at : 0, query_codes.at, on_factors.at, dots.at,
                          promises.at, c.lists, lists.rows.stride, c.queries, 0});
    if (failures > 0) return;
    auto got_dots = dots.download(), got_promises = promises.download();
    std::vector<std::vector<uint32_t>> chosen(c.queries);
    uint32_t slot_capacity = 0;
    for (uint32_t query = 0; query < c.queries; query++) {
        std::vector<std::pair<float, uint32_t>> order;
        for (uint32_t list = 0; list < c.lists; list++) {
            int32_t product = lists.points.dot(list, queries, query);
            float dot = (float)product * queries.scales[query] * lists.points.scales[list];
            float squared = 1.0f + lists.squares[list] - 2.0f * dot;
            float distance = std::sqrt(std::max(squared, 0.0f));
            float promise = dot + 0.3f * lists.spreads[list] * distance;
            uint32_t rows = 0, first = lists.first_blocks[list] * 64;
            for (uint32_t at = 0; at < lists.sizes[list]; at++) {
                rows += passes(lists.slots[first + at]);
            }
            if (rows == 0) promise = -INFINITY;
            expect(got_dots[query * c.lists + list] == dot, "dot with a point");
            expect(got_promises[query * c.lists + list] == promise, "promise of a list");
            if (rows > 0) order.push_back({-promise, list});
        }
        std::sort(order.begin(), order.end());
        order.resize(std::min<size_t>(order.size(), c.probes));
        uint32_t own = 0;
        for (auto &[_, list] : order) {
            chosen[query].push_back(list);
            own += (lists.sizes[list] + 63) / 64 * 64;
        }
        slot_capacity = std::max(slot_capacity, own);
    }

    std::vector<uint32_t> zeros(c.lists, 0);
    OnDevice<uint32_t> active((size_t)c.lists), active_count(std::vector<uint32_t>{0}),
        member_counts(zeros), slot_counts((size_t)c.queries);
    OnDevice<ListMember> members((size_t)c.lists * c.queries);
    launch("lists_choose", c.queries, 1, 256, 1168,
           ListsChooseParams{promises.at, sizes.at, active.at, active_count.at, members.at,
                             member_counts.at, slot_counts.at, c.lists, c.probes, c.queries,
                             slot_capacity});
    OnDevice<uint8_t> blocks(lists.blocks);
    OnDevice<KeptRow> uppers((size_t)c.queries * slot_capacity);
    const float deviations = 2.5f;
    launch("one_bit_scan", 3, 1, 128, 0,
           OneBitScanParams{blocks.at, slots.at, first_blocks.at, sizes.at, squares.at,
                            c.has_mask ? on_mask.at : 0, planes.at, one_bit.at, dots.at, active.at,
                            active_count.at, members.at, member_counts.at, uppers.at, c.lists,
                            lists.width, c.queries, slot_capacity, deviations, 0});
    uint32_t capacity = c.rows, first_rows = std::max(20u, 2 * c.k);
    OnDevice<FoundRow> found((size_t)c.queries * capacity);
    OnDevice<KeptRow> kept((size_t)c.queries * capacity);
    OnDevice<uint32_t> counts((size_t)c.queries), kept_counts((size_t)c.queries);
    launch("one_bit_select", c.queries, 1, 1024, 1040,
           OneBitSelectParams{uppers.at, slot_counts.at, codes.at, scales.at, residuals.at,
                              query_codes.at, on_factors.at, found.at, counts.at, slot_capacity,
                              capacity, lists.rows.stride, first_rows, c.k, 0});
    if (failures > 0) return;
    auto got_found = found.download();
    launch("select_candidates", c.queries, 1, 256, 1040,
           SelectCandidatesParams{found.at, counts.at, scales.at, residuals.at, on_factors.at,
                                  kept.at, kept_counts.at, capacity, capacity, c.k, 0});
    emulated_order(0);
    auto of_list = member_counts.download(), got_slots = slot_counts.download(),
         got_counts = counts.download();
    auto got_members = members.download();
    auto got_uppers = uppers.download();
    auto one_bit_factors_of = one_bit.download();
    std::vector<std::vector<uint32_t>> got_chosen(c.queries);
    std::vector<std::vector<KeptRow>> by_query(c.queries);
    for (uint32_t list = 0; list < c.lists; list++) {
        for (uint32_t at = 0; at < of_list[list]; at++) {
            ListMember member = got_members[list * c.queries + at];
            got_chosen[member.query].push_back(list);
            // Upper bounds of the list's slots.
            float dot = got_dots[member.query * c.lists + list];
            float squared = std::max(1 + lists.squares[list] - 2 * dot, 0.0f);
            double allowance = deviations * std::sqrt((double)squared);
            double moved = queries.residuals[member.query] * std::sqrt(lists.squares[list]);
            uint32_t size = (lists.sizes[list] + 63) / 64 * 64;
            for (uint32_t i = 0; i < size; i++) {
                uint32_t row = lists.slots[lists.first_blocks[list] * 64 + i];
                KeptRow got = got_uppers[member.query * slot_capacity + member.first_slot + i];
                by_query[member.query].push_back(got);
                if (row == NO_ROW || !passes(row)) {
                    expect(got.row == NO_ROW && got.estimate == -INFINITY, "a slot without row");
                    continue;
                }
                auto turned = rotated(lists.units[row], lists.signs);
                const float *reference = &lists.references[(size_t)list * lists.width];
                auto row_factors = one_bit_factors(turned, reference);
                double signs = 0;
                for (uint32_t j = 0; j < lists.width; j++) {
                    double q = all_rotated[(size_t)member.query * lists.width + j];
                    signs += turned[j] - reference[j] > 0 ? q : -q;
                }
                double lost = one_bit_factors_of[member.query].lost;
                double upper = row_factors.scale * (signs + lost) + row_factors.offset + dot +
                               moved + row_factors.error * allowance;
                double allowed = row_factors.scale * lost + 2e-6;
                expect(got.row == row && std::fabs(got.estimate - upper) <= allowed,
                       "upper bound %g for %g, d %u", got.estimate, upper, c.dimension);
            }
        }
    }
    for (uint32_t query = 0; query < c.queries; query++) {
        std::sort(chosen[query].begin(), chosen[query].end());
        expect(got_chosen[query] == chosen[query], "chosen lists of query %u", query);
        expect(got_slots[query] == by_query[query].size(), "slots of query %u", query);
        auto expected = selected(lists, queries, query, factors[query], by_query[query],
                                 first_rows, c.k);
        expect(got_counts[query] == expected.size(), "query %u: %u rows for %zu", query,
               got_counts[query], expected.size());
        auto begin = got_found.begin() + query * capacity;
        std::vector<FoundRow> own(begin, begin + std::min<size_t>(got_counts[query], capacity));
        std::sort(own.begin(), own.end(), [](auto &a, auto &b) { return a.row < b.row; });
        for (size_t at = 0; at < own.size() && at < expected.size(); at++) {
            expect(own[at].row == expected[at].row &&
                       own[at].dot == lists.rows.dot(own[at].row, queries, query),
                   "a row of query %u", query);
        }
    }
    auto got_kept = kept_counts.download();
    for (uint32_t query = 0; query < c.queries; query++) {
        expect(got_kept[query] >= std::min(c.k, got_counts[query]), "too few rows are kept");
    }
}

// Equal promises, lists that may not be chosen, and too few slots.
void chosen_among_equals(uint32_t lists, uint32_t probes, uint32_t seed) {
    Random random(seed);
    std::vector<float> promises(lists);
    std::vector<uint32_t> sizes(lists), order, expected;
    for (uint32_t list = 0; list < lists; list++) {
        uint32_t kind = below(random, 5);
        promises[list] = kind == 0 ? -INFINITY : (float)kind / 4;
        sizes[list] = 1 + below(random, 200);
        if (kind > 0) order.push_back(list);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return promises[a] > promises[b]; });
    order.resize(std::min<size_t>(order.size(), probes));
    std::sort(order.begin(), order.end());
    std::vector<uint32_t> places;
    uint32_t slots = 0, capacity = 64 * probes;
    for (uint32_t list : order) {
        uint32_t taken = (sizes[list] + 63) / 64 * 64;
        if (slots + taken <= capacity) {
            expected.push_back(list);
            places.push_back(slots);
        }
        slots += taken;
    }
    OnDevice<float> on_promises(promises);
    OnDevice<uint32_t> on_sizes(sizes), active((size_t)lists),
        active_count(std::vector<uint32_t>{0}), member_counts(std::vector<uint32_t>(lists, 0)),
        slot_counts((size_t)1);
    OnDevice<ListMember> members((size_t)lists);
    launch("lists_choose", 1, 1, 256, 1168,
           ListsChooseParams{on_promises.at, on_sizes.at, active.at, active_count.at, members.at,
                             member_counts.at, slot_counts.at, lists, probes, 1, capacity});
    expect(active_count.download()[0] == expected.size(), "lists chosen among equals");
    auto counts = member_counts.download();
    auto got = members.download();
    for (size_t at = 0; at < expected.size(); at++) {
        bool is_in = counts[expected[at]] == 1 && got[expected[at]].first_slot == places[at];
        expect(is_in, "list %u among %u equals", expected[at], lists);
    }
    expect(slot_counts.download()[0] == slots, "slots of lists chosen among equals");
}

}  // namespace

int main() {
    uint32_t seed = 1;
    for (uint32_t lists : {1u, 5u, 256u, 700u}) {
        for (uint32_t probes : {1u, 7u, 300u}) chosen_among_equals(lists, probes, seed++);
    }
    check({64, 400, 7, 3, 3, 5, false}, seed++);
    check({100, 500, 7, 9, 4, 10, true}, seed++);
    check({384, 300, 5, 3, 2, 5, true}, seed++);
    check({1, 100, 3, 3, 3, 5, false}, seed++);
    check({768, 150, 4, 2, 4, 3, true}, seed++);
    check({65, 900, 300, 4, 12, 10, false}, seed++);
    check({64, 40, 20, 17, 30, 10, true}, seed++);
    check({1536, 100, 3, 1, 1, 1, false}, seed++);
    printf("lists: %s\n", failures == 0 ? "ok" : "FAILED");
    return failures == 0 ? 0 : 1;
}
