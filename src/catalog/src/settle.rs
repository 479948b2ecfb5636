//! Settlement of jobs. Rows of ended jobs are kept for reporting:
//!
//! | row | stays until |
//! |---|---|
//! | success | [`RETENTION_MILLIS`] after it ended, or 100 later ones of its source have ended |
//! | errored, newest of its source | a newer job of the source ends, or the source is deleted |
//! | errored, not the newest | [`RETENTION_MILLIS`] after the newer one ended, or 100 have |
//!
//! The newest errored row is kept because it may be the only record of its source.

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::Catalog;
use super::error::Result;
use super::outbox::{SourceEvent, Teller};
use super::rows::{Statements, blob, read_state};
use super::{allowance, tenants};
use crate::job::{Outcome, Settled, Settlement};
use lodestone_types::{
    CollectionId, CommitHead, EventKind, JobErrorCode, JobEvent, JobState, JobStatus, Sequence,
    Timestamp,
};

/// Retention time of the row of an ended job: 7 days.
pub const RETENTION_MILLIS: u64 = 7 * 24 * 3600 * 1000;
/// Delay before the second attempt; each further attempt waits four times as long.
pub const RETRY_PAUSE_MILLIS: u64 = 1000;
/// Maximum length of a message, in characters.
const MESSAGE_CHARS_MAX: usize = 1000;
/// Maximum number of ended jobs kept per source besides the newest: settling a job reads them all.
const ENDED_KEPT_MAX: usize = 100;
/// Maximum number of rows purged per settlement.
const PURGE_MAX: i64 = 256;

impl Catalog {
    /// Records outcomes of jobs of one collection, together with its newest manifest, in one
    /// durable step. Jobs that are gone or not in progress are ignored.
    pub fn settle(
        &self,
        collection: CollectionId,
        settlements: Vec<Settlement>,
        head: Option<CommitHead>,
    ) -> Result<Settled> {
        let sequences: Vec<Sequence> = settlements.iter().map(|end| end.sequence).collect();
        let (settled, sources) = self.write_telling(move |connection, teller| {
            let (mut settled, mut sources) = (Settled::default(), Vec::new());
            for Settlement { sequence, outcome } in settlements {
                let Some(ended) = find(connection, sequence)? else { continue };
                if ended.collection == blob(collection) {
                    let end = End::of(outcome);
                    apply(connection, &ended, end, teller, &mut settled)?;
                    sources.push(ended.source);
                }
            }
            if settled.states.iter().any(|(_, state)| state.is_settled()) {
                teller.tell_drained(connection, collection)?;
            }
            if let Some(head) = head {
                tenants::store_head(connection, collection, head)?;
            }
            purge(connection, teller.now)?;
            Ok((settled, sources))
        })?;
        for source in &sources {
            self.inner.changes.note(source);
        }
        self.inner.stages.end(sequences.iter().copied());
        self.inner.job_watchers.wake(&sequences);
        for (_, state) in &settled.states {
            self.inner.stages.meters.settled(*state);
        }
        self.inner.work.notify();
        Ok(settled)
    }
}

/// A job about to be settled.
pub(super) struct Ended {
    pub(super) sequence: Sequence,
    pub(super) collection: [u8; 16],
    job_id: String,
    pub(super) sub_tenant: String,
    pub(super) source: String,
    pub(super) size_bytes: u64,
    raw_key: String,
    pub(super) state: JobState,
}

/// The event that ends a job, and its details.
pub(super) struct End {
    pub(super) event: JobEvent,
    pub(super) chunks: Option<u64>,
    pub(super) error_code: Option<JobErrorCode>,
    pub(super) message: String,
}

impl End {
    fn of(outcome: Outcome) -> Self {
        let event = outcome.event();
        let (chunks, error_code, message) = match outcome {
            Outcome::Published { chunks } => (Some(chunks), None, String::new()),
            Outcome::Rejected { error_code, message } | Outcome::Failed { error_code, message } => {
                (None, Some(error_code), message.chars().take(MESSAGE_CHARS_MAX).collect())
            }
            Outcome::Released => (None, None, String::new()),
        };
        Self { event, chunks, error_code, message }
    }
}

pub(super) fn find(connection: &Connection, sequence: Sequence) -> Result<Option<Ended>> {
    let sql = "SELECT seq, collection, job_id, sub_tenant, source, size_bytes, raw_key, status,
            attempts, interruptions FROM jobs WHERE seq = ?1";
    connection.first(sql, [sequence.0 as i64], |cells| {
        Ok(Ended {
            sequence: Sequence(cells.number()?),
            collection: cells.next()?,
            job_id: cells.next()?,
            sub_tenant: cells.next()?,
            source: cells.next()?,
            size_bytes: cells.number()?,
            raw_key: cells.next()?,
            state: read_state(cells)?,
        })
    })
}

/// Applies a state transition to a job, and releases older jobs of its source if it ended.
pub(super) fn apply(
    connection: &Connection,
    ended: &Ended,
    end: End,
    teller: &mut Teller,
    settled: &mut Settled,
) -> Result<()> {
    let Some(state) = ended.state.after(end.event) else { return Ok(()) };
    let now = teller.now;
    if state.status == JobStatus::Success {
        allowance::published(connection, ended.sequence)?;
    }
    match state.status {
        JobStatus::Success | JobStatus::Errored => {
            finish(connection, ended, state, &end, now)?;
            teller.tell(connection, event_of(ended, state.status, &end))?;
        }
        JobStatus::Queued if has_newer(connection, ended)? => {
            // A later upload was accepted in the meantime and supersedes this one.
            connection.run("DELETE FROM jobs WHERE seq = ?1", [ended.sequence.0 as i64])?;
            settled.obsolete_raw_keys.extend(Some(ended.raw_key.clone()).filter(|k| !k.is_empty()));
            return Ok(());
        }
        JobStatus::Queued => requeue(connection, ended, state, end.event, now)?,
        JobStatus::InProgress => unreachable!("no end leaves a job in progress"),
    }
    if state.status.is_settled() {
        release_older(connection, ended, state.status, now, settled)?;
    }
    settled.states.push((ended.sequence, state.status));
    Ok(())
}

fn event_of<'a>(ended: &'a Ended, status: JobStatus, end: &'a End) -> SourceEvent<'a> {
    let is_success = status == JobStatus::Success;
    SourceEvent {
        kind: if is_success { EventKind::SourceSuccess } else { EventKind::SourceErrored },
        collection: CollectionId(Uuid::from_bytes(ended.collection)),
        sub_tenant: &ended.sub_tenant,
        source: &ended.source,
        job_id: Some(&ended.job_id),
        chunks: end.chunks,
        error_code: end.error_code,
        message: Some(end.message.as_str()).filter(|_| !is_success),
    }
}

/// Marks a job as ended. After success the metadata maps are in the segment, so the row drops them.
fn finish(
    connection: &Connection,
    ended: &Ended,
    state: JobState,
    end: &End,
    now: Timestamp,
) -> Result<()> {
    let is_success = state.status == JobStatus::Success;
    let purge_at = is_success.then(|| now.plus_millis(RETENTION_MILLIS).0 as i64);
    connection.run(
        "UPDATE jobs SET status = ?2, attempts = ?3, interruptions = ?4, chunks = ?5, fault = ?6,
            message = ?7, updated_at = ?8, finished_at = ?8, purge_at = ?9,
            tenant_metadata = iif(?10, NULL, tenant_metadata),
            document_metadata = iif(?10, NULL, document_metadata)
         WHERE seq = ?1",
        params![
            ended.sequence.0 as i64,
            state.status.as_str(),
            state.attempts,
            state.interruptions,
            end.chunks.map(|chunks| chunks as i64),
            end.error_code.map(JobErrorCode::as_str),
            end.message,
            now.0 as i64,
            purge_at,
            is_success,
        ],
    )
}

fn requeue(
    connection: &Connection,
    ended: &Ended,
    state: JobState,
    event: JobEvent,
    now: Timestamp,
) -> Result<()> {
    let not_before = match event {
        JobEvent::Failed => now.plus_millis(pause_millis(state.attempts)).0,
        _ => 0,
    };
    connection.run(
        "UPDATE jobs SET status = ?2, attempts = ?3, interruptions = ?4, not_before = ?5,
            updated_at = ?6 WHERE seq = ?1",
        params![
            ended.sequence.0 as i64,
            state.status.as_str(),
            state.attempts,
            state.interruptions,
            not_before as i64,
            now.0 as i64,
        ],
    )
}

/// Delay before the next attempt after so many attempts.
pub(super) fn pause_millis(attempts: u32) -> u64 {
    RETRY_PAUSE_MILLIS << (2 * attempts.saturating_sub(1).min(8))
}

fn has_newer(connection: &Connection, ended: &Ended) -> Result<bool> {
    let Ended { sequence, collection, sub_tenant, source, .. } = ended;
    connection.any(
        "SELECT 1 FROM jobs WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
            AND seq > ?4",
        params![source, collection, sub_tenant, sequence.0 as i64],
    )
}

/// Releases older ended jobs of the same source: their originals can be deleted (except that of the
/// visible version as long as only errors follow it), and their rows after the retention time.
fn release_older(
    connection: &Connection,
    ended: &Ended,
    status: JobStatus,
    now: Timestamp,
    settled: &mut Settled,
) -> Result<()> {
    let Ended { sequence, collection, sub_tenant, source, raw_key, .. } = ended;
    let before = params![source, collection, sub_tenant, sequence.0 as i64];
    let older = connection.all(
        "SELECT seq, status, raw_key, purge_at IS NULL FROM jobs
         WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3 AND seq < ?4
            AND status IN ('success', 'errored') ORDER BY seq",
        before,
        |cells| {
            let (sequence, was) = (cells.number()?, cells.word(JobStatus::from_word)?);
            Ok((sequence, was, cells.next::<String>()?, cells.next::<bool>()?))
        },
    )?;
    let purge_at = now.plus_millis(RETENTION_MILLIS).0 as i64;
    let too_many = older.len().saturating_sub(ENDED_KEPT_MAX).min(PURGE_MAX as usize);
    for (place, (sequence, was, key, is_kept)) in older.into_iter().enumerate() {
        let releases_original =
            !key.is_empty() && (status == JobStatus::Success || was == JobStatus::Errored);
        if place < too_many && (releases_original || key.is_empty()) {
            connection.run("DELETE FROM jobs WHERE seq = ?1", [sequence as i64])?;
        } else if releases_original || is_kept {
            connection.run(
                "UPDATE jobs SET purge_at = coalesce(purge_at, ?2),
                    raw_key = iif(?3, '', raw_key) WHERE seq = ?1",
                params![sequence as i64, purge_at, releases_original],
            )?;
        }
        if releases_original && key != *raw_key {
            settled.obsolete_raw_keys.push(key);
        }
    }
    Ok(())
}

/// Purges a bounded number of rows past their retention time.
fn purge(connection: &Connection, now: Timestamp) -> Result<()> {
    connection.run(
        "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
            WHERE purge_at IS NOT NULL AND purge_at <= ?1 ORDER BY purge_at LIMIT ?2)",
        params![now.0 as i64, PURGE_MAX],
    )
}
