//! Limits on the number of vectors of a tenant.
//!
//! Every live row counts: client vectors, chunks of documents and of memories. The count is that of
//! the newest version of the collection, and it is taken under its writer's lock just before the
//! commit, so no number of uploads at once goes beyond the limit.

use crate::ingest::Ingest;
use lodestone_catalog::{CatalogError, Tenant, TenantLimits};
use lodestone_storage::collection::{Collection, Snapshot};
use lodestone_types::{SourceId, SubTenantId};

/// Vectors of a tenant, and its limit of them.
#[derive(Debug)]
pub(super) struct VectorAllowance {
    max: Option<u64>,
    used: u64,
}

impl Ingest {
    /// The limits that hold for a tenant now; `tenant` may have been read before a change.
    pub(super) fn limits_of(&self, tenant: &Tenant) -> Result<TenantLimits, CatalogError> {
        let now = self.catalog.tenant(&tenant.id)?;
        let now = now.filter(|now| now.collection == tenant.collection);
        Ok(self.catalog.limits_of(now.as_deref().unwrap_or(tenant)))
    }

    /// Vectors of a tenant in a version of its collection, and the limit that holds.
    pub(super) fn vector_allowance(
        &self,
        tenant: &Tenant,
        version: &Snapshot,
    ) -> Result<VectorAllowance, CatalogError> {
        let max = self.limits_of(tenant)?.vectors;
        Ok(VectorAllowance { max, used: max.map_or(0, |_| version.rows()) })
    }

    /// Refuses another source of a tenant that has no room for a single vector now, before anything
    /// of it is stored. The publication decides.
    pub(super) fn require_room_for_a_vector(
        &self,
        tenant: &Tenant,
        collection: &Collection,
        sub_tenant: &SubTenantId,
        source: Option<&SourceId>,
    ) -> Result<(), CatalogError> {
        let snapshot = collection.snapshot();
        match source.is_some_and(|source| snapshot.find(sub_tenant, source).is_some()) {
            true => Ok(()),
            false => self.vector_allowance(tenant, &snapshot)?.add(0, 1),
        }
    }
}

impl VectorAllowance {
    /// Counts a source of so many rows, which replaces the visible one of its id. A source with no
    /// more rows than the visible one is never refused.
    ///
    /// # Errors
    /// [`CatalogError::TenantLimit`]; the source is not counted then.
    pub(super) fn take(
        &mut self,
        base: &Snapshot,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        rows: usize,
    ) -> Result<(), CatalogError> {
        if self.max.is_none() {
            return Ok(());
        }
        let older = base.find(sub_tenant, source).map_or(0, |found| found.rows().len() as u64);
        self.add(older, rows as u64)
    }

    fn add(&mut self, older: u64, rows: u64) -> Result<(), CatalogError> {
        let Some(max) = self.max else { return Ok(()) };
        let used = self.used;
        let needed = (used + rows).saturating_sub(older);
        if rows > older && needed > max {
            return Err(CatalogError::TenantLimit { limit: "vectors", max, used, needed });
        }
        self.used = needed;
        Ok(())
    }
}
