//! Tenants and sub-tenants.

use std::sync::Arc;

use crate::access::absent;
use crate::ingest::IngestError;
use crate::query;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::{Allowance, CatalogError, Tenant, TenantLimits};
use lodestone_types::{CollectionId, Grant, SubTenantId, TenantId, TenantMode, TenantSchema};

/// Counts of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Searchable chunks or vectors of the sub-tenant.
    pub objects: u64,
    /// The same over every sub-tenant that the key reaches.
    pub tenant_objects: u64,
    /// Sources of the sub-tenant in every state.
    pub sources: u64,
    /// Memories of the sub-tenant that have not expired.
    pub memories: u64,
    /// Width of the vectors, once known.
    pub dimension: Option<usize>,
}

impl Engine {
    /// The use of a tenant and its limits.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::Forbidden`] for a key that reaches only a
    /// part of it.
    pub fn allowance(&self, grant: &Grant, id: &TenantId) -> Result<Allowance, EngineError> {
        let tenant = self.find_tenant(grant, id)?;
        if !grant.scope.allows_whole_tenant(id) {
            let need = "the use of a tenant needs a key for all of its sub-tenants";
            return Err(EngineError::Forbidden { need });
        }
        self.catalog.allowance(tenant.collection).map_err(absent)
    }

    /// Replaces the limits of a tenant.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key that is not for all tenants;
    /// [`EngineError::TenantNotFound`].
    pub fn set_tenant_limits(
        &self,
        grant: &Grant,
        id: &TenantId,
        limits: TenantLimits,
    ) -> Result<(CollectionId, Allowance), EngineError> {
        if !grant.is_all_tenants() {
            let need = "limits of tenants need a key with the scope of all tenants";
            return Err(EngineError::Forbidden { need });
        }
        let collection = self.find_tenant(grant, id)?.collection;
        let set = self.catalog.set_tenant_limits(collection, limits).map_err(absent)?;
        Ok((collection, set))
    }

    /// Creates a tenant.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key that is not for all tenants;
    /// [`EngineError::TenantExists`]; a schema against the rules.
    pub fn create_tenant(
        &self,
        grant: &Grant,
        id: Option<TenantId>,
        mode: TenantMode,
        schema: Option<TenantSchema>,
    ) -> Result<Arc<Tenant>, EngineError> {
        if !grant.is_all_tenants() {
            let need = "creating tenants needs a key with the scope of all tenants";
            return Err(EngineError::Forbidden { need });
        }
        if let Some(schema) = &schema {
            schema.validate()?;
        }
        let id = id.unwrap_or_else(|| {
            let id = self.ids.wire_id("tenant_", self.clock.now());
            TenantId::parse(&id).expect("generated ids parse")
        });
        self.make_tenant(id, mode, schema)
    }

    /// Its descriptor first: a tenant that is visible also survives the loss of the catalog.
    /// Three fsyncs.
    pub(super) fn make_tenant(
        &self,
        id: TenantId,
        mode: TenantMode,
        schema: Option<TenantSchema>,
    ) -> Result<Arc<Tenant>, EngineError> {
        self.ingest.require_room_for_content()?;
        let _one_at_a_time = self.creating.lock();
        if self.catalog.tenant(&id)?.is_some() {
            return Err(EngineError::TenantExists { tenant: id });
        }
        let tenant = self.catalog.fresh_tenant(id, mode, schema);
        let collection = tenant.collection;
        let descriptor = Descriptor { tenant: tenant.clone(), is_deleted: false };
        descriptors::write(&*self.store, &descriptor)?;
        let created = self.catalog.insert_tenant(tenant);
        if created.is_err()
            && let Err(error) = descriptors::remove(&*self.store, collection)
        {
            tracing::warn!(%collection, %error, "a descriptor without a tenant stays");
        }
        match created {
            Err(CatalogError::TenantExists { tenant }) => Err(EngineError::TenantExists { tenant }),
            created => Ok(created?),
        }
    }

    /// Tenants that the key reaches, by name.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, EngineError> {
        let mut tenants = self.catalog.tenants()?;
        tenants.retain(|tenant| grant.allows_tenant(&tenant.id));
        Ok(tenants)
    }

    /// Deletes a tenant with everything in it. It is gone for every reader when this returns;
    /// its files follow in the background. Returns its collection.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::Forbidden`] for a key that reaches only a
    /// part of it.
    pub fn delete_tenant(&self, grant: &Grant, id: &TenantId) -> Result<CollectionId, EngineError> {
        let tenant = self.find_tenant(grant, id)?;
        if !grant.scope.allows_whole_tenant(id) {
            let need = "deleting a tenant needs a key for all of its sub-tenants";
            return Err(EngineError::Forbidden { need });
        }
        self.gauge.make_room();
        let collection = self.catalog.begin_delete_tenant(&tenant.id).map_err(absent)?;
        // Before the answer: a deleted tenant must not come back with a rebuilt catalog.
        let marked = descriptors::mark_deleted(&*self.store, collection);
        self.ingest.clear_deleted_tenants();
        marked.map_err(IngestError::half_done)?;
        Ok(collection)
    }

    /// A tenant with its sub-tenants that the key reaches: `default` first, then ascending.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`].
    pub fn sub_tenants(
        &self,
        grant: &Grant,
        id: &TenantId,
    ) -> Result<(Arc<Tenant>, Vec<SubTenantId>), EngineError> {
        let tenant = self.find_tenant(grant, id)?;
        let mut names = self.catalog.sub_tenants(tenant.collection)?;
        names.retain(|name| grant.allows(id, name));
        Ok((tenant, names))
    }

    /// Deletes a sub-tenant with everything in it.
    ///
    /// # Errors
    /// [`EngineError::DefaultProtected`]; [`EngineError::SubTenantUnknown`]; what the disk says.
    pub fn delete_sub_tenant(&self, access: &TenantAccess) -> Result<(), EngineError> {
        let sub_tenant = &access.sub_tenant;
        if sub_tenant.is_default() {
            return Err(EngineError::DefaultProtected);
        }
        match self.ingest.delete_sub_tenant(&access.collection, sub_tenant)? {
            true => Ok(()),
            false => Err(EngineError::SubTenantUnknown { sub_tenant: sub_tenant.clone() }),
        }
    }

    /// Counts of a scope.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn stats(&self, grant: &Grant, access: &TenantAccess) -> Result<Stats, EngineError> {
        let snapshot = access.collection.snapshot();
        let (_, reached) = self.sub_tenants(grant, &access.tenant.id)?;
        let dimension = match access.tenant.mode {
            TenantMode::Standard => {
                let model = self.models.of(&snapshot.manifest);
                Some(model.unwrap_or(self.models.current()).dimension())
            }
            TenantMode::Embeddings(_) => access.tenant.dimension.map(|width| width as usize),
        };
        Ok(Stats {
            objects: snapshot.rows_in(&access.sub_tenant),
            tenant_objects: reached.iter().map(|name| snapshot.rows_in(name)).sum(),
            sources: self.source_count(access)?,
            memories: query::memory_count(&snapshot, &access.sub_tenant, self.clock.now())?,
            dimension,
        })
    }
}
