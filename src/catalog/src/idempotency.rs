//! Repeated requests: the first response to an `Idempotency-Key` is kept and replayed.
//!
//! ```text
//! begin -> Fresh(guard) -> work -> finish(response)     later: begin -> Replay(response)
//!             |  meanwhile: begin -> InFlight
//!             +- failed, or the server stopped: the row stays without a response, and the next
//!                begin is Fresh with the SAME nonce
//! ```
//! Ids that the first request generated are derived from the nonce. So a request that was cut off
//! after it stored something, and is sent again, replaces that something and doubles nothing.

use std::fmt;

use rusqlite::{Connection, params};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{Cells, Statements};
use lodestone_types::Timestamp;

/// Time for which a response is kept: 24 hours.
pub const IDEMPOTENCY_MILLIS: u64 = 24 * 3600 * 1000;
/// Bytes of a response that are kept at most. The longest one names 100 documents.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Rows removed in passing at most.
const PURGE_MAX: i64 = 64;

/// The API key, the path and the value of the header: together the name of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    key_id: String,
    path: String,
    value: String,
}

/// Instruction for a request that carries an idempotency key.
#[derive(Debug)]
pub enum RequestStart {
    /// Carry it out, then call [`Catalog::finish_request`].
    Fresh(RequestGuard),
    /// Answer this.
    Replay {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// An equal request under this name is being carried out now.
    InFlight,
    /// The name was used for another request.
    Mismatch,
}

/// Permission to carry out a request. Dropped without a response, it lets the next request try.
pub struct RequestGuard {
    catalog: Catalog,
    name: Name,
    nonce: [u8; 16],
    begun_at: Timestamp,
}

impl RequestGuard {
    /// A random number that is the same for every try of this request; generated ids derive from
    /// it.
    pub fn nonce(&self) -> [u8; 16] {
        self.nonce
    }

    /// When the first try of this request began.
    pub fn begun_at(&self) -> Timestamp {
        self.begun_at
    }
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestGuard").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.catalog.inner.in_flight.lock().remove(&self.name);
    }
}

impl Catalog {
    /// Begins a request that carries an idempotency key. `request_hash` identifies its contents.
    pub fn begin_request(
        &self,
        key_id: &str,
        path: &str,
        value: &str,
        request_hash: [u8; 32],
    ) -> Result<RequestStart> {
        let [key_id, path, value] = [key_id, path, value].map(str::to_owned);
        let name = Name { key_id, path, value };
        if !self.inner.in_flight.lock().insert(name.clone()) {
            return Ok(RequestStart::InFlight);
        }
        let mut nonce = [0; 16];
        self.inner.ids.fill(&mut nonce);
        let now = self.inner.clock.now();
        // From here on the guard's drop clears the name in all cases.
        let mut guard =
            RequestGuard { catalog: self.clone(), name: name.clone(), nonce, begun_at: now };
        let known = self.write(move |connection| {
            purge(connection, now)?;
            note(connection, &name, request_hash, nonce, now)
        })?;
        match known {
            Known { hash, .. } if hash != request_hash => Ok(RequestStart::Mismatch),
            Known { response: Some((status, body)), .. } => {
                Ok(RequestStart::Replay { status, body })
            }
            Known { nonce, begun_at, .. } => {
                (guard.nonce, guard.begun_at) = (nonce, begun_at);
                Ok(RequestStart::Fresh(guard))
            }
        }
    }

    /// Keeps the response for repetitions.
    ///
    /// # Errors
    /// [`CatalogError::ResponseTooLong`], storage errors.
    pub fn finish_request(&self, guard: RequestGuard, status: u16, body: &[u8]) -> Result<()> {
        if body.len() > BODY_BYTES_MAX {
            return Err(CatalogError::ResponseTooLong { bytes: body.len(), max: BODY_BYTES_MAX });
        }
        let (name, body) = (guard.name.clone(), body.to_vec());
        self.write(move |connection| {
            connection.run(
                "UPDATE idempotency SET status = ?4, body = ?5
                 WHERE key_id = ?1 AND path = ?2 AND name = ?3",
                params![name.key_id, name.path, name.value, status, body],
            )
        })
    }
}

struct Known {
    hash: [u8; 32],
    nonce: [u8; 16],
    begun_at: Timestamp,
    response: Option<(u16, Vec<u8>)>,
}

/// The row of a request; it is made where there is none.
fn note(
    connection: &Connection,
    name: &Name,
    hash: [u8; 32],
    nonce: [u8; 16],
    now: Timestamp,
) -> Result<Known> {
    // Removal in passing is bounded, so an old row may still be there.
    let end = now.0.saturating_sub(IDEMPOTENCY_MILLIS) as i64;
    connection.run(
        "DELETE FROM idempotency WHERE key_id = ?1 AND path = ?2 AND name = ?3
            AND created_at <= ?4",
        params![name.key_id, name.path, name.value, end],
    )?;
    connection.run(
        "INSERT INTO idempotency (key_id, path, name, request_hash, nonce, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        params![name.key_id, name.path, name.value, hash, nonce, now.0 as i64],
    )?;
    let sql = "SELECT request_hash, nonce, created_at, status, body FROM idempotency
        WHERE key_id = ?1 AND path = ?2 AND name = ?3";
    connection.one(sql, params![name.key_id, name.path, name.value], read_known)
}

fn read_known(cells: &mut Cells<'_>) -> Result<Known> {
    let (hash, nonce, begun_at) = (cells.next()?, cells.next()?, cells.time()?);
    let response = match (cells.next::<Option<u16>>()?, cells.next::<Option<Vec<u8>>>()?) {
        (Some(status), Some(body)) => Some((status, body)),
        _ => None,
    };
    Ok(Known { hash, nonce, begun_at, response })
}

fn purge(connection: &Connection, now: Timestamp) -> Result<()> {
    let end = now.0.saturating_sub(IDEMPOTENCY_MILLIS) as i64;
    connection.run(
        "DELETE FROM idempotency WHERE id IN
            (SELECT id FROM idempotency WHERE created_at <= ?1 ORDER BY created_at LIMIT ?2)",
        params![end, PURGE_MAX],
    )
}
