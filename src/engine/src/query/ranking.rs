//! From the candidates of both legs to one order.

use std::collections::BTreeMap;

use crate::query::QueryError;
use crate::query::hydrate::{Ranked, chunk_identity};
use crate::query::request::{CandidateCounts, RetrieveRequest};
use crate::query::rerank::Verdicts;
use crate::query::shard::{self, KeywordScores, LegHits, Place, Reach};
use lodestone_compute::{ComputeBackend, PreparedQuery};
use lodestone_rank::{Candidate, RankKey};
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::{ScoreParts, Timestamp};

/// Rows that good results name, and the weight of the best of those links.
pub(super) type Links = BTreeMap<Place, f32>;

/// Both legs of one search over one reach. Passes differ in the vector, the links and the verdicts.
pub(super) struct Legs<'a> {
    pub(super) backend: &'a dyn ComputeBackend,
    pub(super) request: &'a RetrieveRequest,
    pub(super) reached: &'a [Reach],
    pub(super) keyword: Option<KeywordScores>,
    pub(super) alpha: f32,
    pub(super) pool: usize,
    pub(super) thoroughness: Thoroughness,
    /// What a reranker has said, where one has.
    pub(super) verdicts: Option<Verdicts>,
}

/// The semantic leg of one pass.
pub(super) struct Semantic {
    pub(super) vector: Option<PreparedQuery>,
    pub(super) hits: LegHits,
    pub(super) paths: Vec<&'static str>,
}

impl Legs<'_> {
    /// The candidates near a vector; without one the leg is silent.
    pub(super) fn near(&self, vector: Option<PreparedQuery>) -> Result<Semantic, QueryError> {
        let (hits, paths) = match &vector {
            Some(vector) => {
                shard::nearest(self.backend, self.reached, vector, self.pool, self.thoroughness)?
            }
            None => (LegHits::new(), Vec::new()),
        };
        Ok(Semantic { vector, hits, paths })
    }

    /// Gives every candidate of either leg, and every row that is named, both true scores, and
    /// orders them: best first.
    pub(super) fn rank(
        &self,
        semantic: &Semantic,
        links: &Links,
        counts: &mut CandidateCounts,
    ) -> Result<Vec<Ranked>, QueryError> {
        let keyword = match &self.keyword {
            Some(scores) => scores.top(self.pool)?,
            None => LegHits::new(),
        };
        let of_legs = semantic.hits.iter().chain(&keyword).map(|(place, _)| *place);
        let mut places: Vec<Place> = of_legs.chain(links.keys().copied()).collect();
        places.sort_unstable();
        places.dedup();
        let cosines = match &semantic.vector {
            Some(vector) => shard::cosines(self.backend, self.reached, vector, &places)?,
            None => vec![-1.0; places.len()],
        };
        let keyword_of = |place| self.keyword.as_ref().map_or(0.0, |scores| scores.get(place));
        let candidates: Vec<Candidate> = places
            .iter()
            .zip(&cosines)
            .map(|(place, cosine)| Candidate { cosine: *cosine, keyword: keyword_of(*place) })
            .collect();
        let fused = lodestone_rank::fuse(&candidates, self.alpha);
        *counts = CandidateCounts {
            semantic: semantic.hits.len(),
            keyword: keyword.len(),
            fused: fused.len(),
        };
        let mut ranked: Vec<Ranked> = Vec::with_capacity(fused.len());
        for kept in &fused {
            let place = places[kept.candidate];
            let link = links.get(&place).copied().unwrap_or(0.0);
            let verdict = self.verdicts.as_ref().map(|verdicts| verdicts.get(&place).copied());
            let score = match verdict {
                Some(verdict) => lodestone_rank::blend(kept.score, verdict),
                None => kept.score,
            };
            let parts = ScoreParts {
                cosine: semantic.vector.as_ref().map(|_| cosines[kept.candidate]),
                keyword: self.keyword.as_ref().map(|scores| scores.get(place)),
                semantic_share: kept.semantic,
                keyword_share: kept.keyword,
                link,
                rerank: verdict.flatten(),
                ..ScoreParts::default()
            };
            ranked.push(Ranked { place, score: lodestone_rank::lifted(score, link), parts });
        }
        Ok(self.ordered(ranked))
    }

    /// Applies what does not depend on the query, and sorts: best first, ties by the newer
    /// source, then by chunk id (API 5.7).
    pub(super) fn ordered(&self, mut ranked: Vec<Ranked>) -> Vec<Ranked> {
        let updated: Vec<Timestamp> =
            ranked.iter().map(|ranked| self.updated(ranked.place)).collect();
        let mut scores: Vec<f32> = ranked.iter().map(|ranked| ranked.score).collect();
        lodestone_rank::apply_recency(&mut scores, &updated, self.request.recency_bias);
        let mut keyed = Vec::with_capacity(ranked.len());
        for (mut ranked, (score, updated)) in ranked.drain(..).zip(scores.into_iter().zip(updated))
        {
            ranked.parts.recency = if ranked.score > 0.0 { score / ranked.score } else { 1.0 };
            ranked.score = lodestone_rank::settle(score);
            let segment = &self.reached[ranked.place.reach].live.segment;
            let chunk = chunk_identity(segment, ranked.place.row);
            keyed.push((RankKey { score: ranked.score, updated, chunk }, ranked));
        }
        lodestone_rank::sort_by_rank(&mut keyed, |(key, _)| *key);
        keyed.into_iter().map(|(_, ranked)| ranked).collect()
    }

    /// The source of a place, as a key that tells sources apart.
    pub(super) fn source(&self, place: Place) -> (usize, u32) {
        (place.reach, self.reached[place.reach].live.segment.source_of(place.row))
    }

    fn updated(&self, place: Place) -> Timestamp {
        let segment = &self.reached[place.reach].live.segment;
        segment.last_updated_at(segment.source_of(place.row))
    }
}
