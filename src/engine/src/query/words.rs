//! The keyword leg of a search over the segments of a scope: BM25.

use std::fmt;

use roaring::RoaringBitmap;

use crate::query::legs::{
    LegHits, RowAddress, SegmentScope, TIE_WIDTH, addressed, best, best_with_equals,
    best_with_threshold, rows, scores_of,
};
use crate::query::shares::{self, Shares};
use crate::query::{QueryError, side_by_side};
use lodestone_text::{
    CorpusStats, HybridQuery, RowScores, SentQuery, SimilarWords, TermCounts, TextQuery, WordQuery,
};
use lodestone_types::RequestContext;

/// The keyword leg: the best `k` rows by BM25 plus those that tie with the last of them, and the
/// statistics behind the scores.
#[derive(Debug)]
pub(super) struct KeywordLeg {
    query: HybridQuery,
    pub(super) stats: CorpusStats,
    pub(super) top: LegHits,
}

impl KeywordLeg {
    /// Finds the best `k` rows of all segments except those of other nodes.
    pub(super) fn compute(
        context: &RequestContext,
        segments: &[SegmentScope],
        shares: Option<&Shares<'_>>,
        query: &HybridQuery,
        k: usize,
    ) -> Result<Self, QueryError> {
        let stats = shares::corpus_stats(shares, context, segments, query)?;
        let top = best_by_words(context, segments, query, &stats, k)?;
        Ok(Self { query: query.clone(), stats, top })
    }

    /// The best `k` rows, plus those that tie with the last of them.
    pub(super) fn top_of(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        k: usize,
    ) -> Result<LegHits, QueryError> {
        best_by_words(context, segments, &self.query, &self.stats, k)
    }

    /// The query and its statistics, to be sent to another node.
    pub(super) fn sent(&self) -> (SentQuery, CorpusStats) {
        (SentQuery::of(&self.query), self.stats.clone())
    }

    /// The scores of the given rows, which must ascend; 0 for rows without any term.
    pub(super) fn scores(
        &self,
        context: &RequestContext,
        segments: &[SegmentScope],
        rows: &[RowAddress],
    ) -> Result<Vec<f32>, QueryError> {
        scores(context, segments, &self.query, &self.stats, rows)
    }
}

/// The BM25 scores of the given rows, which must ascend; 0 for rows without any term.
pub(super) fn scores<Q: TextQuery>(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
    stats: &CorpusStats,
    rows: &[RowAddress],
) -> Result<Vec<f32>, QueryError> {
    scores_of(context, segments, rows, |segment, asked| {
        Ok(segment.live.segment.text_index().score(query, stats, Some(asked))?)
    })
}

/// The best `k` rows by BM25 plus those that tie with the last of them, without scoring most other
/// rows. The scores are those of a single index over exactly the rows of the scope.
pub(super) fn best_by_words<Q: TextQuery>(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
    stats: &CorpusStats,
    k: usize,
) -> Result<LegHits, QueryError> {
    if query.is_empty() || k == 0 {
        return Ok(LegHits::new());
    }
    best_with_threshold(context, segments, k, |segment, floor| {
        let index = segment.live.segment.text_index();
        Ok(index.best(query, stats, segment.mask(), floor)?)
    })
}

/// BM25 scores of every matching row, by segment, and the statistics behind them.
pub(super) struct KeywordScores {
    of_segments: Vec<Option<RowScores>>,
    pub(super) stats: CorpusStats,
}

impl fmt::Debug for KeywordScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeywordScores").field(&self.of_segments.len()).finish()
    }
}

/// Statistics of the scope's live rows over all segments except those of other nodes.
pub(super) fn corpus_stats<Q: TextQuery>(
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
) -> Result<CorpusStats, QueryError> {
    let count = |segment: &SegmentScope| -> Result<TermCounts, QueryError> {
        context.check()?;
        // Cached with the scope; computed here so that segments are processed in parallel.
        segment.live.scope_stats(&segment.scope);
        Ok(segment.live.term_counts(query, &segment.scope)?)
    };
    let mut stats = CorpusStats::default();
    if query.is_empty() {
        return Ok(stats);
    }
    let here: Vec<_> = segments.iter().filter(|segment| !segment.is_elsewhere).collect();
    let counts = side_by_side::each(&here, rows(segments), |segment| count(segment));
    for (segment, counts) in here.into_iter().zip(counts) {
        stats.add(*segment.live.scope_stats(&segment.scope), &counts?);
    }
    Ok(stats)
}

/// Adds the forms of the query's words that occur in the segments of the scope.
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

/// The share of the query's words that each row contains, in the order given. Rows of one segment
/// are looked up together.
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
    /// Scores all matching rows with statistics of the scope's live rows over all segments: the
    /// scores are those of a single index over exactly these rows.
    pub(super) fn compute<Q: TextQuery>(
        context: &RequestContext,
        segments: &[SegmentScope],
        query: &Q,
        stats: CorpusStats,
    ) -> Result<Self, QueryError> {
        let score = |segment: &SegmentScope| -> Result<Option<RowScores>, QueryError> {
            context.check()?;
            if segment.rows == 0 || query.is_empty() {
                return Ok(None);
            }
            let index = segment.live.segment.text_index();
            Ok(Some(index.score(query, &stats, segment.mask())?))
        };
        let scores = side_by_side::each(segments, rows(segments), score);
        let of_segments = scores.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { of_segments, stats })
    }

    /// Drops rows that contain too little of the query; `is_enough` receives their coverage.
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

    /// Number of matching rows.
    pub(super) fn count(&self) -> u64 {
        self.of_segments.iter().flatten().map(RowScores::count).sum()
    }

    /// The matching rows, by segment.
    pub(super) fn rows(&self) -> Vec<RoaringBitmap> {
        let rows = |scores: &Option<RowScores>| scores.as_ref().map(RowScores::rows);
        self.of_segments.iter().map(|scores| rows(scores).unwrap_or_default()).collect()
    }

    /// The best `k` rows, plus those that tie with the last of them.
    pub(super) fn top(&self, segments: &[SegmentScope], k: usize) -> LegHits {
        let scored = || self.of_segments.iter().enumerate();
        let scored = || scored().filter_map(|(at, scores)| Some((at, scores.as_ref()?)));
        let first = scored().flat_map(|(at, scores)| addressed(at, scores.top(k))).collect();
        let first = best(first, k);
        let least = first.get(k.saturating_sub(1)).map_or(f32::MIN, |(_, score)| score - TIE_WIDTH);
        let hits = scored().flat_map(|(at, scores)| addressed(at, scores.from(least)));
        best_with_equals(segments, hits.collect(), k)
    }
}
