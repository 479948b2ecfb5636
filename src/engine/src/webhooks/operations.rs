//! Administration of webhooks, and watching single jobs.

use std::time::Instant;

use serde_json::json;

use super::{Sent, Webhooks, signature};
use crate::{Engine, EngineError};
use lodestone_catalog::job::JobRow;
use lodestone_catalog::{CatalogError, DeliveryRow, JobWatch, NewWebhook, Wake, Webhook};
use lodestone_types::{Grant, KeyScope, Sequence, TenantGrant, WebhookState};

/// Maximum number of simultaneous tests.
const TESTS_MAX: usize = 8;

/// The result of sending a test message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestedWebhook {
    /// Id of the message.
    pub event: String,
    /// Status code of the response, if there was one.
    pub status: Option<u16>,
    /// The reason of a failure; empty if the receiver accepted the message.
    pub problem: String,
    /// Duration in milliseconds.
    pub millis: u64,
}

impl Webhooks {
    fn test(&self, viewer: &Grant, id: &str) -> Result<TestedWebhook, EngineError> {
        let (webhook, secret) = self.catalog.webhook(viewer, id)?;
        let busy = || EngineError::WebhookTestBusy;
        let _testing = Testing::begin(self, id).ok_or_else(busy)?;
        let now = self.clock.now();
        let event = self.ids.wire_id("evt_", now);
        let body = json!({"id": event, "type": "webhook.test", "created_at": now.to_string()});
        let begun = Instant::now();
        let Sent { status, problem } = self.post(&webhook.url, &secret, &event, &body.to_string());
        let millis = begun.elapsed().as_millis() as u64;
        Ok(TestedWebhook { event, status, problem, millis })
    }
}

/// A test in progress; it ends on drop.
struct Testing<'a> {
    webhooks: &'a Webhooks,
    id: &'a str,
}

impl<'a> Testing<'a> {
    /// Begins a test; `None` if too many run, or another one of this webhook.
    fn begin(webhooks: &'a Webhooks, id: &'a str) -> Option<Self> {
        let mut testing = webhooks.testing.lock();
        // Constructed only on success, since dropping it would end the other test.
        match testing.len() < TESTS_MAX && testing.insert(id.to_owned()) {
            true => Some(Self { webhooks, id }),
            false => None,
        }
    }
}

impl Drop for Testing<'_> {
    fn drop(&mut self) {
        self.webhooks.testing.lock().remove(self.id);
    }
}

impl Engine {
    /// Creates a webhook whose scope is no wider than its creator's. Also returns the secret that
    /// signs its messages, which is to be shown once.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a wider scope; [`EngineError::WebhookUrl`];
    /// [`EngineError::WebhookTenant`]; [`CatalogError::WebhookLimit`].
    pub fn create_webhook(
        &self,
        maker: &Grant,
        new: NewWebhook,
    ) -> Result<(Webhook, String), EngineError> {
        self.webhooks
            .client
            .permits(&new.url)
            .map_err(|reason| EngineError::WebhookUrl { reason })?;
        if maker.scope.covers(&new.scope)
            && let KeyScope::Tenants(grants) = &new.scope
        {
            for TenantGrant { tenant, .. } in grants {
                if self.catalog.tenant(tenant)?.is_none() {
                    return Err(EngineError::WebhookTenant { tenant: tenant.clone() });
                }
            }
        }
        match self.catalog.create_webhook(maker, new) {
            Err(CatalogError::ScopeTooWide) => {
                let need = "a key cannot create a webhook with a wider scope";
                Err(EngineError::Forbidden { need })
            }
            made => {
                let (webhook, secret) = made?;
                Ok((webhook, signature::secret_text(secret.expose())))
            }
        }
    }

    /// The webhooks within the viewer's scope, oldest first.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn webhooks(&self, viewer: &Grant) -> Result<Vec<Webhook>, EngineError> {
        Ok(self.catalog.webhooks(viewer)?)
    }

    /// Pauses or activates a webhook.
    ///
    /// # Errors
    /// [`CatalogError::WebhookUnknown`] if the viewer sees no such webhook.
    pub fn set_webhook_state(
        &self,
        viewer: &Grant,
        id: &str,
        state: WebhookState,
    ) -> Result<Webhook, EngineError> {
        Ok(self.catalog.set_webhook_state(viewer, id, state)?)
    }

    /// Deletes a webhook with its events and its delivery log.
    ///
    /// # Errors
    /// See [`Self::set_webhook_state`].
    pub fn delete_webhook(&self, viewer: &Grant, id: &str) -> Result<(), EngineError> {
        Ok(self.catalog.delete_webhook(viewer, id)?)
    }

    /// A page of the delivery log of a webhook, newest first, and where the next page starts.
    ///
    /// # Errors
    /// See [`Self::set_webhook_state`].
    pub fn delivery_log(
        &self,
        viewer: &Grant,
        id: &str,
        limit: usize,
        before: Option<u64>,
    ) -> Result<(Vec<DeliveryRow>, Option<u64>), EngineError> {
        Ok(self.catalog.delivery_log(viewer, id, limit, before)?)
    }

    /// Sends a test message now, whatever the state of the webhook. Blocks for at most ten seconds.
    ///
    /// # Errors
    /// See [`Self::set_webhook_state`]; [`EngineError::WebhookTestBusy`].
    pub fn test_webhook(&self, viewer: &Grant, id: &str) -> Result<TestedWebhook, EngineError> {
        self.webhooks.test(viewer, id)
    }

    /// The job with an id, in any state.
    ///
    /// # Errors
    /// [`EngineError::JobNotFound`] if there is none that the key reaches.
    pub fn job(&self, grant: &Grant, job_id: &str) -> Result<JobRow, EngineError> {
        let found = self.catalog.job(job_id)?;
        let found = found.filter(|row| grant.allows(&row.tenant, &row.job.sub_tenant));
        self.let_nodes_see(&found)?;
        found.ok_or(EngineError::JobNotFound)
    }

    /// Calls `wake` on each change of a job until the returned watch is dropped.
    pub fn watch_job(&self, job: Sequence, wake: Wake) -> JobWatch {
        self.catalog.watch_job(job, wake)
    }
}
