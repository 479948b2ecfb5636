//! Several queries over the same rows in one pass.

use crate::segment::flat::condensed;
use crate::segment::flat::listed::through_lists;
use crate::segment::flat::path::{SearchPath, choose};
use crate::segment::flat::{
    FlatHits, RowFilter, SeenRows, Thoroughness, Tiers, ranked, rescore, search,
};
use crate::segment::lists::probe_together;
use lodestone_compute::{BoundedQuery, ComputeBackend, ComputeError, PreparedQuery, Selection};
use lodestone_io::major_faults;
use lodestone_types::Hit;

/// Most queries in one pass; their state fits into the CPU's second-level cache.
const QUERIES_AT_ONCE: usize = 256;

/// Runs [`search`] for each of `queries` and returns the results in their order. Searches that read
/// all passing rows share one pass over them; searches by a metric other than cosine run one by
/// one.
///
/// # Errors
/// As [`search`].
pub fn search_together(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    queries: &[PreparedQuery],
    filter: Option<&RowFilter<'_>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<FlatHits>, ComputeError> {
    let rows = &tiers.rows;
    let path = choose(backend, tiers, filter, queries.len(), k, thoroughness);
    let is_shared = path != SearchPath::Gather;
    let goes_alone = |query: &PreparedQuery| query.is_zero() || query.scoring().is_some();
    let mut found = Vec::with_capacity(queries.len());
    for part in queries.chunks(QUERIES_AT_ONCE) {
        if is_shared && part.len() > 1 && !part.iter().any(goes_alone) {
            part.iter().try_for_each(|query| query.check_rows(rows))?;
            let hits = together(path, backend, tiers, part, filter, k, thoroughness)?;
            let patience = thoroughness.effort(tiers, path, k).patience;
            found.extend(hits.into_iter().map(|hits| FlatHits { hits, path, patience }));
        } else {
            for query in part {
                found.push(search(backend, tiers, query, filter, k, thoroughness)?);
            }
        }
    }
    Ok(found)
}

fn together(
    path: SearchPath,
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    queries: &[PreparedQuery],
    filter: Option<&RowFilter<'_>>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let (rows, faults) = (&tiers.rows, major_faults());
    let bound = |query| thoroughness.bound(query, rows);
    let candidates = match (path, &tiers.listed) {
        (SearchPath::CondensedOneBit, _) => {
            let filter = filter.expect("the path is for condensed filters");
            condensed::candidates(backend, tiers, queries, filter, k, thoroughness)?
        }
        (SearchPath::OneBit, Some((lists, rotation))) => {
            let deviations = thoroughness.effort(tiers, path, k).deviations;
            let seen = |at: usize| {
                let query = &queries[at];
                SeenRows { rows, blocks: tiers.blocks, query, bound: bound(query), filter }
            };
            let found = probe_together(lists, rotation, queries, k, deviations, seen);
            found.into_iter().map(ranked).collect()
        }
        (SearchPath::Lists, Some(_)) => {
            through_lists(path, tiers, queries, filter, k, thoroughness)
        }
        _ => {
            let bounded = |query| BoundedQuery { query, bound: bound(query) };
            let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
            tiers.prepare_scan(filter);
            let selection = filter.map_or(Selection::All, RowFilter::selection);
            backend.candidates(rows, &queries, selection, k)?
        }
    };
    let pairs = queries.iter().zip(candidates);
    pairs.map(|(query, candidates)| rescore(backend, tiers, query, candidates, k, faults)).collect()
}
