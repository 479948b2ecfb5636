//! Client vectors (API 3.1 #10, #11, 3.2 #13, 3.4).

use std::collections::{BTreeMap, HashSet};

use crate::app::{App, blocking, degraded, lookup_error, searching};
use crate::dto::embeddings::{
    DeletedEmbeddings, EmbeddingHits, NamedChunks, RetrievedEmbeddings, ScoredChunk,
    SearchEmbeddings, UpdateEmbeddings, UpdatedEmbeddings, UploadEmbeddings, UploadedEmbeddings,
    chunk_id, split_chunk_id,
};
use crate::dto::upload::Status;
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::{Call, Vectors};
use crate::routes::once::{Once, once};
use crate::routes::{Group, Route};
use lodestone_engine::query::{QueryError, VectorHit};
use lodestone_engine::{EngineError, TenantAccess};
use lodestone_types::{RequestContext, Role, SourceId, TenantMode, limits};

const MODE: Option<TenantMode> = Some(TenantMode::Embeddings);

/// The operations.
pub fn routes() -> Vec<Route<App>> {
    const GROUP: Group = Group::Embeddings;
    vec![
        Route::<App>::post(
            "/upload/upload_embeddings",
            GROUP,
            Role::Write,
            "Store a batch of vectors; they are searchable when the call returns",
        )
        .json(limits::BODY_BYTES_MAX_VECTORS)
        .handle(blocking(upload)),
        Route::<App>::patch(
            "/upload/update_embeddings",
            GROUP,
            Role::Write,
            "Replace vectors of one batch, all or none",
        )
        .json(limits::BODY_BYTES_MAX_VECTORS)
        .handle(blocking(update)),
        Route::<App>::delete(
            "/embeddings/delete",
            GROUP,
            Role::Write,
            "Delete vectors by chunk id, all at once",
        )
        .json(limits::BODY_BYTES_MAX_IDS)
        .handle(blocking(delete)),
        Route::<App>::post(
            "/embeddings/search",
            GROUP,
            Role::Read,
            "Find the stored vectors nearest to one or several query vectors",
        )
        .json(limits::BODY_BYTES_MAX_QUERIES)
        .handle(searching(search)),
        Route::<App>::post(
            "/embeddings/retrieve_by_ids",
            GROUP,
            Role::Read,
            "Get stored vectors by chunk id, bit for bit",
        )
        .json(limits::BODY_BYTES_MAX_IDS)
        .handle(blocking(retrieve_by_ids)),
    ]
}

fn upload(
    app: &App,
    call: &Call,
    input: UploadEmbeddings,
) -> Result<Once<UploadedEmbeddings>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?;
    once(app, call, |ids| {
        let batch = input.file_id.or_else(|| ids.map(|ids| ids.batch()));
        let accepted = app.engine.upload_vectors(&access, batch, rows(&input.vectors))?;
        let batch = accepted.batch;
        let message = match accepted.overwritten {
            true => "embeddings stored; the existing batch was overwritten",
            false => "embeddings stored",
        };
        let body = UploadedEmbeddings {
            file_id: batch.to_string(),
            message: message.to_owned(),
            success: true,
            chunk_ids: (0..accepted.rows as u32).map(|index| chunk_id(&batch, index)).collect(),
            batch_id: batch.to_string(),
            status: Status::Success,
            overwritten: accepted.overwritten,
        };
        Ok(Json::new(body).with_degraded(degraded(&access)))
    })
}

fn update(
    app: &App,
    call: &Call,
    input: UpdateEmbeddings,
) -> Result<Json<UpdatedEmbeddings>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?;
    let UpdateEmbeddings { batch_id, indexes, vectors, .. } = input;
    let by_index: BTreeMap<u32, Vec<f32>> = indexes.into_iter().zip(rows(&vectors)).collect();
    let updated = app.engine.update_vectors(&access, &batch_id, &by_index);
    updated.map_err(|error| lookup_error(&access, error))?;
    let body = UpdatedEmbeddings {
        file_id: batch_id.to_string(),
        message: "embeddings updated".to_owned(),
        success: true,
        batch_id: batch_id.to_string(),
        updated_count: vectors.names.len(),
        chunk_ids: vectors.names,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn delete(app: &App, call: &Call, input: NamedChunks) -> Result<Json<DeletedEmbeddings>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?;
    let named = Named::read(input.chunk_ids);
    let deleted = app.engine.delete_vectors(&access, &named.places)?;
    let status = named.pair(deleted, false);
    let total_deleted = status.iter().filter(|(_, was_there)| *was_there).count();
    let message = match total_deleted {
        0 => "nothing matched: none of the chunk ids exists",
        _ => "embeddings deleted",
    };
    let body = DeletedEmbeddings {
        total_deleted,
        status: status.into_iter().collect(),
        success: true,
        message: message.to_owned(),
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn search(
    app: &App,
    call: &Call,
    context: &RequestContext,
    input: SearchEmbeddings,
) -> Result<Json<EmbeddingHits>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?.within(context);
    check_width(&access, input.queries.dimension)?;
    let queries = rows(&input.queries);
    let found = app.engine.nearest_vectors(&access, &queries, input.max_chunks)?;
    let scored = |hits: Vec<VectorHit>| {
        let hits = hits.into_iter();
        hits.map(|hit| ScoredChunk { chunk_id: hit.chunk_id, score: hit.score }).collect()
    };
    let results = found.into_iter().map(scored).collect();
    let hits = EmbeddingHits::merge(results, input.max_chunks);
    Ok(Json::new(hits).with_degraded(degraded(&access)))
}

fn retrieve_by_ids(
    app: &App,
    call: &Call,
    input: NamedChunks,
) -> Result<Json<RetrievedEmbeddings>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?;
    let named = Named::read(input.chunk_ids);
    let found = app.engine.vectors_by_id(&access, &named.places)?;
    let mut embeddings = BTreeMap::new();
    let mut not_found_chunk_ids = Vec::new();
    for (id, vector) in named.pair(found, None) {
        match vector {
            Some(vector) => drop(embeddings.insert(id, vector)),
            None => not_found_chunk_ids.push(id),
        }
    }
    let message = format!("{} vectors found", embeddings.len());
    let body = RetrievedEmbeddings { embeddings, not_found_chunk_ids, success: true, message };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn rows(vectors: &Vectors) -> Vec<Vec<f32>> {
    vectors.rows().map(<[f32]>::to_vec).collect()
}

/// The width is the tenant's, so a wrong one is an error in an empty sub-tenant too.
fn check_width(access: &TenantAccess, received: usize) -> Result<(), EngineError> {
    match access.tenant.dimension.map(|width| width as usize) {
        Some(expected) if expected != received => {
            Err(QueryError::DimensionMismatch { expected, received }.into())
        }
        _ => Ok(()),
    }
}

/// Chunk ids of a request, each once, with the places that they name.
struct Named {
    /// The ids as sent; `false` for one that names no place, because it breaks the grammar.
    ids: Vec<(String, bool)>,
    /// The places of the others, in the same order.
    places: Vec<(SourceId, u32)>,
}

impl Named {
    fn read(chunk_ids: Vec<String>) -> Self {
        let mut seen = HashSet::new();
        let mut named = Self { ids: Vec::with_capacity(chunk_ids.len()), places: Vec::new() };
        for id in chunk_ids.into_iter().filter(|id| seen.insert(id.clone())) {
            let parts = split_chunk_id(&id);
            let place = parts.and_then(|(batch, row)| Some((SourceId::parse(batch).ok()?, row)));
            named.ids.push((id, place.is_some()));
            named.places.extend(place);
        }
        named
    }

    /// Each id with what was found at its place; `absent` for those that name none.
    fn pair<T: Clone>(self, found: impl IntoIterator<Item = T>, absent: T) -> Vec<(String, T)> {
        let mut found = found.into_iter();
        let mut value_of = |has_place: bool| match has_place {
            true => found.next().unwrap_or_else(|| absent.clone()),
            false => absent.clone(),
        };
        self.ids.into_iter().map(|(id, has_place)| (id, value_of(has_place))).collect()
    }
}
