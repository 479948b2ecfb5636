// The k-th largest of many numbers, twice: a threshold from a sample, and the candidates among the
// rows found.
//
// A radix select, 8 bits a round (Alabi et al. 2012): count digits in shared memory, keep the one
// that holds the k-th, four rounds for 32 bits. Numbers are compared as f32::total_cmp does.
//
// Kernels  select_threshold   maxima of a sampling pass -> thresholds; zeroes the counts
//          select_candidates  rows of a collecting pass -> those whose upper bound reaches the
//                             k-th best lower bound, with estimates whose bits are the CPU's
//          select_candidates_halves  the same of a pass over f16, whose estimates are not
// Block    256 threads, one block a query. Shared: 1,040 bytes. k from 1; no limit above.
// Moves    4 x groups x 4 bytes a query, and 5 x found x 8 beside random reads of factors; a few
//          microseconds. Blocks of many queries run side by side.
// Built    ptxas 13.0 for sm_90, no spills: 21 to 39 registers.

static const u32 DIGITS = 256;

struct SelectThresholdParams {
    const f32 *maxima;  // [queries][groups]
    f32 *thresholds;    // [queries]; -inf where fewer than k groups have a row
    u32 *counts;        // [queries], zeroed
    u32 groups;         // 0: all thresholds are -inf
    u32 k;
};

struct SelectCandidatesParams {
    FoundRow *found;                    // [queries][capacity]; estimates take the dots' place
    const u32 *counts;                  // [queries]
    const f32 *scales;                  // [rows]
    const f32 *residuals;               // [rows]
    const QueryFactors *query_factors;  // [queries]
    KeptRow *kept;                      // [queries][kept_capacity], in no order
    u32 *kept_counts;                   // [queries]; 2^32 - 1 where found overflowed, and more
                                        // than kept_capacity where kept did: then ask again
    u32 capacity;
    u32 kept_capacity;
    u32 k;
    u32 unused;
};

struct SelectShared {
    u32 counts[DIGITS];
    u32 digit;
    u32 before;  // Numbers above the digit.
    u32 kept;
    u32 unused;
};

// As compute/backend.rs and bound.rs have them, to the bit.
DEVICE f32 estimate_of(f64 dot, const QueryFactors &query, f32 scale) {
    return narrowed(product(dot, product((f64)query.scale, (f64)scale)));
}
DEVICE f32 bound_of(const QueryFactors &query, f32 residual) {
    return sum(query.constant, product(query.per_residual, residual));
}

// Lane l of the first warp looks at the 8 digits below 256 - 8l for the one that holds the k-th.
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

// The k-th largest of `count` keys, k <= count; `key(i)` is asked for four times by one thread.
template <class Key>
DEVICE u32 kth_largest(SelectShared *shared, u32 count, u32 k, Key key) {
    u32 thread = thread_in_block(), prefix = 0;
    for (u32 shift = 32; shift > 0;) {
        shift -= 8;
        if (thread < DIGITS) shared->counts[thread] = 0;
        block_barrier();
        for (u32 first = 0; first < count; first += threads_in_block()) {
            u32 at = first + thread, value = at < count ? key(at) : 0;
            u32 digit = (value >> shift) % DIGITS;
            bool is_counted = at < count && (shift == 24 || value >> (shift + 8) == prefix);
            if (shift < 24) {
                if (is_counted) atomic_add(&shared->counts[digit], 1);
                continue;
            }
            // Scores of one search share sign and exponent: one addition for all that are alike.
            for (u32 rest = warp_ballot(is_counted); rest != 0;) {
                u32 leader = lowest_bit(rest);
                u32 common = warp_shuffle(digit, leader);
                u32 alike = warp_ballot(is_counted && digit == common) & rest;
                if (thread % WARP == leader) atomic_add(&shared->counts[digit], population(alike));
                rest &= ~alike;
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

KERNEL(256, 4) __global__ void select_threshold(const SelectThresholdParams p) {
    SelectShared *shared = (SelectShared *)shared_memory();
    u32 query = block_in_grid();
    f32 threshold = -INFINITE;
    if (p.groups >= p.k) {
        const f32 *maxima = p.maxima + (u64)query * p.groups;
        auto key = [=](u32 at) { return ordered(maxima[at]); };
        threshold = from_ordered(kth_largest(shared, p.groups, p.k, key));
    }
    if (thread_in_block() == 0) {
        p.thresholds[query] = threshold;
        p.counts[query] = 0;
    }
}

// The product of a found row: exact in f64 for codes and halves.
DEVICE f64 dot_of(FoundRow row, Codes) { return (f64)row.dot; }
DEVICE f64 dot_of(FoundRow row, Halves) { return (f64)from_bits((u32)row.dot); }

template <class Numbers>
DEVICE void candidates(const SelectCandidatesParams &p) {
    SelectShared *shared = (SelectShared *)shared_memory();
    const u32 query = block_in_grid(), thread = thread_in_block(), count = p.counts[query];
    if (count > p.capacity) {
        if (thread == 0) p.kept_counts[query] = ~0u;
        return;
    }
    FoundRow *found = p.found + (u64)query * p.capacity;
    const QueryFactors factors = p.query_factors[query];
    for (u32 at = thread; at < count; at += threads_in_block()) {
        f64 dot = dot_of(found[at], Numbers());
        f32 estimate = estimate_of(dot, factors, p.scales[found[at].row]);
        found[at].dot = (i32)bits_of(estimate);
    }
    auto bound = [=](u32 at) { return bound_of(factors, p.residuals[found[at].row]); };
    auto estimate = [=](u32 at) { return from_bits((u32)found[at].dot); };
    auto key = [=](u32 at) { return ordered(difference(estimate(at), bound(at))); };
    f32 threshold = -INFINITE;
    if (thread == 0) shared->kept = 0;
    if (count >= p.k) threshold = from_ordered(kth_largest(shared, count, p.k, key));
    block_barrier();
    for (u32 at = thread; at < count; at += threads_in_block()) {
        if (sum(estimate(at), bound(at)) < threshold) continue;
        u32 place = atomic_add(&shared->kept, 1);
        if (place >= p.kept_capacity) continue;
        KeptRow *kept = p.kept + (u64)query * p.kept_capacity;
        kept[place] = KeptRow{found[at].row, estimate(at)};
    }
    block_barrier();
    if (thread == 0) p.kept_counts[query] = shared->kept;
}

KERNEL(256, 4) __global__ void select_candidates(const SelectCandidatesParams p) {
    candidates<Codes>(p);
}
KERNEL(256, 4) __global__ void select_candidates_halves(const SelectCandidatesParams p) {
    candidates<Halves>(p);
}

LAUNCHABLE(select_threshold)
LAUNCHABLE(select_candidates)
LAUNCHABLE(select_candidates_halves)
