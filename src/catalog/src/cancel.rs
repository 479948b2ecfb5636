//! Cancellation of jobs by deletion: their rows are removed, whatever their state.

use rusqlite::{Connection, params};

use super::error::Result;
use super::outbox::Teller;
use super::rows::{Cells, Statements, blob};
use super::steps::ROWS_PER_STEP;
use super::{Catalog, known, outbox};
use lodestone_types::{CollectionId, JobStatus, Sequence, SourceId, SubTenantId};

/// The jobs removed by a cancellation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Canceled {
    /// The sources that existed, in the order asked. Empty if a whole sub-tenant was cancelled.
    pub existed: Vec<SourceId>,
    /// Keys of the originals that the removed jobs referred to.
    pub raw_keys: Vec<String>,
    /// Sequences of the removed jobs.
    pub sequences: Vec<Sequence>,
    /// Whether any removed job was still waiting or running.
    pub had_open: bool,
}

impl Catalog {
    /// Removes all jobs of deleted sources. A worker that holds one will find that it is no longer
    /// live.
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
                // Memories do not cause events.
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
        self.end_canceled(&canceled);
        for source in sources {
            self.inner.changes.note(source.as_str());
        }
        Ok(canceled)
    }

    /// Removes the jobs of a sub-tenant in steps, running ones before waiting ones: if this is
    /// interrupted in between, the newer job of each source is left.
    pub(super) fn remove_sub_tenant_jobs(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
    ) -> Result<Canceled> {
        let mut canceled = Canceled::default();
        for states in ["'success', 'errored'", "'in_progress'", "'queued'"] {
            let name = sub_tenant.clone();
            let step = move |connection: &Connection, teller: &mut Teller| {
                let removed =
                    remove_in_sub_tenant(connection, collection, &name, states, ROWS_PER_STEP)?;
                if removed.had_open {
                    teller.tell_drained(connection, collection)?;
                }
                Ok((removed.sequences.len(), removed))
            };
            self.in_steps(step, |removed| {
                self.end_canceled(&removed);
                canceled.add(removed);
            })?;
        }
        Ok(canceled)
    }

    /// Notifies workers and watchers of the removed jobs.
    pub(super) fn end_canceled(&self, canceled: &Canceled) {
        self.inner.stages.cancel(&canceled.sequences);
        self.inner.job_watchers.wake(&canceled.sequences);
    }
}

impl Canceled {
    pub(super) fn add(&mut self, other: Self) {
        let Self { existed, raw_keys, sequences, had_open } = other;
        self.existed.extend(existed);
        self.raw_keys.extend(raw_keys);
        self.sequences.extend(sequences);
        self.had_open |= had_open;
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

/// Removes up to `limit` jobs of a sub-tenant in the given states, within a transaction.
pub(super) fn remove_in_sub_tenant(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    states: &str,
    limit: i64,
) -> Result<Canceled> {
    let sql = format!(
        "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
            WHERE collection = ?1 AND sub_tenant = ?2 AND status IN ({states}) LIMIT ?3)
         RETURNING seq, raw_key, status"
    );
    let mut canceled = Canceled::default();
    let scope = params![blob(collection), sub_tenant.as_str(), limit];
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
