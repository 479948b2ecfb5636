//! Hybrid search: two legs, one ranking, and what the results name.

use std::time::Instant;

use crate::query::graph::Neighbourhood;
use crate::query::hydrate::{Ranked, hydrate};
use crate::query::ranking::{Legs, Links, Semantic};
use crate::query::request::{Mode, RetrieveRequest, Retrieved};
use crate::query::rerank::reranked;
use crate::query::shard::{self, KeywordScores, Reach};
use crate::query::steer::{feed_back, steered};
use crate::query::{Query, QueryError, plan};
use lodestone_compute::PreparedQuery;
use lodestone_embed::Lane;
use lodestone_storage::collection::Snapshot;
use lodestone_text::HybridQuery;
use lodestone_types::{Relations, SubTenantId, TenantSchema, Timestamp};

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
        let vector = match alpha > 0.0 {
            true => Some(self.vector_of(snapshot, sub_tenant, request, now, &mut result)?),
            false => None,
        };
        let keyword =
            timed(&mut result.timings.keyword, || keyword_leg(&reached, &request.query, alpha))?;
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
        let (semantic, mut ranked) = self.passes(&mut legs, vector, schema, &mut result)?;
        if let Some(most) = request.per_source_max {
            lodestone_rank::cap_per_source(&mut ranked, most, |ranked| legs.source(ranked.place));
        }
        let shown = &ranked[..ranked.len().min(request.max_chunks)];
        if request.has_graph_context {
            let relations = timed(&mut result.timings.graph, || {
                Neighbourhood::open(&legs, &semantic, &request.query)?.relations(&ranked, shown)
            });
            result.relations = Some(relations?);
        }
        result.chunks = hydrate(&reached, shown)?;
        result.timings.total = millis(begun);
        Ok(result)
    }

    /// The candidates in their order, pass by pass: both legs, fed back, reranked, with what the
    /// first of them name.
    fn passes(
        &self,
        legs: &mut Legs<'_>,
        vector: Option<PreparedQuery>,
        schema: Option<&TenantSchema>,
        result: &mut Retrieved,
    ) -> Result<(Semantic, Vec<Ranked>), QueryError> {
        let mut semantic = timed(&mut result.timings.semantic, || legs.near(vector))?;
        result.paths.clone_from(&semantic.paths);

        let fusing = Instant::now();
        let mut ranked = legs.rank(&semantic, &Links::new(), &mut result.candidates)?;
        if legs.request.mode == Mode::Accurate
            && let Some(fed_back) = feed_back(legs, &semantic, &ranked)?
        {
            semantic = legs.near(Some(fed_back))?;
            ranked = legs.rank(&semantic, &Links::new(), &mut result.candidates)?;
        }
        result.timings.fuse = millis(fusing);
        if let Some(reranker) = self.reranker_for(legs.request.mode) {
            let begun = Instant::now();
            ranked = reranked(reranker, legs, &semantic, schema, ranked, result)?;
            result.timings.rerank = millis(begun);
        }
        if legs.request.has_graph_context {
            ranked = timed(&mut result.timings.graph, || {
                let near = Neighbourhood::open(&*legs, &semantic, &legs.request.query)?;
                legs.rank(&semantic, &near.links(&ranked)?, &mut result.candidates)
            })?;
        }
        Ok((semantic, ranked))
    }

    /// What is searched for, moved towards near memories where that is asked for.
    fn vector_of(
        &self,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        request: &RetrieveRequest,
        now: Timestamp,
        result: &mut Retrieved,
    ) -> Result<PreparedQuery, QueryError> {
        let embed = || self.embedder.embed(Lane::Query, vec![request.steered_query()]);
        let vectors = timed(&mut result.timings.embed, embed)?;
        let vector = PreparedQuery::new(&vectors[0])?;
        if !request.is_personalised {
            return Ok(vector);
        }
        let near = self.near_memories(snapshot, sub_tenant, &vector, now)?;
        result.memories_used = near.iter().map(|memory| memory.id.clone()).collect();
        steered(vector, &near)
    }
}

/// The keyword leg, silent where words have no share.
fn keyword_leg(
    reached: &[Reach],
    query: &str,
    alpha: f32,
) -> Result<Option<KeywordScores>, QueryError> {
    match alpha < 1.0 {
        true => KeywordScores::compute(reached, &HybridQuery::analyse(query)).map(Some),
        false => Ok(None),
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
