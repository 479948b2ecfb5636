//! Ranking in three steps: the candidates of a query vector, their features, their order.
//!
//! ```text
//! vector -> candidates: the best rows of all legs, each with its scores by all of them
//!        -> features: reranker verdicts, links of good results (which may add rows)
//!        -> order: fusion, reranker, links, recency, sort
//! ```
//! A leg is one way to find rows: by vectors, by words or by a sparse model. A true score is the
//! score that a leg gives to a row even if it did not find it. Each feature is computed once: the
//! keyword leg per search, a cosine per query vector. Rows added later change the order, but no
//! score.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::query::hydrate::{Ranked, chunk_identity};
use crate::query::legs::{self, LegHits, RowAddress, SegmentScope};
use crate::query::request::{CandidateCounts, RetrieveRequest};
use crate::query::shares::wire::TopsTask;
use crate::query::shares::{self, Shares, Tops};
use crate::query::sparse::SparseLeg;
use crate::query::words::KeywordLeg;
use crate::query::{QueryError, plan};
use lodestone_compute::{ComputeBackend, PreparedQuery};
use lodestone_rank::{Candidate, RankKey};
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_text::{CorpusStats, TextQuery};
use lodestone_types::{RequestContext, ScoreParts};

/// Factor by which the number of requested rows grows while few sources fill the candidates.
const POOL_GROWTH: usize = 4;

/// Rows that the graph links to good results, each with the weight of its best link.
pub(super) type Links = BTreeMap<RowAddress, f32>;

/// One search: everything that its query vectors share.
pub(super) struct Search<'a> {
    pub(super) context: &'a RequestContext,
    pub(super) backend: &'a dyn ComputeBackend,
    pub(super) request: &'a RetrieveRequest,
    pub(super) segments: &'a [SegmentScope],
    /// The shares searched by other nodes.
    pub(super) shares: Option<&'a Shares<'a>>,
    /// `None` if words have weight 0.
    pub(super) keyword: Option<KeywordLeg>,
    /// `None` without a sparse model, or if its weight is 0.
    pub(super) sparse: Option<SparseLeg>,
    pub(super) alpha: f32,
    pub(super) pool: usize,
    pub(super) thoroughness: Thoroughness,
}

/// The candidates of one query vector, with their features.
pub(super) struct Candidates {
    /// `None` if vectors have weight 0.
    pub(super) vector: Option<PreparedQuery>,
    /// Ascending by address. Their scores are filled in by [`Search::order`].
    rows: Vec<Ranked>,
    /// Cosines with the vector, of candidates and of other rows compared with it.
    cosines: RefCell<BTreeMap<RowAddress, f32>>,
    /// True scores computed by other nodes: cosine, words, sparse.
    known: BTreeMap<RowAddress, [Option<f32>; 3]>,
    /// Whether a reranker has scored the first rows.
    is_reranked: bool,
    from_semantic: usize,
    from_words: usize,
}

impl Search<'_> {
    /// The best rows of each leg. Without a vector, the semantic leg has none.
    pub(super) fn tops(&self, vector: Option<&PreparedQuery>) -> Result<Tops, QueryError> {
        let (context, pool) = (self.context, self.pool);
        let (keyword, sparse) = (self.keyword.as_ref(), self.sparse.as_ref());
        let tops = |segments: &[SegmentScope], words: Option<LegHits>, sparse: Option<LegHits>| {
            let near = |vector| {
                legs::nearest(context, self.backend, segments, vector, pool, self.thoroughness)
            };
            let (near, effort) = vector.map(near).transpose()?.unwrap_or_default();
            let near = vector.map(|_| near).into_iter().collect();
            let (words, sparse) = (words.unwrap_or_default(), sparse.unwrap_or_default());
            Ok(Tops { near, words, sparse, scores: BTreeMap::new(), effort })
        };
        // The keyword leg has already searched this node's segments while the query was embedded.
        let own = || {
            let (words, sparse) = (keyword.map(|leg| &leg.top), sparse.map(|leg| &leg.top));
            tops(self.segments, words.cloned(), sparse.cloned())
        };
        let here = |segments: &[SegmentScope]| {
            let words = keyword.map(|leg| leg.top_of(context, segments, pool)).transpose()?;
            let sparse = sparse.map(|leg| leg.top_of(context, segments, pool)).transpose()?;
            tops(segments, words, sparse)
        };
        let Some(shares) = self.shares else { return own() };
        let task = TopsTask {
            words: keyword.map(KeywordLeg::sent),
            sparse: sparse.map(|leg| leg.query.clone()),
            has_scores: true,
            ..TopsTask::near(vector.map_or(&[], std::slice::from_ref), pool, self.thoroughness)
        };
        shares.tops(self.segments, task, own, here)
    }

    /// The union of the best rows of all legs, with their true scores. `tops` must belong to
    /// `vector`.
    pub(super) fn candidates(
        &self,
        vector: Option<PreparedQuery>,
        tops: Tops,
    ) -> Result<Candidates, QueryError> {
        let near = tops.near.into_iter().next().unwrap_or_default();
        let all = near.iter().chain(&tops.words).chain(&tops.sparse);
        let rows = all.map(|(row, _)| *row).collect();
        let cosine = |(row, scores): (&RowAddress, &[Option<f32>; 3])| Some((*row, scores[0]?));
        let mut candidates = Candidates {
            vector,
            rows: Vec::new(),
            cosines: RefCell::new(tops.scores.iter().filter_map(cosine).collect()),
            known: tops.scores,
            is_reranked: false,
            from_semantic: near.len(),
            from_words: tops.words.len(),
        };
        self.add(&mut candidates, rows)?;
        Ok(candidates)
    }

    /// If chunks per source are limited, adds candidates of further sources until the result can be
    /// filled within that limit or no more rows exist. Sources at the limit are excluded, and more
    /// rows are requested each time, so that a few searches get past even the largest sources. The
    /// best rows of each leg are candidates already, so the additions change no score.
    pub(super) fn fill(&self, candidates: &mut Candidates) -> Result<(), QueryError> {
        let Some(most) = self.request.per_source_max else { return Ok(()) };
        // Few searches get here, so they search all segments on this node.
        let all_here = self.shares.map(|_| legs::marked(self.segments, |_| false));
        let segments = all_here.as_deref().unwrap_or(self.segments);
        let mut asked = self.pool;
        let mut is_exhausted = false;
        loop {
            let mut counts: BTreeMap<(usize, u32), usize> = BTreeMap::new();
            for row in &candidates.rows {
                *counts.entry(self.source(row.address)).or_default() += 1;
            }
            let fit: usize = counts.values().map(|count| (*count).min(most)).sum();
            if is_exhausted || fit >= self.request.max_chunks {
                return Ok(());
            }
            counts.retain(|_, count| *count >= most);
            let legs = self.outside(counts.keys(), segments, candidates.vector.as_ref(), asked)?;
            is_exhausted = legs.iter().all(|hits| hits.len() < asked);
            let mut found = Vec::new();
            for mut hits in legs {
                lodestone_rank::cap_per_source(&mut hits, most, |(row, _)| self.source(*row));
                found.extend(hits.into_iter().take(self.pool).map(|(row, _)| row));
            }
            self.add(candidates, found)?;
            asked = asked.saturating_mul(POOL_GROWTH);
        }
    }

    /// The best `k` rows of each leg that belong to none of some sources.
    fn outside<'s>(
        &self,
        sources: impl Iterator<Item = &'s (usize, u32)>,
        segments: &[SegmentScope],
        vector: Option<&PreparedQuery>,
        k: usize,
    ) -> Result<[LegHits; 3], QueryError> {
        let (context, open) = (self.context, legs::without_sources(segments, sources));
        let near =
            |vector| legs::nearest(context, self.backend, &open, vector, k, self.thoroughness);
        let (near, _) = vector.map(near).transpose()?.unwrap_or_default();
        let top = |leg: &KeywordLeg| leg.top_of(context, &open, k);
        let by_words = self.keyword.as_ref().map(top).transpose()?.unwrap_or_default();
        let top = |leg: &SparseLeg| leg.top_of(context, &open, k);
        let sparse = self.sparse.as_ref().map(top).transpose()?.unwrap_or_default();
        Ok([near, by_words, sparse])
    }

    /// Sets the link weights of candidates; linked rows become candidates.
    pub(super) fn link(
        &self,
        candidates: &mut Candidates,
        links: &Links,
    ) -> Result<(), QueryError> {
        self.add(candidates, links.keys().copied().collect())?;
        for (row, weight) in links {
            candidates.parts_of(*row).link = *weight;
        }
        Ok(())
    }

    /// Makes candidates of those rows that are not yet.
    fn add(
        &self,
        candidates: &mut Candidates,
        mut rows: Vec<RowAddress>,
    ) -> Result<(), QueryError> {
        rows.retain(|row| candidates.position(*row).is_err());
        rows.sort_unstable();
        rows.dedup();
        let cosines = self.cosines(candidates, &rows)?;
        let is_known = |row: &RowAddress| candidates.known.contains_key(row);
        let unknown: Vec<RowAddress> = rows.iter().copied().filter(|row| !is_known(row)).collect();
        let scores = |leg: &KeywordLeg| leg.scores(self.context, self.segments, &unknown);
        let by_words = self.keyword.as_ref().map(scores).transpose()?;
        let scores = |leg: &SparseLeg| leg.scores(self.context, self.segments, &unknown);
        let sparse = self.sparse.as_ref().map(scores).transpose()?;
        let mut next_unknown = 0..;
        for (at, address) in rows.into_iter().enumerate() {
            let (keyword, sparse) = match candidates.known.get(&address) {
                Some([_, keyword, sparse]) => (*keyword, *sparse),
                None => {
                    let at = next_unknown.next().expect("it has no end");
                    let of = |scores: &Option<Vec<f32>>| scores.as_ref().map(|scores| scores[at]);
                    (of(&by_words), of(&sparse))
                }
            };
            let cosine = cosines.as_ref().map(|cosines| cosines[at]);
            let parts = ScoreParts { cosine, keyword, sparse, ..ScoreParts::default() };
            candidates.rows.push(Ranked { address, score: 0.0, parts });
        }
        candidates.rows.sort_unstable_by_key(|row| row.address);
        Ok(())
    }

    /// Cosines of rows, which must ascend, with the query vector of `candidates`; `None` without a
    /// vector.
    pub(super) fn cosines(
        &self,
        candidates: &Candidates,
        rows: &[RowAddress],
    ) -> Result<Option<Vec<f32>>, QueryError> {
        let Some(vector) = &candidates.vector else { return Ok(None) };
        let mut known = candidates.cosines.borrow_mut();
        let is_new = |row: &RowAddress| !known.contains_key(row);
        let new: Vec<RowAddress> = rows.iter().copied().filter(is_new).collect();
        let computed = legs::cosines(self.context, self.backend, self.segments, vector, &new)?;
        known.extend(new.into_iter().zip(computed));
        Ok(Some(rows.iter().map(|row| known[row]).collect()))
    }

    /// The candidates ordered by their features, best first.
    pub(super) fn order(&self, candidates: &Candidates) -> Vec<Ranked> {
        let legs = candidates.rows.iter().map(|row| Candidate {
            cosine: row.parts.cosine.unwrap_or(-1.0),
            keyword: row.parts.keyword.unwrap_or(0.0),
            sparse: row.parts.sparse.unwrap_or(0.0),
        });
        let sparse_share = self.sparse.as_ref().map_or(0.0, |_| plan::SPARSE_SHARE);
        let fused = lodestone_rank::fuse(&legs.collect::<Vec<_>>(), self.alpha, sparse_share);
        let scored = fused.into_iter().map(|fused| {
            let Ranked { address, mut parts, .. } = candidates.rows[fused.candidate];
            (parts.semantic_share, parts.keyword_share) = (fused.semantic, fused.keyword);
            parts.sparse_share = fused.sparse;
            let score = match candidates.is_reranked {
                true => lodestone_rank::blend(fused.score, parts.rerank),
                false => fused.score,
            };
            Ranked { address, score: lodestone_rank::lifted(score, parts.link), parts }
        });
        ordered(self.segments, scored.collect(), self.request.recency_bias)
    }

    /// Number of candidates by leg, and in the union that was ordered.
    pub(super) fn counts(&self, candidates: &Candidates, ranked: &[Ranked]) -> CandidateCounts {
        CandidateCounts {
            semantic: candidates.from_semantic,
            keyword: candidates.from_words,
            fused: ranked.len(),
        }
    }

    /// The statistics of a query over all segments.
    pub(super) fn corpus_stats<Q: TextQuery>(&self, query: &Q) -> Result<CorpusStats, QueryError> {
        shares::corpus_stats(self.shares, self.context, self.segments, query)
    }

    /// The source of a row, as a key that distinguishes sources.
    pub(super) fn source(&self, address: RowAddress) -> (usize, u32) {
        let segment = &self.segments[address.segment].live.segment;
        (address.segment, segment.source_of(address.row))
    }
}

impl Candidates {
    /// Records the verdicts of a reranker, 0 to 1, on the candidates that it has read.
    pub(super) fn judge(&mut self, verdicts: Vec<(RowAddress, f32)>) {
        self.is_reranked = true;
        for (row, verdict) in verdicts {
            self.parts_of(row).rerank = Some(verdict);
        }
    }

    fn position(&self, row: RowAddress) -> Result<usize, usize> {
        self.rows.binary_search_by_key(&row, |known| known.address)
    }

    fn parts_of(&mut self, row: RowAddress) -> &mut ScoreParts {
        let position = self.position(row).expect("the row is a candidate");
        &mut self.rows[position].parts
    }
}

/// Rows in their final order: with recency applied, best first; ties by newer source, then by chunk
/// id.
pub(super) fn ordered(
    segments: &[SegmentScope],
    ranked: Vec<Ranked>,
    recency_bias: f32,
) -> Vec<Ranked> {
    let segment_of = |row: &Ranked| &segments[row.address.segment].live.segment;
    let updated = |row: &Ranked| {
        let segment = segment_of(row);
        segment.last_updated_at(segment.source_of(row.address.row))
    };
    let updated: Vec<_> = ranked.iter().map(updated).collect();
    let mut scores: Vec<f32> = ranked.iter().map(|row| row.score).collect();
    lodestone_rank::apply_recency(&mut scores, &updated, recency_bias);
    let mut keyed = Vec::with_capacity(ranked.len());
    for (mut row, (score, updated)) in ranked.into_iter().zip(scores.into_iter().zip(updated)) {
        row.parts.recency = if row.score > 0.0 { score / row.score } else { 1.0 };
        row.score = lodestone_rank::settle(score);
        let chunk = chunk_identity(segment_of(&row), row.address.row);
        keyed.push((RankKey { score: row.score, updated, chunk }, row));
    }
    lodestone_rank::sort_by_rank(&mut keyed, |(key, _)| *key);
    keyed.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tempfile::TempDir;

    use super::*;
    use crate::query::fixture;
    use lodestone_compute::SimdBackend;
    use lodestone_embed::HashEmbedder;
    use lodestone_storage::segment::VectorKind;
    use lodestone_text::HybridQuery;
    use lodestone_types::{Filter, SubTenantId};

    /// Goal: no leg reads rows of sources that are at the limit already, of which there may be
    /// millions. Method: each source's chunks are all better than those of the next.
    #[test]
    fn sources_at_the_limit_are_searched_by_no_leg() {
        let root = TempDir::new().unwrap();
        let texts = ["lantern", "lantern copper", "lantern copper meadow"];
        let source = |(id, text)| fixture::source("default", id, &[text; 40]);
        let sources = ["a", "b", "c"].into_iter().zip(texts).map(source).collect();
        let collection = fixture::collection(&root, VectorKind::F16, [sources]);
        let (context, snapshot) = (RequestContext::default(), collection.snapshot());
        let (scope, all) = (SubTenantId::default_name(), snapshot.segments.iter());
        let segments = legs::segments_in_scope(&context, all, &scope, &Filter::All, None).unwrap();
        let request = RetrieveRequest { per_source_max: Some(1), ..fixture::request("lantern") };
        let words = HybridQuery::analyse("lantern");
        let search = Search {
            context: &context,
            backend: &SimdBackend,
            request: &request,
            segments: &segments,
            shares: None,
            keyword: Some(KeywordLeg::compute(&context, &segments, None, &words, 10).unwrap()),
            sparse: None,
            alpha: 0.5,
            pool: 10,
            thoroughness: Thoroughness::Exact,
        };
        let vector = PreparedQuery::new(&HashEmbedder::vector("lantern")).unwrap();
        let found = search.outside([(0, 0), (0, 2)].iter(), &segments, Some(&vector), 100).unwrap();
        assert_eq!(found.each_ref().map(Vec::len), [40, 40, 0]);
        assert!(found.iter().flatten().all(|(row, _)| search.source(*row) == (0, 1)));
        let tops = search.tops(Some(&vector)).unwrap();
        let mut candidates = search.candidates(Some(vector), tops).unwrap();
        search.fill(&mut candidates).unwrap();
        let sources = candidates.rows.iter().map(|row| search.source(row.address));
        assert_eq!(sources.collect::<BTreeSet<_>>().len(), 3);
    }
}
