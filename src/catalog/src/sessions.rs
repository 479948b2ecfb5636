//! Past turns of conversations.

use rusqlite::{Connection, params};

use super::Catalog;
use super::error::Result;
use super::rows::{Statements, blob};
use super::{sub_tenants, tenants};
use lodestone_types::limits::{
    SESSION_BYTES_MAX, SESSION_TURNS, SESSIONS_BYTES_MAX, SESSIONS_KEPT,
};
use lodestone_types::{CollectionId, SessionId, SubTenantId, Timestamp};

/// Number of sessions removed at once: of the expired ones, and of a tenant that has too many.
const PURGE_MAX: usize = 64;

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// When the question was asked.
    pub asked_at: Timestamp,
}

impl Catalog {
    /// Returns the last `max` turns of a session, oldest first; none if it has expired.
    pub fn turns(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        session: &SessionId,
        max: usize,
    ) -> Result<Vec<Turn>> {
        let idle_since = self.idle_since();
        self.read(|connection| {
            let sql = "SELECT t.question, t.answer, t.asked_at FROM sessions s
                JOIN turns t ON t.session = s.id
                WHERE s.collection = ?1 AND s.sub_tenant = ?2 AND s.name = ?3 AND s.last_at > ?4
                ORDER BY t.id DESC LIMIT ?5";
            let (sub_tenant, session) = (sub_tenant.as_str(), session.as_str());
            let scope = params![blob(collection), sub_tenant, session, idle_since, max as i64];
            let mut turns = connection.all(sql, scope, |cells| {
                let (question, answer) = (cells.next()?, cells.next()?);
                Ok(Turn { question, answer, asked_at: cells.time()? })
            })?;
            turns.reverse();
            Ok(turns)
        })
    }

    /// Appends a turn; only the newest [`SESSION_TURNS`] are kept, within [`SESSION_BYTES_MAX`]. If
    /// the tenant then has more than [`SESSIONS_KEPT`] sessions or [`SESSIONS_BYTES_MAX`] bytes of
    /// them, some of those that were used least recently are removed. Does nothing for a sub-tenant
    /// that does not exist.
    ///
    /// # Errors
    /// [`super::CatalogError::CollectionUnknown`], storage errors.
    pub fn append_turn(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        session: &SessionId,
        question: String,
        answer: String,
    ) -> Result<()> {
        let (sub_tenant, session) = (sub_tenant.clone(), session.clone());
        let (idle_since, now) = (self.idle_since(), self.inner.clock.now());
        self.write(move |connection| {
            tenants::require(connection, collection)?;
            // The sub-tenant may have been deleted, with its sessions, while the answer was
            // generated.
            if !sub_tenants::exists(connection, collection, &sub_tenant)? {
                return Ok(());
            }
            let id = begin(connection, collection, &sub_tenant, &session, idle_since, now)?;
            connection.run(
                "INSERT INTO turns (session, asked_at, question, answer)
                 VALUES (?1, ?2, ?3, ?4)",
                params![id, now.0 as i64, question, answer],
            )?;
            connection.run(
                "DELETE FROM turns WHERE id IN (SELECT id FROM
                    (SELECT id, row_number() OVER newest AS number,
                        sum(octet_length(question) + octet_length(answer)) OVER newest AS bytes
                     FROM turns WHERE session = ?1 WINDOW newest AS (ORDER BY id DESC))
                 WHERE number > ?2 OR (number > 1 AND bytes > ?3))",
                params![id, SESSION_TURNS as i64, SESSION_BYTES_MAX as i64],
            )?;
            connection.run(
                "UPDATE sessions SET bytes =
                    (SELECT sum(octet_length(question) + octet_length(answer)) FROM turns
                     WHERE session = ?1)
                 WHERE id = ?1",
                params![id],
            )?;
            make_room(connection, collection, id)
        })
    }

    /// Removes some of the sessions that have expired; returns whether there may be more.
    pub fn purge_sessions(&self) -> Result<bool> {
        let idle_since = self.idle_since();
        let sql = "SELECT 1 FROM sessions WHERE last_at <= ?1";
        if !self.read(|connection| connection.any(sql, params![idle_since]))? {
            return Ok(false);
        }
        let removed = self.write_here(move |connection| {
            connection.changed(
                "DELETE FROM sessions WHERE id IN
                    (SELECT id FROM sessions WHERE last_at <= ?1 ORDER BY last_at LIMIT ?2)",
                params![idle_since, PURGE_MAX as i64],
            )
        })?;
        Ok(removed == PURGE_MAX)
    }

    /// Marks a session as used without adding a turn; does not create one.
    pub fn touch_session(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        session: &SessionId,
    ) -> Result<()> {
        let (sub_tenant, session) = (sub_tenant.clone(), session.clone());
        let (idle_since, now) = (self.idle_since(), self.inner.clock.now().0 as i64);
        self.write(move |connection| {
            connection.run(
                "UPDATE sessions SET last_at = ?5
                 WHERE collection = ?1 AND sub_tenant = ?2 AND name = ?3 AND last_at > ?4",
                params![blob(collection), sub_tenant.as_str(), session.as_str(), idle_since, now],
            )
        })
    }

    /// The time at or before which a session must have been last used to be expired; -1 if sessions
    /// never expire.
    fn idle_since(&self) -> i64 {
        match self.inner.options.session_idle_millis {
            0 => -1,
            idle => self.inner.clock.now().0.saturating_sub(idle) as i64,
        }
    }
}

/// Touches the row of a live session and returns it; creates one if there is none or it has
/// expired.
fn begin(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    session: &SessionId,
    idle_since: i64,
    now: Timestamp,
) -> Result<i64> {
    let name = params![blob(collection), sub_tenant.as_str(), session.as_str(), idle_since];
    connection.run(
        "DELETE FROM sessions WHERE collection = ?1 AND sub_tenant = ?2 AND name = ?3
            AND last_at <= ?4",
        name,
    )?;
    let touch = "UPDATE sessions SET last_at = ?4
        WHERE collection = ?1 AND sub_tenant = ?2 AND name = ?3 RETURNING id";
    let now = now.0 as i64;
    let name = params![blob(collection), sub_tenant.as_str(), session.as_str(), now];
    if let Some(id) = connection.first(touch, name, |cells| cells.next())? {
        return Ok(id);
    }
    connection.run(
        "INSERT INTO sessions (collection, sub_tenant, name, last_at)
         VALUES (?1, ?2, ?3, ?4)",
        name,
    )?;
    Ok(connection.last_insert_rowid())
}

/// Removes some sessions of a tenant that has too many: those used least recently, but not
/// `newest`. Several at once, so that short old ones make room for long new ones in time.
fn make_room(connection: &Connection, collection: CollectionId, newest: i64) -> Result<()> {
    let is_over = connection.any(
        "SELECT 1 FROM session_use WHERE collection = ?1 AND (sessions > ?2 OR bytes > ?3)",
        params![blob(collection), SESSIONS_KEPT as i64, SESSIONS_BYTES_MAX as i64],
    )?;
    if !is_over {
        return Ok(());
    }
    connection.run(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions
            WHERE collection = ?1 AND id <> ?2 ORDER BY last_at LIMIT ?3)",
        params![blob(collection), newest, PURGE_MAX as i64],
    )
}
