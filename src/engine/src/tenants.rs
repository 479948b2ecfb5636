//! Tenants and sub-tenants: creating, deleting, listing, limits and counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::access::absent;
use crate::ingest::IngestError;
use crate::query;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::{Allowance, CatalogError, Tenant, TenantLimits};
use lodestone_storage::collection::Snapshot;
use lodestone_types::{CollectionId, Grant, SubTenantId, TenantId, TenantMode, TenantSchema};

/// Counts of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Searchable chunks or vectors of the sub-tenant.
    pub objects: u64,
    /// Searchable chunks or vectors of all sub-tenants that the key reaches.
    pub tenant_objects: u64,
    /// Sources of the sub-tenant, in any state.
    pub sources: u64,
    /// Memories of the sub-tenant that have not expired.
    pub memories: u64,
    /// The embedding model of the tenant.
    pub model: TenantModel,
}

/// Limits and embedding model of a tenant to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantPlan {
    /// The tenant's own limits, which override the server's.
    pub limits: TenantLimits,
    /// Name of the embedding model; `None` takes the server's current one.
    pub embedding_model: Option<String>,
}

/// A tenant's usage and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantUsage {
    /// Sources and bytes used, and all limits.
    pub allowance: Allowance,
    /// Number of client vectors, or of chunks of documents and memories.
    pub vectors: u64,
    /// Requests in the last minute; `None` if they are not limited, and so not counted.
    pub requests: Option<u64>,
    /// Workers that are processing its documents now.
    pub ingest_workers: usize,
}

/// The embedding model of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantModel {
    /// Its name, or its fingerprint if it is not loaded; `None` for client vectors.
    pub name: Option<String>,
    /// Dimension of the vectors, once known.
    pub dimension: Option<u32>,
}

impl Engine {
    /// Reports a tenant's usage and limits.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::Forbidden`] for a key that reaches only a
    /// part of it; a collection that cannot be opened.
    pub fn usage(&self, grant: &Grant, id: &TenantId) -> Result<TenantUsage, EngineError> {
        let tenant = self.find_tenant(grant, id)?;
        if !grant.scope.allows_whole_tenant(id) {
            let need = "the usage of a tenant requires a key for all of its sub-tenants";
            return Err(EngineError::Forbidden { need });
        }
        self.usage_of(&tenant)
    }

    fn usage_of(&self, tenant: &Arc<Tenant>) -> Result<TenantUsage, EngineError> {
        // Opened first, since that may complete what is counted.
        let collection = self.collection(tenant)?;
        let allowance = self.catalog.allowance(tenant.collection).map_err(absent)?;
        let is_counted = allowance.limits.requests_per_minute.is_some();
        let used = || self.rates.used(tenant.collection, Instant::now());
        Ok(TenantUsage {
            allowance,
            vectors: collection.snapshot().rows(),
            requests: is_counted.then(used),
            ingest_workers: self.ingest.workers_at(tenant.collection),
        })
    }

    /// Replaces the limits of a tenant; returns its collection and its usage.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants;
    /// [`EngineError::TenantNotFound`].
    pub fn set_tenant_limits(
        &self,
        grant: &Grant,
        id: &TenantId,
        limits: TenantLimits,
    ) -> Result<(CollectionId, TenantUsage), EngineError> {
        if !grant.is_all_tenants() {
            let need = "setting tenant limits requires a key for all tenants";
            return Err(EngineError::Forbidden { need });
        }
        let tenant = self.find_tenant(grant, id)?;
        let collection = tenant.collection;
        match self.ingest.change_tenant(collection, |tenant| tenant.limits = limits) {
            Err(IngestError::Catalog(error)) => return Err(absent(error)),
            changed => changed?,
        }
        Ok((collection, self.usage_of(&tenant)?))
    }

    /// Creates a tenant.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants;
    /// [`EngineError::TenantExists`]; [`EngineError::ModelUnknown`]; an invalid schema.
    pub fn create_tenant(
        &self,
        grant: &Grant,
        id: Option<TenantId>,
        mode: TenantMode,
        schema: Option<TenantSchema>,
        plan: TenantPlan,
    ) -> Result<Arc<Tenant>, EngineError> {
        if !grant.is_all_tenants() {
            let need = "creating tenants requires a key for all tenants";
            return Err(EngineError::Forbidden { need });
        }
        if let Some(schema) = &schema {
            schema.validate()?;
        }
        let id = id.unwrap_or_else(|| {
            let id = self.ids.wire_id("tenant_", self.clock.now());
            TenantId::parse(&id).expect("generated ids parse")
        });
        if self.models.chosen(plan.embedding_model.as_deref()).is_none() {
            let known = self.models.all().map(|model| model.name().to_owned()).collect();
            return Err(EngineError::ModelUnknown { known });
        }
        self.make_tenant(id, mode, schema, plan)
    }

    /// Creates a tenant, writing its descriptor before its row in the catalog, so that every
    /// visible tenant survives the loss of the catalog. Costs three fsyncs.
    pub(super) fn make_tenant(
        &self,
        id: TenantId,
        mode: TenantMode,
        schema: Option<TenantSchema>,
        plan: TenantPlan,
    ) -> Result<Arc<Tenant>, EngineError> {
        self.ingest.require_room_for_content()?;
        let _one_at_a_time = self.ingest.hold_tenants();
        if self.catalog.tenant(&id)?.is_some() {
            return Err(EngineError::TenantExists { tenant: id });
        }
        let TenantPlan { limits, embedding_model } = plan;
        let tenant = self.catalog.fresh_tenant(id, mode, schema);
        let tenant = Tenant { limits, embedding_model, ..tenant };
        let collection = tenant.collection;
        let descriptor = Descriptor { tenant: tenant.clone(), is_deleted: false };
        descriptors::write(&*self.store, &descriptor)?;
        let created = self.catalog.insert_tenant(tenant);
        if created.is_err()
            && let Err(error) = descriptors::remove(&*self.store, collection)
        {
            tracing::warn!(%collection, %error, "removing the descriptor of a tenant that was not \
                created failed");
        }
        match created {
            Err(CatalogError::TenantExists { tenant }) => Err(EngineError::TenantExists { tenant }),
            created => Ok(created?),
        }
    }

    /// The tenants that the key reaches, by name.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, EngineError> {
        let mut tenants = self.catalog.tenants()?;
        tenants.retain(|tenant| grant.allows_tenant(&tenant.id));
        Ok(tenants)
    }

    /// Deletes a tenant with everything in it; returns its collection. No reader sees it once this
    /// returns; its files are removed in the background.
    ///
    /// # Errors
    /// [`EngineError::TenantNotFound`]; [`EngineError::Forbidden`] for a key that reaches only a
    /// part of it.
    pub fn delete_tenant(&self, grant: &Grant, id: &TenantId) -> Result<CollectionId, EngineError> {
        let tenant = self.find_tenant(grant, id)?;
        if !grant.scope.allows_whole_tenant(id) {
            let need = "deleting a tenant requires a key for all of its sub-tenants";
            return Err(EngineError::Forbidden { need });
        }
        self.gauge.make_room();
        let changing = self.ingest.hold_tenants();
        let begun = self.catalog.begin_delete_tenant(&tenant.id);
        if matches!(begun, Err(CatalogError::InDoubt { .. })) {
            // The background work deletes it as soon as it is known that the catalog has it as
            // deleted.
            self.ingest.clear_deleted_tenants();
        }
        let collection = begun.map_err(absent)?;
        // Marked before the call returns, so that a rebuilt catalog does not bring the tenant back.
        let marked = descriptors::mark_deleted(&*self.store, collection);
        drop(changing);
        self.ingest.clear_deleted_tenants();
        marked.map_err(IngestError::half_done)?;
        Ok(collection)
    }

    /// A tenant and its sub-tenants that the key reaches: `default` first, then in ascending order.
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
    /// [`EngineError::DefaultProtected`]; [`EngineError::SubTenantUnknown`]; errors of the disk.
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

    /// Counts the objects of a scope.
    ///
    /// # Errors
    /// Errors of the catalog or the disk.
    pub fn stats(&self, grant: &Grant, access: &TenantAccess) -> Result<Stats, EngineError> {
        let snapshot = access.collection.snapshot();
        let (_, reached) = self.sub_tenants(grant, &access.tenant.id)?;
        Ok(Stats {
            objects: snapshot.rows_in(&access.sub_tenant),
            tenant_objects: reached.iter().map(|name| snapshot.rows_in(name)).sum(),
            sources: self.source_count(access)?,
            memories: query::memory_count(&snapshot, &access.sub_tenant, self.clock.now())?,
            model: self.model_of(&access.tenant, Some(&snapshot)),
        })
    }

    /// The embedding models of tenants: for an open collection the model of its vectors, otherwise
    /// the one chosen for the tenant or the server's current one.
    pub fn tenant_models(&self, tenants: &[Tenant]) -> Vec<TenantModel> {
        let open = self.registry.open_collections().into_iter();
        let open: HashMap<_, _> = open.map(|collection| (collection.id(), collection)).collect();
        let model = |tenant: &Tenant| {
            let snapshot = open.get(&tenant.collection).map(|collection| collection.snapshot());
            self.model_of(tenant, snapshot.as_deref())
        };
        tenants.iter().map(model).collect()
    }

    fn model_of(&self, tenant: &Tenant, snapshot: Option<&Snapshot>) -> TenantModel {
        if tenant.mode.is_embeddings() {
            return TenantModel { name: None, dimension: tenant.dimension };
        }
        let made_by = snapshot.and_then(|snapshot| snapshot.manifest.model());
        let chosen = tenant.embedding_model.as_deref();
        let model = made_by.map_or_else(|| self.models.chosen(chosen), |it| self.models.with(it));
        let stored = || Some(snapshot?.segments.first()?.segment.dimension());
        let dimension = model.map(|model| model.dimension()).or_else(stored);
        TenantModel {
            name: model.map(|model| model.name()).or(made_by).or(chosen).map(str::to_owned),
            dimension: dimension.map(|width| width as u32),
        }
    }
}
