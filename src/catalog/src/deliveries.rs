//! Webhook deliveries: the next event to send, the outcome of an attempt, and the log.
//!
//! ```text
//! pending, due -> an attempt -> delivered                     the next event of the source is due
//!      ^              |-------> given_up   after three days   the next event of the source is due
//!      +-- later -----+         (or 410: the webhook is disabled)
//! ```
//! Timing:
//! - An event waits 5 s after its first failure, then twice as long after each further one up to 6
//!   h, each time give or take a fifth: some 20 attempts in three days.
//! - A webhook at which the first attempts of three events failed, without a success in between, is
//!   paused for 5 s, and for twice as long at each further such event, up to 15 minutes: a receiver
//!   that is down is not asked once for each of its events, and a single event that it refuses
//!   delays no other.
//! - A webhook that gives up an event after failing for two days without a success is disabled.
//!
//! An attempt in progress during a crash is repeated.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::Catalog;
use super::error::Result;
use super::rows::{Cells, Statements};
use super::webhooks::{self, Webhook, WebhookSecret};
use lodestone_types::{DeliveryState, EventKind, Grant, Timestamp, WebUrl, WebhookState, limits};

const RETRY_FIRST_MILLIS: u64 = 5_000;
const RETRY_LAST_MILLIS: u64 = 6 * 3_600_000;
/// Age of an event beyond which it is not retried.
const GIVE_UP_MILLIS: u64 = 72 * 3_600_000;
/// Duration of failure after which giving up an event disables the webhook.
const DISABLE_MILLIS: u64 = 48 * 3_600_000;
/// Number of events whose first attempt may fail before a webhook is paused.
const FAILURES_FREE: u32 = 2;
const PAUSE_LAST_MILLIS: u64 = 15 * 60_000;
/// Status of a permanently removed receiver (RFC 9110, 15.5.11).
const GONE: u16 = 410;
/// Interval between checks whether followers have seen an event's change.
const FOLLOWERS_LOOK_MILLIS: u64 = 100;

/// An event that is due for delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// Position in the log.
    pub id: u64,
    /// Id of the webhook.
    pub webhook: String,
    /// The receiver's URL.
    pub url: WebUrl,
    /// The signing key.
    pub secret: WebhookSecret,
    /// Id of the event, the same for every attempt.
    pub event: String,
    /// The message body.
    pub body: String,
}

/// The next action of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextDelivery {
    /// Deliver this event.
    Due(Box<DueDelivery>),
    /// Wait until this time; `None` if nothing is scheduled.
    Wait(Option<Timestamp>),
}

/// The outcome of one delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// The reason for the failure; empty on success.
    pub problem: String,
    /// A random number used to spread retries.
    pub jitter: u64,
}

/// An entry of the delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Position in the log.
    pub id: u64,
    /// Id of the event.
    pub event: String,
    /// Kind of the event.
    pub kind: EventKind,
    /// Sub-tenant of the source; empty for tenant-level events.
    pub sub_tenant: String,
    /// The source; empty for tenant-level events.
    pub source: String,
    /// When the event occurred.
    pub created_at: Timestamp,
    /// State of the delivery.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// Time of the last attempt.
    pub attempted_at: Option<Timestamp>,
    /// Status of the last response.
    pub status: Option<u16>,
    /// Reason of the last failure.
    pub problem: String,
    /// Time of the next attempt; `None` if there will be none, or while an earlier event of the
    /// source is pending.
    pub due_at: Option<Timestamp>,
}

/// A pending event and its webhook, as they were when the attempt ended.
struct Tried {
    webhook: String,
    lane: ([u8; 16], String, String),
    created_at: Timestamp,
    attempts: u32,
    failing_since: Option<Timestamp>,
    failures: u32,
}

impl Catalog {
    /// Returns the next due event, taking webhooks in turn after `after`. Events `in_flight`,
    /// listed per webhook, are already being sent; a failing webhook gets one at a time.
    pub fn next_delivery(
        &self,
        after: &str,
        in_flight: &HashMap<String, Vec<u64>>,
    ) -> Result<NextDelivery> {
        let (now, signal) = (self.inner.clock.now(), &self.inner.deliveries);
        let (changes, known_before) = (signal.changes(), self.known_before());
        let next = self.read(|connection| {
            // A single transaction: a webhook that has an event must exist.
            let connection = connection.unchecked_transaction()?;
            let mut soonest = None;
            let (mut position, mut is_second_round) = (after.to_owned(), false);
            loop {
                let Some(webhook) = next_webhook(&connection, &position)? else {
                    if is_second_round {
                        return Ok(NextDelivery::Wait(soonest));
                    }
                    (position, is_second_round) = (String::new(), true);
                    continue;
                };
                if is_second_round && *webhook > *after {
                    return Ok(NextDelivery::Wait(soonest));
                }
                let sending = in_flight.get(&webhook).map_or(&[][..], Vec::as_slice);
                match due(&connection, &webhook, sending, (now, known_before))? {
                    NextDelivery::Wait(at) => soonest = soonest.into_iter().chain(at).min(),
                    due => return Ok(due),
                }
                position = webhook;
            }
        })?;
        if let NextDelivery::Wait(at) = &next {
            signal.found_nothing(changes, *at);
        }
        Ok(next)
    }

    /// Blocks until there may be an event to send, at most for `timeout`.
    pub fn wait_for_deliveries(&self, timeout: std::time::Duration) {
        self.inner.deliveries.wait(timeout, || self.inner.clock.now());
    }

    /// Wakes senders blocked in [`Self::wait_for_deliveries`].
    pub fn wake_senders(&self) {
        self.inner.deliveries.notify();
    }

    /// Records the outcome of an attempt; returns the new state of the event, or `None` if it is
    /// gone.
    pub fn record_attempt(&self, id: u64, attempt: Attempt) -> Result<Option<DeliveryState>> {
        let now = self.inner.clock.now();
        let state = self.write(move |connection| {
            let Some(tried) = tried(connection, id)? else { return Ok(None) };
            let Attempt { status, problem, jitter } = attempt;
            let attempts = tried.attempts + 1;
            let retry_at = now.plus_millis(retry_millis(attempts, jitter));
            let is_over =
                status == Some(GONE) || retry_at > tried.created_at.plus_millis(GIVE_UP_MILLIS);
            let (state, due_at) = match (problem.is_empty(), is_over) {
                (true, _) => (DeliveryState::Delivered, None),
                (false, true) => (DeliveryState::GivenUp, None),
                (false, false) => (DeliveryState::Pending, Some(retry_at.0 as i64)),
            };
            let (state_word, at) = (state.as_str(), now.0 as i64);
            connection.run(
                "UPDATE deliveries SET state = ?2, due_at = ?3, attempts = ?4, attempted_at = ?5,
                    status = ?6, problem = ?7, body = iif(?2 = 'pending', body, '') WHERE id = ?1",
                params![id as i64, state_word, due_at, attempts, at, status, problem],
            )?;
            note(connection, &tried, state, status, now)?;
            if state != DeliveryState::Pending {
                release_next(connection, &tried, now)?;
                prune(connection, &tried.webhook)?;
            }
            Ok(Some(state))
        });
        self.inner.deliveries.notify();
        state
    }

    /// Returns one page of a webhook's log, newest first, and the start of the next page.
    ///
    /// # Errors
    /// [`super::CatalogError::WebhookUnknown`], storage errors.
    pub fn delivery_log(
        &self,
        viewer: &Grant,
        webhook: &str,
        limit: usize,
        before: Option<u64>,
    ) -> Result<(Vec<DeliveryRow>, Option<u64>)> {
        self.webhook(viewer, webhook)?;
        let before = before.map_or(i64::MAX, |id| id as i64);
        let mut rows = self.read(|connection| {
            connection.all(
                "SELECT id, event, kind, sub_tenant, source, created_at, state, attempts,
                    attempted_at, status, problem, due_at FROM deliveries
                 WHERE webhook = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
                params![webhook, before, limit as i64 + 1],
                read_row,
            )
        })?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| row.id);
        Ok((rows, next))
    }
}

fn read_row(cells: &mut Cells<'_>) -> Result<DeliveryRow> {
    Ok(DeliveryRow {
        id: cells.number()?,
        event: cells.next()?,
        kind: cells.word(EventKind::from_word)?,
        sub_tenant: cells.next()?,
        source: cells.next()?,
        created_at: cells.time()?,
        state: cells.word(DeliveryState::from_word)?,
        attempts: cells.next()?,
        attempted_at: cells.optional_time()?,
        status: cells.next()?,
        problem: cells.next()?,
        due_at: cells.optional_time()?,
    })
}

/// The next webhook after `position` that has a scheduled event.
fn next_webhook(connection: &Connection, position: &str) -> Result<Option<String>> {
    let sql = "SELECT webhook FROM deliveries WHERE due_at IS NOT NULL AND webhook > ?1
        ORDER BY webhook LIMIT 1";
    connection.first(sql, [position], |cells| cells.next())
}

/// The due event of a webhook, or the time of its next one.
fn due(
    connection: &Connection,
    webhook: &str,
    sending: &[u64],
    (now, known_before): (Timestamp, Timestamp),
) -> Result<NextDelivery> {
    let sql = "SELECT state, failures, not_before FROM webhooks WHERE id = ?1";
    let (state, failures, not_before) = connection.one(sql, [webhook], |cells| {
        Ok((cells.next::<String>()?, cells.next::<u32>()?, cells.time()?))
    })?;
    let at_once = if failures > 0 { 1 } else { limits::WEBHOOK_SENDERS_EACH };
    if state != WebhookState::Active.as_str() || sending.len() >= at_once {
        return Ok(NextDelivery::Wait(None));
    }
    if not_before > now {
        return Ok(NextDelivery::Wait(Some(not_before)));
    }
    let sql = "SELECT d.id, d.due_at, d.created_at, d.event, d.body
        FROM deliveries d JOIN tenants t ON t.collection = d.collection
        WHERE d.webhook = ?1 AND d.due_at IS NOT NULL AND t.deleting = 0
        ORDER BY d.due_at, d.id LIMIT ?2";
    let most = limits::WEBHOOK_SENDERS_EACH as i64 + 1;
    let found = connection.all(sql, params![webhook, most], |cells| {
        let (id, times) = (cells.number()?, (cells.time()?, cells.time()?));
        Ok((id, times, cells.next::<String>()?, cells.next::<String>()?))
    })?;
    let first = found.into_iter().find(|(id, ..)| !sending.contains(id));
    let Some((id, (due_at, created_at), event, body)) = first else {
        return Ok(NextDelivery::Wait(None));
    };
    if due_at > now {
        return Ok(NextDelivery::Wait(Some(due_at)));
    }
    if created_at >= known_before {
        return Ok(NextDelivery::Wait(Some(Timestamp(now.0 + FOLLOWERS_LOOK_MILLIS))));
    }
    let found = webhooks::find(connection, webhook)?;
    let (Webhook { id: webhook, url, .. }, secret) =
        found.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(NextDelivery::Due(Box::new(DueDelivery { id, webhook, url, secret, event, body })))
}

fn tried(connection: &Connection, id: u64) -> Result<Option<Tried>> {
    let sql = "SELECT d.webhook, d.collection, d.sub_tenant, d.source, d.created_at, d.attempts,
            w.failing_since, w.failures
        FROM deliveries d JOIN webhooks w ON w.id = d.webhook
        WHERE d.id = ?1 AND d.state = 'pending'";
    connection.first(sql, [id as i64], |cells| {
        Ok(Tried {
            webhook: cells.next()?,
            lane: (cells.next()?, cells.next()?, cells.next()?),
            created_at: cells.time()?,
            attempts: cells.next()?,
            failing_since: cells.optional_time()?,
            failures: cells.next()?,
        })
    })
}

/// Updates the webhook's failure counters for an attempt.
fn note(
    connection: &Connection,
    tried: &Tried,
    state: DeliveryState,
    status: Option<u16>,
    now: Timestamp,
) -> Result<()> {
    let Tried { webhook, failing_since, failures, attempts, .. } = tried;
    if state == DeliveryState::Delivered {
        if failing_since.is_some() {
            let fresh = "UPDATE webhooks SET failing_since = NULL, failures = 0, not_before = 0
                WHERE id = ?1";
            connection.run(fresh, [webhook])?;
        }
        return Ok(());
    }
    let failing_since = failing_since.unwrap_or(now);
    let failures = failures.saturating_add(u32::from(*attempts == 0));
    let not_before = now.plus_millis(pause_millis(failures));
    let is_dead = status == Some(GONE)
        || state == DeliveryState::GivenUp && now >= failing_since.plus_millis(DISABLE_MILLIS);
    let (since, not_before) = (failing_since.0 as i64, not_before.0 as i64);
    connection.run(
        "UPDATE webhooks SET failing_since = ?2, failures = ?3, not_before = ?4,
            state = iif(?5, 'disabled', state) WHERE id = ?1",
        params![webhook, since, failures, not_before, is_dead],
    )
}

/// Schedules the next pending event of the same source.
fn release_next(connection: &Connection, tried: &Tried, now: Timestamp) -> Result<()> {
    let (collection, sub_tenant, source) = &tried.lane;
    connection.run(
        "UPDATE deliveries SET due_at = ?5 WHERE id = (SELECT min(id) FROM deliveries
            WHERE collection = ?1 AND sub_tenant = ?2 AND source = ?3 AND webhook = ?4
              AND state = 'pending')",
        params![collection, sub_tenant, source, tried.webhook, now.0 as i64],
    )
}

/// Removes the oldest entries of a log that exceeds its limit.
fn prune(connection: &Connection, webhook: &str) -> Result<()> {
    connection.run(
        "DELETE FROM deliveries WHERE webhook = ?1 AND state <> 'pending' AND id <=
            (SELECT id FROM deliveries WHERE webhook = ?1 AND state <> 'pending'
             ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        params![webhook, limits::WEBHOOK_LOG_MAX as i64],
    )
}

/// Delay before the next attempt after so many attempts, give or take a fifth.
fn retry_millis(attempts: u32, jitter: u64) -> u64 {
    let doubled = RETRY_FIRST_MILLIS << attempts.saturating_sub(1).min(16);
    let pause = doubled.min(RETRY_LAST_MILLIS);
    pause / 100 * (80 + jitter % 41)
}

/// Pause of a webhook after the first attempts of so many events have failed.
fn pause_millis(failures: u32) -> u64 {
    match failures.checked_sub(FAILURES_FREE + 1) {
        None => 0,
        Some(more) => (RETRY_FIRST_MILLIS << more.min(16)).min(PAUSE_LAST_MILLIS),
    }
}
