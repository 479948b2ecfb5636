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
    "Receiver: an absolute http or https address, on the public internet unless the operator \
     allows others.",
)
.required();
static EVENTS: Field = Field::body(
    "events",
    Kind::Texts { min: 1, max: EventKind::ALL.len() },
    "Kinds of events: source.success, source.errored, source.deleted, jobs.drained; absent: all.",
);
static DESCRIPTION: Field = Field::body(
    "description",
    Kind::Text { chars_max: limits::WEBHOOK_DESCRIPTION_CHARS_MAX, is_filled: false },
    "Text for people.",
);
static WEBHOOK_ID: Field = Field::path("webhook_id", Kind::Identifier, "The webhook.");
static STATE: Field = Field::body(
    "state",
    Kind::Choice { words: &["active", "paused"], default: None, is_exact: true },
    "`paused` keeps events until it is `active` again.",
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
                        wrong(&EVENTS, EVENTS.location, &format!("must be some of {words}"))
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

/// A webhook without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookView {
    /// Its id.
    pub webhook_id: String,
    /// The receiver.
    pub url: String,
    /// Text for people.
    pub description: String,
    /// Kinds of events that it gets.
    pub events: Vec<String>,
    /// Tenants whose events it gets; null means all.
    pub tenants: Option<Vec<KeyTenant>>,
    /// `active`, `paused`, or `disabled`: it failed for days, and is told nothing until it is
    /// made active.
    pub state: String,
    /// Creation time, epoch seconds.
    pub created_at: String,
    /// First failure since the last message that arrived, epoch seconds; null without one.
    pub failing_since: Option<String>,
    /// Events that wait.
    pub pending: u64,
    /// Events that were not kept, because too many waited or it was disabled.
    pub dropped: u64,
}

/// Answer to the creation of a webhook.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedWebhook {
    /// The secret that signs its messages; shown this once.
    pub secret: String,
    /// The webhook.
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

impl std::fmt::Debug for CreatedWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedWebhook").field("webhook", &self.webhook).finish_non_exhaustive()
    }
}

/// Answer to the listing of webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookList {
    /// Webhooks within the caller's scope, oldest first.
    pub webhooks: Vec<WebhookView>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// Answer to a change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedWebhook {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// Answer to the removal of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedWebhook {
    /// Its id.
    pub webhook_id: String,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// The result of a test message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WebhookTest {
    /// Id of the message.
    pub event_id: String,
    /// Whether the receiver has taken it.
    pub delivered: bool,
    /// Status of its answer; null without one.
    pub status: Option<u16>,
    /// The reason of the failure, or empty.
    pub problem: String,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// One event for a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Delivery {
    /// Id of the event.
    pub event_id: String,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// Sub-tenant of the source; empty for `jobs.drained`.
    pub sub_tenant_id: String,
    /// The source; empty for `jobs.drained`.
    pub file_id: String,
    /// Time of the event, epoch seconds.
    pub created_at: String,
    /// `pending`, `delivered` or `given_up`.
    pub state: String,
    /// Attempts so far.
    pub attempts: u32,
    /// Time of the last attempt, epoch seconds; null before the first.
    pub attempted_at: Option<String>,
    /// Status of the last answer; null without one.
    pub status: Option<u16>,
    /// The reason of the last failure, or empty.
    pub problem: String,
    /// Time of the next attempt, epoch seconds; null at the end, and while an earlier event of
    /// the source waits.
    pub next_attempt_at: Option<String>,
}

/// Answer to the listing of deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryList {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
