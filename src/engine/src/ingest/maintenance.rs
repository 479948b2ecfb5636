//! Background work on collections: merging, garbage collection, rebuilding damaged segments, and
//! deleting originals that nothing refers to.
//!
//! One thread does everything but large merges and rebuilds. These take minutes and run on threads
//! of their own, so that other collections, and new segments of the same one, are merged meanwhile.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use crate::copies;
use crate::ingest::maintenance_queue::ThreadQueue;
use crate::ingest::rebuild::Round;
use crate::ingest::stopping::is_due;
use crate::ingest::vector_limit::vector_bytes;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::CatalogError;
use lodestone_embed::Embedder;
use lodestone_io::{Fullness, run_in_background};
use lodestone_storage::collection::{
    Collection, CollectionError, MergeBudget, PlannedMerge, uploads,
};
use lodestone_types::{ErrorKind, SourceKind, SourceRecord, TenantId, Timestamp};

/// Interval at which collections whose work had to be postponed are checked again.
pub(super) const ROUND: Duration = Duration::from_secs(5);
/// Time without use after which a model may be unloaded while work waits for memory.
const PRESSURE_IDLE: Duration = Duration::from_secs(10);
/// Number of rows from which a merge counts as large.
const LARGE_MERGE_ROWS: u64 = 50_000;
/// Number of segments from which whoever adds one to a collection has to merge first: twice as many
/// as the merge policy leaves, so only if they arrive faster than the background merges them.
const SEGMENTS_MANY: usize = 100;
/// Minimum age of an original without a job before it is deleted: a younger one's job may still be
/// on its way.
const ORPHAN_MILLIS: u64 = 3_600_000;

/// Interval between searches for such originals in the same tenant.
const SWEEP_MILLIS: u64 = 3_600_000;
/// Pause between two tenants of a sweep, so that idle ones are not all opened at once.
const SWEEP_PAUSE_MILLIS: u64 = 1000;
/// Number of sources passed to the catalog in one transaction.
pub(super) const KNOWN_PER_STEP: usize = 1000;

/// The tenants still to be swept in this round.
#[derive(Debug, Default)]
struct Sweep {
    waiting: VecDeque<TenantId>,
    round_due_at: Timestamp,
    next_due_at: Timestamp,
}

/// Disk space reserved for one merge; released on drop.
#[derive(Debug)]
struct DiskShare<'a> {
    promised_bytes: &'a Mutex<u64>,
    bytes: u64,
}

impl Drop for DiskShare<'_> {
    fn drop(&mut self) {
        let mut promised_bytes = self.promised_bytes.lock();
        *promised_bytes = promised_bytes.saturating_sub(self.bytes);
    }
}

impl Ingest {
    /// Runs until shutdown.
    pub(super) fn maintain(&self) {
        run_in_background();
        // The previous process may have stopped in the middle of deleting tenants.
        self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
        if let Err(error) = self.complete_descriptors() {
            tracing::warn!(%error, "writing tenant descriptors failed: some are missing");
        }
        let (mut sweep, mut attempt_due_at) = (Sweep::default(), Timestamp::default());
        while !self.stopping.is_set() {
            if let Err(error) = self.sweep_next(&mut sweep) {
                tracing::warn!(%error, "checking the originals of a tenant failed");
            }
            if self.maintenance.has_deleted_tenants.swap(false, Ordering::SeqCst)
                && let Err(error) = self.finish_deleted_tenants()
            {
                tracing::warn!(%error, "removing the files of deleted tenants failed");
                self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
                self.stopping.wait(ROUND);
            }
            self.unload_models();
            self.tend_store(&mut attempt_due_at);
            if let Err(error) = self.gauge.keep_reserve() {
                tracing::warn!(%error, "reserving disk space for deletions failed");
            }
            for (collection, is_first) in self.maintenance.take(&self.stopping) {
                self.guarded(&collection, || self.maintain_one(&collection, is_first));
            }
        }
    }

    /// Tries failed deletions again, adapts the cache to the free space, and removes what has
    /// expired from the catalog, once per [`ROUND`].
    fn tend_store(&self, due_at: &mut Timestamp) {
        let (now, round) = (self.clock.now(), ROUND.as_millis() as u64);
        if is_due(*due_at, now, round) {
            *due_at = now.plus_millis(round);
            self.store.delete_deferred();
            self.store.fit_copies();
            if let Err(error) = self.purge_catalog() {
                tracing::warn!(%error, "removing what has expired from the catalog failed");
            }
        }
    }

    /// Removes expired sessions, and expired responses to requests with an idempotency key.
    fn purge_catalog(&self) -> Result<(), CatalogError> {
        while !self.stopping.is_set() && self.catalog.purge_sessions()? {}
        while !self.stopping.is_set() && self.catalog.purge_requests()? {}
        Ok(())
    }

    /// Unloads models that are not in use: each after its idle time, and, while work waits for
    /// memory, also the least recently used one. Never the current model.
    fn unload_models(&self) {
        let others = self.models.others();
        let mut unloaded: Vec<_> =
            others.iter().filter(|model| model.unload(self.model_idle)).collect();
        if self.memory.is_waiting() {
            let idle = |model: &&Arc<dyn Embedder>| model.idle_for();
            let least = others.iter().filter(|model| idle(model).is_some()).max_by_key(idle);
            unloaded.extend(least.filter(|model| model.unload(PRESSURE_IDLE)));
        }
        for model in unloaded {
            tracing::info!(model = model.name(), "unloaded an idle embedding model");
        }
    }

    /// Runs large merges until shutdown.
    pub(super) fn merge_large(&self) {
        self.work_apart(&self.maintenance.large, |collection| {
            self.merge_next(collection, u64::MAX).map(|_| Round::Progress)
        });
    }

    /// Rebuilds lost sources until shutdown.
    pub(super) fn rebuild_lost(&self) {
        self.work_apart(&self.maintenance.lost, |collection| self.restore_once(collection));
    }

    fn work_apart(
        &self,
        queue: &ThreadQueue,
        work: impl Fn(&Arc<Collection>) -> Result<Round, IngestError>,
    ) {
        run_in_background();
        while let Some(collection) = queue.take(&self.stopping) {
            self.guarded(&collection, || self.after_work(&collection, work(&collection)));
            queue.end();
            // The deletion of its tenant may have been waiting for this work.
            self.clear_deleted_tenants();
        }
    }

    /// Works on a collection. A panic, for example from bytes that changed after they were
    /// verified, does not end the thread but starts a search for damage.
    fn guarded(&self, collection: &Arc<Collection>, work: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!(collection = %collection.id(), "background work failed");
            self.quarantine(collection);
        }
    }

    /// Schedules maintenance of a changed collection. If merging has fallen far behind, the caller
    /// merges first, so that the number of segments stays bounded however fast they arrive.
    pub(super) fn look_after(&self, collection: &Arc<Collection>) {
        self.maintenance.wake(collection);
        // The background thread meets the error as well, and reports it.
        while collection.snapshot().segments.len() > SEGMENTS_MANY
            && self.merge_next(collection, LARGE_MERGE_ROWS).unwrap_or(false)
        {}
    }

    /// Runs the next merge of at most `rows_max` rows that fits into the available disk space and
    /// memory. A larger one goes to the other thread, and one that does not fit is postponed.
    /// Returns whether a merge was made.
    fn merge_next(&self, collection: &Arc<Collection>, rows_max: u64) -> Result<bool, IngestError> {
        if self.stopping.is_set() || self.gauge.level() >= Fullness::Tight {
            return Ok(false);
        }
        let Some((merge, _disk)) = self.plan_merge(collection) else {
            if collection.plan_merge(MergeBudget::MOST).is_some() {
                self.maintenance.postpone(collection);
            }
            return Ok(false);
        };
        if merge.rows() > rows_max {
            self.maintenance.large.wake(collection);
            return Ok(false);
        }
        let _memory = self.memory.take_for_merge(merge.memory_bytes());
        merge.run()?;
        self.record_head(collection)?;
        Ok(true)
    }

    /// Plans a merge, and reserves the bytes of disk that it takes. They leave the disk ample, so
    /// that one tenant's merge stops no others; only rewriting a segment to drop dead rows, which
    /// frees space, may take the disk up to the level at which uploads are refused.
    fn plan_merge<'a>(
        &'a self,
        collection: &'a Collection,
    ) -> Option<(PlannedMerge<'a>, DiskShare<'a>)> {
        let mut promised_bytes = self.maintenance.promised_bytes.lock();
        // What a merge has written already counts twice, which errs on the safe side.
        let room = |level| self.gauge.room_below(level).saturating_sub(*promised_bytes);
        let merge = collection.plan_merge(MergeBudget {
            disk_bytes: room(Fullness::Tight),
            worn_disk_bytes: room(Fullness::Full),
            memory_bytes: self.memory.room_for_merge(),
            ..MergeBudget::MOST
        })?;
        let bytes = merge.disk_bytes();
        *promised_bytes = promised_bytes.saturating_add(bytes);
        Some((merge, DiskShare { promised_bytes: &self.maintenance.promised_bytes, bytes }))
    }

    fn maintain_one(&self, collection: &Arc<Collection>, is_first: bool) {
        let result = (|| -> Result<Round, IngestError> {
            if is_first {
                collection.repair_source_lists()?;
            }
            self.remove_expired_memories(collection)?;
            self.expire_other(collection)?;
            while self.merge_next(collection, LARGE_MERGE_ROWS)? {}
            if !collection.snapshot().damaged.is_empty() {
                self.maintenance.lost.wake(collection);
            }
            collection.collect_garbage()?;
            // Nothing reports the end of the last reader.
            Ok(if collection.has_garbage() { Round::Later } else { Round::Idle })
        })();
        self.after_work(collection, result);
    }

    /// Decides whether a collection is scheduled again.
    fn after_work(&self, collection: &Arc<Collection>, result: Result<Round, IngestError>) {
        match result {
            Ok(Round::Idle) => {}
            // Not continued at once, so that other collections get their turn.
            Ok(Round::Progress) => self.maintenance.wake(collection),
            Ok(Round::Later) => self.maintenance.postpone(collection),
            Err(error) => {
                tracing::warn!(collection = %collection.id(), %error, "maintenance stopped early");
                let has_found =
                    error.kind() == ErrorKind::Corrupt && self.quarantine(collection) > 0;
                if !has_found {
                    self.stopping.wait(ROUND);
                }
                if !collection.is_poisoned() && !collection.snapshot().damaged.is_empty() {
                    self.maintenance.wake(collection);
                }
            }
        }
    }

    /// Sweeps the originals of the next tenant if it is due: at the start, and then once an hour.
    fn sweep_next(&self, sweep: &mut Sweep) -> Result<(), IngestError> {
        let now = self.clock.now();
        if sweep.waiting.is_empty() && is_due(sweep.round_due_at, now, SWEEP_MILLIS) {
            sweep.round_due_at = now.plus_millis(SWEEP_MILLIS);
            sweep.waiting = self.tenants_to_sweep()?;
            // Must be read in this order: a tenant no longer being imported is then already in the
            // catalog.
            let imported = self.importing.lock().clone();
            copies::forget_deleted(&*self.store, &self.catalog, &imported)?;
        }
        if !is_due(sweep.next_due_at, now, SWEEP_PAUSE_MILLIS) {
            return Ok(());
        }
        let Some(name) = sweep.waiting.pop_front() else { return Ok(()) };
        sweep.next_due_at = now.plus_millis(SWEEP_PAUSE_MILLIS);
        let Some(tenant) = self.catalog.tenant(&name)? else { return Ok(()) };
        let collection = self.open(&tenant)?;
        self.know_sources(&name, &collection)?;
        let expired = self.remove_expired_memories(&collection)?;
        if expired > 0 {
            tracing::info!(collection = %collection.id(), expired, "removed expired memories");
        }
        // Garbage is left if deleting it failed, or if nothing was committed after a build.
        if expired > 0 || collection.has_garbage() {
            self.maintenance.wake(&collection);
        }
        self.expire_other(&collection)?;
        let deleted = self.sweep_originals(&collection)?;
        copies::forget_originals(&*self.store, &self.catalog, &collection)?;
        if deleted > 0 {
            let id = collection.id();
            tracing::info!(collection = %id, deleted, "deleted originals without a source");
        }
        Ok(())
    }

    /// All tenants. If the data are in a bucket, only the open ones, since opening a tenant
    /// downloads it, and those whose sources the catalog does not list yet.
    fn tenants_to_sweep(&self) -> Result<VecDeque<TenantId>, IngestError> {
        let mut tenants = self.catalog.tenants()?;
        if self.store.is_shared() {
            let not_known = self.catalog.tenants_not_known()?;
            tenants.retain(|tenant| {
                self.registry.find(tenant.collection).is_some() || not_known.contains(&tenant.id)
            });
        }
        Ok(tenants.into_iter().map(|tenant| tenant.id).collect())
    }

    /// Lists the sources of a tenant in the catalog, if it does not have them yet: after an import,
    /// an upgrade from an earlier release, or a rebuilt catalog.
    pub(super) fn know_sources(
        &self,
        name: &TenantId,
        collection: &Collection,
    ) -> Result<(), IngestError> {
        if !self.catalog.tenants_not_known()?.contains(name) {
            return Ok(());
        }
        let snapshot = collection.snapshot();
        let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
        let entry = |record: &SourceRecord| {
            let bytes = (record.kind != SourceKind::Memory).then_some(record.size_bytes);
            (record.sub_tenant.clone(), record.id.clone(), record.sequence, bytes)
        };
        let mut known: Vec<_> = lost.map(entry).collect();
        for found in snapshot.all_sources() {
            let mut record = found.record().map_err(CollectionError::from)?;
            if record.kind == SourceKind::Embeddings {
                record.size_bytes = vector_bytes(&found);
            }
            known.push(entry(&record));
        }
        for part in known.chunks(KNOWN_PER_STEP) {
            self.catalog.add_known(collection.id(), part.to_vec())?;
        }
        match snapshot.unknown_segments() {
            0 => Ok(self.catalog.all_known(collection.id())?),
            _ => Ok(()),
        }
    }

    /// Deletes originals that neither a visible source nor a job refers to, as a crash between
    /// storing an original and writing its job leaves behind; returns their number. A process that
    /// was succeeded by another knows nothing of its uploads, and so deletes nothing.
    ///
    /// # Errors
    /// Errors of the disk or the catalog.
    pub fn sweep_originals(&self, collection: &Collection) -> Result<usize, IngestError> {
        let store = &*self.store;
        let found = store.list(&uploads::prefix(collection.id())).map_err(CollectionError::from)?;
        let horizon = self.clock.now().0.saturating_sub(ORPHAN_MILLIS);
        let is_old = |key: &lodestone_io::store::Key| {
            uploads::uploaded_at(key).is_some_and(|time| time.0 < horizon)
        };
        let old: Vec<_> = found.into_iter().filter(is_old).collect();
        if old.is_empty() {
            return Ok(0);
        }
        let referred = copies::referred_originals(&self.catalog, collection)?;
        let Some(referred) = referred else { return Ok(0) };
        let orphans: Vec<_> = old.iter().filter(|key| !referred.contains(key.as_str())).collect();
        // Checked after the listing: everything listed was stored before any successor took over.
        if orphans.is_empty() || self.catalog.check_fence()? {
            return Ok(0);
        }
        let mut deleted = 0;
        for orphan in orphans {
            if self.stopping.is_set() {
                break;
            }
            store.delete(orphan).map_err(CollectionError::from)?;
            deleted += 1;
        }
        Ok(deleted)
    }

    /// Makes the background thread remove the files of deleted tenants.
    pub fn clear_deleted_tenants(&self) {
        self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
        self.maintenance.interrupt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Rig;

    /// Goal: merges take no more than what is free below the first mark, all of them together.
    /// Method: merges are planned while the disk is too full to run them.
    #[test]
    fn merges_share_the_space_that_leaves_the_disk_ample() {
        let rig = Rig::new();
        rig.fill(86);
        for n in 0..12 {
            rig.upload(&format!("doc-{n}"), "everywhere is wind");
        }
        let ingest = &rig.engine.ingest;
        let collection = rig.collection();
        assert!(ingest.plan_merge(&collection).is_none(), "above the mark");
        rig.fill(84);
        let (merge, share) = ingest.plan_merge(&collection).unwrap();
        let promised_bytes = &ingest.maintenance.promised_bytes;
        assert!(merge.disk_bytes() > 0);
        assert_eq!(*promised_bytes.lock(), merge.disk_bytes());
        let bytes = merge.disk_bytes();
        drop((merge, share));
        assert_eq!(*promised_bytes.lock(), 0);
        let room = ingest.gauge.room_below(Fullness::Tight);
        *promised_bytes.lock() = room;
        assert!(ingest.plan_merge(&collection).is_none(), "another merge takes the rest");
        *promised_bytes.lock() = room - bytes;
        assert!(ingest.plan_merge(&collection).is_some());
    }
}
