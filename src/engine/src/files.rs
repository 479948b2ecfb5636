//! Uploaded files that are not sources, and turning them into sources of sub-tenants.

use std::sync::Arc;

use crate::ingest::{Accepted, NewFile, Submission};
use crate::sources::sub_tenants_of;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::job::MetadataChange;
use lodestone_catalog::{FilePage, JobScope, StoredFile, Tenant};
use lodestone_storage::collection::uploads::StoredUpload;
use lodestone_types::{Grant, Metadata, Origin, Scope, SourceId, SourceKind, TenantId, TenantMode};

impl Engine {
    /// Stores a file that belongs to the sub-tenant of the scope. Durable on return.
    ///
    /// # Errors
    /// See [`Self::open_or_create`] and [`crate::ingest::Ingest::store_file`].
    pub fn add_file(
        &self,
        grant: &Grant,
        scope: &Scope,
        new: NewFile,
    ) -> Result<StoredFile, EngineError> {
        let access = self.open_or_create(grant, scope)?;
        Ok(self.ingest.store_file(&access.collection, &access.sub_tenant, new)?)
    }

    /// Looks up a file in the sub-tenants that the key reaches.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::ModeMismatch`]; errors of the catalog.
    pub fn file(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        id: &SourceId,
    ) -> Result<Option<StoredFile>, EngineError> {
        let found = self.standard_tenant(grant, tenant)?;
        let file = self.catalog.file(found.collection, id)?;
        Ok(file.filter(|file| grant.allows(tenant, &file.sub_tenant)))
    }

    /// Lists files that the key reaches; the second value says whether more follow.
    ///
    /// # Errors
    /// See [`Self::file`].
    pub fn files(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        page: FilePage,
    ) -> Result<(Vec<StoredFile>, bool), EngineError> {
        let found = self.standard_tenant(grant, tenant)?;
        let (limit, sub_tenants) = (page.limit, sub_tenants_of(&grant.scope, tenant));
        let page = FilePage { sub_tenants, limit: limit + 1, ..page };
        let mut files = self.catalog.files(found.collection, &page)?;
        let has_more = files.len() > limit;
        files.truncate(limit);
        Ok((files, has_more))
    }

    /// Opens the original of a file and verifies it.
    ///
    /// # Errors
    /// Damaged data.
    pub fn file_content(&self, file: &StoredFile) -> Result<StoredUpload, EngineError> {
        Ok(self.ingest.open_file(file)?)
    }

    /// Adds a file to a sub-tenant as a source with the same id. Durable on return; processed in
    /// the background.
    ///
    /// # Errors
    /// [`EngineError::SourceNotFound`] if the file was deleted in the meantime; see
    /// [`Self::submit`].
    pub fn take_in(
        &self,
        access: &TenantAccess,
        file: &StoredFile,
        attributes: Metadata,
    ) -> Result<Accepted, EngineError> {
        let collection = access.tenant.collection;
        let is_gone = || Ok::<_, EngineError>(self.catalog.file(collection, &file.id)?.is_none());
        let gone = || EngineError::SourceNotFound { source_id: file.id.clone() };
        let content = match self.ingest.read_file(file) {
            Err(_) if is_gone()? => return Err(gone()),
            content => content?,
        };
        let submission = Submission {
            source: Some(file.id.clone()),
            kind: SourceKind::File,
            content,
            filename: file.filename.clone(),
            content_type: Some(file.content_type.clone()).filter(|word| !word.is_empty()),
            tenant_metadata: MetadataChange::Replace(Metadata::new()),
            document_metadata: MetadataChange::Replace(attributes),
            origin: Origin::default(),
        };
        let accepted = self.submit(access, submission)?;
        // With a concurrent deletion, either this check finds the file's row gone, or the
        // deletion's second pass finds the new source.
        if is_gone()? {
            self.delete_sources(access, std::slice::from_ref(&file.id))?;
            return Err(gone());
        }
        Ok(accepted)
    }

    /// Deletes a file and the sources made from it in the sub-tenants that the key reaches; returns
    /// whether the file existed. Nothing of it is visible there once this returns.
    ///
    /// # Errors
    /// See [`Self::file`]; errors of the disk, after which the deletion may be repeated.
    pub fn delete_file(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        id: &SourceId,
    ) -> Result<bool, EngineError> {
        let Some(file) = self.file(grant, tenant, id)? else { return Ok(false) };
        self.delete_taken_in(grant, tenant, id)?;
        let scope = Scope { tenant: tenant.clone(), sub_tenant: file.sub_tenant };
        let access = self.open(grant, &scope, None)?;
        let was_there = self.ingest.remove_file(&access.collection, id)?;
        // Catches a source that was made from the file in the meantime.
        self.delete_taken_in(grant, tenant, id)?;
        Ok(was_there)
    }

    /// Deletes the sources with this id in every sub-tenant that the key reaches.
    fn delete_taken_in(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        id: &SourceId,
    ) -> Result<(), EngineError> {
        let reached = sub_tenants_of(&grant.scope, tenant);
        let collection = self.find_tenant(grant, tenant)?.collection;
        let within = JobScope::Within(vec![(collection, reached)]);
        loop {
            // A lookup returns a limited number of scopes; deleted sources are no longer among
            // them.
            let scopes = self.catalog.scopes_of(id, &within, None)?;
            if scopes.is_empty() {
                return Ok(());
            }
            for scope in scopes {
                let access = self.open(grant, &scope, None)?;
                self.delete_sources(&access, std::slice::from_ref(id))?;
            }
        }
    }

    /// Finds a tenant and requires that it holds documents.
    pub(super) fn standard_tenant(
        &self,
        grant: &Grant,
        id: &TenantId,
    ) -> Result<Arc<Tenant>, EngineError> {
        let (tenant, needed) = (self.find_tenant(grant, id)?, TenantMode::Standard);
        match tenant.mode == needed {
            true => Ok(tenant),
            false => {
                let (tenant, found) = (id.clone(), tenant.mode);
                Err(EngineError::ModeMismatch { tenant, found, needed })
            }
        }
    }
}
