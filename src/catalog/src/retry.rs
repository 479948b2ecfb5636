//! Retry of failed jobs on request.

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::Catalog;
use super::error::Result;
use super::rows::Statements;
use super::settle::{Ended, find};
use super::submit::check_limits;
use lodestone_types::{CollectionId, JobEvent, JobStatus, Sequence};

/// Result of [`Catalog::retry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The job is waiting or running: it was requeued just now, or had not ended.
    Open,
    /// The job has succeeded.
    Succeeded,
    /// A newer upload of the same source has replaced it.
    Replaced,
    /// There is no such job.
    Unknown,
}

impl Catalog {
    /// Queues a failed job again, with its original and as many attempts as a new job. Durable when
    /// this returns; a second call changes nothing.
    ///
    /// # Errors
    /// [`crate::CatalogError::QueueFull`], storage errors.
    pub fn retry(&self, sequence: Sequence) -> Result<Retry> {
        let (now, limits) = (self.inner.clock.now(), self.inner.options.queue);
        let (result, source) = self.write(move |connection| {
            let Some(job) = find(connection, sequence)? else {
                return Ok((Retry::Unknown, None));
            };
            let Some(state) = job.state.after(JobEvent::Retried) else {
                let is_done = job.state.status == JobStatus::Success;
                return Ok((if is_done { Retry::Succeeded } else { Retry::Open }, None));
            };
            if newest_of_source(connection, &job)? != sequence {
                return Ok((Retry::Replaced, None));
            }
            let collection = CollectionId(Uuid::from_bytes(job.collection));
            check_limits(connection, collection, job.size_bytes, &limits)?;
            let (status, at) = (state.status.as_str(), now.0 as i64);
            let (attempts, interruptions) = (state.attempts, state.interruptions);
            connection.run(
                "UPDATE jobs SET status = ?2, attempts = ?3, interruptions = ?4, not_before = 0,
                    fault = NULL, message = '', started_at = NULL, finished_at = NULL,
                    updated_at = ?5 WHERE seq = ?1",
                params![sequence.0 as i64, status, attempts, interruptions, at],
            )?;
            Ok((Retry::Open, Some(job.source)))
        })?;
        if let Some(source) = source {
            self.inner.changes.note(&source);
            self.inner.job_watchers.wake(&[sequence]);
            self.inner.work.notify();
        }
        Ok(result)
    }
}

/// The newest accepted job of the source of a job, known even after its row has been purged.
fn newest_of_source(connection: &Connection, job: &Ended) -> Result<Sequence> {
    let sql = "SELECT max(seq) FROM (
            SELECT seq FROM jobs WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
            UNION ALL SELECT seq FROM known_sources
                WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3)";
    let of_job = params![job.source, job.collection, job.sub_tenant];
    connection.one(sql, of_job, |cells| Ok(Sequence(cells.number()?)))
}
