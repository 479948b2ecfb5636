//! Hybrid search: both legs, their ranking, and the relations of the results.

use std::time::Instant;

use crate::query::graph::Neighbourhood;
use crate::query::hydrate::{Ranked, hydrate};
use crate::query::legs::{self, KeywordLeg};
use crate::query::ranking::{Candidates, Search};
use crate::query::request::{Mode, RetrieveRequest, Retrieved};
use crate::query::rerank::verdicts;
use crate::query::steer::{feed_back, steered};
use crate::query::{Query, QueryError, plan};
use lodestone_compute::PreparedQuery;
use lodestone_embed::Lane;
use lodestone_storage::collection::Snapshot;
use lodestone_text::HybridQuery;
use lodestone_types::{Relations, RequestContext, SubTenantId, TenantSchema, Timestamp};

impl Query {
    /// Searches one scope of one snapshot.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for a bad filter; [`QueryError::Stopped`] where the request is over
    /// before it is done; errors of the model or the disk.
    pub fn retrieve(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        request: &RetrieveRequest,
        now: Timestamp,
    ) -> Result<Retrieved, QueryError> {
        let begun = Instant::now();
        let filter = request.filter.for_schema(schema).map_err(QueryError::Filter)?;
        let has_foreign_model =
            snapshot.manifest.foreign_model(self.embedder.fingerprint()).is_some();
        let (alpha, alpha_reason) = match has_foreign_model {
            true => (0.0, Some("the vectors are of another model")),
            false => plan::alpha(request.alpha, &request.query, &*self.embedder),
        };
        let segments = legs::segments_in_scope(context, snapshot, sub_tenant, filter)?;
        let mut result = Retrieved {
            alpha,
            alpha_reason,
            is_filtered: !filter.is_all(),
            segments_missing: snapshot.damaged.len(),
            has_foreign_model,
            reranker: self.reranker_for(request.mode).map(|reranker| reranker.name().to_owned()),
            ..Retrieved::default()
        };
        if segments.iter().all(|segment| segment.rows == 0) {
            result.relations = request.has_graph_context.then(Relations::default);
            result.timings.total = millis(begun);
            return Ok(result);
        }
        let vector = match alpha > 0.0 {
            true => Some(self.vector_of(context, snapshot, sub_tenant, request, now, &mut result)?),
            false => None,
        };
        let pool = plan::pool(request.mode, request.max_chunks);
        let keyword = timed(&mut result.timings.keyword, || {
            let leg = |query| KeywordLeg::compute(context, &segments, &query, pool);
            (alpha < 1.0).then(|| leg(HybridQuery::analyse(&request.query))).transpose()
        })?;
        let search = Search {
            context,
            backend: &*self.backend,
            request,
            segments: &segments,
            keyword,
            alpha,
            pool,
            thoroughness: plan::thoroughness(request.mode),
        };
        let (candidates, mut ranked) = self.ranked(&search, vector, schema, &mut result)?;
        result.candidates = search.counts(&candidates, &ranked);
        if let Some(most) = request.per_source_max {
            lodestone_rank::cap_per_source(&mut ranked, most, |row| search.source(row.address));
        }
        let shown = &ranked[..ranked.len().min(request.max_chunks)];
        if request.has_graph_context {
            let relations = timed(&mut result.timings.graph, || {
                Neighbourhood::open(&search, &candidates)?.relations(&ranked, shown)
            });
            result.relations = Some(relations?);
        }
        result.chunks = hydrate(context, &segments, shown)?;
        result.timings.total = millis(begun);
        Ok(result)
    }

    /// The candidates with all their features, and their order: of the query, in `accurate` of the
    /// query moved towards its first results; with verdicts of a reranker; with links.
    fn ranked(
        &self,
        search: &Search<'_>,
        vector: Option<PreparedQuery>,
        schema: Option<&TenantSchema>,
        result: &mut Retrieved,
    ) -> Result<(Candidates, Vec<Ranked>), QueryError> {
        let mode = search.request.mode;
        let timings = &mut result.timings;
        let (near, paths) = timed(&mut timings.semantic, || search.nearest(vector.as_ref()))?;
        result.paths = paths;
        let mut candidates = timed(&mut timings.fuse, || search.candidates(vector, &near))?;
        timed(&mut timings.semantic, || search.fill(&mut candidates))?;
        let mut ranked = timed(&mut timings.fuse, || search.order(&candidates));
        if mode == Mode::Accurate
            && let Some(moved) = feed_back(search, &candidates, &ranked)?
        {
            let (near, _) = timed(&mut timings.semantic, || search.nearest(Some(&moved)))?;
            candidates = timed(&mut timings.fuse, || search.candidates(Some(moved), &near))?;
            timed(&mut timings.semantic, || search.fill(&mut candidates))?;
            ranked = timed(&mut timings.fuse, || search.order(&candidates));
        }
        if let Some(reranker) = self.reranker_for(mode) {
            let read = || verdicts(reranker, search, schema, &ranked);
            match timed(&mut timings.rerank, read)? {
                Some(verdicts) => {
                    candidates.judge(verdicts);
                    ranked = timed(&mut timings.fuse, || search.order(&candidates));
                }
                None => result.reranker = None,
            }
        }
        if search.request.has_graph_context {
            ranked = timed(&mut timings.graph, || {
                let links = Neighbourhood::open(search, &candidates)?.links(&ranked)?;
                search.link(&mut candidates, &links)?;
                Ok::<_, QueryError>(search.order(&candidates))
            })?;
        }
        Ok((candidates, ranked))
    }

    /// The query vector, moved towards near memories where that is asked for.
    fn vector_of(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        request: &RetrieveRequest,
        now: Timestamp,
        result: &mut Retrieved,
    ) -> Result<PreparedQuery, QueryError> {
        let texts = vec![request.steered_query()];
        let embed = || self.embedder.embed_within(Lane::Query, context, texts);
        let vectors = timed(&mut result.timings.embed, embed)?;
        let vector = PreparedQuery::new(&vectors[0])?;
        if !request.is_personalised {
            return Ok(vector);
        }
        let near = self.near_memories(context, snapshot, sub_tenant, &vector, now)?;
        result.memories_used = near.iter().map(|memory| memory.id.clone()).collect();
        steered(vector, &near)
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
