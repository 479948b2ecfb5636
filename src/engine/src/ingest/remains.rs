//! Removes what is left of deleted tenants, and completes the descriptors of the others.

use crate::copies;
use crate::ingest::maintenance_queue::Maintenance;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::CatalogError;
use lodestone_catalog::descriptors;
use lodestone_storage::collection::{CollectionError, layout, uploads};
use lodestone_types::CollectionId;

impl Ingest {
    /// Deletes the files of deleted tenants. A tenant still in use is skipped and retried.
    ///
    /// # Errors
    /// Errors of the disk or the catalog, after all other tenants were handled; the next start
    /// continues.
    pub fn finish_deleted_tenants(&self) -> Result<(), IngestError> {
        let doomed = self.catalog.collections_pending_delete()?;
        if doomed.is_empty() {
            return Ok(());
        }
        // A deletion may be in doubt: a process that has taken over may still have the tenant.
        self.catalog.confirm()?;
        let mut outcome = Ok(());
        for id in doomed {
            if let Err(error) = self.finish_deleted_tenant(id) {
                tracing::warn!(collection = %id, %error, "removing the files of a deleted tenant \
                    failed");
                outcome = Err(error);
            }
        }
        outcome
    }

    fn finish_deleted_tenant(&self, id: CollectionId) -> Result<(), IngestError> {
        let Maintenance { large, lost, .. } = &self.maintenance;
        if !large.give_up(id) | !lost.give_up(id) | !self.reembeds.forget(id) {
            // Files written by a merge, a rebuild or a re-embedding after this would stay behind.
            // The thread that is working on it calls this again when it is done.
            return Ok(());
        }
        // The same goes for a request that began before the deletion.
        if self.maintenance.is_held(id, self.registry.close(id)) {
            return Ok(());
        }
        descriptors::mark_deleted(&*self.store, id)?;
        self.delete_files(id)?;
        self.catalog.finish_delete_collection(id)?;
        Ok(descriptors::remove(&*self.store, id)?)
    }

    pub(super) fn delete_files(&self, id: CollectionId) -> Result<(), CollectionError> {
        for prefix in [layout::collection_prefix(id), uploads::prefix(id)] {
            self.store.delete_prefix(&prefix)?;
        }
        copies::forget(&*self.store, id);
        Ok(())
    }

    /// Writes the descriptors that tenants of earlier releases lack, and removes those of deleted
    /// tenants along with any files left.
    ///
    /// # Errors
    /// Errors of the disk or the catalog; the next start continues.
    pub fn complete_descriptors(&self) -> Result<(), IngestError> {
        let described = descriptors::collections(&*self.store)?;
        for tenant in self.catalog.tenants()? {
            if described.binary_search(&tenant.collection).is_err() {
                match self.change_tenant(tenant.collection, |_| {}) {
                    // Deleted in the meantime: it needs none.
                    Err(IngestError::Catalog(CatalogError::CollectionUnknown { .. })) => {}
                    described => described?,
                }
            }
        }
        let doomed = self.catalog.collections_pending_delete()?;
        for collection in described {
            // Must be read in this order: a tenant no longer being imported is then already in the
            // catalog.
            let is_imported = self.importing.lock().contains(&collection);
            let is_doomed = is_imported || doomed.contains(&collection);
            if is_doomed || self.catalog.tenant_of(collection)?.is_some() {
                continue;
            }
            match descriptors::read(&*self.store, collection)? {
                Some(found) if found.is_deleted => {
                    self.delete_files(collection)?;
                    descriptors::remove(&*self.store, collection)?;
                }
                Some(_) => {
                    tracing::warn!(%collection, "a tenant has a descriptor but is not in \
                        the catalog");
                }
                None => {}
            }
        }
        Ok(())
    }
}
