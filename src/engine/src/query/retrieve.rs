//! Hybrid search: its legs, their ranking, and the relations of the results.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::query::graph::Neighbourhood;
use crate::query::hydrate::{Ranked, hydrate};
use crate::query::join::{self, ChunkPosition, MergedResult};
use crate::query::legs::{self, SegmentScope};
use crate::query::ranking::{Candidates, Search};
use crate::query::request::{GraphContext, Mode, RetrieveRequest, Retrieved};
use crate::query::rerank::verdicts;
use crate::query::sparse::{self, SparseLeg};
use crate::query::steer::{feed_back, steered};
use crate::query::timing::{Part, millis};
use crate::query::words::{self, KeywordLeg};
use crate::query::{Query, QueryError, Timings, plan, side_by_side};
use lodestone_compute::PreparedQuery;
use lodestone_embed::{EmbedError, Lane, OwnedText, Role, SparseModel};
use lodestone_rank::confidence;
use lodestone_storage::collection::Snapshot;
use lodestone_text::HybridQuery;
use lodestone_types::{
    Relations, RequestContext, RetrievedChunk, SubTenantId, TenantSchema, Timestamp,
};

impl Query {
    /// Searches one scope of one snapshot.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for an invalid filter; [`QueryError::Stopped`] if the request ends
    /// before the search is done; errors of the model or the disk.
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
        let mut segments = self.in_scope(context, snapshot, sub_tenant, filter)?;
        let shares = self.share_out(context, snapshot, (sub_tenant, filter), &mut segments);
        let mut result = self.plan(snapshot, request);
        result.is_filtered = !filter.is_all();
        if segments.iter().all(|segment| segment.rows == 0) {
            result.timings.total = millis(begun);
            return Ok(nothing(request.graph_context, result));
        }
        let pool = plan::pool(request.mode, request.max_chunks);
        let words = HybridQuery::analyse(&request.query);
        let mut apart = Timings::default();
        let alpha = result.alpha;
        let is_unread = plan::is_unread(&request.query, self.model(snapshot));
        let is_hybrid = alpha > 0.0 && alpha < 1.0 && !is_unread;
        let sparse = self.sparse_for(is_hybrid, &segments, &mut result)?;
        let embed = || self.vector_of(context, snapshot, sub_tenant, request, now, &mut result);
        let score = || KeywordLeg::compute(context, &segments, shares.as_ref(), &words, pool);
        let expand = |model: &SparseModel| {
            let query = model.query(context, &request.steered_query())?;
            SparseLeg::compute(context, &segments, query, pool)
        };
        let ((vector, sparse), keyword) = side_by_side::meanwhile(
            || {
                let embed = || (alpha > 0.0).then(embed).transpose();
                let Some(model) = sparse else { return (embed(), Ok(None)) };
                let (vector, leg) = side_by_side::meanwhile(embed, || expand(model));
                (vector, leg.map(Some))
            },
            || apart.time(Part::Keyword, || (alpha < 1.0).then(score).transpose()),
        );
        result.timings.keyword = apart.keyword;
        let (vector, keyword) = or_words(&mut result, vector, keyword, score)?;
        // While the embedding server is failing, only words are searched.
        let sparse = sparse?.filter(|_| vector.is_some());
        let plain = vector.clone();
        let search = Search {
            context,
            backend: &*self.backend,
            request,
            segments: &segments,
            shares: shares.as_ref(),
            keyword,
            sparse,
            alpha: result.alpha,
            pool,
            thoroughness: plan::thoroughness(request),
        };
        let (candidates, mut ranked, uses_graph) =
            self.ranked(&search, vector, schema, &mut result)?;
        result.candidates = search.counts(&candidates, &ranked);
        if request.min_confidence > 0.0 {
            self.judge(&search, &words, (plain.as_ref(), is_unread), &mut ranked)?;
            ranked.retain(|row| row.parts.confidence >= request.min_confidence);
        }
        if let Some(most) = request.per_source_max {
            lodestone_rank::cap_per_source(&mut ranked, most, |row| search.source(row.address));
        }
        let merged = merged(&search, &ranked);
        let mut shown: Vec<Ranked> = merged.iter().flat_map(|one| one.chunks.clone()).collect();
        if request.min_confidence == 0.0 {
            self.judge(&search, &words, (plain.as_ref(), is_unread), &mut shown)?;
        }
        if uses_graph {
            let find = || Neighbourhood::open(&search, &candidates)?.relations(&ranked, &shown);
            result.relations = Some(result.timings.time(Part::Graph, find)?);
        }
        result.chunks = joined(&merged, hydrate(context, &segments, &shown)?);
        result.timings.total = millis(begun);
        Ok(result)
    }

    /// An empty result that records how the request is going to be searched.
    fn plan(&self, snapshot: &Snapshot, request: &RetrieveRequest) -> Retrieved {
        let has_foreign_model = self.models.of(&snapshot.manifest, None).is_none();
        let model = self.model(snapshot);
        let (alpha, alpha_reason) = match has_foreign_model {
            true => (0.0, Some("the vectors are of another model")),
            false => plan::alpha(request.alpha, &request.query, model),
        };
        Retrieved {
            alpha,
            alpha_reason,
            segments_missing: snapshot.damaged.len(),
            has_foreign_model,
            embedding_model: model.name().to_owned(),
            reranker: self.reranker_for(request.mode).map(|reranker| reranker.name().to_owned()),
            ..Retrieved::default()
        }
    }

    /// The sparse model, if its leg takes part: in hybrid searches over rows that all have its
    /// vectors.
    fn sparse_for(
        &self,
        is_hybrid: bool,
        segments: &[SegmentScope],
        result: &mut Retrieved,
    ) -> Result<Option<&SparseModel>, QueryError> {
        let Some(model) = self.sparse.as_deref().filter(|_| is_hybrid) else { return Ok(None) };
        result.lacks_sparse = !sparse::covers(segments, model)?;
        Ok((!result.lacks_sparse).then_some(model))
    }

    /// The ordered candidates with all their features: in `accurate` mode after moving the query
    /// towards its first results and reranking, and with links if the graph is used, which the last
    /// value tells.
    fn ranked(
        &self,
        search: &Search<'_>,
        vector: Option<PreparedQuery>,
        schema: Option<&TenantSchema>,
        result: &mut Retrieved,
    ) -> Result<(Candidates, Vec<Ranked>, bool), QueryError> {
        let mode = search.request.mode;
        let timings = &mut result.timings;
        let mut tops = timings.time(Part::Semantic, || search.tops(vector.as_ref()))?;
        result.effort = std::mem::take(&mut tops.effort);
        let mut candidates = timings.time(Part::Fuse, || search.candidates(vector, tops))?;
        timings.time(Part::Semantic, || search.fill(&mut candidates))?;
        let mut ranked = timings.time(Part::Fuse, || search.order(&candidates));
        if mode == Mode::Accurate
            && let Some(moved) = feed_back(search, &candidates, &ranked)?
        {
            let tops = timings.time(Part::Semantic, || search.tops(Some(&moved)))?;
            candidates = timings.time(Part::Fuse, || search.candidates(Some(moved), tops))?;
            timings.time(Part::Semantic, || search.fill(&mut candidates))?;
            ranked = timings.time(Part::Fuse, || search.order(&candidates));
        }
        if let Some(reranker) = self.reranker_for(mode) {
            let read = || verdicts(reranker, search, schema, &ranked);
            match timings.time(Part::Rerank, read)? {
                Some((verdicts, is_cut_short)) => {
                    result.is_reranked_in_part = is_cut_short;
                    candidates.judge(verdicts);
                    ranked = timings.time(Part::Fuse, || search.order(&candidates));
                }
                None => result.reranker = None,
            }
        }
        let uses_graph = match search.request.graph_context {
            GraphContext::Off => false,
            GraphContext::On => true,
            GraphContext::Auto => {
                let judge = || Neighbourhood::open(search, &candidates)?.judge(&ranked);
                let verdict = timings.time(Part::Graph, judge)?;
                result.graph_reason = Some(verdict.reason);
                verdict.is_used
            }
        };
        if uses_graph {
            ranked = timings.time(Part::Graph, || {
                let links = Neighbourhood::open(search, &candidates)?.links(&ranked)?;
                search.link(&mut candidates, &links)?;
                Ok::<_, QueryError>(search.order(&candidates))
            })?;
        }
        Ok((candidates, ranked, uses_graph))
    }

    /// Sets the confidence of ranked rows: from the cosine with the query's own vector, unless the
    /// model cannot read its script, and from the share of its words that they contain.
    fn judge(
        &self,
        search: &Search<'_>,
        words: &HybridQuery,
        (vector, is_unread): (Option<&PreparedQuery>, bool),
        ranked: &mut [Ranked],
    ) -> Result<(), QueryError> {
        let (context, request) = (search.context, search.request);
        let known = search.keyword.as_ref().map(|leg| leg.stats.clone());
        let stats = known.map_or_else(|| search.corpus_stats(words), Ok)?;
        let rows: Vec<_> = ranked.iter().map(|row| row.address).collect();
        let shares = words::coverages(context, search.segments, words, &stats, &rows)?;
        let vector = vector.filter(|_| !is_unread);
        // Feedback moves the vector towards the first results, relevant or not, so it is not used
        // here.
        let moved = vector.filter(|_| request.mode == Mode::Accurate);
        let cosines = moved.map(|vector| {
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            let cosines = legs::cosines(context, search.backend, search.segments, vector, &sorted)?;
            Ok::<BTreeMap<_, _>, QueryError>(sorted.into_iter().zip(cosines).collect())
        });
        let cosines = cosines.transpose()?;
        for (row, coverage) in ranked.iter_mut().zip(shares) {
            let own = cosines.as_ref().and_then(|cosines| cosines.get(&row.address).copied());
            let cosine = own.or(row.parts.cosine).filter(|_| !is_unread);
            row.parts.coverage = coverage;
            row.parts.confidence = confidence(cosine, coverage);
        }
        Ok(())
    }

    /// The query vector, moved towards near memories if the request asks for that.
    fn vector_of(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        request: &RetrieveRequest,
        now: Timestamp,
        result: &mut Retrieved,
    ) -> Result<PreparedQuery, QueryError> {
        let query = request.steered_query();
        let (owner, role) = (sub_tenant.as_str(), Role::Query);
        let texts = [OwnedText { sub_tenant: owner, role, text: &query }];
        let model = self.model(snapshot);
        let embed = || self.models.recent().embed(model, Lane::Query, context, &texts);
        let vectors = result.timings.time(Part::Embed, embed)?;
        let vector = PreparedQuery::new(&vectors[0])?;
        if !request.is_personalised {
            return Ok(vector);
        }
        let near = self.near_memories(context, snapshot, sub_tenant, &vector, now)?;
        result.memories_used = near.iter().map(|memory| memory.id.clone()).collect();
        steered(vector, &near)
    }
}

/// Both legs or, while the embedding server is failing, words only; the result then says so.
fn or_words(
    result: &mut Retrieved,
    vector: Result<Option<PreparedQuery>, QueryError>,
    keyword: Result<Option<KeywordLeg>, QueryError>,
    score: impl FnOnce() -> Result<KeywordLeg, QueryError>,
) -> Result<(Option<PreparedQuery>, Option<KeywordLeg>), QueryError> {
    if !matches!(vector, Err(QueryError::Embed(EmbedError::Remote { .. }))) {
        return Ok((vector?, keyword?));
    }
    result.embedder_fails = true;
    (result.alpha, result.alpha_reason) = (0.0, Some("the embedding server fails"));
    Ok((None, Some(keyword?.map_or_else(score, Ok)?)))
}

/// The result if there is nothing to search.
fn nothing(graph: GraphContext, result: Retrieved) -> Retrieved {
    let relations = (graph == GraphContext::On).then(Relations::default);
    let graph_reason = (graph == GraphContext::Auto).then_some("there is nothing to search");
    Retrieved { relations, graph_reason, ..result }
}

/// The first merged results of a ranking, as many as were requested.
fn merged(search: &Search<'_>, ranked: &[Ranked]) -> Vec<MergedResult> {
    let request = search.request;
    join::merged(ranked, request.max_chunks, request.join, |row| {
        let (at, source) = search.source(row.address);
        let segment = &search.segments[at].live.segment;
        let source_chunks = segment.rows_of(source).len();
        ChunkPosition { source: (at, source), source_chunks, index: segment.index(row.address.row) }
    })
}

/// Builds the results; `chunks` are those of all merged results, concatenated.
fn joined(merged: &[MergedResult], chunks: Vec<RetrievedChunk>) -> Vec<RetrievedChunk> {
    let mut chunks = chunks.into_iter();
    let result = |MergedResult { best, chunks: rows }: &MergedResult| {
        let best = rows.iter().position(|row| row.address == best.address);
        let own = chunks.by_ref().take(rows.len()).collect();
        join::joined(own, best.expect("it is one of them"))
    };
    merged.iter().map(result).collect()
}
