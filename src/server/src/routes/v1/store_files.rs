//! Files of vector stores: the sources of the sub-tenant, whichever interface they were added by.
//!
//! Adding a file uploads its bytes as a source with the file's id, along the path of every other
//! upload: durable before the response, processed in the background, and replaced if it is added
//! again. Deleting it here deletes that source but keeps the file. Attributes are the metadata of
//! the document. Chunk sizes are fixed by the server, because searches and answers rely on them.

use crate::app::{App, blocking, degraded, lookup_error};
use crate::dto::v1::attributes;
use crate::dto::v1::pages::{Cursor, DeletedObject, Page, PageQuery};
use crate::dto::v1::store_files::{
    AttachFile, ChunkingView, LastError, ListStoreFiles, OneStoreFile, StoreFileContent,
    StoreFileText, StoreFileView, TakenFile, TextPiece, UpdateStoreFile,
};
use crate::error::{ApiError, Condition, Location};
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::route::share_of;
use crate::routes::v1::files::file_not_found;
use crate::routes::v1::store_scope::{opened, scope_of};
use crate::routes::{Group, Route};
use lodestone_catalog::StoredFile;
use lodestone_engine::ingest::Amendment;
use lodestone_engine::query::SourceView;
use lodestone_engine::{EngineError, Span, TenantAccess};
use lodestone_types::{
    JobErrorCode, JobStatus, Metadata, Role, SourceId, TenantId, TenantMode, Timestamp, limits,
};

/// Number of chunks read at a time.
const CHUNKS_AT_ONCE: usize = 1000;

/// Returns the vector store file operations.
pub(super) fn routes() -> Vec<Route<App>> {
    const ALL: &str = "/v1/vector_stores/{vector_store_id}/files";
    const ONE: &str = "/v1/vector_stores/{vector_store_id}/files/{file_id}";
    const TEXT: &str = "/v1/vector_stores/{vector_store_id}/files/{file_id}/content";
    let (group, read, write) = (Group::OpenAi, Role::Read, Role::Write);
    vec![
        Route::<App>::post(ALL, group, write, "Add an uploaded file to a vector store")
            .queued()
            .handle(blocking(attach)),
        Route::<App>::get(ALL, group, read, "List the files of a vector store")
            .at_writer()
            .handle(blocking(list)),
        Route::<App>::get(ONE, group, read, "Look up a file of a vector store")
            .at_writer()
            .handle(blocking(get)),
        Route::<App>::post(ONE, group, write, "Replace the attributes of a file")
            .handle(blocking(update)),
        Route::<App>::delete(
            ONE,
            group,
            write,
            "Remove a file from a vector store without deleting it",
        )
        .handle(blocking(detach)),
        Route::<App>::get(TEXT, group, read, "Get the text of a file of a vector store, in chunks")
            .handle(blocking(content)),
    ]
}

/// Looks up the files of a request; 404 for one that the key cannot reach.
pub(super) fn existing(
    app: &App,
    call: &Call,
    tenant: &TenantId,
    files: Vec<TakenFile>,
) -> Result<Vec<(StoredFile, Metadata)>, ApiError> {
    let grant = call.grant()?;
    let find = |TakenFile { file_id, attributes }| {
        let found = app.engine.file(grant, tenant, &file_id)?;
        Ok((found.ok_or_else(|| file_not_found(Location::Body))?, attributes))
    };
    files.into_iter().map(find).collect()
}

/// Adds a file to a vector store. Its bytes are held in memory once, which is reserved first.
pub(super) fn take_in(
    app: &App,
    call: &Call,
    access: &TenantAccess,
    file: &StoredFile,
    attributes: Metadata,
) -> Result<(), ApiError> {
    let _memory = share_of(file.size_bytes, &call.gate)?;
    match app.engine.take_in(access, file, attributes) {
        Err(EngineError::SourceNotFound { .. }) => Err(file_not_found(Location::Body)),
        taken => Ok(taken.map(|_| ())?),
    }
}

fn attach(app: &App, call: &Call, request: AttachFile) -> Result<Bare<StoreFileView>, ApiError> {
    let AttachFile { store, file } = request;
    let scope = scope_of(app, call, &store)?;
    let id = file.file_id.clone();
    let files = existing(app, call, &scope.tenant, vec![file])?;
    let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
    for (file, attributes) in files {
        take_in(app, call, &access, &file, attributes)?;
    }
    seen(app, &access, &id)
}

fn list(
    app: &App,
    call: &Call,
    request: ListStoreFiles,
) -> Result<Bare<Page<StoreFileView>>, ApiError> {
    let ListStoreFiles { store, filter, page } = request;
    let access = opened(app, call, &store)?;
    let place = place_of(app, &access, &page)?;
    let states: Option<&[JobStatus]> = filter.map(|word| match word {
        "in_progress" => &[JobStatus::Queued, JobStatus::InProgress][..],
        "completed" => &[JobStatus::Success][..],
        "failed" => &[JobStatus::Errored][..],
        // Cancelled files are deleted, so this state never matches.
        _ => &[][..],
    });
    let span = if page.is_backwards() { Span::After(place) } else { Span::Before(place) };
    let found = app.engine.source_page(&access, states, &span, page.limit)?;
    app.engine.let_nodes_see_all()?;
    let mut views: Vec<StoreFileView> =
        found.sources.iter().map(|source| view(&access, source)).collect();
    if page.is_ascending {
        views.reverse();
    }
    let body = Page::of(views, found.has_more, |file: &StoreFileView| &file.id);
    Ok(Bare { degraded: degraded(&access), ..Bare::new(body) })
}

/// Returns the position of the entry at which a page begins or ends.
fn place_of(
    app: &App,
    access: &TenantAccess,
    page: &PageQuery,
) -> Result<Option<(Timestamp, SourceId)>, ApiError> {
    let Some(cursor @ (Cursor::After(id) | Cursor::Before(id))) = &page.cursor else {
        return Ok(None);
    };
    let id = SourceId::parse(id).map_err(|_| cursor.unknown())?;
    let found = app.engine.source(access, &id)?.ok_or_else(|| cursor.unknown())?;
    Ok(Some((found.record.uploaded_at, id)))
}

/// Opens the vector store and parses the file id of a request; the file may not exist.
fn named(
    app: &App,
    call: &Call,
    request: &OneStoreFile,
) -> Result<(TenantAccess, SourceId), ApiError> {
    let access = opened(app, call, &request.store)?;
    let id = SourceId::parse(&request.file_id).map_err(|_| file_not_found(Location::Path))?;
    Ok((access, id))
}

/// Converts the error of a file that was not found, which may be due to damage instead of absence.
fn lacking(access: &TenantAccess, error: EngineError) -> ApiError {
    let error = lookup_error(access, error);
    match error.condition() {
        Condition::SourceNotFound => file_not_found(Location::Path),
        _ => error,
    }
}

/// Returns the current state of a file.
fn seen(app: &App, access: &TenantAccess, id: &SourceId) -> Result<Bare<StoreFileView>, ApiError> {
    let found = app
        .engine
        .source(access, id)?
        .ok_or_else(|| lacking(access, EngineError::SourceNotFound { source_id: id.clone() }))?;
    Ok(Bare { degraded: degraded(access), ..Bare::new(view(access, &found)) })
}

fn get(app: &App, call: &Call, request: OneStoreFile) -> Result<Bare<StoreFileView>, ApiError> {
    let (access, id) = named(app, call, &request)?;
    seen(app, &access, &id)
}

fn update(
    app: &App,
    call: &Call,
    request: UpdateStoreFile,
) -> Result<Bare<StoreFileView>, ApiError> {
    let UpdateStoreFile { file, attributes } = request;
    let (access, id) = named(app, call, &file)?;
    if attributes.is_some() {
        let amendment = Amendment { tenant_metadata: None, document_metadata: attributes };
        let amended = app.engine.amend(&access, &id, amendment);
        amended.map_err(|error| lacking(&access, error))?;
    }
    seen(app, &access, &id)
}

fn detach(app: &App, call: &Call, request: OneStoreFile) -> Result<Bare<DeletedObject>, ApiError> {
    let (access, id) = named(app, call, &request)?;
    let found = app.engine.delete_sources(&access, std::slice::from_ref(&id))?;
    let deleted = found.deleted.len();
    call.tell_subject(format!("{deleted} sources of {}", access.tenant.collection));
    if found.deleted.is_empty() {
        return Err(lacking(&access, EngineError::SourceNotFound { source_id: id }));
    }
    Ok(Bare::new(DeletedObject::new(request.file_id, "vector_store.file.deleted")))
}

/// Returns as many chunks as fit into one response, whose memory is reserved first.
fn content(
    app: &App,
    call: &Call,
    request: StoreFileContent,
) -> Result<Bare<StoreFileText>, ApiError> {
    let StoreFileContent { file, page } = request;
    let (access, id) = named(app, call, &file)?;
    let held = share_of(limits::STORE_TEXT_BYTES_MAX as u64, &call.gate)?;
    let (mut data, mut bytes, mut at) = (Vec::new(), 0, page);
    let next_page = loop {
        let read = app.engine.passages(&access, &id, None, at..at + CHUNKS_AT_ONCE);
        let read = read.map_err(|error| lacking(&access, error))?;
        if read.passages.is_empty() {
            break None;
        }
        at += read.passages.len();
        for passage in read.passages {
            bytes += passage.text.len();
            data.push(TextPiece::new(passage.text));
        }
        if at < read.total && bytes > limits::STORE_TEXT_BYTES_MAX / 2 {
            break Some(at.to_string());
        }
    };
    let object = "vector_store.file_content.page";
    let body = StoreFileText { object, data, has_more: next_page.is_some(), next_page };
    Ok(Bare { degraded: degraded(&access), held: Some(held), ..Bare::new(body) })
}

/// Converts a source into a file of its vector store.
pub(super) fn view(access: &TenantAccess, source: &SourceView) -> StoreFileView {
    let record = &source.record;
    let (status, last_error) = match source.status {
        JobStatus::Queued | JobStatus::InProgress => ("in_progress", None),
        JobStatus::Success => ("completed", None),
        JobStatus::Errored => {
            let code = source.error_code.map_or("server_error", code_of);
            let message = match source.message.as_str() {
                "" => "processing failed".to_owned(),
                message => message.to_owned(),
            };
            ("failed", Some(LastError { code, message }))
        }
    };
    StoreFileView {
        id: record.id.to_string(),
        object: "vector_store.file",
        usage_bytes: record.size_bytes,
        created_at: record.uploaded_at.0 / 1000,
        vector_store_id: access.sub_tenant.to_string(),
        status,
        last_error,
        chunking_strategy: ChunkingView::own(),
        attributes: attributes::of_document(&record.document_metadata),
    }
}

/// Maps a processing error to OpenAI's error codes.
fn code_of(error_code: JobErrorCode) -> &'static str {
    match error_code {
        JobErrorCode::EncryptedFile
        | JobErrorCode::CorruptFile
        | JobErrorCode::TooLarge
        | JobErrorCode::NoText => "invalid_file",
        JobErrorCode::FetchFailed
        | JobErrorCode::UrlBlocked
        | JobErrorCode::EmbeddingFailed
        | JobErrorCode::Timeout
        | JobErrorCode::TenantLimit
        | JobErrorCode::Internal => "server_error",
    }
}
