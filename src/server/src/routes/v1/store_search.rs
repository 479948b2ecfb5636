//! Search in a vector store: hybrid search of the sub-tenant with one chunk per result.
//!
//! The score of a result is its confidence rather than its ranking score, which is 1 for the best
//! result of any query: clients compare scores of different queries with a fixed threshold.

use crate::app::{App, degraded};
use crate::dto::v1::attributes;
use crate::dto::v1::store_files::TextPiece;
use crate::dto::v1::store_search::{SearchStore, StoreResult, StoreResults};
use crate::error::ApiError;
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::search::searched;
use crate::routes::search_warnings::warnings_of;
use crate::routes::v1::store_scope::scope_of;
use crate::routes::{Group, Route, off_thread};
use lodestone_engine::query::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_types::{RetrievedChunk, Role};

/// Returns the search operation.
pub(super) fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/v1/vector_stores/{vector_store_id}/search",
            Group::OpenAi,
            Role::Read,
            "Search a vector store by meaning and keywords",
        )
        .handle(search),
    ]
}

async fn search(app: App, call: Call, input: SearchStore) -> Result<Bare<StoreResults>, ApiError> {
    let SearchStore { store, query, filter, results_max, score_min, is_reranked } = input;
    let (asking, asked) = (app.clone(), call.clone());
    let scope = off_thread(move || scope_of(&asking, &asked, &store)).await?;
    let mode = if is_reranked { Mode::Accurate } else { Mode::Fast };
    let request = RetrieveRequest {
        query: query.join("\n"),
        extra_context: None,
        max_chunks: results_max,
        mode,
        recall: Recall::Usual,
        alpha: Alpha::Default,
        recency_bias: 0.0,
        is_personalised: false,
        graph_context: GraphContext::Off,
        per_source_max: None,
        join: Join::Never,
        min_confidence: score_min,
        filter: filter.into(),
    };
    searched(app, call, scope, mode, move |app, _, access| {
        let found = app.engine.retrieve(access, &request)?;
        let filter = ("filters", &request.filter);
        let warnings = warnings_of(app, access, filter, found.chunks.len());
        let body = StoreResults {
            object: "vector_store.search_results.page",
            search_query: query,
            data: found.chunks.into_iter().map(result).collect(),
            has_more: false,
            next_page: None,
        };
        let warnings = warnings.into_iter().map(|warning| warning.message).collect();
        Ok(Bare { degraded: degraded(access), warnings, ..Bare::new(body) })
    })
    .await
}

fn result(chunk: RetrievedChunk) -> StoreResult {
    let source = &chunk.source;
    let named = [&source.filename, &source.title].into_iter().find(|name| !name.is_empty());
    StoreResult {
        file_id: source.id.to_string(),
        filename: named.cloned().unwrap_or_default(),
        score: chunk.parts.confidence,
        attributes: attributes::of_document(&source.document_metadata),
        content: vec![TextPiece::new(chunk.text)],
    }
}
