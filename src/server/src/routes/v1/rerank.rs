//! Relevance of documents to a query, scored by the reranker or by cosine of embeddings.

use std::sync::Arc;

use crate::app::App;
use crate::dto::v1::rerank::{DocumentView, RankedList, RankedView, Rerank};
use crate::error::{ApiError, Location};
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::off_thread;
use crate::routes::v1::embeddings::{Passages, vectors};
use crate::routes::v1::owner;
use lodestone_embed::Role;
use lodestone_engine::settle;
use lodestone_types::{CollectionId, RequestContext};

/// The model that computes the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scorer {
    Reranker,
    Embedder,
}

pub(super) async fn rerank(
    app: App,
    call: Call,
    input: Rerank,
) -> Result<Bare<RankedList>, ApiError> {
    let context = app.search_context(&call);
    // Dropped together with this future when the client disconnects.
    let _listening = context.cancel().on_drop();
    let Rerank { model, query, documents, top_n, return_documents, tenant } = input;
    let (scorer, model) = chosen(&app, model)?;
    let (asking, asked) = (app.clone(), call.clone());
    let owner = off_thread(move || owner(&asking, asked.grant()?, tenant.as_ref())).await?;
    let documents = Arc::new(documents);
    let request = (&app, &call, &context, owner);
    let scores = match scorer {
        Scorer::Reranker => verdicts(request, query, &documents).await?,
        Scorer::Embedder => cosines(request, query, &documents).await?,
    };
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order.truncate(top_n.unwrap_or(usize::MAX));
    let ranked = |index: usize| RankedView {
        index,
        relevance_score: scores[index],
        document: return_documents.then(|| DocumentView { text: documents[index].clone() }),
    };
    Ok(Bare::new(RankedList {
        id: call.request_id.to_string(),
        object: "list",
        model,
        results: order.into_iter().map(ranked).collect(),
    }))
}

/// Selects the model and returns it with its name.
fn chosen(app: &App, model: Option<String>) -> Result<(Scorer, String), ApiError> {
    let reranker = app.engine.reranker().map(|one| (Scorer::Reranker, one.name()));
    let embedder = (Scorer::Embedder, app.engine.embedder().name());
    let (scorer, name) = match model {
        None => reranker.unwrap_or(embedder),
        Some(model) => {
            let mut installed = reranker.into_iter().chain([embedder]);
            let found = installed.find(|(_, name)| *name == model);
            found.ok_or_else(|| ApiError::model_not_found(Location::Body))?
        }
    };
    Ok((scorer, name.to_owned()))
}

/// The application, the call, its context and its owner in the fair queue.
type Asked<'a> = (&'a App, &'a Call, &'a RequestContext, CollectionId);

/// Scores the documents with the reranker, one of its batches per permit.
async fn verdicts(
    (app, call, context, owner): Asked<'_>,
    query: String,
    documents: &Arc<Vec<String>>,
) -> Result<Vec<f32>, ApiError> {
    let query: Arc<str> = query.into();
    let mut scores = Vec::with_capacity(documents.len());
    while scores.len() < documents.len() {
        let context = context.of_tenant(owner).restarted();
        let permit = app.run_permit_of(call, &context, owner).await?;
        let (engine, context, from) = (app.engine.clone(), context.restarted(), scores.len());
        let (query, documents) = (Arc::clone(&query), Arc::clone(documents));
        let scored = off_thread(move || {
            let left: Vec<&str> = documents[from..].iter().map(String::as_str).collect();
            let scored = engine.relevance(&context, &query, &left)?;
            drop(permit);
            scored
                .filter(|scored| !scored.is_empty())
                .ok_or_else(|| ApiError::internal("the reranker scored no document"))
        })
        .await?;
        scores.extend(scored);
    }
    Ok(scores)
}

/// Computes the cosine of the query's vector with that of each document.
async fn cosines(
    (app, call, context, owner): Asked<'_>,
    query: String,
    documents: &Arc<Vec<String>>,
) -> Result<Vec<f32>, ApiError> {
    let (counting, texts) = (app.clone(), Arc::clone(documents));
    let (query, passages) = off_thread(move || {
        let embedder = counting.engine.embedder();
        let texts = Vec::clone(&texts);
        Ok((Passages::new(embedder, vec![query]), Passages::new(embedder, texts)))
    })
    .await?;
    let model = app.engine.models().current();
    let query = vectors(app, call, context, owner, model, query, Role::Query).await?.remove(0);
    let of_documents = vectors(app, call, context, owner, model, passages, Role::Document).await?;
    let cosine = |vector: &Vec<f32>| settle(vector.iter().zip(&query).map(|(a, b)| a * b).sum());
    Ok(of_documents.iter().map(cosine).collect())
}
