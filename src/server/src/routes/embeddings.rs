//! Client-supplied vectors: upload, update, deletion, searches (docs/api.md, "Your own vectors").

use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::app::{App, blocking, degraded, lookup_error, searching};
use crate::dto::embeddings::{
    DeletedEmbeddings, EmbeddingHits, EmbeddingPage, ListedVector, NamedChunks,
    RetrievedEmbeddings, ScoredChunk, ScrollEmbeddings, SearchEmbeddings, UpdateEmbeddings,
    UpdatedEmbeddings, UploadEmbeddings, UploadedEmbeddings,
};
use crate::dto::upload::Status;
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::{Call, Vectors};
use crate::routes::once::{Once, once};
use crate::routes::search_warnings::warnings_of;
use crate::routes::{Group, Route};
use lodestone_engine::ingest::NewVectors;
use lodestone_engine::query::{QueryError, StoredVector, VectorHit, VectorScroll, VectorSearch};
use lodestone_engine::{EngineError, TenantAccess};
use lodestone_types::{RequestContext, Role, TenantMode, derived_chunk_id, limits};

/// Name of the body member that holds a filter.
const FILTER: &str = "filter";
const MODE: Option<TenantMode> = Some(TenantMode::EMBEDDINGS);

/// Returns the client vector operations.
pub fn routes() -> Vec<Route<App>> {
    const GROUP: Group = Group::Embeddings;
    vec![
        Route::<App>::post(
            "/upload/upload_embeddings",
            GROUP,
            Role::Write,
            "Store a batch of vectors, searchable when the call returns",
        )
        .json_or_npy(limits::BODY_BYTES_MAX_VECTORS)
        .handle(blocking(upload)),
        Route::<App>::patch(
            "/upload/update_embeddings",
            GROUP,
            Role::Write,
            "Replace vectors of one batch atomically",
        )
        .json(limits::BODY_BYTES_MAX_VECTORS)
        .handle(blocking(update)),
        Route::<App>::delete(
            "/embeddings/delete",
            GROUP,
            Role::Write,
            "Delete vectors by chunk id in one step",
        )
        .handle(blocking(delete)),
        Route::<App>::post(
            "/embeddings/search",
            GROUP,
            Role::Read,
            "Find the stored vectors nearest to one or more query vectors",
        )
        .handle(searching(search)),
        Route::<App>::post(
            "/embeddings/scroll",
            GROUP,
            Role::Read,
            "List stored vectors in pages, each exactly once",
        )
        .handle(searching(scroll)),
        Route::<App>::post(
            "/embeddings/retrieve_by_ids",
            GROUP,
            Role::Read,
            "Get stored vectors by chunk id, exactly as uploaded",
        )
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
        let UploadEmbeddings { vectors, ids, metadata, .. } = input;
        let given = ids.clone();
        let new = NewVectors { rows: rows(&vectors), ids, metadata };
        let accepted = app.engine.upload_vectors(&access, batch, new)?;
        let batch = accepted.batch;
        let message = match accepted.overwritten {
            true => "embeddings stored; existing batch was overwritten",
            false => "embeddings stored",
        };
        let body = UploadedEmbeddings {
            file_id: batch.to_string(),
            message: message.to_owned(),
            success: true,
            chunk_ids: match given {
                Some(ids) => ids.iter().map(ToString::to_string).collect(),
                None => (0..accepted.rows as u32)
                    .map(|index| derived_chunk_id(batch.as_str(), index))
                    .collect(),
            },
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
    let vectors = input.vectors;
    let named: Vec<(String, Vec<f32>)> =
        vectors.names.iter().cloned().zip(rows(&vectors)).collect();
    let updated = app.engine.update_vectors(&access, &named);
    let batch_id = updated.map_err(|error| lookup_error(&access, error))?;
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
    let ids = each_once(input.chunk_ids);
    let deleted = app.engine.delete_vectors(&access, &ids)?;
    let total_deleted = deleted.iter().filter(|was_there| **was_there).count();
    call.tell_subject(format!("{total_deleted} vectors of {}", access.tenant.collection));
    let message = match total_deleted {
        0 => "nothing was deleted: none of the chunk ids exists",
        _ => "embeddings deleted",
    };
    let body = DeletedEmbeddings {
        total_deleted,
        status: ids.into_iter().zip(deleted).collect(),
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
    let SearchEmbeddings { queries, max_chunks, filter, parts, .. } = input;
    let search = VectorSearch { queries: rows(&queries), max_chunks, filter, parts };
    let found = app.engine.nearest_vectors(&access, &search)?;
    let scored = |VectorHit { found, score }| {
        let StoredVector { chunk_id, metadata, vector, .. } = found;
        ScoredChunk { chunk_id, score, metadata, embedding: vector }
    };
    let results = found.into_iter().map(|hits| hits.into_iter().map(scored).collect()).collect();
    let mut hits = EmbeddingHits::merge(results, max_chunks);
    hits.warnings =
        warnings_of(app, &access, (FILTER, &search.filter.into()), hits.chunk_ids.len());
    Ok(Json::new(hits).with_degraded(degraded(&access)))
}

fn scroll(
    app: &App,
    call: &Call,
    context: &RequestContext,
    input: ScrollEmbeddings,
) -> Result<Json<EmbeddingPage>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?.within(context);
    let ScrollEmbeddings { filter, limit, cursor, parts, .. } = input;
    let after = cursor.filter(|cursor| !cursor.is_empty());
    let after = after.map(|cursor| read_cursor(&access, &cursor)).transpose()?;
    let scroll = VectorScroll { filter, after, limit, parts };
    let page = app.engine.scroll_vectors(&access, &scroll)?;
    let last = page.vectors.last().filter(|_| page.has_more);
    let next_cursor = last.map(|last| write_cursor(&access, &last.batch, last.index));
    let listed = |stored: StoredVector| {
        let StoredVector { chunk_id, batch, metadata, vector, .. } = stored;
        ListedVector { chunk_id, file_id: batch, metadata, embedding: vector }
    };
    let chunks: Vec<ListedVector> = page.vectors.into_iter().map(listed).collect();
    let message = format!("{} vectors listed", chunks.len());
    let warnings = warnings_of(app, &access, (FILTER, &scroll.filter.into()), chunks.len());
    let body = EmbeddingPage { chunks, next_cursor, success: true, message, warnings };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

/// Encodes a cursor for the end of a page, with a check that binds it to its tenant and sub-tenant.
fn write_cursor(access: &TenantAccess, batch: &str, index: u32) -> String {
    let end = (batch, index, cursor_check(access, batch, index));
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&end).expect("texts and numbers always print"))
}

/// Computes the check of a cursor. Collections have random ids that no response reveals, so only
/// this server can compute it.
fn cursor_check(access: &TenantAccess, batch: &str, index: u32) -> String {
    let collection = access.tenant.collection.to_string();
    let bound = (collection, access.sub_tenant.as_str(), batch, index);
    let bytes = serde_json::to_vec(&bound).expect("texts and numbers always print");
    URL_SAFE_NO_PAD.encode(&Sha256::digest(bytes)[..16])
}

fn read_cursor(access: &TenantAccess, cursor: &str) -> Result<(String, u32), ApiError> {
    let read = || {
        let json = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (batch, index, check): (String, u32, String) = serde_json::from_slice(&json).ok()?;
        (check == cursor_check(access, &batch, index)).then_some((batch, index))
    };
    read().ok_or_else(|| {
        let problem = "must be the next_cursor of a page of this tenant and sub-tenant";
        ApiError::field("invalid_value", Location::Body, "cursor", problem)
    })
}

fn retrieve_by_ids(
    app: &App,
    call: &Call,
    input: NamedChunks,
) -> Result<Json<RetrievedEmbeddings>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, MODE)?;
    let ids = each_once(input.chunk_ids);
    let found = app.engine.vectors_by_id(&access, &ids)?;
    let mut embeddings = BTreeMap::new();
    let mut not_found_chunk_ids = Vec::new();
    for (id, vector) in ids.into_iter().zip(found) {
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

/// Checks the width of vectors. It belongs to the tenant, so a mismatch is an error even in an
/// empty sub-tenant.
fn check_width(access: &TenantAccess, received: usize) -> Result<(), EngineError> {
    match access.tenant.dimension.map(|width| width as usize) {
        Some(expected) if expected != received => {
            Err(QueryError::DimensionMismatch { expected, received }.into())
        }
        _ => Ok(()),
    }
}

/// Removes duplicates from the chunk ids of a request, keeping their order.
fn each_once(chunk_ids: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    chunk_ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}
