//! The segments of a scope, and the semantic leg of a search over them: nearest vectors. The
//! keyword leg is in `words`. Legs skip segments that other nodes search (`shares`).

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::query::hydrate::chunk_identity;
use crate::query::{QueryError, condense, side_by_side};
use lodestone_compute::{ComputeBackend, PreparedQuery};
use lodestone_rank::RankKey;
use lodestone_storage::collection::{KeptFilters, LiveSegment, ScopeRows};
use lodestone_storage::filter::canonical;
use lodestone_storage::segment::flat::{
    self, FlatHits, GATHER_ROWS_MAX, RowFilter, SearchPath, Thoroughness, search_together,
};
use lodestone_text::{RowScores, ScoreThreshold};
use lodestone_types::{Filter, Hit, RequestContext, RowId, SubTenantId};

/// A segment with the rows that a search may return from it.
#[derive(Debug, Clone)]
pub(super) struct SegmentScope {
    pub(super) live: Arc<LiveSegment>,
    pub(super) scope: Arc<ScopeRows>,
    /// Rows of the scope that pass the filter, if there is one. Without a filter it is set if the
    /// scope is only a part of the segment, and has many rows.
    passing: Option<Arc<RowFilter<'static>>>,
    pub(super) rows: u64,
    /// Whether another node searches it.
    pub(super) is_elsewhere: bool,
}

impl SegmentScope {
    /// Whether this node has rows to search in it.
    pub(super) fn is_searched(&self) -> bool {
        self.rows > 0 && !self.is_elsewhere
    }

    /// The rows that a search may return; `None` if these are all rows of the segment.
    pub(super) fn mask(&self) -> Option<&RoaringBitmap> {
        self.passing.as_ref().map(|rows| rows.bitmap()).or_else(|| self.scope.mask())
    }
}

/// The segments of `all` with rows of a sub-tenant, and in each the rows that pass the filter.
/// Results are cached in `kept`; pass `None` for filters that no search repeats.
pub(super) fn segments_in_scope<'a>(
    context: &RequestContext,
    all: impl ExactSizeIterator<Item = &'a Arc<LiveSegment>>,
    sub_tenant: &SubTenantId,
    filter: &Filter,
    kept: Option<&Arc<KeptFilters>>,
) -> Result<Vec<SegmentScope>, QueryError> {
    let mut segments = Vec::with_capacity(all.len());
    let asked = asked(sub_tenant, filter);
    for live in all {
        context.check()?;
        let scope = live.scope(sub_tenant);
        if scope.rows.is_empty() {
            continue;
        }
        let is_all = filter.is_all();
        let find = || -> Result<RoaringBitmap, QueryError> {
            match is_all {
                true => Ok(scope.rows.clone()),
                false => Ok(live.segment.matching(filter)? & &scope.rows),
            }
        };
        let is_small = scope.is_whole_segment || scope.rows.len() <= GATHER_ROWS_MAX as u64;
        let passing = match kept {
            _ if is_all && is_small => None,
            Some(kept) => Some(kept.rows(live, &asked, find)?),
            None if is_all => None,
            None => Some(Arc::new(RowFilter::owned(find()?, live.segment.row_count() as usize))),
        };
        let rows = passing.as_ref().map_or(scope.rows.len(), |rows| rows.bitmap().len());
        // Segments without passing rows still count in the statistics of the keyword leg, so that a
        // filter does not change the scores of the rows that it lets pass.
        let (live, is_elsewhere) = (Arc::clone(live), false);
        segments.push(SegmentScope { live, scope, passing, rows, is_elsewhere });
    }
    Ok(segments)
}

/// Cache key of the rows of a sub-tenant that pass a filter.
fn asked(sub_tenant: &SubTenantId, filter: &Filter) -> Arc<[u8]> {
    let name = sub_tenant.as_str().as_bytes();
    let length = (name.len() as u32).to_le_bytes();
    [&length[..], name, &canonical(filter)].concat().into()
}

/// A copy of the segments in which those at some positions are left to other nodes.
pub(super) fn marked(
    segments: &[SegmentScope],
    is_elsewhere: impl Fn(usize) -> bool,
) -> Vec<SegmentScope> {
    let marked = |(at, segment): (usize, &SegmentScope)| SegmentScope {
        is_elsewhere: is_elsewhere(at),
        ..segment.clone()
    };
    segments.iter().enumerate().map(marked).collect()
}

/// A copy of the segments without the rows of some sources, each given as segment and position.
pub(super) fn without_sources<'a>(
    segments: &[SegmentScope],
    sources: impl Iterator<Item = &'a (usize, u32)>,
) -> Vec<SegmentScope> {
    let mut masks: Vec<RoaringBitmap> = segments
        .iter()
        .map(|segment| segment.mask().unwrap_or(&segment.scope.rows).clone())
        .collect();
    for (at, source) in sources {
        for row in segments[*at].live.segment.rows_of(*source) {
            masks[*at].remove(*row);
        }
    }
    let narrowed = |(segment, mask): (&SegmentScope, RoaringBitmap)| SegmentScope {
        live: Arc::clone(&segment.live),
        scope: Arc::clone(&segment.scope),
        rows: mask.len(),
        is_elsewhere: false,
        passing: Some(Arc::new(RowFilter::owned(mask, segment.live.segment.row_count() as usize))),
    };
    segments.iter().zip(masks).map(narrowed).collect()
}

/// The address of a row in one of the segments of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowAddress {
    /// Position of the segment in the search.
    pub(super) segment: usize,
    pub(super) row: RowId,
}

/// The best rows of one leg over all segments, best first.
pub(super) type LegHits = Vec<(RowAddress, f32)>;

/// Number of rows that this node searches.
pub(super) fn rows(segments: &[SegmentScope]) -> u64 {
    segments.iter().filter(|segment| segment.is_searched()).map(|segment| segment.rows).sum()
}

pub(super) fn best(mut hits: LegHits, k: usize) -> LegHits {
    hits.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then(a.cmp(b)));
    hits.truncate(k);
    hits
}

pub(super) fn addressed(segment: usize, hits: Vec<Hit>) -> impl Iterator<Item = (RowAddress, f32)> {
    hits.into_iter().map(move |hit| (RowAddress { segment, row: hit.row }, hit.score))
}

/// Scores closer than this count as equal: the step of [`lodestone_rank::settle`], on which results
/// are compared.
pub(super) const TIE_WIDTH: f32 = 1e-6;
/// Tie width of client vectors, which are compared by their exact scores: dot products and
/// distances can be of any size.
pub(super) const VECTOR_TIE_WIDTH: f32 = 0.0;

/// Maximum rows kept beyond the wanted ones because they tie with the last of them.
const TIES_MAX: usize = 10_000;
/// Factor by which the number of requested rows grows while they tie with the last wanted one.
/// Usually few do, such as copies of one text; requesting the maximum at once would cost several
/// searches.
const TIES_GROWTH: usize = 4;

/// The best `k` of some rows, plus those that tie with the last of them. Of very many ties, those
/// are kept that come first in the final order, so that pages neither repeat nor skip rows.
pub(super) fn best_with_equals(segments: &[SegmentScope], mut hits: LegHits, k: usize) -> LegHits {
    let Some(last) = k.checked_sub(1) else { return LegHits::new() };
    if last < hits.len() {
        let by_score = |(_, a): &(_, f32), (_, b): &(_, f32)| b.total_cmp(a);
        let least = hits.select_nth_unstable_by(last, by_score).1.1 - TIE_WIDTH;
        hits.retain(|(_, score)| *score >= least);
    }
    let most = k.saturating_add(TIES_MAX);
    if hits.len() > most {
        let mut keyed: Vec<_> =
            hits.into_iter().map(|hit| (rank_key(segments, hit.0, hit.1), hit)).collect();
        keyed.select_nth_unstable_by(most, |(a, _), (b, _)| a.compare(b));
        keyed.truncate(most);
        hits = keyed.into_iter().map(|(_, hit)| hit).collect();
    }
    best(hits, most)
}

/// The key by which results are ordered, without recency.
fn rank_key(segments: &[SegmentScope], address: RowAddress, score: f32) -> RankKey<u128> {
    let segment = &segments[address.segment].live.segment;
    let updated = segment.last_updated_at(segment.source_of(address.row));
    RankKey { score, updated, chunk: chunk_identity(segment, address.row) }
}

/// The best `k` rows of a leg, plus those that tie with the last of them, without examining most
/// other rows: `find` returns a segment's rows that reach the threshold, which all segments share
/// and raise.
pub(super) fn best_with_threshold(
    context: &RequestContext,
    segments: &[SegmentScope],
    k: usize,
    find: impl Fn(&SegmentScope, &ScoreThreshold) -> Result<RowScores, QueryError> + Sync,
) -> Result<LegHits, QueryError> {
    let threshold = ScoreThreshold::new(k, TIE_WIDTH);
    let find = |segment: &SegmentScope| {
        context.check()?;
        match segment.is_elsewhere {
            true => Ok(RowScores::default()),
            false => find(segment, &threshold),
        }
    };
    let mut hits = LegHits::new();
    for (at, found) in side_by_side::each(segments, rows(segments), find).into_iter().enumerate() {
        hits.extend(addressed(at, found?.into_hits()));
    }
    Ok(best_with_equals(segments, hits, k))
}

/// The scores of the given rows, which must ascend; 0 for rows without any term. `score` computes
/// those of one segment.
pub(super) fn scores_of(
    context: &RequestContext,
    segments: &[SegmentScope],
    rows: &[RowAddress],
    score: impl Fn(&SegmentScope, &RoaringBitmap) -> Result<RowScores, QueryError>,
) -> Result<Vec<f32>, QueryError> {
    debug_assert!(rows.is_sorted());
    let mut scores = Vec::with_capacity(rows.len());
    for group in rows.chunk_by(|a, b| a.segment == b.segment) {
        context.check()?;
        let segment = &segments[group[0].segment];
        let is_inside = |row: &u32| segment.mask().is_none_or(|mask| mask.contains(*row));
        let asked = group.iter().map(|address| address.row.0).filter(is_inside).collect();
        let found = score(segment, &asked)?;
        scores.extend(group.iter().map(|address| found.get(address.row)));
    }
    Ok(scores)
}

/// The best `k` rows plus those that tie with the last of them. Ties are ordered later, by newer
/// source and chunk id, so none of them may be cut off here. `hits` are the best `k + 1`; `more(n)`
/// returns the best `n`.
pub(super) fn with_ties(
    k: usize,
    tie_width: f32,
    mut hits: LegHits,
    mut more: impl FnMut(usize) -> Result<LegHits, QueryError>,
) -> Result<LegHits, QueryError> {
    let Some((_, wanted)) = k.checked_sub(1).and_then(|last| hits.get(last)) else {
        return Ok(hits);
    };
    let least = *wanted - tie_width;
    let mut asked = k + 1;
    while hits.len() == asked && hits[asked - 1].1 >= least && asked < k + TIES_MAX {
        asked = (asked * TIES_GROWTH).min(k + TIES_MAX);
        hits = more(asked)?;
    }
    hits.truncate(hits.partition_point(|(_, score)| *score >= least));
    Ok(hits)
}

/// The semantic leg: the `k` nearest rows by cosine plus those that tie with the last, and how they
/// were found.
pub(super) fn nearest(
    context: &RequestContext,
    backend: &dyn ComputeBackend,
    segments: &[SegmentScope],
    query: &PreparedQuery,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<(LegHits, VectorEffort), QueryError> {
    let (queries, limits) = (std::slice::from_ref(query), (k, TIE_WIDTH));
    let (mut hits, effort) =
        nearest_of_each(context, backend, segments, queries, limits, thoroughness)?;
    Ok((hits.remove(0), effort))
}

/// Effort and paths of the vector search over a search's segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorEffort {
    /// The search paths, without duplicates, in order of first use.
    pub paths: Vec<SearchPath>,
    /// Number of lists without a better row after which a search ended, the maximum over all
    /// segments; `None` if every path was exact.
    pub patience: Option<usize>,
}

impl VectorEffort {
    fn add(&mut self, found: &FlatHits) {
        self.patience = self.patience.max(found.patience);
        self.add_path(found.path);
    }

    pub(super) fn add_path(&mut self, path: SearchPath) {
        if !self.paths.iter().any(|known| known.as_str() == path.as_str()) {
            self.paths.push(path);
        }
    }

    /// Merges the effort of further segments into this one.
    pub(super) fn join(&mut self, other: Self) {
        self.patience = self.patience.max(other.patience);
        other.paths.into_iter().for_each(|path| self.add_path(path));
    }
}

/// Like [`nearest`] for several queries, which share one scan of the rows where that pays.
pub(super) fn nearest_of_each(
    context: &RequestContext,
    backend: &dyn ComputeBackend,
    segments: &[SegmentScope],
    queries: &[PreparedQuery],
    (k, tie_width): (usize, f32),
    thoroughness: Thoroughness,
) -> Result<(Vec<LegHits>, VectorEffort), QueryError> {
    let mut effort = VectorEffort::default();
    let mut find = |queries: &[PreparedQuery], k| -> Result<Vec<LegHits>, QueryError> {
        let search = |(_, segment): &(usize, &SegmentScope)| -> Result<_, QueryError> {
            context.check()?;
            let tiers = segment.live.segment.shared_tiers()?;
            let of_scope =
                || segment.scope.mask().map(|mask| RowFilter::new(mask, tiers.rows.len()));
            let own = if segment.passing.is_none() { of_scope() } else { None };
            if let Some(passing) = &segment.passing {
                condense::begin(&segment.live, passing);
            }
            let filter = segment.passing.as_deref().or(own.as_ref());
            Ok(search_together(backend, &tiers, queries, filter, k, thoroughness)?)
        };
        let searched: Vec<_> =
            segments.iter().enumerate().filter(|(_, segment)| segment.is_searched()).collect();
        let results = side_by_side::each(&searched, rows(segments), search);
        let mut hits = vec![LegHits::new(); queries.len()];
        for ((at, _), found) in searched.into_iter().zip(results) {
            for (hits, found) in hits.iter_mut().zip(found?) {
                effort.add(&found);
                hits.extend(addressed(at, found.hits));
            }
        }
        Ok(hits.into_iter().map(|hits| best(hits, k)).collect())
    };
    let mut all = Vec::with_capacity(queries.len());
    for (query, hits) in queries.iter().zip(find(queries, k + 1)?) {
        let more = |k| Ok(find(std::slice::from_ref(query), k)?.remove(0));
        all.push(with_ties(k, tie_width, hits, more)?);
    }
    Ok((all, effort))
}

/// Exact cosines of the given rows, which must ascend, in their order.
pub(super) fn cosines(
    context: &RequestContext,
    backend: &dyn ComputeBackend,
    segments: &[SegmentScope],
    query: &PreparedQuery,
    rows: &[RowAddress],
) -> Result<Vec<f32>, QueryError> {
    debug_assert!(rows.is_sorted());
    let mut cosines = Vec::with_capacity(rows.len());
    for group in rows.chunk_by(|a, b| a.segment == b.segment) {
        context.check()?;
        let rows: Vec<RowId> = group.iter().map(|address| address.row).collect();
        let segment = &segments[group[0].segment].live.segment;
        let vectors = segment.originals_of(rows.iter().copied())?;
        cosines.extend(flat::scores(backend, &vectors, query, &rows)?);
    }
    Ok(cosines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_one_scope_and_filter_is_not_found_by_another() {
        let of = |name, filter: &Filter| asked(&SubTenantId::parse(name).unwrap(), filter);
        let (all, none) = (Filter::All, Filter::Or(Vec::new()));
        let mut known = vec![of("a", &all), of("a", &none), of("b", &all), of("ab", &all)];
        assert_eq!(of("a", &Filter::And(vec![all.clone()])), known[0]);
        known.sort();
        known.dedup();
        assert_eq!(known.len(), 4);
    }

    /// Goal: however many rows tie with the tenth, all are found, and little more is requested.
    #[test]
    fn all_that_equal_the_last_are_kept() {
        for equal in [1, 2, 30, 500, 9000] {
            let score = |row: usize| if row < 9 + equal { 0.5 } else { 0.4 };
            let all = 20_000;
            let first = |k: usize| -> LegHits {
                let address = |row| RowAddress { segment: 0, row: RowId(row as u32) };
                (0..k.min(all)).map(|row| (address(row), score(row))).collect()
            };
            let mut asked = Vec::new();
            let found = with_ties(10, TIE_WIDTH, first(11), |k| {
                asked.push(k);
                Ok(first(k))
            });
            assert_eq!(found.unwrap().len(), 9 + equal);
            let enough = (9 + equal + 1) * TIES_GROWTH;
            assert!(asked.iter().all(|k| *k <= enough), "{equal}: {asked:?}");
            assert_eq!(asked.is_empty(), equal == 1);
        }
        let few = with_ties(10, TIE_WIDTH, Vec::new(), |_| panic!("there are no more"));
        assert!(few.unwrap().is_empty());
        // Client vectors of tiny scores.
        let address = |row| RowAddress { segment: 0, row: RowId(row) };
        let tiny = (0..11).map(|row| (address(row), 1e-8 - row as f32 * 1e-10)).collect();
        let found = with_ties(10, VECTOR_TIE_WIDTH, tiny, |_| panic!("none tie"));
        assert_eq!(found.unwrap().len(), 10);
    }
}
