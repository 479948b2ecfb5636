//! Changes of the embedding model, which are reserved to operators.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{TENANT_OPTIONAL, tenant};
use crate::error::{ApiError, Location};
use crate::request::fields::wrong;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_engine::ReembedAction;
use lodestone_types::TenantId;

static TENANT: Field =
    Field::body("tenant_id", Kind::Identifier, "Only this tenant; all tenants if absent.");
static ACTION: Field = Field::body(
    "action",
    Kind::Choice { words: &["start", "back", "discard"], default: Some("start"), is_exact: true },
    "`start`: build vectors with another model and switch to them; `back`: complete the previous \
     vectors and switch back to them; `discard`: delete the vectors that are not searched.",
);
static TO: Field = Field::body(
    "to",
    Kind::Text { chars_max: NAME_CHARS_MAX, is_filled: true },
    "Name of the model to which `start` moves the tenant; if absent, the one chosen for it, else \
     that of new tenants.",
);
/// Longest model name in characters; it is also the name of a directory.
pub(super) const NAME_CHARS_MAX: usize = 255;
static DRY_RUN: Field = Field::body(
    "dry_run",
    Kind::Boolean { default: false },
    "Whether to only estimate the work of `start`, without changing anything.",
);

/// Input of `POST /admin/reembed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reembed {
    /// Restricts the operation to this tenant.
    pub tenant: Option<TenantId>,
    /// The action requested.
    pub action: ReembedAction,
    /// Name of the new model.
    pub to: Option<String>,
}

impl Request for Reembed {
    const FIELDS: &'static [&'static Field] = &[&TENANT, &ACTION, &TO, &DRY_RUN];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let tenant = fields.tenant(&TENANT)?;
        let action = match fields.choice(&ACTION)? {
            Some("back") => ReembedAction::Back,
            Some("discard") => ReembedAction::Discard,
            _ => ReembedAction::Start,
        };
        let action = match (fields.boolean(&DRY_RUN)?, action) {
            (false, action) => action,
            (true, ReembedAction::Start) => ReembedAction::Estimate,
            (true, _) => {
                return Err(wrong(
                    &DRY_RUN,
                    Location::Body,
                    "is only allowed with the action start",
                ));
            }
        };
        let to = fields.text(&TO)?;
        let is_start = matches!(action, ReembedAction::Start | ReembedAction::Estimate);
        if to.is_some() && !is_start {
            return Err(wrong(&TO, Location::Body, "is only allowed with the action start"));
        }
        if to.is_some() && tenant.is_none() {
            return Err(wrong(&TO, Location::Body, "needs tenant_id"));
        }
        Ok(Self { tenant, action, to })
    }
}

/// Input of `GET /admin/reembed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReembedQuery {
    /// Restricts the status to this tenant.
    pub tenant: Option<TenantId>,
}

impl Request for ReembedQuery {
    const FIELDS: &'static [&'static Field] = &[&TENANT_OPTIONAL];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { tenant: tenant(fields, &TENANT_OPTIONAL)? })
    }
}

/// Estimated work of a change of the model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EstimateView {
    /// Number of chunks to embed.
    pub chunks: u64,
    /// Number of their tokens, estimated from a sample.
    pub tokens: u64,
    /// Chunks per second, measured with the sample; 0 if there is nothing to do.
    pub chunks_per_second: f64,
    /// Estimated duration in seconds at that rate.
    pub seconds: f64,
    /// Disk space for the new segments in bytes, in addition to the present ones.
    pub disk_bytes: u64,
    /// Free disk space in bytes.
    pub free_bytes: u64,
}

/// Vectors of a tenant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TenantVectors {
    /// Tenant id.
    pub tenant_id: String,
    /// Model of the searched vectors, or its fingerprint if it is not loaded; null without vectors
    /// of a model.
    pub model: Option<String>,
    /// Whether this is the model of new tenants.
    pub is_current: bool,
    /// Model of the vectors that are being built, or of the previous ones that are kept; null if
    /// there are none.
    pub other_model: Option<String>,
    /// Size of the segments with these vectors in bytes.
    pub other_bytes: u64,
    /// Time in epoch seconds until which the previous vectors are kept; null if there are none.
    pub kept_until: Option<String>,
    /// `queued`, `in_progress`, `success` or `errored`; null if no change was requested.
    pub status: Option<String>,
    /// Number of chunks that have their new vector.
    pub chunks_done: u64,
    /// Total number of chunks to change.
    pub chunks: u64,
    /// Reason why it is waiting or has failed, or empty.
    pub reason: String,
    /// Estimated work, for a dry run.
    pub estimate: Option<EstimateView>,
}

/// Response about the vectors of tenants.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReembedStatus {
    /// Tenants, by id.
    pub tenants: Vec<TenantVectors>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
