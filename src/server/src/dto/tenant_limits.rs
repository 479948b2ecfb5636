//! Tenant limits and usage (docs/api.md, "Use and limits").

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{TENANT_BODY, tenant};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_catalog::TenantLimits;
use lodestone_types::TenantId;

pub(super) static MAX_SOURCES: Field = Field::body(
    "max_sources",
    Kind::Integer { min: 0, max: LIMIT_MAX, default: None },
    "Maximum number of sources; the server's setting if absent or null.",
);
pub(super) static MAX_VECTORS: Field = Field::body(
    "max_vectors",
    Kind::Integer { min: 0, max: LIMIT_MAX, default: None },
    "Maximum number of vectors: client vectors and chunks of documents and memories; the \
     server's setting if absent or null.",
);
pub(super) static MAX_REQUESTS: Field = Field::body(
    "max_requests_per_minute",
    Kind::Integer { min: 1, max: LIMIT_MAX, default: None },
    "Maximum number of requests in any 60 seconds, excluding administrative ones; the server's \
     setting if absent or null.",
);
pub(super) static MAX_WORKERS: Field = Field::body(
    "max_ingest_workers",
    Kind::Integer { min: 1, max: LIMIT_MAX, default: None },
    "Maximum number of workers that process documents of the tenant at the same time, and \
     likewise of those that fetch its pages; the server's setting if absent or null.",
);
pub(super) static MAX_BYTES: Field = Field::body(
    "max_bytes",
    Kind::Integer { min: 0, max: LIMIT_MAX, default: None },
    "Maximum size of stored originals in bytes; the server's setting if absent or null.",
);
/// Largest integer that every JSON parser represents exactly.
const LIMIT_MAX: u64 = (1 << 53) - 1;

/// Input of `POST /admin/tenant_limits`.
#[derive(Debug, Clone, PartialEq)]
pub struct SetTenantLimits {
    /// The tenant to limit.
    pub tenant: TenantId,
    /// Its limits; `None` falls back to the server's settings.
    pub limits: TenantLimits,
}

/// Reads the limits that a request sets.
pub(super) fn tenant_limits(fields: &mut Fields) -> Result<TenantLimits, ApiError> {
    Ok(TenantLimits {
        sources: fields.integer(&MAX_SOURCES)?,
        bytes: fields.integer(&MAX_BYTES)?,
        vectors: fields.integer(&MAX_VECTORS)?,
        requests_per_minute: fields.integer(&MAX_REQUESTS)?,
        ingest_workers: fields.integer(&MAX_WORKERS)?,
    })
}

impl Request for SetTenantLimits {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &MAX_SOURCES, &MAX_BYTES, &MAX_VECTORS, &MAX_REQUESTS, &MAX_WORKERS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = tenant(fields, &TENANT_BODY)?.ok_or_else(|| missing(&TENANT_BODY))?;
        Ok(Self { tenant, limits: tenant_limits(fields)? })
    }
}

/// Limits of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitsView {
    /// Maximum number of sources; null means no limit.
    pub max_sources: Option<u64>,
    /// Maximum size of originals in bytes; null means no limit.
    pub max_bytes: Option<u64>,
    /// Maximum number of client vectors and chunks of documents and memories; null means no limit.
    pub max_vectors: Option<u64>,
    /// Maximum number of requests in any 60 seconds; null means no limit.
    pub max_requests_per_minute: Option<u64>,
    /// Maximum number of workers that process its documents at the same time; null means no limit.
    pub max_ingest_workers: Option<u64>,
}

impl From<TenantLimits> for LimitsView {
    fn from(limits: TenantLimits) -> Self {
        Self {
            max_sources: limits.sources,
            max_bytes: limits.bytes,
            max_vectors: limits.vectors,
            max_requests_per_minute: limits.requests_per_minute,
            max_ingest_workers: limits.ingest_workers,
        }
    }
}

/// Response of `tenant/usage` and `admin/tenant_limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantUsage {
    /// Tenant id.
    pub tenant_id: String,
    /// Number of sources in all sub-tenants, in any state, without memories.
    pub sources: u64,
    /// Size of their originals in bytes.
    pub bytes: u64,
    /// Number of stored client vectors, or chunks of documents and memories.
    pub vectors: u64,
    /// Number of requests in the last minute, if they are limited; null if they are neither limited
    /// nor counted.
    pub requests_last_minute: Option<u64>,
    /// Number of workers that are processing its documents.
    pub ingest_workers: usize,
    /// Effective limits: the tenant's own, else those of the server's settings.
    pub limits: LimitsView,
    /// The tenant's own limits; null means that the server's setting applies.
    pub own_limits: LimitsView,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
