//! File batches: several files added to a vector store in one request, each independently.
//!
//! A file that cannot be added counts as failed, without affecting the others. A batch is stored as
//! a list of ids with the reasons of such failures. The state of all other files is that of their
//! sources, so a file deleted since then counts as cancelled. Cancelling a batch deletes the files
//! that have not been processed yet.

use crate::app::{App, blocking, degraded};
use crate::dto::v1::pages::{Cursor, Page};
use crate::dto::v1::store_files::{
    ChunkingView, CreateBatch, FileBatchView, LastError, ListBatchFiles, OneBatch, StoreFileView,
};
use crate::dto::v1::vector_stores::FileCounts;
use crate::error::{ApiError, Condition, Location};
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::upload::is_passing;
use crate::routes::v1::store_files::{existing, take_in, view};
use crate::routes::v1::store_scope::{opened, scope_of};
use crate::routes::{Group, Route};
use lodestone_catalog::{BatchFile, FileBatch, FileProblem};
use lodestone_engine::TenantAccess;
use lodestone_types::{Metadata, Role, SourceId, TenantMode};

/// Returns the file batch operations.
pub(super) fn routes() -> Vec<Route<App>> {
    const ALL: &str = "/v1/vector_stores/{vector_store_id}/file_batches";
    const ONE: &str = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}";
    const CANCEL: &str = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel";
    const FILES: &str = "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files";
    let (group, read, write) = (Group::OpenAi, Role::Read, Role::Write);
    vec![
        Route::<App>::post(ALL, group, write, "Add several files to a vector store")
            .queued()
            .handle(blocking(create)),
        Route::<App>::get(ONE, group, read, "Look up a batch of files")
            .at_writer()
            .handle(blocking(get)),
        Route::<App>::post(CANCEL, group, write, "Cancel the remaining files of a batch")
            .deletes()
            .handle(blocking(cancel)),
        Route::<App>::get(FILES, group, read, "List the files of a batch")
            .at_writer()
            .handle(blocking(list)),
    ]
}

fn create(app: &App, call: &Call, request: CreateBatch) -> Result<Bare<FileBatchView>, ApiError> {
    let CreateBatch { store, files } = request;
    let scope = scope_of(app, call, &store)?;
    let files = existing(app, call, &scope.tenant, files)?;
    let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
    let (mut taken, mut passing) = (Vec::new(), None);
    for (file, attributes) in files {
        let id = file.id.to_string();
        let problem = match take_in(app, call, &access, &file, attributes) {
            Ok(()) => None,
            Err(error) => {
                let (code, message) = (code_of(&error).to_owned(), error.message().to_owned());
                passing = passing.or(Some(error).filter(is_passing));
                Some(FileProblem { code, message })
            }
        };
        taken.push(BatchFile { id, problem });
    }
    if let Some(error) = passing.filter(|_| taken.iter().all(|file| file.problem.is_some())) {
        // Nothing was added, and a retry may succeed.
        return Err(error);
    }
    let created_at = app.engine.clock().now();
    let id = app.engine.ids().wire_id("vsfb_", created_at);
    let batch = FileBatch { id, created_at, is_canceled: false, files: taken };
    app.engine.add_file_batch(&access, batch.clone())?;
    shown(app, &access, &batch)
}

/// Maps a refusal to OpenAI's error codes.
fn code_of(error: &ApiError) -> &'static str {
    match error.condition() {
        _ if error.reason() == "unsupported_file_format" => "unsupported_file",
        Condition::Invalid | Condition::TooLarge | Condition::SourceNotFound => "invalid_file",
        _ => "server_error",
    }
}

/// Looks up the batch that a request names.
fn named(app: &App, call: &Call, batch: &OneBatch) -> Result<(TenantAccess, FileBatch), ApiError> {
    let access = opened(app, call, &batch.store)?;
    let found = app.engine.file_batch(&access, &batch.id)?.ok_or_else(|| {
        let message = "the batch does not exist in this vector store";
        let error = ApiError::new(Condition::SourceNotFound, "file_batch_not_found", message);
        error.at(Location::Path, "batch_id")
    })?;
    Ok((access, found))
}

fn get(app: &App, call: &Call, request: OneBatch) -> Result<Bare<FileBatchView>, ApiError> {
    let (access, batch) = named(app, call, &request)?;
    shown(app, &access, &batch)
}

fn cancel(app: &App, call: &Call, request: OneBatch) -> Result<Bare<FileBatchView>, ApiError> {
    let (access, batch) = named(app, call, &request)?;
    let mut waiting = Vec::new();
    for file in batch.files.iter().filter(|file| file.problem.is_none()) {
        let Ok(id) = SourceId::parse(&file.id) else { continue };
        let found = app.engine.source(&access, &id)?;
        if found.is_some_and(|found| !found.status.is_settled() && !found.is_searchable) {
            waiting.push(id);
        }
    }
    let deleted = app.engine.delete_sources(&access, &waiting)?.deleted.len();
    call.tell_subject(format!("{deleted} sources of {}", access.tenant.collection));
    app.engine.cancel_file_batch(&access, &batch.id)?;
    get(app, call, request)
}

fn list(
    app: &App,
    call: &Call,
    request: ListBatchFiles,
) -> Result<Bare<Page<StoreFileView>>, ApiError> {
    let ListBatchFiles { batch, filter, page } = request;
    let (access, batch) = named(app, call, &batch)?;
    let mut views = views(app, &access, &batch)?;
    if !page.is_ascending {
        views.reverse();
    }
    let at = |cursor: &Cursor, id: &str| {
        views.iter().position(|file| file.id == id).ok_or_else(|| cursor.unknown())
    };
    let (from, to) = match &page.cursor {
        None => (0, views.len()),
        Some(cursor @ Cursor::After(id)) => (at(cursor, id)? + 1, views.len()),
        Some(cursor @ Cursor::Before(id)) => (0, at(cursor, id)?),
    };
    views.truncate(to);
    let mut views: Vec<StoreFileView> =
        views.drain(from..).filter(|file| filter.is_none_or(|word| word == file.status)).collect();
    let more = views.len().saturating_sub(page.limit);
    match &page.cursor {
        Some(Cursor::Before(_)) => drop(views.drain(..more)),
        _ => views.truncate(page.limit),
    }
    let body = Page::of(views, more > 0, |file: &StoreFileView| &file.id);
    Ok(Bare { degraded: degraded(&access), ..Bare::new(body) })
}

/// Returns the files of a batch in the order of its request.
fn views(
    app: &App,
    access: &TenantAccess,
    batch: &FileBatch,
) -> Result<Vec<StoreFileView>, ApiError> {
    let absent = |file: &BatchFile| {
        let last_error = file.problem.as_ref().map(|problem| LastError {
            code: match problem.code.as_str() {
                "unsupported_file" => "unsupported_file",
                "invalid_file" => "invalid_file",
                _ => "server_error",
            },
            message: problem.message.clone(),
        });
        StoreFileView {
            id: file.id.clone(),
            object: "vector_store.file",
            usage_bytes: 0,
            created_at: batch.created_at.0 / 1000,
            vector_store_id: access.sub_tenant.to_string(),
            status: if last_error.is_some() { "failed" } else { "cancelled" },
            last_error,
            chunking_strategy: ChunkingView::own(),
            attributes: Metadata::new(),
        }
    };
    let mut views = Vec::with_capacity(batch.files.len());
    for file in &batch.files {
        let found = match (&file.problem, SourceId::parse(&file.id)) {
            (None, Ok(id)) => app.engine.source(access, &id)?,
            _ => None,
        };
        views.push(found.map_or_else(|| absent(file), |found| view(access, &found)));
    }
    Ok(views)
}

fn shown(
    app: &App,
    access: &TenantAccess,
    batch: &FileBatch,
) -> Result<Bare<FileBatchView>, ApiError> {
    let mut counts = FileCounts { total: batch.files.len() as u64, ..FileCounts::default() };
    for file in views(app, access, batch)? {
        *match file.status {
            "in_progress" => &mut counts.in_progress,
            "completed" => &mut counts.completed,
            "failed" => &mut counts.failed,
            _ => &mut counts.cancelled,
        } += 1;
    }
    let status = match counts {
        _ if batch.is_canceled => "cancelled",
        FileCounts { in_progress: 1.., .. } => "in_progress",
        FileCounts { failed, total, .. } if failed == total => "failed",
        _ => "completed",
    };
    let body = FileBatchView {
        id: batch.id.clone(),
        object: "vector_store.files_batch",
        created_at: batch.created_at.0 / 1000,
        vector_store_id: access.sub_tenant.to_string(),
        status,
        file_counts: counts,
    };
    Ok(Bare { degraded: degraded(access), ..Bare::new(body) })
}
