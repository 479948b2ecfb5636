//! Claims: picking the next collection and a batch of its jobs.
//!
//! Collections with ready jobs are served round-robin in the order of their ids, so a tenant with a
//! million jobs delays another by at most one claim. The position in the round is a single id in
//! memory; the index `jobs_ready` finds the next collection after it in one step, however many jobs
//! wait. Jobs whose retry is not due are not in that index; each claim puts the due ones back into
//! it.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{JOB_COLUMNS, Statements, blob, read_job, read_state};
use super::settle::pause_millis;
use super::tenants;
use crate::job::{Claim, ClaimLimits, ClaimedJob, Duty};
use lodestone_types::{
    CollectionId, JobEvent, JobStatus, Sequence, SourceId, Stage, Timestamp, limits,
};

/// Maximum number of delayed jobs requeued by one claim.
const WAKE_MAX: i64 = 1000;
/// Maximum number of ready jobs of one collection examined by one claim. Skipped jobs wait for a
/// running job of the same source, or for a claim of their own, so they are few.
const LOOK_MAX: i64 = 4096;

/// The collection served last, per duty; the round continues after it.
pub(super) type LastServed = Arc<Mutex<[[u8; 16]; Duty::ALL.len()]>>;

impl Catalog {
    /// Claims the oldest jobs ready for `duty` from the next collection in turn; `None` if there
    /// are none.
    ///
    /// # Errors
    /// [`CatalogError::NotRecovered`] until interrupted jobs have been requeued; storage errors.
    pub fn claim(&self, duty: Duty, limits: ClaimLimits) -> Result<Option<Claim>> {
        self.claim_except(duty, limits, Vec::new())
    }

    /// Like [`Self::claim`], but passes over the jobs of some collections.
    ///
    /// # Errors
    /// Those of [`Self::claim`].
    pub fn claim_except(
        &self,
        duty: Duty,
        limits: ClaimLimits,
        except: Vec<CollectionId>,
    ) -> Result<Option<Claim>> {
        if !self.inner.is_recovered.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(CatalogError::NotRecovered);
        }
        let work = self.inner.work.of(duty);
        let changes = work.changes();
        // Checking first costs no write, so an idle worker causes no fsync.
        let now = self.inner.clock.now();
        let except: Vec<[u8; 16]> = except.into_iter().map(blob).collect();
        let (has_ready, due_at) = self
            .read(|connection| Ok((is_ready(connection, duty, &except)?, next_due(connection)?)))?;
        if !has_ready && due_at.is_none_or(|due| due > now && due <= latest_due(now)) {
            work.found_nothing(changes, due_at);
            return Ok(None);
        }
        let served = Arc::clone(&self.inner.last_served);
        // Claims do not survive the process anyway.
        let claim = self.write_here(move |connection| {
            requeue_due(connection, now)?;
            next_claim(connection, &served, duty, limits, &except, now)
        })?;
        match &claim {
            Some(claim) => {
                let jobs = || claim.jobs.iter().map(|job| &job.sequence);
                self.inner.stages.begin(jobs().copied());
                self.inner.job_watchers.wake(jobs());
            }
            None => work.found_nothing(changes, due_at.filter(|due| *due > now)),
        }
        Ok(claim)
    }

    /// Records the stage of claimed jobs, to be shown as status. In memory only.
    pub fn set_stage(&self, sequences: &[Sequence], stage: Stage) {
        self.inner.stages.set(sequences, stage);
        self.inner.job_watchers.wake(sequences);
    }

    /// Ends the stages of jobs that a worker had when their tenant was deleted. In memory only.
    pub fn end_deleted(&self, sequences: &[Sequence]) {
        self.inner.stages.cancel(sequences);
    }

    /// Counter of changes to the jobs of a source, in any collection. Increases when a job is
    /// accepted, ends or is removed, and occasionally when that happens to another source.
    pub fn job_changes(&self, source: &SourceId) -> u64 {
        self.inner.changes.of(source.as_str())
    }

    /// Records how many chunks of a claimed job have been embedded, to be shown as status. In
    /// memory only.
    pub fn set_progress(&self, sequence: Sequence, chunks_done: u32, chunks: u32) {
        self.inner.stages.set_chunks(sequence, chunks_done, chunks);
        self.inner.job_watchers.wake([&sequence]);
    }

    /// Returns those of `sequences` that are still in progress, in the given order. Excludes
    /// cancelled jobs and those of deleted tenants.
    pub fn live(&self, sequences: &[Sequence]) -> Result<Vec<Sequence>> {
        self.read(|connection| {
            let mut live = Vec::with_capacity(sequences.len());
            for sequence in sequences {
                if connection.any(
                    "SELECT 1 FROM jobs j JOIN tenants t ON t.collection = j.collection
                 WHERE j.seq = ?1 AND j.status = 'in_progress' AND t.deleting = 0",
                    [sequence.0 as i64],
                )? {
                    live.push(*sequence);
                }
            }
            Ok(live)
        })
    }
}

/// Whether a job is ready in any collection other than these.
fn is_ready(connection: &Connection, duty: Duty, except: &[[u8; 16]]) -> Result<bool> {
    let mut next = next_collection(connection, duty, None)?;
    while let Some(id) = next {
        if !except.contains(&id) {
            return Ok(true);
        }
        next = next_collection(connection, duty, Some(id))?;
    }
    Ok(false)
}

/// The time at which the next delayed job is due.
fn next_due(connection: &Connection) -> Result<Option<Timestamp>> {
    let sql = "SELECT min(not_before) FROM jobs WHERE status = 'queued' AND not_before > 0";
    connection.one(sql, [], |cells| cells.optional_time())
}

/// The latest time at which any delayed job can be due. A later one was delayed before the clock
/// was set back, and has waited long enough.
fn latest_due(now: Timestamp) -> Timestamp {
    now.plus_millis(pause_millis(limits::ATTEMPTS_MAX))
}

/// The value of column `fetch` for jobs that wait for this duty.
fn fetches(duty: Duty) -> i64 {
    match duty {
        Duty::Process => 0,
        Duty::Fetch => 1,
    }
}

fn requeue_due(connection: &Connection, now: Timestamp) -> Result<()> {
    connection.run(
        "UPDATE jobs SET not_before = 0 WHERE seq IN (
            SELECT seq FROM jobs WHERE status = 'queued' AND not_before > 0
                AND (not_before <= ?1 OR not_before > ?2)
            ORDER BY not_before LIMIT ?3)",
        params![now.0 as i64, latest_due(now).0 as i64, WAKE_MAX],
    )
}

fn next_claim(
    connection: &Connection,
    served: &Mutex<[[u8; 16]; Duty::ALL.len()]>,
    duty: Duty,
    limits: ClaimLimits,
    except: &[[u8; 16]],
    now: Timestamp,
) -> Result<Option<Claim>> {
    let turn = fetches(duty) as usize;
    let start = served.lock()[turn];
    let mut after = Some(start);
    let mut has_wrapped = false;
    loop {
        let Some(id) = next_collection(connection, duty, after)? else {
            if has_wrapped {
                return Ok(None);
            }
            (after, has_wrapped) = (None, true);
            continue;
        };
        if has_wrapped && id > start {
            return Ok(None);
        }
        let collection = CollectionId(uuid::Uuid::from_bytes(id));
        if !except.contains(&id)
            && let Some(tenant) = tenants::owner(connection, collection)?
        {
            let sequences = choose(connection, collection, duty, limits)?;
            if !sequences.is_empty() {
                let mut jobs = Vec::with_capacity(sequences.len());
                for sequence in sequences {
                    jobs.push(take(connection, sequence, now)?);
                }
                served.lock()[turn] = id;
                return Ok(Some(Claim { collection, tenant, jobs }));
            }
        }
        after = Some(id);
    }
}

/// The first collection after `after` with ready jobs, or the first of all.
fn next_collection(
    connection: &Connection,
    duty: Duty,
    after: Option<[u8; 16]>,
) -> Result<Option<[u8; 16]>> {
    let sql = "SELECT collection FROM jobs INDEXED BY jobs_ready
        WHERE status = 'queued' AND not_before = 0 AND fetch = ?2 AND collection > ?1
        ORDER BY collection LIMIT 1";
    // An empty blob sorts before every id.
    let after: &[u8] = after.as_ref().map_or(&[], |id| id.as_slice());
    connection.first(sql, params![after, fetches(duty)], |cells| cells.next())
}

/// Selects the jobs to take, oldest first, with the bytes of original and metadata, and whether the
/// job failed or was interrupted before, in which case it is taken alone.
pub(super) const CHOOSE: &str =
    "SELECT j.seq, j.size_bytes + ifnull(octet_length(j.tenant_metadata), 0)
        + ifnull(octet_length(j.document_metadata), 0), j.attempts + j.interruptions > 0
     FROM jobs j INDEXED BY jobs_ready
     WHERE j.status = 'queued' AND j.not_before = 0 AND j.fetch = ?3 AND j.collection = ?1
       AND NOT EXISTS (SELECT 1 FROM jobs r INDEXED BY jobs_running
            WHERE r.status = 'in_progress' AND r.collection = j.collection
              AND r.sub_tenant = j.sub_tenant AND r.source = j.source)
     ORDER BY j.seq LIMIT ?2";

fn choose(
    connection: &Connection,
    collection: CollectionId,
    duty: Duty,
    limits: ClaimLimits,
) -> Result<Vec<Sequence>> {
    let (mut chosen, mut bytes) = (Vec::new(), 0_u64);
    let parameters = params![blob(collection), LOOK_MAX, fetches(duty)];
    connection.each_while(CHOOSE, parameters, |cells| {
        let (sequence, size) = (Sequence(cells.number()?), cells.number()?);
        let is_suspect: bool = cells.next()?;
        if chosen.is_empty() {
            chosen.push(sequence);
            bytes = size;
            return Ok(!is_suspect && limits.jobs > 1);
        }
        if !is_suspect {
            bytes = bytes.saturating_add(size);
            if bytes > limits.bytes {
                return Ok(false);
            }
            chosen.push(sequence);
        }
        Ok(chosen.len() < limits.jobs)
    })?;
    Ok(chosen)
}

fn take(connection: &Connection, sequence: Sequence, now: Timestamp) -> Result<ClaimedJob> {
    let id = sequence.0 as i64;
    let sql = format!(
        "SELECT j.status, j.attempts, j.interruptions, {JOB_COLUMNS} FROM jobs j WHERE j.seq = ?1"
    );
    let (state, job) =
        connection.one(&sql, [id], |cells| Ok((read_state(cells)?, read_job(cells)?)))?;
    let state = state.after(JobEvent::Claimed).expect("only queued jobs are chosen");
    debug_assert_eq!(state.status, JobStatus::InProgress);
    connection.run(
        "UPDATE jobs SET status = 'in_progress', started_at = ?2, updated_at = ?2 WHERE seq = ?1",
        params![id, now.0 as i64],
    )?;
    Ok(job)
}
