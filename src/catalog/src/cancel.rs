//! Cancellation of jobs by deletion: their rows are removed in any state.

use rusqlite::{Connection, params};

use super::error::Result;
use super::rows::{Cells, Statements, blob};
use super::{Catalog, known, outbox};
use lodestone_types::{CollectionId, JobStatus, Sequence, SourceId, SubTenantId};

/// Rows in one step of a long removal, so that others write in between.
pub(super) const ROWS_PER_STEP: i64 = 1000;

/// Jobs that a cancellation removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Canceled {
    /// The sources that had a job in any state, in the order asked. Empty where a whole
    /// sub-tenant was meant.
    pub existed: Vec<SourceId>,
    /// Keys of originals that the removed jobs referred to.
    pub raw_keys: Vec<String>,
    /// The jobs removed.
    pub sequences: Vec<Sequence>,
    /// Whether one of them had not ended.
    pub had_open: bool,
}

impl Catalog {
    /// Removes every job of these sources, which are deleted. A worker that has one finds it no
    /// longer live.
    pub fn cancel_sources(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        sources: &[SourceId],
    ) -> Result<Canceled> {
        let (sub_tenant, removed) = (sub_tenant.clone(), sources.to_vec());
        let canceled = self.write_telling(move |connection, teller| {
            let mut canceled = Canceled::default();
            for source in &removed {
                let before = canceled.sequences.len();
                remove_source_jobs(connection, collection, &sub_tenant, source, &mut canceled)?;
                let was_known = known::forget(connection, collection, &sub_tenant, source)?;
                let had_job = canceled.sequences.len() > before;
                // Nobody is told of memories.
                if (was_known || had_job) && !sub_tenant.is_of_memories() {
                    let event = outbox::deleted(collection, &sub_tenant, source.as_str());
                    teller.tell(connection, event)?;
                }
                if had_job {
                    canceled.existed.push(source.clone());
                }
            }
            if canceled.had_open {
                teller.tell_drained(connection, collection)?;
            }
            Ok(canceled)
        })?;
        self.inner.stages.cancel(&canceled.sequences);
        self.inner.job_watchers.wake(&canceled.sequences);
        for source in sources {
            self.inner.changes.note(source.as_str());
        }
        Ok(canceled)
    }

    /// Removes settled jobs of a sub-tenant in steps, so that the deletion of the rest in one
    /// transaction is short. Returns the keys of their originals.
    pub(super) fn remove_settled_jobs(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
    ) -> Result<Vec<String>> {
        let mut raw_keys = Vec::new();
        loop {
            let name = sub_tenant.clone();
            let removed = self.write(move |connection| {
                let settled = "AND status IN ('success', 'errored') LIMIT ?3";
                remove_in_sub_tenant(connection, collection, &name, settled)
            })?;
            let is_last = (removed.sequences.len() as i64) < ROWS_PER_STEP;
            raw_keys.extend(removed.raw_keys);
            if is_last {
                return Ok(raw_keys);
            }
        }
    }
}

fn remove_source_jobs(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    source: &SourceId,
    canceled: &mut Canceled,
) -> Result<()> {
    let sql = "DELETE FROM jobs WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
        RETURNING seq, raw_key, status";
    let scope = params![source.as_str(), blob(collection), sub_tenant.as_str()];
    connection.each(sql, scope, |cells| take_removed(cells, canceled))
}

/// Removes what is left of a sub-tenant's jobs inside a transaction.
pub(super) fn remove_sub_tenant_jobs(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
) -> Result<Canceled> {
    let every = "AND status IN ('queued', 'in_progress', 'success', 'errored') LIMIT ?3";
    let mut canceled = Canceled::default();
    loop {
        let step = remove_in_sub_tenant(connection, collection, sub_tenant, every)?;
        let is_last = (step.sequences.len() as i64) < ROWS_PER_STEP;
        canceled.had_open |= step.had_open;
        canceled.raw_keys.extend(step.raw_keys);
        canceled.sequences.extend(step.sequences);
        if is_last {
            return Ok(canceled);
        }
    }
}

fn remove_in_sub_tenant(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    condition: &str,
) -> Result<Canceled> {
    let sql = format!(
        "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
            WHERE collection = ?1 AND sub_tenant = ?2 {condition})
         RETURNING seq, raw_key, status"
    );
    let mut canceled = Canceled::default();
    let scope = params![blob(collection), sub_tenant.as_str(), ROWS_PER_STEP];
    connection.each(&sql, scope, |cells| take_removed(cells, &mut canceled))?;
    Ok(canceled)
}

fn take_removed(cells: &mut Cells<'_>, canceled: &mut Canceled) -> Result<()> {
    canceled.sequences.push(Sequence(cells.number()?));
    let raw_key: String = cells.next()?;
    if !raw_key.is_empty() {
        canceled.raw_keys.push(raw_key);
    }
    canceled.had_open |= !cells.word(JobStatus::from_word)?.is_settled();
    Ok(())
}
