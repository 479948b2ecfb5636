//! Acceptance of jobs.

use rusqlite::{Connection, params};

use super::allowance::StorageTarget;
use super::error::{CatalogError, Result};
use super::rows::{Cells, Statements, blob, detail_to_text, metadata_to_text};
use super::{Catalog, CatalogOptions, known, sub_tenants, tenants};
use crate::job::{NewJob, QueueLimits, Submitted};
use lodestone_types::{CollectionId, JobStatus, Sequence, SourceDetail, SourceKind};

/// The newest job of the same source at the time of acceptance.
struct Earlier {
    status: JobStatus,
    version: u32,
    tenant_metadata: Option<String>,
    document_metadata: Option<String>,
    url: String,
    detail: SourceDetail,
}

impl Earlier {
    /// Whether users see its metadata as the stored state: either it becomes visible before the new
    /// job does, or it is the only record of a source that was never visible.
    fn is_stored_state(&self, job: &NewJob) -> bool {
        match self.status {
            JobStatus::Queued | JobStatus::InProgress => true,
            JobStatus::Errored => job.known_version.is_none(),
            JobStatus::Success => false,
        }
    }
}

impl Catalog {
    /// Accepts a job, and creates its sub-tenant if needed; durable on return. Queued jobs of the
    /// same source are superseded and removed. Fields that the upload does not change are taken
    /// over from the previously accepted job.
    ///
    /// # Errors
    /// [`CatalogError::TenantLimit`], [`CatalogError::QueueFull`],
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn submit(&self, job: NewJob) -> Result<Submitted> {
        let submitted = self.submit_if(job, |_, _| Ok(true))?;
        Ok(submitted.expect("it is accepted unconditionally"))
    }

    /// Accepts a job that processes a visible version once more. Accepts nothing and returns `None`
    /// if a job of the source is waiting or running, or if its newest acceptance is no longer
    /// `seen`: the content of this job is then not the newest.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    pub fn submit_again(&self, job: NewJob, seen: Option<Sequence>) -> Result<Option<Submitted>> {
        self.submit_if(job, move |connection, job| is_unchanged(connection, job, seen))
    }

    fn submit_if(
        &self,
        job: NewJob,
        is_wanted: impl FnOnce(&Connection, &NewJob) -> Result<bool> + Send + 'static,
    ) -> Result<Option<Submitted>> {
        let job_id = self.inner.ids.wire_id("job_", self.inner.clock.now());
        let options = self.inner.options;
        let source = job.source.clone();
        let accepted = self.write(move |connection| match is_wanted(connection, &job)? {
            true => accept(connection, &job, job_id, &options).map(Some),
            false => Ok(None),
        })?;
        let Some((submitted, superseded)) = accepted else { return Ok(None) };
        self.inner.changes.note(source.as_str());
        self.inner.job_watchers.wake(&superseded);
        self.inner.work.notify();
        Ok(Some(submitted))
    }
}

/// Whether no job of a source is waiting or running, and its newest acceptance is `seen`.
fn is_unchanged(connection: &Connection, job: &NewJob, seen: Option<Sequence>) -> Result<bool> {
    let is_open = connection.any(
        "SELECT 1 FROM jobs WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
            AND status IN ('queued', 'in_progress')",
        params![job.source.as_str(), blob(job.collection), job.sub_tenant.as_str()],
    )?;
    let newest = known::newest(connection, job.collection, &job.sub_tenant, &job.source)?;
    Ok(!is_open && newest == seen)
}

fn accept(
    connection: &Connection,
    job: &NewJob,
    job_id: String,
    options: &CatalogOptions,
) -> Result<(Submitted, Vec<Sequence>)> {
    tenants::require(connection, job.collection)?;
    let target = StorageTarget { collection: job.collection, sub_tenant: &job.sub_tenant };
    target.require(connection, Some(&job.source), job.size_bytes, options.tenant_limits)?;
    let earlier = newest_of_source(connection, job)?;
    let (superseded, mut obsolete_raw_keys) = supersede(connection, job)?;
    check_limits(connection, job.collection, job.size_bytes, &options.queue)?;
    sub_tenants::ensure(connection, job.collection, &job.sub_tenant, job.uploaded_at)?;

    let stored = earlier.as_ref().filter(|earlier| earlier.is_stored_state(job));
    let tenant_metadata = metadata_to_text(&job.tenant_metadata)
        .or_else(|| stored.and_then(|stored| stored.tenant_metadata.clone()));
    let document_metadata = metadata_to_text(&job.document_metadata)
        .or_else(|| stored.and_then(|stored| stored.document_metadata.clone()));
    let (mut url, mut detail) = (job.url.clone(), job.detail.clone());
    if let Some(stored) = stored {
        detail.keep_from(&mut url, &stored.detail, &stored.url);
    }
    let last_version = earlier.as_ref().map(|earlier| earlier.version).max(job.known_version);
    let version = last_version.map_or(1, |last| last.saturating_add(1));
    let overwritten = last_version.is_some();
    let needs_fetch = job.kind == SourceKind::Webpage && job.size_bytes == 0;

    connection.run(
        "INSERT INTO jobs (job_id, collection, sub_tenant, source, kind, status, version,
            overwritten, size_bytes, content_hash, raw_key, filename, url, content_type,
            uploaded_at, origin_at, updated_at, tenant_metadata, document_metadata, fetch,
            detail)
         VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?14,
            ?16, ?17, ?18, ?19)",
        params![
            job_id,
            blob(job.collection),
            job.sub_tenant.as_str(),
            job.source.as_str(),
            job.kind.as_str(),
            version,
            overwritten,
            job.size_bytes as i64,
            job.content_hash,
            job.raw_key,
            job.filename,
            url,
            job.content_type,
            job.uploaded_at.0 as i64,
            job.origin_at.map(|time| time.0 as i64),
            tenant_metadata,
            document_metadata,
            needs_fetch,
            detail_to_text(&detail),
        ],
    )?;
    let sequence = Sequence(connection.last_insert_rowid() as u64);
    known::add(connection, job.collection, &job.sub_tenant, &job.source, sequence)?;
    target.hold(connection, &job.source, job.size_bytes)?;
    obsolete_raw_keys.retain(|key| *key != job.raw_key);
    Ok((Submitted { job_id, sequence, version, overwritten, obsolete_raw_keys }, superseded))
}

fn newest_of_source(connection: &Connection, job: &NewJob) -> Result<Option<Earlier>> {
    let sql = "SELECT status, version, tenant_metadata, document_metadata, url, detail FROM jobs
        WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3 ORDER BY seq DESC LIMIT 1";
    let scope = params![job.source.as_str(), blob(job.collection), job.sub_tenant.as_str()];
    connection.first(sql, scope, |cells| {
        Ok(Earlier {
            status: cells.word(JobStatus::from_word)?,
            version: cells.next()?,
            tenant_metadata: cells.next()?,
            document_metadata: cells.next()?,
            url: cells.next()?,
            detail: cells.detail()?,
        })
    })
}

/// Removes queued jobs of the same source; returns them and the keys of their originals.
fn supersede(connection: &Connection, job: &NewJob) -> Result<(Vec<Sequence>, Vec<String>)> {
    let scope = params![job.source.as_str(), blob(job.collection), job.sub_tenant.as_str()];
    let removed = connection.all(
        "DELETE FROM jobs WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3
            AND status = 'queued' RETURNING seq, raw_key",
        scope,
        |cells| Ok((Sequence(cells.number()?), cells.next::<String>()?)),
    )?;
    let (sequences, mut keys): (Vec<_>, Vec<_>) = removed.into_iter().unzip();
    keys.retain(|key| !key.is_empty());
    Ok((sequences, keys))
}

/// Number and bytes of the waiting jobs of a collection.
pub(super) const WAITING: &str = "SELECT jobs, bytes FROM queue_use WHERE collection = ?1";

/// Number and bytes of waiting jobs, in total or of one collection.
fn waiting(connection: &Connection, of: Option<CollectionId>) -> Result<(u64, u64)> {
    let read = |cells: &mut Cells<'_>| Ok((cells.number()?, cells.number()?));
    let Some(collection) = of else {
        return connection.one("SELECT jobs, bytes FROM queue_total", [], read);
    };
    Ok(connection.first(WAITING, [blob(collection)], read)?.unwrap_or((0, 0)))
}

/// Refuses another job of this size if the queue has no room for it.
pub(super) fn check_limits(
    connection: &Connection,
    collection: CollectionId,
    size_bytes: u64,
    limits: &QueueLimits,
) -> Result<()> {
    let QueueLimits { jobs_max, bytes_max, collection_jobs_max, collection_bytes_max } = *limits;
    let bounds = [
        (None, jobs_max, bytes_max),
        (Some(collection), collection_jobs_max, collection_bytes_max),
    ];
    for (of, jobs_max, bytes_max) in bounds {
        let (jobs, bytes) = waiting(connection, of)?;
        // An upload larger than the limit is accepted when nothing else waits.
        let is_over_bytes = jobs > 0 && bytes.saturating_add(size_bytes) > bytes_max;
        if jobs >= jobs_max || is_over_bytes {
            return Err(CatalogError::QueueFull { jobs, bytes });
        }
    }
    Ok(())
}
