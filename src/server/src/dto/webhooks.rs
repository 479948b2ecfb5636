//! Webhooks, which notify receivers of events.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::keys::{KeyTenant, TENANTS, scope};
use crate::dto::operations::LIMIT;
use crate::dto::sources::CURSOR;
use crate::dto::web::{ADDRESS, address};
use crate::error::ApiError;
use crate::request::fields::{missing, wrong};
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{EventKind, KeyScope, WebUrl, WebhookState, limits};

static URL: Field = Field::body(
    "url",
    ADDRESS,
    "Absolute http or https URL of the receiver, on the public internet unless the operator \
     allows others.",
)
.required();
static EVENTS: Field = Field::body(
    "events",
    Kind::Texts { min: 1, max: EventKind::ALL.len() },
    "Event types: source.success, source.errored, source.deleted, jobs.drained; all if absent.",
);
static DESCRIPTION: Field = Field::body(
    "description",
    Kind::Text { chars_max: limits::WEBHOOK_DESCRIPTION_CHARS_MAX, is_filled: false },
    "Human-readable description.",
);
static WEBHOOK_ID: Field = Field::path("webhook_id", Kind::Identifier, "Webhook id.");
static STATE: Field = Field::body(
    "state",
    Kind::Choice { words: &["active", "paused"], default: None, is_exact: true },
    "New state; while `paused`, events are kept until it is `active` again.",
)
.required();

/// Input of `POST /admin/webhooks`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateWebhook {
    /// Address of the receiver.
    pub url: WebUrl,
    /// Kinds of events to deliver.
    pub kinds: Vec<EventKind>,
    /// Tenants and sub-tenants whose events are delivered.
    pub scope: KeyScope,
    /// Description for people.
    pub description: String,
}

impl Request for CreateWebhook {
    const FIELDS: &'static [&'static Field] = &[&URL, &TENANTS, &EVENTS, &DESCRIPTION];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let url = address(&URL, &fields.required_text(&URL)?)?;
        let scope = scope(fields)?;
        let kinds = match fields.texts(&EVENTS)? {
            None => EventKind::ALL.to_vec(),
            Some(names) => {
                let mut kinds = Vec::new();
                for name in names {
                    let kind = EventKind::from_word(&name).ok_or_else(|| {
                        let words = EventKind::ALL.map(EventKind::as_str).join(", ");
                        wrong(&EVENTS, EVENTS.location, &format!("must contain only {words}"))
                    })?;
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                kinds
            }
        };
        let description = fields.text(&DESCRIPTION)?.unwrap_or_default();
        Ok(Self { url, kinds, scope, description })
    }
}

/// Input of operations on one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneWebhook {
    /// Id of the webhook.
    pub id: String,
}

impl Request for OneWebhook {
    const FIELDS: &'static [&'static Field] = &[&WEBHOOK_ID];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { id: fields.required_text(&WEBHOOK_ID)? })
    }
}

/// Input of `PATCH /admin/webhooks/{webhook_id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeWebhook {
    /// Id of the webhook.
    pub id: String,
    /// The new state.
    pub state: WebhookState,
}

impl Request for ChangeWebhook {
    const FIELDS: &'static [&'static Field] = &[&WEBHOOK_ID, &STATE];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let state = fields.choice(&STATE)?.and_then(WebhookState::from_word);
        let state = state.ok_or_else(|| missing(&STATE))?;
        Ok(Self { id: fields.required_text(&WEBHOOK_ID)?, state })
    }
}

/// Input of `GET /admin/webhooks/{webhook_id}/deliveries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListDeliveries {
    /// Id of the webhook.
    pub id: String,
    /// Maximum number of entries per page.
    pub limit: usize,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
}

impl Request for ListDeliveries {
    const FIELDS: &'static [&'static Field] = &[&WEBHOOK_ID, &LIMIT, &CURSOR];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            id: fields.required_text(&WEBHOOK_ID)?,
            limit: fields.integer(&LIMIT)?.unwrap_or(50) as usize,
            cursor: fields.text(&CURSOR)?,
        })
    }
}

/// Webhook without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookView {
    /// Webhook id.
    pub webhook_id: String,
    /// URL of the receiver.
    pub url: String,
    /// Human-readable description.
    pub description: String,
    /// Event types that it receives.
    pub events: Vec<String>,
    /// Tenants whose events it receives; null means all.
    pub tenants: Option<Vec<KeyTenant>>,
    /// `active`, `paused`, or `disabled` after failing for days, until it is activated again.
    pub state: String,
    /// Creation time in epoch seconds.
    pub created_at: String,
    /// Time in epoch seconds of the first failure since the last successful delivery; null if there
    /// is none.
    pub failing_since: Option<String>,
    /// Number of pending events.
    pub pending: u64,
    /// Number of events dropped because too many were pending or the webhook was disabled.
    pub dropped: u64,
}

/// Response to the creation of a webhook.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedWebhook {
    /// Secret that signs its messages, shown only this once.
    pub secret: String,
    /// Webhook id.
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

impl std::fmt::Debug for CreatedWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedWebhook").field("webhook", &self.webhook).finish_non_exhaustive()
    }
}

/// Response to the listing of webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookList {
    /// Webhooks within the scope of the calling key, oldest first.
    pub webhooks: Vec<WebhookView>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response to a change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedWebhook {
    /// Webhook id.
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Response to the deletion of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedWebhook {
    /// Webhook id.
    pub webhook_id: String,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Result of a test message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookTest {
    /// Event id of the message.
    pub event_id: String,
    /// Whether the receiver accepted it.
    pub delivered: bool,
    /// HTTP status of the response; null if there was none.
    pub status: Option<u16>,
    /// Reason for the failure, or empty.
    pub problem: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Delivery of one event to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Delivery {
    /// Event id.
    pub event_id: String,
    /// Event type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Sub-tenant of the source; empty for `jobs.drained`.
    pub sub_tenant_id: String,
    /// Source id; empty for `jobs.drained`.
    pub file_id: String,
    /// Time of the event in epoch seconds.
    pub created_at: String,
    /// `pending`, `delivered` or `given_up`.
    pub state: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Time of the last attempt in epoch seconds; null before the first.
    pub attempted_at: Option<String>,
    /// HTTP status of the last response; null if there was none.
    pub status: Option<u16>,
    /// Reason for the last failure, or empty.
    pub problem: String,
    /// Time of the next attempt in epoch seconds; null at the end, and while an earlier event of
    /// the source is pending.
    pub next_attempt_at: Option<String>,
}

/// Response to the listing of deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryList {
    /// Deliveries, newest first.
    pub deliveries: Vec<Delivery>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
