//! Search through lists, until further lists bring no better rows.

use crate::segment::flat::{RowFilter, SearchPath, SeenRows, Thoroughness, Tiers, ranked};
use crate::segment::lists::{probe, probe_side_by_side};
use lodestone_compute::PreparedQuery;
use lodestone_types::Hit;

/// Number of queries from which searches traverse the lists side by side.
const TOGETHER_MIN: usize = 8;

/// For each query, the rows that may be among its best k, highest upper bound first.
pub(super) fn through_lists(
    path: SearchPath,
    tiers: &Tiers<'_>,
    queries: &[PreparedQuery],
    filter: Option<&RowFilter<'_>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Vec<Vec<Hit>> {
    let rows = &tiers.rows;
    let (lists, rotation) = tiers.listed.expect("this path is for rows with lists");
    let effort = thoroughness.effort(tiers, path, k);
    let seen = |query| {
        let bound = thoroughness.bound(query, rows);
        SeenRows { rows, blocks: tiers.blocks, query, bound, filter }
    };
    if let Some(patience) = effort.patience.filter(|_| queries.len() >= TOGETHER_MIN) {
        let seen = |at: usize| seen(&queries[at]);
        let probed = probe_side_by_side(&lists, rotation, queries, k, (effort, patience), seen);
        return probed.into_iter().map(ranked).collect();
    }
    let alone = |query| ranked(probe(&lists, rotation, query, k, effort, seen(query)));
    queries.iter().map(alone).collect()
}
