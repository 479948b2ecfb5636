//! Both legs of a search over the segments of a scope: nearest vectors and BM25.
//!
//! A collection that is larger than one machine would be split here: each shard runs the legs over
//! its own segments, and their hits are merged.

use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::query::{QueryError, side_by_side};
use lodestone_compute::{ComputeBackend, PreparedQuery};
use lodestone_storage::collection::{LiveSegment, ScopeRows, Snapshot};
use lodestone_storage::segment::flat::{self, RowFilter, Thoroughness, search_together};
use lodestone_text::{CorpusStats, RowScores, SimilarWords, TermCounts, TextQuery, WordQuery};
use lodestone_types::{Filter, Hit, RequestContext, RowId, SubTenantId};

/// A segment with the rows that a search may return from it.
#[derive(Debug)]
pub(super) struct SegmentScope {
    pub(super) live: Arc<LiveSegment>,
    pub(super) scope: Arc<ScopeRows>,
    /// Rows of the scope that pass the filter, if there is one.
    passing: Option<RoaringBitmap>,
    pub(super) rows: u64,
}

impl SegmentScope {
    /// Rows that a search may return; `None` where all rows of the segment are.
    pub(super) fn mask(&self) -> Option<&RoaringBitmap> {
        self.passing.as_ref().or_else(|| self.scope.mask())
    }
}

/// The segments with rows of a sub-tenant, and those of the rows that pass the filter.
pub(super) fn segments_in_scope(
    context: &RequestContext,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    filter: &Filter,
) -> Result<Vec<SegmentScope>, QueryError> {
    let mut segments = Vec::with_capacity(snapshot.segments.len());
    for live in &snapshot.segments {
        context.check()?;
        let scope = live.scope(sub_tenant);
        if scope.rows.is_empty() {
            continue;
        }
        let passing = match filter.is_all() {
            true => None,
            false => Some(live.segment.matching(filter)? & &scope.rows),
        };
        let rows = passing.as_ref().unwrap_or(&scope.rows).len();
        // Without a passing row a segment still counts in the statistics of the keyword leg, so
        // that a filter does not change the scores of what it lets pass.
        segments.push(SegmentScope { live: Arc::clone(live), scope, passing, rows });
    }
    Ok(segments)
}

/// The same segments without the rows of some sources, each a segment and a position there.
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
        passing: Some(mask),
    };
    segments.iter().zip(masks).map(narrowed).collect()
}

/// A row of one of the segments of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowAddress {
    /// Position of its segment in the search.
    pub(super) segment: usize,
    pub(super) row: RowId,
}

/// The best rows of one leg over all segments, best first.
pub(super) type LegHits = Vec<(RowAddress, f32)>;

/// Rows that a search may look at.
fn rows(segments: &[SegmentScope]) -> u64 {
    segments.iter().map(|segment| segment.rows).sum()
}

fn best(mut hits: LegHits, k: usize) -> LegHits {
    hits.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then(a.cmp(b)));
    hits.truncate(k);
    hits
}

fn addressed(segment: usize, hits: Vec<Hit>) -> impl Iterator<Item = (RowAddress, f32)> {
    hits.into_iter().map(move |hit| (RowAddress { segment, row: hit.row }, hit.score))
}

/// Scores less than this apart are one: the grid of [`lodestone_rank::settle`], on which results
/// are compared.
const TIE_WIDTH: f32 = 1e-6;
/// Rows kept at most beyond the wanted ones because they equal the last of them.
const TIES_MAX: usize = 10_000;
/// Factor by which more rows are asked for while they equal the last wanted one. Nearly always few
/// do, copies of one text; asking for all that may would cost several searches.
const TIES_GROWTH: usize = 4;

/// The best `k` rows and those that equal the last of them. Equal rows are ordered later, by the
/// newer source and the chunk's id (API 5.7), so none of them may be cut off here. `hits` are the
/// best `k + 1`; `more(n)` gives the best `n`.
fn with_ties(
    k: usize,
    mut hits: LegHits,
    mut more: impl FnMut(usize) -> Result<LegHits, QueryError>,
) -> Result<LegHits, QueryError> {
    let Some((_, wanted)) = k.checked_sub(1).and_then(|last| hits.get(last)) else {
        return Ok(hits);
    };
    let least = wanted - TIE_WIDTH;
    let mut asked = k + 1;
    while hits.len() == asked && hits[asked - 1].1 >= least && asked < k + TIES_MAX {
        asked = (asked * TIES_GROWTH).min(k + TIES_MAX);
        hits = more(asked)?;
    }
    hits.truncate(hits.partition_point(|(_, score)| *score >= least));
    Ok(hits)
}

/// The semantic leg: the nearest `k` rows by cosine, those as near as the last of them, and the
/// search paths that were taken.
pub(super) fn nearest(
    context: &RequestContext,
    backend: &dyn ComputeBackend,
    segments: &[SegmentScope],
    query: &PreparedQuery,
    k: usize,
    thoroughness: Thoroughness,
) -> Result<(LegHits, Vec<&'static str>), QueryError> {
    let queries = std::slice::from_ref(query);
    let (mut hits, paths) = nearest_of_each(context, backend, segments, queries, k, thoroughness)?;
    Ok((hits.remove(0), paths))
}

/// As [`nearest`] for several queries, which share one scan of the rows where that pays.
pub(super) fn nearest_of_each(
    context: &RequestContext,
    backend: &dyn ComputeBackend,
    segments: &[SegmentScope],
    queries: &[PreparedQuery],
    k: usize,
    thoroughness: Thoroughness,
) -> Result<(Vec<LegHits>, Vec<&'static str>), QueryError> {
    let mut paths = Vec::new();
    let mut find = |queries: &[PreparedQuery], k| -> Result<Vec<LegHits>, QueryError> {
        let search = |(_, segment): &(usize, &SegmentScope)| -> Result<_, QueryError> {
            context.check()?;
            let tiers = segment.live.segment.tiers()?;
            let filter = segment.mask().map(|mask| RowFilter::new(mask, tiers.rows.len()));
            let filter = filter.as_ref();
            Ok(search_together(backend, &tiers, queries, filter, k, thoroughness)?)
        };
        let searched: Vec<_> =
            segments.iter().enumerate().filter(|(_, segment)| segment.rows > 0).collect();
        let results = side_by_side::each(&searched, rows(segments), search);
        let mut hits = vec![LegHits::new(); queries.len()];
        for ((at, _), found) in searched.into_iter().zip(results) {
            for (hits, found) in hits.iter_mut().zip(found?) {
                hits.extend(addressed(at, found.hits));
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

/// The keyword leg: the best `k` rows by BM25, those that equal the last of them, and the score of
/// any row.
#[derive(Debug)]
pub(super) struct KeywordLeg {
    pub(super) scores: KeywordScores,
    pub(super) top: LegHits,
}

impl KeywordLeg {
    /// Scores the rows of all segments and takes the best `k`.
    pub(super) fn compute<Q: TextQuery>(
        context: &RequestContext,
        segments: &[SegmentScope],
        query: &Q,
        k: usize,
    ) -> Result<Self, QueryError> {
        let scores = KeywordScores::compute(context, segments, query)?;
        let top = scores.top(k)?;
        Ok(Self { scores, top })
    }
}

/// Keyword scores of every matching row, by segment, and the statistics that they rest on.
pub(super) struct KeywordScores {
    of_segments: Vec<Option<RowScores>>,
    pub(super) stats: CorpusStats,
}

impl fmt::Debug for KeywordScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeywordScores").field(&self.of_segments.len()).finish()
    }
}

/// Statistics of the scope's live rows over all segments.
pub(super) fn corpus_stats<Q: TextQuery>(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
) -> Result<CorpusStats, QueryError> {
    let count = |segment: &SegmentScope| -> Result<TermCounts, QueryError> {
        context.check()?;
        let index = segment.live.segment.text_index();
        // Kept with the scope; here so that segments are looked through side by side.
        segment.live.scope_stats(&segment.scope);
        Ok(index.term_counts(query, segment.scope.mask())?)
    };
    let mut stats = CorpusStats::default();
    let counts = side_by_side::each(segments, rows(segments), count);
    for (segment, counts) in segments.iter().zip(counts) {
        stats.add(*segment.live.scope_stats(&segment.scope), &counts?);
    }
    Ok(stats)
}

/// Takes up the forms of the query's words that the segments of the scope hold.
pub(super) fn expand(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &mut WordQuery,
) -> Result<(), QueryError> {
    let similar = |segment: &SegmentScope| -> Result<SimilarWords, QueryError> {
        context.check()?;
        Ok(segment.live.segment.text_index().similar(query, segment.scope.mask())?)
    };
    let found = side_by_side::each(segments, rows(segments), similar);
    query.expand(found.into_iter().collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// The share of the query's words that each of the rows holds, in the order given. The rows of one
/// segment are looked up together.
pub(super) fn coverages<Q: TextQuery>(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
    stats: &CorpusStats,
    rows: &[RowAddress],
) -> Result<Vec<f32>, QueryError> {
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    let mut found = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a.segment == b.segment) {
        context.check()?;
        let index = segments[group[0].segment].live.segment.text_index();
        let rows: RoaringBitmap = group.iter().map(|address| address.row.0).collect();
        found.extend(index.coverage(query, stats, &rows)?);
    }
    let of = |row: &RowAddress| sorted.binary_search(row).map_or(0.0, |at| found[at]);
    Ok(rows.iter().map(of).collect())
}

impl KeywordScores {
    /// BM25 with the statistics of the scope's live rows over all segments: the scores are those
    /// of one index that holds nothing else.
    pub(super) fn compute<Q: TextQuery>(
        context: &RequestContext,
        segments: &[SegmentScope],
        query: &Q,
    ) -> Result<Self, QueryError> {
        if query.is_empty() {
            let of_segments = segments.iter().map(|_| None).collect();
            return Ok(Self { of_segments, stats: CorpusStats::default() });
        }
        let stats = corpus_stats(context, segments, query)?;
        let score = |segment: &SegmentScope| -> Result<Option<RowScores>, QueryError> {
            context.check()?;
            if segment.rows == 0 {
                return Ok(None);
            }
            let index = segment.live.segment.text_index();
            Ok(Some(index.score(query, &stats, segment.mask())?))
        };
        let scores = side_by_side::each(segments, rows(segments), score);
        let of_segments = scores.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { of_segments, stats })
    }

    /// Drops the rows that hold too little of the query: `is_enough` is asked for their coverage.
    pub(super) fn keep<Q: TextQuery>(
        &mut self,
        context: &RequestContext,
        segments: &[SegmentScope],
        query: &Q,
        is_enough: impl Fn(f32) -> bool,
    ) -> Result<(), QueryError> {
        for (segment, scores) in segments.iter().zip(&mut self.of_segments) {
            let Some(scores) = scores else { continue };
            context.check()?;
            let index = segment.live.segment.text_index();
            let mut coverage = index.coverage(query, &self.stats, &scores.rows())?.into_iter();
            scores.retain(|_| coverage.next().is_some_and(&is_enough));
        }
        Ok(())
    }

    /// Rows that match.
    pub(super) fn count(&self) -> u64 {
        self.of_segments.iter().flatten().map(RowScores::count).sum()
    }

    /// The rows that match, by segment.
    pub(super) fn rows(&self) -> Vec<RoaringBitmap> {
        let rows = |scores: &Option<RowScores>| scores.as_ref().map(RowScores::rows);
        self.of_segments.iter().map(|scores| rows(scores).unwrap_or_default()).collect()
    }

    /// The best `k` rows and those that equal the last of them.
    pub(super) fn top(&self, k: usize) -> Result<LegHits, QueryError> {
        with_ties(k, self.first(k + 1), |k| Ok(self.first(k)))
    }

    /// The best `k` rows, best first.
    pub(super) fn first(&self, k: usize) -> LegHits {
        let scored = self.of_segments.iter().enumerate();
        let hits = scored.filter_map(|(at, scores)| Some((at, scores.as_ref()?)));
        best(hits.flat_map(|(at, scores)| addressed(at, scores.top(k))).collect(), k)
    }

    /// The score of a row; 0 where no term occurs.
    pub(super) fn get(&self, row: RowAddress) -> f32 {
        self.of_segments[row.segment].as_ref().map_or(0.0, |scores| scores.get(row.row))
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
                let address = |row| RowAddress { segment: 0, row: RowId(row as u32) };
                (0..k.min(all)).map(|row| (address(row), score(row))).collect()
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
