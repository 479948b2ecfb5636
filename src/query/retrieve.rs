//! Hybrid search: two legs, one ranking.

use std::time::Instant;

use crate::collection::Snapshot;
use crate::compute::PreparedQuery;
use crate::embed::Lane;
use crate::query::hydrate::{Ranked, chunk_identity, hydrate};
use crate::query::request::{CandidateCounts, Mode, RetrieveRequest, Retrieved, Timings};
use crate::query::shard::{self, KeywordScores, LegHits, Place, Reach};
use crate::query::{Query, QueryError, plan};
use crate::rank::{self, Candidate, RankKey};
use crate::text::HybridQuery;
use crate::types::{SubTenantId, TenantSchema, Timestamp};

/// Results whose vectors are fed back in `accurate` mode, and the weight of their mean
/// (RETRIEVAL 1.3).
const FEEDBACK_RESULTS: usize = 3;
const FEEDBACK_WEIGHT: f32 = 0.5;

impl Query {
    /// Searches one scope of one snapshot.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for a bad filter; failures of the model or the disk.
    pub fn retrieve(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        request: &RetrieveRequest,
    ) -> Result<Retrieved, QueryError> {
        let begun = Instant::now();
        let filter = request.restriction.parse(schema)?;
        let (alpha, alpha_reason) = plan::alpha(request.alpha, &request.query);
        let reached = shard::reach(snapshot, sub_tenant, &filter)?;
        let mut result = Retrieved {
            alpha,
            alpha_reason,
            is_filtered: !filter.is_all(),
            segments_missing: snapshot.damaged.len(),
            ..Retrieved::default()
        };
        if reached.iter().all(|reach| reach.rows == 0) {
            result.timings.total = millis(begun);
            return Ok(result);
        }
        let pool = plan::pool(request.mode, request.max_chunks);
        let thoroughness = plan::thoroughness(request.mode);
        let mut timings = Timings::default();

        let vector = match alpha > 0.0 {
            true => Some(timed(&mut timings.embed, || self.query_vector(request))?),
            false => None,
        };
        let semantic = timed(&mut timings.semantic, || match &vector {
            Some(vector) => shard::nearest(&*self.backend, &reached, vector, pool, thoroughness),
            None => Ok((LegHits::new(), Vec::new())),
        })?;
        let analysed = HybridQuery::analyse(&request.query);
        let keyword = timed(&mut timings.keyword, || match alpha < 1.0 {
            true => KeywordScores::compute(&reached, &analysed).map(Some),
            false => Ok(None),
        })?;
        let legs = Legs { reached: &reached, vector, keyword, alpha, pool };
        let fusing = Instant::now();
        let mut ranked = self.rank(&legs, &semantic.0, request, &mut result.candidates)?;
        if request.mode == Mode::Accurate
            && let Some(fed_back) = self.feed_back(&legs, &ranked)?
        {
            let (hits, _) =
                shard::nearest(&*self.backend, &reached, &fed_back, pool, thoroughness)?;
            let legs = Legs { vector: Some(fed_back), ..legs };
            ranked = self.rank(&legs, &hits, request, &mut result.candidates)?;
        }
        timings.fuse = millis(fusing);
        ranked.truncate(request.max_chunks);
        result.chunks = hydrate(&reached, &ranked)?;
        result.paths = semantic.1;
        timings.total = millis(begun);
        result.timings = timings;
        Ok(result)
    }

    fn query_vector(&self, request: &RetrieveRequest) -> Result<PreparedQuery, QueryError> {
        let text = match &request.extra_context {
            Some(context) => format!("{}\n{context}", request.query),
            None => request.query.clone(),
        };
        let vectors = self.embedder.embed(Lane::Query, vec![text])?;
        Ok(PreparedQuery::new(&vectors[0])?)
    }

    /// Gives every candidate of either leg both true scores, and orders them.
    fn rank(
        &self,
        legs: &Legs<'_>,
        semantic: &LegHits,
        request: &RetrieveRequest,
        counts: &mut CandidateCounts,
    ) -> Result<Vec<Ranked>, QueryError> {
        let keyword = match &legs.keyword {
            Some(scores) => scores.top(legs.pool)?,
            None => LegHits::new(),
        };
        let mut places: Vec<Place> =
            semantic.iter().chain(&keyword).map(|(place, _)| *place).collect();
        places.sort_unstable();
        places.dedup();
        let cosines = match &legs.vector {
            Some(vector) => shard::cosines(&*self.backend, legs.reached, vector, &places)?,
            None => vec![-1.0; places.len()],
        };
        let keyword_of = |place| legs.keyword.as_ref().map_or(0.0, |scores| scores.get(place));
        let candidates: Vec<Candidate> = places
            .iter()
            .zip(&cosines)
            .map(|(place, cosine)| Candidate { cosine: *cosine, keyword: keyword_of(*place) })
            .collect();
        let fused = rank::fuse(&candidates, legs.alpha);
        *counts = CandidateCounts {
            semantic: semantic.len(),
            keyword: keyword.len(),
            fused: fused.len(),
        };
        let updated: Vec<Timestamp> =
            fused.iter().map(|kept| legs.updated(places[kept.candidate])).collect();
        let mut scores: Vec<f32> = fused.iter().map(|kept| kept.score).collect();
        rank::apply_recency(&mut scores, &updated, request.recency_bias);
        let mut ranked = Vec::with_capacity(fused.len());
        for (kept, (score, updated)) in fused.iter().zip(scores.into_iter().zip(updated)) {
            let place = places[kept.candidate];
            let cosine = legs.vector.as_ref().map(|_| cosines[kept.candidate]);
            let keyword = legs.keyword.as_ref().map(|scores| scores.get(place));
            let score = rank::settle(score);
            ranked.push((Ranked { place, score, cosine, keyword }, updated));
        }
        Ok(legs.sort(ranked))
    }

    /// The query moved towards its first results: Rocchio's rule without a model.
    fn feed_back(
        &self,
        legs: &Legs<'_>,
        ranked: &[Ranked],
    ) -> Result<Option<PreparedQuery>, QueryError> {
        let Some(query) = &legs.vector else { return Ok(None) };
        let first = &ranked[..ranked.len().min(FEEDBACK_RESULTS)];
        if first.is_empty() {
            return Ok(None);
        }
        let weight = FEEDBACK_WEIGHT / first.len() as f32;
        let mut moved = query.unit().to_vec();
        for result in first {
            let segment = &legs.reached[result.place.reach].live.segment;
            let vector = segment.unit_vector(result.place.row)?;
            moved.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
        }
        Ok(Some(PreparedQuery::new(&moved)?))
    }
}

/// What both passes of a search share.
struct Legs<'a> {
    reached: &'a [Reach],
    vector: Option<PreparedQuery>,
    keyword: Option<KeywordScores>,
    alpha: f32,
    pool: usize,
}

impl Legs<'_> {
    fn updated(&self, place: Place) -> Timestamp {
        let segment = &self.reached[place.reach].live.segment;
        segment.last_updated_at(segment.source_of(place.row))
    }

    /// Best first; ties by the newer source, then by chunk id (API 5.7).
    fn sort(&self, mut ranked: Vec<(Ranked, Timestamp)>) -> Vec<Ranked> {
        let key = |(ranked, updated): &(Ranked, Timestamp)| {
            let Place { reach, row } = ranked.place;
            let chunk = chunk_identity(&self.reached[reach].live.segment, row);
            RankKey { score: ranked.score, updated: *updated, chunk }
        };
        let mut keyed: Vec<_> = ranked.drain(..).map(|pair| (key(&pair), pair.0)).collect();
        rank::sort_by_rank(&mut keyed, |(key, _)| *key);
        keyed.into_iter().map(|(_, ranked)| ranked).collect()
    }
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn timed<T>(slot: &mut f64, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let value = run();
    *slot += millis(begun);
    value
}
