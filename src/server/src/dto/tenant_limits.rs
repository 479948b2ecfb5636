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
    "Sources that the tenant may have; absent or null: as the settings say.",
);
pub(super) static MAX_VECTORS: Field = Field::body(
    "max_vectors",
    Kind::Integer { min: 0, max: LIMIT_MAX, default: None },
    "Vectors that the tenant may store: client vectors, chunks of documents and of memories; \
     absent or null: as the settings say.",
);
pub(super) static MAX_REQUESTS: Field = Field::body(
    "max_requests_per_minute",
    Kind::Integer { min: 1, max: LIMIT_MAX, default: None },
    "Requests in any 60 seconds that the tenant may make; those of administration are not counted. \
     Absent or null: as the settings say.",
);
pub(super) static MAX_WORKERS: Field = Field::body(
    "max_ingest_workers",
    Kind::Integer { min: 1, max: LIMIT_MAX, default: None },
    "Workers that process documents of the tenant at once, and as many that fetch its pages; \
     absent or null: as the settings say.",
);
pub(super) static MAX_BYTES: Field = Field::body(
    "max_bytes",
    Kind::Integer { min: 0, max: LIMIT_MAX, default: None },
    "Bytes of originals that the tenant may store; absent or null: as the settings say.",
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
    /// Sources; null is no limit.
    pub max_sources: Option<u64>,
    /// Bytes of originals; null is no limit.
    pub max_bytes: Option<u64>,
    /// Client vectors, chunks of documents and of memories; null is no limit.
    pub max_vectors: Option<u64>,
    /// Requests in any 60 seconds; null is no limit.
    pub max_requests_per_minute: Option<u64>,
    /// Workers that process its documents at once; null is no limit.
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

/// Answer to `tenant/usage` and `admin/tenant_limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantUsage {
    /// The tenant.
    pub tenant_id: String,
    /// Sources of all sub-tenants in every state, without memories.
    pub sources: u64,
    /// Bytes of their originals.
    pub bytes: u64,
    /// Stored client vectors, or chunks of documents and of memories.
    pub vectors: u64,
    /// Requests of the last minute, where they are limited; null where they are not, and not
    /// counted.
    pub requests_last_minute: Option<u64>,
    /// Workers that process its documents now.
    pub ingest_workers: usize,
    /// The limits that hold: the tenant's own, else those of the settings.
    pub limits: LimitsView,
    /// The limits of the tenant's own; null follows the settings.
    pub own_limits: LimitsView,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
