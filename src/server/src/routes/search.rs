//! Hybrid search and full-text search (docs/api.md, "Retrieve" and "Full text").

use std::collections::BTreeSet;

use crate::app::{App, degraded, searching};
use crate::dto::answers::{
    CandidateCounts, GraphCounts, RetrieveResponse, SearchMetadata, StageTimings, VectorRecall,
};
use crate::dto::chunks::{Chunk, FacetedChunks, FoundChunks, ValueCounts};
use crate::dto::search::{FullTextSearch, Retrieve};
use crate::dto::search_warning::SearchWarning;
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::chunks_out::{chunk, explanation};
use crate::routes::graph::{graph_relations, relate};
use crate::routes::search_warnings::warnings;
use crate::routes::{Group, Route, off_thread};
use lodestone_engine::TenantAccess;
use lodestone_engine::qna::Conversation;
use lodestone_engine::query::{Alpha, Facet, FoundWords, Mode, RetrieveRequest, Retrieved};
use lodestone_text::{PHRASE_CHARS_MAX, QUERY_TERMS_MAX, WordQuery, word_matches};
use lodestone_types::{RequestContext, RetrievedChunk, Role, Scope, TenantMode};

/// Returns the search operations.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/search/retrieve",
            Group::Search,
            Role::Read,
            "Search chunks by meaning and keywords",
        )
        .handle(retrieve),
        Route::<App>::post(
            "/search/full-text-search",
            Group::Search,
            Role::Read,
            "Search chunks by keywords",
        )
        .handle(searching(full_text_search)),
    ]
}

async fn retrieve(
    app: App,
    call: Call,
    input: Retrieve,
) -> Result<Json<RetrieveResponse>, ApiError> {
    if let Conversation::Session(_) = input.conversation {
        // A query node may not have the newest turns.
        call.require_writer()?;
    }
    let (scope, mode) = (input.scope.clone(), input.request.mode);
    searched(app, call, scope, mode, |app, call, access| found(app, call, access, input)).await
}

/// Searches a scope; with a permit of the fair queue if a reranker reads the results.
pub(super) async fn searched<T: Send + 'static>(
    app: App,
    call: Call,
    scope: Scope,
    mode: Mode,
    work: impl FnOnce(&App, &Call, &TenantAccess) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let context = app.search_context(&call);
    // Dropped together with this future when the client disconnects.
    let _listening = context.cancel().on_drop();
    if !app.reranks(mode) {
        return off_thread(move || {
            let access = opened(&app, &call, &context, &scope)?;
            work(&app, &call, &access)
        })
        .await;
    }
    let (opening, asked, within) = (app.clone(), call.clone(), context.clone());
    let access = off_thread(move || opened(&opening, &asked, &within, &scope)).await?;
    let permit = app.run_permit(&call, &context, &access).await?;
    off_thread(move || {
        let found = work(&app, &call, &access);
        drop(permit);
        found
    })
    .await
}

fn opened(
    app: &App,
    call: &Call,
    context: &RequestContext,
    scope: &Scope,
) -> Result<TenantAccess, ApiError> {
    let mode = Some(TenantMode::Standard);
    Ok(app.engine.open(call.grant()?, scope, mode)?.within(context))
}

fn found(
    app: &App,
    call: &Call,
    access: &TenantAccess,
    input: Retrieve,
) -> Result<Json<RetrieveResponse>, ApiError> {
    let Retrieve { mut request, conversation, explain, .. } = input;
    let query = app.engine.completed(access, &conversation, &request.query)?;
    let completed_query = completed(&request.query, &query);
    request.query = query;
    let found = app.engine.retrieve(access, &request)?;
    let degraded_message = app.engine.model_failure(access);
    let metadata = metadata_of(call, &request, &found);
    let warnings = warnings(app, call, access, &request.filter, found.chunks.len());
    let metadata = SearchMetadata { completed_query, degraded_message, warnings, ..metadata };
    let graph_relations = graph_relations(&found);
    let relations = found.relations;
    let shown = |found: RetrievedChunk| {
        let explain = explain.then(|| explanation(&found.parts));
        Chunk { explain, ..chunk(found) }
    };
    let mut chunks: Vec<Chunk> = found.chunks.into_iter().map(shown).collect();
    chunks.iter_mut().for_each(|chunk| relate(chunk, relations.as_ref()));
    let body = RetrieveResponse {
        chunks,
        extra_graph_context: graph_relations.as_ref().map(|graph| graph.entity_paths.clone()),
        graph_relations,
        metadata,
        success: true,
    };
    Ok(Json::new(body).with_degraded(degraded(access)))
}

fn full_text_search(
    app: &App,
    call: &Call,
    context: &RequestContext,
    input: FullTextSearch,
) -> Result<Json<FoundChunks>, ApiError> {
    let access = opened(app, call, context, &input.scope)?;
    let FullTextSearch { request, has_facets, has_highlights, .. } = input;
    let FoundWords { chunks, total, facets, query } = app.engine.full_text(&access, &request)?;
    let shown = |found: RetrievedChunk| {
        let highlights = has_highlights.then(|| marked(&query, &found.text));
        Chunk { highlights, ..chunk(found) }
    };
    let chunks: Vec<Chunk> = chunks.into_iter().map(shown).collect();
    let mut warnings = warnings(app, call, &access, &request.filter, chunks.len());
    warnings.extend(shortened(&query));
    warnings.extend(uncounted(&facets, total));
    let told = warnings.iter().map(|warning| warning.message.clone()).collect();
    let reply = |body| Json::new(body).with_degraded(degraded(&access)).with_warnings(told);
    let Some(total) = total.filter(|_| has_facets) else {
        return Ok(reply(FoundChunks::List(chunks)));
    };
    let end = request.offset + chunks.len();
    let left_out = facets.iter().filter(|facet| facet.left_out > 0);
    let page = FacetedChunks {
        facets_left_out: left_out.map(|facet| (facet.key.clone(), facet.left_out)).collect(),
        facets: facets.into_iter().map(|facet| (facet.key, ValueCounts(facet.values))).collect(),
        total,
        next_offset: (!chunks.is_empty() && (end as u64) < total).then_some(end),
        chunks,
        warnings,
    };
    Ok(reply(FoundChunks::Page(page)))
}

/// Returns a warning if part of the query is not compared.
fn shortened(query: &WordQuery) -> Option<SearchWarning> {
    query.is_shortened().then(|| SearchWarning {
        code: "query_shortened".to_owned(),
        field: "query".to_owned(),
        message: format!(
            "full text compares at most {QUERY_TERMS_MAX} different words and \
             {PHRASE_CHARS_MAX} characters of a run without spaces; the rest of the query was \
             ignored"
        ),
    })
}

/// Returns a warning for each facet without values although chunks match.
fn uncounted(facets: &[Facet], total: Option<u64>) -> Vec<SearchWarning> {
    let counts_nothing = |facet: &&Facet| facet.values.is_empty() && facet.left_out == 0;
    let empty = facets.iter().filter(counts_nothing).filter(|_| total.is_some_and(|all| all > 0));
    let warning = |facet: &Facet| SearchWarning {
        code: "facet_unknown_key".to_owned(),
        field: "facets".to_owned(),
        message: format!(
            "no matching chunk has a value under {} to count; check the spelling of the key (upper \
             and lower case differ)",
            facet.key
        ),
    };
    empty.map(warning).collect()
}

/// Returns the ranges, in characters, in which a text matches words of the query.
fn marked(query: &WordQuery, text: &str) -> Vec<[usize; 2]> {
    let (mut at, mut characters) = (0, 0);
    let mut characters_to = |to: usize| {
        characters += text[at..to].chars().count();
        at = to;
        characters
    };
    let ranges = word_matches(query, text);
    ranges.into_iter().map(|range| [range.start, range.end].map(&mut characters_to)).collect()
}

/// Returns the query that was searched if it differs from the one that was asked.
pub(super) fn completed(asked: &str, searched: &str) -> Option<String> {
    (asked != searched).then(|| searched.to_owned())
}

/// Builds the `metadata` of a search.
pub(super) fn metadata_of(
    call: &Call,
    request: &RetrieveRequest,
    found: &Retrieved,
) -> SearchMetadata {
    let Retrieved { candidates, timings, .. } = found;
    SearchMetadata {
        request_id: call.request_id.to_string(),
        completed_query: None,
        mode: request.mode.as_str().to_owned(),
        alpha: found.alpha,
        alpha_mode: match (request.alpha, found.alpha_reason) {
            (Alpha::Fixed(_), _) | (Alpha::Default, None) => "fixed".to_owned(),
            (Alpha::Auto, _) | (Alpha::Default, Some(_)) => "auto".to_owned(),
        },
        alpha_reason: found.alpha_reason.map(str::to_owned),
        recency_bias: request.recency_bias,
        max_chunks: request.max_chunks,
        returned: found.chunks.len(),
        candidates: CandidateCounts {
            semantic: candidates.semantic,
            keyword: candidates.keyword,
            fused: candidates.fused,
        },
        filtered: found.is_filtered,
        embedding_model: found.embedding_model.clone(),
        reranker: found.reranker.clone(),
        personalised: !found.memories_used.is_empty(),
        memories_used: found.memories_used.iter().map(ToString::to_string).collect(),
        graph: graph_counts(found),
        timings_ms: StageTimings {
            embed: timings.embed,
            semantic: timings.semantic,
            keyword: timings.keyword,
            fuse: timings.fuse,
            rerank: timings.rerank,
            graph: timings.graph,
            answer: None,
            total: timings.total,
        },
        vector_paths: found.effort.paths.iter().map(|path| path.as_str().to_owned()).collect(),
        vector_recall: found
            .effort
            .patience
            .map(|patience| VectorRecall { target: request.recall.share(), patience }),
        degraded: degradations(found, request.mode),
        degraded_message: None,
        ignored_parameters: call.ignored.to_vec(),
        warnings: Vec::new(),
    }
}

fn graph_counts(found: &Retrieved) -> GraphCounts {
    let reason = found.graph_reason.map(str::to_owned);
    let Some(relations) = &found.relations else {
        return GraphCounts { reason, ..GraphCounts::default() };
    };
    let ids: BTreeSet<&str> =
        relations.of_chunks.values().flatten().map(|triplet| triplet.id.as_str()).collect();
    GraphCounts { entity_paths: relations.paths.len(), chunk_triplets: ids.len(), reason }
}

/// Lists what the answer lacks, for readers of `metadata` who do not look at headers.
fn degradations(found: &Retrieved, mode: Mode) -> Vec<String> {
    let lacks = [
        (found.segments_missing > 0, "segments_quarantined"),
        (found.has_foreign_model, "model_mismatch"),
        (found.embedder_fails, "embedder_unavailable"),
        (found.lacks_sparse, "sparse_vectors_missing"),
        // Only mode `accurate` asks for a reranker; here none is installed, or it failed.
        (mode == Mode::Accurate && found.reranker.is_none(), "reranker_unavailable"),
        (found.is_reranked_in_part, "reranking_partial"),
    ];
    lacks.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| (*word).to_owned()).collect()
}
