//! Jobs, health checks, metrics and the page that documents the API.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use schemars::{Schema, SchemaGenerator};

use crate::app::{App, blocking};
use crate::dto::operations::{
    Health, JobCounts, JobList, JobView, ListJobs, Readiness, RetriedJob, RetryJob,
};
use crate::error::{ApiError, Location};
use crate::frame::encoded::Unchanging;
use crate::last_hour::LastHour;
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::routes::{Group, Route};
use crate::watch::MetricsText;
use lodestone_catalog::job::JobRow;
use lodestone_engine::ingest::ReembedRun;
use lodestone_engine::{ComponentState, EngineError, Waiting};
use lodestone_types::{JobErrorCode, JobStatus, Role, Sequence, Stage, SubTenantId, TenantId};

const DOCS_PAGE: &str = include_str!("docs.html");
/// The page may run its own script and read the OpenAPI document from this server, nothing else.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Returns these operations.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::get("/jobs", Group::Operations, Role::Read, "List jobs, newest first")
            .at_writer()
            .handle(blocking(list_jobs)),
        Route::<App>::post(
            "/jobs/{job_id}/retry",
            Group::Operations,
            Role::Write,
            "Retry a failed job",
        )
        .queued()
        .handle(blocking(retry_job)),
        Route::<App>::get("/metrics", Group::Operations, Role::Read, "Get metrics for Prometheus")
            .without_slot()
            .of_itself()
            .handle(metrics),
        Route::<App>::get(
            "/metrics/hour",
            Group::Operations,
            Role::Read,
            "Get the activity of the last hour, minute by minute",
        )
        .without_slot()
        .of_itself()
        .handle(last_hour),
        Route::<App>::public("/healthz", "Report whether the process is running")
            .handle(|app: App, _: Call, (): ()| async move { Ok(Json::new(alive(&app))) }),
        Route::<App>::public("/readyz", "Report whether storage, index and embedder are usable")
            .handle(readiness),
        Route::<App>::public("/docs", "Show the API documentation in a browser")
            .handle(|_: App, _: Call, (): ()| async { Ok(Page) }),
    ]
}

fn list_jobs(app: &App, call: &Call, request: ListJobs) -> Result<Json<JobList>, ApiError> {
    let ListJobs { tenant, sub_tenant, status, limit, cursor } = request;
    require_tenant(tenant.as_ref(), sub_tenant.as_ref())?;
    let before = cursor.as_deref().map(read_cursor).transpose()?.map(Sequence);
    let grant = call.grant()?;
    // Model changes concern a whole tenant and are few, so all are listed on the first page.
    let changes = match (&sub_tenant, before) {
        (None, None) => app.engine.reembed_jobs(grant, tenant.as_ref(), status),
        _ => Vec::new(),
    };
    let page = app.engine.jobs(grant, tenant.as_ref(), sub_tenant, status, limit, before)?;
    let (counts, waiting) = (page.counts, app.engine.waiting());
    let rows = page.jobs.iter().map(|row| job(row, &waiting));
    Ok(Json::new(JobList {
        jobs: changes.iter().map(reembed_job).chain(rows).collect(),
        counts: JobCounts {
            queued: counts.queued,
            in_progress: counts.in_progress,
            success: counts.success,
            errored: counts.errored,
        },
        next_cursor: page.next.map(|sequence| sequence.0.to_string()),
        success: true,
        message: "Successfully fetched jobs".to_owned(),
    }))
}

/// Requires a tenant along with a sub-tenant.
fn require_tenant(
    tenant: Option<&TenantId>,
    sub_tenant: Option<&SubTenantId>,
) -> Result<(), ApiError> {
    if tenant.is_none() && sub_tenant.is_some() {
        let problem = "is required when sub_tenant_id is given";
        return Err(ApiError::field("missing_field", Location::Query, "tenant_id", problem));
    }
    Ok(())
}

/// Parses a cursor, which is a position in the catalog.
///
/// # Errors
/// 400 `invalid_value` if it is not a valid position.
pub(super) fn read_cursor(cursor: &str) -> Result<u64, ApiError> {
    // Positions are stored as signed integers.
    let position = cursor.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
    position.ok_or_else(|| {
        let problem = "must be the next_cursor of a page";
        ApiError::field("invalid_value", Location::Query, "cursor", problem)
    })
}

fn retry_job(app: &App, call: &Call, request: RetryJob) -> Result<Json<RetriedJob>, ApiError> {
    let RetryJob { job_id, tenant, sub_tenant } = request;
    require_tenant(tenant.as_ref(), sub_tenant.as_ref())?;
    let row = app.engine.retry_job(call.grant()?, tenant.as_ref(), sub_tenant, &job_id)?;
    call.tell_subject(&job_id);
    let message = "The job is queued or in progress".to_owned();
    Ok(Json::new(RetriedJob { job: job(&row, &app.engine.waiting()), success: true, message }))
}

pub(super) fn job(row: &JobRow, waiting: &Waiting) -> JobView {
    // The stored count includes only failed attempts.
    let is_one_more = matches!(row.status, JobStatus::InProgress | JobStatus::Success);
    JobView {
        job_id: row.job.job_id.clone(),
        file_id: row.job.source.to_string(),
        tenant_id: row.tenant.to_string(),
        sub_tenant_id: row.job.sub_tenant.to_string(),
        kind: row.job.kind.as_str().to_owned(),
        status: row.status.into(),
        stage: row.progress.map(|progress| progress.stage.as_str().to_owned()),
        progress: row.progress.and_then(|progress| progress.share()),
        attempts: row.job.attempts + u32::from(is_one_more),
        error_code: row.error_code.map_or("", |code| code.as_str()).to_owned(),
        message: waiting.reason(row).unwrap_or(&row.message).to_owned(),
        created_at: row.job.uploaded_at.to_string(),
        started_at: row.started_at.map(|at| at.to_string()),
        finished_at: row.finished_at.map(|at| at.to_string()),
    }
}

/// Converts a change of a tenant's model into a job whose progress counts chunks, as for a source.
fn reembed_job(run: &ReembedRun) -> JobView {
    let is_running = run.status == JobStatus::InProgress;
    let share = || run.chunks_done as f64 / run.chunks.max(1) as f64;
    JobView {
        job_id: format!("reembed_{}", run.job.as_simple()),
        file_id: String::new(),
        tenant_id: run.tenant.id.to_string(),
        sub_tenant_id: String::new(),
        kind: "reembed".to_owned(),
        status: run.status.into(),
        stage: is_running.then(|| Stage::Embedding.as_str().to_owned()),
        progress: is_running.then(share),
        attempts: u32::from(run.status != JobStatus::Queued),
        error_code: match run.status {
            JobStatus::Errored => JobErrorCode::EmbeddingFailed.as_str().to_owned(),
            _ => String::new(),
        },
        message: run.message.clone(),
        created_at: run.asked_at.to_string(),
        started_at: run.started_at.map(|at| at.to_string()),
        finished_at: run.ended_at.map(|at| at.to_string()),
    }
}

async fn metrics(app: App, call: Call, (): ()) -> Result<MetricsText, ApiError> {
    require_all_tenants(&call)?;
    Ok(app.watch.text().await)
}

async fn last_hour(app: App, call: Call, (): ()) -> Result<Json<LastHour>, ApiError> {
    require_all_tenants(&call)?;
    let minutes = app.watch.hour().await;
    let message = "Successfully fetched the last hour".to_owned();
    Ok(Json::new(LastHour { minutes, success: true, message }))
}

/// Requires a key for all tenants, because the metrics cover the whole server.
fn require_all_tenants(call: &Call) -> Result<(), ApiError> {
    if !call.grant()?.is_all_tenants() {
        let need = "metrics cover the whole server and require a key for all tenants";
        return Err(EngineError::Forbidden { need }.into());
    }
    Ok(())
}

fn alive(app: &App) -> Health {
    let writer = app.engine.writer_name().map(|name| name.to_string());
    let peers = app.engine.peers();
    let node = peers.map(|peers| peers.own_name().to_string());
    let joining = peers.and_then(|peers| (!peers.has_joined()).then_some(true));
    Health { status: "ok".to_owned(), writer, node, joining }
}

/// Returns the readiness of the last second: this needs no key, so it must cost as little as
/// possible, and no thread per request even if the catalog hangs.
async fn readiness(app: App, _: Call, (): ()) -> Result<Json<Readiness>, ApiError> {
    let own = app.clone();
    app.readiness.get(move || Ok(readiness_now(&own))).await
}

fn readiness_now(app: &App) -> Json<Readiness> {
    let health = app.engine.health();
    let states =
        [("storage", health.storage), ("index", health.index), ("embedder", health.embedder)];
    let is_ready = states.iter().all(|(_, state)| !matches!(state, ComponentState::Unusable(_)));
    let word = |state| match state {
        ComponentState::Usable => "ok".to_owned(),
        ComponentState::Degraded(problem) => format!("degraded: {problem}"),
        ComponentState::Unusable(problem) => format!("unavailable: {problem}"),
    };
    // The server stays ready without working backups, because data can still be read and written.
    let backup = app.engine.backup_health().map(|state| ("backup", state));
    let certificate = app.certificates.as_ref().map(|certificates| {
        let problem = certificates.problem();
        ("tls", problem.map_or(ComponentState::Usable, ComponentState::Degraded))
    });
    let components: BTreeMap<String, String> = states
        .into_iter()
        .chain(backup)
        .chain(certificate)
        .map(|(name, state)| (name.to_owned(), word(state)))
        .collect();
    let status = if is_ready { "ok" } else { "unavailable" }.to_owned();
    let reply = Json::new(Readiness { status, components });
    if is_ready { reply } else { reply.unavailable() }
}

/// The page that documents the API.
struct Page;

impl Reply for Page {
    const MEDIA_TYPES: &'static [&'static str] = &["text/html"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "contentMediaType": "text/html"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let mut response = Response::new(Body::from(DOCS_PAGE));
        response.extensions_mut().insert(Unchanging("/docs"));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(DOCS_POLICY));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }
}
