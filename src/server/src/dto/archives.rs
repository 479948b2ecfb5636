//! Export and import of tenants (docs/api.md, "Export and import").

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{SUB_TENANT_QUERY, TENANT_QUERY, tenant};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{SubTenantId, TenantId};

static INTO: Field = Field::query(
    "tenant_id",
    Kind::Identifier,
    "Id of a new tenant, or of one into which nothing was uploaded; if absent, the name in the \
     archive.",
);

/// Input of `GET /tenant/export`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTenant {
    /// The tenant to export.
    pub tenant: TenantId,
    /// Restricts the export to this sub-tenant.
    pub sub_tenant: Option<SubTenantId>,
}

impl Request for ExportTenant {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = tenant(fields, &TENANT_QUERY)?.ok_or_else(|| missing(&TENANT_QUERY))?;
        Ok(Self { tenant, sub_tenant: fields.id(&SUB_TENANT_QUERY, SubTenantId::parse_field)? })
    }
}

/// Input of `POST /tenant/import`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportTenant {
    /// Name for the imported tenant; `None` takes the name in the archive.
    pub tenant: Option<TenantId>,
    /// The archive as JSON Lines.
    pub archive: Bytes,
}

impl Request for ImportTenant {
    const FIELDS: &'static [&'static Field] = &[&INTO];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = fields.tenant(&INTO)?;
        Ok(Self { tenant, archive: std::mem::take(&mut fields.lines) })
    }
}

/// Imported tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedTenant {
    /// Tenant id.
    pub tenant_id: String,
    /// Number of its sources, including memories.
    pub sources: u64,
    /// Number of its chunks or vectors.
    pub chunks: u64,
    /// Size of its originals in bytes.
    pub original_bytes: u64,
    /// Whether the texts were re-embedded because the vectors in the archive come from another
    /// model.
    pub reembedded: bool,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
