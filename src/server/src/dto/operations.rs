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
    "Entries per page.",
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

static JOB_ID: Field = Field::path("job_id", Kind::Identifier, "The job.");

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
    "The tenant that the job has to be of; absent: any.",
);
static OF_SUB_TENANT: Field = Field::query(
    "sub_tenant_id",
    Kind::Identifier,
    "The sub-tenant that the job has to be of; absent: any.",
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

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobView {
    /// Its id.
    pub job_id: String,
    /// The source that it processes; empty for `reembed`.
    pub file_id: String,
    /// Tenant of the source.
    pub tenant_id: String,
    /// Sub-tenant of the source; empty for `reembed`, which is about the whole tenant.
    pub sub_tenant_id: String,
    /// Kind of the source, or `reembed`: a change of the embedding model of the tenant.
    pub kind: String,
    /// State of processing.
    pub status: Status,
    /// Stage of processing, while in progress.
    pub stage: Option<String>,
    /// Share of the chunks that have their vectors, 0 to 1, while that is known.
    pub progress: Option<f64>,
    /// Attempts so far, one that is under way included. Those before a retry by a client, and those
    /// that a stop of the server cut short, do not count.
    pub attempts: u32,
    /// Error code of processing, or empty.
    pub error_code: String,
    /// Reason of the state `errored`; of a job that waits for its vectors because the embedding
    /// server fails, since when and why it does.
    pub message: String,
    /// Epoch seconds.
    pub created_at: String,
    /// Time in epoch seconds; null before that.
    pub started_at: Option<String>,
    /// Time in epoch seconds; null before that.
    pub finished_at: Option<String>,
}

/// Jobs by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobCounts {
    /// Jobs that wait.
    pub queued: u64,
    /// Running.
    pub in_progress: u64,
    /// Done.
    pub success: u64,
    /// Entries that ended with a reason.
    pub errored: u64,
}

/// Answer to `jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobList {
    /// Newest first.
    pub jobs: Vec<JobView>,
    /// Counts of the jobs of sources over everything addressed, independent
    /// of the page and the state asked for.
    pub counts: JobCounts,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// Answer to `jobs/{job_id}/retry`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetriedJob {
    /// The job as it is now.
    pub job: JobView,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// Answer to `healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Name of the process among those that write to a bucket, for its query nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// Name of a query node that shares the tenants with others, for those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `true` while that node opens the tenants that it is to answer for: others do until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joining: Option<bool>,
}

/// Answer to `readyz`; 503 unless every component is `ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    /// `ok` or `unavailable`.
    pub status: String,
    /// Component to its state.
    pub components: BTreeMap<String, String>,
}
