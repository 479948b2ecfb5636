//! API keys (docs/api.md, "Scoped keys").

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;
use crate::request::fields::{each, missing};
use crate::request::indexed::place;
use crate::request::members::Item;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::access::{KeyScope, TenantGrant};
use lodestone_types::id::InvalidIdentifier;
use lodestone_types::{Role, SubTenantId, Timestamp, limits};

/// Maximum number of tenants that one key may list.
const TENANTS_MAX: usize = limits::SOURCE_IDS_MAX;

static NAME: Field = Field::body(
    "name",
    Kind::Text { chars_max: 256, is_filled: true },
    "Display name, shown in listings.",
)
.required();
static ROLE: Field = Field::body(
    "role",
    Kind::Choice { words: &["read", "write", "admin"], default: None, is_exact: true },
    "Role of the key.",
)
.required();
pub(super) static TENANTS: Field = Field::body(
    "tenants",
    Kind::Objects { item: &[&TENANT, &SUB_TENANTS], min: 1, max: TENANTS_MAX },
    "Tenants that it may access; all if absent.",
);
static EXPIRES_AT: Field = Field::body(
    "expires_at",
    Kind::Moment,
    "Expiry time as epoch seconds or RFC 3339; never if absent.",
);
static KEY_ID: Field = Field::path("key_id", Kind::Identifier, "Id of the key to revoke.");

static TENANT: Field = Field::body("tenant_id", Kind::Identifier, "Tenant id.").required();
static SUB_TENANTS: Field = Field::body(
    "sub_tenant_ids",
    Kind::Texts { min: 1, max: limits::SOURCE_IDS_MAX },
    "Sub-tenants that it may access; all if absent.",
);

/// Input of `POST /admin/api_keys`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateKey {
    /// Description for people.
    pub name: String,
    /// Role of the key.
    pub role: Role,
    /// Tenants and sub-tenants that the key can reach.
    pub scope: KeyScope,
    /// Time of expiry; `None` if the key never expires.
    pub expires_at: Option<Timestamp>,
}

impl Request for CreateKey {
    const FIELDS: &'static [&'static Field] = &[&NAME, &ROLE, &TENANTS, &EXPIRES_AT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let name = fields.required_text(&NAME)?;
        let role = fields.choice(&ROLE)?.and_then(Role::from_word);
        let role = role.ok_or_else(|| missing(&ROLE))?;
        let scope = scope(fields)?;
        let expires_at = fields.moment(&EXPIRES_AT)?;
        Ok(Self { name, role, scope, expires_at })
    }
}

/// Reads the tenants that a request lists; all tenants if it lists none.
pub(super) fn scope(fields: &mut Fields) -> Result<KeyScope, ApiError> {
    let Some(items) = fields.items(&TENANTS)? else { return Ok(KeyScope::AllTenants) };
    Ok(KeyScope::Tenants(each(&TENANTS, items, tenant_grant)?))
}

fn tenant_grant(item: Item) -> Result<TenantGrant, ApiError> {
    let mut fields = item.fields()?;
    let tenant = fields.tenant(&TENANT)?.ok_or_else(|| missing(&TENANT))?;
    let Some(names) = fields.texts(&SUB_TENANTS)? else {
        return Ok(TenantGrant { tenant, sub_tenants: None });
    };
    let parse = |(at, name): (usize, &String)| {
        let wrong = |error: InvalidIdentifier| {
            let (reason, location) = ("invalid_identifier", SUB_TENANTS.location);
            ApiError::field(reason, location, &place(&SUB_TENANTS, at), error.problem)
        };
        SubTenantId::parse_optional(Some(name)).map_err(wrong)
    };
    let sub_tenants = names.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok(TenantGrant { tenant, sub_tenants: Some(sub_tenants) })
}

/// Input of `DELETE /admin/api_keys/{key_id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeKey {
    /// The public id of the key.
    pub key_id: String,
}

impl Request for RevokeKey {
    const FIELDS: &'static [&'static Field] = &[&KEY_ID];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { key_id: fields.required_text(&KEY_ID)? })
    }
}

/// Tenant that a key may access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyTenant {
    /// Tenant id.
    pub tenant_id: String,
    /// Sub-tenants that it may access; null means all.
    pub sub_tenant_ids: Option<Vec<String>>,
}

/// API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyView {
    /// Public id of the key.
    pub key_id: String,
    /// Display name.
    pub name: String,
    /// Role of the key.
    pub role: String,
    /// Tenants that it may access; null means all.
    pub tenants: Option<Vec<KeyTenant>>,
    /// Creation time in epoch seconds.
    pub created_at: String,
    /// Expiry time in epoch seconds; null if it never expires.
    pub expires_at: Option<String>,
}

impl KeyView {
    /// Converts the tenants of a scope to their response type; `None` for all tenants.
    pub fn tenants_of(scope: &KeyScope) -> Option<Vec<KeyTenant>> {
        let KeyScope::Tenants(grants) = scope else { return None };
        let view = |grant: &TenantGrant| KeyTenant {
            tenant_id: grant.tenant.to_string(),
            sub_tenant_ids: grant
                .sub_tenants
                .as_ref()
                .map(|names| names.iter().map(SubTenantId::to_string).collect()),
        };
        Some(grants.iter().map(view).collect())
    }
}

/// Response to the creation of a key.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedKey {
    /// Secret key, shown only this once.
    pub api_key: String,
    /// Name of the key.
    #[serde(flatten)]
    pub key: KeyView,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Response to the listing of keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeyList {
    /// Keys within the scope of the calling key.
    pub api_keys: Vec<KeyView>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response to a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevokedKey {
    /// Public id of the key.
    pub key_id: String,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
