//! Webhooks: receivers of events, created and managed within the scope of a key, like keys.
//!
//! The secret is stored in plain text because signing needs it. It is shown once; listings, logs
//! and backups never contain it. The file is readable by its owner only.

use std::fmt;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::keys::{in_order, insert_scope, read_tenant_grant};
use super::rows::{Cells, Statements};
use lodestone_types::{EventKind, Grant, KeyScope, Timestamp, WebUrl, WebhookState, limits};

/// Maximum number of delayed attempts that become due at once when a webhook is activated.
const HURRIED_MAX: i64 = 1000;
const COLUMNS: &str = "id, url, description, secret, kinds, all_tenants, state, created_at,
    failing_since, pending, dropped";

/// Parameters of a new webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// The receiver's URL.
    pub url: WebUrl,
    /// Description for people.
    pub description: String,
    /// Kinds of events to deliver.
    pub kinds: Vec<EventKind>,
    /// Tenants whose events to deliver.
    pub scope: KeyScope,
}

/// The public properties of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The webhook's id.
    pub id: String,
    /// The receiver's URL.
    pub url: WebUrl,
    /// Description for people.
    pub description: String,
    /// Kinds of events to deliver.
    pub kinds: Vec<EventKind>,
    /// Tenants whose events to deliver, in ascending order.
    pub scope: KeyScope,
    /// Whether events are currently delivered.
    pub state: WebhookState,
    /// When the webhook was created.
    pub created_at: Timestamp,
    /// Time of the first failure since the last successful delivery.
    pub failing_since: Option<Timestamp>,
    /// Number of pending events.
    pub pending: u64,
    /// Events dropped because too many were pending or the webhook was disabled.
    pub dropped: u64,
}

/// The signing key of a webhook. `Debug` does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(pub(super) [u8; 32]);

impl WebhookSecret {
    /// Returns the key itself, for signing and for showing it once.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(...)")
    }
}

impl Catalog {
    /// Creates a webhook on behalf of `maker`, whose scope must cover that of the webhook.
    ///
    /// # Errors
    /// [`CatalogError::ScopeTooWide`], [`CatalogError::WebhookLimit`], storage errors.
    pub fn create_webhook(
        &self,
        maker: &Grant,
        new: NewWebhook,
    ) -> Result<(Webhook, WebhookSecret)> {
        if !maker.scope.covers(&new.scope) {
            return Err(CatalogError::ScopeTooWide);
        }
        let NewWebhook { url, description, kinds, scope } = new;
        let created_at = self.inner.clock.now();
        let mut secret = WebhookSecret([0; 32]);
        self.inner.ids.fill(&mut secret.0);
        let webhook = Webhook {
            id: self.inner.ids.wire_id("whk_", created_at),
            url,
            description,
            kinds,
            scope: in_order(scope),
            state: WebhookState::Active,
            created_at,
            failing_since: None,
            pending: 0,
            dropped: 0,
        };
        self.write(move |connection| {
            check_limit(connection, &webhook.scope)?;
            insert(connection, &webhook, &secret)?;
            Ok((webhook, secret))
        })
    }

    /// Lists the webhooks within the viewer's scope, oldest first.
    pub fn webhooks(&self, viewer: &Grant) -> Result<Vec<Webhook>> {
        let sql = format!("SELECT {COLUMNS} FROM webhooks ORDER BY id");
        self.read(|connection| {
            let all = connection.all(&sql, [], |cells| read(connection, cells))?;
            let webhooks = all.into_iter().map(|(webhook, _)| webhook);
            Ok(webhooks.filter(|webhook| viewer.scope.covers(&webhook.scope)).collect())
        })
    }

    /// Looks up a webhook within the viewer's scope, with its secret.
    ///
    /// # Errors
    /// [`CatalogError::WebhookUnknown`], storage errors.
    pub fn webhook(&self, viewer: &Grant, id: &str) -> Result<(Webhook, WebhookSecret)> {
        self.read(|connection| require(connection, &viewer.scope, id))
    }

    /// Sets a webhook's state. Activating it resets its failure counters and makes delayed attempts
    /// due.
    ///
    /// # Errors
    /// [`CatalogError::WebhookUnknown`], storage errors.
    pub fn set_webhook_state(
        &self,
        viewer: &Grant,
        id: &str,
        state: WebhookState,
    ) -> Result<Webhook> {
        let (id, scope, now) = (id.to_owned(), Arc::clone(&viewer.scope), self.inner.clock.now());
        let changed = self.write(move |connection| {
            require(connection, &scope, &id)?;
            let set = "UPDATE webhooks SET state = ?2 WHERE id = ?1";
            connection.run(set, [id.as_str(), state.as_str()])?;
            if state == WebhookState::Active {
                let fresh = "UPDATE webhooks SET failing_since = NULL, failures = 0, not_before = 0
                    WHERE id = ?1";
                connection.run(fresh, [&id])?;
                connection.run(
                    "UPDATE deliveries SET due_at = ?2 WHERE id IN (SELECT id FROM deliveries
                        WHERE webhook = ?1 AND due_at > ?2 ORDER BY due_at LIMIT ?3)",
                    params![id, now.0 as i64, HURRIED_MAX],
                )?;
            }
            require(connection, &scope, &id)
        });
        self.inner.deliveries.notify();
        Ok(changed?.0)
    }

    /// Deletes a webhook with its events and its log. Works in steps, so that other writes can run
    /// in between; from the first step on it gets no more events.
    ///
    /// # Errors
    /// [`CatalogError::WebhookUnknown`], storage errors.
    pub fn delete_webhook(&self, viewer: &Grant, id: &str) -> Result<()> {
        let (first, scope) = (id.to_owned(), Arc::clone(&viewer.scope));
        self.write(move |connection| {
            require(connection, &scope, &first)?;
            let end = "UPDATE webhooks SET state = 'disabled', kinds = '' WHERE id = ?1";
            connection.run(end, [&first])
        })?;
        let tables = [
            "deliveries WHERE id IN (SELECT id FROM deliveries WHERE webhook = ?1 LIMIT ?2)",
            "webhooks WHERE id = ?1 AND ?2 > 0",
        ];
        let id = [Value::Text(id.to_owned())];
        tables.iter().try_for_each(|table| self.delete_in_steps(table, &id))
    }
}

/// Fails if a tenant, or the set of all tenants, already has the maximum number of webhooks: each
/// event is written once per webhook.
fn check_limit(connection: &Connection, scope: &KeyScope) -> Result<()> {
    let max = limits::WEBHOOKS_MAX;
    let count = |sql: &str, parameters: &[&str]| -> Result<usize> {
        let parameters = rusqlite::params_from_iter(parameters);
        Ok(connection.one(sql, parameters, |cells| cells.number())? as usize)
    };
    let KeyScope::Tenants(grants) = scope else {
        return match count("SELECT count(*) FROM webhooks WHERE all_tenants = 1", &[])? >= max {
            true => Err(CatalogError::WebhookLimit { whose: "all tenants".to_owned(), max }),
            false => Ok(()),
        };
    };
    for grant in grants {
        let tenant = grant.tenant.as_str();
        if count("SELECT count(*) FROM webhook_scopes WHERE tenant = ?1", &[tenant])? >= max {
            return Err(CatalogError::WebhookLimit { whose: format!("tenant {tenant}"), max });
        }
    }
    Ok(())
}

fn insert(connection: &Connection, webhook: &Webhook, secret: &WebhookSecret) -> Result<()> {
    let Webhook { id, url, description, kinds, scope, state, created_at, .. } = webhook;
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    connection.run(
        "INSERT INTO webhooks (id, url, description, secret, kinds, all_tenants, state, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            url.as_str(),
            description,
            secret.0,
            kinds.join(" "),
            scope.is_all_tenants(),
            state.as_str(),
            created_at.0 as i64,
        ],
    )?;
    insert_scope(connection, "webhook_scopes (webhook, tenant, sub_tenants)", id, scope)
}

fn require(
    connection: &Connection,
    scope: &KeyScope,
    id: &str,
) -> Result<(Webhook, WebhookSecret)> {
    let found = find(connection, id)?.filter(|(webhook, _)| scope.covers(&webhook.scope));
    found.ok_or_else(|| CatalogError::WebhookUnknown { id: id.to_owned() })
}

/// Looks up a webhook by id.
pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<(Webhook, WebhookSecret)>> {
    let sql = format!("SELECT {COLUMNS} FROM webhooks WHERE id = ?1");
    let found = connection.all(&sql, [id], |cells| read(connection, cells))?;
    Ok(found.into_iter().next())
}

fn read(connection: &Connection, cells: &mut Cells<'_>) -> Result<(Webhook, WebhookSecret)> {
    let (id, url): (String, String) = (cells.next()?, cells.next()?);
    let url = WebUrl::parse(&url).map_err(|error| CatalogError::corrupt(error.to_string()))?;
    let (description, secret) = (cells.next()?, WebhookSecret(cells.next()?));
    let kinds: String = cells.next()?;
    let kinds = kinds.split(' ').filter_map(EventKind::from_word).collect();
    let scope = match cells.next::<bool>()? {
        true => KeyScope::AllTenants,
        false => {
            let sql = "SELECT tenant, sub_tenants FROM webhook_scopes WHERE webhook = ?1
                ORDER BY tenant";
            KeyScope::Tenants(connection.all(sql, [&id], read_tenant_grant)?)
        }
    };
    let state = cells.word(WebhookState::from_word)?;
    let (created_at, failing_since) = (cells.time()?, cells.optional_time()?);
    let (pending, dropped) = (cells.number()?, cells.number()?);
    let webhook = Webhook {
        id,
        url,
        description,
        kinds,
        scope,
        state,
        created_at,
        failing_since,
        pending,
        dropped,
    };
    Ok((webhook, secret))
}
