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
    Field::body("tenant_id", Kind::Identifier, "This tenant alone; absent: every tenant.");
static ACTION: Field = Field::body(
    "action",
    Kind::Choice { words: &["start", "back", "discard"], default: Some("start"), is_exact: true },
    "start: make vectors with another model and switch to them; back: complete the \
     vectors of before and switch to them; discard: give up the vectors that are not searched.",
);
static TO: Field = Field::body(
    "to",
    Kind::Text { chars_max: NAME_CHARS_MAX, is_filled: true },
    "Name of the model that start moves the tenant to; absent: the one chosen for it, or else that \
     of new tenants.",
);
/// Longest model name in characters; it is also the name of a directory.
pub(super) const NAME_CHARS_MAX: usize = 255;
static DRY_RUN: Field = Field::body(
    "dry_run",
    Kind::Boolean { default: false },
    "Measure what start would be, and change nothing.",
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
                return Err(wrong(&DRY_RUN, Location::Body, "is for the action start alone"));
            }
        };
        let to = fields.text(&TO)?;
        let is_start = matches!(action, ReembedAction::Start | ReembedAction::Estimate);
        if to.is_some() && !is_start {
            return Err(wrong(&TO, Location::Body, "is for the action start alone"));
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

/// The work that a change of the model would be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EstimateView {
    /// Chunks to embed.
    pub chunks: u64,
    /// Their tokens, from a sample.
    pub tokens: u64,
    /// Chunks a second, measured with the sample; 0 where there is nothing to do.
    pub chunks_per_second: f64,
    /// Seconds of the work at that rate.
    pub seconds: f64,
    /// Bytes of disk for the new segments, beside the present ones.
    pub disk_bytes: u64,
    /// Bytes of disk that are free.
    pub free_bytes: u64,
}

/// The vectors of a tenant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TenantVectors {
    /// The tenant.
    pub tenant_id: String,
    /// Model of the vectors that are searched, or its fingerprint where it is not loaded; null
    /// without vectors of a model.
    pub model: Option<String>,
    /// Whether that is the model of new tenants.
    pub is_current: bool,
    /// Model of the vectors that are being made, or kept from before; null without any.
    pub other_model: Option<String>,
    /// Bytes of the segments with those.
    pub other_bytes: u64,
    /// Until when the vectors of before are kept, epoch seconds; null unless they are kept.
    pub kept_until: Option<String>,
    /// `queued`, `in_progress`, `success` or `errored`; null where nothing was asked for.
    pub status: Option<String>,
    /// Chunks that have their new vector.
    pub chunks_done: u64,
    /// Chunks of the change in all.
    pub chunks: u64,
    /// Reason for which it waits or has failed, or empty.
    pub reason: String,
    /// The work that it would be, of a dry run.
    pub estimate: Option<EstimateView>,
}

/// Answer about the vectors of tenants.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReembedStatus {
    /// The tenants, by id.
    pub tenants: Vec<TenantVectors>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
