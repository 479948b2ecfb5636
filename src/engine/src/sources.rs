//! Uploads, deletions and listings of sources.

use std::sync::Arc;

use crate::ingest::{Accepted, Amendment, Deleted, Submission};
use crate::query::{self, SourceView};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::job::JobRow;
use lodestone_catalog::{JobFilter, JobPage, JobScope};
use lodestone_io::FileSlice;
use lodestone_storage::collection::CollectionError;
use lodestone_storage::collection::uploads::{self, StoredUpload};
use lodestone_types::{
    ErrorKind, Grant, JobStatus, KeyScope, Scope, Sequence, SourceId, SourceRecord, SubTenantId,
    TenantId, TenantMode,
};

/// Tenants that are searched for a source of which neither scope nor job is known. A key for more
/// has to name the tenant; tenants that are open are searched in any case.
const BLIND_TENANTS_MAX: usize = 64;

/// Look-ups of an original at most, each because a replacement was published in between. Each takes
/// another publication of the same source, so the bound is not reached in practice.
const LOOK_UPS_MAX: usize = 16;

/// The scope in which a source was found, and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundStatus {
    /// The scope.
    pub scope: Scope,
    /// The source.
    pub view: SourceView,
}

/// The stored original of a source. Its content is still in its file.
#[derive(Debug)]
pub struct Original {
    /// The source.
    pub record: Arc<SourceRecord>,
    /// The stored file; `None` where nothing was stored yet.
    stored: Option<StoredUpload>,
}

impl Original {
    /// The content; [`Self::verify`] says whether it is what was stored.
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

    /// Reads the content once, piece by piece, compares it with its hash, and gives it to `see` on
    /// the way.
    ///
    /// # Errors
    /// Damage.
    pub fn verify(&self, see: impl FnMut(&[u8])) -> Result<(), EngineError> {
        match &self.stored {
            Some(stored) => Ok(stored.verify(see)?),
            None => Ok(()),
        }
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

    /// Every source of a scope, in every state: newest upload first, then by id.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn sources(&self, access: &TenantAccess) -> Result<Vec<SourceView>, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        // Jobs first: a job that ends meanwhile is then seen as running and as visible. The other
        // order could show neither.
        let jobs = self.catalog.unsettled_or_errored(tenant.collection, sub_tenant)?;
        Ok(query::list(&collection.snapshot(), sub_tenant, jobs)?)
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
        let job = job.filter(|row| row.status != JobStatus::Success);
        let snapshot = collection.snapshot();
        Ok(SourceView::join(snapshot.find(sub_tenant, id), job)?)
    }

    /// The state of a source. Without a tenant it is looked for in every scope of the key, and
    /// the most recently uploaded one is meant. `sub_tenants` are tried in order.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`]; a named tenant that does not exist.
    pub fn status(
        &self,
        grant: &Grant,
        tenant: Option<&TenantId>,
        sub_tenant: Option<&SubTenantId>,
        id: &SourceId,
    ) -> Result<FoundStatus, EngineError> {
        let missing = || EngineError::SourceNotFound { source_id: id.clone() };
        match (tenant, sub_tenant) {
            (Some(tenant), Some(sub_tenant)) => {
                let scope = Scope { tenant: tenant.clone(), sub_tenant: sub_tenant.clone() };
                let view = self.source(&self.open(grant, &scope, None)?, id)?;
                view.map(|view| FoundStatus { scope, view }).ok_or_else(missing)
            }
            (Some(tenant), None) => {
                let found = self.status_in(grant, tenant, id)?;
                let default = found.iter().position(|found| found.scope.sub_tenant.is_default());
                newest(found, default).ok_or_else(missing)
            }
            (None, sub_tenant) => {
                let mut found = self.status_anywhere(grant, id)?;
                if let Some(wanted) = sub_tenant {
                    found.retain(|found| found.scope.sub_tenant == *wanted);
                }
                newest(found, None).ok_or_else(missing)
            }
        }
    }

    fn status_in(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        id: &SourceId,
    ) -> Result<Vec<FoundStatus>, EngineError> {
        let (_, names) = self.sub_tenants(grant, tenant)?;
        let mut found = Vec::new();
        for sub_tenant in names {
            let scope = Scope { tenant: tenant.clone(), sub_tenant };
            let view = self.source(&self.open(grant, &scope, None)?, id)?;
            found.extend(view.map(|view| FoundStatus { scope, view }));
        }
        Ok(found)
    }

    fn status_anywhere(
        &self,
        grant: &Grant,
        id: &SourceId,
    ) -> Result<Vec<FoundStatus>, EngineError> {
        let rows = self.catalog.find_source(id, &grant.scope)?;
        let mut found = Vec::new();
        for row in rows {
            let JobRow { tenant, job, .. } = row;
            let scope = Scope { tenant, sub_tenant: job.sub_tenant };
            let view = self.source(&self.open(grant, &scope, None)?, id)?;
            found.extend(view.map(|view| FoundStatus { scope, view }));
        }
        // Batches of vectors have no job: their tenants are looked at in any case.
        let may_hold = |tenant: &&lodestone_catalog::Tenant| {
            found.is_empty() || tenant.mode == TenantMode::Embeddings
        };
        let open = self.registry.open_collections();
        let is_open = |tenant: &lodestone_catalog::Tenant| {
            open.iter().any(|collection| collection.id() == tenant.collection)
        };
        let tenants = self.tenants(grant)?;
        let (open, closed): (Vec<_>, Vec<_>) =
            tenants.iter().filter(may_hold).partition(|tenant| is_open(tenant));
        for tenant in open.into_iter().chain(closed.into_iter().take(BLIND_TENANTS_MAX)) {
            found.extend(self.status_in(grant, &tenant.id, id)?);
        }
        Ok(found)
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

    /// Counts changes of the states of jobs.
    pub fn job_changes(&self) -> u64 {
        self.catalog.job_changes()
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
        let scope = match tenant {
            None => self.job_scope(&grant.scope)?,
            Some(tenant) => {
                let tenant = self.find_tenant(grant, tenant)?;
                let reached = match sub_tenant {
                    Some(name) if !grant.allows(&tenant.id, &name) => {
                        return Err(EngineError::SubTenantNotFound);
                    }
                    Some(name) => Some(vec![name]),
                    None => sub_tenants_of(&grant.scope, &tenant.id),
                };
                JobScope::Within(vec![(tenant.collection, reached)])
            }
        };
        Ok(self.catalog.list_jobs(&JobFilter { scope, status, limit, before })?)
    }

    fn job_scope(&self, scope: &KeyScope) -> Result<JobScope, EngineError> {
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
fn sub_tenants_of(scope: &KeyScope, tenant: &TenantId) -> Option<Vec<SubTenantId>> {
    match scope {
        KeyScope::AllTenants => None,
        KeyScope::Tenants(grants) => {
            let grant = grants.iter().find(|grant| grant.tenant == *tenant)?;
            grant.sub_tenants.clone()
        }
    }
}

fn newest(mut found: Vec<FoundStatus>, preferred: Option<usize>) -> Option<FoundStatus> {
    if let Some(at) = preferred {
        return Some(found.swap_remove(at));
    }
    found.into_iter().max_by_key(|found| found.view.record.uploaded_at)
}
