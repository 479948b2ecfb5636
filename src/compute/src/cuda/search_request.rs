//! A search on the device: its request, and the choice of hits from the candidates it names.

use crate::cuda::batcher::Candidate;
use crate::{BoundedQuery, ErrorBound, Selection, VectorRows};
use lodestone_types::{Hit, RowId, by_rank};

/// Queries over the rows of one segment that the device knows by `identity`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchRequest<'a> {
    pub(super) rows: &'a VectorRows<'a>,
    pub(super) identity: u128,
    pub(super) queries: &'a [BoundedQuery<'a>],
    pub(super) selection: Selection<'a>,
    pub(super) k: usize,
}

/// Rows that searches have in common: those of a segment that pass one mask. Searches without a
/// filter share one too once some rows are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowsKey {
    pub(super) identity: u128,
    pub(super) mask: Option<u64>,
}

/// The best `k` of the rows that the device named, as the CPU chooses them: those whose upper bound
/// reaches the k-th best lower bound, highest upper bound first. The device may have named a few
/// too many, for a request that wanted more.
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
