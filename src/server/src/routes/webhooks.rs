//! Operations that create, list, test, pause and remove webhooks, and show their delivery logs.

use crate::app::{App, blocking};
use crate::dto::keys::KeyView;
use crate::dto::webhooks::{
    ChangeWebhook, ChangedWebhook, CreateWebhook, CreatedWebhook, DeletedWebhook, Delivery,
    DeliveryList, ListDeliveries, OneWebhook, WebhookList, WebhookTest, WebhookView,
};
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::operations::read_cursor;
use crate::routes::{Group, Route};
use lodestone_catalog::{DeliveryRow, NewWebhook, Webhook};
use lodestone_types::{EventKind, Role, WebhookState};

/// Returns the webhook operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, admin) = (Group::Admin, Role::Admin);
    vec![
        Route::<App>::post("/admin/webhooks", group, admin, "Create a webhook")
            .handle(blocking(create)),
        Route::<App>::get("/admin/webhooks", group, admin, "List webhooks, without their secrets")
            .handle(blocking(list)),
        Route::<App>::patch(
            "/admin/webhooks/{webhook_id}", group, admin, "Pause or activate a webhook",
        )
        .handle(blocking(change)),
        Route::<App>::delete(
            "/admin/webhooks/{webhook_id}",
            group,
            admin,
            "Delete a webhook with its pending events and its log",
        )
        .handle(blocking(remove)),
        Route::<App>::get(
            "/admin/webhooks/{webhook_id}/deliveries",
            group,
            admin,
            "List the deliveries of a webhook, newest first",
        )
        .handle(blocking(deliveries)),
        Route::<App>::post(
            "/admin/webhooks/{webhook_id}/test",
            group,
            admin,
            "Send a test message to a webhook and report the result",
        )
        .handle(blocking(test)),
    ]
}

fn create(
    app: &App,
    call: &Call,
    request: CreateWebhook,
) -> Result<Json<CreatedWebhook>, ApiError> {
    let CreateWebhook { url, kinds, scope, description } = request;
    let new = NewWebhook { url, description, kinds, scope };
    let (webhook, secret) = app.engine.create_webhook(call.grant()?, new)?;
    call.tell_subject(&webhook.id);
    Ok(Json::new(CreatedWebhook {
        secret,
        webhook: view(&webhook),
        success: true,
        message: "Webhook created; its secret is shown only once".to_owned(),
    }))
}

fn list(app: &App, call: &Call, (): ()) -> Result<Json<WebhookList>, ApiError> {
    let webhooks = app.engine.webhooks(call.grant()?)?;
    Ok(Json::new(WebhookList {
        webhooks: webhooks.iter().map(view).collect(),
        success: true,
        message: "Successfully fetched webhooks".to_owned(),
    }))
}

fn change(
    app: &App,
    call: &Call,
    request: ChangeWebhook,
) -> Result<Json<ChangedWebhook>, ApiError> {
    let ChangeWebhook { id, state } = request;
    let webhook = app.engine.set_webhook_state(call.grant()?, &id, state)?;
    call.tell_subject(&id);
    let message = match state {
        WebhookState::Active => "Webhook is active",
        WebhookState::Paused | WebhookState::Disabled => "Webhook is paused",
    };
    let (webhook, message) = (view(&webhook), message.to_owned());
    Ok(Json::new(ChangedWebhook { webhook, success: true, message }))
}

fn remove(app: &App, call: &Call, request: OneWebhook) -> Result<Json<DeletedWebhook>, ApiError> {
    app.engine.delete_webhook(call.grant()?, &request.id)?;
    call.tell_subject(&request.id);
    let message = "Webhook removed".to_owned();
    Ok(Json::new(DeletedWebhook { webhook_id: request.id, success: true, message }))
}

/// Sends a test message. It waits for the receiver, so it releases its slot first.
fn test(app: &App, call: &Call, request: OneWebhook) -> Result<Json<WebhookTest>, ApiError> {
    call.give_back();
    let tested = app.engine.test_webhook(call.grant()?, &request.id)?;
    call.tell_subject(&request.id);
    let delivered = tested.problem.is_empty();
    let message = match delivered {
        true => "The test message was delivered",
        false => "The test message was not delivered",
    };
    Ok(Json::new(WebhookTest {
        event_id: tested.event,
        delivered,
        status: tested.status,
        problem: tested.problem,
        duration_ms: tested.millis,
        success: true,
        message: message.to_owned(),
    }))
}

fn deliveries(
    app: &App,
    call: &Call,
    request: ListDeliveries,
) -> Result<Json<DeliveryList>, ApiError> {
    let ListDeliveries { id, limit, cursor } = request;
    let before = cursor.as_deref().map(read_cursor).transpose()?;
    let (rows, next) = app.engine.delivery_log(call.grant()?, &id, limit, before)?;
    Ok(Json::new(DeliveryList {
        deliveries: rows.iter().map(delivery).collect(),
        next_cursor: next.map(|id| id.to_string()),
        success: true,
        message: "Successfully fetched deliveries".to_owned(),
    }))
}

fn view(webhook: &Webhook) -> WebhookView {
    WebhookView {
        webhook_id: webhook.id.clone(),
        url: webhook.url.to_string(),
        description: webhook.description.clone(),
        events: webhook.kinds.iter().map(|kind: &EventKind| kind.as_str().to_owned()).collect(),
        tenants: KeyView::tenants_of(&webhook.scope),
        state: webhook.state.as_str().to_owned(),
        created_at: webhook.created_at.to_string(),
        failing_since: webhook.failing_since.map(|at| at.to_string()),
        pending: webhook.pending,
        dropped: webhook.dropped,
    }
}

fn delivery(row: &DeliveryRow) -> Delivery {
    Delivery {
        event_id: row.event.clone(),
        kind: row.kind.as_str().to_owned(),
        sub_tenant_id: row.sub_tenant.clone(),
        file_id: row.source.clone(),
        created_at: row.created_at.to_string(),
        state: row.state.as_str().to_owned(),
        attempts: row.attempts,
        attempted_at: row.attempted_at.map(|at| at.to_string()),
        status: row.status,
        problem: row.problem.clone(),
        next_attempt_at: row.due_at.map(|at| at.to_string()),
    }
}
