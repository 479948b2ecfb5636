//! Several queries over the same rows in one pass.

use roaring::RoaringBitmap;

use crate::compute::{
    BoundedQuery, ComputeBackend, ComputeError, PreparedQuery, Selection, VectorRows,
};
use crate::segment::flat::path::{SearchPath, choose};
use crate::segment::flat::{
    FlatHits, SeenRows, Thoroughness, Tiers, dense, passing_rows, ranked, rescore, search,
};
use crate::segment::lists::probe_together;
use crate::types::Hit;

/// Queries that go through the rows together: what they keep of T0 and T1 meanwhile stays in the
/// processor's second cache.
const QUERIES_AT_ONCE: usize = 256;

/// What [`search`] finds for each of `queries`, in their order. Rows are read once for many
/// queries where a search reads all that pass; probing searches go their own ways.
///
/// # Errors
/// As [`search`].
pub fn search_together(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    queries: &[PreparedQuery],
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<FlatHits>, ComputeError> {
    let rows = &tiers.rows;
    let path = choose(tiers, passing_rows(rows, mask), k, thoroughness);
    let is_shared = !matches!(path, SearchPath::Gather | SearchPath::Lists);
    let mut found = Vec::with_capacity(queries.len());
    for part in queries.chunks(QUERIES_AT_ONCE) {
        if is_shared && part.len() > 1 && !part.iter().any(PreparedQuery::is_zero) {
            part.iter().try_for_each(|query| query.check_rows(rows))?;
            let hits = together(path, backend, tiers, part, mask, k, thoroughness)?;
            found.extend(hits.into_iter().map(|hits| FlatHits { hits, path }));
        } else {
            for query in part {
                found.push(search(backend, tiers, query, mask, k, thoroughness)?);
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
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let rows = &tiers.rows;
    let bound = |query| thoroughness.bound(query, rows);
    let candidates = match (path, &tiers.listed) {
        (SearchPath::OneBit, Some((lists, rotation))) => {
            let deviations = thoroughness.effort(lists, path).deviations;
            let seen = |at: usize| {
                let query = &queries[at];
                SeenRows { rows, query, bound: bound(query), mask }
            };
            let found = probe_together(lists, rotation, queries, k, deviations, seen);
            found.into_iter().map(ranked).collect()
        }
        _ => scanned(backend, rows, queries, mask, k, thoroughness)?,
    };
    let pairs = queries.iter().zip(candidates);
    pairs.map(|(query, candidates)| rescore(backend, rows, query, candidates, k)).collect()
}

fn scanned(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    queries: &[PreparedQuery],
    mask: Option<&RoaringBitmap>,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<Vec<Vec<Hit>>, ComputeError> {
    let bounded = |query| BoundedQuery { query, bound: thoroughness.bound(query, rows) };
    let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
    let mask = mask.map(|mask| dense(rows, mask));
    let selection = mask.as_ref().map_or(Selection::All, Selection::Masked);
    backend.candidates(rows, &queries, selection, k)
}
