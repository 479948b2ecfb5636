//! Hybrid search: two legs, one ranking, and what the results name.

use std::time::Instant;

use crate::collection::Snapshot;
use crate::compute::PreparedQuery;
use crate::embed::Lane;
use crate::query::graph::Neighbourhood;
use crate::query::hydrate::{Ranked, hydrate};
use crate::query::memories::NearMemory;
use crate::query::ranking::{Legs, Links, Semantic};
use crate::query::request::{Mode, RetrieveRequest, Retrieved, Timings};
use crate::query::rerank::reranked;
use crate::query::shard::{self, KeywordScores};
use crate::query::{Query, QueryError, plan};
use crate::rank;
use crate::text::HybridQuery;
use crate::types::{Relations, SubTenantId, TenantSchema, Timestamp};

/// Results whose vectors are fed back in `accurate` mode, and the weight of their mean
/// (RETRIEVAL 1.3).
const FEEDBACK_RESULTS: usize = 3;
const FEEDBACK_WEIGHT: f32 = 0.5;
/// Weight of the memories near a query: less than the query's own, so that they order what
/// answers it and do not replace it.
const MEMORY_WEIGHT: f32 = 0.4;

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
        now: Timestamp,
    ) -> Result<Retrieved, QueryError> {
        let begun = Instant::now();
        let filter = request.restriction.parse(schema)?;
        let (alpha, alpha_reason) = plan::alpha(request.alpha, &request.query, &*self.embedder);
        let reached = shard::reach(snapshot, sub_tenant, &filter)?;
        let mut result = Retrieved {
            alpha,
            alpha_reason,
            is_filtered: !filter.is_all(),
            segments_missing: snapshot.damaged.len(),
            reranker: self.reranker_for(request.mode).map(|reranker| reranker.name().to_owned()),
            ..Retrieved::default()
        };
        if reached.iter().all(|reach| reach.rows == 0) {
            result.relations = request.has_graph_context.then(Relations::default);
            result.timings.total = millis(begun);
            return Ok(result);
        }
        let mut timings = Timings::default();
        let vector = match alpha > 0.0 {
            true => Some(timed(&mut timings.embed, || self.query_vector(request))?),
            false => None,
        };
        let vector = match vector {
            Some(vector) if request.is_personalised => {
                let near = self.near_memories(snapshot, sub_tenant, &vector, now)?;
                result.memories_used = near.iter().map(|memory| memory.id.clone()).collect();
                Some(steered(vector, &near)?)
            }
            vector => vector,
        };
        let analysed = HybridQuery::analyse(&request.query);
        let keyword = timed(&mut timings.keyword, || match alpha < 1.0 {
            true => KeywordScores::compute(&reached, &analysed).map(Some),
            false => Ok(None),
        })?;
        let mut legs = Legs {
            backend: &*self.backend,
            request,
            reached: &reached,
            keyword,
            alpha,
            pool: plan::pool(request.mode, request.max_chunks),
            thoroughness: plan::thoroughness(request.mode),
            verdicts: None,
        };
        let mut semantic = timed(&mut timings.semantic, || legs.near(vector))?;
        result.paths.clone_from(&semantic.paths);

        let fusing = Instant::now();
        let mut ranked = legs.rank(&semantic, &Links::new(), &mut result.candidates)?;
        if request.mode == Mode::Accurate
            && let Some(fed_back) = feed_back(&legs, &semantic, &ranked)?
        {
            semantic = legs.near(Some(fed_back))?;
            ranked = legs.rank(&semantic, &Links::new(), &mut result.candidates)?;
        }
        timings.fuse = millis(fusing);
        if let Some(reranker) = self.reranker_for(request.mode) {
            ranked = timed(&mut timings.rerank, || {
                reranked(reranker, &mut legs, &semantic, schema, ranked, &mut result)
            })?;
        }
        if request.has_graph_context {
            ranked = timed(&mut timings.graph, || {
                let links =
                    Neighbourhood::open(&legs, &semantic, &request.query)?.links(&ranked)?;
                legs.rank(&semantic, &links, &mut result.candidates)
            })?;
        }
        if let Some(most) = request.per_source_max {
            rank::cap_per_source(&mut ranked, most, |ranked| legs.source(ranked.place));
        }
        let shown = &ranked[..ranked.len().min(request.max_chunks)];
        if request.has_graph_context {
            let relations = timed(&mut timings.graph, || {
                Neighbourhood::open(&legs, &semantic, &request.query)?.relations(&ranked, shown)
            });
            result.relations = Some(relations?);
        }
        result.chunks = hydrate(&reached, shown)?;
        timings.total = millis(begun);
        result.timings = timings;
        Ok(result)
    }

    fn query_vector(&self, request: &RetrieveRequest) -> Result<PreparedQuery, QueryError> {
        let vectors = self.embedder.embed(Lane::Query, vec![request.steered_query()])?;
        Ok(PreparedQuery::new(&vectors[0])?)
    }
}

/// The query moved towards the memories near it, each as much as it is near.
fn steered(query: PreparedQuery, near: &[NearMemory]) -> Result<PreparedQuery, QueryError> {
    let weights: f32 = near.iter().map(|memory| memory.similarity).sum();
    if near.is_empty() || weights <= 0.0 {
        return Ok(query);
    }
    let mut moved = query.unit().to_vec();
    for memory in near {
        let weight = MEMORY_WEIGHT * memory.similarity / weights;
        moved.iter_mut().zip(&memory.vector).for_each(|(sum, value)| *sum += weight * value);
    }
    Ok(PreparedQuery::new(&moved)?)
}

/// The query moved towards its first results: Rocchio's rule without a model.
fn feed_back(
    legs: &Legs<'_>,
    semantic: &Semantic,
    ranked: &[Ranked],
) -> Result<Option<PreparedQuery>, QueryError> {
    let Some(query) = &semantic.vector else { return Ok(None) };
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

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn timed<T>(slot: &mut f64, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let value = run();
    *slot += millis(begun);
    value
}
