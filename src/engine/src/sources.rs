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

/// Look-ups of an original at most, each because a replacement was published in between. Each takes
/// another publication of the same source, so the bound is not reached in practice.
const LOOK_UPS_MAX: usize = 16;

/// The stored original of a source. Its content is still in its file.
#[derive(Debug)]
pub struct Original {
    /// The source.
    pub record: Arc<SourceRecord>,
    /// The stored file; `None` where nothing was stored yet.
    stored: Option<StoredUpload>,
}

impl Original {
    /// The content; [`Engine::read_original`] says whether it is what was stored.
    pub fn content(&self) -> Option<&FileSlice> {
        self.stored.as_ref().map(StoredUpload::content)
    }

    /// Bytes of the content.
    pub fn len(&self) -> u64 {
        self.content().map_or(0, FileSlice::len)
    }

    /// Whether it has no content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Engine {
    /// Refuses an upload that no tenant could process, before one is made for it.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::check_content`].
    pub fn check_content(&self, submission: &Submission) -> Result<(), EngineError> {
        Ok(self.ingest.check_content(submission)?)
    }

    /// Refuses an upload that cannot be processed, before anything is stored.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::check`].
    pub fn check(&self, access: &TenantAccess, submission: &Submission) -> Result<(), EngineError> {
        Ok(self.ingest.check(&access.tenant, submission)?)
    }

    /// Accepts an upload. Durable on return.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::submit`].
    pub fn submit(
        &self,
        access: &TenantAccess,
        submission: Submission,
    ) -> Result<Accepted, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        Ok(self.ingest.submit(tenant, collection, sub_tenant, submission)?)
    }

    /// Deletes sources. Nothing of them is visible when this returns.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::delete_sources`].
    pub fn delete_sources(
        &self,
        access: &TenantAccess,
        ids: &[SourceId],
    ) -> Result<Deleted, EngineError> {
        Ok(self.ingest.delete_sources(&access.collection, &access.sub_tenant, ids)?)
    }

    /// Changes metadata of a source.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::amend`].
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

    /// One source of a scope.
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
        self.sound(collection, &snapshot, SourceView::join(snapshot.find(sub_tenant, id), job)?)
    }

    /// Chunks of a source in reading order.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`] where no version of it is visible; errors of the disk.
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

    /// The original of the visible version; where there is none, of the accepted one. It is opened,
    /// and its content is not read.
    ///
    /// A replacement may be published between the look-up and the read, and the file that was
    /// looked up is then gone. The new version is read instead; a file that is missing although
    /// it is still referred to is damage.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`]; damage.
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

    /// Reads the content once, piece by piece, compares it with its hash, and gives it to `see` on
    /// the way. A copy that is damaged is fetched again, and read from its start.
    ///
    /// # Errors
    /// Damage.
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

    /// Jobs of the scopes that a key reaches.
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

    /// Queues a failed job again, of a tenant and sub-tenant where they are named, and returns it.
    /// One that waits or runs stays as it is.
    ///
    /// # Errors
    /// As [`Self::job`] and [`Self::jobs`]; [`EngineError::JobNotRetried`] where it has succeeded
    /// or a newer upload has taken its place; a full queue.
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
            Retry::Succeeded => "has succeeded: only failed jobs are tried again",
            Retry::Replaced => "is not the newest of its source: a later upload has replaced it",
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

/// The sub-tenants to which a key is limited inside a tenant; `None` for all of them.
pub(super) fn sub_tenants_of(scope: &KeyScope, tenant: &TenantId) -> Option<Vec<SubTenantId>> {
    match scope {
        KeyScope::AllTenants => None,
        KeyScope::Tenants(grants) => {
            let grant = grants.iter().find(|grant| grant.tenant == *tenant)?;
            grant.sub_tenants.clone()
        }
    }
}
