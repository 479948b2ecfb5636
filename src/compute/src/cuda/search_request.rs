//! A search on the device: its request, and the selection of hits from the returned candidates.

use crate::cuda::batcher::Candidate;
use crate::{BoundedQuery, ErrorBound, Selection, VectorRows};
use lodestone_types::{Hit, RowId, by_rank};

/// Queries over the rows of one segment, which the device knows by `identity`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchRequest<'a> {
    pub(super) rows: &'a VectorRows<'a>,
    pub(super) identity: u128,
    pub(super) queries: &'a [BoundedQuery<'a>],
    pub(super) selection: Selection<'a>,
    pub(super) k: usize,
}

/// Identifies the rows that searches share: those of a segment that pass one mask. Searches without
/// a filter share a mask too, once some rows are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowsKey {
    pub(super) identity: u128,
    pub(super) mask: Option<u64>,
}

/// Selects the best `k` of the rows that the device returned, as the CPU does: those whose upper
/// bound reaches the k-th best lower bound, highest upper bound first. The device may have returned
/// more than needed, for another request of the batch with a larger k.
pub(super) fn best_hits(found: &[Candidate], k: usize, bound: &ErrorBound) -> Vec<Hit> {
    let of = |found: &Candidate| (found.estimate, bound.of(found.residual));
    let mut threshold = f32::NEG_INFINITY;
    if (1..=found.len()).contains(&k) {
        let mut lowest: Vec<f32> =
            found.iter().map(of).map(|(estimate, bound)| estimate - bound).collect();
        let (_, kth, _) = lowest.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        threshold = *kth;
    }
    let hit = |found: &Candidate| {
        let (estimate, bound) = of(found);
        Hit { row: RowId(found.row), score: estimate + bound }
    };
    let mut hits: Vec<Hit> = found.iter().map(hit).filter(|hit| hit.score >= threshold).collect();
    hits.sort_unstable_by(by_rank);
    hits
}
