// The k-th largest of many numbers, used twice: for a threshold from a sample, and for the
// candidates among the rows found.
//
// A radix select with 8 bits a round (Alabi et al. 2012): count digits in shared memory and keep
// the digit that contains the k-th; four rounds for 32 bits. Numbers are ordered as by
// f32::total_cmp.
//
// Kernels  select_threshold   maxima of a sampling pass -> thresholds; zeroes the counts
//          select_candidates  rows of a collecting pass -> those whose upper bound reaches the k-th
//                             best lower bound, with estimates bit-equal to the CPU's
//          select_candidates_halves  likewise for a pass over f16, without bit-equal estimates
// Launcher src/compute/src/cuda/select.rs
// Block    512 threads. Grid: x = queries. Shared: 1,168 bytes. k >= 1, without an upper limit.
// Moves    4 x groups x 4 bytes a query, and 5 x found x 8, plus random reads of factors; a few
//          microseconds. The blocks of many queries run concurrently.
// Time     measured on an H200, k 10, 1 query: 6.0 us over 977 maxima, 8.5 over the rows found;
//          1,024 queries: 20 and 30 us.
// Built    ptxas 13.0 for sm_90a, no spills: 38 and 56 registers.

static const u32 DIGITS = 256;

// The answers to all queries, contiguous so that a single copy downloads them: this head, a range
// for each query, and the rows of one query after those of another, in no particular order.
struct AnswerHead {
    u32 total;  // Rows, zeroed before.
    u32 unused[2];
};
// The rows of one query. `count` is 2^32 - 1 if found overflowed or fewer than k rows reach the
// threshold, and exceeds kept_capacity if the answer's rows overflowed. In all these cases there
// are no rows, and the caller repeats the query.
struct AnswerRange {
    u32 first, count, unused;
};
// A row that may be among the best k, with its estimate as computed by ComputeBackend::scan.
struct AnswerRow {
    u32 row;
    f32 estimate, residual;
};

struct SelectThresholdParams {
    const f32 *maxima;  // [queries][groups]
    f32 *thresholds;    // [queries]: the rank-th greatest; -inf where fewer groups have a row
    u32 *counts;        // [queries], zeroed
    u32 *total;         // [1], zeroed: of the answers that select_candidates writes
    u32 groups;         // 0: all thresholds are -inf
    u32 rank;           // k, or less where the sample makes it likely that k rows reach it
};

struct SelectCandidatesParams {
    FoundRow *found;                    // [queries][capacity]; estimates take the dots' place
    const u32 *counts;                  // [queries]
    const f32 *scales;                  // [rows]
    const f32 *residuals;               // [rows]
    const QueryFactors *query_factors;  // [queries]
    const f32 *thresholds;              // [queries]: what the collecting pass let through
    AnswerHead *answers;                // Room for kept_capacity rows of each query
    u32 capacity;
    u32 kept_capacity;
    u32 k;
    u32 queries;
};

struct SelectShared {
    u32 counts[DIGITS];
    u32 digit;
    u32 before;  // Numbers above the digit.
    u32 kept;
    u32 first;
    u32 sums[32];
};

// As in compute/backend.rs and bound.rs, bit for bit.
DEVICE f32 estimate_of(f64 dot, const QueryFactors &query, f32 scale) {
    return narrowed(product(dot, product((f64)query.scale, (f64)scale)));
}
DEVICE f32 bound_of(const QueryFactors &query, f32 residual) {
    return sum(query.constant, product(query.per_residual, residual));
}

// Finds the digit that contains the k-th largest. Called by the first warp; lane l examines the 8
// digits below 256 - 8l.
DEVICE void find_digit(SelectShared *shared, u32 k) {
    u32 lane = thread_in_block(), first = DIGITS - 8 * lane, own = 0;
    for (u32 at = 1; at <= 8; at++) own += shared->counts[first - at];
    u32 until = own;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        u32 other = warp_shuffle(until, (lane - distance) % WARP);
        until += lane >= distance ? other : 0;
    }
    u32 before = until - own;
    if (before >= k || until < k) return;
    u32 digit = first - 1;
    while (before + shared->counts[digit] < k) before += shared->counts[digit--];
    shared->digit = digit;
    shared->before = before;
}

// Values that a thread loads together; kept between rounds if they cover all of its values.
static const u32 AT_ONCE = 8;

// Counts the digit of each thread that has a value (`is_counted`).
DEVICE void tally(SelectShared *shared, bool is_counted, u32 digit, bool is_first) {
    if (!is_first) {
        if (is_counted) atomic_add(&shared->counts[digit], 1);
        return;
    }
    // Scores of one search share sign and exponent, so equal digits are added with one atomic.
    for (u32 rest = warp_ballot(is_counted); rest != 0;) {
        u32 leader = lowest_bit(rest);
        u32 common = warp_shuffle(digit, leader);
        u32 alike = warp_ballot(is_counted && digit == common) & rest;
        if (thread_in_block() % WARP == leader) {
            atomic_add(&shared->counts[digit], population(alike));
        }
        rest &= ~alike;
    }
}

// The k-th largest of `count` keys, with k <= count. Each `key(i)` is computed by one thread: once
// if the block can keep all keys, otherwise in each of the four rounds.
template <class Key>
DEVICE u32 kth_largest(SelectShared *shared, u32 count, u32 k, Key key) {
    const u32 thread = thread_in_block(), threads = threads_in_block();
    const bool are_kept = count <= AT_ONCE * threads;
    u32 prefix = 0, own[AT_ONCE];
    for (u32 shift = 32; shift > 0;) {
        shift -= 8;
        for (u32 at = thread; at < DIGITS; at += threads) shared->counts[at] = 0;
        block_barrier();
        for (u32 start = 0; start < count; start += AT_ONCE * threads) {
            if (!are_kept || shift == 24) {
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    u32 at = start + i * threads + thread;
                    own[i] = at < count ? key(at) : 0;
                }
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                u32 first = start + i * threads;
                if (first >= count) break;
                bool is_like = shift == 24 || own[i] >> (shift + 8) == prefix;
                bool is_counted = first + thread < count && is_like;
                tally(shared, is_counted, (own[i] >> shift) % DIGITS, shift == 24);
            }
        }
        block_barrier();
        if (thread < WARP) find_digit(shared, k);
        block_barrier();
        prefix = prefix << 8 | shared->digit;
        k -= shared->before;
    }
    return prefix;
}

KERNEL(512, 2) __global__ void select_threshold(const SelectThresholdParams p) {
    SelectShared *shared = (SelectShared *)shared_memory();
    u32 query = block_in_grid();
    f32 threshold = -INFINITE;
    if (p.groups >= p.rank) {
        const f32 *maxima = p.maxima + (u64)query * p.groups;
        auto key = [=](u32 at) { return ordered(maxima[at]); };
        threshold = from_ordered(kth_largest(shared, p.groups, p.rank, key));
    }
    if (thread_in_block() == 0) {
        p.thresholds[query] = threshold;
        p.counts[query] = 0;
        if (query == 0) *p.total = 0;
    }
}

// The dot product of a found row; its conversion to f64 is exact for codes and halves.
DEVICE f64 dot_of(FoundRow row, Codes) { return (f64)row.dot; }
DEVICE f64 dot_of(FoundRow row, Halves) { return (f64)from_bits((u32)row.dot); }

template <class Numbers>
DEVICE void candidates(const SelectCandidatesParams &p) {
    SelectShared *shared = (SelectShared *)shared_memory();
    const u32 query = block_in_grid(), thread = thread_in_block(), threads = threads_in_block();
    const u32 count = p.counts[query];
    AnswerRange *ranges = (AnswerRange *)(p.answers + 1);
    if (count > p.capacity) {
        if (thread == 0) ranges[query] = AnswerRange{0, ~0u, 0};
        return;
    }
    FoundRow *found = p.found + (u64)query * p.capacity;
    const QueryFactors factors = p.query_factors[query];
    for (u32 start = thread; start < count; start += AT_ONCE * threads) {
        FoundRow rows[AT_ONCE];
        f32 scales[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            rows[i] = found[start + i * threads < count ? start + i * threads : start];
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) scales[i] = p.scales[rows[i].row];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            f32 estimate = estimate_of(dot_of(rows[i], Numbers()), factors, scales[i]);
            u32 at = start + i * threads;
            if (at < count) found[at].dot = (i32)bits_of(estimate);
        }
    }
    auto bound = [=](u32 at) { return bound_of(factors, p.residuals[found[at].row]); };
    auto estimate = [=](u32 at) { return from_bits((u32)found[at].dot); };
    auto key = [=](u32 at) { return ordered(difference(estimate(at), bound(at))); };
    f32 threshold = -INFINITE;
    if (count >= p.k) threshold = from_ordered(kth_largest(shared, count, p.k, key));
    // A row that was not collected may also be among the best k.
    if (threshold < p.thresholds[query]) {
        if (thread == 0) ranges[query] = AnswerRange{0, ~0u, 0};
        return;
    }
    u32 own = 0, kept = 0;
#pragma unroll 4
    for (u32 at = thread; at < count; at += threads) {
        own += sum(estimate(at), bound(at)) >= threshold;
    }
    u32 place = sum_before(shared->sums, own, kept);
    const bool fits = kept <= p.kept_capacity;
    if (thread == 0) {
        shared->first = fits ? atomic_add(&p.answers->total, kept) : 0;
        ranges[query] = AnswerRange{shared->first, kept, 0};
    }
    block_barrier();
    AnswerRow *to = (AnswerRow *)(ranges + p.queries) + shared->first;
    for (u32 at = thread; fits && at < count; at += threads) {
        if (sum(estimate(at), bound(at)) < threshold) continue;
        u32 row = found[at].row;
        to[place++] = AnswerRow{row, estimate(at), p.residuals[row]};
    }
}

KERNEL(512, 2) __global__ void select_candidates(const SelectCandidatesParams p) {
    candidates<Codes>(p);
}
KERNEL(512, 2) __global__ void select_candidates_halves(const SelectCandidatesParams p) {
    candidates<Halves>(p);
}

LAUNCHABLE(select_threshold)
LAUNCHABLE(select_candidates)
LAUNCHABLE(select_candidates_halves)
