//! Jobs and health (docs/api.md, "Jobs"; docs/operations.md, "Health").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{SUB_TENANT_QUERY, TENANT_OPTIONAL, tenant};
use crate::dto::sources::{CURSOR, STATUS};
use crate::dto::upload::Status;
use crate::error::ApiError;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{JobStatus, SubTenantId, TenantId, limits};

pub(super) static LIMIT: Field = Field::query(
    "limit",
    Kind::Integer { min: 1, max: limits::LISTING_PAGE_MAX as u64, default: Some(50) },
    "Maximum number of entries per page.",
);

/// Input of `GET /jobs`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListJobs {
    /// Restricts the list to this tenant; `None` covers every tenant in the key's scope.
    pub tenant: Option<TenantId>,
    /// Restricts the list to this sub-tenant; `None` covers every sub-tenant in the key's scope.
    pub sub_tenant: Option<SubTenantId>,
    /// Restricts the list to this state.
    pub status: Option<JobStatus>,
    /// Maximum number of entries per page.
    pub limit: usize,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
}

impl Request for ListJobs {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_OPTIONAL, &SUB_TENANT_QUERY, &STATUS, &LIMIT, &CURSOR];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            tenant: tenant(fields, &TENANT_OPTIONAL)?,
            sub_tenant: fields.id(&SUB_TENANT_QUERY, SubTenantId::parse_field)?,
            status: fields.choice(&STATUS)?.and_then(JobStatus::from_word),
            limit: fields.integer(&LIMIT)?.unwrap_or(50) as usize,
            cursor: fields.text(&CURSOR)?,
        })
    }
}

static JOB_ID: Field = Field::path("job_id", Kind::Identifier, "Job id.");

/// Input of `GET /jobs/{job_id}/events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneJob {
    /// Id of the job.
    pub job_id: String,
}

impl Request for OneJob {
    const FIELDS: &'static [&'static Field] = &[&JOB_ID];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { job_id: fields.required_text(&JOB_ID)? })
    }
}

static OF_TENANT: Field = Field::query(
    "tenant_id",
    Kind::Identifier,
    "Tenant that the job must belong to; any if absent.",
);
static OF_SUB_TENANT: Field = Field::query(
    "sub_tenant_id",
    Kind::Identifier,
    "Sub-tenant that the job must belong to; any if absent.",
);

/// Input of `POST /jobs/{job_id}/retry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryJob {
    /// Id of the job.
    pub job_id: String,
    /// The tenant that the job must belong to; `None` allows every tenant in the key's scope.
    pub tenant: Option<TenantId>,
    /// The sub-tenant that the job must belong to; `None` allows every one.
    pub sub_tenant: Option<SubTenantId>,
}

impl Request for RetryJob {
    const FIELDS: &'static [&'static Field] = &[&JOB_ID, &OF_TENANT, &OF_SUB_TENANT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            job_id: fields.required_text(&JOB_ID)?,
            tenant: tenant(fields, &OF_TENANT)?,
            sub_tenant: fields.id(&OF_SUB_TENANT, SubTenantId::parse_field)?,
        })
    }
}

/// Ingestion or re-embedding job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobView {
    /// Job id.
    pub job_id: String,
    /// Id of the source that it processes; empty for `reembed`.
    pub file_id: String,
    /// Tenant of the source.
    pub tenant_id: String,
    /// Sub-tenant of the source; empty for `reembed`, which concerns the whole tenant.
    pub sub_tenant_id: String,
    /// Type of the source, or `reembed` for a change of the tenant's embedding model.
    pub kind: String,
    /// Processing state.
    pub status: Status,
    /// Processing stage, while in progress.
    pub stage: Option<String>,
    /// Share of chunks that have been embedded, 0 to 1, while known.
    pub progress: Option<f64>,
    /// Number of attempts so far, including a running one. Attempts before a retry by a client, and
    /// those interrupted by a stop of the server, do not count.
    pub attempts: u32,
    /// Processing error code, or empty.
    pub error_code: String,
    /// Reason for the state `errored`. For a job that waits for its vectors because the embedding
    /// server is failing: since when and why.
    pub message: String,
    /// Creation time in epoch seconds.
    pub created_at: String,
    /// Time in epoch seconds; null before that.
    pub started_at: Option<String>,
    /// Time in epoch seconds; null before that.
    pub finished_at: Option<String>,
}

/// Numbers of jobs by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobCounts {
    /// Waiting jobs.
    pub queued: u64,
    /// Jobs in progress.
    pub in_progress: u64,
    /// Completed jobs.
    pub success: u64,
    /// Failed, with a reason.
    pub errored: u64,
}

/// Response of `jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobList {
    /// Jobs, newest first.
    pub jobs: Vec<JobView>,
    /// Numbers of source jobs over everything addressed, independent of the page and the requested
    /// state.
    pub counts: JobCounts,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response of `jobs/{job_id}/retry`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetriedJob {
    /// Current state of the job.
    pub job: JobView,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response of `healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Name of this process among those that write to a bucket, for its query nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// Name of this query node, if it shares the tenants with others, for those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `true` while this node is opening the tenants that it will answer for; other nodes answer
    /// for them until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joining: Option<bool>,
}

/// Response of `readyz`, with status 503 unless every component is `ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    /// `ok` or `unavailable`.
    pub status: String,
    /// State of each component.
    pub components: BTreeMap<String, String>,
}
