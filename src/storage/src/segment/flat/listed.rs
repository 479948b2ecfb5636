//! Search through lists: by the backend if it supports that, otherwise list by list until further
//! lists bring no better rows.

use crate::segment::flat::{RowFilter, SearchPath, SeenRows, Thoroughness, Tiers, ranked};
use crate::segment::lists::{Lists, probe, probe_side_by_side};
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ComputeError, ListedRows, PreparedQuery, Probe, Selection,
    VectorRows,
};
use lodestone_types::Hit;

/// Lists that a backend reads for each list of patience: a search that ends early here found no
/// better rows for so long.
const LISTS_OF_PATIENCE: usize = 2;
/// Queries from which searches go through the lists side by side.
const TOGETHER_MIN: usize = 8;

/// For each query the rows that may be among its best k, highest upper bound first.
pub(super) fn through_lists<'a>(
    path: SearchPath,
    backend: &dyn ComputeBackend,
    tiers: &'a Tiers<'a>,
    queries: &'a [PreparedQuery],
    filter: Option<&'a RowFilter<'a>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let rows = &tiers.rows;
    let (lists, rotation) = tiers.listed.expect("this path is for rows with lists");
    let effort = thoroughness.effort(&lists, path, k);
    let bounded = |query| BoundedQuery { query, bound: thoroughness.bound(query, rows) };
    let bounded: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
    let mut found = vec![None; queries.len()];
    if let Some(patience) = effort.patience {
        let passing = filter.map_or(rows.len(), RowFilter::passing);
        let probes = probes(&lists, patience, rows, passing);
        let probe = Probe { k, probes, deviations: effort.deviations };
        let listed = ListedRows { rows, lists: lists.columns(), rotation };
        let selection = filter.map_or(Selection::All, |filter| Selection::Masked(filter.dense()));
        found = backend.through_lists(&listed, &bounded, selection, probe)?;
    }
    let seen = |BoundedQuery { query, bound }: BoundedQuery<'a>| SeenRows {
        rows,
        blocks: tiers.blocks,
        query,
        bound,
        filter,
    };
    let is_left = found.iter().all(Option::is_none);
    if let Some(patience) = effort.patience.filter(|_| is_left && queries.len() >= TOGETHER_MIN) {
        let seen = |at: usize| seen(bounded[at]);
        let probed = probe_side_by_side(&lists, rotation, queries, k, (effort, patience), seen);
        return Ok(probed.into_iter().map(ranked).collect());
    }
    let one_by_one = |(bounded, found): (&BoundedQuery<'a>, Option<Vec<Hit>>)| {
        let alone = || ranked(probe(&lists, rotation, bounded.query, k, effort, seen(*bounded)));
        found.unwrap_or_else(alone)
    };
    Ok(bounded.iter().zip(found).map(one_by_one).collect())
}

/// Number of lists that a backend reads, so that as many rows pass as without a filter.
fn probes(lists: &Lists<'_>, patience: usize, rows: &VectorRows<'_>, passing: usize) -> usize {
    let wanted = patience.saturating_mul(LISTS_OF_PATIENCE).saturating_mul(rows.len());
    wanted.div_ceil(passing.max(1)).min(lists.len())
}
