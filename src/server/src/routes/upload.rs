//! Uploads of single texts and documents: accepting, replacing, metadata and processing state.

use std::time::Duration;

use tokio::time::Instant;

use crate::app::{App, Handling, blocking, degraded, lookup_error};
use crate::dto::upload::{
    Accepted, ProcessingStatus, Status, UpdateDocument, UpdateMetadata, UpdateText, UploadDocument,
    UploadText, VerifyProcessing, Warning, version_name,
};
use crate::error::{ApiError, Condition};
use crate::listen::{Stop, reached};
use crate::reply::Json;
use crate::request::{Call, UploadedFile};
use crate::routes::once::{Once, once};
use crate::routes::{Group, Route, off_thread};
use lodestone_catalog::job::MetadataChange;
use lodestone_engine::ingest::{Amendment, Submission};
use lodestone_engine::{EngineError, FoundStatus, TenantAccess};
use lodestone_types::{
    JobStatus, Metadata, Origin, Role, Scope, SourceId, SourceKind, TenantMode, limits,
};

/// Interval at which a waiting request checks for changes; each check is one atomic load.
const TICK: Duration = Duration::from_millis(20);
/// Interval at which the state is looked up in any case, because the deletion of a whole sub-tenant
/// is not counted as a change.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Media type of the original of an uploaded text.
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// Returns the upload operations.
pub fn routes() -> Vec<Route<App>> {
    let (text, file) = (limits::BODY_BYTES_MAX_TEXT, limits::FILE_BYTES_MAX);
    let (group, write) = (Group::Upload, Role::Write);
    vec![
        Route::<App>::post("/upload/upload_text", group, write, "Upload a text")
            .json(text)
            .handle(blocking(upload_text)),
        Route::<App>::patch("/upload/update_text", group, write, "Replace or create a text")
            .json(text)
            .handle(blocking(update_text)),
        Route::<App>::post("/upload/upload_document", group, write, "Upload a document")
            .multipart(file)
            .handle(blocking(upload_document)),
        Route::<App>::patch("/upload/update_document", group, write, "Replace a document")
            .multipart(file)
            .handle(blocking(update_document)),
        Route::<App>::patch(
            "/upload/update_metadata", group, write, "Replace the metadata of a source",
        )
        .visible_at_once()
        .handle(blocking(update_metadata)),
        Route::<App>::post(
            "/upload/verify_processing",
            group,
            Role::Read,
            "Get the processing state of a source",
        )
        .at_writer()
        .handle(verify_processing),
        Route::<App>::get(
            "/upload/verify_processing",
            group,
            Role::Read,
            "Get the processing state of a source",
        )
        .at_writer()
        .handle(verify_processing),
    ]
}

/// Metadata of an upload, which replaces the stored map; if absent, the map becomes empty.
pub(super) fn replaced(map: Option<Metadata>) -> MetadataChange {
    MetadataChange::Replace(map.unwrap_or_default())
}

/// Metadata of an update, which replaces the stored map; if absent, the map is kept.
pub(super) fn kept(map: Option<Metadata>) -> MetadataChange {
    map.map_or(MetadataChange::Keep, MetadataChange::Replace)
}

/// Builds the submission of a text.
pub(super) fn text_submission(
    source: Option<SourceId>,
    (origin, content): (Origin, String),
    tenant_metadata: MetadataChange,
    document_metadata: MetadataChange,
) -> Submission {
    Submission {
        source,
        kind: SourceKind::Text,
        content: content.into_bytes().into(),
        filename: String::new(),
        content_type: Some(TEXT_TYPE.to_owned()),
        tenant_metadata,
        document_metadata,
        origin,
    }
}

/// Builds the submission of a document.
pub(super) fn file_submission(
    source: Option<SourceId>,
    (origin, file): (Origin, UploadedFile),
    tenant_metadata: MetadataChange,
    document_metadata: MetadataChange,
) -> Submission {
    let UploadedFile { filename, content_type, bytes, is_too_large: _ } = file;
    Submission {
        source,
        kind: SourceKind::File,
        content: bytes,
        filename,
        content_type: Some(content_type).filter(|word| !word.is_empty()),
        tenant_metadata,
        document_metadata,
        origin,
    }
}

fn upload_text(app: &App, call: &Call, request: UploadText) -> Result<Once<Accepted>, ApiError> {
    let UploadText { scope, content, file_id, tenant_metadata, document_metadata, origin } =
        request;
    let (tenant, document) = (replaced(tenant_metadata), replaced(document_metadata));
    upload(app, call, &scope, text_submission(file_id, (origin, content), tenant, document))
}

fn upload_document(
    app: &App,
    call: &Call,
    request: UploadDocument,
) -> Result<Once<Accepted>, ApiError> {
    let UploadDocument { scope, file, file_id, tenant_metadata, document_metadata, origin } =
        request;
    let (tenant, document) = (replaced(tenant_metadata), replaced(document_metadata));
    upload(app, call, &scope, file_submission(file_id, (origin, file), tenant, document))
}

fn update_text(app: &App, call: &Call, request: UpdateText) -> Result<Json<Accepted>, ApiError> {
    let UpdateText { scope, source_id, content, tenant_metadata, document_metadata, origin } =
        request;
    let (tenant, document) = (kept(tenant_metadata), kept(document_metadata));
    update(app, call, &scope, text_submission(Some(source_id), (origin, content), tenant, document))
}

fn update_document(
    app: &App,
    call: &Call,
    request: UpdateDocument,
) -> Result<Json<Accepted>, ApiError> {
    let UpdateDocument { scope, source_id, file, tenant_metadata, document_metadata, origin } =
        request;
    let (tenant, document) = (kept(tenant_metadata), kept(document_metadata));
    update(app, call, &scope, file_submission(Some(source_id), (origin, file), tenant, document))
}

pub(super) fn update(
    app: &App,
    call: &Call,
    scope: &Scope,
    submission: Submission,
) -> Result<Json<Accepted>, ApiError> {
    // Checked before the tenant is opened, so that a refused upload creates no tenant.
    app.engine.check_content(&submission)?;
    let access = app.engine.open_or_create(call.grant()?, scope)?;
    submit(app, &access, submission)
}

pub(super) fn upload(
    app: &App,
    call: &Call,
    scope: &Scope,
    mut submission: Submission,
) -> Result<Once<Accepted>, ApiError> {
    app.engine.check_content(&submission)?;
    let access = app.engine.open_or_create(call.grant()?, scope)?;
    if call.idempotency.is_some() {
        // Checked before the key is recorded: an invalid request does not consume its idempotency
        // key.
        app.engine.check(&access, &submission)?;
    }
    once(app, call, |ids| {
        if submission.source.is_none() {
            submission.source = ids.map(|ids| ids.source(0));
        }
        submit(app, &access, submission)
    })
}

fn submit(
    app: &App,
    access: &TenantAccess,
    submission: Submission,
) -> Result<Json<Accepted>, ApiError> {
    let accepted = app.engine.submit(access, submission)?;
    let message = match accepted.overwritten {
        true => {
            "accepted for processing; existing content was overwritten and stays searchable until \
             the new version is ready"
        }
        false => "accepted for processing",
    };
    Ok(Json::new(Accepted {
        file_id: accepted.source.to_string(),
        message: message.to_owned(),
        success: true,
        status: Status::Queued,
        overwritten: accepted.overwritten,
    }))
}

fn update_metadata(
    app: &App,
    call: &Call,
    request: UpdateMetadata,
) -> Result<Json<Accepted>, ApiError> {
    let UpdateMetadata { scope, source_id, tenant_metadata, document_metadata } = request;
    let access = app.engine.open(call.grant()?, &scope, Some(TenantMode::Standard))?;
    let is_changed = tenant_metadata.is_some() || document_metadata.is_some();
    if is_changed {
        let amendment = Amendment { tenant_metadata, document_metadata };
        let amended = app.engine.amend(&access, &source_id, amendment);
        amended.map_err(|error| lookup_error(&access, error))?;
    }
    let view = app.engine.source(&access, &source_id)?.ok_or_else(|| {
        let source_id = source_id.clone();
        lookup_error(&access, EngineError::SourceNotFound { source_id })
    })?;
    let message = match is_changed {
        true => "metadata updated",
        false => "nothing to update: neither tenant_metadata nor document_metadata was given",
    };
    let accepted = Accepted {
        file_id: source_id.to_string(),
        message: message.to_owned(),
        success: true,
        status: view.status.into(),
        overwritten: false,
    };
    Ok(Json::new(accepted).with_degraded(degraded(&access)))
}

/// Reports the processing state, at once or when processing ends. A waiting request holds no slot,
/// and looks again when a job of its source changes.
fn verify_processing(
    app: App,
    call: Call,
    request: VerifyProcessing,
) -> Handling<Json<ProcessingStatus>> {
    Box::pin(async move {
        let deadline = Instant::now() + request.wait;
        loop {
            let seen = app.engine.job_changes(&request.file_id);
            let (asked, caller, question) = (app.clone(), call.clone(), request.clone());
            let reply = off_thread(move || processing(&asked, &caller, question)).await?;
            if reply.body.status.is_settled() || Instant::now() >= deadline {
                return Ok(reply);
            }
            call.give_back();
            let mut stop = app.stop.clone();
            tokio::select! {
                () = next_change(&app, &request.file_id, seen, deadline) => {}
                () = reached(&mut stop, Stop::Drain) => return Ok(reply),
            }
        }
    })
}

/// Resolves when a job of the source may have changed state, at the latest after [`LOOK_AGAIN`].
async fn next_change(app: &App, source: &SourceId, seen: u64, deadline: Instant) {
    let until = deadline.min(Instant::now() + LOOK_AGAIN);
    while app.engine.job_changes(source) == seen && Instant::now() < until {
        tokio::time::sleep(TICK).await;
    }
}

fn processing(
    app: &App,
    call: &Call,
    request: VerifyProcessing,
) -> Result<Json<ProcessingStatus>, ApiError> {
    let VerifyProcessing { tenant, sub_tenant, file_id, wait: _ } = request;
    let found = app.engine.status(call.grant()?, tenant.as_ref(), sub_tenant.as_ref(), &file_id)?;
    let FoundStatus { access, view } = found;
    let view = view.ok_or_else(|| {
        let source_id = file_id.clone();
        lookup_error(&access, EngineError::SourceNotFound { source_id })
    })?;
    let status = Status::from(view.status);
    let needs_model = !view.status.is_settled() && view.record.kind != SourceKind::Embeddings;
    let waits = if needs_model { app.engine.model_failure(&access) } else { None };
    let message = match view.status {
        JobStatus::Errored if view.message.is_empty() => "processing failed".to_owned(),
        JobStatus::Errored => view.message,
        JobStatus::Queued | JobStatus::InProgress if let Some(reason) = waits => reason,
        _ => "Processing status retrieved successfully".to_owned(),
    };
    let processing = ProcessingStatus {
        file_id: file_id.to_string(),
        status,
        indexing_status: status,
        success: true,
        message,
        error_code: view.error_code.map_or("", |code| code.as_str()).to_owned(),
        tenant_id: access.tenant.id.to_string(),
        sub_tenant_id: access.sub_tenant.to_string(),
        updated_at: view.updated_at.to_string(),
        version: version_name(view.version),
        stage: view.progress.map(|progress| progress.stage.as_str().to_owned()),
        progress: view.progress.and_then(|progress| progress.share()),
        searchable: view.is_searchable,
        chunk_count: view.chunks,
        source_time: view.record.detail.source_time.map(|time| time.to_string()),
        language: Some(view.record.detail.language.clone()).filter(|tag| !tag.is_empty()),
        warnings: match view.status {
            JobStatus::Success => Warning::of(&view.record),
            _ => Vec::new(),
        },
    };
    Ok(Json::new(processing).with_degraded(degraded(&access)))
}

/// Whether an upload failed for a temporary reason, so that retrying may succeed.
pub(super) fn is_passing(error: &ApiError) -> bool {
    matches!(error.condition(), Condition::Unavailable | Condition::Internal)
}
