//! Vector stores, which are sub-tenants: creating, naming, listing and counting them.

use crate::sources::sub_tenants_of;
use crate::{Engine, EngineError, SourceCounts, TenantAccess};
use lodestone_catalog::{FileBatch, StorePage, VectorStore};
use lodestone_types::{Grant, Metadata, Scope, SubTenantId, TenantId};

impl Engine {
    /// Creates an empty sub-tenant with a generated name. Durable on return.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key limited to some sub-tenants; see
    /// [`Self::open_or_create`]; a full disk; a tenant at its limit of sub-tenants.
    pub fn create_vector_store(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        title: String,
        metadata: Metadata,
    ) -> Result<VectorStore, EngineError> {
        if grant.scope.allows_tenant(tenant) && !grant.scope.allows_whole_tenant(tenant) {
            let need = "creating vector stores requires a key for all sub-tenants of the tenant";
            return Err(EngineError::Forbidden { need });
        }
        self.ingest.require_room_for_content()?;
        let now = self.clock.now();
        let name = SubTenantId::parse(&self.ids.wire_id("vs_", now)).expect("generated ids parse");
        let access =
            self.open_or_create(grant, &Scope { tenant: tenant.clone(), sub_tenant: name })?;
        self.name_vector_store(&access, Some(title), Some(metadata))?;
        let created = self.vector_store(grant, tenant, &access.sub_tenant)?;
        // `None` means that it was deleted in the meantime.
        created.ok_or(EngineError::SubTenantNotFound)
    }

    /// Sets the title and metadata of a sub-tenant; `None` leaves a value unchanged.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn name_vector_store(
        &self,
        access: &TenantAccess,
        title: Option<String>,
        metadata: Option<Metadata>,
    ) -> Result<(), EngineError> {
        let (collection, name) = (access.tenant.collection, &access.sub_tenant);
        Ok(self.catalog.set_vector_store(collection, name, title, metadata)?)
    }

    /// Looks up a sub-tenant that the key reaches; `None` if it does not exist.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::ModeMismatch`]; errors of the catalog.
    pub fn vector_store(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        name: &SubTenantId,
    ) -> Result<Option<VectorStore>, EngineError> {
        let only = Some(name.clone());
        let page = StorePage { reached: None, only, after: None, is_ascending: false, limit: 1 };
        Ok(self.vector_stores(grant, tenant, page)?.0.pop())
    }

    /// Lists sub-tenants that the key reaches; the second value says whether more follow.
    ///
    /// # Errors
    /// See [`Self::vector_store`].
    pub fn vector_stores(
        &self,
        grant: &Grant,
        tenant: &TenantId,
        page: StorePage,
    ) -> Result<(Vec<VectorStore>, bool), EngineError> {
        let found = self.standard_tenant(grant, tenant)?;
        let (limit, reached) = (page.limit, sub_tenants_of(&grant.scope, tenant));
        let page = StorePage { reached, limit: limit + 1, ..page };
        let mut stores = self.catalog.vector_stores(found.collection, &page)?;
        let has_more = stores.len() > limit;
        stores.truncate(limit);
        Ok((stores, has_more))
    }

    /// Counts the sources of a scope by state, and the bytes of their originals.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn vector_store_use(
        &self,
        access: &TenantAccess,
    ) -> Result<(SourceCounts, u64), EngineError> {
        let bytes = self.catalog.stored_bytes(access.tenant.collection, &access.sub_tenant)?;
        Ok((self.source_counts(access)?, bytes))
    }

    /// Stores the record of a file batch.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn add_file_batch(
        &self,
        access: &TenantAccess,
        batch: FileBatch,
    ) -> Result<(), EngineError> {
        let collection = access.tenant.collection;
        Ok(self.catalog.add_file_batch(collection, &access.sub_tenant, batch)?)
    }

    /// Looks up a file batch.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn file_batch(
        &self,
        access: &TenantAccess,
        id: &str,
    ) -> Result<Option<FileBatch>, EngineError> {
        Ok(self.catalog.file_batch(access.tenant.collection, &access.sub_tenant, id)?)
    }

    /// Marks a file batch as canceled.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn cancel_file_batch(&self, access: &TenantAccess, id: &str) -> Result<(), EngineError> {
        Ok(self.catalog.cancel_file_batch(access.tenant.collection, &access.sub_tenant, id)?)
    }
}
