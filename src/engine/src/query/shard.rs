//! Searching the part of a collection that this process holds.
//!
//! The trait is the seam for collections that are larger than one machine: a gateway plans, asks
//! every shard, and merges. Today there is one shard, and it is local.

use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::query::QueryError;
use lodestone_compute::{ComputeBackend, PreparedQuery};
use lodestone_storage::collection::{LiveSegment, ScopeRows, Snapshot};
use lodestone_storage::segment::flat::{self, RowFilter, Thoroughness, search_together};
use lodestone_text::{CorpusStats, RowScores, TermCounts, TextQuery};
use lodestone_types::{Filter, Hit, RowId, SubTenantId};

/// A segment with the rows that a search may return from it.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) live: Arc<LiveSegment>,
    pub(super) scope: Arc<ScopeRows>,
    /// Rows of the scope that pass the filter; `None` where the whole segment does.
    pub(super) mask: Option<RoaringBitmap>,
    pub(super) rows: u64,
}

impl Reach {
    fn vectors(&self) -> Result<lodestone_compute::VectorRows<'_>, QueryError> {
        Ok(self.live.segment.vectors()?)
    }
}

/// The segments that hold something the search may return.
pub(super) fn reach(
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    filter: &Filter,
) -> Result<Vec<Reach>, QueryError> {
    let mut reached = Vec::with_capacity(snapshot.segments.len());
    for live in &snapshot.segments {
        let scope = live.scope(sub_tenant);
        if scope.rows.is_empty() {
            continue;
        }
        let mask = match filter.is_all() {
            true => scope.mask().cloned(),
            false => Some(live.segment.matching(filter)? & &scope.rows),
        };
        let rows = mask.as_ref().map_or(scope.rows.len(), RoaringBitmap::len);
        // Without a passing row a segment still counts in the statistics of the keyword leg, so
        // that a filter does not change the scores of what it lets pass.
        reached.push(Reach { live: Arc::clone(live), scope, mask, rows });
    }
    Ok(reached)
}

/// A candidate: a row of one of the reached segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) reach: usize,
    pub(super) row: RowId,
}

/// The best rows of one leg over all segments, best first.
pub(super) type LegHits = Vec<(Place, f32)>;

fn best(mut hits: LegHits, k: usize) -> LegHits {
    hits.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then(a.cmp(b)));
    hits.truncate(k);
    hits
}

fn placed(reach: usize, hits: Vec<Hit>) -> impl Iterator<Item = (Place, f32)> {
    hits.into_iter().map(move |hit| (Place { reach, row: hit.row }, hit.score))
}

/// Scores less than this apart are one: the grid of [`lodestone_rank::settle`], on which results
/// are compared.
const TIE_WIDTH: f32 = 1e-6;
/// Rows kept beyond the wanted ones at most because they equal the last of them.
const TIES_MAX: usize = 10_000;

/// By how much more is asked for at a time while rows equal the last wanted one. Nearly always a
/// few do, copies of one text, and asking for all that may would cost several searches.
const TIES_GROWTH: usize = 4;

/// The best `k` rows and those that equal the last of them. Which of the equals comes first is
/// for the newer source and the chunk's id to say (API 5.7), not for the place of a row; so none
/// of them may be cut off here. `hits` are the best `k + 1`; `more` gives as many as it is asked.
fn with_ties(
    k: usize,
    mut hits: LegHits,
    mut more: impl FnMut(usize) -> Result<LegHits, QueryError>,
) -> Result<LegHits, QueryError> {
    let Some((_, wanted)) = k.checked_sub(1).and_then(|last| hits.get(last)) else {
        return Ok(hits);
    };
    let floor = wanted - TIE_WIDTH;
    let mut asked = k + 1;
    while hits.len() == asked && hits[asked - 1].1 >= floor && asked < k + TIES_MAX {
        asked = (asked * TIES_GROWTH).min(k + TIES_MAX);
        hits = more(asked)?;
    }
    hits.truncate(hits.partition_point(|(_, score)| *score >= floor));
    Ok(hits)
}

/// The semantic leg: the nearest `k` rows by cosine, and those as near as the last of them; with
/// the paths that were taken.
pub(super) fn nearest(
    backend: &dyn ComputeBackend,
    reached: &[Reach],
    query: &PreparedQuery,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<(LegHits, Vec<&'static str>), QueryError> {
    let queries = std::slice::from_ref(query);
    let (mut hits, paths) = nearest_of_each(backend, reached, queries, k, thoroughness)?;
    Ok((hits.remove(0), paths))
}

/// As [`nearest`] for several queries, which share their way through the rows where that pays.
pub(super) fn nearest_of_each(
    backend: &dyn ComputeBackend,
    reached: &[Reach],
    queries: &[PreparedQuery],
    k: usize,
    thoroughness: Thoroughness,
) -> Result<(Vec<LegHits>, Vec<&'static str>), QueryError> {
    let mut paths = Vec::new();
    let mut find = |queries: &[PreparedQuery], k| -> Result<Vec<LegHits>, QueryError> {
        let mut hits = vec![LegHits::new(); queries.len()];
        for (at, reach) in reached.iter().enumerate().filter(|(_, reach)| reach.rows > 0) {
            let tiers = reach.live.segment.tiers()?;
            let filter = reach.mask.as_ref().map(|mask| RowFilter::new(mask, tiers.rows.len()));
            let filter = filter.as_ref();
            let found = search_together(backend, &tiers, queries, filter, k, thoroughness)?;
            for (hits, found) in hits.iter_mut().zip(found) {
                hits.extend(placed(at, found.hits));
                if !paths.contains(&found.path.as_str()) {
                    paths.push(found.path.as_str());
                }
            }
        }
        Ok(hits.into_iter().map(|hits| best(hits, k)).collect())
    };
    let mut all = Vec::with_capacity(queries.len());
    for (query, hits) in queries.iter().zip(find(queries, k + 1)?) {
        let more = |k| Ok(find(std::slice::from_ref(query), k)?.remove(0));
        all.push(with_ties(k, hits, more)?);
    }
    Ok((all, paths))
}

/// True cosines for listed rows, in the order given.
pub(super) fn cosines(
    backend: &dyn ComputeBackend,
    reached: &[Reach],
    query: &PreparedQuery,
    places: &[Place],
) -> Result<Vec<f32>, QueryError> {
    debug_assert!(places.is_sorted());
    let mut cosines = Vec::with_capacity(places.len());
    for group in places.chunk_by(|a, b| a.reach == b.reach) {
        let rows: Vec<RowId> = group.iter().map(|place| place.row).collect();
        let vectors = reached[group[0].reach].vectors()?;
        cosines.extend(flat::scores(backend, &vectors, query, &rows)?);
    }
    Ok(cosines)
}

/// Keyword scores of every matching row, by segment.
pub(super) struct KeywordScores(Vec<Option<RowScores>>);

impl fmt::Debug for KeywordScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeywordScores").field(&self.0.len()).finish()
    }
}

impl KeywordScores {
    /// BM25 with the statistics of the scope's live rows over all segments: the scores are those
    /// of one index that holds nothing else.
    pub(super) fn compute<Q: TextQuery>(reached: &[Reach], query: &Q) -> Result<Self, QueryError> {
        if query.is_empty() {
            return Ok(Self(reached.iter().map(|_| None).collect()));
        }
        let mut stats = CorpusStats::default();
        for reach in reached {
            let (live, scope) = (&reach.live, &reach.scope);
            let index = live.segment.text_index();
            let counts: TermCounts = index.term_counts(query, scope.mask())?;
            stats.add(*live.scope_stats(scope), &counts);
        }
        let score = |reach: &Reach| -> Result<Option<RowScores>, QueryError> {
            if reach.rows == 0 {
                return Ok(None);
            }
            let index = reach.live.segment.text_index();
            let scope = reach.scope.mask();
            Ok(Some(index.score(query, &stats, scope, reach.mask.as_ref())?))
        };
        Ok(Self(reached.iter().map(score).collect::<Result<_, _>>()?))
    }

    /// The best `k` rows, best first, and those that equal the last of them.
    pub(super) fn top(&self, k: usize) -> Result<LegHits, QueryError> {
        let find = |k| {
            let scored = self.0.iter().enumerate();
            let hits = scored.filter_map(|(at, scores)| Some((at, scores.as_ref()?)));
            best(hits.flat_map(|(at, scores)| placed(at, scores.top(k))).collect(), k)
        };
        with_ties(k, find(k + 1), |k| Ok(find(k)))
    }

    /// The score of a row; 0 where no term occurs.
    pub(super) fn get(&self, place: Place) -> f32 {
        self.0[place.reach].as_ref().map_or(0.0, |scores| scores.get(place.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many rows equal the tenth, all of them are found, and little more is asked for.
    #[test]
    fn all_that_equal_the_last_are_kept() {
        for equal in [1, 2, 30, 500, 9000] {
            let score = |row: usize| if row < 9 + equal { 0.5 } else { 0.4 };
            let all = 20_000;
            let first = |k: usize| -> LegHits {
                let place = |row| Place { reach: 0, row: RowId(row as u32) };
                (0..k.min(all)).map(|row| (place(row), score(row))).collect()
            };
            let mut asked = Vec::new();
            let found = with_ties(10, first(11), |k| {
                asked.push(k);
                Ok(first(k))
            });
            assert_eq!(found.unwrap().len(), 9 + equal);
            let enough = (9 + equal + 1) * TIES_GROWTH;
            assert!(asked.iter().all(|k| *k <= enough), "{equal}: {asked:?}");
            assert_eq!(asked.is_empty(), equal == 1);
        }
        let few = with_ties(10, Vec::new(), |_| panic!("there are no more"));
        assert!(few.unwrap().is_empty());
    }
}
