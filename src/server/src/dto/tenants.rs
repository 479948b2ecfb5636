//! Tenants and sub-tenants (docs/api.md, "Tenants").

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{SUB_TENANT_QUERY, TENANT_OPTIONAL, TENANT_QUERY, query_scope, tenant};
use crate::dto::reembed::NAME_CHARS_MAX;
use crate::dto::tenant_limits::{
    MAX_BYTES, MAX_REQUESTS, MAX_SOURCES, MAX_VECTORS, MAX_WORKERS, tenant_limits,
};
use crate::error::{ApiError, Location};
use crate::request::fields::{each, missing, wrong};
use crate::request::indexed::place;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_catalog::TenantLimits;
use lodestone_engine::TenantPlan;
use lodestone_types::schema::SchemaError;
use lodestone_types::{FieldType, Metric, SchemaField, Scope, TenantId, TenantSchema, limits};

static SCHEMA: Field = Field::body(
    "tenant_metadata_schema",
    Kind::Objects {
        item: &[&KEY, &TYPE, &SEARCHABLE, &FILTERABLE],
        min: 0,
        max: limits::SCHEMA_FIELDS_MAX,
    },
    "Declared keys of tenant_metadata, which cannot be changed later.",
);
static METRIC: Field = Field::query(
    "metric",
    Kind::Choice { words: &["cosine", "dot", "l2"], default: Some("cosine"), is_exact: true },
    "Metric by which its vectors are compared, which cannot be changed later.",
);
static CONFIRM: Field =
    Field::query("confirm", Kind::Identifier, "The tenant_id again, to confirm the deletion.")
        .required();

static EMBEDDING_MODEL: Field = Field::body(
    "embedding_model",
    Kind::Text { chars_max: NAME_CHARS_MAX, is_filled: true },
    "Name of the embedding model for its texts, one of those loaded by the server. By default \
     the model of new tenants, which the tenant then follows when the server changes it.",
);
static KEY: Field = Field::body(
    "key",
    Kind::Text { chars_max: limits::METADATA_KEY_CHARS_MAX, is_filled: true },
    "Name of the key: a letter followed by at most 63 letters, digits and underscores.",
)
.required();
static TYPE: Field = Field::body(
    "type",
    Kind::Choice {
        words: &["string", "number", "boolean", "array", "datetime"],
        default: None,
        is_exact: true,
    },
    "Type of the values.",
)
.required();
static SEARCHABLE: Field = Field::body(
    "searchable",
    Kind::Boolean { default: false },
    "Whether values are included in keyword search and embeddings.",
);
static FILTERABLE: Field = Field::body(
    "filterable",
    Kind::Boolean { default: true },
    "Whether the key can be used in filters.",
);

/// Input of operations that name a tenant: `GET /tenant/sub_tenant_ids`, `GET /tenant/usage`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTenant {
    /// The tenant.
    pub tenant: TenantId,
}

impl Request for NamedTenant {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = tenant(fields, &TENANT_QUERY)?.ok_or_else(|| missing(&TENANT_QUERY))?;
        Ok(Self { tenant })
    }
}

/// Input of `POST /embeddings/create_tenant`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateVectorTenant {
    /// Name of the tenant.
    pub tenant: TenantId,
    /// Similarity metric of its vectors.
    pub metric: Metric,
    /// Limits of the tenant.
    pub limits: TenantLimits,
}

impl Request for CreateVectorTenant {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &METRIC, &MAX_SOURCES, &MAX_BYTES, &MAX_VECTORS, &MAX_REQUESTS, &MAX_WORKERS,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let metric = fields.choice(&METRIC)?.and_then(Metric::from_word).unwrap_or_default();
        let tenant = NamedTenant::read(fields)?.tenant;
        Ok(Self { tenant, metric, limits: tenant_limits(fields)? })
    }
}

/// Input of `GET /tenant/stats`.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantStats {
    /// The scope to count.
    pub scope: Scope,
}

impl Request for TenantStats {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { scope: query_scope(fields)? })
    }
}

/// Input of `DELETE /tenant/delete_sub_tenant`; the sub-tenant is never `default`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteSubTenant {
    /// The scope to delete.
    pub scope: Scope,
}

impl Request for DeleteSubTenant {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        if scope.sub_tenant.is_default() {
            let problem = "must name a sub-tenant other than default, which cannot be deleted";
            let reason = "default_sub_tenant_protected";
            return Err(ApiError::field(reason, Location::Query, "sub_tenant_id", problem));
        }
        Ok(Self { scope })
    }
}

/// Input of `POST /user/create_tenant`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTenant {
    /// Name of the tenant; generated when `None`.
    pub tenant: Option<TenantId>,
    /// The metadata keys that it declares; `None` if there are none.
    pub schema: Option<TenantSchema>,
    /// Its limits and embedding model.
    pub plan: TenantPlan,
}

impl Request for CreateTenant {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_OPTIONAL, &SCHEMA, &EMBEDDING_MODEL, &MAX_SOURCES, &MAX_BYTES, &MAX_VECTORS,
        &MAX_REQUESTS, &MAX_WORKERS,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = tenant(fields, &TENANT_OPTIONAL)?;
        let items = fields.items(&SCHEMA)?.unwrap_or_default();
        let embedding_model = fields.text(&EMBEDDING_MODEL)?;
        let plan = TenantPlan { limits: tenant_limits(fields)?, embedding_model };
        if items.is_empty() {
            return Ok(Self { tenant, schema: None, plan });
        }
        let schema = TenantSchema { fields: each(&SCHEMA, items, schema_field)? };
        schema.validate().map_err(|error| {
            let (reason, key) = match &error {
                SchemaError::Reserved { key } => ("reserved_key", key.as_str()),
                SchemaError::Duplicate { key } => ("schema_violation", key.as_str()),
                SchemaError::BadKey { key } => ("invalid_value", key.as_str()),
                SchemaError::TooManyFields { .. } => ("too_many_items", ""),
                SchemaError::WrongType { .. } => ("invalid_value", ""),
            };
            // If two fields declare the same key, the error points to the second.
            let at = schema.fields.iter().rposition(|field| field.key == key);
            let name = at.map_or(SCHEMA.name.to_owned(), |at| place(&SCHEMA, at));
            ApiError::invalid(reason, error.to_string()).at(Location::Body, &name)
        })?;
        Ok(Self { tenant, schema: Some(schema), plan })
    }
}

fn schema_field(item: Item) -> Result<SchemaField, ApiError> {
    let mut fields = item.fields()?;
    let key = fields.required_text(&KEY)?;
    let field_type = match fields.choice(&TYPE)? {
        Some("string") => FieldType::String,
        Some("number") => FieldType::Number,
        Some("boolean") => FieldType::Boolean,
        Some("array") => FieldType::Array,
        Some("datetime") => FieldType::Datetime,
        _ => return Err(missing(&TYPE)),
    };
    let (searchable, filterable) = (fields.boolean(&SEARCHABLE)?, fields.boolean(&FILTERABLE)?);
    Ok(SchemaField { key, field_type, searchable, filterable })
}

/// Input of `DELETE /tenant/delete`, with its confirmation checked.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTenant {
    /// The tenant to delete.
    pub tenant: TenantId,
}

impl Request for DeleteTenant {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &CONFIRM];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let NamedTenant { tenant } = NamedTenant::read(fields)?;
        if fields.required_text(&CONFIRM)? != tenant.as_str() {
            return Err(wrong(&CONFIRM, Location::Query, "must equal tenant_id"));
        }
        Ok(Self { tenant })
    }
}

/// Declared key of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SchemaProperty {
    /// Name of the key.
    pub field_name: String,
    /// Whether the key can be used in filters.
    pub index_filterable: bool,
    /// Whether values are included in keyword search and embeddings.
    pub index_searchable: bool,
    /// Type of the values.
    #[serde(rename = "type")]
    pub field_type: String,
}

/// Schema of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SchemaView {
    /// Declared keys in declaration order.
    pub properties: Vec<SchemaProperty>,
}

impl SchemaView {
    /// Converts a schema; `None` if it declares no keys.
    pub fn of(schema: &TenantSchema) -> Option<Self> {
        let property = |field: &SchemaField| SchemaProperty {
            field_name: field.key.clone(),
            index_filterable: field.filterable,
            index_searchable: field.searchable,
            field_type: match field.field_type {
                FieldType::String => "string",
                FieldType::Number => "number",
                FieldType::Boolean => "boolean",
                FieldType::Array => "array",
                FieldType::Datetime => "datetime",
            }
            .into(),
        };
        let properties: Vec<_> = schema.fields.iter().map(property).collect();
        (!properties.is_empty()).then_some(Self { properties })
    }
}

/// Response of `tenant/sub_tenant_ids`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubTenantList {
    /// Tenant id.
    pub tenant_id: String,
    /// Sub-tenant ids: `default` first, then in ascending order.
    pub sub_tenant_ids: Vec<String>,
    /// Length of `sub_tenant_ids`.
    pub count: usize,
    /// Schema of the tenant; null if it has none.
    pub tenant_schema: Option<SchemaView>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response of `tenant/stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantStatistics {
    /// Number of searchable chunks or vectors in the sub-tenant.
    pub object_count: u64,
    /// Tenant id.
    pub tenant_id: String,
    /// Name of the embedding model for its texts; null for an embeddings tenant.
    pub embedding_model: Option<String>,
    /// Dimension of its vectors; null for an embeddings tenant without vectors.
    pub vector_dimension: Option<u32>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Sub-tenant id.
    pub sub_tenant_id: String,
    /// `standard` or `embeddings`.
    pub mode: String,
    /// Metric: `cosine`, `dot` or `l2`; null for a document tenant.
    pub metric: Option<String>,
    /// Number of sources in the sub-tenant.
    pub source_count: u64,
    /// Number of memories in the sub-tenant.
    pub memory_count: u64,
    /// Number of searchable chunks or vectors in all sub-tenants.
    pub tenant_object_count: u64,
    /// Equal to `tenant_id`.
    pub tenant_name: String,
}

/// Response to the creation or deletion of a tenant or sub-tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantOutcome {
    /// `created` for `/user/create_tenant`, otherwise `success`.
    pub status: String,
    /// Tenant id.
    pub tenant_id: String,
    /// Sub-tenant id; `default` if none was given.
    pub sub_tenant_id: String,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Tenant with its mode and model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantView {
    /// Tenant id.
    pub tenant_id: String,
    /// Always `default`.
    pub sub_tenant_id: String,
    /// `standard` or `embeddings`.
    pub mode: String,
    /// Metric: `cosine`, `dot` or `l2`; null for a document tenant.
    pub metric: Option<String>,
    /// Creation time in epoch seconds.
    pub created_at: String,
    /// Name of the embedding model for its texts; null for an embeddings tenant.
    pub embedding_model: Option<String>,
    /// Dimension of its vectors; null for an embeddings tenant without vectors.
    pub vector_dimension: Option<u32>,
    /// Schema of the tenant; null if it has none.
    pub tenant_schema: Option<SchemaView>,
}

/// Response of `tenant/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TenantList {
    /// Tenants within the scope of the key, by name.
    pub tenants: Vec<TenantView>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
