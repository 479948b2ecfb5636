//! Webhook events, written in the transaction that causes them, so that a crash neither loses nor
//! invents events.
//!
//! There is one row per interested webhook. Events of a source are delivered in order: later ones
//! get a due time only when the earlier one has ended (`deliveries`). If no webhook is interested,
//! nothing is written.
//!
//! Deleting a tenant or sub-tenant also deletes its events; its sources are not reported one by
//! one.

use std::sync::Arc;

use rusqlite::{Connection, params};
use serde::Serialize;

use super::error::Result;
use super::rows::Statements;
use super::{Catalog, tenants};
use lodestone_types::{
    CollectionId, EventKind, IdSource, JobErrorCode, SubTenantId, TenantId, Timestamp,
    WebhookState, limits,
};

/// Emits events within a transaction.
pub(super) struct Teller {
    ids: Arc<dyn IdSource>,
    /// The time of the events.
    pub(super) now: Timestamp,
    told: usize,
}

/// An event about a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceEvent<'a> {
    pub(super) kind: EventKind,
    pub(super) collection: CollectionId,
    pub(super) sub_tenant: &'a str,
    pub(super) source: &'a str,
    pub(super) job_id: Option<&'a str>,
    pub(super) chunks: Option<u64>,
    pub(super) error_code: Option<JobErrorCode>,
    pub(super) message: Option<&'a str>,
}

/// The JSON message sent to the receiver. Fields that do not apply to its kind are omitted.
#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    created_at: String,
    tenant_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_tenant_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// A webhook interested in an event.
struct Listener {
    id: String,
    state: WebhookState,
    pending: u64,
}

impl Catalog {
    /// Like [`Self::write`], for changes that may emit events; wakes the senders after the commit.
    pub(super) fn write_telling<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &mut Teller) -> Result<T> + Send + 'static,
    {
        let (ids, clock) = (Arc::clone(&self.inner.ids), Arc::clone(&self.inner.clock));
        let (value, told) = self.write(move |connection| {
            // Read within the transaction: see `LogWatch::known_before`.
            let mut teller = Teller { ids, now: clock.now(), told: 0 };
            let value = body(connection, &mut teller)?;
            Ok((value, teller.told))
        })?;
        if told > 0 {
            self.inner.deliveries.notify();
        }
        Ok(value)
    }
}

impl Teller {
    /// Emits an event about a source.
    pub(super) fn tell(&mut self, connection: &Connection, event: SourceEvent<'_>) -> Result<()> {
        let Some(tenant) = listened_tenant(connection, event.collection)? else { return Ok(()) };
        self.enqueue(connection, &tenant, event)
    }

    /// Emits `jobs.drained` if the tenant has no waiting or running jobs left. Called after a job
    /// has ended.
    pub(super) fn tell_drained(
        &mut self,
        connection: &Connection,
        collection: CollectionId,
    ) -> Result<()> {
        let Some(tenant) = listened_tenant(connection, collection)? else { return Ok(()) };
        let open = "SELECT 1 FROM job_counts
            WHERE collection = ?1 AND status IN ('queued', 'in_progress')";
        if connection.any(open, [super::rows::blob(collection)])? {
            return Ok(());
        }
        let event = SourceEvent {
            kind: EventKind::JobsDrained,
            collection,
            sub_tenant: "",
            source: "",
            job_id: None,
            chunks: None,
            error_code: None,
            message: None,
        };
        self.enqueue(connection, &tenant, event)
    }

    fn enqueue(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
        event: SourceEvent<'_>,
    ) -> Result<()> {
        let listeners = listeners(connection, tenant, &event)?;
        if listeners.is_empty() {
            return Ok(());
        }
        let id = self.ids.wire_id("evt_", self.now);
        let is_of_source = event.kind != EventKind::JobsDrained;
        let body = Body {
            id: &id,
            kind: event.kind.as_str(),
            created_at: self.now.to_string(),
            tenant_id: tenant.as_str(),
            sub_tenant_id: is_of_source.then_some(event.sub_tenant),
            file_id: is_of_source.then_some(event.source),
            job_id: event.job_id,
            chunk_count: event.chunks,
            error_code: event.error_code.map(JobErrorCode::as_str),
            message: event.message,
        };
        let body = serde_json::to_string(&body).expect("plain data always prints");
        for Listener { id: webhook, state, pending } in listeners {
            if state == WebhookState::Disabled || pending >= limits::WEBHOOK_BACKLOG_MAX {
                let count = "UPDATE webhooks SET dropped = dropped + 1 WHERE id = ?1";
                connection.run(count, [&webhook])?;
                continue;
            }
            connection.run(
                "INSERT INTO deliveries (webhook, event, kind, collection, sub_tenant, source,
                    body, created_at, state, due_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', iif(EXISTS (
                    SELECT 1 FROM deliveries WHERE collection = ?4 AND sub_tenant = ?5
                        AND source = ?6 AND webhook = ?1 AND state = 'pending'), NULL, ?8))",
                params![
                    webhook,
                    id,
                    event.kind.as_str(),
                    super::rows::blob(event.collection),
                    event.sub_tenant,
                    event.source,
                    body,
                    self.now.0 as i64,
                ],
            )?;
            self.told += 1;
        }
        Ok(())
    }
}

/// The tenant of a collection, if there is any webhook and the tenant is not deleted.
fn listened_tenant(connection: &Connection, collection: CollectionId) -> Result<Option<TenantId>> {
    match connection.any("SELECT 1 FROM webhooks", [])? {
        true => tenants::owner(connection, collection),
        false => Ok(None),
    }
}

/// The webhooks interested in an event: for a source, those that cover its sub-tenant; for a
/// tenant, those that cover all of it.
fn listeners(
    connection: &Connection,
    tenant: &TenantId,
    event: &SourceEvent<'_>,
) -> Result<Vec<Listener>> {
    let found = connection.all(
        "SELECT id, state, pending, kinds, NULL FROM webhooks WHERE all_tenants = 1
         UNION ALL
         SELECT w.id, w.state, w.pending, w.kinds, s.sub_tenants
         FROM webhook_scopes s JOIN webhooks w ON w.id = s.webhook WHERE s.tenant = ?1",
        [tenant.as_str()],
        |cells| {
            let (id, state) = (cells.next()?, cells.word(WebhookState::from_word)?);
            let listener = Listener { id, state, pending: cells.number()? };
            let kinds: String = cells.next()?;
            let is_of_kind = kinds.split(' ').any(|kind| kind == event.kind.as_str());
            let names: Option<String> = cells.next()?;
            let names = names.map(|text| serde_json::from_str::<Vec<String>>(&text));
            let is_reached = match names {
                None => true,
                Some(names) => {
                    event.kind != EventKind::JobsDrained
                        && names
                            .is_ok_and(|names| names.iter().any(|name| name == event.sub_tenant))
                }
            };
            Ok((listener, is_of_kind && is_reached))
        },
    )?;
    Ok(found.into_iter().filter(|(_, is_for)| *is_for).map(|(listener, _)| listener).collect())
}

/// A deletion event for a source.
pub(super) fn deleted<'a>(
    collection: CollectionId,
    sub_tenant: &'a SubTenantId,
    source: &'a str,
) -> SourceEvent<'a> {
    SourceEvent {
        kind: EventKind::SourceDeleted,
        collection,
        sub_tenant: sub_tenant.as_str(),
        source,
        job_id: None,
        chunks: None,
        error_code: None,
        message: None,
    }
}
