//! Operations that list, look up and delete sources.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::app::{App, blocking, degraded, lookup_error};
use crate::dto::passages::{ChunkList, ListChunks, ListedChunk};
use crate::dto::source_maps::SourceMap;
use crate::dto::sources::{
    DeleteSources, DeletedSources, ListSources, Source, SourceList, SourcesById, SourcesFound,
};
use crate::dto::upload::{Warning, version_name};
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_engine::query::SourceView;
use lodestone_types::{JobStatus, Role, SourceId, TenantMode, Timestamp};

/// Returns the source operations.
pub fn routes() -> Vec<Route<App>> {
    let delete = |path| {
        Route::<App>::delete(path, Group::Deletion, Role::Write, "Delete sources")
            .handle(blocking(delete_sources))
    };
    let (group, read) = (Group::Listing, Role::Read);
    vec![
        delete("/upload/delete_source"),
        delete("/delete_source"),
        Route::<App>::get("/list/sources", group, read, "List sources, newest first")
            .handle(blocking(list_sources)),
        Route::<App>::post("/list/sources_by_id", group, read, "Get sources by id")
            .handle(blocking(sources_by_id)),
        Route::<App>::post("/list/chunks", group, read, "List the chunks of a source in order")
            .handle(blocking(list_chunks)),
    ]
}

fn list_chunks(app: &App, call: &Call, request: ListChunks) -> Result<Json<ChunkList>, ApiError> {
    let ListChunks { scope, file_id, page, offset, limit } = request;
    let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
    let access = access.within(&call.context());
    let range = offset..offset + limit;
    let found = app.engine.passages(&access, &file_id, page, range);
    let found = found.map_err(|error| lookup_error(&access, error))?;
    let end = offset + found.passages.len();
    let body = ChunkList {
        file_id: found.source.id.to_string(),
        title: found.source.title,
        version: version_name(found.source.version),
        next_offset: (end > offset && end < found.total).then_some(end),
        chunks: found.passages.into_iter().map(ListedChunk::from).collect(),
        total: found.total,
        success: true,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn delete_sources(
    app: &App,
    call: &Call,
    request: DeleteSources,
) -> Result<Json<DeletedSources>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, None)?;
    let found = app.engine.delete_sources(&access, &request.source_ids)?;
    let deleted = found.deleted.len();
    call.tell_subject(format!("{deleted} sources of {}", access.tenant.collection));
    let names = |ids: Vec<SourceId>| ids.iter().map(SourceId::to_string).collect::<Vec<_>>();
    let (deleted, not_found) = (names(found.deleted), names(found.not_found));
    let message = match deleted.is_empty() {
        true => "nothing was deleted: no source matched the given ids",
        false => "Memory deleted successfully",
    };
    let deleted_count = deleted.len();
    let message = message.to_owned();
    let body = DeletedSources { success: true, message, deleted, not_found, deleted_count };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn list_sources(
    app: &App,
    call: &Call,
    request: ListSources,
) -> Result<Json<SourceList>, ApiError> {
    let ListSources { scope, limit, cursor, status } = request;
    let after = cursor.as_deref().map(read_cursor).transpose()?;
    let access = app.engine.open(call.grant()?, &scope, None)?.within(&call.context());
    let page = app.engine.list_sources(&access, status, after, limit)?;
    let next_cursor = page.sources.last().filter(|_| page.has_more).map(write_cursor);
    let body = SourceList {
        sources: page.sources.iter().map(source).collect(),
        success: true,
        message: "Successfully fetched sources".to_owned(),
        total: page.total as usize,
        next_cursor,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn sources_by_id(
    app: &App,
    call: &Call,
    request: SourcesById,
) -> Result<Json<SourcesFound>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, None)?.within(&call.context());
    let (mut sources, mut not_found) = (Vec::new(), Vec::new());
    for id in &request.source_ids {
        match app.engine.source(&access, id)? {
            Some(view) => sources.push(source(&view)),
            None => not_found.push(id.to_string()),
        }
    }
    let message = "Successfully fetched sources".to_owned();
    let body = SourcesFound { sources, success: true, message, not_found };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

/// Converts a source into its response type.
fn source(view: &SourceView) -> Source {
    let record = &*view.record;
    let status = view.status.into();
    Source {
        id: record.id.to_string(),
        title: record.title.clone(),
        kind: record.source_type().to_owned(),
        timestamp: record.uploaded_at.to_string(),
        description: record.description.clone(),
        document_metadata: SourceMap::Document(Arc::clone(&view.record)),
        tenant_metadata: SourceMap::Tenant(Arc::clone(&view.record)),
        status,
        indexing_status: status,
        error_code: view.error_code.map_or("", |code| code.as_str()).to_owned(),
        error_message: match view.status {
            JobStatus::Errored => view.message.clone(),
            _ => String::new(),
        },
        url: record.url.clone(),
        note: record.detail.note.clone(),
        content_type: Some(record.content_type.clone()).filter(|word| !word.is_empty()),
        size_bytes: (!record.raw_key.is_empty()).then_some(record.size_bytes),
        chunk_count: view.chunks,
        version: view.is_searchable.then(|| version_name(record.version)),
        updated_at: view.updated_at.to_string(),
        source_collection: record.detail.collections.clone(),
        meta: record.detail.meta.clone(),
        source_time: record.detail.source_time.map(|time| time.to_string()),
        language: Some(record.detail.language.clone()).filter(|tag| !tag.is_empty()),
        warnings: if view.is_searchable { Warning::of(record) } else { Vec::new() },
    }
}

/// Encodes a cursor from the last source of a page: its upload time and id.
fn write_cursor(view: &SourceView) -> String {
    let last = (view.record.uploaded_at.0, view.record.id.as_str());
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&last).expect("a number and a text always print"))
}

fn read_cursor(cursor: &str) -> Result<(Timestamp, SourceId), ApiError> {
    let read = || {
        let json = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (uploaded_at, id): (u64, String) = serde_json::from_slice(&json).ok()?;
        Some((Timestamp(uploaded_at), SourceId::parse(&id).ok()?))
    };
    read().ok_or_else(|| {
        let problem = "must be the next_cursor of a page";
        ApiError::field("invalid_value", Location::Query, "cursor", problem)
    })
}
