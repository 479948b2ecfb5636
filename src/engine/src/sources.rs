//! Uploads, deletions and listings of sources.

use std::ops::Range;
use std::sync::Arc;

use crate::ingest::{Accepted, Amendment, Deleted, Submission};
use crate::query::{Passages, SourceView};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::job::JobRow;
use lodestone_catalog::{JobFilter, JobPage, JobScope, Retry};
use lodestone_io::FileSlice;
use lodestone_storage::collection::CollectionError;
use lodestone_storage::collection::uploads::{self, StoredUpload};
use lodestone_types::{
    ErrorKind, Grant, JobStatus, KeyScope, Sequence, SourceId, SourceRecord, SubTenantId, TenantId,
};

/// Maximum number of lookups of an original. Each repetition means that another replacement of the
/// same source was published in between, so the limit is not reached in practice.
const LOOK_UPS_MAX: usize = 16;

/// The stored original of a source, opened but not read.
#[derive(Debug)]
pub struct Original {
    /// The source.
    pub record: Arc<SourceRecord>,
    /// The stored file; `None` if nothing has been stored yet.
    stored: Option<StoredUpload>,
}

impl Original {
    /// The content as stored, unverified; [`Engine::read_original`] verifies it.
    pub fn content(&self) -> Option<&FileSlice> {
        self.stored.as_ref().map(StoredUpload::content)
    }

    /// Length of the content in bytes.
    pub fn len(&self) -> u64 {
        self.content().map_or(0, FileSlice::len)
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Engine {
    /// Rejects an upload that no tenant could process, before a tenant is created for it.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::check_content`].
    pub fn check_content(&self, submission: &Submission) -> Result<(), EngineError> {
        Ok(self.ingest.check_content(submission)?)
    }

    /// Rejects an upload that cannot be processed, before anything is stored.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::check`].
    pub fn check(&self, access: &TenantAccess, submission: &Submission) -> Result<(), EngineError> {
        Ok(self.ingest.check(&access.tenant, submission)?)
    }

    /// Accepts an upload and queues it. Durable on return.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::submit`].
    pub fn submit(
        &self,
        access: &TenantAccess,
        submission: Submission,
    ) -> Result<Accepted, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        Ok(self.ingest.submit(tenant, collection, sub_tenant, submission)?)
    }

    /// Deletes sources. Nothing of them is visible once this returns.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::delete_sources`].
    pub fn delete_sources(
        &self,
        access: &TenantAccess,
        ids: &[SourceId],
    ) -> Result<Deleted, EngineError> {
        Ok(self.ingest.delete_sources(&access.collection, &access.sub_tenant, ids)?)
    }

    /// Changes the metadata of a source.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::amend`].
    pub fn amend(
        &self,
        access: &TenantAccess,
        source: &SourceId,
        amendment: Amendment,
    ) -> Result<(), EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        let amended = self.ingest.amend(tenant, collection, sub_tenant, source, amendment);
        Ok(self.noticed(access, amended)?)
    }

    /// Looks up one source of a scope.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn source(
        &self,
        access: &TenantAccess,
        id: &SourceId,
    ) -> Result<Option<SourceView>, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        let job = self.catalog.latest(tenant.collection, sub_tenant, id)?;
        self.let_nodes_see(&job)?;
        let job = job.filter(|row| row.status != JobStatus::Success);
        let snapshot = collection.snapshot();
        let view = SourceView::join(&access.context, snapshot.find(sub_tenant, id), job)?;
        self.sound(collection, &snapshot, view)
    }

    /// The chunks of a source in reading order.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`] if no version of it is visible; errors of the disk.
    pub fn passages(
        &self,
        access: &TenantAccess,
        id: &SourceId,
        page: Option<u32>,
        range: Range<usize>,
    ) -> Result<Passages, EngineError> {
        let found = self.read(access, |snapshot| {
            self.query.passages(snapshot, &access.sub_tenant, id, page, range.clone())
        })?;
        found.ok_or_else(|| EngineError::SourceNotFound { source_id: id.clone() })
    }

    /// Opens the original of the visible version, or of the accepted one if none is visible,
    /// without reading its content.
    ///
    /// A replacement may be published between the lookup and the open, and the file that was looked
    /// up is then gone. The new version is opened instead; a missing file that is still referred to
    /// is damage.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`]; damaged data.
    pub fn original(&self, access: &TenantAccess, id: &SourceId) -> Result<Original, EngineError> {
        let missing = || EngineError::SourceNotFound { source_id: id.clone() };
        let look_up = || Ok::<_, EngineError>(self.source(access, id)?.ok_or_else(missing)?.record);
        let mut record = look_up()?;
        for _ in 0..LOOK_UPS_MAX {
            if record.raw_key.is_empty() {
                return Ok(Original { record, stored: None });
            }
            match uploads::open(&*self.store, &record.raw_key) {
                Ok(stored) => return Ok(Original { record, stored: Some(stored) }),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let now = look_up()?;
                    if now.raw_key == record.raw_key {
                        let (key, problem) = (now.raw_key.clone(), "it is missing".to_owned());
                        return Err(CollectionError::BadUpload { key, problem }.into());
                    }
                    record = now;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let collection = access.tenant.collection;
        Err(CollectionError::Unsettled { collection, look_ups: LOOK_UPS_MAX }.into())
    }

    /// Streams the content once, piece by piece, through `see` and verifies its hash. If the local
    /// copy is damaged, it is fetched again and read from the start with a fresh `T`.
    ///
    /// # Errors
    /// Damaged data.
    pub fn read_original<T: Default>(
        &self,
        original: &mut Original,
        see: impl Fn(&mut T, &[u8]),
    ) -> Result<T, EngineError> {
        match &mut original.stored {
            Some(stored) => Ok(stored.read(&*self.store, see)?),
            None => Ok(T::default()),
        }
    }

    /// Lists the jobs of the scopes that a key reaches.
    ///
    /// # Errors
    /// A named tenant that does not exist; errors of the catalog.
    pub fn jobs(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<SubTenantId>,
        status: Option<JobStatus>,
        limit: usize,
        before: Option<Sequence>,
    ) -> Result<JobPage, EngineError> {
        let scope = self.jobs_within(grant, tenant, sub_tenant)?;
        let page = self.catalog.list_jobs(&JobFilter { scope, status, limit, before })?;
        self.let_nodes_see(&page.jobs)?;
        Ok(page)
    }

    pub(super) fn jobs_within(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<SubTenantId>,
    ) -> Result<JobScope, EngineError> {
        let Some(tenant) = tenant else { return self.job_scope(&grant.scope) };
        let tenant = self.find_tenant(grant, tenant)?;
        let reached = match sub_tenant {
            Some(name) if !grant.allows(&tenant.id, &name) => {
                return Err(EngineError::SubTenantNotFound);
            }
            Some(name) => Some(vec![name]),
            None => sub_tenants_of(&grant.scope, &tenant.id),
        };
        Ok(JobScope::Within(vec![(tenant.collection, reached)]))
    }

    /// Queues a failed job again and returns it. The tenant and the sub-tenant, if given, must
    /// match the job's. A job that is queued or running is returned unchanged.
    ///
    /// # Errors
    /// See [`Self::job`] and [`Self::jobs`]; [`EngineError::JobNotRetried`] if the job has
    /// succeeded or a newer upload has replaced it; a full queue.
    pub fn retry_job(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<SubTenantId>,
        job_id: &str,
    ) -> Result<JobRow, EngineError> {
        let scope = self.jobs_within(grant, tenant, sub_tenant)?;
        let found = self.job(grant, job_id)?;
        if let JobScope::Within(parts) = scope {
            let is_in = |(collection, names): &(_, Option<Vec<SubTenantId>>)| {
                let is_named = |names: &Vec<_>| names.contains(&found.job.sub_tenant);
                *collection == found.collection && names.as_ref().is_none_or(is_named)
            };
            if !parts.iter().any(is_in) {
                return Err(EngineError::JobNotFound);
            }
        }
        let problem = match self.catalog.retry(found.job.sequence)? {
            Retry::Open => return self.job(grant, job_id),
            Retry::Unknown => return Err(EngineError::JobNotFound),
            Retry::Succeeded => "has succeeded: only failed jobs can be retried",
            Retry::Replaced => "was superseded by a later upload of its source",
        };
        Err(EngineError::JobNotRetried { job_id: job_id.to_owned(), problem })
    }

    pub(super) fn job_scope(&self, scope: &KeyScope) -> Result<JobScope, EngineError> {
        let grants = match scope {
            KeyScope::AllTenants => return Ok(JobScope::Everywhere),
            KeyScope::Tenants(grants) => grants,
        };
        let mut within = Vec::with_capacity(grants.len());
        for grant in grants {
            if let Some(tenant) = self.catalog.tenant(&grant.tenant)? {
                within.push((tenant.collection, grant.sub_tenants.clone()));
            }
        }
        Ok(JobScope::Within(within))
    }
}

/// The sub-tenants of a tenant that a key is limited to; `None` if it reaches all of them.
pub(super) fn sub_tenants_of(scope: &KeyScope, tenant: &TenantId) -> Option<Vec<SubTenantId>> {
    match scope {
        KeyScope::AllTenants => None,
        KeyScope::Tenants(grants) => {
            let grant = grants.iter().find(|grant| grant.tenant == *tenant)?;
            grant.sub_tenants.clone()
        }
    }
}
