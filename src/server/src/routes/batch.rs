//! Batches of texts, documents or application records. Each item succeeds or fails independently.

use crate::app::{App, blocking};
use crate::dto::apps::UploadAppSources;
use crate::dto::batch::{
    BatchResult, BatchUpdate, BatchUpload, BatchUploadText, FailedItem, FileItem, UploadedItem,
};
use crate::dto::inputs::BatchItem;
use crate::dto::upload::Status;
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::once::{Once, RequestIds, once};
use crate::routes::upload::{file_submission, is_passing, kept, replaced, text_submission};
use crate::routes::{Group, Route};
use lodestone_catalog::job::MetadataChange;
use lodestone_engine::TenantAccess;
use lodestone_engine::ingest::Submission;
use lodestone_types::{Origin, Role, Scope, SourceId, SourceKind, limits};

/// Returns the batch operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, write, bytes) = (Group::Upload, Role::Write, limits::BATCH_BYTES_MAX);
    vec![
        Route::<App>::post("/upload/batch_upload", group, write, "Upload documents")
            .multipart(bytes)
            .handle(blocking(batch_upload)),
        Route::<App>::patch("/upload/batch_update", group, write, "Replace or create documents")
            .multipart(bytes)
            .handle(blocking(batch_update)),
        Route::<App>::post("/upload/batch_upload_text", group, write, "Upload texts")
            .json(limits::BODY_BYTES_MAX_TEXT)
            .handle(blocking(batch_upload_text)),
        Route::<App>::post(
            "/upload/upload_app_sources", group, write, "Upload records of applications",
        )
        .json(limits::BODY_BYTES_MAX_VECTORS)
        .handle(blocking(upload_app_sources)),
    ]
}

/// One item of a batch: its submission, or the reason why it fails.
pub(super) struct Item {
    pub(super) filename: String,
    pub(super) submission: Result<Submission, ApiError>,
}

fn batch_upload(
    app: &App,
    call: &Call,
    request: BatchUpload,
) -> Result<Once<BatchResult>, ApiError> {
    let BatchUpload { scope, items } = request;
    let item = |item: FileItem| Item {
        filename: item.file.filename.clone(),
        submission: item.id.map(|id| {
            let tenant = replaced(item.tenant_metadata);
            file_submission(id, (item.origin, item.file), tenant, replaced(item.document_metadata))
        }),
    };
    upload_all(app, call, &scope, items.into_iter().map(item).collect())
}

fn batch_update(
    app: &App,
    call: &Call,
    request: BatchUpdate,
) -> Result<Json<BatchResult>, ApiError> {
    let BatchUpdate { scope, items } = request;
    let item = |item: FileItem| Item {
        filename: item.file.filename.clone(),
        submission: item.id.map(|id| {
            let tenant = kept(item.tenant_metadata);
            file_submission(id, (item.origin, item.file), tenant, kept(item.document_metadata))
        }),
    };
    let mut items: Vec<Item> = items.into_iter().map(item).collect();
    match open_for(app, call, &scope, &mut items)? {
        Some(access) => submit(app, &access, items, None),
        None => refuse(items),
    }
}

fn batch_upload_text(
    app: &App,
    call: &Call,
    request: BatchUploadText,
) -> Result<Once<BatchResult>, ApiError> {
    let BatchUploadText { scope, items } = request;
    let items = items.into_iter().map(|item| item_of(item, text_submission));
    upload_all(app, call, &scope, items.collect())
}

fn upload_app_sources(
    app: &App,
    call: &Call,
    request: UploadAppSources,
) -> Result<Once<BatchResult>, ApiError> {
    let UploadAppSources { scope, items } = request;
    let item = |item: BatchItem<(Origin, Vec<u8>)>| {
        item_of(item, |source, (origin, content), tenant_metadata, document_metadata| Submission {
            source,
            kind: SourceKind::App,
            content: content.into(),
            filename: String::new(),
            content_type: None,
            tenant_metadata,
            document_metadata,
            origin,
        })
    };
    upload_all(app, call, &scope, items.into_iter().map(item).collect())
}

/// Converts a batch entry into a new source, labelled with its name or else its id.
pub(super) fn item_of<T>(
    item: BatchItem<T>,
    submission: impl FnOnce(Option<SourceId>, T, MetadataChange, MetadataChange) -> Submission,
) -> Item {
    let BatchItem { content, name, id, tenant_metadata, document_metadata } = item;
    let named = Some(name).filter(|name| !name.is_empty());
    let id_text = || id.as_ref().map_or_else(String::new, SourceId::to_string);
    let filename = named.unwrap_or_else(id_text);
    let (tenant, document) = (replaced(tenant_metadata), replaced(document_metadata));
    Item { filename, submission: content.map(|content| submission(id, content, tenant, document)) }
}

pub(super) fn upload_all(
    app: &App,
    call: &Call,
    scope: &Scope,
    mut items: Vec<Item>,
) -> Result<Once<BatchResult>, ApiError> {
    let Some(access) = open_for(app, call, scope, &mut items)? else {
        return refuse(items).map(Once::First);
    };
    if call.idempotency.is_some() {
        // An invalid request does not consume its idempotency key.
        for item in &mut items {
            let checked = match &item.submission {
                Ok(submission) => app.engine.check(&access, submission),
                Err(_) => continue,
            };
            if let Err(error) = checked {
                item.submission = Err(error.into());
            }
        }
        if items.iter().all(|item| item.submission.is_err()) {
            return submit(app, &access, items, None).map(Once::First);
        }
    }
    once(app, call, |ids| submit(app, &access, items, ids))
}

/// Opens the destination after refusing the items that no tenant could process. Returns `None` if
/// no item is left, so that a batch of refused files creates no tenant.
fn open_for(
    app: &App,
    call: &Call,
    scope: &Scope,
    items: &mut [Item],
) -> Result<Option<TenantAccess>, ApiError> {
    for item in items.iter_mut() {
        let Ok(submission) = &item.submission else { continue };
        if let Err(error) = app.engine.check_content(submission) {
            item.submission = Err(error.into());
        }
    }
    match items.iter().any(|item| item.submission.is_ok()) {
        true => Ok(Some(app.engine.open_or_create(call.grant()?, scope)?)),
        false => Ok(None),
    }
}

/// Responds to a batch in which every item was refused.
fn refuse(items: Vec<Item>) -> Result<Json<BatchResult>, ApiError> {
    let mut failed = Vec::new();
    for (index, Item { filename, submission }) in items.into_iter().enumerate() {
        if let Err(error) = submission {
            failed.push(FailedItem::new(index, filename, &error));
        }
    }
    BatchResult::reply(Vec::new(), failed)
}

fn submit(
    app: &App,
    access: &TenantAccess,
    items: Vec<Item>,
    ids: Option<RequestIds>,
) -> Result<Json<BatchResult>, ApiError> {
    let (mut uploaded, mut failed) = (Vec::new(), Vec::new());
    let mut passing = None;
    let mut is_final = false;
    for (index, Item { filename, submission }) in items.into_iter().enumerate() {
        let accepted = submission.and_then(|mut submission| {
            if submission.source.is_none() {
                submission.source = ids.map(|ids| ids.source(index));
            }
            Ok(app.engine.submit(access, submission)?)
        });
        match accepted {
            Ok(accepted) => {
                let file_id = accepted.source.to_string();
                let filename = if filename.is_empty() { file_id.clone() } else { filename };
                let (status, overwritten) = (Status::Queued, accepted.overwritten);
                uploaded.push(UploadedItem { file_id, filename, status, overwritten });
            }
            Err(error) => {
                if let Some(cause) = error.cause() {
                    tracing::error!(index, cause, "a batch item failed");
                }
                failed.push(FailedItem::new(index, filename, &error));
                match is_passing(&error) {
                    true => passing = Some(error),
                    false => is_final = true,
                }
            }
        }
    }
    match passing {
        // Nothing was stored and the request itself is valid, so it should be retried.
        Some(error) if uploaded.is_empty() && !is_final => {
            let failed = serde_json::to_value(&failed).unwrap_or_default();
            Err(error.with_member("failed", failed))
        }
        _ => BatchResult::reply(uploaded, failed),
    }
}
