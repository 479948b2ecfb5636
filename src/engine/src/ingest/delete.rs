//! Deletions. Once one returns, nothing that it names is visible to any read.
//!
//! Under the writer's lock, the manifest is changed first and the catalog second. A crash between
//! the two leaves a deletion that was never acknowledged and, at most, an accepted replacement that
//! is still queued and will become visible. Everything that the replacement takes over from the
//! previous version is written into its job first, so that it appears as it was acknowledged.

use std::sync::Arc;

use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::{Catalog, CatalogError};
use lodestone_storage::collection::{Collection, Edit, Outcome, Snapshot};
use lodestone_types::{CollectionId, CommitHead, SourceId, SourceRecord, SubTenantId};

/// The result of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Ids that existed, in the order of the request.
    pub deleted: Vec<SourceId>,
    /// Ids that did not exist.
    pub not_found: Vec<SourceId>,
}

impl Ingest {
    /// Deletes sources with their jobs and originals. Unknown ids are not an error.
    ///
    /// # Errors
    /// Errors of the disk or the catalog; the deletion may then be repeated.
    pub fn delete_sources(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        ids: &[SourceId],
    ) -> Result<Deleted, IngestError> {
        self.gauge.make_room();
        let mut writer = collection.writer()?;
        let snapshot = writer.base();
        let is_visible = |id: &&SourceId| {
            let is_lost = || snapshot.find_lost(sub_tenant, id).is_some();
            snapshot.find(sub_tenant, id).is_some() || is_lost()
        };
        let visible: Vec<SourceId> = ids.iter().filter(is_visible).cloned().collect();
        let mut outcome = Outcome::default();
        if !visible.is_empty() {
            self.keep_for_jobs(collection, &snapshot, sub_tenant, Some(&visible))?;
            let remove_sources =
                visible.iter().map(|id| (sub_tenant.clone(), id.clone())).collect();
            outcome = writer.commit(&Edit { remove_sources, ..Edit::default() })?;
        }
        let canceled = self.catalog.cancel_sources(collection.id(), sub_tenant, ids);
        let canceled = canceled.map_err(|error| match visible.is_empty() {
            true => error.into(),
            false => IngestError::half_done(error),
        })?;
        self.record_head(collection)?;
        drop(writer);
        self.delete_originals(&outcome.orphaned_uploads);
        self.delete_originals(&canceled.raw_keys);
        self.maintenance.wake(collection);
        let mut found = Deleted::default();
        for id in ids {
            if found.deleted.contains(id) || found.not_found.contains(id) {
                continue;
            }
            match visible.contains(id) || canceled.existed.contains(id) {
                true => found.deleted.push(id.clone()),
                false => found.not_found.push(id.clone()),
            }
        }
        Ok(found)
    }

    /// Makes the jobs of the given sources, or of a whole sub-tenant, store what they take over
    /// from visible versions. A source without a pending job costs one lookup and no write.
    fn keep_for_jobs(
        &self,
        collection: &Collection,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        sources: Option<&[SourceId]>,
    ) -> Result<(), IngestError> {
        let awaited = self.catalog.yet_to_succeed(collection.id(), sub_tenant, sources)?;
        // If a record cannot be read, nothing could be published from it either.
        let stored = awaited.iter().filter_map(|id| snapshot.record(sub_tenant, id).ok().flatten());
        let stored: Vec<SourceRecord> = stored.collect();
        if !stored.is_empty() {
            self.catalog.keep_stored(collection.id(), stored)?;
        }
        Ok(())
    }

    /// Records the newest commit in the catalog, so that its loss on disk is noticed and query
    /// nodes load it. The commit itself is already durable: if the catalog cannot record it, that
    /// is an error only where query nodes may exist.
    ///
    /// # Errors
    /// Errors of the catalog, as [`IngestError::OutcomeUnknown`].
    pub(super) fn record_head(&self, collection: &Collection) -> Result<(), IngestError> {
        self.record(collection, Catalog::record_head)
    }

    /// Records the commit of a batch of vectors, under the writer's lock.
    ///
    /// # Errors
    /// Those of [`Self::record_head`].
    pub(super) fn record_batch(&self, collection: &Collection) -> Result<(), IngestError> {
        self.record(collection, Catalog::record_batch)
    }

    fn record(
        &self,
        collection: &Collection,
        record: fn(&Catalog, CollectionId, CommitHead) -> Result<(), CatalogError>,
    ) -> Result<(), IngestError> {
        let Some(head) = collection.head() else { return Ok(()) };
        match record(&self.catalog, collection.id(), head) {
            Err(error) if self.store.is_shared() => Err(IngestError::half_done(error)),
            Err(error) => {
                let id = collection.id();
                tracing::error!(collection = %id, %error, "recording the newest commit failed");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Deletes a sub-tenant with everything in it; returns whether it existed.
    ///
    /// # Errors
    /// Errors of the disk or the catalog; the deletion may then be repeated.
    pub fn delete_sub_tenant(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
    ) -> Result<bool, IngestError> {
        self.gauge.make_room();
        let mut writer = collection.writer()?;
        if !self.catalog.sub_tenant_exists(collection.id(), sub_tenant)? {
            return Ok(false);
        }
        self.keep_for_jobs(collection, &writer.base(), sub_tenant, None)?;
        let edit = Edit { remove_sub_tenant: Some(sub_tenant.clone()), ..Edit::default() };
        let outcome = writer.commit(&edit)?;
        let canceled = self.catalog.delete_sub_tenant(collection.id(), sub_tenant);
        let canceled = canceled.map_err(IngestError::half_done)?;
        self.record_head(collection)?;
        drop(writer);
        self.delete_originals(&outcome.orphaned_uploads);
        self.delete_originals(&canceled.raw_keys);
        self.maintenance.wake(collection);
        Ok(true)
    }
}
