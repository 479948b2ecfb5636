//! Limits the number of vectors per tenant, and counts the bytes of batches.
//!
//! Every live row counts: client vectors, chunks of documents and chunks of memories. The newest
//! version of the collection is counted under the writer's lock just before the commit, so that
//! concurrent uploads cannot exceed the limit.

use crate::ingest::maintenance::KNOWN_PER_STEP;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::{CatalogError, Tenant, TenantLimits};
use lodestone_storage::collection::{Collection, FoundSource, Snapshot};
use lodestone_types::{CollectionId, SourceId, SourceRecord, SubTenantId};

/// The number of vectors of a tenant, and its limit.
#[derive(Debug)]
pub(super) struct VectorAllowance {
    max: Option<u64>,
    used: u64,
}

impl Ingest {
    /// The current limits of a tenant; `tenant` itself may have been read before they changed.
    pub(super) fn limits_of(&self, tenant: &Tenant) -> Result<TenantLimits, CatalogError> {
        let now = self.catalog.tenant(&tenant.id)?;
        let now = now.filter(|now| now.collection == tenant.collection);
        Ok(self.catalog.limits_of(now.as_deref().unwrap_or(tenant)))
    }

    /// The number of vectors in a version of a tenant's collection, and the current limit.
    pub(super) fn vector_allowance(
        &self,
        tenant: &Tenant,
        version: &Snapshot,
    ) -> Result<VectorAllowance, CatalogError> {
        let max = self.limits_of(tenant)?.vectors;
        Ok(VectorAllowance { max, used: max.map_or(0, |_| version.rows()) })
    }

    /// Rejects a new source early, before anything of it is stored, if the tenant has no room for
    /// even one vector. The publication makes the final check.
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

/// Bytes of the live vectors of a batch.
pub(super) fn vector_bytes(found: &FoundSource<'_>) -> u64 {
    (found.rows().len() * found.live.segment.dimension() * size_of::<f32>()) as u64
}

/// Bytes of the stored version of a batch, whose record is `older`; `None` if there is none.
pub(super) fn held_bytes(
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    batch: &SourceId,
    older: Option<&SourceRecord>,
) -> Option<u64> {
    let live = snapshot.find(sub_tenant, batch).map(|found| vector_bytes(&found));
    live.or(older.map(|older| older.size_bytes))
}

impl Ingest {
    /// Brings the catalog up to date with the vectors of a tenant that was just opened, since the
    /// process may have ended between a commit and its entry in the catalog, or before the commit
    /// of a batch that is counted already. Nothing is being uploaded to a tenant that opens.
    pub(super) fn complete_batches(
        &self,
        tenant: &Tenant,
        collection: &Collection,
    ) -> Result<(), IngestError> {
        let (id, snapshot) = (collection.id(), collection.snapshot());
        if !tenant.mode.is_embeddings() {
            return Ok(());
        }
        if snapshot.unknown_segments() == 0 && self.catalog.may_count_unstored(id)? {
            self.release_uncommitted(id, &snapshot)?;
        }
        if self.catalog.head(id)? == collection.head() {
            return Ok(());
        }
        if let Some(live) = snapshot.segments.first() {
            self.catalog.fix_dimension(id, live.segment.dimension() as u32)?;
        }
        let counted = |found: FoundSource<'_>| {
            let (sub_tenant, batch) = found.live.segment.source_key(found.source);
            // The scopes of memories, which do not count, have names that do not parse.
            let sub_tenant = SubTenantId::parse(sub_tenant).ok()?;
            Some((sub_tenant, SourceId::parse(batch).ok()?, vector_bytes(&found)))
        };
        let batches: Vec<_> = snapshot.all_sources().filter_map(counted).collect();
        for part in batches.chunks(KNOWN_PER_STEP) {
            self.catalog.set_bytes(id, part.to_vec())?;
        }
        self.record_head(collection)
    }

    /// Stops counting batches that were counted before a commit that did not happen. A stored
    /// version of such a batch counts again. Later batches may have been stored meanwhile.
    fn release_uncommitted(
        &self,
        collection: CollectionId,
        snapshot: &Snapshot,
    ) -> Result<(), IngestError> {
        for (sub_tenant, batch, sequence, bytes) in self.catalog.counted(collection)? {
            let older = match snapshot.find(&sub_tenant, &batch) {
                Some(_) => None,
                None => snapshot.record(&sub_tenant, &batch)?,
            };
            let held = held_bytes(snapshot, &sub_tenant, &batch, older.as_ref());
            if held != Some(bytes) {
                self.catalog.release_batch(collection, &sub_tenant, &batch, sequence, held)?;
            }
        }
        Ok(self.catalog.all_stored(collection)?)
    }
}

impl VectorAllowance {
    /// Counts a source with `rows` rows, which replaces the visible source with the same id. A
    /// source that does not grow is never refused.
    ///
    /// # Errors
    /// [`CatalogError::TenantLimit`]; the source is then not counted.
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
